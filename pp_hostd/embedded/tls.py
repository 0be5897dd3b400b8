"""TLS on a plain asyncio transport, the server's side.

asyncio's own would leave a client whose certificate it refuses without a word, and differs from Python to Python.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from typing import cast

from pp_hostd.errors import UserError

_CHUNK_BYTES = 65536
_HINT = "They must be readable PEM files, and the key that of the certificate."


class TlsProtocol(asyncio.Protocol):
    """One connection; subclasses see and send plain bytes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken = False
        self.hung_up = False

    @abstractmethod
    def plain_received(self, data: bytes) -> None:
        """The client has sent something."""

    def send(self, data: bytes) -> None:
        """Encrypt and send."""
        self.tls.write(data)
        self._flush()

    def hang_up(self) -> None:
        """Send nothing more, and drop what still comes until the client leaves: a reset could overtake the answer."""
        self.hung_up = True
        self.transport.write_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.hung_up:
            return
        self._incoming.write(data)
        try:
            if not self._shaken:
                self.tls.do_handshake()
                self._shaken = True
            while not (self.hung_up or self.transport.is_closing()):
                plain = self.tls.read(_CHUNK_BYTES)
                if not plain:
                    self.transport.close()  # the client has said goodbye
                    return
                self.plain_received(plain)
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:
            self._flush()  # the alert that says why
            self.transport.close()

    def eof_received(self) -> None:
        self.transport.abort()

    def _flush(self) -> None:
        self.transport.write(self._outgoing.read())


def context(cert: str, key: str, client_ca: str) -> ssl.SSLContext:
    """What the server presents, and whom it trusts: clients have a certificate of that authority, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        context.load_cert_chain(cert, key)
    except OSError as error:
        raise UserError(f"certificate {cert} and key {key} cannot be used: {error}", _HINT) from None
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:
        raise UserError(f"the clients' authority {client_ca} cannot be used: {error}", _HINT) from None
    return context
