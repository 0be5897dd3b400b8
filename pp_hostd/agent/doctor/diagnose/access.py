"""The kubeconfig, and each right that the agent needs: a missing one is named, with who grants it."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.facts import AccessFacts, Attempt, Facts, NotKnown
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing, is_unserved
from pp_hostd.model.settings import Settings

CHECK = "kubeconfig"
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
        yield not_checked(CHECK, found.why, found.advice or "Correct the configuration first.")
        return
    if found.trouble:
        yield failure(CHECK, found.trouble, found.hint or ENROLL)
        return
    yield _file(found)
    patience_seconds = (facts.settings or Settings()).api.read_deadline_seconds
    for attempt in found.attempts:
        yield _tried(attempt, facts.node, patience_seconds)


def _file(found: AccessFacts) -> Line:
    if found.exposed:
        said = f"{found.path}: others than its owner may read it ({found.exposed}), and so speak for this host"
        return warning(CHECK, said, f"Do: chmod 600 {found.path}; if they have read it: pp-leader enroll NODE")
    return ok(CHECK, f"{found.path} can be used")


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
