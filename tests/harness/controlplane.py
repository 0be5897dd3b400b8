"""A private, real control plane: etcd and kube-apiserver, on demand also the controllers and kwok's kubelets."""

from __future__ import annotations

import socket
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import requests
import yaml

from pp_hostd.kube.resources import NODES
from pp_hostd.leader.requests.health_checks.definitions import definitions as of_health_checks
from pp_hostd.leader.requests.remediation_objects.definitions import definitions
from pp_hostd.leader.requests.thresholds import THRESHOLDS
from tests.harness.build import binaries
from tests.harness.cluster import KNOWN_USERS, READER_RULES, Cluster, token_of
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.harness.pki import LOOPBACK, CertificateAuthority, Issued, key_pem, new_key
from tests.harness.supervise import Supervisor

CRDS = Path(__file__).parents[1] / "crds"
OTHERS = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
DEFINITIONS = [*OTHERS, *definitions(), *of_health_checks(), *THRESHOLDS.definitions(NODES)]
"""Small ones of others' kinds, and those that are ours."""
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class RealCluster(Cluster):
    """A control plane of Kubernetes itself; `start` brings one up."""

    kind = "real"

    def __init__(self, supervisor: Supervisor, programs: Path, definitions: list[dict[str, Any]]) -> None:
        # Reserved, and shared with the servers that listen there, until close: no other process gets these ports.
        self._ports = [_reserve_port() for _ in range(3)]
        api, etcd, self._etcd_peers = (f"127.0.0.1:{port.getsockname()[1]}" for port in self._ports)
        super().__init__(f"https://{api}", supervisor.directory, CertificateAuthority("cluster"))
        self.supervisor = supervisor
        self._programs, self._definitions = programs, definitions
        self._etcd = f"http://{etcd}"
        self._admin = requests.Session()
        self._admin.trust_env = False
        self._admin.verify = str(self.ca_file)
        self._admin.cert = self._write_credentials()

    @classmethod
    def start(
        cls, *, controllers: bool = False, kwok: bool = False, definitions: list[dict[str, Any]] = DEFINITIONS
    ) -> RealCluster:
        """Bring one up, with these custom resources and `reader`'s rights in place."""
        programs = binaries()
        cluster = cls(Supervisor(), programs, definitions)
        try:
            cluster._run_etcd()
            cluster._run_apiserver()
            cluster._load_objects()
            if controllers:
                cluster._run_controllers()
            if kwok:
                cluster._run_kwok()
        except BaseException:
            cluster.close()
            raise
        return cluster

    def stop_api(self) -> None:
        """Kill the API server; the rest goes on, and `start_api` starts it again."""
        self.supervisor.kill("kube-apiserver")

    def start_api(self) -> None:
        self._run_apiserver()
        self._wait_for_definitions()

    def forget_history(self) -> None:
        """Compact etcd, and restart the API server, whose watch cache would still know."""
        # A write makes a revision after all that were handed out; the new watch cache begins there or later.
        forgotten = b64encode(b"forgotten").decode()
        revision = self._ask_etcd("put", {"key": forgotten, "value": forgotten})["header"]["revision"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})
        self.start_api()

    def close(self) -> None:
        self._admin.close()
        self.supervisor.close()
        for port in self._ports:
            port.close()

    def _write_credentials(self) -> tuple[str, str]:
        """Everything the programs read; returns the files of the administrator's certificate and key."""
        tokens = [f'{token_of(user)},{user},{user},"{",".join(groups)}"\n' for user, groups in KNOWN_USERS.items()]
        (self.directory / "tokens.csv").write_text("".join(tokens))
        (self.directory / "service-account.key").write_bytes(key_pem(new_key()))
        self._write_pair("server", self.authority.issue("kube-apiserver", sans=LOOPBACK))
        return self._write_pair("admin", self.authority.issue("admin", KNOWN_USERS["admin"]))

    def _write_pair(self, name: str, issued: Issued) -> tuple[str, str]:
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        certificate.write_bytes(issued.cert_pem)
        key.write_bytes(issued.key_pem)
        return str(certificate), str(key)

    def _run(self, program: str, **flags: object) -> None:
        arguments = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
        self.supervisor.run(program, [str(self._programs / program), *arguments])

    def _run_etcd(self) -> None:
        self._run(
            "etcd",
            data_dir=self.directory / "etcd",
            listen_client_urls=self._etcd,
            advertise_client_urls=self._etcd,
            listen_peer_urls=f"http://{self._etcd_peers}",
            socket_reuse_port="true",
            unsafe_no_fsync="true",
            log_level="warn",
        )

    def _run_apiserver(self) -> None:
        self._run(
            "kube-apiserver",
            etcd_servers=self._etcd,
            bind_address="127.0.0.1",
            secure_port=self.server.rpartition(":")[2],
            permit_port_sharing="true",
            advertise_address="127.0.0.1",
            endpoint_reconciler_type="none",
            tls_cert_file=self.directory / "server.crt",
            tls_private_key_file=self.directory / "server.key",
            client_ca_file=self.ca_file,
            token_auth_file=self.directory / "tokens.csv",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=self.directory / "service-account.key",
            service_account_signing_key_file=self.directory / "service-account.key",
            service_cluster_ip_range="10.0.0.0/24",
            authorization_mode="Node,RBAC",
            enable_admission_plugins="NodeRestriction",
            # Without its controller nobody makes the service accounts that it would want every pod to have.
            disable_admission_plugins="ServiceAccount",
        )
        try:
            eventually(self._is_ready, "kube-apiserver is ready", within_seconds=60)
        except TimeoutError as error:
            tail = self.supervisor.log_tails()["kube-apiserver"]
            raise TimeoutError(f"{error}; its log ends with:\n{tail}") from None

    def _run_controllers(self) -> None:
        self._run(
            "kube-controller-manager",
            kubeconfig=self.kubeconfig("system:kube-controller-manager"),
            use_service_account_credentials="true",  # what each controller may do is tied to its service account
            service_account_private_key_file=self.directory / "service-account.key",
            leader_elect="false",
            secure_port=0,
        )
        kubeconfig = self.kubeconfig("system:kube-scheduler")
        self._run("kube-scheduler", kubeconfig=kubeconfig, leader_elect="false", secure_port=0)

    def run_signer(self, lasting: str = "8760h", *others: str) -> None:
        """The controller that signs certificates, of this duration, with the cluster's own authority; and these others.
        They take the place of any controllers that run."""
        certificate, key = self.directory / "signer.crt", self.directory / "signer.key"
        certificate.write_bytes(self.authority.certificate_pem)
        key.write_bytes(key_pem(self.authority._key))
        self.run_controllers(
            "certificatesigningrequest-signing-controller",
            *others,
            cluster_signing_cert_file=certificate,
            cluster_signing_key_file=key,
            cluster_signing_duration=lasting,
        )

    def run_controllers(self, *names: str, **flags: object) -> None:
        """These alone of the controller manager's, as an administrator."""
        self._run(
            "kube-controller-manager",
            kubeconfig=self.kubeconfig(),
            controllers=",".join(names),
            leader_elect="false",
            secure_port=0,
            **flags,
        )

    def rotate_authority(self) -> bytes:
        """Have another authority sign from now on, and trust clients of both; the bundle of both."""
        old, self.authority = self.authority, CertificateAuthority("cluster, rotated")
        bundle = old.certificate_pem + self.authority.certificate_pem
        self.ca_file.write_bytes(bundle)  # the API server reads it again by itself
        return bundle

    def show_new_certificate(self) -> None:
        """The API server's own certificate is one of the present authority; it reads the files again by itself."""
        self._write_pair("server", self.authority.issue("kube-apiserver", sans=LOOPBACK))

    def _run_kwok(self) -> None:
        self._run(
            "kwok", config="-", kubeconfig=self.kubeconfig(), manage_all_nodes="true", node_lease_duration_seconds=40
        )

    def _is_ready(self) -> bool:
        for name, process in self.supervisor.processes().items():
            if process["exit"] is not None:
                tail = self.supervisor.log_tails()[name]
                raise ChildProcessError(f"{name} ended with status {process['exit']}; its log ends with:\n{tail}")
        try:
            return self._admin.get(f"{self.server}/readyz", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def _load_objects(self) -> None:
        for definition in self._definitions:
            self.create(CRD_PATH, definition)
        role = {"kind": "ClusterRole", "name": "reader"}
        subject = {"kind": "User", "name": "reader"}
        self.create(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": READER_RULES})
        binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role}
        self.create(f"{RBAC}/clusterrolebindings", binding)
        self._wait_for_definitions()

    def remove_definition(self, name: str) -> None:
        """As `kubectl delete crd` does: the API server deletes all objects of that kind first."""
        path = f"{self.server}{CRD_PATH}/{name}"
        reply = self._admin.delete(path, timeout=HANGS_SECONDS)
        assert reply.status_code == 200, reply.text
        eventually(lambda: self._admin.get(path, timeout=HANGS_SECONDS).status_code == 404, f"{name} is deleted")

    def restore_definition(self, name: str) -> None:
        """The kind is served again, and has no objects."""
        self.create(CRD_PATH, next(each for each in self._definitions if each["metadata"]["name"] == name))
        self._wait_for_definitions()

    def _wait_for_definitions(self) -> None:
        """A server that is ready may still throttle custom resources: their storage comes up later."""
        eventually(lambda: all(map(self._is_served, self._definitions)), "the custom resources are served")

    def _is_served(self, definition: dict[str, Any]) -> bool:
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        return self._admin.get(self.server + path, timeout=HANGS_SECONDS).status_code == 200

    def get(self, path: str) -> dict[str, Any]:
        """As an administrator does."""
        found: dict[str, Any] = self._admin.get(self.server + path, timeout=HANGS_SECONDS).json()
        return found

    def create(self, path: str, obj: dict[str, Any]) -> None:
        """As an administrator does."""
        reply = self._admin.post(self.server + path, json=obj, timeout=HANGS_SECONDS)
        if reply.status_code != 201:
            raise RuntimeError(f"creating {obj['metadata']['name']} at {path}: {reply.status_code} {reply.text}")

    def stored(self) -> frozenset[str]:
        """Returns etcd's key of each object."""
        every = {"key": b64encode(b"/registry/").decode(), "range_end": b64encode(b"/registry0").decode()}
        found = self._ask_etcd("range", {**every, "keys_only": True})
        return frozenset(b64decode(each["key"]).decode() for each in found["kvs"])

    def forget(self, keys: Iterable[str]) -> None:
        """Remove these objects at once, whatever finalizers they have."""
        for key in keys:
            self._ask_etcd("deleterange", {"key": b64encode(key.encode()).decode()})

    def _ask_etcd(self, call: str, request: dict[str, Any]) -> Any:
        """One call of etcd's HTTP gateway, where keys and values are base64."""
        reply = self._admin.post(f"{self._etcd}/v3/kv/{call}", json=request, timeout=HANGS_SECONDS)
        if reply.status_code != 200:
            raise RuntimeError(f"etcd's {call}: {reply.status_code} {reply.text}")
        return reply.json()


def _reserve_port() -> socket.socket:
    """A port that nobody else can take as long as this socket is open, but that servers told to share may listen on."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
