"""`pp-leader rotate-key`: the cluster's peer key, how far its change is, what hosts say to that, and its next step."""

from __future__ import annotations

import asyncio
import enum
import math
import os
import secrets
import stat
from argparse import Namespace
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, write_whole
from pp_hostd.frozen import frozen
from pp_hostd.kube.client import Json
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import own_config_maps, settings_of
from pp_hostd.leader.commands.waiting import tell_waiting
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Peers
from pp_hostd.peers.client import Silence, ask
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.peers.signing import LEAST_BYTES, Keyring
from pp_hostd.service.output import filled, say, say_json, table

PEER_KEY = "peer-key"


class Phase(enum.Enum):
    """The change under way on the hosts, of which some may still have the file of the phase before."""

    SETTLED = "settled"
    ADDING = "adding"
    SWAPPING = "swapping"
    DROPPING = "dropping"


@frozen
class PeerKeys:
    """One key, as base64, or two while it is changed; the first is what hosts of this phase sign with."""

    keys: tuple[str, ...] = field(repr=False)
    phase: Phase = Phase.SETTLED

    @property
    def secrets(self) -> tuple[bytes, ...]:
        return tuple(b64decode(key) for key in self.keys)

    @property
    def file(self) -> bytes:
        """The key file that every host should have now."""
        lines = self.keys[:1] if self.phase is Phase.DROPPING else self.keys
        return "".join(f"{line}\n" for line in lines).encode()

    def next(self, fresh: str) -> PeerKeys:
        """The next phase; `fresh` is the new key, where one is needed."""
        if self.phase is Phase.SETTLED:
            return PeerKeys((*self.keys, fresh), Phase.ADDING)
        if self.phase is Phase.ADDING:
            return PeerKeys(self.keys[::-1], Phase.SWAPPING)
        if self.phase is Phase.SWAPPING:
            return PeerKeys(self.keys, Phase.DROPPING)
        return PeerKeys(self.keys[:1], Phase.SETTLED)

    def render(self) -> Json:
        texts = {"keys": "".join(f"{key}\n" for key in self.keys), "phase": self.phase.value}
        return {"data": {key: b64encode(text.encode()).decode() for key, text in texts.items()}}


def fresh_key() -> str:
    return b64encode(secrets.token_bytes(LEAST_BYTES)).decode()


def read_peer_keys(administrator: Administrator) -> PeerKeys | None:
    """None before the first node or leader was enrolled."""
    secret = administrator.get(SECRETS, PEER_KEY, NAMESPACE)
    return None if secret is None else parse_peer_keys(secret)


def made_peer_keys(administrator: Administrator) -> PeerKeys:
    """Those of the cluster, which are made now if there are none."""
    administrator.create(SECRETS, {"metadata": {"name": PEER_KEY}, **PeerKeys((fresh_key(),)).render()}, NAMESPACE)
    return read_peer_keys(administrator) or made_peer_keys(administrator)


def parse_peer_keys(secret: Json) -> PeerKeys:
    """Returns the keys in the Secret. Raises UserError if the Secret is malformed: with a wrong file, a host would be
    silent to all others."""
    try:
        data = {key: b64decode(text).decode() for key, text in secret.get("data", {}).items()}
        found = PeerKeys(tuple(data["keys"].split()), Phase(data["phase"]))
        usable = all(len(b64decode(key, validate=True)) >= LEAST_BYTES for key in found.keys)
    except (KeyError, ValueError):
        usable = False
    if not usable or len(found.keys) != (1 if found.phase is Phase.SETTLED else 2):
        phases = ", ".join(phase.value for phase in Phase)
        raise UserError(
            f"Secret {NAMESPACE}/{PEER_KEY} is not as pp-leader has made it",
            f"Allowed: `keys`, with one key of {LEAST_BYTES} bytes in base64 if `phase` is {Phase.SETTLED.value}, else "
            f"two, one in a line; `phase`, one of {phases}. The keys that are in use stand in the hosts' key files.",
        )
    return found


ASKER = "pp-leader"
MAX_OPEN = 64
"""How many hosts are asked at the same time."""

KNOWN = "If you know that every host has the present file, or is gone for good: --unasked"
STANDING = {
    Phase.SETTLED: "There is one peer key, and it is not being changed.",
    Phase.ADDING: "Step 1 of 3, add: the key file has two lines now, the old key and then the new one.",
    Phase.SWAPPING: "Step 2 of 3, swap: the key file has the new key first now, and then the old one.",
    Phase.DROPPING: "Step 3 of 3, drop: the key file has the new key alone now.",
}
NEXT = {
    Phase.SETTLED: "To make a new key, and begin to change to it: pp-leader rotate-key next",
    Phase.ADDING: "Once every host has that file, and has read it: pp-leader rotate-key next",
    Phase.SWAPPING: "Once every host has that file, and has read it: pp-leader rotate-key next",
    Phase.DROPPING: "Once every host has that file, and has read it, to forget the old key: pp-leader rotate-key next",
}


def rotate_key(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        settings = settings_of(arguments, administrator)
        keys = read_peer_keys(administrator)
        if keys is None:
            raise UserError("this cluster has no peer key yet", "The first pp-leader enroll makes it.")
        hosts = None
        if arguments.ask or (arguments.move and not arguments.unasked):
            asked = asyncio.run(_asked(_members(administrator), keys, settings.peers))
            hosts = {each.node: each.sentence(keys.phase) for each in asked}
            if not arguments.json:
                say(table(["NODE", "ITS KEY FILE"], [*hosts.items()]))
            _check(asked, keys.phase, arguments.move)
        if arguments.move:
            if arguments.out:  # no step is taken whose file can't be written: it would be taken again
                _write(arguments.out, keys)
            keys = moved(administrator, keys)
    if arguments.out:
        _write(arguments.out, keys)
    if arguments.json:
        say_json({"phase": keys.phase.value, "standing": STANDING[keys.phase], "hosts": hosts})
        return 0
    say(filled(STANDING[keys.phase]))
    say(filled(_copying(arguments.out, settings.peers.key_file)))
    say(filled(NEXT[keys.phase]))
    return 0


def moved(administrator: Administrator, before: PeerKeys) -> PeerKeys:
    """To the next phase, from the one that was shown."""
    after = before.next(fresh_key())

    def change(secret: Json) -> Json:
        if parse_peer_keys(secret) != before:
            raise UserError("somebody else has changed the peer key meanwhile", "See: pp-leader rotate-key")
        return after.render()

    if not administrator.change(SECRETS, PEER_KEY, NAMESPACE, change):
        raise UserError(f"Secret {NAMESPACE}/{PEER_KEY} is gone", "The keys that are in use stand in the hosts' files.")
    return after


def _write(path: str, keys: PeerKeys) -> None:
    """Never in place of a device, of /dev/stdout say, nor of a link that leads to one."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise FileError(
            f"{path}: is no regular file, and would be replaced", "Allowed: a name that is new, or a file's."
        )
    write_whole(path, keys.file)


def _copying(path: str | None, key_file: str) -> str:
    if path is None:
        return "To write the key file that every host should have now: pp-leader rotate-key --out FILE"
    return (
        f"Copy {path} to {key_file} on every host, of mode 600, and remove it here. Then, on each: systemctl reload "
        "pp-hostd; and where a leader runs: systemctl restart pp-leader"
    )


@frozen
class _Asked:
    """A host's key file, as its answers show it. `first` and `second` are the keys of the present phase."""

    node: str
    signs_with_first: bool
    accepts_second: bool
    silence: str

    def has_the_file(self, phase: Phase) -> bool:
        two_keys = phase in (Phase.ADDING, Phase.SWAPPING)
        return self.signs_with_first and self.accepts_second is two_keys

    def sentence(self, phase: Phase) -> str:
        first, second = ("old", "new") if phase is Phase.ADDING else ("new", "old")
        if self.has_the_file(phase):
            return "as it should be now"
        if self.signs_with_first:
            accepts = "still accepts" if self.accepts_second else "does not accept"
            return f"signs with the {first} key, {accepts} the {second} one"
        return f"signs with the {second} key" if self.accepts_second else f"not known: {self.silence}"


def _members(administrator: Administrator) -> list[Member]:
    seen = own_config_maps(administrator).roster
    if seen is None or isinstance(seen.roster, Unreadable):
        fault = "there is none" if seen is None else seen.roster
        hint = f"A leader makes it: see pp-leader status. {KNOWN}"
        raise UserError(f"without a roster nobody can be asked: {fault}", hint)
    return [member for member in seen.roster.members() if member.until is None]


async def _asked(members: Sequence[Member], keys: PeerKeys, peers: Peers) -> list[_Asked]:
    lanes = asyncio.Semaphore(MAX_OPEN)
    turns = math.ceil(len(members) / MAX_OPEN)
    tell_waiting(f"{len(members)} hosts", turns * len(keys.keys) * peers.round_seconds)

    async def one(member: Member) -> _Asked:
        async with lanes:
            return await _ask(member, keys, peers)

    return list(await asyncio.gather(*map(one, members)))


async def _ask(member: Member, keys: PeerKeys, peers: Peers) -> _Asked:
    """Signed with the first key, and only an answer signed with it will do; signed with the second, and any will."""
    namespace, _, name = (member.machine or member.name).rpartition("/")
    question = Question(MachineReference(namespace or None, name, member.uid), ASKER)
    first, *second = keys.secrets
    rings = [Keyring((first,)), *(Keyring((key, first)) for key in second)]
    said = [await ask(member, peers.port, question, ring, deadline_seconds=peers.round_seconds) for ring in rings]
    answered = [not isinstance(each, Silence) for each in said]
    silence = next((each.reason for each in said if isinstance(each, Silence)), "")
    return _Asked(member.name, answered[0], answered[-1] and bool(second), silence)


def _check(asked: Iterable[_Asked], phase: Phase, move: str | None) -> None:
    behind = [each.node for each in asked if not each.has_the_file(phase)]
    if move and behind:
        raise UserError(
            f"nothing was changed: {len(behind)} of the hosts are not so far: {', '.join(behind[:5])}",
            f"A host without a key that others sign with is silent to them. {KNOWN}",
        )
