"""A daemon's own client certificate, renewed by the cluster well before its end, and used without a restart.

The new key is on disk before the API hears of it, and the new pair takes its place whole: whenever the daemon ends, it
goes on with the old pair or the new one, and takes its pending request up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import ssl
from collections.abc import Awaitable
from datetime import datetime, timezone
from functools import partial
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.kube.certificate import REQUEST_HEADER, Certificate, Subject, parse_certificate, parse_request
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.credentials import load_chain
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.signing_request import (
    MAX_PEM_BYTES,
    REQUESTS,
    KeyAndRequest,
    certificate_of,
    made_request,
    signing_request,
)
from pp_hostd.model.moment import render_moment
from pp_hostd.model.renewal import Life, own_groups, requests_of

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
        """What an earlier attempt, or an earlier run, requested for the same user; None if that can't be used."""
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
