"""`pp-leader uninstall`: nothing of ours is left behind, and no node is stranded."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CAPI_MACHINES, CONFIG_MAPS, LEASES, NODES, OPENSHIFT_MACHINES
from pp_hostd.leader.access.manifests import KINDS, manifests
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import PowerRequest
from pp_hostd.model.keys import NAMESPACE, AgentsUse
from pp_hostd.model.lease import LEASE
from pp_hostd.model.promise import Armed, GateClosed, GateKind, WatchdogKind, Withdrawn
from tests.contract.objects import sample
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import pp_leader

ARMED = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "uid-1", 3).render()
CONDEMNED: Json = {
    "annotations": {"host.metal3.io/external-remediation": "2026-03-01T12:00:00Z", "pp-hostd.io/condemnation-id": "7"},
    "labels": {"pp-hostd.io/condemned": ""},
}
FOREIGN: Json = {"annotations": {"example.com/a": "b"}, "labels": {"example.com/c": "d"}}
TAINT = {"key": "pp-hostd.io/condemned", "value": "7", "effect": "NoExecute"}
FOREIGN_TAINT = {"key": "example.com/dedicated", "effect": "NoSchedule"}
FOREIGN_CONDITION = {"type": "example.com/Fan", "status": "True"}
HELD = {"spec": {"holderIdentity": "control-1"}}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """With controllers: a Namespace must end."""
    with RealCluster.start(controllers=True) as cluster:
        world = World(cluster)
        yield world
        world.close()


@pytest.fixture
def kubeconfig(world: World) -> str:
    """Of an administrator; installed is everything."""
    path = str(world.cluster.kubeconfig())
    assert pp_leader("install", "--kubeconfig", path).returncode == 0
    return path


def uninstall(kubeconfig: str) -> subprocess.CompletedProcess[str]:
    return pp_leader("uninstall", "--kubeconfig", kubeconfig)


def nothing_is_installed(world: World) -> bool:
    wanted = [
        (each["kind"], each["metadata"]) for each in manifests("openshift", AgentsUse.CERTIFICATE, REGISTRY.flows)
    ]
    looks = [Attempt("get", KINDS[kind], each["name"], namespace=each.get("namespace")) for kind, each in wanted]
    return all(world.make(look).status_code == 404 for look in looks)


def backup(node: str) -> Json:
    return sample(CONFIG_MAPS, f"backup-{node}")


KEPT_OFF = PowerRequest("machines/worker-1", "uid", "worker-1", 1).render()
REASONS = [
    (
        BARE_METAL_HOSTS,
        {"metadata": {"name": "metal-1", "annotations": {"reboot.metal3.io/ours": KEPT_OFF}}, "spec": {"online": True}},
        "default",
        "BareMetalHost default/metal-1 is kept off",
    ),
    (CONFIG_MAPS, backup("lost"), NAMESPACE, "Node lost is missing"),
    (
        CONFIG_MAPS,
        {"metadata": {"name": "enrolled"}, "data": {"lost": "{}", "gone": "{}", "worker-1": "{}"}},
        NAMESPACE,
        "Node gone is enrolled and missing",
    ),
    (NODES, sample(NODES, "worker-1", **CONDEMNED), None, "Node worker-1 is condemned"),
    (NODES, sample(NODES, "worker-3", annotations={"pp-hostd.io/freeing": "7"}), None, "Node worker-3 is being freed"),
    (OPENSHIFT_MACHINES, sample(OPENSHIFT_MACHINES, "m-1", **CONDEMNED), "default", "Machine default/m-1 is condemned"),
    (CAPI_MACHINES, sample(CAPI_MACHINES, "m-2", **CONDEMNED), "default", "Machine default/m-2 is condemned"),
    (
        NODES,
        sample(NODES, "worker-4", annotations={"pp-hostd.io/agent": ARMED}),
        None,
        "host of Node worker-4 is armed",
    ),
    (NODES, sample(NODES, "worker-5", annotations={"pp-hostd.io/agent": "?"}), None, "host of Node worker-5 is armed"),
    (LEASES, {**sample(LEASES, LEASE), **HELD}, NAMESPACE, "control-1 leads"),
]


def test_it_names_everything_that_still_needs_it_and_changes_nothing(world: World, kubeconfig: str) -> None:
    world.make(Attempt("delete", LEASES, LEASE, namespace=NAMESPACE))
    for kind, body, where, _ in REASONS:
        world.create(kind, "", body, where)
    refused = uninstall(kubeconfig)
    assert (refused.returncode, refused.stdout) == (2, "")
    lines = refused.stderr.splitlines()
    assert "nothing was changed" in lines[0]
    assert len(lines) == 1 + len(REASONS)
    for *_, sentence in REASONS:
        assert sum(sentence in line for line in lines) == 1, sentence
    assert world.read(NODES, "worker-1")["metadata"]["labels"] == CONDEMNED["labels"]
    assert set(pp_leader("install", "--kubeconfig", kubeconfig).stdout.split()[::3]) == {"unchanged"}
    for kind, body, where, _ in REASONS:
        assert world.make(Attempt("delete", kind, body["metadata"]["name"], namespace=where)).ok


def test_it_leaves_nothing_of_ours_and_everything_else(world: World, kubeconfig: str) -> None:
    records = {
        "worker-1": Withdrawn("boot-1").render(),
        "worker-2": GateClosed("boot-1", GateKind.HOLD).render(),
    }
    for name, record in records.items():
        ours = {"pp-hostd.io/agent": record, "pp-hostd.io/condemnation-id": "7", "pp-hostd.io/cordoned": "7"}
        ours["pp-hostd.io/agent-info"] = '{"v":1,"version":"0.1.0"}'
        ours["pp-hostd.io/suspects"] = '{"v":1,"suspects":["worker-9"]}'
        request = {"host.metal3.io/external-remediation": ""}
        node = sample(NODES, name, annotations={**ours, **request, **FOREIGN["annotations"]}, labels=FOREIGN["labels"])
        spec = {"taints": [TAINT, FOREIGN_TAINT], "unschedulable": True}
        status = {"conditions": [FOREIGN_CONDITION, {"type": "pp-hostd.io/Protected", "status": "False"}]}
        world.create(NODES, "", {**node, "spec": spec, "status": status})
        assert len(world.read(NODES, name)["status"]["conditions"]) == 2
    lifted = {"pp-hostd.io/condemnation-id": "7", **FOREIGN["annotations"]}
    world.create(OPENSHIFT_MACHINES, "", sample(OPENSHIFT_MACHINES, "m-1", annotations=lifted), "default")
    world.create(CONFIG_MAPS, "", backup("worker-1"), NAMESPACE)
    world.create(LEASES, "", {**sample(LEASES, LEASE), "spec": {"holderIdentity": ""}}, NAMESPACE)
    done = uninstall(kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")
    for name in records:
        node = world.read(NODES, name)
        assert FOREIGN["annotations"].items() <= node["metadata"]["annotations"].items()
        assert node["metadata"]["annotations"]["host.metal3.io/external-remediation"] == ""
        assert node["metadata"]["annotations"].pop("pp-hostd.io/condemnation-id") == "7"
        assert "pp-hostd" not in str({**node, "metadata": {**node["metadata"], "managedFields": []}})
        assert FOREIGN_TAINT in node["spec"]["taints"]
        assert [each["type"] for each in node["status"]["conditions"]] == [FOREIGN_CONDITION["type"]]
        assert "unschedulable" not in node["spec"]
    assert world.read(OPENSHIFT_MACHINES, "m-1", "default")["metadata"]["annotations"] == lifted
    eventually(lambda: nothing_is_installed(world), "nothing is installed any more")
    again = uninstall(kubeconfig)
    assert (again.returncode, {line.split()[0] for line in again.stdout.splitlines()[:-2]}) == (0, {"absent"})
    assert "systemctl disable pp-hostd-gate" in again.stdout.splitlines()[-1]


def test_a_namespace_that_is_still_going_is_to_be_waited_for(world: World, kubeconfig: str) -> None:
    held = Attempt("patch", CONFIG_MAPS, "held", {"metadata": {"finalizers": ["example.com/held"]}}, NAMESPACE)
    world.create(CONFIG_MAPS, "", sample(CONFIG_MAPS, "held"), NAMESPACE)
    assert world.make(held).ok
    assert uninstall(kubeconfig).returncode == 0
    refused = pp_leader("install", "--kubeconfig", kubeconfig)
    assert (refused.returncode, "try again in a while" in refused.stderr) == (2, True)
    assert world.make(replace(held, body={"metadata": {"finalizers": None}})).ok
    eventually(lambda: uninstall(kubeconfig).returncode == 0 and nothing_is_installed(world), "nothing is installed")


def test_a_cordon_of_somebody_else_stays(world: World, kubeconfig: str) -> None:
    world.create(NODES, "", {**sample(NODES, "cordoned"), "spec": {"unschedulable": True}})
    assert uninstall(kubeconfig).returncode == 0
    assert world.read(NODES, "cordoned")["spec"]["unschedulable"] is True
    eventually(lambda: nothing_is_installed(world), "the Namespace is gone, for the next test")
