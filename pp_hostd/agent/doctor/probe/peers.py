"""Some peers, asked in three ways: a signed question as the daemon asks it, a knock, and an unsigned question."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial

from pp_hostd.agent.doctor.facts import KeyFacts, NotKnown, PeerFacts
from pp_hostd.agent.doctor.probe.in_time import in_thread
from pp_hostd.agent.sense.peers import Round
from pp_hostd.errors import UserError
from pp_hostd.frozen import replace
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.roster import Electorate, Member
from pp_hostd.model.settings import Peers, Settings
from pp_hostd.peers.client import Heard, Silence, knock_at
from pp_hostd.peers.message import Exchange, MachineReference, Question
from pp_hostd.peers.signing import UNSIGNED, Keyring, keyring_of
from pp_hostd.service.http_port import HttpPort, Reply, Request

ASK_SECONDS = 5.0
"""The least length of a round; the setting may be shorter. So the doctor can tell a slow peer from an absent one."""
KNOCK_SECONDS = 5.0
"""More than a peer takes to call back and find nobody."""
HTTP_SECONDS = 3.0
BUSY = "429"
ROOT = 0
PAUSE_SECONDS = 1.0

clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def key(settings: Peers) -> KeyFacts:
    """Returns the keyring that this host signs with, and its file. UserError if the file can't be used."""
    keyring = keyring_of(settings)
    return KeyFacts(settings.key_file, keyring, os.stat(settings.key_file).st_uid if keyring.keys else ROOT)


async def ask_peers(
    settings: Settings, keyring: Keyring, me: Member, others: Sequence[Member], daemon_runs: bool
) -> PeerFacts:
    question = Question(_machine(me), me.name)
    answers: list[PeerAnswered] = []
    async with _listening(settings.peers, daemon_runs) as heard_by:
        unsigned = in_thread(lambda: _unsigned(settings.peers.port, others, question))
        patient = replace(settings.peers, round_seconds=max(ASK_SECONDS, settings.peers.round_seconds))
        one_round = Round(replace(settings, peers=patient), keyring, clock, answers.append)
        asking = asyncio.ensure_future(one_round.ask(others, question))
        knocks = await asyncio.gather(*(_knock(peer, settings.peers.port, me.name, keyring) for peer in others))
        await asking
        heard = dict(zip((peer.name for peer in others), knocks))
        by_name = {each.peer: each for each in sorted(answers, key=lambda each: each.peer)}
        return PeerFacts(tuple(others), by_name, heard, await unsigned, heard_by)


def some(electorate: Electorate, me: str, count: int) -> list[Member]:
    """So many of the others, chosen at random."""
    names = sorted((name for name in electorate.names if name != me), key=lambda _: os.urandom(8))
    return [member for member in map(electorate.member, sorted(names[:count])) if member is not None]


def _machine(me: Member) -> MachineReference:
    namespace, _, name = (me.machine or me.name).rpartition("/")
    return MachineReference(namespace or None, name, me.uid)


async def _knock(peer: Member, port: int, me: str, keyring: Keyring) -> Heard | Silence:
    """Once more where others knock at the same time: a peer calls few back in a second."""
    heard = await knock_at(peer, port, me, keyring, deadline_seconds=KNOCK_SECONDS)
    if isinstance(heard, Silence) and BUSY in heard.reason:
        await asyncio.sleep(PAUSE_SECONDS)
        heard = await knock_at(peer, port, me, keyring, deadline_seconds=KNOCK_SECONDS)
    return heard


@contextlib.asynccontextmanager
async def _listening(settings: Peers, daemon_runs: bool) -> AsyncIterator[str]:
    """Where no daemon listens, the doctor does for these seconds: else nobody could tell a firewall from an absence."""
    if daemon_runs:
        yield "the daemon"
        return
    port = HttpPort(_not_yet)
    try:
        await port.listen(settings.address, settings.port)
        heard_by = "the doctor, which listens in place of the daemon"
    except UserError as error:
        heard_by = f"nobody: {error.message}"
    try:
        yield heard_by
    finally:
        await port.close()


async def _not_yet(_: Request) -> Reply:
    return Reply(503, b"only pp-hostd doctor listens here\n")


def _unsigned(port: int, peers: Sequence[Member], question: Question) -> dict[str, int | str] | NotKnown:
    """The status that each peer's reply has, or why there is none, by an ordinary client."""
    try:
        import requests
    except ImportError:
        return NotKnown("the Python package requests is not there", "Install the package pp-hostd-admin.")
    found: dict[str, int | str] = {}
    with requests.Session() as session:
        session.trust_env = False
        for peer in peers:
            host = f"[{peer.address}]" if ":" in peer.address else peer.address
            lines = Exchange(question, peer.name, os.urandom(16).hex()).headers(UNSIGNED)
            try:
                with session.get(
                    f"http://{host}:{port}{question.about.path}",
                    headers={name.decode(): value.decode() for name, value in lines},
                    timeout=HTTP_SECONDS,
                    stream=True,
                    allow_redirects=False,
                ) as reply:
                    found[peer.name] = reply.status_code
            except requests.RequestException as error:
                found[peer.name] = type(error).__name__
    return found
