"""The faults of Nodes and machines themselves, requested or not: a journal line and an Event, once each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Callable

from pp_hostd.kube.events import About
from pp_hostd.kube.resources import NODES, Resource
from pp_hostd.leader.caches import MAX_FAULTY, Fault
from pp_hostd.leader.plan.roster import unlisted
from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import Armed, WatchdogKind
from pp_hostd.service.journal import Journal, Message, Priority

Faults = tuple[Mapping[str, Fault], Mapping[str, Fault]]
"""Of Nodes by name, of machines by key."""
REASON = "Unusable"
NOT_LISTED = "enrolled, but not in the roster, so its agent promises nothing"
SOFTDOG_REASON = "Softdog"
SOFTDOG = (
    "its watchdog is softdog, a timer of the very kernel that it watches: if that kernel hangs, nothing resets this "
    "host, and its workloads may run twice. Let it have a hardware watchdog (pp-hostd doctor), or refuse such hosts "
    "(leader.accept_softdog = false)"
)


class ObjectFaults:
    """`event`: see ProgressEvents. A fault that stays as it is, is told once in a term."""

    def __init__(self, machines: Resource, journal: Journal, event: Callable[[About, str, str, bool], None]) -> None:
        self._machines, self._journal, self._event = machines, journal, event
        self._told: frozenset[tuple[About, str, str]] = frozenset()
        self._revision = -1
        self._unlisted: dict[str, str] = {}
        self._softdogs: dict[str, str] = {}

    def tell(self, observed: Observed, faults: Faults, revision: int) -> None:
        """Tells the faults that are new since the last time. It searches for nodes that are not listed, or rely on
        softdog, only when `revision` has changed."""
        if revision != self._revision:
            self._revision, self._unlisted, self._softdogs = revision, unlisted(observed), _softdogs(observed)
        found = [each for each in self._found(observed, *faults) if each[0].uid]
        for about, reason, sentence in (each for each in found if each not in self._told):
            line = f"{about.kind.describe(about.namespace, about.name)}: {sentence}"
            self._journal.say(Message.TROUBLE, line, Priority.WARNING)
            self._event(about, reason, sentence, True)
        self._told = frozenset(found)

    def _found(
        self, observed: Observed, of_nodes: Mapping[str, Fault], of_machines: Mapping[str, Fault]
    ) -> Iterator[tuple[About, str, str]]:
        for name, fault in of_nodes.items():
            yield About(NODES, None, name, fault.uid), REASON, fault.sentence
        for machine_key, fault in of_machines.items():
            namespace, _, name = machine_key.rpartition("/")
            yield About(self._machines, namespace or None, name, fault.uid), REASON, fault.sentence
        for name, why in islice(self._unlisted.items(), MAX_FAULTY):
            seen = observed.nodes.get(name)
            yield About(NODES, None, name, name if seen is None else seen.node.uid), REASON, f"{NOT_LISTED}: {why}"
        for name, uid in islice(self._softdogs.items(), MAX_FAULTY):
            yield About(NODES, None, name, uid), SOFTDOG_REASON, SOFTDOG


def _softdogs(observed: Observed) -> dict[str, str]:
    """Returns the Nodes, with their uids, that rely on a softdog."""
    promises = ((seen.node, seen.node.agent) for seen in observed.nodes.values())
    return {
        node.name: node.uid
        for node, promise in promises
        if isinstance(promise, Armed) and promise.watchdog is WatchdogKind.SOFTDOG
    }
