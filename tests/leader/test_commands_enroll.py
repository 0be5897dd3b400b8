"""`pp-leader enroll`: the files that a host needs, which work for that node and nothing more, and the node's entry."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pp_hostd.kube.client import Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.renewing import REQUESTS
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.leader.commands.rotate_key import PEER_KEY
from pp_hostd.model.keys import AGENT, ENROLLED, NAMESPACE
from pp_hostd.model.lease import LEASE
from pp_hostd.peers.signing import load_keyring
from tests.contract.objects import sample
from tests.harness.build import binaries
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt
from tests.leader.access.people import pp_leader
from tests.leader.desk import Desk, Said


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """Of a real cluster, installed, with two Nodes and one that has no address."""
    with RealCluster.start() as cluster, closing(Desk(cluster)) as desk:
        assert desk.run("install").code == 0
        for number, name in enumerate(("worker-1", "worker-2", "silent"), 1):
            desk.world.create(NODES, "", sample(NODES, name))
            addresses = [{"type": "InternalIP", "address": f"192.0.2.{number}"}] * (name != "silent")
            status = {"status": {"addresses": addresses}}
            assert desk.world.make(Attempt("patch", NODES, name, status, subresource="status")).ok
        yield desk


@pytest.fixture(scope="module")
def signed(desk: Desk) -> Desk:
    """With the one controller that signs; a test that wants none comes before."""
    cluster = desk.world.cluster
    assert isinstance(cluster, RealCluster)
    cluster.run_signer()
    return desk


@pytest.fixture
def fresh(desk: Desk) -> None:
    """Nobody is enrolled."""
    desk.remove(CONFIG_MAPS, ENROLLED)
    desk.remove(SECRETS, PEER_KEY)


def enrolled(desk: Desk) -> Json:
    found = desk.world.make(Attempt("get", CONFIG_MAPS, ENROLLED, namespace=NAMESPACE))
    return dict(found.json()["data"]) if found.ok else {}


def kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(binaries() / "kubectl"), "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)


def refused(said: Said, *, because: str) -> None:
    assert (said.code, said.output) == (2, "")
    assert because in said.complaint


@pytest.mark.usefixtures("fresh")
def test_where_nobody_signs_it_says_so_in_time_and_what_else_there_is(desk: Desk, tmp_path: Path) -> None:
    said = desk.run("enroll", "worker-1", "--out", str(tmp_path / "out"), "--wait", "1")
    refused(said, because="after 1 s nobody has signed CertificateSigningRequest pp-hostd-")
    assert "--cluster-signing-cert-file" in said.complaint
    assert (enrolled(desk), (tmp_path / "out").exists()) == ({}, False)


@pytest.mark.usefixtures("fresh")
def test_a_request_that_somebody_denies_is_not_waited_for(desk: Desk, tmp_path: Path) -> None:
    command = ["enroll", "worker-1", "--out", str(tmp_path / "out"), "--wait", "3600"]
    with ThreadPoolExecutor() as pool:
        enrolling = pool.submit(desk.run, *command)
        before = {each["metadata"]["name"] for each in requests_of(desk)}
        eventually(lambda: approved(desk) - before, "the request is approved")
        [name] = approved(desk) - before
        failed = {"type": "Failed", "status": "True", "reason": "Broken", "message": "the signer is ill"}
        conditions = [*desk.world.read(REQUESTS, name)["status"]["conditions"], failed]
        status = {"status": {"conditions": conditions}}
        assert desk.world.make(Attempt("patch", REQUESTS, name, status, subresource="status")).ok
        refused(enrolling.result(), because=f"{name} is failed (Broken: the signer is ill)")
    assert (enrolled(desk), (tmp_path / "out").exists()) == ({}, False)


def requests_of(desk: Desk) -> list[Json]:
    items: list[Json] = desk.world.make(Attempt("list", REQUESTS, "")).json()["items"]
    return items


def approved(desk: Desk) -> set[str]:
    return {each["metadata"]["name"] for each in requests_of(desk) if each["status"].get("conditions")}


@pytest.mark.usefixtures("fresh")
def test_the_files_work_for_that_nodes_promise_and_nothing_more(signed: Desk, tmp_path: Path) -> None:
    said = signed.run("enroll", "worker-1", "--out", str(tmp_path))
    assert (said.code, said.complaint) == (0, "")
    kubeconfig = tmp_path / "kubeconfig"
    eventually(lambda: kubectl(kubeconfig, "get", "nodes").returncode == 0, "an agent reads the machines of its peers")
    assert kubectl(kubeconfig, "annotate", "node", "worker-1", f"{AGENT}=mine").returncode == 0
    assert signed.world.read(NODES, "worker-1")["metadata"]["annotations"][AGENT] == "mine"
    for attempt in (
        ("annotate", "node", "worker-2", f"{AGENT}=mine"),
        ("annotate", "--overwrite", "node", "worker-1", "pp-hostd.io/condemnation-id=9"),
        ("get", "secret", "-n", NAMESPACE, PEER_KEY),
    ):
        answer = kubectl(kubeconfig, *attempt)
        assert (answer.returncode, "orbidden" in answer.stderr) == (1, True), attempt


@pytest.mark.usefixtures("fresh")
def test_the_files_are_for_their_owner_alone_and_the_agent_can_load_them(signed: Desk, tmp_path: Path) -> None:
    assert signed.run("enroll", "worker-1", "--out", str(tmp_path / "new" / "one")).code == 0
    files = sorted((tmp_path / "new" / "one").iterdir())
    assert [file.name for file in files] == ["kubeconfig", "peer.key"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert load(str(files[0])).endpoints[0].port == int(signed.world.cluster.server.rpartition(":")[2])
    assert len(load_keyring(str(files[1])).keys) == 1


@pytest.mark.usefixtures("fresh")
def test_it_says_what_to_copy_where_and_what_comes_next(signed: Desk, tmp_path: Path) -> None:
    said = signed.run("enroll", "worker-1", "--out", str(tmp_path))
    assert f"scp {tmp_path}/kubeconfig {tmp_path}/peer.key root@192.0.2.1:/etc/pp-hostd/" in said.output
    assert "A certificate of system:node:worker-1 is signed. It ends at 2" in said.prose
    assert "systemctl enable --now pp-hostd" in said.output
    assert f"First correct `server` in {tmp_path}/kubeconfig" in said.prose  # this cluster is on loopback
    assert "pp-leader explain worker-1" in said.output


@pytest.mark.usefixtures("fresh")
def test_enrolled_again_it_has_a_new_certificate_and_the_same_key(signed: Desk, tmp_path: Path) -> None:
    for place in ("first", "second"):
        assert signed.run("enroll", "worker-1", "--out", str(tmp_path / place)).code == 0
    assert (tmp_path / "first" / "peer.key").read_text() == (tmp_path / "second" / "peer.key").read_text()
    assert (tmp_path / "first" / "kubeconfig").read_text() != (tmp_path / "second" / "kubeconfig").read_text()
    assert kubectl(tmp_path / "second" / "kubeconfig", "get", "node", "worker-1").returncode == 0


@pytest.mark.usefixtures("fresh")
def test_who_enrolled_which_node_is_written_down(signed: Desk, tmp_path: Path) -> None:
    assert signed.run("enroll", "worker-1", "--out", str(tmp_path)).code == 0
    assert signed.run("enroll", "worker-2", "--out", str(tmp_path), "--who", "adam").code == 0
    records = {name: json.loads(text) for name, text in enrolled(signed).items()}
    assert {name: (record["v"], record["who"]) for name, record in records.items()} == {
        "worker-1": (1, "eve"),
        "worker-2": (1, "adam"),
    }


@pytest.mark.usefixtures("fresh")
def test_a_leader_gets_the_leaders_rights_and_the_same_key(signed: Desk, tmp_path: Path) -> None:
    assert signed.run("enroll", "worker-1", "--out", str(tmp_path / "worker-1")).code == 0
    said = signed.run("enroll", "--leader", "--out", str(tmp_path / "leader"))
    assert (said.code, "root@CONTROL-PLANE-HOST:/etc/pp-hostd/" in said.output) == (0, True)
    kubeconfig = tmp_path / "leader" / "leader.kubeconfig"
    assert kubectl(kubeconfig, "get", "lease", "-n", NAMESPACE, LEASE).returncode == 0
    assert kubectl(kubeconfig, "get", "secret", "-n", NAMESPACE, PEER_KEY).returncode == 1
    assert (tmp_path / "leader" / "peer.key").read_text() == (tmp_path / "worker-1" / "peer.key").read_text()
    assert list(enrolled(signed)) == ["worker-1"]


@pytest.fixture
def for_kubelets(desk: Desk) -> Iterator[None]:
    assert desk.run("install", "--agents-use", "kubelet").code == 0
    yield
    assert desk.run("install", "--agents-use", "certificate").code == 0


@pytest.mark.usefixtures("fresh", "for_kubelets")
def test_an_agent_that_shows_the_kubelets_credential_gets_no_other(desk: Desk, tmp_path: Path) -> None:
    said = desk.run("enroll", "worker-1", "--kubelet", "--out", str(tmp_path))
    assert (said.code, "certificate" in said.output) == (0, False)
    user = yaml.safe_load((tmp_path / "kubeconfig").read_text())["users"][0]["user"]
    pem = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    assert user == {"client-certificate": pem, "client-key": pem}
    assert list(enrolled(desk)) == ["worker-1"]


@pytest.mark.usefixtures("fresh")
def test_a_kubelets_credential_without_rights_is_refused(desk: Desk, tmp_path: Path) -> None:
    said = desk.run("enroll", "worker-1", "--kubelet", "--out", str(tmp_path))
    refused(said, because="here the rights of the agents are those of pp-hostd:agents, not of system:nodes")
    assert "pp-leader install --agents-use kubelet" in said.complaint
    assert enrolled(desk) == {}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["wroker-1"], "there is no Node wroker-1\n  Did you mean worker-1"),
        (["silent"], "Node silent has no InternalIP"),
        ([], "name a node, or say --leader"),
        (["worker-1", "--leader"], "name a node, or say --leader"),
        (["--leader", "--kubelet"], "name a node, or say --leader"),
    ],
)
def test_what_can_not_be_enrolled_is_refused(desk: Desk, arguments: list[str], reason: str) -> None:
    refused(desk.run("enroll", *arguments), because=reason)
    assert enrolled(desk) == {}


@pytest.mark.usefixtures("fresh")
def test_a_name_too_long_for_a_certificate_is_refused(desk: Desk) -> None:
    name = "worker." + "x" * 50
    desk.world.create(NODES, "", sample(NODES, name))
    status = {"status": {"addresses": [{"type": "InternalIP", "address": "2001:db8::1"}]}}
    assert desk.world.make(Attempt("patch", NODES, name, status, subresource="status")).ok
    refused(desk.run("enroll", name), because="longer than the 64 characters")


@pytest.mark.usefixtures("fresh")
def test_a_directory_that_can_not_be_made_enrolls_nobody(signed: Desk, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = signed.run("enroll", "worker-1", "--out", str(tmp_path / "file" / "out"))
    assert (said.code, "can't be made" in said.complaint) == (2, True)
    assert enrolled(signed) == {}


def test_a_kubeconfig_that_trusts_anyone_is_passed_on_to_nobody(signed: Desk, tmp_path: Path) -> None:
    careless = tmp_path / "careless"
    shutil.copy(signed.kubeconfig, careless)
    document = yaml.safe_load(careless.read_text())
    cluster = document["clusters"][0]["cluster"]
    cluster["insecure-skip-tls-verify"] = True
    del cluster["certificate-authority-data"]
    careless.write_text(yaml.safe_dump(document))
    done = pp_leader("enroll", "worker-1", "--out", str(tmp_path), "--kubeconfig", str(careless))
    assert (done.returncode, "insecure-skip-tls-verify" in done.stderr) == (2, True)
