"""How soon hosts that probe each other notice a pulled cable, what that costs, and how often they are wrong.

In virtual time: hosts run the very state machine of the agent, and messages take a while or are lost. The leader tries
to confirm a suspicion until it succeeds, and each attempt takes CONFIRMATION_SECONDS.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from pp_hostd.model.reachability import SILENT_AFTER_SECONDS
from tests.agent.probers import LATENCY_SECONDS, Crowd
from tests.bench.figure import Figure

SIZES = (50, 500, 5000)
LOSSES = (0.0, 0.05)
SAMPLES = 400
"""Pulled cables for each size and loss: a part of the hosts at a time, so that few of them probe each other."""
SETTLE_SECONDS = 10.0
NOTICED_SECONDS = 20.0
OUTAGE_SECONDS = 60.0
HOST_HOURS = 50
"""So long hosts are watched for wrong suspicions: so many hosts for an hour, or more of them for less."""
DETECTED_SECONDS = 10.0
WRITE_SECONDS = 0.1
"""From a suspicion until the leader's watch shows it."""
CONFIRMATION_SECONDS = SILENT_AFTER_SECONDS + 4 * LATENCY_SECONDS[1]


def detection() -> Iterator[Figure]:
    for hosts in SIZES:
        for loss in LOSSES:
            yield from _of(hosts, loss)
        yield from _restarts(hosts)
        yield from _split(hosts)
        yield from _outage(hosts)


def _of(hosts: int, loss: float) -> Iterator[Figure]:
    name = f"{hosts} hosts, {loss:.0%} lost"
    suspected, confirmed = map(sorted, zip(*_pulled_cables(hosts, loss)))
    yield Figure(f"{name}: suspected, p50", suspected[len(suspected) // 2], "s")
    yield Figure(f"{name}: suspected, p99", suspected[len(suspected) * 99 // 100], "s")
    yield Figure(f"{name}: confirmed, p50", confirmed[len(confirmed) // 2], "s")
    yield Figure(f"{name}: confirmed, p99", confirmed[len(confirmed) * 99 // 100], "s", at_most=DETECTED_SECONDS)
    crowd, seconds = Crowd(hosts, loss, seed=hosts), 3600.0 * HOST_HOURS / hosts
    crowd.run(SETTLE_SECONDS)
    crowd.messages = 0
    crowd.suspicions.clear()
    crowd.run(seconds)
    hours = seconds / 3600
    wrong = sum(crowd.is_confirmed(whom, by) for _, by, whom in crowd.suspicions)
    yield Figure(f"{name}: messages of one host", crowd.messages / hosts / seconds, "/s", at_most=1.0)
    yield Figure(f"{name}: wrong suspicions", len(crowd.suspicions) / hours, "/h")
    yield Figure(f"{name}: wrong confirmations", wrong, "", at_most=0)


def _pulled_cables(hosts: int, loss: float) -> Iterator[tuple[float, float]]:
    """How long it took until each was suspected, and until the leader confirmed it."""
    crowd = Crowd(hosts, loss, seed=1)
    at_once = max(1, hosts // 100)
    for _ in range(-(-SAMPLES // at_once)):
        crowd.run(SETTLE_SECONDS + crowd.random.uniform(0, SETTLE_SECONDS))
        pulled_at, pulled = crowd.now, crowd.random.sample(crowd.names, at_once)
        crowd.unplugged.update(pulled)
        crowd.run(NOTICED_SECONDS)
        for each in pulled:
            at, by = crowd.first_suspicion(each, pulled_at)
            assert by, f"nobody suspects {each}"
            attempts = next(number for number in count(1) if crowd.is_confirmed(each, by))
            yield at - pulled_at, at - pulled_at + WRITE_SECONDS + attempts * CONFIRMATION_SECONDS
        crowd.unplugged.clear()
        crowd.suspicions.clear()


def _restarts(hosts: int) -> Iterator[Figure]:
    """All agents within a minute, a few at a time."""
    crowd = Crowd(hosts, 0.0, seed=2)
    for number, name in enumerate(crowd.names):
        crowd.restart(name, pause_seconds=2.0)
        if number % max(1, hosts // 50) == 0:
            crowd.run(1.0)
    crowd.run(NOTICED_SECONDS)
    yield Figure(f"{hosts} hosts, rolling restart: suspicions", len(crowd.suspicions), "", at_most=0)


def _split(hosts: int) -> Iterator[Figure]:
    """Half of the hosts loses the other half and the API: only the half with the API tells anybody."""
    crowd = Crowd(hosts, 0.0, seed=3)
    crowd.run(SETTLE_SECONDS)
    cut_off = set(crowd.names[: hosts // 2])
    crowd.cut = lambda sender, receiver: (sender in cut_off) != (receiver in cut_off)
    crowd.without_api = cut_off.__contains__
    crowd.run(NOTICED_SECONDS)
    wrong = [each for each in crowd.suspicions if each[2] not in cut_off]
    told = {whom for _, _, whom in crowd.suspicions} & cut_off
    yield Figure(f"{hosts} hosts, split in halves: suspects told", 100 * len(told) / len(cut_off), "% of them")
    yield Figure(f"{hosts} hosts, split in halves: wrong ones", len(wrong), "", at_most=0)


def _outage(hosts: int) -> Iterator[Figure]:
    """Nobody reaches the API for a while, and a cable is pulled meanwhile: that can be told when the API is back."""
    crowd = Crowd(hosts, max(LOSSES), seed=4)
    crowd.run(SETTLE_SECONDS)
    crowd.suspicions.clear()
    crowd.without_api = lambda _: True
    pulled = crowd.names[0]
    crowd.unplugged.add(pulled)
    crowd.run(OUTAGE_SECONDS)
    crowd.without_api, back_at = crowd.unplugged.__contains__, crowd.now
    crowd.run(NOTICED_SECONDS)
    wrong = [crowd.is_confirmed(whom, by) for _, by, whom in crowd.suspicions if whom != pulled]
    name = f"{hosts} hosts, API outage"
    yield Figure(f"{name}: the silent host told after it", crowd.first_suspicion(pulled, back_at)[0] - back_at, "s")
    yield Figure(f"{name}: wrong confirmations", sum(wrong), "", at_most=0)
