"""`python -m tests.fuzz.peer_port [--inputs N] [--seed S]`: hostile requests and replies, and no crash.

Half of the inputs are requests to the peer port's protocol, whole with parser, questions, reads and answers, on a
transport in memory; one port wants signatures, one does not. The other half are replies to a peer that asked, about a
machine or about a node to reach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from random import Random
from typing import Any, Callable

from pp_hostd.agent.peer_server import KnockServer, PeerServer
from pp_hostd.agent.witness import Witness
from pp_hostd.model.answer import Answer, Health
from pp_hostd.peers.knock import Call, Knock, Reach, Reached, parse_reached
from pp_hostd.peers.message import SIGNATURE, Exchange, MachineReference, Question, parse_reply
from pp_hostd.peers.signing import UNSIGNED, Keyring
from pp_hostd.service.http_port import HEAD_BYTES, HttpPort
from tests.bench.resident import weigh
from tests.fuzz.memory_transport import MemoryTransport
from tests.fuzz.mutation import mutated, pieces
from tests.peers.talk import KEYRING, healthy_read, request

SOUND = 3000  # more than the nonces that a port remembers
TURNS = 30
KNOCK_EVERY = 5
FINDING_EVERY = 5
SUSPECT = "suspect-"
MAX_REPLY_BYTES = 600
Outcomes = Counter[str]


class Fuzzer:
    """Sound messages, two ports, and everything that must hold whatever is made of the messages."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._exchanges = [_exchange(number) for number in range(SOUND)]
        self._answers = [_answer(exchange) for exchange in self._exchanges]
        self._ports = {keyring: _port(keyring, self._looked_up) for keyring in (KEYRING, UNSIGNED)}
        self._requests = {
            keyring: [_request(number, exchange, keyring) for number, exchange in enumerate(self._exchanges)]
            for keyring in self._ports
        }
        self._nonces = {exchange.nonce for exchange in self._exchanges}
        self._trouble: list[dict[str, Any]] = []
        self.outcomes: Outcomes = Counter()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self._trouble.append(context))

    def _looked_up(self, node: str) -> None:
        """Nobody is in the roster: whose door is tried is no matter of what a request says."""
        self.outcomes["reach: heard" if node.startswith(SUSPECT) else "knock: heard"] += 1

    async def request(self) -> None:
        keyring = (KEYRING, UNSIGNED)[self._random.randrange(2)]
        requests = self._requests[keyring]
        message = mutated(self._random, requests[self._random.randrange(SOUND)], requests)
        parts = pieces(self._random, message, HEAD_BYTES)
        try:
            self._check(keyring, await _conversation(self._ports[keyring], parts))
        except BaseException:
            print(f"the request was, in its pieces: {parts!r}", file=sys.stderr)
            raise

    def reply(self) -> None:
        number = self._random.randrange(SOUND)
        exchange, body = self._exchanges[number], mutated(self._random, self._answers[number], self._answers)
        keyring = (KEYRING, UNSIGNED)[self._random.randrange(2)]
        signature = mutated(self._random, exchange.answer_signature(body, KEYRING).encode(), [b"0"])
        try:
            answer = parse_reply(exchange, 200, {SIGNATURE: signature}, body, keyring)
            if isinstance(answer, Answer):
                assert (answer.nonce, answer.about) == (exchange.nonce, exchange.question.about.machine_key)
        except BaseException:
            print(f"the reply was: {body!r}, {signature!r}", file=sys.stderr)
            raise
        self.outcomes["reply: " + type(answer).__name__] += 1

    def finding(self) -> None:
        """A reply to a request to reach a node."""
        reach = _reach(self._exchanges[self._random.randrange(SOUND)])
        sound, _ = reach.answer(Reached(self._random.random() < 0.5, "no route to host"), UNSIGNED)
        body, keyring = mutated(self._random, sound, self._answers), (KEYRING, UNSIGNED)[self._random.randrange(2)]
        signature = mutated(self._random, reach.answer_signature(body, KEYRING).encode(), [b"0"])
        try:
            reached = parse_reached(reach, 200, {SIGNATURE: signature}, body, keyring)
            if isinstance(reached, Reached):
                assert json.loads(body)["nonce"] == reach.nonce
        except BaseException:
            print(f"the reply was: {body!r}, {signature!r}", file=sys.stderr)
            raise
        self.outcomes["finding: " + type(reached).__name__] += 1

    def _check(self, keyring: Keyring, said: bytes) -> None:
        assert not self._trouble, self._trouble
        while said:
            head, _, said = said.partition(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            body, said = said[:length], said[length:]
            assert head.startswith(b"HTTP/1.1 ") and len(head) + len(body) < MAX_REPLY_BYTES, "it is no short reply"
            status = head[9:12].decode()
            self.outcomes[f"request: {status}"] += 1
            if status == "200" and keyring is KEYRING:
                assert json.loads(body)["nonce"] in self._nonces, "it answers what nobody signed"


async def _conversation(port: HttpPort, parts: list[bytes]) -> bytes:
    """All that the port says; afterwards the client hangs up, and nothing of it is left."""
    transport = MemoryTransport(port.connection(), parts)
    for _ in range(TURNS):
        if not transport.deliver():
            await asyncio.sleep(0)
            if not transport.deliver() and (transport.closed or transport.ended):
                break
    transport.part()
    for _ in range(TURNS):
        if not port.open_connections:
            break
        await asyncio.sleep(0)
    assert not port.open_connections, "the connection stays though its client has gone"
    return bytes(transport.said)


def _exchange(number: int) -> Exchange:
    about = MachineReference("metal" if number % 2 else None, f"worker-{number % 50}", f"uid/{number % 7}")
    return Exchange(Question(about, f"worker-{number % 50}"), "peer", f"nonce-{number}")


def _request(number: int, exchange: Exchange, keyring: Keyring) -> bytes:
    """A question, or now and then a knock, or a request to reach a node."""
    if number % KNOCK_EVERY:
        return request(exchange, keyring)
    asked_by = exchange.question.asked_by
    call: Call = Knock(asked_by, "peer", exchange.nonce) if number % (2 * KNOCK_EVERY) else _reach(exchange)
    lines = call.headers(keyring)
    head = [f"GET {call.path} HTTP/1.1".encode(), b"Host: peer", *(b"%b: %b" % line for line in lines)]
    return b"\r\n".join([*head, b"", b""])


def _reach(exchange: Exchange) -> Reach:
    return Reach(exchange.question.asked_by, "peer", exchange.nonce, f"{SUSPECT}{exchange.nonce}")


def _answer(exchange: Exchange) -> bytes:
    about = exchange.question.about.machine_key
    answer = Answer(Health.UNHEALTHY, 7, "t.1", exchange.nonce, "peer", exchange.question.asked_by, about)
    return answer.render().encode()


def _port(keyring: Keyring, member: Callable[[str], None]) -> HttpPort:
    witness = Witness("fuzz")
    witness.listed()
    questions = PeerServer(
        "peer", keyring, witness, healthy_read, time.monotonic, read_seconds=1.5, machines="openshift"
    )
    return HttpPort(KnockServer("peer", questions, member, 9478, time.monotonic, time.time).respond)


async def fuzz(inputs: int, seed: int) -> Outcomes:
    """The outcome of so many inputs."""
    fuzzer = Fuzzer(seed)
    for number in range(inputs):
        if number % (2 * FINDING_EVERY) == 1:
            fuzzer.finding()
        elif number % 2:
            fuzzer.reply()
        else:
            await fuzzer.request()
    return fuzzer.outcomes


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="tests.fuzz.peer_port", description="Hostile input for the peer port.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    asyncio.run(fuzz(1000, options.seed))
    begun, before_kb = time.perf_counter(), weigh()["resident_kb"]
    outcomes = asyncio.run(fuzz(options.inputs, options.seed))
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>10,} {outcome}")
    seconds, grown_kb = time.perf_counter() - begun, weigh()["resident_kb"] - before_kb
    print(
        f"{options.inputs:,} inputs (seed {options.seed}) in {seconds:.0f} s, no crash, {grown_kb / 1024:.1f} MB more"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
