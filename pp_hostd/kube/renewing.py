"""A daemon's own client certificate: requested and renewed through the cluster, and used without a restart."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Collection
from dataclasses import field
from datetime import datetime, timezone
from functools import partial
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import REQUEST_HEADER, Certificate, Subject, parse_certificate, parse_request
from pp_hostd.kube.child import answer_of
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.credentials import load_chain, signature
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import Resource
from pp_hostd.model.moment import render_moment
from pp_hostd.model.renewal import SIGNER, USAGES, Life, Renewal, own_groups, requests_of

REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
DEADLINE_SECONDS = 20.0
MAX_PEM_BYTES = 64 * 1024
LONGEST_USER = 64
"""The most that X.509 allows of a common name."""
KEY_COMMAND = ("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
_PLAIN = re.compile(r"[A-Za-z0-9:.-]+")


@frozen
class KeyAndRequest:
    """Both as PEM."""

    request: bytes
    key: bytes = field(repr=False)


async def made_request(subject: Subject) -> KeyAndRequest:
    """A new key, and a request for a certificate of it. UserError if they can't be made."""
    if len(subject.user) > LONGEST_USER:
        hint = "Agents can use the kubelets' credentials: see --agents-use in pp-leader install --help."
        long = f"{subject.user} is longer than the {LONGEST_USER} characters that a certificate has room for"
        raise UserError(long, hint)
    if not all(map(_PLAIN.fullmatch, (subject.user, *subject.groups))):
        raise UserError(f"{subject.user} is no user whose certificate can be requested")
    name = "".join(f"/O={group}" for group in sorted(subject.groups)) + f"/CN={subject.user}"
    key = await _openssl(KEY_COMMAND, b"")
    request = await _openssl(("openssl", "req", "-new", "-batch", "-key", "/proc/self/fd/0", "-subj", name), key)
    try:
        right = parse_request(request.decode("ascii", "replace")) == subject
    except ValueError as error:
        raise UserError(f"openssl's request for a certificate {error}") from None
    if not right:
        raise UserError(f"openssl did not make a request for {subject.user}")
    return KeyAndRequest(request, key)


async def _openssl(command: Collection[str], data: bytes) -> bytes:
    hint = "The package openssl has to be installed."
    try:
        answer = await answer_of([*command], DEADLINE_SECONDS, MAX_PEM_BYTES, data)
    except (OSError, TimedOut) as error:
        raise UserError(f"openssl could not be run: {str(error) or 'it did not end in time'}", hint) from None
    if b"-----END" not in answer:
        raise UserError(f"`{' '.join(command)}` made nothing", hint)
    return answer


def signing_request(name: str, request: bytes) -> Json:
    """The object that asks the cluster's signer for a client certificate."""
    spec = {"signerName": SIGNER, "request": b64encode(request).decode(), "usages": [*USAGES]}
    return {"metadata": {"name": name}, "spec": spec}


def approval(approved: bool, reason: str, message: str) -> Json:
    """The patch of the subresource `approval`."""
    condition = {"type": "Approved" if approved else "Denied", "status": "True", "reason": reason, "message": message}
    return {"status": {"conditions": [condition]}}


def is_decided(found: Json) -> bool:
    """Whether somebody has approved or denied this request, or the signer has failed."""
    return bool((found.get("status") or {}).get("conditions"))


def certificate_of(found: Json) -> bytes:
    """The certificate as PEM; empty if there is none yet. UserError if there will be none."""
    status, name = found.get("status") or {}, found["metadata"]["name"]
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Denied", "Failed"):
            said = f"{condition['type'].lower()} ({condition.get('reason')}: {condition.get('message')})"
            raise UserError(f"{REQUESTS.describe(None, name)} is {said}", f"See: kubectl describe csr {name}")
    return b64decode(status.get("certificate") or "")


def parse_renewal(found: Json) -> Renewal:
    """Returns the renewal for a leader to judge. ValueError if the request is unreadable or has more than a subject."""
    spec = found["spec"]
    subject = parse_request(b64decode(spec["request"]).decode("ascii", "replace"))
    return Renewal(
        name=found["metadata"]["name"],
        requester=spec.get("username") or "",
        requester_groups=tuple(spec.get("groups") or ()),
        signer=spec["signerName"],
        usages=tuple(spec.get("usages") or ()),
        bounded=spec.get("expirationSeconds") is not None,
        user=subject.user,
        groups=subject.groups,
    )


FOLLOW_SECONDS = 5.0


class Following:
    """`trouble` says why the kubeconfig on disk is not the one in use; empty if it is. `Credentials` follows the files
    that the kubeconfig names."""

    def __init__(self, client: ApiClient, path: str, load: Callable[[], Awaitable[Kubeconfig]]) -> None:
        """`load` reads the kubeconfig at `path` without holding up the event loop."""
        self.trouble = ""
        self._client, self._path, self._load = client, path, load
        self._seen = signature((path,))

    async def run(self, interval_seconds: float = FOLLOW_SECONDS) -> None:
        """Look at the file again and again, until cancelled."""
        while True:
            await asyncio.sleep(interval_seconds)
            await self.look()

    @property
    def is_due(self) -> bool:
        """Whether a look would change anything."""
        return bool(self.trouble) or signature((self._path,)) != self._seen

    async def look(self) -> None:
        """Use the file if it has changed. One that can't be used, perhaps half-written, is tried at the next look."""
        found = signature((self._path,))
        if found == self._seen:
            self.trouble = ""
            return
        try:
            self._client.use(await self._load())
        except UserError as error:
            self.trouble = f"the API is still asked with the credentials as they were: {error.message}"
        else:
            self._seen, self.trouble = found, ""


RENEWED, PENDING = "client.pem", "client-pending.pem"
LOOK_SECONDS = 60.0
POLL_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
PATIENCE_SECONDS = 120.0

Write = Callable[[Callable[[], str]], Awaitable[str]]
"""Carries out something that writes to a disk; the sentence says why that failed."""


async def write_at_once(write: Callable[[], str]) -> str:
    """For whom a slow disk may hold up."""
    return write()


def now_wallclock() -> datetime:
    return datetime.now(timezone.utc)


class Renewing:
    """`trouble` says why a renewal that is due has not come; empty if all is well."""

    def __init__(self, client: ApiClient, directory: str, write: Write, say: Callable[[str], None]) -> None:
        """`say` gets a sentence about each renewal."""
        self.trouble = ""
        self._client, self._write, self._say = client, write, say
        self._renewed, self._pending = os.path.join(directory, RENEWED), os.path.join(directory, PENDING)

    async def run(self) -> None:
        """Renew whenever it is time, until cancelled."""
        while True:
            pause_seconds = await self.turn()
            await asyncio.sleep(pause_seconds)

    async def turn(self) -> float:
        """Renew if it is time; in how many seconds to look again."""
        certificate = self._client.certificate
        if certificate is None or certificate.subject.groups != own_groups(certificate.subject.user):
            self.trouble = ""  # a token, or the kubelet's certificate, which the kubelet renews
            return LOOK_SECONDS
        life = Life(certificate.begins, certificate.ends)
        early_seconds = (life.renewal_at(luck_of(certificate)) - now_wallclock()).total_seconds()
        if early_seconds > 0:
            self.trouble = ""
            return min(early_seconds, LOOK_SECONDS)
        pause_seconds = min(max(POLL_SECONDS, life.used.total_seconds() / 60), LONGEST_PAUSE_SECONDS)
        try:
            await self._renew(certificate.subject)
        except (UserError, ApiError) as error:
            why = error.message if isinstance(error, UserError) else error.sentence
            self.trouble = f"the certificate that ends at {render_moment(certificate.ends)} is not renewed yet: {why}"
        else:
            self.trouble = ""
        return pause_seconds

    async def _renew(self, subject: Subject) -> None:
        made = self._left_pending(subject) or await self._prepare(subject)
        name = requests_of(subject.user) + hashlib.sha256(made.request).hexdigest()[:32]
        try:
            pem = await self._signed(name, made)
            _check(pem, made, subject)
        except UserError:
            with contextlib.suppress(OSError):
                os.unlink(self._pending)  # the next attempt makes another one
            raise
        if not pem:
            raise UserError(f"no leader has approved {REQUESTS.describe(None, name)}, or nobody has signed it")
        await self._put(partial(_take_up, self._renewed, pem + made.key, self._pending))
        self._say(
            f"the client certificate is renewed; it ends at {render_moment(parse_certificate(pem.decode()).ends)}"
        )

    async def _prepare(self, subject: Subject) -> KeyAndRequest:
        made = await made_request(subject)
        await self._put(partial(_written, self._pending, made.key + made.request))
        return made

    def _left_pending(self, subject: Subject) -> KeyAndRequest | None:
        """Returns the key and request that an earlier attempt or run left for the same user; None if unusable."""
        try:
            key, header, rest = read_whole(self._pending, MAX_PEM_BYTES).partition(REQUEST_HEADER.encode())
            request = header + rest
            return KeyAndRequest(request, key) if parse_request(request.decode("ascii")) == subject else None
        except (FileError, ValueError):
            return None

    async def _signed(self, name: str, made: KeyAndRequest) -> bytes:
        """The certificate; empty if it takes longer than we wait. UserError if there will be none."""
        found = await self._requested(name, made)
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            pem = certificate_of(found)
            if pem:
                return pem
            await asyncio.sleep(POLL_SECONDS)
            found = await self._client.get(REQUESTS, name)
        return b""

    async def _requested(self, name: str, made: KeyAndRequest) -> Json:
        try:
            return await self._client.create(REQUESTS, signing_request(name, made.request))
        except ApiError as error:
            if error.outcome is not Outcome.CONFLICT:
                raise
            return await self._client.get(REQUESTS, name)

    async def _put(self, write: Callable[[], str]) -> None:
        sentence = await self._write(write)
        if sentence:
            raise FileError(sentence)


def luck_of(certificate: Certificate) -> float:
    """From 0 to 1, by chance, but the same after a restart."""
    drawn = hashlib.sha256(f"{certificate.subject.user} {certificate.ends}".encode()).digest()
    return int.from_bytes(drawn[:4], "big") / 0xFFFFFFFF


def _check(pem: bytes, made: KeyAndRequest, subject: Subject) -> None:
    """UserError unless it is what was requested: nothing else may take the place of a pair that works."""
    if not pem:
        return
    try:
        certificate = parse_certificate(pem.decode("ascii", "replace"))
        load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pem.decode(), made.key.decode())
    except (ValueError, ssl.SSLError) as error:
        raise UserError(f"the signer's answer can't be used: {error}") from None
    if certificate.subject != subject or certificate.ends <= now_wallclock():
        raise UserError("the signer's answer is a certificate of somebody else, or has ended")


def _written(path: str, data: bytes) -> str:
    try:
        write_whole(path, data)
    except FileError as error:
        return error.message
    return ""


def _take_up(path: str, data: bytes, pending: str) -> str:
    sentence = _written(path, data)
    if not sentence:
        with contextlib.suppress(OSError):
            os.unlink(pending)
    return sentence
