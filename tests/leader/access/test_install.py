"""`pp-leader install`: it says what it does, does it once, mends what was changed, and fails in words."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CAPI_MACHINES, LEASES, NODES, OPENSHIFT_MACHINES
from pp_hostd.leader.access.manifests import KINDS, manifests
from pp_hostd.model.keys import NAMESPACE, AgentsUse
from pp_hostd.model.lease import LEASE, Lease, parse_lease
from tests.contract.objects import sample
from tests.harness.build import binaries
from tests.harness.cluster import write_kubeconfig
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import agent, pp_leader

KUBELET = ("system:node:worker-1", ("system:nodes",))
MACHINES = {"openshift": OPENSHIFT_MACHINES, "cluster-api": CAPI_MACHINES, "node": NODES}


@dataclass(frozen=True)
class Beginning:
    """A cluster that was new: what the first install said, and the Lease that it made."""

    world: World
    said: str
    lease: Json


@pytest.fixture(scope="module")
def beginning() -> Iterator[Beginning]:
    with RealCluster.start() as cluster, closing(World(cluster)) as world:
        said = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig())).stdout
        yield Beginning(world, said, world.read(LEASES, LEASE, NAMESPACE))


@pytest.fixture(scope="module")
def world(beginning: Beginning) -> World:
    return beginning.world


def install(world: World, *arguments: str) -> list[str]:
    """Runs `pp-leader install`; returns the first word of its line about each manifest."""
    done = pp_leader("install", "--kubeconfig", str(world.cluster.kubeconfig()), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split()[0] for line in done.stdout.splitlines()]


def stored(world: World, manifest: Json) -> Json:
    metadata = manifest["metadata"]
    return world.read(KINDS[manifest["kind"]], metadata["name"], metadata.get("namespace"))


WANTED = manifests("node", AgentsUse.CERTIFICATE)


def about(verb: str, manifest: Json) -> Attempt:
    metadata = manifest["metadata"]
    return Attempt(verb, KINDS[manifest["kind"]], metadata["name"], namespace=metadata.get("namespace"))


@pytest.fixture
def without(world: World) -> None:
    """Nothing is installed but the Namespace, which only a controller could remove."""
    for manifest in WANTED[1:]:
        world.make(about("delete", manifest))


@pytest.mark.usefixtures("without")
def test_a_dry_run_needs_no_cluster_and_prints_what_kubectl_can_apply(world: World) -> None:
    printed = pp_leader("install", "--dry-run")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert list(yaml.safe_load_all(printed.stdout)) == WANTED
    assert printed.stdout.splitlines()[-1].startswith("# ")  # the Lease, which no apply may touch, is only named
    kubectl = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), "apply", "-f", "-"]
    for expected in ("created", "unchanged"):
        applied = subprocess.run(
            kubectl, input=printed.stdout, capture_output=True, text=True, timeout=HANGS_SECONDS, check=True
        )
        assert [line.split()[-1] for line in applied.stdout.splitlines()[1:]] == [expected] * len(WANTED[1:])


@pytest.mark.usefixtures("without")
def test_a_dry_run_touches_nothing(world: World) -> None:
    done = pp_leader("install", "--dry-run", "--kubeconfig", str(world.cluster.kubeconfig()))
    assert done.returncode == 0
    assert {world.make(about("get", manifest)).status_code for manifest in WANTED[1:]} == {404}


@pytest.mark.usefixtures("without")
def test_installed_twice_nothing_changes_the_second_time(world: World) -> None:
    assert install(world)[1:] == ["created"] * len(WANTED[1:])
    before = [stored(world, manifest) for manifest in WANTED]
    assert install(world) == ["unchanged"] * len(WANTED)
    assert [stored(world, manifest) for manifest in WANTED] == before


def test_what_somebody_changed_is_mended_and_the_rest_left(world: World) -> None:
    install(world)
    tampered = Attempt("patch", KINDS["ClusterRole"], "pp-hostd:agent", {"rules": []})
    assert world.make(tampered).ok
    assert install(world).count("changed") == 1
    role = next(each for each in WANTED if each["kind"] == "ClusterRole" and each["metadata"]["name"].endswith("agent"))
    assert stored(world, role)["rules"] == role["rules"]


def test_what_a_controller_notes_is_nobodys_change(world: World) -> None:
    """After that, an apply which changes nothing still makes a new version: it sorts the managers again."""
    install(world)
    policy = next(each for each in WANTED if each["kind"] == "ValidatingAdmissionPolicy")
    noted = yaml.safe_dump({**policy, "spec": None, "status": {"observedGeneration": 1}})
    apply = ["apply", "--server-side", "--subresource=status", "--field-manager=z", "-f", "-"]
    kubectl = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), *apply]
    subprocess.run(kubectl, input=noted, capture_output=True, text=True, timeout=HANGS_SECONDS, check=True)
    assert set(install(world)) == {"unchanged"}


@pytest.mark.parametrize("machines", list(MACHINES))
def test_agents_read_the_machines_of_their_cluster_and_of_no_other(world: World, machines: str) -> None:
    install(world, "--machines", machines)

    def readable() -> list[str]:
        readers = ((name, Attempt("list", kind, "")) for name, kind in MACHINES.items())
        return [name for name, attempt in readers if world.make(attempt, agent("worker-1")).ok]

    eventually(lambda: readable() == [machines], f"agents list only the machines of {machines}")


def test_an_install_that_is_only_repeated_takes_no_rights_away(world: World) -> None:
    chosen = ("--machines", "openshift", "--agents-use", "kubelet")
    install(world, *chosen)
    assert set(install(world)) == {"unchanged"}
    assert install(world, "--machines", "node").count("changed") == 2  # the roles, and no binding
    assert install(world, "--agents-use", "certificate").count("changed") == 2  # the bindings, and no role
    assert set(install(world, "--machines", "node", "--agents-use", "certificate")) == {"unchanged"}


@pytest.mark.parametrize(("use", "allowed"), [("kubelet", True), ("certificate", False)])
def test_a_kubelets_credential_is_an_agents_only_if_it_shall_be(world: World, use: str, allowed: bool) -> None:
    install(world, "--agents-use", use)
    attempt = Attempt("list", NODES, "")
    eventually(lambda: world.make(attempt, KUBELET).ok is allowed, f"with {use}, kubelets read Nodes: {allowed}")


def test_a_new_cluster_gets_a_lease_that_nobody_holds(beginning: Beginning) -> None:
    assert beginning.said.splitlines()[-1].split() == ["created", "Lease", f"{NAMESPACE}/{LEASE}"]
    lease = parse_lease(beginning.lease)
    assert isinstance(lease, Lease)
    assert (lease.given_up, lease.transitions) == (True, 0)


def test_a_lease_that_somebody_holds_is_left_alone(world: World) -> None:
    world.create(LEASES, "", sample(LEASES, LEASE), NAMESPACE)
    assert world.make(Attempt("patch", LEASES, LEASE, {"spec": {"holderIdentity": "control-1"}}, NAMESPACE)).ok
    before = world.read(LEASES, LEASE, NAMESPACE)
    install(world)
    assert world.read(LEASES, LEASE, NAMESPACE) == before


def test_a_lease_that_somebody_deleted_is_not_made_anew(world: World) -> None:
    """The last holder may still act, and a Lease from `install` is given up: another leader would begin at once."""
    gone = Attempt("delete", LEASES, LEASE, namespace=NAMESPACE)
    world.make(gone)
    for manifest in WANTED[1:]:
        world.make(about("delete", manifest))
    install(world)
    assert world.make(gone).status_code == 404


def refusal(*arguments: str, **environment: str) -> str:
    """Runs the command, which must fail; returns its complaint for people."""
    done = pp_leader(*arguments, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pp-leader: ")
    assert "Traceback" not in done.stderr
    return done.stderr


COMMANDS = ["install", "uninstall"]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_kubeconfig_it_says_where_it_looked(command: str) -> None:
    assert "($KUBECONFIG, or ~/.kube/config)" in refusal(command)
    assert "(/nonexistent/k)" in refusal(command, "--kubeconfig", "/nonexistent/k")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_official_client_it_says_what_to_install(command: str, tmp_path: Path) -> None:
    (tmp_path / "kubernetes.py").write_text("raise ImportError('No module named kubernetes')\n")
    assert "pp-hostd-admin" in refusal(command, PYTHONPATH=str(tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_api_that_can_not_be_reached_is_named(world: World, command: str, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "k", "https://127.0.0.1:1", world.cluster.authority.certificate_pem, token="t")
    assert "the API at https://127.0.0.1:1 can't be reached" in refusal(command, "--kubeconfig", str(path))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("user", ["reader", "nobody"])
def test_who_may_not_is_told_what_it_takes(world: World, command: str, user: str) -> None:
    assert "cluster-admin" in refusal(command, KUBECONFIG=str(world.cluster.kubeconfig(user)))
