"""Calls and replies: written and read back, refused where they could do harm, and interpreted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.fencing.call import (
    ACTIONS,
    AgentCall,
    AgentReply,
    Power,
    is_done,
    masked,
    parse_call,
    parse_reply,
    power_of,
)
from pp_hostd.model.record import Unreadable
from tests.fencing.values import a_call

NAMES = st.from_regex("fence_[a-z0-9_]{1,60}", fullmatch=True)
KEYS = st.sampled_from(["ip", "username", "password", "plug", "systems-uri", "subscriptionId", "api_path", "tls1.0"])
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("äß☃=#"), max_size=40)


@given(NAMES, st.sampled_from(ACTIONS), st.dictionaries(KEYS, VALUES), st.floats(1, 600))
def test_a_call_is_read_back_as_it_was_written(name: str, action: str, more: dict[str, str], seconds: float) -> None:
    call = AgentCall(name, (("action", action), *more.items()), seconds)
    assert parse_call(call.render()) == call
    assert parse_call(call.render().encode()) == call


@given(st.none() | st.integers(0, 255), st.text(), st.text(max_size=500))
def test_a_reply_is_read_back_as_it_was_written(code: int | None, output: str, trouble: str) -> None:
    reply = AgentReply(code, output, trouble)
    assert parse_reply(reply.render()) == reply


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["v", "agent", "parameters", "seconds", "code", "output", "trouble"]), JSON))
def test_whatever_is_sent_is_read_or_refused(fields: dict[str, Any]) -> None:
    text = json.dumps({**fields, "v": 1})
    assert isinstance(parse_call(text), (AgentCall, Unreadable))
    assert isinstance(parse_reply(text), (AgentReply, Unreadable))


def refused(call: AgentCall) -> str:
    found = parse_call(call.render())
    assert isinstance(found, Unreadable), found
    return found.reason


@pytest.mark.parametrize(
    "agent", ["", "sh", "fence_", "fence_Dummy", "fence_x/../../bin/sh", "fence_x\n", "fence_" + "x" * 61]
)
def test_only_fence_agents_are_called(agent: str) -> None:
    assert "fence agent" in refused(a_call(agent=agent))


@pytest.mark.parametrize(
    "key",
    [
        *("debug", "debug_file", "debug-file", "Debug-File", "logfile", "status_file", "cookie-file", "token_file"),
        *("ipmitool_path", "ssh-path", "store_path", "sudo_path", "password_script", "snmp-priv-passwd-script"),
        *("exec", "runonfail", "runonwarn", "ssh_options", "sudo", "use_sudo", "help", "version", "option"),
    ],
)
def test_no_parameter_writes_a_file_runs_a_program_or_keeps_the_agent_from_acting(key: str) -> None:
    assert refused(a_call({key: "1"})) == f"the parameter {key} is not allowed here; leave it out"


@pytest.mark.parametrize("key", ["identity_file", "api_path", "verbose", "missing_as_off", "tls1.0", "resourceGroup"])
def test_other_parameters_are_taken(key: str) -> None:
    assert isinstance(parse_call(a_call({key: "1"}).render()), AgentCall)


@pytest.mark.parametrize("key", ["", "-x", "1", "a b", "a=b", "a\nb", "ä", "x" * 62])
def test_a_parameter_has_a_name_of_one_word(key: str) -> None:
    assert "not the name of a parameter" in refused(a_call({key: "1"}))


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\0", "\x85", "x" * 4097])
def test_a_value_is_one_line_of_bounded_length_and_is_never_shown(value: str) -> None:
    assert refused(a_call({"password": value})) == "the parameter password is not one line of at most 4096 characters"


@pytest.mark.parametrize("action", ["", "metadata", "OFF", "validate-all", "diag"])
def test_an_action_is_one_of_four(action: str) -> None:
    assert refused(a_call(action=action)).endswith("not one of status, on, off, reboot")


def test_a_call_without_an_action_is_refused_since_agents_would_reboot() -> None:
    assert "action is missing" in refused(AgentCall("fence_test", (("ip", "1"),), 10))


@pytest.mark.parametrize("twice", ["Action", "ACTION"])
def test_a_second_spelling_of_a_parameter_is_refused(twice: str) -> None:
    assert "twice" in refused(a_call({twice: "off"}, action="status"))


@pytest.mark.parametrize("seconds", [0, 0.5, 601, -1])
def test_a_call_takes_from_one_second_to_ten_minutes(seconds: float) -> None:
    assert "not 1 to 600 seconds" in refused(a_call(seconds=seconds))


def test_a_call_is_bounded() -> None:
    assert "longer than" in refused(a_call({f"key{number}": "x" * 4000 for number in range(5)}))


@pytest.mark.parametrize("code", [-1, 256, True, "0", 1.5])
def test_no_other_number_is_an_exit_code(code: Any) -> None:
    assert isinstance(parse_reply(json.dumps({"v": 1, "code": code, "output": "", "trouble": ""})), Unreadable)


def test_a_call_hides_its_parameters_from_whoever_prints_it() -> None:
    assert "hunter2" not in repr(a_call({"password": "hunter2"}))


@pytest.mark.parametrize(
    "key", ["password", "passwd", "snmp-priv-passwd", "secret_key", "apikey", "Token", "community", "hexadecimal_kg"]
)
def test_secrets_are_masked(key: str) -> None:
    call = a_call({"ip": "10.0.0.1", key: "hunter2"})
    assert masked("hunter2 at 10.0.0.1, not hunter20", call, is_whole=True) == "*** at 10.0.0.1, not ***0"


def test_a_secret_that_is_part_of_another_leaves_nothing_of_it() -> None:
    call = a_call({"password": "hunter", "passwd": "hunter2", "token": ""})
    assert masked("hunter2 hunter", call, is_whole=True) == "*** ***"


@pytest.mark.parametrize("end", ["", "w", "wolf", "wolfsbane is my passwor", "wolfsbane is my password"])
def test_an_output_that_is_cut_does_not_end_with_a_part_of_a_secret(end: str) -> None:
    call = a_call({"password": "wolfsbane is my password", "passwd": "wolf"})
    assert masked(f"wolf, {end}", call, is_whole=False) == "***, "


@pytest.mark.parametrize(
    ("code", "power"), [(0, Power.ON), (2, Power.OFF), (1, Power.UNKNOWN), (3, Power.UNKNOWN), (None, Power.UNKNOWN)]
)
def test_a_status_is_on_off_or_unknown(code: int | None, power: Power) -> None:
    assert power_of(AgentReply(code, "", "")) is power


@pytest.mark.parametrize(("code", "done"), [(0, True), (1, False), (2, False), (None, False)])
def test_an_action_is_done_by_exit_code_0_alone(code: int | None, done: bool) -> None:
    assert is_done(AgentReply(code, "", "")) is done
