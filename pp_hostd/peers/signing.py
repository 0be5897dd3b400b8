"""The peer key: its file, which has one line, or two while the key is being changed, and what is signed by it."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import stat
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.files import handed_over, read_whole
from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Peers

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
"""The keyring of `auth = "none"`, and of no other setting: nothing is signed, and everybody is believed."""


def _delimited(parts: tuple[bytes, ...]) -> bytes:
    """Each part after its length: no two rows of parts look alike, whatever is in them."""
    return b"".join([b"%d:%b" % (len(part), part) for part in (TAG, *parts)])


LIMIT_BYTES = 4096
LEAST_BYTES = 32
ALLOWED = f"Allowed: one or two lines, each a secret of at least {LEAST_BYTES} bytes in hex or base64."
MAKE_ONE = "To make a key, once for the cluster: head -c 32 /dev/urandom | base64"


class KeyFileError(UserError):
    """A key file that can't be used; the message begins with its path."""


def keyring_of(peers: Peers) -> Keyring:
    """Returns the keyring that this host signs with, by its settings."""
    return UNSIGNED if peers.auth == "none" else load_keyring(peers.key_file)


def load_keyring(key_file: str) -> Keyring:
    """The keys in the file; never none."""
    path = handed_over(key_file)
    try:
        lines = read_whole(path, LIMIT_BYTES).splitlines()
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except UserError as error:
        raise KeyFileError(error.message, f"{ALLOWED}\n  {MAKE_ONE}") from None
    except OSError as error:
        raise KeyFileError(f"{path}: can't be read ({error.strerror})", ALLOWED) from None
    if mode & 0o077 and path == key_file:  # systemd's copy is in a directory of this process's own
        raise KeyFileError(
            f"{path}: others than its owner may use it (mode {mode:04o})",
            f"A process with the key can speak for any host. Do: chmod 600 {path}; if they have read it, change it.",
        )
    if not 1 <= len(lines) <= 2:
        raise KeyFileError(f"{path}: has {len(lines)} lines", f"{ALLOWED}\n  {MAKE_ONE}")
    return Keyring(tuple(_secret(path, number, line) for number, line in enumerate(lines, 1)))


def _secret(path: str, number: int, line: bytes) -> bytes:
    secret = _decoded(line.strip())
    if secret is None or len(secret) < LEAST_BYTES:
        fault = "is neither hex nor base64" if secret is None else f"holds only {len(secret)} bytes"
        raise KeyFileError(f"{path}: line {number} {fault}", f"{ALLOWED}\n  {MAKE_ONE}")
    return secret


def _decoded(line: bytes) -> bytes | None:
    """Hex is tried first: as base64, 64 hex digits would be another secret than their writer meant."""
    for decode in (binascii.unhexlify, _base64):
        try:
            return decode(line)
        except ValueError:
            continue
    return None


def _base64(line: bytes) -> bytes:
    return base64.b64decode(line, validate=True)
