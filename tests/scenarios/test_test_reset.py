"""A reset on a person's order: by the one who holds the watchdog, in the order of a judgement, and told afterwards."""

from __future__ import annotations

from pp_hostd.model.promise import Armed
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.stage import WATCHDOG_SECONDS, Stage, says

YES = "--yes-reset-this-host"


def ordered(host: Host, *arguments: str) -> None:
    """It ends with the host."""
    host.run("pp-hostd", "test-reset", YES, *arguments, check=False)


def stopped(host: Host) -> None:
    host.stop_agent()
    eventually(lambda: host.agent_pid == 0, "it has ended")


def test_without_the_word_nothing_happens_and_it_is_said_what_would(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    told = host.run("pp-hostd", "test-reset", check=False)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("pp-hostd: nothing was done. With --yes-reset-this-host this resets the host at\n")
    assert host.is_up() and stage.is_well(host)


def test_the_daemon_resets_by_the_means_of_a_judgement_and_the_next_boot_says_who_ordered_it(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    promised = stage.record(host)
    ordered(host)
    assert host.await_down()["how"] == "reboot"
    assert host.watchdog("settimeout")[-1]["granted_seconds"] == 1
    assert stage.record(host) == promised and isinstance(promised, Armed)  # no condemnation: nothing is committed
    stage.bed.boot(host.name)
    says(host, "the last boot ended because root ordered a test reset (boot ")
    assert "root ordered a test reset" in host.run("pp-hostd", "history").stdout
    eventually(lambda: stage.is_well(host), "it is well again")


def test_the_watchdog_alone_resets_the_host_within_its_timeout_if_that_is_asked_for(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    ordered(host, "--watchdog-only")
    assert host.await_down()["how"] == "watchdog"
    last_fed_at = host.watchdog("feed")[-1]["at"]
    assert WATCHDOG_SECONDS <= host.watchdog("fired")[-1]["at"] - last_fed_at < WATCHDOG_SECONDS + 2
    stage.bed.boot(host.name)
    says(host, "the last boot ended because root ordered a test of its watchdog alone")


def test_a_watchdog_that_does_not_fire_is_found_out_and_the_host_is_reset_all_the_same(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    host.design.watchdog = {"fires": False}
    stage.bed.boot(host.name)
    eventually(lambda: stage.is_well(host), "it is well")
    try:
        ordered(host, "--watchdog-only")
        assert host.await_down()["how"] == "reboot"
    finally:
        host.design.watchdog = {}


def test_without_a_daemon_the_command_arms_the_watchdog_and_resets(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stopped(host)
    opened = len(host.watchdog("open"))
    ordered(host)
    assert host.await_down()["how"] == "reboot"
    assert len(host.watchdog("open")) == opened + 1
    stage.bed.boot(host.name)
    says(host, "the last boot ended because root ordered a test reset (boot ")


def test_without_a_daemon_the_watchdog_alone_can_do_it_too(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stopped(host)
    ordered(host, "--watchdog-only")
    assert host.await_down()["how"] == "watchdog"
    stage.bed.boot(host.name)
    says(host, "the last boot ended because root ordered a test of its watchdog alone")


def test_a_dry_run_refuses(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.configure(host, {"agent.mode": "dry-run"})
    stage.bed.boot(host.name)
    eventually(lambda: host.status_text().startswith("healthy"), "it judges")
    refused = host.run("pp-hostd", "test-reset", YES, check=False)
    assert (refused.returncode, host.is_up()) == (2, True)
    assert refused.stderr.startswith("pp-hostd: a dry run resets nothing")
