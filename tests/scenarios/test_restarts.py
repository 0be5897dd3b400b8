"""A healthy host never notices that its agent is restarted, upgraded, or stopped and started."""

from __future__ import annotations

from pp_hostd.model.promise import Armed, Withdrawn
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios import restarts
from tests.scenarios.stage import WATCHDOG_SECONDS, Stage, now, outlive

SEED = 1
STORY = ("the promise is withdrawn", "the watchdog is disarmed", "armed: ", "promised: ")


def test_an_agent_restarted_over_and_over_on_a_busy_machine_keeps_its_watchdog_and_its_promise() -> None:
    measured = restarts.restarted(100, SEED)
    assert measured.longest_gap_seconds < restarts.WATCHDOG_SECONDS, measured


def test_an_agent_that_is_stopped_and_started_withdraws_disarms_and_promises_again(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    since_at = now()
    host.stop_agent()
    eventually(lambda: host.events("agent-ended") and host.agent_pid == 0, "it has ended")
    assert host.events("agent-ended")[-1]["status"] == 0
    assert stage.record(host) == Withdrawn(host.boot_id)
    assert not is_armed(host)
    host.start_agent()
    eventually(lambda: isinstance(stage.record(host), Armed), "it has promised again")
    assert is_armed(host)
    outlive([host], WATCHDOG_SECONDS)
    assert not host.watchdog("fired")
    lines = [event["line"] for event in host.events("journal") if event["at"] > since_at]
    order = [next(n for n, line in enumerate(lines) if words in line) for words in STORY]
    assert order == sorted(order), lines


def is_armed(host: Host) -> bool:
    """By the device's own record: whoever opened it either wrote its magic and closed it, or keeps it."""
    return bool(host.watchdog("open", "close")[-1]["event"] == "open")
