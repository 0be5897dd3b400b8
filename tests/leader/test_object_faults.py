"""The leader reports a fault of a Node or machine once for as long as it lasts, and never those of too many objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from pp_hostd.kube.events import About
from pp_hostd.kube.resources import NODES, OPENSHIFT_MACHINES
from pp_hostd.leader.caches import MAX_FAULTY, Fault
from pp_hostd.leader.object_faults import SOFTDOG, ObjectFaults
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import Machine
from pp_hostd.model.node import Node
from pp_hostd.model.observed import MachineSeen, NodeSeen, Observed, RosterSeen
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster
from pp_hostd.service.journal import Journal

NOTHING: Mapping[str, Fault] = {}


class Desk:
    """Every Event that was written, by object and sentence."""

    def __init__(self) -> None:
        self.events: list[tuple[About, str]] = []
        self.journal = Journal("/nonexistent")
        self.object_faults = ObjectFaults(
            OPENSHIFT_MACHINES, self.journal, lambda about, _reason, sentence, _warning: self._take(about, sentence)
        )

    def _take(self, about: About, sentence: str) -> None:
        self.events.append((about, sentence))

    def tell(
        self,
        of_nodes: Mapping[str, Fault] = NOTHING,
        of_machines: Mapping[str, Fault] = NOTHING,
        observed: Observed | None = None,
        revision: int = 0,
    ) -> list[tuple[About, str]]:
        """Reports these faults; returns the Events that are new."""
        before = len(self.events)
        self.object_faults.tell(observed or Observed(), (of_nodes, of_machines), revision)
        return self.events[before:]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.journal.close()


def test_a_fault_is_told_once_and_again_when_it_is_another_or_came_back(desk: Desk) -> None:
    garbled = {"metal/x": Fault("uid-1", "it is garbled")}
    about = About(OPENSHIFT_MACHINES, "metal", "x", "uid-1")
    assert desk.tell(of_machines=garbled) == [(about, "it is garbled")]
    assert desk.tell(of_machines=garbled) == []
    assert desk.tell(of_machines={"metal/x": Fault("uid-1", "it is worse")}) == [(about, "it is worse")]
    assert desk.tell() == []
    assert desk.tell(of_machines=garbled) == [(about, "it is garbled")]


def test_a_node_is_told_of_without_a_namespace(desk: Desk) -> None:
    assert desk.tell({"x": Fault("uid-1", "bad")}) == [(About(NODES, None, "x", "uid-1"), "bad")]


def test_an_object_without_an_identity_has_no_event(desk: Desk) -> None:
    assert desk.tell({"": Fault("", "it has no name")}) == []


def a_node(machine_key: str | Unreadable = "metal/x", address: str | None = "192.0.2.1") -> dict[str, NodeSeen]:
    return {"x": NodeSeen(Node("x", "node-uid", "1", address, None, None, False, False), machine_key)}


def a_machine(node: str | None = "x") -> dict[str, MachineSeen]:
    return {"metal/x": MachineSeen(Machine("metal", "x", "machine-uid", "1", NotRequested(0), node), 1)}


ENROLLED = frozenset({"x"})
UNLISTED = {
    "it has no address of type InternalIP": Observed(a_node(address=None), a_machine(), enrolled=ENROLLED),
    "its machine metal/x refers to no Node": Observed(a_node(), a_machine(node=None), enrolled=ENROLLED),
    "its machine metal/x refers to Node y": Observed(a_node(), a_machine(node="y"), enrolled=ENROLLED),
    "it names machine metal/x, and there is none": Observed(a_node(), enrolled=ENROLLED),
    "the Node's machine is unreadable: z": Observed(
        a_node(Unreadable("the Node's machine", "z")), a_machine(), enrolled=ENROLLED
    ),
    "there is no such Node": Observed(enrolled=ENROLLED),
}


@pytest.mark.parametrize("why", UNLISTED)
def test_who_is_enrolled_and_can_not_come_into_the_roster_is_told_of(desk: Desk, why: str) -> None:
    observed = UNLISTED[why]
    ((about, sentence),) = desk.tell(observed=observed)
    assert (about.kind, about.name, about.uid) == (NODES, "x", "node-uid" if observed.nodes else "x")
    assert sentence.startswith(f"enrolled, but not in the roster, so its agent promises nothing: {why}")


@pytest.mark.parametrize("why", UNLISTED)
def test_who_is_in_the_roster_stays_there_and_is_not_told_of(desk: Desk, why: str) -> None:
    roster = Roster.of(1, 1, [Member("x", "metal/x", "192.0.2.1", "machine-uid", 1, None)])
    observed = UNLISTED[why]
    listed = Observed(observed.nodes, observed.machines, enrolled=ENROLLED, roster=RosterSeen(roster, "1"))
    assert desk.tell(observed=listed) == []


def test_who_will_be_in_the_next_roster_is_not_told_of(desk: Desk) -> None:
    assert desk.tell(observed=Observed(a_node(), a_machine(), enrolled=ENROLLED)) == []


def test_nothing_is_known_of_a_roster_that_can_not_be_read(desk: Desk) -> None:
    garbled = RosterSeen(Unreadable("the roster", "garbage"), "1")
    assert desk.tell(observed=Observed(enrolled=ENROLLED, roster=garbled)) == []


def test_whether_all_are_listed_is_looked_at_when_something_of_it_has_changed(desk: Desk) -> None:
    assert desk.tell(observed=Observed(a_node(), a_machine(), enrolled=ENROLLED), revision=1) == []
    gone = Observed(enrolled=ENROLLED)
    assert desk.tell(observed=gone, revision=1) == []
    assert len(desk.tell(observed=gone, revision=2)) == 1


def test_of_thousands_that_are_not_listed_some_are_told_of(desk: Desk) -> None:
    enrolled = frozenset(f"worker-{number}" for number in range(5000))
    assert len(desk.tell(observed=Observed(enrolled=enrolled))) == MAX_FAULTY


def test_of_each_host_that_relies_on_softdog_people_are_warned(desk: Desk) -> None:
    def promised(name: str, kind: WatchdogKind) -> NodeSeen:
        promise = Armed("boot", 22.0, 10.0, kind, GateKind.HOLD, "uid", 1)
        node = Node(name, f"uid-{name}", "1", None, promise, None, tainted=False, unschedulable=False)
        return NodeSeen(node, "metal/x")

    kinds = {"soft": WatchdogKind.SOFTDOG, "hard": WatchdogKind.HARDWARE}
    observed = Observed(nodes={name: promised(name, kind) for name, kind in kinds.items()})
    assert desk.tell(observed=observed, revision=1) == [(About(NODES, None, "soft", "uid-soft"), SOFTDOG)]
    assert desk.tell(observed=observed, revision=2) == []
