"""Orders of a person or systemd to a running agent: stop, reload, hand over, rest for maintenance, or only pretend."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.model.control import Maintenance
from pp_hostd.model.promise import Armed, Withdrawn
from tests.harness.bed.host import Design, Host
from tests.harness.bed.relay import Mode
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.stage import (
    LONG_SECONDS,
    SELF_TIMEOUT_SECONDS,
    SLOW_WATCHDOG_SECONDS,
    WATCHDOG_SECONDS,
    Stage,
    outlive,
    says,
    shows,
)


def promised_seconds(stage: Stage, host: Host) -> float:
    """T as the host's Node has it; 0 without a promise."""
    record = stage.record(host)
    return record.self_timeout_seconds if isinstance(record, Armed) else 0.0


def is_disarmed(host: Host) -> bool:
    """Whether the device was told so, and has not been opened again."""
    return [event["event"] for event in host.watchdog("open", "disabled")][-1:] == ["disabled"]


def agent_has_ended(host: Host) -> bool:
    return len(host.events("agent-ended")) == len(host.events("agent-started"))


def reload(host: Host) -> None:
    host.signal_agent(signal.SIGHUP)


def test_an_agent_that_is_stopped_withdraws_its_promise_and_then_disarms(any_stage: Stage) -> None:
    host, *_ = any_stage.hosts(3)
    any_stage.alter(host)
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "the agent ends")
    assert any_stage.record(host) == Withdrawn(host.boot_id)
    assert is_disarmed(host)
    journal = host.journal()
    assert journal.index("the promise is withdrawn") < journal.index(
        "the watchdog is disarmed: this host is not protected"
    )
    host.start_agent()
    eventually(lambda: any_stage.is_well(host), "it is armed again")


def test_an_agent_that_can_t_withdraw_its_promise_keeps_the_watchdog_running_and_says_so(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stage.alter(host)
    stage.bed.set_api(Mode.REFUSE, [host.name])
    host.stop_agent()
    says(host, "still armed and feeding: the agent is stopping")
    outlive([host], LONG_SECONDS)
    assert not agent_has_ended(host)
    assert promised_seconds(stage, host) == SELF_TIMEOUT_SECONDS
    stage.bed.set_api(Mode.PASS)
    eventually(lambda: agent_has_ended(host), "the agent ends once it has withdrawn")
    assert stage.record(host) == Withdrawn(host.boot_id)
    assert is_disarmed(host)


def answer_systemctl(host: Host, script: str) -> None:
    """Have systemctl do this on the host, where there is no systemd."""
    make = f"mkdir -p /run/bin && printf '#!/bin/sh\\n{script}\\n' > /run/bin/systemctl && chmod +x /run/bin/systemctl"
    host.run("/bin/sh", "-c", make)


def order_shutdown(host: Host, target: str) -> None:
    """As systemd's queue of jobs shows it, before the agent's unit is stopped."""
    answer_systemctl(host, f"echo 12 {target} start waiting")


@pytest.mark.parametrize(("target", "how"), [("poweroff.target", "halt"), ("reboot.target", "reboot")])
def test_a_shutdown_of_the_system_ends_as_ordered_though_the_promise_can_t_be_withdrawn(
    stage: Stage, target: str, how: str
) -> None:
    host, *_ = stage.hosts(3)
    stage.alter(host)
    order_shutdown(host, target)
    stage.bed.set_api(Mode.REFUSE, [host.name])
    host.stop_agent()
    assert host.await_down()["how"] == how
    assert not is_disarmed(host)
    assert promised_seconds(stage, host) == SELF_TIMEOUT_SECONDS
    assert any("could neither be prolonged nor withdrawn within 5 s" in line for line in host.journal())


POWER_OFF = "if [ $1 = show ]; then echo 0; else echo 12 poweroff.target start waiting; fi"
"""As systemd says it that leaves the watchdog alone."""


def test_a_host_that_powers_off_keeps_its_promise_and_leaves_the_rest_to_systemd_and_the_watchdog(
    stage: Stage,
) -> None:
    host, *_ = stage.hosts(3)
    stage.alter(host)
    answer_systemctl(host, POWER_OFF)
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "the agent ends")
    record = stage.record(host)
    assert isinstance(record, Armed) and record.watchdog_timeout_seconds == POWER_OFF_SECONDS
    touched = [event["event"] for event in host.watchdog("open", "settimeout", "feed", "magic", "disabled")]
    assert touched[-1] == "settimeout"
    assert host.watchdog("settimeout")[-1]["granted_seconds"] == POWER_OFF_SECONDS
    assert host.is_up()


def test_a_watchdog_that_takes_no_longer_timeout_is_disarmed_in_a_power_off(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.alter(host)
    host.design = Design(watchdog={"granted_seconds": 2})
    stage.bed.boot(host.name)
    eventually(lambda: stage.is_well(host), "it is well")
    host.design = Design()
    answer_systemctl(host, POWER_OFF)
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "the agent ends")
    assert stage.record(host) == Withdrawn(host.boot_id)
    assert is_disarmed(host)


@pytest.mark.parametrize("target", ["reboot.target", "halt.target", "poweroff.target"])
def test_any_other_shutdown_withdraws_and_so_does_a_power_off_where_systemd_may_feed_the_watchdog(
    stage: Stage, target: str
) -> None:
    host, *_ = stage.hosts(3)
    stage.alter(host)
    order_shutdown(host, target)
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "the agent ends")
    assert stage.record(host) == Withdrawn(host.boot_id)
    assert host.is_up()


@pytest.fixture
def no_way_out(stage: Stage) -> Iterator[Host]:
    """One of three hosts; its watchdog can't be stopped, and leaves a new agent the time to start."""
    host, *_ = stage.hosts(3, patient=1)
    host.kill()
    host.design = Design(watchdog={"nowayout": True})
    stage.bed.boot(host.name)
    eventually(lambda: stage.is_well(host), "it is well")
    yield host
    host.design = Design()


def test_an_agent_whose_watchdog_can_t_be_stopped_turns_its_stop_into_a_restart(stage: Stage, no_way_out: Host) -> None:
    host = no_way_out
    answer_systemctl(host, 'echo "$@" >> /run/ordered')
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "the agent ends")
    says(host, "can't be disarmed before its next boot, and the agent goes on")
    assert "--no-block start pp-hostd.service" in host.run("/bin/cat", "/run/ordered").stdout
    host.start_agent()  # as systemd does it then
    eventually(lambda: stage.is_well(host), "it has promised again")
    outlive([host], SLOW_WATCHDOG_SECONDS)
    assert not is_disarmed(host)


def test_an_agent_whose_watchdog_can_t_be_stopped_stays_where_systemd_does_not_start_it_again(
    no_way_out: Host,
) -> None:
    host = no_way_out
    answer_systemctl(host, "echo destructive >&2; exit 4")
    host.stop_agent()
    says(host, "systemd does not start the next one (destructive)")
    outlive([host], SLOW_WATCHDOG_SECONDS)
    assert not agent_has_ended(host)


def test_settings_with_a_mistake_change_nothing_and_are_named(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stage.configure(host, {"agent.self_timeout_seconds": 1.0})
    reload(host)
    assert "agent.self_timeout_seconds" in says(host, "the old settings stay in force")
    outlive([host], SELF_TIMEOUT_SECONDS)
    assert promised_seconds(stage, host) == SELF_TIMEOUT_SECONDS


@pytest.mark.parametrize("self_timeout_seconds", [15.0, 9.5])
def test_the_promise_follows_new_settings(stage: Stage, self_timeout_seconds: float) -> None:
    host, *_ = stage.hosts(3)
    stage.configure(host, {"agent.self_timeout_seconds": self_timeout_seconds})
    reload(host)
    says(host, "the settings were read again")
    eventually(lambda: promised_seconds(stage, host) == self_timeout_seconds, "the new T is promised")
    outlive([host], 0)


def test_an_agent_that_hands_over_never_lets_go_of_the_watchdog(stage: Stage) -> None:
    host, *_ = stage.hosts(3, patient=1)
    before = len(host.watchdog())
    host.signal_agent(signal.SIGUSR1)
    eventually(lambda: len(host.events("agent-started")) == 2, "the next agent is started")
    assert host.events("agent-started")[-1]["stored"] == ["watchdog"]
    outlive([host], LONG_SECONDS)
    assert {event["event"] for event in host.watchdog()[before:]} <= {"feed", "settimeout"}
    assert promised_seconds(stage, host) == SELF_TIMEOUT_SECONDS


def test_maintenance_withdraws_and_disarms_until_it_is_over(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    said = host.run("pp-hostd", "maintenance", "on", "--why", "a new disk", "--until", "1h", "--who", "alice").stdout
    assert "maintenance by alice" in said
    assert "the promise is withdrawn and the watchdog disarmed" in said
    record = stage.record(host)
    assert isinstance(record, Withdrawn)
    assert record.maintenance is not None
    assert (record.maintenance.who, record.maintenance.why) == ("alice", "a new disk")
    assert is_disarmed(host)
    shows(host, "not armed: maintenance by alice")
    host.run("pp-hostd", "maintenance", "off", "--who", "bob")
    eventually(lambda: stage.is_well(host), "it is armed again")
    says(host, "bob ended the maintenance")


def test_an_armed_host_outlives_a_restart_with_a_bad_file_and_without_the_peers_key(stage: Stage) -> None:
    mistyped, keyless, _ = stage.hosts(3, patient=2)
    (mistyped.etc / "pp-hostd.toml").write_text("agent.self_timeout_secnds = 5\n")
    key = (keyless.etc / "peer.key").read_text()
    (keyless.etc / "peer.key").unlink()
    for host in (mistyped, keyless):
        host.signal_agent(signal.SIGKILL)
        says(host, "this boot is armed, so the agent keeps the previous settings")
    outlive([mistyped, keyless], 2 * SELF_TIMEOUT_SECONDS)
    troubles = json.loads(mistyped.run("pp-hostd", "status", "--json").stdout)["troubles"]
    assert "did you mean agent.self_timeout_seconds" in troubles[0]
    (keyless.etc / "peer.key").write_text(key)
    (keyless.etc / "peer.key").chmod(0o600)
    keyless.signal_agent(signal.SIGHUP)
    says(keyless, "the settings were read again")


def test_an_armed_host_stays_the_node_that_it_promised_for_until_it_is_stopped(stage: Stage) -> None:
    host, other, _ = stage.hosts(3, patient=1)
    stage.configure(host, {"agent.node_name": other.name, "watchdog.timeout_seconds": WATCHDOG_SECONDS})
    host.signal_agent(signal.SIGKILL)
    said = says(host, "this boot is armed, so these wait until the agent is stopped and started")
    assert said.endswith("watchdog.timeout_seconds, agent.node_name")
    outlive([host], LONG_SECONDS)
    assert promised_seconds(stage, host) == SELF_TIMEOUT_SECONDS
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "it withdraws from its own Node")
    assert stage.record(host) == Withdrawn(host.boot_id)


def test_an_agent_stopped_right_after_a_restart_withdraws_before_it_disarms(stage: Stage) -> None:
    host, *_ = stage.hosts(3, patient=1)
    host.signal_agent(signal.SIGKILL)
    eventually(lambda: [event["message"].get("READY") for event in host.events("notify")].count("1") == 2, "it is back")
    host.stop_agent()
    eventually(lambda: agent_has_ended(host), "it has ended")
    assert is_disarmed(host)
    assert isinstance(stage.record(host), Withdrawn)


def test_maintenance_of_the_whole_cluster_is_heard_by_every_agent(stage: Stage) -> None:
    hosts = stage.hosts(2)
    when = datetime.now(timezone.utc).replace(microsecond=0)
    stage.contents.order_maintenance(Maintenance("carol", when, "a new switch", when + timedelta(hours=1)))
    eventually(lambda: all(map(is_disarmed, hosts)), "both are disarmed", 45)
    for host in hosts:
        shows(host, "not armed: maintenance by carol")
    assert "the cluster's, by carol, goes on" in hosts[0].run("pp-hostd", "maintenance", "off").stdout
    stage.contents.order_maintenance(None)
    eventually(lambda: all(map(stage.is_well, hosts)), "both are armed again", 45)


@pytest.fixture
def dry_stage() -> Iterator[Stage]:
    """Yields a stage whose agents are in a dry run."""
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, 3) as stage:
        for host in stage.bed.hosts.values():
            stage.configure(host, {"agent.mode": "dry-run"})
        stage.bed.boot()
        yield stage


def test_a_dry_run_says_what_it_would_do_and_touches_nothing(dry_stage: Stage) -> None:
    host, *others = dry_stage.bed.hosts.values()
    for each in (host, *others):
        eventually(each.kubelet_started, "the kubelet is not held")
        shows(each, "healthy")
    dry_stage.bed.cut(host.name)
    shows(host, "would reset this host (dry run)")  # for whichever of two reasons comes first
    says(host, "dry run: the agent would have reset this host now")
    dry_stage.bed.heal()
    shows(host, "healthy")
    for each in (host, *others):
        assert each.is_up()
        assert not each.watchdog()
        assert dry_stage.record(each) is None
