"""Fence agents in Jobs: their script in a real shell, with an agent that notes all that it reads."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.leader.remedies.node_fence.agent_jobs import by_executor
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.methods import AgentMethod, BuiltIn, BuiltInMethod, JobMethod, SecretReference
from pp_hostd.model.record import Unreadable
from tests.leader.fence.fence_world import IPMI, SAN, FenceWorld
from tests.leader.virtual_host import HOST

IN_JOBS = ClusterConfig(executor="job", agent_image="registry.example/agents:1")
PASSWORD = SecretReference("password", "bmc", "key")

AGENT = r"""#!/bin/sh
while IFS= read -r line; do
    printf '%s\n' "$line" >> read
    case $line in action=*) action=${line#action=} ;; esac
done
echo "$# $action" >> called
case $action in
    status) test ! -e dumb || exit 1; test -e on || exit 2 ;;
    off) test ! -e broken || exit 1; test -e liar || rm -f on ;;
    on) touch on ;;
esac
"""


def a_method(action: str, fences: Fences = Fences.POWER, **parameters: str) -> AgentMethod:
    return AgentMethod("ipmi", action, "fence_test", tuple(parameters.items()), (PASSWORD,), fences, (), 60.0)


def a_job(method: AgentMethod) -> JobMethod:
    found = by_executor((method,), IN_JOBS)
    assert not isinstance(found, Unreadable) and isinstance(found[0], JobMethod)
    return found[0]


def container_of(job: JobMethod) -> Any:
    (container,) = json.loads(job.config.pod)["spec"]["containers"]
    return container


class Pod:
    """A directory in which a container's command runs as Kubernetes would run it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        agent = place / "fence_test"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        self.mark("on")

    def mark(self, name: str) -> None:
        (self.place / name).touch()

    def has(self, name: str) -> bool:
        return (self.place / name).exists()

    def run(self, job: JobMethod, secret: str = "hunter2") -> int:
        container = container_of(job)
        env = {"PATH": f"{self.place}:{os.environ['PATH']}"}
        for each in container["env"]:
            env[each["name"]] = each["value"].replace("$$", "$") if "value" in each else secret
        return subprocess.run(container["command"], cwd=self.place, env=env, timeout=60, check=False).returncode

    def lines(self, name: str) -> list[str]:
        return (self.place / name).read_text().splitlines()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def test_an_off_is_done_once_the_status_says_off(pod: Pod) -> None:
    assert pod.run(a_job(a_method("off"))) == 0
    assert not pod.has("on") and pod.lines("called") == ["0 off", "0 status"]


@pytest.mark.parametrize("fault", ["liar", "broken", "dumb"])
def test_an_off_that_is_not_seen_has_failed(pod: Pod, fault: str) -> None:
    pod.mark(fault)
    assert pod.run(a_job(a_method("off"))) != 0


def test_an_on_is_done_once_the_status_says_on(pod: Pod) -> None:
    (pod.place / "on").unlink()
    assert pod.run(a_job(a_method("on"))) == 0
    assert pod.has("on")


@pytest.mark.parametrize("is_on", [True, False])
def test_a_status_is_told_whichever_it_is(pod: Pod, is_on: bool) -> None:
    if not is_on:
        (pod.place / "on").unlink()
    assert pod.run(a_job(a_method("status"))) == 0
    pod.mark("dumb")
    assert pod.run(a_job(a_method("status"))) != 0


def test_parameters_come_on_the_standard_input_as_they_are(pod: Pod) -> None:
    odd = "$(NODE_NAME) $$ `id` 'x' \\n %s"
    assert pod.run(a_job(a_method("status", ip="192.0.2.7", odd=odd)), secret="p'a\"s $s %n") == 0
    assert pod.lines("read") == ["ip=192.0.2.7", f"odd={odd}", "password=p'a\"s $s %n", "action=status"]


def test_a_secret_is_referred_to_and_never_written() -> None:
    container = container_of(a_job(a_method("off")))
    assert {"name": "SECRET_0", "valueFrom": {"secretKeyRef": {"name": "bmc", "key": "key"}}} in container["env"]


def test_a_password_in_a_config_map_is_refused() -> None:
    found = by_executor((a_method("off", passwd="hunter2"),), IN_JOBS)
    assert isinstance(found, Unreadable)
    assert "passwd_secret=NAME/KEY" in str(found) and "hunter2" not in str(found)


def test_storage_is_fenced_beside_the_leader_all_the_same() -> None:
    methods = (a_method("off", Fences.STORAGE), BuiltInMethod(BuiltIn.DRAIN))
    assert by_executor(methods, IN_JOBS) == methods
    assert by_executor((a_method("off"),), ClusterConfig()) == (a_method("off"),)


def in_jobs() -> FenceWorld:
    world = FenceWorld()
    world.configure_cluster(grace_timeout="0s", boot_timeout="120s", executor="job", agent_image="example.com/agents:1")
    world.by_ipmi()
    world.cut_off()
    world.fence()
    world.run(lambda: bool(world.jobs()))
    return world


def test_a_flow_frees_after_the_job_that_switches_off_and_before_the_one_that_switches_on() -> None:
    world = in_jobs()
    world.spend(60.0)
    assert world.pods[HOST] == 2 and len(world.jobs()) == 1
    world.switch(False)
    world.end_job()
    world.run(lambda: len(world.jobs()) == 2)
    assert world.free()
    assert [job["metadata"]["name"].startswith("ipmi-") for job in world.jobs()] == [True, True]
    world.switch(True)
    world.end_job()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert not world.calls, "no agent has run beside the leader"


def test_a_node_says_which_job_is_about_it_until_the_flow_is_over() -> None:
    world = in_jobs()
    (job,) = world.jobs()
    marks = world.api.objects["nodes"][HOST]["metadata"]["annotations"]
    assert marks["pp-hostd.io/remediation-podname"] == job["metadata"]["name"]
    assert marks["pp-hostd.io/remediation-timestamp"].endswith("Z")
    world.switch(False)
    world.end_job()
    world.run(lambda: len(world.jobs()) == 2)
    world.switch(True)
    world.end_job()
    world.run(lambda: world.found() is None)
    left = world.api.objects["nodes"][HOST]["metadata"]["annotations"]
    assert not [key for key in left if "remediation-" in key]


def test_a_job_that_switches_on_frees_nothing() -> None:
    world = FenceWorld()
    world.configure_cluster(grace_timeout="0s", boot_timeout="60s", executor="job", agent_image="example.com/agents:1")
    world.configure("mark-unschedulable", "ipmi", "", ipmi={**IPMI, "action": "on"})
    world.cut_off()
    world.fence()
    world.run(lambda: bool(world.jobs()))
    world.end_job()
    world.run(lambda: world.is_at("Power-Management", "Error"))
    assert world.pods[HOST] == 2


def test_a_job_that_has_failed_frees_nothing() -> None:
    world = in_jobs()
    world.end_job("Failed")
    world.spend(30.0)
    assert world.pods[HOST] == 2


def test_what_a_job_would_switch_on_is_held_where_storage_must_not_come_back() -> None:
    """An agent that nobody knows runs in a Job, and may give anything back."""
    world = FenceWorld()
    world.configure_cluster(grace_timeout="0s", boot_timeout="120s", executor="job", agent_image="example.com/agents:1")
    unknown = {"agent_name": "fence_mystery", "action": "on"}
    world.configure("san", "confirm", "mystery", san={**SAN, "action": "off"}, mystery=unknown)
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Power-Management", "Running"))
    assert [agent for agent, _ in world.calls].count("fence_brocade") >= 2
    world.edit(step="Recovery", status="Running", methods=[])
    world.spend(60.0)
    assert not world.jobs()
