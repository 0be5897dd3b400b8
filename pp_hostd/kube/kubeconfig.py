"""A kubeconfig as kubelets have it: which servers, whom to trust, and what to show them.

`load` refuses by name each field that would need another program (exec, auth-provider) or would weaken the proof (no
verification, a proxy).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pp_hostd.errors import UserError
from pp_hostd.files import read_whole
from pp_hostd.frozen import frozen
from pp_hostd.kube.child import answer_of
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.yaml_child import ANSWER_LIMIT_BYTES
from pp_hostd.model.endpoint import Endpoint, is_host, parse_endpoint

DEADLINE_SECONDS = 10.0
CHILD = """
import runpy, sys
sys.path[:] = sys.argv[1:]
runpy.run_module("pp_hostd.kube.yaml_child", run_name="__main__")
"""
"""It looks for modules where its parent does: a package may keep them in a directory of its own."""


class YamlError(Exception):
    """Text that is not YAML, or not YAML that can be taken: why, and on which line (0: not known)."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def parse_yaml(data: bytes) -> Any:
    """The document's value as JSON has it. Any bytes may be given."""
    try:
        child = subprocess.run(_command(), input=data, capture_output=True, timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        raise _too_late() from None
    return _value(child.stdout, child.stderr.decode("utf-8", "replace").strip().split("\n")[-1])


async def parse_aside(data: bytes) -> Any:
    """The same in an event loop that must not wait for it."""
    try:
        answer = await answer_of(_command(), DEADLINE_SECONDS, 2 * ANSWER_LIMIT_BYTES, data)
    except TimedOut:
        raise _too_late() from None
    except OSError as error:
        raise YamlError(f"it could not be read: {error}") from None
    return _value(answer, "its reader ended without an answer")


def _command() -> list[str]:
    return [sys.executable, "-I", "-c", CHILD, *sys.path]


def _too_late() -> YamlError:
    return YamlError(f"it could not be read within {DEADLINE_SECONDS:g} s")


def _value(stdout: bytes, last_words: str) -> Any:
    try:
        answer = json.loads(stdout)
    except ValueError:
        raise YamlError(f"it could not be read: {last_words}") from None
    if "reason" in answer:
        raise YamlError(answer["reason"], answer["line"])
    return answer["value"]


LIMIT_BYTES = 1024 * 1024
REFUSED_FOR_USERS = {
    "exec": "it would run another program for each credential",
    "auth-provider": "it is a plug-in of kubectl's, gone since Kubernetes 1.26",
    "username": "API servers take no passwords since Kubernetes 1.19",
    "password": "API servers take no passwords since Kubernetes 1.19",
    "as": "a host acts as itself and nobody else",
}
REFUSED_FOR_CLUSTERS = {
    "proxy-url": "the API is asked directly or not at all",
    "insecure-skip-tls-verify": "an answer from just anyone proves nothing",
}


class KubeconfigError(UserError):
    """A kubeconfig that can't be used; the message names the file and the place in it."""


@frozen
class Material:
    """A certificate, key or token: embedded bytes, or a file that is read again when it changes."""

    place: str
    data: bytes = b""
    path: str = ""

    def read(self) -> bytes:
        return read_whole(self.path, LIMIT_BYTES) if self.path else self.data


@frozen
class Kubeconfig:
    """Everything that the client takes from a kubeconfig's current context."""

    path: str
    endpoints: tuple[Endpoint, ...]
    tls_server_name: str
    authority: Material | None
    certificate: Material | None
    key: Material | None
    token: Material | None
    renewed: str = ""
    """Where a daemon keeps the certificate and key that it has renewed, in one file; empty if it does not renew."""


def load(path: str, servers: Sequence[str] = ()) -> Kubeconfig:
    """Read the kubeconfig at `path`; `servers` are further API servers of the same cluster, tried in turn."""
    path = _absolute(path)
    with _named_errors(path):
        value = parse_yaml(read_whole(path, LIMIT_BYTES))
    return _kubeconfig(path, value, servers)


async def load_aside(path: str, servers: Sequence[str] = ()) -> Kubeconfig:
    """The same in an event loop that must not wait for it."""
    path = _absolute(path)
    with _named_errors(path):
        value = await parse_aside(read_whole(path, LIMIT_BYTES))
    return _kubeconfig(path, value, servers)


def _absolute(path: str) -> str:
    return os.path.abspath(path)


@contextlib.contextmanager
def _named_errors(path: str) -> Iterator[None]:
    try:
        yield
    except YamlError as error:
        line = f", line {error.line}" if error.line else ""
        raise KubeconfigError(f"{path}{line}: is not YAML: {error.reason}") from None


def _kubeconfig(path: str, value: Any, servers: Sequence[str]) -> Kubeconfig:
    document = _Node(path, "", value)
    context = document.named("contexts", document.text("current-context"), "context")
    cluster = document.named("clusters", context.text("cluster"), "cluster")
    user = document.named("users", context.text("user"), "user")
    cluster.refuse(REFUSED_FOR_CLUSTERS)
    user.refuse(REFUSED_FOR_USERS)
    certificate, key = user.material("client-certificate"), user.material("client-key")
    if (certificate is None) != (key is None):
        have, lack = ("client-certificate", "client-key") if key is None else ("client-key", "client-certificate")
        raise user.error(f"has a {have} and no {lack}", "A client certificate and its key come together.")
    token = user.token()
    if certificate is None and token is None:
        raise user.error("holds no credential", "Allowed: client-certificate with client-key, token, tokenFile.")
    first = endpoint(cluster.text("server"), cluster.place("server"))
    return Kubeconfig(
        path=path,
        endpoints=(first, *(endpoint(server, "api.servers") for server in servers)),
        tls_server_name=cluster.host("tls-server-name"),
        authority=cluster.material("certificate-authority"),
        certificate=certificate,
        key=key,
        token=token,
    )


def endpoint(url: str, place: str) -> Endpoint:
    """The parts of an API server's URL; `place` is where it stands."""
    found = parse_endpoint(url)
    if found is None:
        hint = "Allowed: https://HOST[:PORT][/PATH]"
        raise KubeconfigError(f"{place}: {url!r} is not the URL of an API server", hint)
    return found


@frozen
class _Node:
    """A mapping inside the kubeconfig that knows its place, so that every error can name it."""

    path: str
    where: str
    value: Any

    def place(self, key: str) -> str:
        return f"{self.path}: {self.where}{'.' if self.where else ''}{key}"

    def error(self, what: str, hint: str = "") -> KubeconfigError:
        return KubeconfigError(f"{self.path}: {self.where or 'the document'} {what}", hint)

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error("is not a mapping", "A kubeconfig is a YAML mapping with clusters, users and contexts.")
        return cast("Mapping[str, Any]", self.value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.mapping().get(key) or default
        if not isinstance(value, str) or (value == "" and default is None):
            found = "is not set" if value is None else f"is of type {type(value).__name__}, not text"
            raise KubeconfigError(f"{self.place(key)} {found}")
        return value

    def host(self, key: str) -> str:
        """A host name or address; empty if none."""
        value = self.text(key, default="")
        if value and not is_host(value):
            raise KubeconfigError(f"{self.place(key)}: {value!r} is neither a host name nor an address")
        return value

    def refuse(self, keys: Mapping[str, str]) -> None:
        for key, why in keys.items():
            if self.mapping().get(key):
                raise KubeconfigError(
                    f"{self.place(key)} can't be used: {why}",
                    "Allowed: client-certificate, client-key, token, tokenFile; certificate-authority, server.",
                )

    def named(self, section: str, name: str, inner: str) -> _Node:
        """The mapping `inner` of the entry of that name, e.g. the `user` of the entry of `users` called `kubelet`."""
        entries = self.mapping().get(section)
        entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        for entry in entries:
            if entry.get("name") == name:
                return _Node(self.path, f"{section}[{name}].{inner}", entry.get(inner))
        names = [entry.get("name") for entry in entries]
        known = ", ".join(sorted(known for known in names if isinstance(known, str))) or "none"
        raise KubeconfigError(f"{self.place(section)} has no entry named {name!r}", f"There are: {known}.")

    def material(self, key: str) -> Material | None:
        """Embedded data wins over a file, as in kubectl."""
        if self.mapping().get(f"{key}-data"):
            place = self.place(f"{key}-data")
            try:
                # kubectl forgives line breaks, and nothing else.
                text = self.text(f"{key}-data").replace("\n", "")
                return Material(place, data=base64.b64decode(text, validate=True))
            except (binascii.Error, ValueError):
                raise KubeconfigError(f"{place} is not base64") from None
        return self.file(key)

    def file(self, key: str) -> Material | None:
        """A file's path is relative to the kubeconfig."""
        if not self.mapping().get(key):
            return None
        path = os.path.join(os.path.dirname(self.path), self.text(key))
        return Material(self.place(key), path=path)

    def token(self) -> Material | None:
        """tokenFile wins over token, as in kubectl: it is the one that rotates."""
        if self.mapping().get("tokenFile") or not self.mapping().get("token"):
            return self.file("tokenFile")
        return Material(self.place("token"), data=self.text("token").encode("utf-8", "surrogatepass"))
