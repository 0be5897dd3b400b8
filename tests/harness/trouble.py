"""A server that makes trouble on purpose, in a process of its own so that the client's memory can be measured apart."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from tests.harness.misbehaviour import AFTER_TLS, BEFORE_TLS
from tests.harness.pki import LOOPBACK, CertificateAuthority

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived: over which connection (counted from 1), for what, and from whom."""

    connection: int
    method: str
    target: str
    token: str
    user: str


@dataclass(frozen=True)
class Trouble:
    """One port that behaves as its script says."""

    url: str
    _ask: Callable[[], dict[str, Any]]

    @property
    def connections(self) -> int:
        """How many were accepted so far."""
        found: int = self._ask()["connections"]
        return found

    @property
    def requests(self) -> list[Seen]:
        """Returns the requests that arrived so far, in order."""
        return [Seen(**request) for request in self._ask()["requests"]]


class TroubleServer:
    """Trust `authority` to trust its good certificate; it asks for client certificates of that authority as well."""

    def __init__(self) -> None:
        self.authority, self.foreign_authority = CertificateAuthority("trouble"), CertificateAuthority("foreign")
        issued = {
            "good": self.authority.issue("server", sans=LOOPBACK),
            "expired": self.authority.issue("server", sans=LOOPBACK, valid_seconds=60),
            "foreign": self.foreign_authority.issue("server", sans=LOOPBACK),
            "for another name": self.authority.issue("server", sans=["elsewhere.example", "192.0.2.1"]),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.trouble_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        certificates = {name: (pair.cert_pem + pair.key_pem).decode() for name, pair in issued.items()}
        self._say({"authority": self.authority.certificate_pem.decode(), "certificates": certificates})

    def listen(self, *script: str, certificate: str = "good", host: str = "127.0.0.1") -> Trouble:
        """A new port. The script's names are those in misbehaviour.py; the last one repeats."""
        unknown = set(script) - {*BEFORE_TLS, *AFTER_TLS}
        assert script and not unknown, f"unknown behaviour: {unknown}"
        port = self._ask({"script": script, "certificate": certificate, "host": host})
        url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return Trouble(url, lambda: self._ask({"seen": port}))

    def close(self) -> None:
        with self._process:  # closes the pipes, which ends it, and waits
            pass

    def _ask(self, request: dict[str, Any]) -> Any:
        self._say(request)
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def _say(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
