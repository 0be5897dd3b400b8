"""A peer that deceives whoever asks it: a program that stands in for the agent on a host of the bed.

Only whoever is not to be believed answers here, so every deceit says "healthy".
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Optional

from pp_hostd.model.answer import Answer, Health
from pp_hostd.peers.message import Exchange, Refusal, parse_question
from pp_hostd.peers.signing import Keyring, load_keyring

REPOSITORY = Path(__file__).parents[3]
PEER_PORT = 9478
SLOW_SECONDS = 1.0
"""Longer than any round of the bed's settings."""
Reply = Optional[tuple[bytes, str]]
"""A body and its signature; none for a connection that is closed without a word."""


def command(deceit: str) -> list[str]:
    """Returns the command of a false peer with that deceit: slow, forge, replay, about-another or as-another."""
    start = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from tests.harness.bed.false_peer import main; main()"
    )
    return [sys.executable, "-c", start, deceit]


class FalsePeer:
    def __init__(self, me: str, keyring: Keyring) -> None:
        self.me, self.keyring = me, keyring
        self._recorded: Reply = None

    def slow(self, exchange: Exchange) -> Reply:
        time.sleep(SLOW_SECONDS)
        return self._signed(exchange, self._honest(exchange))

    def forge(self, exchange: Exchange) -> Reply:
        body = self._honest(exchange).render().encode()
        return body, exchange.answer_signature(body, Keyring((os.urandom(32),)))

    def replay(self, exchange: Exchange) -> Reply:
        """Leaves the first question unanswered; gives the answer to the first question to every later one."""
        recorded = self._recorded
        self._recorded = recorded or self._signed(exchange, self._honest(exchange))
        return recorded

    def about_another(self, exchange: Exchange) -> Reply:
        return self._signed(exchange, dataclasses.replace(self._honest(exchange), about=self.me))

    def as_another(self, exchange: Exchange) -> Reply:
        asked_by = exchange.question.asked_by
        return self._signed(exchange, dataclasses.replace(self._honest(exchange), answered_by=asked_by))

    def _honest(self, exchange: Exchange) -> Answer:
        question = exchange.question
        return Answer(
            Health.HEALTHY, None, "token", exchange.nonce, self.me, question.asked_by, question.about.machine_key
        )

    def _signed(self, exchange: Exchange, answer: Answer) -> Reply:
        body = answer.render().encode()
        return body, exchange.answer_signature(body, self.keyring)


def _handler(peer: FalsePeer, deceive: Callable[[Exchange], Reply]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower().encode(): value.encode() for name, value in self.headers.items()}
            exchange = parse_question(b"GET", self.path.encode(), headers, peer.me, peer.keyring)
            assert not isinstance(exchange, Refusal), exchange
            reply = deceive(exchange)
            print("deceived", exchange.question.asked_by, "by", reply, file=sys.stderr)
            if reply is not None:
                self.send_response(200)
                self.send_header("PP-Hostd-Signature", reply[1])
                self.send_header("Content-Length", str(len(reply[0])))
                self.end_headers()
                self.wfile.write(reply[0])

    return Handler


def main() -> None:
    """Serve until the host goes down."""
    peer = FalsePeer(socket.gethostname(), load_keyring("/etc/pp-hostd/peer.key"))
    deceits = {
        "slow": peer.slow,
        "forge": peer.forge,
        "replay": peer.replay,
        "about-another": peer.about_another,
        "as-another": peer.as_another,
    }
    ThreadingHTTPServer(("0.0.0.0", PEER_PORT), _handler(peer, deceits[sys.argv[1]])).serve_forever()
