"""pp-hostd is taken out of a cluster and put back within one boot of a host: what the host remembers saves nobody."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.keys import CONDEMNATION_ID, NAMESPACE, ROSTER
from pp_hostd.model.promise import Armed
from tests.harness.bed.bed import API
from tests.harness.bed.host import Host
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.people import pp_leader
from tests.scenarios.leading import LeaderStage

SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS = 20.0, 8
"""A host whose agent is stopped and started, and whose API goes, lives on also on a machine that stands still."""
PATIENT: dict[str, Any] = {
    "watchdog__timeout_seconds": WATCHDOG_SECONDS,
    "agent__self_timeout_seconds": SELF_TIMEOUT_SECONDS,
}
DEAD_SECONDS = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS
FREED_SECONDS = 2 * DEAD_SECONDS


@pytest.fixture(scope="module")
def stage() -> Iterator[LeaderStage]:
    """With the controllers that end a Namespace and sign certificates."""
    with RealCluster.start() as cluster:
        cluster.run_signer("8760h", "namespace-controller")
        with LeaderStage.on(cluster, machines="openshift", **PATIENT) as stage:
            yield stage


def test_a_host_that_is_condemned_again_after_a_new_install_resets_itself_before_it_is_freed(
    stage: LeaderStage, tmp_path: Path
) -> None:
    *_, lost = stage.begin()
    _remediate(stage, lost)
    boots = lost.boots
    _uninstall(stage)
    gone = {"metadata": {"annotations": {CONDEMNATION_ID: None}}}  # by hand: the command leaves it there
    stage.contents.patch(stage.contents.machines, lost.name, gone)
    _install(stage, tmp_path)
    stage.begin()
    eventually(lambda: _follows_the_roster(stage, lost), "the new roster is promised")
    assert lost.boots == boots
    uid = stage.uid(lost)
    stage.bed.cut_pairs((lost.name, API), (API, lost.name))
    stage.request(lost)
    stage.freed(lost, uid, FREED_SECONDS)
    assert not lost.is_up(), (lost.status_text(), lost.journal()[-3:])
    down_at, acknowledged_at = lost.down()["at"], _said_at(stage, f"{lost.name}: at least half of")
    assert down_at - acknowledged_at < DEAD_SECONDS
    assert _said_at(stage, "to reset itself; deleting its Node") > down_at
    stage.given_back(lost)


def _remediate(stage: LeaderStage, host: Host) -> None:
    """The host is cut off, freed, and back in a boot in which it finds the condemnation lifted."""
    uid = stage.uid(host)
    stage.bed.cut(host.name)
    stage.request(host)
    stage.freed(host, uid, FREED_SECONDS)
    stage.given_back(host)
    stage.begin()
    stage.contents.report_address(host.name, host.address)


def _uninstall(stage: LeaderStage) -> None:
    for leader in stage.leaders.values():
        leader.stop()
    for host in stage.bed.hosts.values():
        host.stop_agent()
    eventually(lambda: _succeeds(stage, "uninstall"), "no host is armed any more, and pp-hostd is uninstalled", 120)


def _install(stage: LeaderStage, directory: Path) -> None:
    eventually(lambda: _succeeds(stage, "install", "--machines", "openshift"), "the Namespace is gone", 120)
    assert _succeeds(stage, "enroll", "--leader", "--out", str(directory / "leader"))
    for host in stage.bed.hosts.values():
        assert _succeeds(stage, "enroll", host.name, "--out", str(directory / host.name))
        for path in (*(directory / "leader").iterdir(), *(directory / host.name).iterdir()):
            shutil.copy2(path, host.etc)
        for name in ("kubeconfig", "leader.kubeconfig"):
            _correct(host.etc / name, stage.bed.api_url(1))
        host.start_agent()


def _succeeds(stage: LeaderStage, *command: str) -> bool:
    """As an administrator runs it; a refusal is to be tried again."""
    done = pp_leader(*command, "--kubeconfig", str(stage.contents.cluster.kubeconfig()))
    assert done.returncode in (0, 2), done
    return done.returncode == 0


def _correct(kubeconfig: Path, server: str) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"].update({"server": server, "tls-server-name": "localhost"})
    kubeconfig.write_text(yaml.safe_dump(config))


def _follows_the_roster(stage: LeaderStage, host: Host) -> bool:
    """Whether it has promised by what stands in the cluster: at first it goes by its copy of the old roster."""
    promise = stage.contents.node(host.name).agent
    there = stage.contents.find(CONFIG_MAPS, ROSTER, NAMESPACE) is not None
    return there and isinstance(promise, Armed) and promise.roster_version == stage.contents.roster().version


def _said_at(stage: LeaderStage, words: str) -> float:
    """When a leader last said this."""
    events = [event for name in stage.leading for event in stage.bed.hosts[name].events("journal")]
    return max(float(event["at"]) for event in events if words in event["line"])
