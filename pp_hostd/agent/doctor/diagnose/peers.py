"""The peers: the key, the way to them, the way back, whether strangers are refused, and how far the clocks differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pp_hostd.agent.doctor.facts import Facts, KeyFacts, NotKnown, PeerFacts
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning
from pp_hostd.model.answer import Health
from pp_hostd.model.settings import Settings
from pp_hostd.peers.knocking import Heard

KEY, TO, FROM, UNSIGNED, CLOCK = "peer-key", "peers-to", "peers-from", "peers-unsigned", "clock"
ROOT = 0
MOST_APART_SECONDS = 5.0
FIREWALL = (
    "Let TCP to the peer port through on every host, both ways, and let all listen at the roster's addresses "
    "(peers.address). See: ss -ltn; nft list ruleset"
)
SAME_VERSION = f"Do they run this version of pp-hostd? {FIREWALL}"
PACKAGE = "Install the package pp-hostd-admin."


def peers(facts: Facts) -> Iterator[Line]:
    if facts.settings is None:
        yield not_checked(KEY, "the configuration names no key", "Correct the configuration first.")
    else:
        yield _key(facts.key)
    found = facts.peers
    if isinstance(found, NotKnown):
        yield not_checked(TO, found.why, found.advice or "See the lines above.")
        return
    yield _to(found, (facts.settings or Settings()).peers.round_seconds)
    yield _from(found)
    yield _unsigned(found, signs=isinstance(facts.key, KeyFacts) and bool(facts.key.keyring.keys))
    yield _clock(found)


def _key(key: KeyFacts | NotKnown) -> Line:
    if isinstance(key, NotKnown) and key.forbidden:
        return not_checked(KEY, key.why, key.advice)
    if isinstance(key, NotKnown):
        return failure(KEY, key.why, key.advice or "pp-leader enroll NODE writes it.")
    if not key.keyring.keys:
        said = 'auth = "none": anyone who reaches the port can answer for a host, and so keep it alive or reset it'
        return warning(KEY, said, 'Set peers.auth = "key" on all hosts.')
    if key.owner != ROOT:
        return failure(KEY, f"{key.path} belongs to user id {key.owner}, not to root", f"Do: chown root {key.path}")
    if len(key.keyring.keys) > 1:
        said = f"{key.path} holds two keys: it is being changed"
        return warning(KEY, said, "Finish that: pp-leader rotate-key")
    return ok(KEY, f"{key.path} is there, long enough, and root's alone")


def _to(found: PeerFacts, round_seconds: float) -> Line:
    silent = {name: each.silence for name, each in found.answers.items() if each.answer is None}
    said = {name: each.answer for name, each in found.answers.items() if each.answer is not None}
    told = ", ".join(f"{name} says {answer.health.value}" for name, answer in said.items())
    if not said:
        return failure(TO, f"no peer answers: {_listed(silent)}", FIREWALL)
    if silent:
        return warning(TO, f"{told}; silent: {_listed(silent)}", f"See these hosts' pp-hostd. {FIREWALL}")
    if any(answer.health in (Health.UNHEALTHY, Health.NOT_FOUND) for answer in said.values()):
        return warning(TO, f"{told}: this host is condemned, or its machine is gone", "See: pp-leader explain NODE")
    slowest = max(each.ended_at - each.began_at for each in found.answers.values())
    if slowest > round_seconds:
        late = f"{told}; but the slowest took {slowest:.1f} s, and a round of questions lasts {round_seconds:g} s"
        return warning(TO, late, "Who answers too late counts as silent: mend that, or set peers.round_seconds.")
    return ok(TO, f"{told}, signed with the same key")


def _from(found: PeerFacts) -> Line:
    unheard = {name: each.reason for name, each in found.knocks.items() if not isinstance(each, Heard)}
    heard = {name: each.knocked for name, each in found.knocks.items() if isinstance(each, Heard)}
    blocked = {name: each.why for name, each in heard.items() if not each.reached}
    reached = [name for name, each in heard.items() if each.reached]
    if not heard:
        return not_checked(FROM, f"no peer could be made to call back: {_listed(unheard)}", SAME_VERSION)
    if not reached:
        return failure(FROM, f"no peer reaches this host ({found.heard_by}): {_listed(blocked)}", FIREWALL)
    if blocked or unheard:
        said = f"{', '.join(reached)} called back; not so: {_listed({**blocked, **unheard})}"
        return warning(FROM, said, FIREWALL)
    return ok(FROM, f"{', '.join(reached)} called back and got through to {found.heard_by}")


def _unsigned(found: PeerFacts, *, signs: bool) -> Line:
    if isinstance(found.unsigned, NotKnown):
        return not_checked(UNSIGNED, found.unsigned.why, found.unsigned.advice or PACKAGE)
    trusting = [name for name, status in found.unsigned.items() if status == 200]
    if signs and trusting:
        said = f"answered a question that nobody had signed: {', '.join(trusting)}"
        return failure(UNSIGNED, said, 'Set peers.auth = "key" on these hosts.')
    refusing = [name for name, status in found.unsigned.items() if status == 403]
    silent = {name: str(status) for name, status in found.unsigned.items() if status not in (200, 403)}
    if silent:
        return warning(UNSIGNED, f"plain HTTP gets no sound answer: {_listed(silent)}", FIREWALL)
    if not signs:
        return ok(UNSIGNED, f"answered, as nothing is signed: {', '.join(trusting)}")
    return ok(UNSIGNED, f"refused, as it should be, by {', '.join(refusing)}")


def _clock(found: PeerFacts) -> Line:
    """By two clocks and four moments: the way there and the way back may differ by as much as both took together."""
    apart = {name: drift(each) for name, each in found.knocks.items() if isinstance(each, Heard)}
    if not apart:
        return not_checked(CLOCK, "no peer reported its time", "See the lines about peers above.")
    told = ", ".join(f"{name} {seconds:+.3f} s (+/- {error:.3f})" for name, (seconds, error) in apart.items())
    if any(abs(seconds) - error > MOST_APART_SECONDS for seconds, error in apart.values()):
        said = (
            f"peers' clocks against this one: {told}. No bound is measured by it, but certificates and maintenance are"
        )
        return warning(CLOCK, said, "Have all hosts' clocks set by NTP: chronyc tracking")
    return ok(CLOCK, f"peers' clocks against this one: {told}")


def drift(heard: Heard) -> tuple[float, float]:
    """By how much the peer's clock is ahead, and by how much that may be wrong."""
    knocked = heard.knocked
    there = knocked.arrived_wallclock - heard.sent_wallclock
    back = knocked.left_wallclock - heard.received_wallclock
    took = (heard.received_wallclock - heard.sent_wallclock) - (knocked.left_wallclock - knocked.arrived_wallclock)
    return (there + back) / 2, max(0.0, took) / 2


def _listed(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name} ({why})" for name, why in reasons.items())
