"""The Standing to which a host is bound, and the Memory that it keeps over a restart."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.model.evidence import WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import Decision, LastRead, Lifted, Memory, Outage, Proof, Source, Standing

FULL = Memory(
    proof=Proof(1.0, Source.PEER, "b"),
    failed_reads=2,
    reading_since=3.0,
    last_read=LastRead(2.0, 2.5, "timed out"),
    check_at=4.0,
    inquiry=Inquiry(2.5, 7, 1, 2.5, ("b", "c"), 2, (Reply("b", Said.API_ERROR, None),)),
    outage=Outage(0.5, 1.0, "1 api-error of 1 asked"),
    lifted=(Lifted("uid", 5),),
    watched=WatchedCondemned("uid", 6, 3.5),
    condemned_id=6,
    decision=Decision(4.0, "a cause", 6),
)


def standing(*electorates: tuple[str, ...]) -> Standing:
    return Standing("host", "uid", True, 22.0, electorates)


def test_the_peers_are_all_nodes_of_any_roster_in_force_but_the_host_itself() -> None:
    assert standing(("a", "host", "b"), ("host", "c", "b")).peers == ("a", "b", "c")


def test_a_host_without_a_roster_or_alone_in_it_has_no_peers() -> None:
    assert standing().peers == ()
    assert standing(("host",)).peers == ()


def test_a_restart_loses_what_was_under_way_and_nothing_else() -> None:
    assert FULL.inquiry is not None
    assert FULL.resumed() == replace(FULL, reading_since=None, inquiry=FULL.inquiry.resumed())
    assert FULL.inquiry.resumed().asked == ("b",)


def test_a_restart_without_an_inquiry_begins_none() -> None:
    assert Memory().resumed() == Memory()
