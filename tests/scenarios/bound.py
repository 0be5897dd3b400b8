"""Random isolations of real hosts, each measured against what `pp-hostd check-config` promises. By hand, for longer:

python -m tests.scenarios.bound --count 200 --seed 7
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import json
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Callable

from pp_hostd.service.journal import Message
from tests.harness.bed.bed import API
from tests.harness.bed.channel import OrderFailed
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.stage import DEAD_SECONDS, WATCHDOG_SECONDS, Stage, now

SIZES = (3, 4, 5, 6)
PER_ROUND = sum(n - n // 2 for n in SIZES)
WITHIN_SECONDS = 2.0
"""All isolations of a round begin within this."""
BLOWS_WITHIN_SECONDS = 7.0
HEALTHY = "healthy"
Action = tuple[float, Callable[[], None]]
"""Something to do, so many seconds after the round began."""


class Way(enum.Enum):
    """How a host comes to be alone: from then on it can begin no proof."""

    CUT = "cut from everyone"
    MUTE = "nothing that it sends arrives"
    DEAF = "nothing arrives that it is sent"
    CARRIER = "its cable pulled"
    REFUSED = "refused by the API, cut from its peers"
    SWALLOWED = "swallowed by the API, cut from its peers"
    TRICKLED = "trickled by the API, cut from its peers"
    CONDEMNED = "condemned, cut from the API and half of its peers"


MODES = {Way.REFUSED: Mode.REFUSE, Way.SWALLOWED: Mode.SWALLOW, Way.TRICKLED: Mode.TRICKLE}
BLOWS = {
    "kill -9": (signal.SIGKILL,),
    "hand-over": (signal.SIGUSR1,),
    "pause": (signal.SIGSTOP, signal.SIGCONT),
    "hang": (signal.SIGSTOP,),
}


@dataclass(frozen=True)
class Bound:
    """Two figures of the timeline that check-config prints, in seconds after the last proof began."""

    unfed_seconds: float
    dead_seconds: float

    @classmethod
    def printed_on(cls, host: Host) -> Bound:
        timeline = json.loads(host.run("pp-hostd", "check-config", "--json").stdout)["timeline"]
        (unfed,) = (row["seconds"] for row in timeline if row["event"].startswith("it stops feeding its watchdog"))
        (dead,) = (row["seconds"] for row in timeline if row["event"].startswith("dead at the latest"))
        return cls(unfed, dead)


@dataclass
class Isolation:
    """One host's: how, what its agent suffers meanwhile, and since when no proof can have begun."""

    host: Host
    way: Way
    blows: list[str] = field(default_factory=list)
    alone_at: float = 0.0

    def measured(self) -> Life:
        down = self.host.await_down(DEAD_SECONDS + 30)
        fed_at = self.host.watchdog("feed")[-1]["at"]
        proof_at = self._proof_at()
        return Life(str(self), fed_at - proof_at, down["at"] - proof_at, down["how"])

    def _proof_at(self) -> float:
        """When its last proof began, at the latest: before it was alone; and if it says in its last change of state
        how old that proof was, then before that. Each proof changes the state, but for those of a healthy host."""
        said = [event for event in self.host.events("journal") if _tells_state(event["fields"])]
        last = said[-1]["fields"]
        if last["PP_HOSTD_STATE"] == HEALTHY:
            return self.alone_at
        return min(self.alone_at, float(said[-1]["at"]) - float(last["PP_HOSTD_PROOF_AGE_SECONDS"]))

    def __str__(self) -> str:
        return f"{self.host.name}, {self.way.value}{''.join(f', {blow}' for blow in self.blows)}"


@dataclass(frozen=True)
class Life:
    """How long a host was fed, and how long it lived, after its last proof began."""

    story: str
    fed_seconds: float
    lived_seconds: float
    how: str

    def within(self, bound: Bound) -> bool:
        return self.fed_seconds <= bound.unfed_seconds and self.lived_seconds <= bound.dead_seconds

    def __str__(self) -> str:
        return f"fed {self.fed_seconds:5.2f} s, lived {self.lived_seconds:5.2f} s, ended by {self.how}: {self.story}"


def _tells_state(fields: dict[str, str]) -> bool:
    return fields.get("MESSAGE_ID") == Message.STATE_CHANGED.value


class Round:
    """Half of a stage's hosts are isolated; the others must live on."""

    def __init__(self, stage: Stage, n: int, seed: str) -> None:
        self.hosts = stage.hosts(n)
        self._stage, self._random = stage, random.Random(seed)
        self._chosen, self._well = self.hosts[n // 2 :], self.hosts[: n // 2]

    def run(self) -> list[Life]:
        isolations = [Isolation(host, self._random.choice(list(Way))) for host in self._chosen]
        began_at = now()
        actions = [action for each in isolations for action in self._actions(each)]
        for seconds, act in sorted(actions, key=lambda action: action[0]):
            eventually(partial(_is_past, began_at + seconds), "its moment has come")
            act()
        lives = [each.measured() for each in isolations]
        for host in self._well:
            assert host.is_up(), f"{host.name} was well, and went down by {host.down()['how']}"
        return lives

    def _actions(self, isolation: Isolation) -> Iterator[Action]:
        alone_after = self._random.uniform(0, WITHIN_SECONDS)
        if isolation.way is Way.CONDEMNED:
            yield self._random.uniform(0, alone_after), partial(self._cut_from_api_and_half, isolation.host)
        yield alone_after, partial(self._isolate, isolation)
        for _ in range(self._random.choice((0, 1, 1, 2))):
            blow = self._random.choice(list(BLOWS))
            seconds = alone_after + self._random.uniform(0, BLOWS_WITHIN_SECONDS)
            isolation.blows.append(f"{blow} after {seconds - alone_after:.2f} s")
            for number in BLOWS[blow]:
                yield seconds, partial(_strike, isolation.host, number)
                seconds += self._random.uniform(0, WATCHDOG_SECONDS)

    def _isolate(self, isolation: Isolation) -> None:
        host, way, bed = isolation.host, isolation.way, self._stage.bed
        if way is Way.CARRIER:
            bed.set_carrier(host.name, up=False)
        elif way is Way.CONDEMNED:
            self._stage.contents.condemn(host.name)
        elif way in MODES:
            self._lose(host, [each.name for each in self.hosts], to=True, fro=True)
            bed.set_api(MODES[way], [host.name])
        else:
            everyone = [API, *(each.name for each in self.hosts)]
            self._lose(host, everyone, to=way is not Way.MUTE, fro=way is not Way.DEAF)
        isolation.alone_at = now()

    def _cut_from_api_and_half(self, host: Host) -> None:
        self._lose(host, [API, *(each.name for each in self._chosen)], to=True, fro=True)

    def _lose(self, host: Host, others: Sequence[str], *, to: bool, fro: bool) -> None:
        """All packets to it, and from it."""
        pairs = [(other, host.name) for other in others if to and other != host.name]
        pairs += [(host.name, other) for other in others if fro and other != host.name]

        def lost() -> bool:
            try:
                self._stage.bed.cut_pairs(*pairs)
            except ConnectionError:  # one of them has just gone down
                return False
            return True

        eventually(lost, f"{host.name} is cut off")


def _is_past(moment_at: float) -> bool:
    return now() >= moment_at


def _strike(host: Host, number: signal.Signals) -> None:
    with contextlib.suppress(OrderFailed, ConnectionError):  # it may be down, or its agent about to be restarted
        host.signal_agent(number)


class Beds:
    """One for each size, each with an API of its own."""

    def __init__(self, seed: int) -> None:
        self._seed, self._stack, self._round = seed, contextlib.ExitStack(), 0
        clusters = [self._stack.enter_context(EmbeddedCluster.start()) for _ in SIZES]
        self._stages = [self._stack.enter_context(Stage.on(each, n)) for each, n in zip(clusters, SIZES)]

    def bound(self) -> Bound:
        return Bound.printed_on(self._stages[0].hosts(SIZES[0])[0])

    def run(self) -> list[Life]:
        """A round on each bed, all at once."""
        self._round += 1
        seeds = [f"{self._seed}/{n}/{self._round}" for n in SIZES]
        with ThreadPoolExecutor(len(SIZES)) as pool:
            rounds = list(pool.map(Round, self._stages, SIZES, seeds))
            return [life for lives in pool.map(Round.run, rounds) for life in lives]

    def __enter__(self) -> Beds:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="isolations, at least (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    broken = 0
    with Beds(arguments.seed) as beds:
        bound = beds.bound()
        print(f"seed {arguments.seed}: fed at most {bound.unfed_seconds:g} s, dead at {bound.dead_seconds:g} s")
        for _ in range(-(-arguments.count // PER_ROUND)):
            for life in beds.run():
                broken += not life.within(bound)
                print("ok    " if life.within(bound) else "BROKEN", life, flush=True)
    print(f"{broken} broke the bound")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
