"""The commands beside a running daemon, as somebody uses them who has just installed it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from subprocess import PIPE
from typing import Any

import pytest

from pp_hostd.model.promise import Armed, Withdrawn
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.scenarios.stage import SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS, Stage, now, shows

EXIT_USER_ERROR, EXIT_DOWN = 2, 3
MAINTENANCE = ("maintenance", "on", "--why", "new disk", "--who", "ann", "--until")
RUN = ("run", "--config", "/etc/pp-hostd/pp-hostd.toml")


def said(host: Host, *arguments: str) -> str:
    """Returns the command's output without its line breaks: where a line ends is the terminal's matter."""
    return " ".join(host.run("pp-hostd", *arguments).stdout.split())


def refused(host: Host, *arguments: str, code: int = EXIT_USER_ERROR) -> str:
    """Returns the complaint of a command that ends with that exit code instead, without its line breaks."""
    ended = host.run("pp-hostd", *arguments, check=False)
    assert (ended.returncode, ended.stdout) == (code, ""), ended
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())


def status(host: Host) -> dict[str, Any]:
    current: dict[str, Any] = json.loads(host.run("pp-hostd", "status", "--json").stdout)
    assert current["running"] is True
    return current


@contextlib.contextmanager
def maintenance(host: Host, until: str) -> Iterator[str]:
    """Orders maintenance and yields the answer; the order ends with the block."""
    try:
        yield " ".join(host.run("pp-hostd", *MAINTENANCE, until, check=False).stdout.split())
    finally:
        host.run("pp-hostd", "maintenance", "off")


def test_a_healthy_host_tells_its_proof_its_watchdog_and_what_would_change_that(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    table = said(host, "status")
    armed = f"watchdog armed, hardware, {WATCHDOG_SECONDS} s"
    for words in ("state healthy", "proof own read, begun", armed, "gate open (hold)"):
        assert words in table
    dead_seconds = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS
    bound = f"dead within {dead_seconds:g} s of its last proof (T {SELF_TIMEOUT_SECONDS:g} s, W {WATCHDOG_SECONDS} s)"
    assert f"promise armed: {bound}, roster" in table
    current = status(host)
    assert (current["node"], current["boot"], current["state"]) == (host.name, host.boot_id, "healthy")
    assert 0 < current["feed_until_seconds"] <= SELF_TIMEOUT_SECONDS
    explained = said(host, "explain")
    assert explained.startswith("Healthy: its machine is not condemned. The last proof that it is not condemned began")
    assert "3 failed reads in a row would make it ask its peers; a condemnation would reset it." in explained
    assert said(host, "gate", "status") == "open (hold): kubelet.service may start workloads"
    assert said(host, "query-watchdog").startswith("device /dev/watchdog exists yes")
    assert "dead at the latest" in said(host, "check-config")


def test_status_is_shown_again_and_again_until_it_is_interrupted(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    command = host.command("pp-hostd", "status", "--watch", "--json")
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, start_new_session=True) as watching:
        assert watching.stdout is not None
        first, second = (json.loads(watching.stdout.readline()) for _ in range(2))
        os.killpg(watching.pid, signal.SIGINT)  # as a terminal does
        _, errors = watching.communicate(timeout=HANGS_SECONDS)
    assert second["at"] > first["at"]
    assert errors == b""


def test_in_an_outage_a_host_says_that_it_stays_up_and_how_it_came_to_that(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stage.bed.set_api(Mode.SWALLOW)
    shows(host, "reads failed")
    explained = said(host, "explain")
    assert 'One good read, or one peer that says "healthy", proves that it may live on.' in explained
    assert "Without a new proof it is fed for" in explained
    shows(host, "the control plane is out")
    assert "can't read the API: the control plane is what failed, so it stays up." in said(host, "explain")
    current = status(host)
    assert current["state"] == "control-plane outage"
    assert {"api-error"} == {answer["said"] for answer in current["answers"]}
    changes = json.loads(host.run("pp-hostd", "history", "--json").stdout)
    assert [change["state"] for change in changes][-3:] == ["healthy", "suspect", "control-plane outage"]
    assert "control-plane outage" in said(host, "history")


def test_peers_are_asked_by_hand_what_the_daemon_would_ask_them(stage: Stage) -> None:
    host, second, third = stage.hosts(3)
    well = [(second.name, "healthy"), (third.name, "healthy")]

    def answers() -> list[tuple[str, str]]:
        asked = host.run("pp-hostd", "ask", "--all", "--json", check=False)
        assert asked.returncode in (0, 1), asked
        return [(each["peer"], each["said"]) for each in json.loads(asked.stdout)]

    def one() -> str:
        return " ".join(host.run("pp-hostd", "ask", second.name, check=False).stdout.split())

    eventually(lambda: answers() == well, "both say healthy; a peer whose read takes too long says api-error")
    eventually(lambda: f"{second.name} healthy" in one(), "it says so to a person")
    third.kill()
    silent = host.run("pp-hostd", "ask", "--all", check=False)
    assert silent.returncode == 1
    assert f"{third.name} silent" in " ".join(silent.stdout.split())
    assert "not in version" in refused(host, "ask", "nobody")


def test_a_condemned_host_that_waits_says_who_ends_that(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    condemnation_id = stage.contents.condemn(host.name)
    stage.bed.boot(host.name)
    shows(host, f"condemned under id {condemnation_id}")
    ends = f"It waits until condemnation {condemnation_id} is lifted: "
    ends += "the leader does that once it has released the workloads."
    assert ends in said(host, "explain")
    assert said(host, "gate", "status").endswith(ends)
    assert status(host)["gate"]["state"] == "closed"


def test_a_dry_run_judges_and_says_what_it_would_do(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.configure(host, {"agent.mode": "dry-run"})
    stage.bed.boot(host.name)
    shows(host, "healthy")
    explained = said(host, "explain")
    assert "Its watchdog would be fed for" in explained
    assert 'A dry run arms nothing. To have it act, set agent.mode = "enforce"' in explained
    assert "state healthy (dry run)" in said(host, "status")
    stage.contents.condemn(host.name)
    shows(host, "would reset this host (dry run): its machine is condemned")
    assert "A dry run does nothing about it; the next proof ends this state." in said(host, "explain")
    stage.contents.lift(host.name)
    shows(host, "healthy")
    assert host.is_up() and not host.watchdog("open")


def test_maintenance_withdraws_and_disarms_survives_a_reboot_and_ends_when_told(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    with maintenance(host, "1h") as answer:
        assert answer.endswith(": new disk; the promise is withdrawn and the watchdog disarmed")
        record = stage.record(host)
        assert isinstance(record, Withdrawn)
        order = record.maintenance
        assert order is not None
        assert (order.who, order.why) == ("ann", "new disk")
        assert timedelta(minutes=55) < order.until_wallclock - datetime.now(timezone.utc) < timedelta(hours=1)
        assert host.watchdog()[-1]["event"] == "close"
        assert "by ann until" in said(host, "maintenance", "status")
        host.kill()
        stage.bed.boot(host.name)
        shows(host, "not armed: maintenance by ann until")
        eventually(host.kubelet_started, "workloads may run meanwhile")
        assert not host.watchdog("open")
        assert "or at once with: pp-hostd maintenance off" in said(host, "explain")
    eventually(lambda: isinstance(stage.record(host), Armed), "it has promised again")


def test_maintenance_ends_by_itself(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    with maintenance(host, "2s"):
        assert isinstance(stage.record(host), Withdrawn)
        eventually(lambda: stage.is_well(host), "it has promised again")
        assert said(host, "maintenance", "status") == "There is no maintenance."


def test_maintenance_that_cannot_be_told_to_the_cluster_leaves_the_host_armed(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    since_at = now()
    stage.bed.set_api(Mode.REFUSE, [host.name])
    with maintenance(host, "1h") as answer:
        assert "still armed" in answer
        assert isinstance(stage.record(host), Armed)
    assert host.is_up()
    assert not [event for event in host.watchdog("magic", "close") if event["at"] > since_at]


def test_without_a_daemon_commands_tell_what_it_said_last(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.stop_agent()
    eventually(lambda: host.agent_pid == 0, "it has ended")
    for command in (["status"], ["explain"], ["gate", "status"], ["maintenance", "off"], ["ask", "--all"]):
        told = refused(host, *command, code=EXIT_DOWN)
        assert told.startswith("pp-hostd: the daemon does not run on this host")
        assert "s ago it said: not armed: " in told
        assert "See: systemctl status pp-hostd; journalctl -u pp-hostd" in told
    down = host.run("pp-hostd", "status", "--json", check=False)
    assert down.returncode == EXIT_DOWN
    assert json.loads(down.stdout)["running"] is False
    host.start_agent()


def test_a_second_daemon_is_refused(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    assert refused(host, *RUN) == "pp-hostd: pp-hostd runs already on this host See: systemctl status pp-hostd"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent.self_timeout_seconds": 3.0}, "must be less than the self timeout, 3 s"),
        ({"peers.key_file": "/etc/pp-hostd/no.key"}, "/etc/pp-hostd/no.key"),
    ],
)
def test_a_daemon_that_cannot_start_says_why(stage: Stage, changes: dict[str, Any], words: str) -> None:
    host, *_ = stage.hosts(3)
    host.stop_agent()
    eventually(lambda: host.agent_pid == 0, "it has ended")
    stage.configure(host, changes)
    assert words in refused(host, *RUN)
