"""A daemon tells when its certificate ends: in `status` and as a metric, and before that in journal and Events."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from datetime import datetime, timezone

from pp_hostd.kube.certificate import Certificate
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.events import About, Events
from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import enrolment
from pp_hostd.model.moment import render_moment
from pp_hostd.model.renewal import Life
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric, gauge

LOOK_SECONDS = 60.0
AGAIN_SECONDS = 86400.0


class Stage(enum.Enum):
    """How near its end a certificate is."""

    FAR = "far"
    SOON = "soon"
    ENDED = "ended"


def now_wallclock() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def stage_of(certificate: Certificate, now: datetime) -> Stage:
    if certificate.ends <= now:
        return Stage.ENDED
    return Stage.SOON if Life(certificate.begins, certificate.ends).ends_soon(now) else Stage.FAR


def sentence_about(certificate: Certificate, now: datetime) -> str:
    """Returns a sentence for a person about the end of the certificate; empty if that end is far."""
    stage, ends = stage_of(certificate, now), render_moment(certificate.ends)
    if stage is Stage.FAR:
        return ""
    when = f"ended at {ends}" if stage is Stage.ENDED else f"ends at {ends}, and its renewal has not come"
    command = enrolment(certificate.subject.user)
    return f"the client certificate of {certificate.subject.user} {when}; an administrator renews it with `{command}`"


class ExpiryNotice:
    """Tells once when the end is near, each day after that, and once more when it has come."""

    def __init__(self, client: ApiClient, node: str, source: str, journal: Journal) -> None:
        """`source` is the daemon, and `node` the Node that its Events are about."""
        self._client, self._journal = client, journal
        # The uid is the name, as kubelets have it in their own Events.
        self._about = About(NODES, None, node, node)
        self._events = Events(client, now_wallclock, source)
        self._told: tuple[Stage, int] = (Stage.FAR, 0)

    @property
    def sentence(self) -> str:
        """The sentence for a person about the certificate in use; empty if its end is far, or without one."""
        certificate = self._client.certificate
        return "" if certificate is None else sentence_about(certificate, now_wallclock())

    @property
    def ends(self) -> str:
        """When the certificate in use ends; empty without one."""
        certificate = self._client.certificate
        return "" if certificate is None else render_moment(certificate.ends)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        certificate, now = self._client.certificate, now_wallclock()
        stage = Stage.FAR if certificate is None else stage_of(certificate, now)
        day = int(now.timestamp() // AGAIN_SECONDS) if stage is Stage.SOON else 0
        told, self._told = self._told, (stage, day)
        if certificate is None or stage is Stage.FAR or told == self._told:
            return
        sentence = sentence_about(certificate, now)
        self._journal.say(Message.EXPIRY, sentence, Priority.ERROR if stage is Stage.ENDED else Priority.WARNING)
        await self._events.event(self._about, "CertificateExpiry", sentence, warning=True)

    def metrics(self, name: str) -> Iterator[Metric]:
        certificate = self._client.certificate
        ends = None if certificate is None else certificate.ends.timestamp()
        yield gauge(name, "When the client certificate in use ends, in seconds since 1970.", ends)
