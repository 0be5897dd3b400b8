"""After a boot the kubelet waits until its host has promised; what it waits for is plain to see."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd.agent.daemon import PAUSE_SECONDS
from pp_hostd.agent.state import RUN_DIRECTORY
from pp_hostd.kube.resources import NODES
from pp_hostd.model.promise import Armed, GateClosed, GateKind, Withdrawn
from tests.harness.bed.host import GATE_COMMAND, Host
from tests.harness.bed.relay import Mode
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.stage import DEAD_SECONDS, Stage, says, shows

EXIT_USER_ERROR = 2
LATE_GATE = ["/bin/sh", "-c", 'sleep 3; exec "$@"', "late", *GATE_COMMAND]


@pytest.fixture
def new_stage() -> Iterator[Stage]:
    """Yields a stage whose hosts have never been booted, nor been in the cluster before."""
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, 2) as stage:
        yield stage


def is_idle(host: Host, seconds: float) -> bool:
    """Up and judging for so long, and in all that time neither armed nor running workloads."""
    assert host.is_up(), host.down()
    assert not host.watchdog("open")
    assert not host.kubelet_started()
    alive = [event["at"] for event in host.events("notify") if "WATCHDOG" in event["message"]]
    return bool(alive) and alive[-1] > host.events("up")[0]["at"] + seconds


def promised(stage: Stage, host: Host) -> GateKind | None:
    """The kind of gate that this boot's promise names."""
    record = stage.record(host)
    return record.gate if isinstance(record, Armed) and record.boot == host.boot_id else None


def gate_status(host: Host) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(host.run("pp-hostd", "gate", "status", "--json").stdout)
    return status


def test_a_host_that_reboots_into_isolation_is_idle_until_the_api_is_back(any_stage: Stage) -> None:
    host, *_ = any_stage.hosts(3)
    host.kill()
    any_stage.bed.cut(host.name)
    any_stage.bed.boot(host.name)
    eventually(lambda: is_idle(host, DEAD_SECONDS), "it would have been dead, had it been armed")
    shows(host, "not armed: reading Node")
    says(host, "kubelet.service is held: not armed: reading Node")
    status = host.run("pp-hostd", "gate", "status").stdout
    assert status.startswith("closed (hold): not armed: reading Node")
    assert "as soon as the API answers" in status
    any_stage.bed.heal()
    eventually(lambda: any_stage.is_well(host), "it is well again, by itself")
    says(host, "the gate is open: its promise is stored")


def test_a_host_that_was_condemned_before_its_boot_waits_until_that_is_lifted(any_stage: Stage) -> None:
    host, *_ = any_stage.hosts(3)
    host.kill()
    condemnation_id = any_stage.contents.condemn(host.name)
    any_stage.bed.boot(host.name)
    shows(host, f"condemned under id {condemnation_id}, and not armed")
    closed = GateClosed(host.boot_id, GateKind.HOLD)
    eventually(lambda: any_stage.record(host) == closed, "the Node says that nothing was started")
    assert is_idle(host, 0)
    assert gate_status(host)["state"] == "closed"
    any_stage.contents.lift(host.name)
    eventually(lambda: any_stage.is_well(host), "it is given back")


def test_a_kubelet_that_is_held_later_than_the_agent_starts_waits_like_any_other(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    condemnation_id = stage.contents.condemn(host.name)
    prompt, host.design.gate = host.design.gate, LATE_GATE
    stage.bed.boot(host.name)
    host.design.gate = prompt
    shows(host, f"condemned under id {condemnation_id}")
    closed = GateClosed(host.boot_id, GateKind.HOLD)
    eventually(lambda: stage.record(host) == closed, "the Node says that nothing was started")
    stage.contents.lift(host.name)
    eventually(lambda: stage.is_well(host), "it is given back")


def test_a_host_without_credential_waits_and_says_which_file_it_wants(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    kubeconfig = host.etc / "kubeconfig"
    credentials = kubeconfig.read_text()
    kubeconfig.unlink()
    stage.bed.boot(host.name)
    shows(host, "not armed: no credential for the API: /etc/pp-hostd/kubeconfig")
    says(host, "kubelet.service is held: not armed: no credential for the API")
    assert is_idle(host, 0)
    kubeconfig.write_text(credentials)
    kubeconfig.chmod(0o600)
    eventually(lambda: stage.is_well(host), "the credential serves, without a restart")


def test_an_agent_with_a_mistake_in_its_settings_says_so_and_is_not_started_over_and_over(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    (stage.alter(host) / "pp-hostd.toml").write_text("agent.mod = 5\n")
    stage.bed.boot(host.name)
    shows(host, "did you mean agent.mode")
    eventually(lambda: len(host.events("agent-started")) > 1, "it is started again")
    first, second, *_ = (event["at"] for event in host.events("agent-started"))
    assert second - first > PAUSE_SECONDS
    stage.configure(host, {})
    eventually(lambda: stage.is_well(host), "it is mended, and nobody had to start anything")


def test_a_host_whose_credential_has_expired_waits_and_says_so(any_stage: Stage) -> None:
    host, *_ = any_stage.hosts(3)
    host.kill()
    authority = any_stage.contents.cluster.authority
    expired = authority.issue(f"system:node:{host.name}", ["system:nodes"], valid_seconds=60)
    any_stage.write_credential(host, certificate=expired)
    any_stage.bed.boot(host.name)
    shows(host, "expired")
    assert is_idle(host, 0)
    words = "the credentials in /etc/pp-hostd/kubeconfig"
    # Its unit starts beside the agent's, and holds the gate a moment later.
    eventually(lambda: words in host.run("pp-hostd", "gate", "status").stdout, "the gate says why it is held")


def test_a_person_opens_the_gate_once_the_node_no_longer_says_that_nothing_runs(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.contents.condemn(host.name)
    stage.bed.boot(host.name)
    shows(host, "condemned under id")
    eventually(lambda: isinstance(stage.record(host), GateClosed), "the Node says that nothing was started")
    refused = host.run("pp-hostd", "gate", "open", check=False)
    assert refused.returncode == EXIT_USER_ERROR
    assert "pp-hostd gate open --i-know" in refused.stderr
    assert not host.kubelet_started()
    opened = host.run("pp-hostd", "gate", "open", "--i-know")
    assert opened.stdout == "the gate is open; this host is not protected before it is armed\n"
    assert stage.record(host) == Withdrawn(host.boot_id)
    eventually(host.kubelet_started, "the kubelet starts")
    says(host, "the gate is open: root opens the gate by hand")
    assert not host.watchdog("open")


def test_nobody_opens_the_gate_while_the_node_may_say_that_nothing_runs(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.contents.condemn(host.name)
    stage.bed.boot(host.name)
    eventually(lambda: isinstance(stage.record(host), GateClosed), "the Node says that nothing was started")
    stage.bed.set_api(Mode.REFUSE, [host.name])
    refused = host.run("pp-hostd", "gate", "open", "--i-know", check=False)
    assert refused.returncode == EXIT_USER_ERROR
    assert "the gate stays closed" in refused.stderr
    assert isinstance(stage.record(host), GateClosed)
    assert is_idle(host, 0)


OPENS_OFFLINE = f"""
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.sense.boot import boot_id
assert not GateFiles({RUN_DIRECTORY!r}).open(boot_id(), "somebody opened it by hand, offline")
"""


def test_what_the_node_says_of_a_gate_that_was_opened_offline_is_withdrawn_as_soon_as_the_api_answers(
    stage: Stage,
) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.contents.condemn(host.name)
    stage.bed.boot(host.name)
    eventually(lambda: isinstance(stage.record(host), GateClosed), "the Node says that nothing was started")
    stage.bed.set_api(Mode.REFUSE, [host.name])
    host.run(sys.executable, "-c", OPENS_OFFLINE)
    eventually(host.kubelet_started, "the kubelet starts, without the API")
    assert isinstance(stage.record(host), GateClosed)
    stage.bed.set_api(Mode.PASS, [host.name])
    eventually(lambda: stage.record(host) == Withdrawn(host.boot_id), "what is no longer true is withdrawn")
    says(host, "the gate was opened, and not by this agent")
    stage.contents.lift(host.name)
    eventually(lambda: isinstance(stage.record(host), Armed), "it is protected again")


def test_a_host_that_is_an_api_servers_address_is_not_held_and_its_promise_says_so(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.configure(host, {"agent.gate": "hold", "api.servers": [f"https://{host.address}:6443"]})
    stage.bed.set_api(Mode.REFUSE, [host.name])
    stage.bed.boot(host.name)
    eventually(host.kubelet_started, "its kubelet, which may have to start the API, is not held")
    says(host, '"hold" could keep this host waiting for ever')
    stage.bed.set_api(Mode.PASS, [host.name])
    eventually(lambda: promised(stage, host), "it is armed in this boot")
    assert promised(stage, host) is GateKind.TAINT


def test_a_host_whose_node_is_gone_and_no_leaders_to_recreate_passes(new_stage: Stage) -> None:
    _, new = new_stage.bed.hosts.values()
    new_stage.contents.delete(NODES, new.name)
    new_stage.bed.boot(new.name)
    eventually(new.kubelet_started, "its kubelet may start, and register it")
    says(new, f"the gate is open: Node {new.name} does not exist, and no leader has a backup of it")
    assert not new.watchdog("open")


def test_a_host_that_is_not_enrolled_is_not_held(new_stage: Stage) -> None:
    host, new = new_stage.bed.hosts.values()
    new_stage.list_in_roster([host])
    new_stage.bed.boot(new.name)
    eventually(new.kubelet_started, "its kubelet may start")
    says(new, f"the gate is open: Node {new.name} is not in the roster; enrol it with: pp-leader enroll {new.name}")
    assert not new.watchdog("open")
    assert new_stage.record(new) == Withdrawn(new.boot_id)


def test_the_only_node_is_not_armed_and_its_gate_opens(new_stage: Stage) -> None:
    host, _ = new_stage.bed.hosts.values()
    new_stage.list_in_roster([host])
    new_stage.bed.boot(host.name)
    eventually(host.kubelet_started, "its kubelet starts")
    shows(host, "not armed: it is the only node, and nobody could take over its workloads")
    assert not host.watchdog("open")
    assert new_stage.record(host) == Withdrawn(host.boot_id)
