"""The peer key at work: what is signed, and by which keys it may have been."""

from __future__ import annotations

import hmac
from dataclasses import field

from pp_hostd.frozen import frozen

TAG = b"pp-hostd peer 1"
"""Begins everything that is signed, so that no other use of the key can be passed off as a peer's word."""


@frozen
class Keyring:
    """The keys in force: the first signs, each is accepted. See UNSIGNED for none at all."""

    keys: tuple[bytes, ...] = field(repr=False)

    def sign(self, *parts: bytes) -> str:
        """The signature of these parts, in this order; empty when nothing is signed."""
        return hmac.digest(self.keys[0], _delimited(parts), "sha256").hex() if self.keys else ""

    def accepts(self, signature: str, *parts: bytes) -> bool:
        """Whether one of the keys signed exactly these parts. Compared in constant time."""
        if not self.keys:
            return True
        message, given = _delimited(parts), signature.encode()
        return any(hmac.compare_digest(hmac.digest(key, message, "sha256").hex().encode(), given) for key in self.keys)


UNSIGNED = Keyring(())
"""What `auth = "none"` asks for, and nothing else gives: nothing is signed, and everybody is believed."""


def _delimited(parts: tuple[bytes, ...]) -> bytes:
    """Each part after its length: no two rows of parts look alike, whatever is in them."""
    return b"".join([b"%d:%b" % (len(part), part) for part in (TAG, *parts)])
