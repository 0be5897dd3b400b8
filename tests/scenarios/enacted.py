"""A schedule that real processes play, agents and leaders on a bed's hosts, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Callable

from pp_hostd.sim.host import BOOT_SECONDS
from pp_hostd.sim.play import STOPPED_SECONDS
from pp_hostd.sim.schedule import CALM_SECONDS, Schedule, Trouble
from pp_hostd.sim.world import RESTART_SECONDS
from tests.harness.bed.bed import API
from tests.harness.bed.host import Host
from tests.harness.bed.leader import Leader
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.harness.past import Past
from tests.scenarios.account import BOOTS, KINDS, KUBELET, Account, Accounting, Standing
from tests.scenarios.leading import LeaderStage, now

MOST_SECONDS = 60.0
"""Until all are well again."""
AWAY_SECONDS = STOPPED_SECONDS + RESTART_SECONDS
"""An agent that is told to stop, besides the time that its trouble lasts."""
LATE_SECONDS = 20.0
"""By so much, on a machine that is busy, real processes may lag behind the simulator's."""


def enacted(stage: LeaderStage, schedule: Schedule, cues: Iterable[Standing]) -> Account:
    """The stage's hosts take the parts of the simulator's, in their order. An act comes when it is due and all stands
    as it did in the simulator then: its place is among the writes, whatever the pace."""
    hosts = stage.begin()
    since_at, boots = now(), [host.boots for host in hosts]
    with Past(stage.contents.cluster, KINDS) as past:
        accounting = Accounting([host.name for host in hosts], past.there())

        def stands(cue: Standing) -> bool:
            unbroken = [host.name for host, count in zip(hosts, boots) if host.is_up() and host.boots == count]
            return accounting.standing(past.there(), unbroken) == cue

        enactment = _Enactment(stage, {f"node-{number}": host for number, host in enumerate(hosts, 1)})
        enactment.play(schedule, [partial(stands, cue) for cue in cues])
        return accounting.account(past.changes(), _said(hosts, since_at))


def _said(hosts: list[Host], since_at: float) -> Iterator[tuple[str, str]]:
    happens = {"up": BOOTS, "kubelet-started": KUBELET}
    for host in hosts:
        for event in host.record.events("notify", *happens):
            if event["at"] >= since_at:
                yield host.name, happens.get(event["kind"]) or event["message"].get("STATUS", "")


def _is_time(at: float, cue: Callable[[], bool]) -> bool:
    """A cue that never comes is not waited for: the account will tell what was different."""
    return now() >= at + LATE_SECONDS or (now() >= at and cue())


class _Enactment:
    """Hosts, agents and leaders that go down come back as in the simulator. Cuts and a stopped API end in `_heal`."""

    def __init__(self, stage: LeaderStage, hosts: dict[str, Host]) -> None:
        """`hosts` by their parts."""
        self._stage, self._bed, self._hosts = stage, stage.bed, hosts
        self._leaderless_since: dict[str, float] = {}
        self._agents_due_at: dict[str, float] = {}
        self._acts: dict[str, Callable[[Trouble], object]] = {
            "request": lambda trouble: stage.request(hosts[trouble.who[0]]),
            "absolve": lambda trouble: stage.lift(hosts[trouble.who[0]]),
            "cut off": lambda trouble: self._bed.cut(hosts[trouble.who[0]].name),
            "split": lambda trouble: self._bed.cut(*(hosts[part].name for part in trouble.who)),
            "cut off from API": self._cut_off_from_api,
            "API stops": lambda trouble: self._bed.set_api(Mode.REFUSE if trouble.part < 0.5 else Mode.SWALLOW),
            "power fails": lambda trouble: hosts[trouble.who[0]].kill(),
            "agent stops": self._stop_agent,
            "leader is killed": self._kill_leader,
        }

    def play(self, schedule: Schedule, cues: Sequence[Callable[[], bool]]) -> None:
        """To the moment when all are well again."""
        began_at = now() - CALM_SECONDS
        acts: list[tuple[float, Callable[[], object]]] = [(schedule.healed_at, self._heal)]
        acts += [(each.at, partial(self._acts[each.what], each)) for each in schedule.troubles]
        for (at, act), cue in zip(sorted(acts, key=lambda each: each[0]), cues):
            self._until(partial(_is_time, began_at + at, cue), f"{at:g} s")
            act()
        self._until(self._all_well, "all are well")

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        def brought_back() -> bool:
            self._boot_what_is_down()
            self._start_agents()
            self._start_leaders()
            return holds()

        eventually(brought_back, what, MOST_SECONDS)

    def _boot_what_is_down(self, after_seconds: float = BOOT_SECONDS) -> None:
        for host in self._hosts.values():
            if not host.is_up() and now() >= host.down()["at"] + after_seconds:
                self._bed.boot(host.name)

    def _start_agents(self) -> None:
        for name, due_at in list(self._agents_due_at.items()):
            if now() >= due_at:
                self._bed.hosts[name].start_agent()
                del self._agents_due_at[name]

    def _start_leaders(self) -> None:
        for name, leader in self._stage.leaders.items():
            if leader.is_running():
                self._leaderless_since.pop(name, None)
            elif self._bed.hosts[name].is_up():
                since_at = self._leaderless_since.setdefault(name, now())
                if now() >= since_at + RESTART_SECONDS:
                    self._stage.leaders[name] = Leader(self._bed.hosts[name])

    def _all_well(self) -> bool:
        hosts = self._hosts.values()
        backed_up = any(self._stage.contents.backup(host.name) is not None for host in hosts)
        return not backed_up and all(map(self._stage.is_well, hosts))

    def _heal(self) -> None:
        self._bed.heal()
        self._bed.set_api(Mode.PASS)
        self._boot_what_is_down(after_seconds=0.0)

    def _cut_off_from_api(self, trouble: Trouble) -> None:
        names = [self._hosts[part].name for part in trouble.who]
        self._bed.cut_pairs(*(pair for name in names for pair in ((name, API), (API, name))))

    def _stop_agent(self, trouble: Trouble) -> None:
        host = self._hosts[trouble.who[0]]
        host.stop_agent()
        self._agents_due_at[host.name] = now() + AWAY_SECONDS + trouble.seconds

    def _kill_leader(self, trouble: Trouble) -> None:
        running = sorted(name for name, leader in self._stage.leaders.items() if leader.is_running())
        self._stage.leaders[running[int(trouble.part * len(running))]].kill()
