"""The order of things within a turn, and one step of the plan at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.evidence import Read
from pp_hostd.model.promise import Armed, GateClosed, Withdrawn
from pp_hostd.model.settings import Settings
from tests.agent.virtual_node import BOOT, MACHINE, WATCHDOG, VirtualHost

CONDEMNED = replace(MACHINE, condemnation=Condemned(7, datetime(2026, 3, 1, tzinfo=timezone.utc)))
IN_A_TURN = ("feed", "reset", "remember", "read", "ask")


def turns(host: VirtualHost) -> list[list[str]]:
    """Returns the acts of each finished turn, in order."""
    found: list[list[str]] = [[]]
    for act in host.acts:
        found[-1].append(act)
        if act == "show":
            found.append([])
    return found[:-1]


def promised() -> VirtualHost:
    host = VirtualHost()
    host.run(3.0)
    assert host.watchdog is not None and host.gate is Gate.OPEN
    host.acts.clear()
    return host


def steps(host: VirtualHost) -> list[str]:
    return [act for act in host.acts if act not in (*IN_A_TURN, "show")]


def test_from_boot_to_open_gate_each_step_follows_the_outcome_of_the_last() -> None:
    host = VirtualHost()
    host.run(3.0)
    assert steps(host) == ["look", "store GateClosed", "arm", "store Armed", "open the gate"]


def test_a_step_whose_outcome_is_unknown_is_neither_repeated_nor_followed() -> None:
    host = VirtualHost()
    host.advance(4.0)
    assert steps(host) == ["look"]
    host.answer(host.under_way("look"))
    host.advance(4.0)
    assert steps(host) == ["look", "store GateClosed"]


def test_every_turn_feeds_first_remembers_next_and_shows_last() -> None:
    host = promised()
    host.run(20.0)
    for turn in turns(host):
        assert turn[0] == "feed" and turn[1] == "remember" and turn[-1] == "show"


def test_nobody_is_asked_and_nothing_stored_or_armed_before_it_is_remembered() -> None:
    host = VirtualHost()
    host.run(3.0)
    while "ask" not in host.acts:  # the reads are lost until the peers are asked
        for flight in list(host.flights):
            host.lose(flight)
        host.advance(0.5)
    for turn in turns(host):
        assert all(turn.index("remember") < turn.index(act) for act in turn if act not in ("feed", "remember"))


def test_what_is_remembered_holds_the_write_that_is_ordered_next() -> None:
    host = VirtualHost()
    host.run(0.1)
    store = next(each for each in host.flights if each.write is not None)
    assert store.write is not None and isinstance(store.write[0], GateClosed)
    host.restart()
    assert [each.record for each in host.driver.commitments.pending] == [store.write[0]]


def test_a_reset_is_ordered_instead_of_feeding_and_never_unordered() -> None:
    host = promised()
    host.tell(Read(host.now, host.now, CONDEMNED))
    host.run(30.0)
    host.restart()
    host.run(30.0)
    assert all(turn[0] == "reset" and "feed" not in turn for turn in turns(host))
    assert steps(host) == []


def test_a_reset_comes_before_all_else_even_before_a_withdrawal() -> None:
    host = promised()
    host.stopping = True
    host.tell(Read(host.now, host.now, CONDEMNED))
    assert turns(host)[-1][0] == "reset" and steps(host) == []


def test_the_read_that_the_plan_wants_is_begun_at_once_and_no_turn_spins() -> None:
    host = VirtualHost()
    host.answer(host.under_way("read"))
    host.advance(0.5)
    host.answer(host.under_way("look"))
    host.answer(host.under_way("store"))
    host.advance(0.0)
    assert host.acts.count("read") == 2
    before = len(turns(host))
    host.advance(0.5)
    assert len(turns(host)) == before, "nothing happens while it is under way"


def test_stopped_it_withdraws_then_disarms() -> None:
    host = promised()
    host.stopping = True
    host.run(3.0)
    assert steps(host) == ["store Withdrawn", "disarm"]
    assert host.api.node is not None and host.api.node.agent == Withdrawn(BOOT)


def test_powering_off_it_feeds_for_the_last_time_once_the_longer_watchdog_is_promised() -> None:
    host = promised()
    host.stopping = host.powering_off = True
    host.run(3.0)
    assert steps(host)[:2] == ["store Armed", "feed for the last time"]
    assert "feed" not in host.acts[host.acts.index("feed for the last time") :]


def test_a_dry_run_asks_its_peers_too() -> None:
    """Or it would say of every outage that this host would be reset."""
    settings = Settings(agent=replace(Settings().agent, mode="dry-run"))
    host = VirtualHost(settings, gate=Gate.ABSENT)
    host.run(3.0)
    for _ in range(60):  # the reads are lost; the peers confirm it when they are asked
        for flight in list(host.flights):
            host.lose(flight)
        host.advance(0.5)
    assert "ask" in host.acts and "reset" not in host.acts


def test_what_is_waited_for_is_shown() -> None:
    host = VirtualHost()
    host.api.change(freeing=7)
    host.run(3.0)
    assert host.driver.waiting_for == "the leader is freeing its workloads"
    host.api.change(freeing=None)
    host.run(10.0)
    assert host.driver.waiting_for == ""
    assert host.api.node is not None and isinstance(host.api.node.agent, Armed)


def test_a_promise_that_vanished_is_stored_again_on_the_new_node() -> None:
    host = promised()
    host.api.delete()
    host.run(61.0, every_seconds=0.5)
    host.api.recreate()
    host.run(5.0)
    assert host.watchdog is not None and "disarm" not in host.acts
    assert host.api.node is not None and isinstance(host.api.node.agent, Armed)


def test_the_question_to_peers_names_the_machine_that_is_promised() -> None:
    host = promised()
    host.machine = replace(MACHINE, uid="another")
    while "ask" not in host.acts:  # the virtual host checks the uid
        for flight in list(host.flights):
            host.lose(flight)
        host.advance(0.5)


def test_restarted_between_arming_and_promising_in_an_outage_it_is_disarmed_and_not_reset() -> None:
    host = VirtualHost(gate=Gate.ABSENT)
    host.answer(host.under_way("read"))
    host.answer(host.under_way("look"))
    assert host.acts.count("arm") == 1
    host.restart()
    host.advance(60.0)
    assert host.watchdog is None and "reset" not in host.acts


def test_news_of_the_watchdog_that_was_taken_up_again_does_not_end_the_look_under_way() -> None:
    host = promised()
    host.restart()
    host.tell(WATCHDOG)
    assert steps(host) == ["look"]
