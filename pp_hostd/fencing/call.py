"""A call of a fence agent, and the reply: what the leader and the helper beside it exchange, one JSON record each."""

from __future__ import annotations

import enum
import re
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.model.record import Fields, Form, Refused, Unreadable, document, matching, read, render

LEAST_SECONDS, MOST_SECONDS = 1, 600
MAX_CALL_BYTES = 16384
MAX_REPLY_BYTES = 65536
KEPT_CHARACTERS = 4096
"""Of the agent's output."""
ACTIONS = ("status", "on", "off", "reboot")
AGENT = Form("the name of a fence agent, such as fence_ipmilan", re.compile("fence_[a-z0-9_]{1,60}"))
KEY = Form("the name of a parameter", re.compile("[A-Za-z][A-Za-z0-9_.-]{0,60}"))
VALUE = Form("one line of at most 4096 characters", re.compile("[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,4096}"))

REFUSED = re.compile(
    "debug|logfile|(?!identity_).*_file|(?!api_).*_path|.*_script|exec|ssh_options|(?:use_)?sudo|help|version|option|runon.*"
)
"""Parameters that have an agent write a file, run a program of the caller's choice, or do nothing and succeed; `option`
is an old name of `action`. Agents take "-" for "_"."""
SECRET = re.compile("passw|secret|token|key|kg|community|credential")
"""In the name of a parameter whose value nobody may read in the output."""
MASK = "***"


@frozen
class AgentCall:
    """One action of one agent: `parameters` are lines of its standard input, `action` among them."""

    agent: str
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    seconds: float

    def render(self) -> str:
        return render({"agent": self.agent, "parameters": dict(self.parameters), "seconds": self.seconds})


@frozen
class AgentReply:
    """`code` is the agent's exit code; None if the agent did not end by itself, and then `trouble` is a sentence."""

    code: int | None
    output: str
    trouble: str

    def render(self) -> str:
        return render({"code": self.code, "output": self.output, "trouble": self.trouble})


class Power(enum.Enum):
    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


def power_of(reply: AgentReply) -> Power:
    """Returns the state of the host, by the reply to `status`."""
    return {0: Power.ON, 2: Power.OFF}.get(-1 if reply.code is None else reply.code, Power.UNKNOWN)


def is_done(reply: AgentReply) -> bool:
    """Tells whether `on`, `off` or `reboot` has succeeded, by the reply to it."""
    return reply.code == 0


def parse_call(text: object) -> AgentCall | Unreadable:
    return read("the call", _call, text)


def parse_reply(text: object) -> AgentReply | Unreadable:
    return read("the reply", _reply, text)


def masked(output: str, call: AgentCall, *, is_whole: bool) -> str:
    """The output without the values of secret parameters; one that is not whole may end in the midst of a secret."""
    secrets = [value for key, value in call.parameters if is_secret(key)]
    secrets.sort(key=len, reverse=True)  # one may hold another
    shown, at = "", 0
    while at < len(output):
        if not is_whole and any(secret.startswith(output[at:]) for secret in secrets):
            break
        found = next((secret for secret in secrets if output.startswith(secret, at)), "")
        shown += MASK if found else output[at]
        at += len(found) or 1
    return shown


def is_secret(key: str) -> bool:
    """Tells whether the value of this parameter is one that nobody may read, by its name."""
    return SECRET.search(_normal(key)) is not None


def _normal(key: str) -> str:
    return key.lower().replace("-", "_")


def _call(text: object) -> AgentCall:
    fields = document(text, MAX_CALL_BYTES)
    parameters = fields.texts("parameters")
    for key, value in parameters.items():
        _check(key, value)
    if len(set(map(_normal, parameters))) < len(parameters):
        raise Refused("a parameter is there twice, once with capitals or with a hyphen; leave one of them out")
    if parameters.get("action") not in ACTIONS:
        raise Refused(f"the parameter action is missing, or not one of {', '.join(ACTIONS)}")
    return AgentCall(
        agent=fields.text("agent", AGENT),
        parameters=tuple(parameters.items()),
        seconds=fields.seconds("seconds", LEAST_SECONDS, MOST_SECONDS),
    )


def _check(key: str, value: str) -> None:
    matching(key, KEY, "a parameter")
    if REFUSED.fullmatch(_normal(key)):
        raise Refused(f"the parameter {key} is not allowed here; leave it out")
    if VALUE.pattern.fullmatch(value) is None:  # which is not shown: it may be a password
        raise Refused(f"the parameter {key} is not {VALUE.called}")


def _reply(text: object) -> AgentReply:
    fields = document(text, MAX_REPLY_BYTES)
    code = fields.anything("code")
    if code is not None and (type(code) is not int or not 0 <= code <= 255):
        raise Refused("code is no exit code")
    return AgentReply(code, _text(fields, "output"), _text(fields, "trouble"))


def _text(fields: Fields, key: str) -> str:
    value = fields.anything(key)
    if not isinstance(value, str):
        raise Refused(f"{key} is not text")
    return value
