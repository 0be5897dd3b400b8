"""The cluster's peer key, and how far its change is: the Secret `peer-key`, which only administrators can read.

It is changed in the steps of peers/keys.py, each to be done on all hosts before the next: so any two of them have a key
in common at any time.
"""

from __future__ import annotations

import enum
import secrets
from base64 import b64decode, b64encode
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.client import Json
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.peers.keys import LEAST_BYTES

PEER_KEY = "peer-key"


class Phase(enum.Enum):
    """What is being done on the hosts, of which some may still have the file of the phase before."""

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
    """What the Secret holds, or a UserError: with a wrong file, a host would be silent to all others."""
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
