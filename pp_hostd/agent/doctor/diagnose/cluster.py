"""The way to others: the API and each right there, what runs out, the roster, links and peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from pp_hostd.agent.doctor.facts import (
    AccessFacts,
    Attempt,
    Expiring,
    Facts,
    KeyFacts,
    Line,
    Link,
    NotKnown,
    PeerFacts,
    failure,
    not_checked,
    ok,
    warning,
)
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing, is_unserved
from pp_hostd.model.answer import Health
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Heard

KUBECONFIG = "kubeconfig"
ENROLL = "Have a credential made: pp-leader enroll NODE, with an administrator's kubeconfig."
GRANT = "pp-leader install grants it to what pp-leader enroll issues: run install again, or use such a credential."
SLOW = "A slow API looks like a dead one: mend that, or set api.read_deadline_seconds and what follows from it."
NETWORK = "Is the API up, and does the way lead there? See the route, firewalls, and api.servers."
ADVICE = {
    Outcome.FORBIDDEN: GRANT,
    Outcome.UNAUTHORIZED: ENROLL,
    Outcome.UNREACHABLE: NETWORK,
    Outcome.TIMED_OUT: NETWORK,
    Outcome.TLS_REFUSED: "Does the kubeconfig hold the authority of this cluster? Have one made: pp-leader enroll NODE",
}


def access(facts: Facts) -> Iterator[Line]:
    found = facts.access
    if isinstance(found, NotKnown):
        yield not_checked(KUBECONFIG, found.why, found.advice or "Correct the configuration first.")
        return
    if found.trouble:
        yield failure(KUBECONFIG, found.trouble, found.hint or ENROLL)
        return
    yield _file(found)
    patience_seconds = (facts.settings or Settings()).api.read_deadline_seconds
    for attempt in found.attempts:
        yield _tried(attempt, facts.node, patience_seconds)


def _file(found: AccessFacts) -> Line:
    if found.exposed:
        said = f"{found.path}: others than its owner may read it ({found.exposed}), and so speak for this host"
        return warning(KUBECONFIG, said, f"Do: chmod 600 {found.path}; if they have read it: pp-leader enroll NODE")
    return ok(KUBECONFIG, f"{found.path} can be used")


def _tried(attempt: Attempt, node: str, patience_seconds: float) -> Line:
    error = attempt.error
    if error is None and attempt.took_seconds > patience_seconds:
        slow = f"took {attempt.took_seconds:.1f} s, and the agent waits for {patience_seconds:g} s"
        return warning(attempt.check, f"granted: {attempt.right}; but it {slow}", SLOW)
    if error is None:
        return ok(attempt.check, f"granted: {attempt.right}")
    if isinstance(error, NotKnown):
        return not_checked(attempt.check, error.why, error.advice or NETWORK)
    if error.outcome is Outcome.FORBIDDEN:
        return failure(attempt.check, f"the right is missing to {attempt.right}: {error.sentence}", GRANT)
    return failure(attempt.check, error.sentence, _advice(error, node))


def _advice(error: ApiError, node: str) -> str:
    if is_missing(error):
        return f"Is {node} the name of this host's Node? Else set agent.node_name. Has it joined the cluster yet?"
    if is_unserved(error):
        return "This cluster serves no such machines: set api.machines to what it has."
    return ADVICE.get(error.outcome, "See the API server's log.")


SOON, SOON_WHERE_RENEWED = timedelta(days=30), timedelta(minutes=10)


def expiries(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.access, AccessFacts):
        for expiring in facts.access.expiring:
            yield _line(expiring, facts.now_wallclock)


def _line(expiring: Expiring, now: datetime) -> Line:
    ends, what = expiring.ends_wallclock, expiring.what
    if isinstance(ends, NotKnown):
        return not_checked(expiring.check, f"{what}: {ends.why}", ends.advice or "See: openssl x509 -noout -enddate")
    left, at = ends - now, f"{ends:%Y-%m-%d %H:%M}Z"
    if left <= timedelta(0):
        return failure(expiring.check, f"{what} has expired, at {at}", "Renew it, or set this host's clock.")
    if left < (SOON_WHERE_RENEWED if expiring.renewed else SOON):
        return warning(expiring.check, f"{what} expires in {_span(left)}, at {at}", "Renew it before that.")
    return ok(expiring.check, f"{what} expires in {_span(left)}, at {at}")


def _span(left: timedelta) -> str:
    return f"{left.days} days" if left.days > 1 else f"{left.total_seconds() / 3600:.1f} hours"


ROSTER = "roster"


def roster(facts: Facts) -> Iterator[Line]:
    found, member = facts.roster, facts.own_member
    if isinstance(found, NotKnown):
        yield not_checked(ROSTER, found.why, found.advice or "See the lines about the API above.")
        return
    electorate = found.electorate
    known = f"version {electorate.version}, {electorate.n} nodes{', as the daemon keeps it' if found.kept else ''}"
    if member is None:
        said = f"{facts.node} is not in it ({known}): nobody counts on this host, and no peer answers for it"
        yield failure(ROSTER, said, f"Do: pp-leader enroll {facts.node}; is that the name of this host's Node?")
    elif electorate.n == 1:
        alone = "this host is alone in it: nobody could take its workloads over, so it is not armed"
        yield warning(ROSTER, f"{known}: {alone}", "Enroll the other nodes: pp-leader enroll NODE")
    else:
        yield ok(ROSTER, f"{known}; {facts.node} is in it, at {member.address}")


ADDRESS, LINKS = "address", "links"


def links(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.links, NotKnown):
        yield not_checked(LINKS, facts.links.why, facts.links.advice or "See: ip address")
        return
    if facts.own_member is not None:
        yield _address(facts.own_member.address, facts.links)
    yield _carriers(facts.links)


def _address(address: str, found: Sequence[Link]) -> Line:
    link = next((link for link in found if address in link.addresses), None)
    if link is None:
        said = f"the roster says that this host is at {address}, and no link here has that address"
        return failure(ADDRESS, said, "Peers ask there: is it the InternalIP of the right Node? See: ip address")
    if not (link.is_up and link.has_carrier):
        fault = "has no carrier" if link.is_up else "is down"
        return failure(ADDRESS, f"{address} is on {link.name}, which {fault}", f"See: ip link show {link.name}")
    return ok(ADDRESS, f"{address} is on {link.name}, which is up and has a carrier")


def _carriers(found: Sequence[Link]) -> Line:
    dead = [link.name for link in found if link.is_hardware and link.is_up and not link.has_carrier]
    if dead:
        advice = f"Is a cable out? If it is not in use: ip link set {dead[0]} down"
        return warning(LINKS, f"up, and without a carrier: {', '.join(dead)}", advice)
    alive = [link.name for link in found if link.has_carrier]
    if not alive:
        return failure(LINKS, "no link has a carrier", "See: ip link")
    return ok(LINKS, f"with a carrier: {', '.join(alive)}")


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
