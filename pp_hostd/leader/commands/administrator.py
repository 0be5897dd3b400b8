"""An administrator's calls to the API, with whatever credential their kubeconfig holds (plug-ins included).

The official client reads the kubeconfig and opens the connections; what goes over them is plain JSON, as elsewhere.
"""

from __future__ import annotations

import enum
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import chain
from typing import Any, Callable
from urllib.parse import urlencode

from pp_hostd.errors import UserError
from pp_hostd.files import read_whole
from pp_hostd.frozen import frozen
from pp_hostd.kube.client import MERGE_PATCH, Json
from pp_hostd.kube.kubeconfig import LIMIT_BYTES
from pp_hostd.kube.resources import Resource
from pp_hostd.leader.commands.waiting import Overdue, at_most

try:
    import kubernetes
    import urllib3
except ImportError as error:
    hint = "Install the package pp-hostd-admin; with pip: pp-hostd[admin]."
    raise UserError(f"this command needs a Python package that is not there: {error}", hint) from None

official: Any = kubernetes  # typed in some of its releases and not in others
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"
MANAGER = "pp-leader"
DEADLINE_SECONDS = 15.0
"""For one exchange as a whole, answer included."""
UNSERVED = b"404 page not found"
"""Kubernetes' answer about a kind that it does not serve; all its other answers are JSON."""
PAGE_SIZE = 500
"""As kubectl does: a command has the memory, and each page is one more exchange."""
IMAGES = re.compile(rb'"images":\[(?:\{"names":\[[^]]*\],"sizeBytes":\d+\},?)+\]')
"""The images of a Node in a list: nine tenths of its JSON, which no command reads. They are cut out before the JSON is
parsed if they are as Kubernetes writes them. No text can hold this: a text's quotation marks are escaped."""
ATTEMPTS = 10
"""To change an object that others change at the same time: kubelets write to their Nodes all the time."""


class Applied(enum.Enum):
    """The effect of an apply."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@frozen
class _Reply:
    status: int
    body: Json


class Administrator:
    """Whatever the API refuses, and the caller does not expect, is a UserError."""

    def __init__(self, kubeconfig: str | None, *, quiet: bool = False) -> None:
        """With None it is looked for where kubectl looks: in $KUBECONFIG, then ~/.kube/config. `quiet`: no line on the
        terminal says that an answer takes long."""
        self._quiet = quiet
        configuration = official.client.Configuration()
        try:
            official.config.load_kube_config(kubeconfig, client_configuration=configuration)
            self._client = official.client.ApiClient(configuration)
        except Exception as error:  # of a malformed file the official loader raises whatever befalls it
            where = kubeconfig or "$KUBECONFIG, or ~/.kube/config"
            hint = "Name one with --kubeconfig that an administrator of the cluster uses."
            raise UserError(f"no kubeconfig that can be used ({where}): {error}", hint) from None
        self.server: str = configuration.host
        if not self.server.startswith(("https://", "http://")):
            raise UserError(f"no kubeconfig that can be used: its server is {self.server!a}", "Allowed: an https URL.")

    def close(self) -> None:
        self._client.rest_client.pool_manager.clear()

    def cluster(self) -> Json:
        """Returns this cluster's entry for somebody else's kubeconfig, with the certificate authority in the entry."""
        configuration = self._client.configuration
        if not configuration.verify_ssl:
            hint = "Set certificate-authority in its place: anyone could answer in the API's place."
            raise UserError("this kubeconfig says insecure-skip-tls-verify, which nobody else should", hint)
        cluster = {"server": self.server}
        if configuration.ssl_ca_cert:
            authority = read_whole(configuration.ssl_ca_cert, LIMIT_BYTES)
            cluster["certificate-authority-data"] = b64encode(authority).decode()
        if configuration.tls_server_name:
            cluster["tls-server-name"] = configuration.tls_server_name
        return cluster

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json | None:
        """The object, if there is one."""
        reply = self._call("GET", resource.path(namespace, name), allowed=(404,))
        return reply.body if reply.status == 200 else None

    def pages(self, resource: Resource, namespace: str | None = None) -> Iterator[list[Json]]:
        """The same page by page, so that a caller need not hold thousands of objects."""
        more = {"limit": str(PAGE_SIZE)}
        while True:
            path = f"{resource.path(namespace)}?{urlencode(more)}"
            reply = self._call("GET", path, allowed=(404,), without=IMAGES)
            yield reply.body.get("items", [])
            token = reply.body.get("metadata", {}).get("continue")
            if not token:
                return
            more["continue"] = token

    def list(self, resource: Resource, namespace: str | None = None) -> list[Json]:
        """All of that kind; none where the kind is not served."""
        return list(chain.from_iterable(self.pages(resource, namespace)))

    def serves(self, resource: Resource) -> bool:
        """Whether the API serves this kind."""
        return self._call("GET", f"{resource.path()}?limit=1", allowed=(404,)).status == 200

    def apply(self, resource: Resource, manifest: Json) -> Applied:
        """Server-side apply: what an earlier manifest of ours said, and this one does not, goes."""
        metadata = manifest["metadata"]
        before = self.get(resource, metadata["name"], metadata.get("namespace"))
        path = resource.path(metadata.get("namespace"), metadata["name"])
        query = urlencode({"fieldManager": MANAGER, "force": "true"})
        after = self._call("PATCH", f"{path}?{query}", manifest, APPLY_PATCH).body
        if before is None:
            return Applied.CREATED
        return Applied.UNCHANGED if _stated(before) == _stated(after) else Applied.CHANGED

    def patch(
        self, resource: Resource, name: str, namespace: str | None, patch: Json, subresource: str | None = None
    ) -> bool:
        """A merge patch; False if the object is another by now, or gone."""
        path = resource.path(namespace, name, subresource)
        return self._call("PATCH", path, patch, MERGE_PATCH, allowed=(404, 409)).status == 200

    def change(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        change: Callable[[Json], Json | None],
        subresource: str | None = None,
    ) -> bool:
        """Patch the object with what `change` makes of it, on the very version that it was made of (no two incarnations
        share one); again if others wrote in between. False if there is no such object, or nothing to change."""
        for _ in range(ATTEMPTS):
            found = self.get(resource, name, namespace)
            patch = None if found is None else change(found)
            if found is None or patch is None:
                return False
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            patch = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
            if self.patch(resource, name, namespace, patch, subresource):
                return True
        raise UserError(f"{resource.describe(namespace, name)} changes too fast to be written to", "Try again.")

    def create(self, resource: Resource, body: Json, namespace: str | None = None) -> bool:
        """False if there is one of that name already."""
        typed = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self._call("POST", resource.path(namespace), typed, JSON, allowed=(409,)).status < 300

    def delete(self, resource: Resource, name: str, namespace: str | None = None, uid: str = "") -> bool:
        """False if there was none. With a uid, one that was made in its place stays, and that is False, too."""
        body = {"preconditions": {"uid": uid}} if uid else None
        allowed = (404, 409) if uid else (404,)
        return self._call("DELETE", resource.path(namespace, name), body, JSON, allowed).status < 300

    def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        kind: str = "",
        allowed: tuple[int, ...] = (),
        without: re.Pattern[bytes] | None = None,
    ) -> _Reply:
        what = f"{method} {path.partition('?')[0]}"
        try:
            with at_most(DEADLINE_SECONDS, "" if self._quiet else f"{self.server}, {what}"):
                status, data = self._exchange(method, path, body, kind)
        except Overdue:
            doubt = "" if method == "GET" else "It may have been carried out all the same. "
            hint = f"{doubt}Is that its address? See: kubectl cluster-info"
            told = f"the API at {self.server} has not answered within {DEADLINE_SECONDS:g} s: {what}"
            raise UserError(told, hint) from None
        except urllib3.exceptions.HTTPError as error:
            hint = "Is it running, and is that its address? See: kubectl cluster-info"
            raise UserError(f"the API at {self.server} can't be reached: {error}", hint) from None
        found = _parsed(data if without is None else without.sub(b'"images":[]', data))
        if status >= 300 and status not in allowed:
            raise _refusal(what, status, found, data)
        if "kind" not in found and not data.startswith(UNSERVED):
            hint = "Is that its address? See: kubectl cluster-info"
            raise UserError(f"{self.server} is no Kubernetes API: {what} is answered with {data[:60]!a}", hint)
        return _Reply(status, found)

    def _exchange(self, method: str, path: str, body: Json | None, kind: str) -> tuple[int, bytes]:
        headers = {each["key"]: each["value"] for each in self._client.configuration.auth_settings().values()}
        headers.update({"Content-Type": kind} if kind else {})
        reply = self._client.rest_client.pool_manager.request(
            method,
            self.server + path,
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=None,  # that of urllib3 would begin again with each byte
            retries=False,
        )
        return reply.status, reply.data


def _stated(api_object: Json) -> Json:
    """The object without what the API and its controllers note in it. They may make a new version of the same."""
    noted = ("managedFields", "resourceVersion")
    metadata = {key: value for key, value in api_object["metadata"].items() if key not in noted}
    return {**api_object, "metadata": metadata, "status": None}


def _refusal(what: str, status: int, found: Json, data: bytes) -> UserError:
    said = found.get("message") or data[:200].decode(errors="replace").strip()
    if "because it is being terminated" in said:
        return UserError(f"{what}: {said}", "That ends by itself: try again in a while.")
    if status in (401, 403):
        return UserError(f"{what}: {said}", "It needs the rights of a cluster administrator (cluster-admin).")
    if status == 404:
        return UserError(f"{what}: {said}", "The cluster must serve that kind: Kubernetes 1.30 or newer does.")
    return UserError(f"{what}: the API answers {status}: {said}", "It may help to try again.")


def _parsed(data: bytes) -> Json:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
