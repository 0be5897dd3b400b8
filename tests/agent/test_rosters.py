"""The rosters that may be in force: a newer one hides nobody whom a promise still counts."""

from __future__ import annotations

from pp_hostd.agent.rosters import Rosters
from pp_hostd.model.roster import Member, Roster

PROMISED = 7


def roster(version: int, oldest: int, *members: Member) -> Roster:
    return Roster.of(version, oldest, members)


def member(name: str, since: int = 1, until: int | None = None, address: str = "192.0.2.1") -> Member:
    return Member(name, f"metal/{name}", address, f"uid-of-{name}", since, until)


def names(members: list[Member]) -> list[str]:
    return [each.name for each in members]


def test_whoever_is_to_be_asked_is_found_when_a_newer_roster_comes_before_the_question() -> None:
    judged_by = Rosters(roster(PROMISED, 1, member("a"), member("b"), member("left")))
    assert judged_by[PROMISED] == ("a", "b", "left")
    newer = judged_by.with_newest(roster(8, 7, member("a", 7), member("b", 7), member("left", 7, 8)), {PROMISED})
    assert names(newer.members(["b", "left"])) == ["b", "left"]


def test_a_version_that_a_promise_names_is_kept_when_the_newest_roster_has_lost_it() -> None:
    known = Rosters(roster(PROMISED, 1, member("a"), member("left")))
    newer = known.with_newest(roster(9, 9, member("a", 9, address="192.0.2.9")), {PROMISED})
    assert (newer[PROMISED], newer[9]) == (("a", "left"), ("a",))
    assert [each.address for each in newer.members(["a", "left"])] == ["192.0.2.9", "192.0.2.1"]
    last = newer.with_newest(roster(10, 9, member("a", 9)), {9})
    assert PROMISED not in last
    assert [each.version for each in last.known()] == [10]


def test_a_version_that_nobody_kept_is_in_no_roster() -> None:
    rosters = Rosters(roster(9, 9, member("a", 9))).with_newest(roster(10, 9, member("a", 9)), {PROMISED})
    assert PROMISED not in rosters
    assert rosters.get(PROMISED) is None
