"""The roster: every enrolled node, and every version that a promise names for as long as it does (rules 5, 10)."""

from __future__ import annotations

import uuid
from typing import Callable

from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.plan.roster import next_roster
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import ENROLLED
from pp_hostd.model.machine import Machine
from pp_hostd.model.node import Node
from pp_hostd.model.observed import MachineSeen, NodeSeen, Observed, RosterSeen
from pp_hostd.model.record import MAX_COUNT, Unreadable
from pp_hostd.model.roster import Roster, parse_roster
from tests.harness.examples import tries
from tests.leader.membership import NAMES, Membership


def published(*names: str) -> Membership:
    membership = Membership()
    membership.enrol(*names)
    assert membership.publish()
    return membership


def names_of(membership: Membership, version: int) -> tuple[str, ...]:
    electorate = membership.as_of(version)
    assert not isinstance(electorate, Unreadable), electorate
    return electorate.names


def test_the_first_roster_lists_who_is_enrolled_and_known() -> None:
    membership = Membership()
    membership.api.patch("nodes", "b", {"status": {"addresses": None}})
    membership.replace_machine("c", node="another")
    membership.enrol("a", "b", "c", "nobody")
    assert membership.publish()
    assert names_of(membership, 1) == ("a",)


def test_without_anybody_enrolled_there_is_no_roster() -> None:
    assert next_roster(Membership().api.observed()) is None


def test_what_has_not_changed_is_not_written() -> None:
    membership = published("a", "b")
    membership.promise("a")
    assert not membership.publish()


def test_a_roster_that_cant_be_read_is_not_overwritten() -> None:
    membership = published("a", "b")
    membership.put_back("{")
    membership.enrol("c")
    assert not membership.publish()


def test_who_leaves_is_kept_for_those_who_promised_the_version_before() -> None:
    membership = published("a", "b", "c")
    membership.promise("a")
    membership.enrol("b")
    assert membership.publish()
    assert names_of(membership, 1) == ("a", "b", "c")
    assert names_of(membership, 2) == ("a", "c")


def test_a_committed_host_has_promised_too() -> None:
    membership = published("a", "b", "c")
    membership.promise("a", id_=1)
    for name in ("b", "d"):
        membership.enrol(name)
        assert membership.publish()
    assert names_of(membership, 1) == ("a", "b", "c")


def test_a_version_that_nobody_names_any_more_is_forgotten() -> None:
    membership = published("a", "b", "c")
    membership.promise("a")
    membership.enrol("b")
    membership.publish()
    membership.promise("a")
    membership.enrol("d")
    assert membership.publish()
    assert isinstance(membership.as_of(1), Unreadable)
    assert "b" not in (membership.roster() or Roster.of(1, 1, ())).render().split('"nodes"')[1]


def test_the_version_before_the_newest_is_kept_for_promises_that_are_on_their_way() -> None:
    membership = published("a", "b")
    membership.enrol("c")
    assert membership.publish()
    assert names_of(membership, 1) == ("a", "b")


def test_a_new_address_is_no_new_member_and_holds_for_the_past_too() -> None:
    membership = published("a", "b")
    membership.promise("a")
    before = membership.addresses(1)["b"]
    membership.move("b")
    assert membership.publish()
    assert membership.addresses(1)["b"] == membership.addresses(2)["b"] != before


def test_a_node_that_is_missing_for_a_while_stays_a_member() -> None:
    membership = published("a", "b")
    membership.api.put("nodes", "b", None)
    assert not membership.publish()


def test_another_machine_is_another_member() -> None:
    membership = published("a", "b")
    membership.promise("a")
    old = membership.members(1)
    membership.replace_machine("b")
    assert membership.publish()
    assert membership.members(1) == old
    assert membership.members(2) != old


def test_a_roster_that_was_deleted_goes_on_beyond_every_version_that_is_promised() -> None:
    membership = published("a", "b", "c")
    for name in ("d", "b"):
        membership.enrol(name)
        membership.publish()
    membership.promise("a")
    membership.put_back(None)
    assert membership.publish()
    roster = membership.roster()
    assert roster is not None
    assert (roster.version, roster.oldest) == (4, 4)


def test_an_old_roster_that_was_put_back_does_not_use_a_promised_version_again() -> None:
    membership = published("a", "b", "c")
    for name in ("d", "b"):
        membership.enrol(name)
        membership.publish()
    membership.promise("a")
    membership.put_back(membership.texts[0])
    membership.enrol("c")
    assert membership.publish()
    roster = membership.roster()
    assert roster is not None
    assert roster.version == 4
    assert isinstance(roster.as_of(3), Unreadable)


def test_a_version_that_somebody_makes_up_does_not_use_up_the_numbers() -> None:
    membership = published("a", "b", "c")
    membership.promise("a", MAX_COUNT)
    membership.enrol("b")
    assert membership.publish()
    roster = membership.roster()
    assert roster is not None
    assert roster.version == 2


names = st.sampled_from(NAMES)
Change = Callable[[Membership], object]
changes = st.one_of(
    names.map(lambda name: lambda membership: membership.enrol(name)),
    names.map(lambda name: lambda membership: membership.replace_machine(name)),
    names.map(lambda name: lambda membership: membership.move(name)),
    names.map(lambda name: lambda membership: membership.promise(name)),
    names.map(lambda name: lambda membership: membership.withdraw(name)),
)
deletion = st.just(lambda membership: membership.put_back(None))


@tries(60)
@given(st.lists(changes, max_size=40))
def test_every_version_that_a_promise_names_lists_the_nodes_it_listed_when_it_was_the_newest(
    history: list[Change],
) -> None:
    membership = published(*NAMES)
    for change in history:
        change(membership)
        membership.publish()
        for version in membership.promised.values():
            assert membership.members(version) == membership.newest[version]


@tries(60)
@given(st.lists(st.one_of(changes, deletion), max_size=40))
def test_whoever_deletes_the_roster_a_promised_version_never_lists_other_nodes(history: list[Change]) -> None:
    membership = published(*NAMES)
    promised: dict[str, tuple[int, frozenset[object]]] = {}
    for change in history:
        change(membership)
        membership.publish()
        for name in NAMES:
            version = membership.promised.get(name)
            if version is None:
                promised.pop(name, None)
            elif promised.get(name, (0, None))[0] != version:
                promised[name] = (version, membership.members(version))
            elif membership.roster() is not None and not isinstance(membership.as_of(version), Unreadable):
                assert membership.members(version) == promised[name][1]


def crowd(count: int) -> Observed:
    nodes, machines = {}, {}
    for number in range(count):
        name, machine_key = f"worker-{number:04}.rack.example", f"openshift-machine-api/cluster-worker-{number:04}"
        uid = str(uuid.UUID(int=number * 10**30))
        address = f"10.20.{number // 250}.{number % 250}"
        node = Node(name, f"n{number}", "7", address, None, None, tainted=False, unschedulable=False)
        nodes[name] = NodeSeen(node, machine_key)
        namespace, _, machine = machine_key.partition("/")
        machines[machine_key] = MachineSeen(Machine(namespace, machine, uid, "7", NotRequested(0), name), 1)
    return Observed(nodes, machines, enrolled=frozenset(nodes))


def test_5000_nodes_cost_at_most_70_bytes_each() -> None:
    observed = crowd(5000)
    order = next_roster(observed)
    assert order is not None
    text = order.roster.render()
    assert len(text.encode()) <= 70 * 5000
    read_back = parse_roster(text)
    assert isinstance(read_back, Roster)
    again = Observed(observed.nodes, observed.machines, roster=RosterSeen(read_back, "8"), enrolled=observed.enrolled)
    assert next_roster(again) is None


def test_a_recreated_node_keeps_its_address_until_its_kubelet_tells_one() -> None:
    membership = published("a", "b")
    membership.replace_machine("a")
    membership.api.patch("nodes", "a", {"status": {"addresses": None}})
    assert membership.publish()
    seen = membership.api.observed().roster
    assert seen is not None and isinstance(seen.roster, Roster)
    rows = [row for row in seen.roster.members() if row.name == "a"]
    assert len({row.uid for row in rows}) == 2 and len({row.address for row in rows}) == 1


def test_a_list_of_the_enrolled_that_was_deleted_empties_no_roster() -> None:
    membership = published("a", "b")
    membership.api.put("config maps", ENROLLED, None)
    assert not membership.publish()
