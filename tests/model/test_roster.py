"""The roster: small, never counting a node twice, and able to say who was in it when a promise was made."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
import uuid
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member, Roster, parse_roster
from tests.model import strategies as draw

UID = "7d3b1c1e-6f0b-4a8e-9f57-0c4f1b2a3d4e"
OLD = Member("worker-1", "metal3/m-1", "192.0.2.1", UID, since=3, until=5)
NEW = Member("worker-1", "metal3/m-1", "192.0.2.77", UID, since=5, until=None)
STAYED = Member("worker-2", "metal3/m-2", "192.0.2.2", UID, since=3, until=None)
LEFT = Member("worker-3", None, "2001:db8::3", UID, since=4, until=6)
ROSTER = Roster.of(version=6, oldest=3, members=(OLD, NEW, STAYED, LEFT))


def refused(roster: Roster | dict[str, Any]) -> str:
    parsed = parse_roster(roster.render() if isinstance(roster, Roster) else json.dumps(roster))
    assert isinstance(parsed, Unreadable)
    return parsed.reason


def as_of(roster: Roster, version: int) -> Electorate:
    electorate = roster.as_of(version)
    assert isinstance(electorate, Electorate)
    return electorate


@pytest.mark.parametrize(
    ("version", "members"), [(3, (OLD, STAYED)), (4, (OLD, STAYED, LEFT)), (5, (NEW, STAYED, LEFT)), (6, (NEW, STAYED))]
)
def test_a_version_that_a_promise_names_can_be_reconstructed(version: int, members: tuple[Member, ...]) -> None:
    electorate = as_of(ROSTER, version)
    assert (electorate.version, electorate.n) == (version, len(members))
    assert tuple(electorate.member(name) for name in electorate.names) == members


@pytest.mark.parametrize("name", ["", "worker-", "worker-3", "worker-11", "worker", "xorker-1", "worker-1 ", "zebra"])
def test_a_node_that_is_not_listed_in_a_version_is_no_member_of_it(name: str) -> None:
    roster = parse_roster(Roster.of(6, 3, (OLD, NEW, STAYED)).render())
    assert isinstance(roster, Roster)
    assert as_of(roster, 6).member(name) is None


def test_a_name_that_is_too_short_for_what_all_names_share_is_no_member() -> None:
    members = [Member(name, None, "::1", UID, 1, None) for name in ("abba", "abxba")]
    electorate = as_of(Roster.of(1, 1, members), 1)
    assert [electorate.member(name) for name in ("abba", "aba", "abxba")] == [members[0], None, members[1]]


def test_rows_may_come_in_any_order() -> None:
    rows = ["c  ::3 =u 2", "a  ::1 =u", "b  ::2 =u", "c  ::4 =u 1 2"]
    fields = {"v": 1, "version": 2, "oldest": 1, "shared": [["", ""]] * 3}
    roster = parse_roster(json.dumps({**fields, "nodes": rows}))
    assert isinstance(roster, Roster)
    assert as_of(roster, 2).member("c") == Member("c", None, "::3", "u", 2, None)
    assert "node a is listed twice" in refused({**fields, "nodes": [*rows, rows[1]]})


@pytest.mark.parametrize("version", [-1, 0, 2, 7])
def test_a_version_that_is_forgotten_or_not_yet_known_cannot(version: int) -> None:
    unknown = Unreadable(f"version {version} of the roster", "the roster holds versions 3 to 6")
    assert ROSTER.as_of(version) == unknown


def test_what_all_rows_share_and_what_is_the_rule_is_left_out() -> None:
    assert json.loads(Roster.of(6, 3, (OLD, NEW, STAYED)).render()) == {
        "v": 1,
        "version": 6,
        "oldest": 3,
        "shared": [["worker-", ""], ["metal3/m-", ""], ["192.0.2.", ""]],
        "nodes": [
            "1 1 1 fTscHm8LSo6fVwxPGyo9Tg 3 5",
            "1 1 77 fTscHm8LSo6fVwxPGyo9Tg 5",
            "2 2 2 fTscHm8LSo6fVwxPGyo9Tg",
        ],
    }


def test_an_empty_roster_and_a_uid_of_another_form_are_read_back() -> None:
    odd = Roster.of(1, 1, (Member("a", None, "::1", "fTscHm8LSo6fVwxPGyo9Tg", 1, None),))
    assert parse_roster(odd.render()) == odd
    assert parse_roster(Roster.of(1, 1, ()).render()) == Roster.of(1, 1, ())


@draw.examples
@given(draw.rosters())
def test_no_version_of_a_roster_that_was_read_holds_a_node_twice(drawn: Roster) -> None:
    roster = parse_roster(drawn.render())
    assert isinstance(roster, Roster)
    for version in range(roster.oldest, roster.version + 1):
        electorate = as_of(roster, version)
        listed = [member for member in drawn.members() if member.since <= version and version < (member.until or 99)]
        assert [electorate.member(name) for name in electorate.names] == listed
        assert len({member.name for member in listed}) == electorate.n


@pytest.mark.parametrize(
    "twice",
    [
        (STAYED, STAYED),
        (STAYED, Member("worker-2", None, "192.0.2.9", UID, since=6, until=None)),
        (Member("worker-2", None, "192.0.2.9", UID, since=2, until=4), STAYED),
        (STAYED, Member("worker-2", None, "192.0.2.9", UID, since=5, until=6)),
    ],
)
def test_a_node_that_would_be_counted_twice_is_refused(twice: tuple[Member, ...]) -> None:
    assert "worker-2 is listed twice" in refused(Roster.of(6, 3, twice))


@pytest.mark.parametrize(("since", "until"), [(7, None), (4, 4), (5, 4), (4, 7)])
def test_a_row_outside_of_the_versions_is_refused(since: int, until: int | None) -> None:
    assert f"spans versions {since} to {until}" in refused(
        Roster.of(6, 3, (Member("a", None, "::1", UID, since, until),))
    )


def test_a_roster_that_is_older_than_its_oldest_version_is_refused() -> None:
    assert "oldest is 7, not a whole number from 1 to 6" in refused(Roster.of(6, 7, ()))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (None, "a row is not"),
        (["a", "", "::1", UID], "a row is not"),
        ("a  ::1", "a row is not"),
        ("a  ::1 =u 1 2 3", "a row is not"),
        ("A  ::1 =u", "a node is 'A', not a Kubernetes name"),
        ("  ::1 =u", "a node is ''"),
        ("a m ::1 =u", "a machine is 'm', not namespace/name of a Machine"),
        ("a  worker-1.example.com =u", "the address of a is 'worker-1.example.com', not an IPv4 or IPv6 address"),
        ("a  fe80::1%eth0 =u", "the address of a"),
        ("a  ::1 u", "a uid is 'u'"),
        ("a  ::1 =u 0", "a version is '0'"),
        ("a  ::1 =u 1_0", "a version is '1_0'"),
    ],
)
def test_a_broken_row_is_refused(row: object, why: str) -> None:
    assert why in refused({"v": 1, "version": 20, "oldest": 1, "shared": [["", ""]] * 3, "nodes": [row]})


@pytest.mark.parametrize(
    "shared", [None, [], [["", ""]] * 2, [["", ""]] * 4, [["", ""], ["", ""], [""]], "xyz", [[1, 2]] * 3]
)
def test_broken_shared_ends_are_refused(shared: object) -> None:
    assert "shared" in refused({"v": 1, "version": 1, "oldest": 1, "shared": shared, "nodes": []})


def test_a_long_shared_end_is_not_multiplied_into_memory() -> None:
    bomb = {"v": 1, "version": 1, "oldest": 1, "shared": [["x" * 500_000, ""], ["", ""], ["", ""]]}
    assert "a node is 'xxx" in refused({**bomb, "nodes": ["  ::1 =u"] * 20_000})


def _openshift(index: int) -> Member:
    role, suffix = ("master" if index < 3 else "worker"), f"{index * 7919 % 99991:05}"
    machine = f"openshift-machine-api/prod-7xk2p-{role}-{index % 9}-{suffix}"
    address = f"10.{128 + index // 2500}.{index // 250}.{index % 250}"
    return Member(f"{role}-{index}.prod.dc1.example.com", machine, address, _uid(index), 3, None)


def _cluster_api(index: int) -> Member:
    machine = f"metal3/workload-{index // 500}-md-0-{index * 7919 % 99991:05}-{index * 31 % 99991:05}"
    return Member(f"rack{index // 40:03}-node{index % 40:02}", machine, f"fd00:1101::{index:x}", _uid(index), 3, None)


def _no_machines(index: int) -> Member:
    return Member(
        f"ip-10-{index // 250}-{index % 250}", None, f"10.0.{index // 250}.{index % 250}", _uid(index), 3, None
    )


def _uid(index: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(index)))


@pytest.mark.parametrize("member", [_openshift, _cluster_api, _no_machines])
def test_5000_nodes_take_at_most_70_bytes_each(member: Callable[[int], Member]) -> None:
    members = [member(index) for index in range(5000)]
    text = Roster.of(9, 3, members).render()
    assert len(text.encode()) / 5000 <= 70
    roster = parse_roster(text)
    assert isinstance(roster, Roster)
    assert list(roster.members()) == sorted(members, key=lambda each: each.name)
    aged = [dataclasses.replace(each, since=2_000_003, until=2_000_009) for each in members]
    assert len(Roster.of(2_000_009, 3, tuple(aged)).render().encode()) < 1 << 20


def test_5000_nodes_weigh_less_than_a_megabyte_in_memory() -> None:
    text = Roster.of(9, 3, map(_openshift, range(5000))).render()
    tracemalloc.start()
    try:
        roster = parse_roster(text)
        assert isinstance(roster, Roster)
        electorate = as_of(roster, 9)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert electorate.n == 5000
    assert held < 1_000_000


@pytest.mark.parametrize("nodes", [0, 1, 99, 100, 101, 250])
def test_rows_that_are_written_a_few_at_a_time_make_one_list(nodes: int) -> None:
    roster = Roster.of(9, 3, map(_openshift, range(nodes)))
    text = roster.render()
    assert len(json.loads(text)["nodes"]) == nodes
    assert text == json.dumps(json.loads(text), separators=(",", ":"))
    assert parse_roster(text) == roster


def test_to_write_5000_nodes_takes_little_more_than_their_text() -> None:
    roster = Roster.of(9, 3, map(_openshift, range(5000)))
    tracemalloc.start()
    try:
        size = len(roster.render())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * size


@draw.examples
@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=4))
def test_names_that_begin_and_end_alike_are_read_back(suffixes: list[str]) -> None:
    names = sorted({f"a{suffix}a" for suffix in suffixes})
    roster = Roster.of(1, 1, tuple(Member(name, None, "::1", UID, 1, None) for name in names))
    assert parse_roster(roster.render()) == roster
