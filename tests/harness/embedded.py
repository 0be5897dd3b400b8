"""The embedded API as a cluster for tests: a process of its own, gone with whoever started it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import requests

from tests.harness.cluster import KNOWN_USERS, READER_RULES, Cluster, token_of
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.harness.pki import LOOPBACK, CertificateAuthority
from tests.harness.supervise import Supervisor


class EmbeddedCluster(Cluster):
    """The API that `python -m pp_hostd.embedded` serves; `start` brings one up."""

    kind = "embedded"

    def __init__(self, supervisor: Supervisor, authority: CertificateAuthority, server: str) -> None:
        super().__init__(server, supervisor.directory, authority)
        self.supervisor = supervisor

    @classmethod
    def start(cls, *, controllers: bool = False) -> EmbeddedCluster:
        """Bring one up in well under a second; with controllers it also collects garbage."""
        supervisor = Supervisor()
        try:
            authority = CertificateAuthority("embedded")
            arguments = _write_files(supervisor.directory, authority) + ["--controllers"] * controllers
            supervisor.run("embedded", [sys.executable, "-m", "pp_hostd.embedded", *arguments])
            return cls(supervisor, authority, _url(supervisor))
        except BaseException:
            supervisor.close()
            raise

    def forget_history(self) -> None:
        """Send the signal, and wait until the present version is too old to be listed."""
        url = f"{self.server}/api/v1/namespaces"
        with requests.Session() as session:
            session.trust_env = False
            session.verify = str(self.ca_file)
            session.headers["Authorization"] = f"Bearer {token_of('admin')}"
            version = session.get(url, timeout=HANGS_SECONDS).json()["metadata"]["resourceVersion"]
            exactly = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
            os.kill(self.pid, signal.SIGUSR1)
            eventually(
                lambda: session.get(url, params=exactly, timeout=HANGS_SECONDS).status_code == 410,
                "the past is forgotten",
            )

    @property
    def pid(self) -> int:
        """That of the server."""
        pid = self.supervisor.processes()["embedded"]["pid"]
        assert pid is not None
        return pid

    def close(self) -> None:
        self.supervisor.close()


def _write_files(directory: Path, authority: CertificateAuthority) -> list[str]:
    """Everything that the program reads; returns its arguments."""
    issued = authority.issue("embedded", sans=LOOPBACK)
    contents = {
        "cert": issued.cert_pem,
        "key": issued.key_pem,
        "client-ca": authority.certificate_pem,
        "users": json.dumps(_users()).encode(),
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return [f"--{name}={directory / name}" for name in contents]


def _users() -> dict[str, Any]:
    users = [{"name": user, "groups": groups, "token": token_of(user)} for user, groups in KNOWN_USERS.items()]
    return {"users": users, "rules": [{**rule, "users": ["reader"]} for rule in READER_RULES]}


def _url(supervisor: Supervisor) -> str:
    """Waits until the embedded API is ready; returns the URL that it prints then."""

    def ready() -> str:
        if supervisor.processes()["embedded"]["exit"] is not None:
            raise ChildProcessError(f"the embedded API ended: {supervisor.log_tails()['embedded']}")
        line = supervisor.log_tails()["embedded"]
        return str(json.loads(line)["url"]) if line.startswith("{") else ""

    return eventually(ready, "the embedded API is ready")
