"""A cluster whose nodes come, go and change, and the roster that the leader writes after each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pp_hostd.leader.plan.roster import next_roster
from pp_hostd.model.keys import AGENT, ENROLLED, ROSTER
from pp_hostd.model.promise import Armed, Committed, GateKind, WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Roster
from tests.leader.virtual_api import VirtualApi

NAMES = ("a", "b", "c", "d")


class Membership:
    """`newest` is what each version listed when it was the newest, `promised` who names which."""

    def __init__(self) -> None:
        self.api = VirtualApi("openshift")
        self.numbers = iter(range(1, 10**6))
        self.enrolled: set[str] = set()
        self.texts: list[str] = []
        self.newest: dict[int, frozenset[object]] = {}
        self.promised: dict[str, int] = {}
        for name in NAMES:
            self.move(name)
            self.replace_machine(name)

    def move(self, name: str) -> None:
        metadata = {"name": name, "uid": f"node-{name}", "annotations": {"machine.openshift.io/machine": f"m/{name}"}}
        address = {"type": "InternalIP", "address": f"192.0.2.{next(self.numbers) % 250}"}
        self.api.put("nodes", name, {"metadata": metadata, "status": {"addresses": [address]}})
        if name in self.promised:
            self.promise(name, self.promised[name])

    def replace_machine(self, name: str, node: str = "") -> None:
        metadata = {"name": name, "namespace": "m", "uid": f"machine-{next(self.numbers)}"}
        self.api.put("machines", f"m/{name}", {"metadata": metadata, "status": {"nodeRef": {"name": node or name}}})

    def enrol(self, *names: str) -> None:
        self.enrolled ^= set(names)
        data = dict.fromkeys(self.enrolled, "{}")
        self.api.put("config maps", ENROLLED, {"metadata": {"name": ENROLLED}, "data": data})

    def promise(self, name: str, version: int | None = None, id_: int | None = None) -> None:
        """The version that is the newest now, or that one."""
        roster = self.roster()
        if version is None and roster is None:
            return
        version = roster.version if version is None and roster is not None else version
        assert version is not None
        armed = Armed("boot", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "machine", version)
        record = armed if id_ is None else Committed(armed, id_)
        self.promised[name] = version
        self.api.patch("nodes", name, {"metadata": {"annotations": {AGENT: record.render()}}})

    def withdraw(self, name: str) -> None:
        self.promised.pop(name, None)
        self.api.patch("nodes", name, {"metadata": {"annotations": {AGENT: None}}})

    def put_back(self, text: str | None) -> None:
        body = None if text is None else {"metadata": {"name": ROSTER}, "data": {ROSTER: text}}
        self.api.put("config maps", ROSTER, body)

    def roster(self) -> Roster | None:
        stored = self.api.observed().roster
        return None if stored is None or isinstance(stored.roster, Unreadable) else stored.roster

    def publish(self) -> bool:
        order, stored = next_roster(self.api.observed()), self.api.observed().roster
        if order is None:
            return False
        assert order.resource_version == (None if stored is None else stored.resource_version)
        self.texts.append(order.roster.render())
        self.put_back(self.texts[-1])
        assert self.roster() == order.roster  # it can be read again
        self.newest[order.roster.version] = self.members(order.roster.version)
        return True

    def members(self, version: int) -> frozenset[object]:
        return frozenset((row.name, row.machine, row.uid) for row in self._rows(version))

    def addresses(self, version: int) -> dict[str, str]:
        return {row.name: row.address for row in self._rows(version)}

    def as_of(self, version: int) -> Electorate | Unreadable:
        roster = self.roster()
        assert roster is not None
        return roster.as_of(version)

    def _rows(self, version: int) -> Iterator[Any]:
        electorate = self.as_of(version)
        assert not isinstance(electorate, Unreadable), electorate
        return (electorate.member(name) for name in electorate.names)
