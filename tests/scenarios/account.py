"""The account of a play, simulated or real, in the same words: the writes about each host, in order, and its verdicts.

The account leaves out all that decides nothing, on both sides alike. Of writes: those that change no fact below
(status, heartbeats, people's notes), the leaders' Lease, and the leaders' reports to people. Of verdicts: sentences
that are none yet, such as failed reads, an inquiry under way, and the lacks of an unarmed host; and the same verdict
again. Agent and gate start in any order. So the account leaves out the withdrawal of an agent that is first, since that
agent says in the same boot that its gate is closed; and a closed gate if the very next write is the promise of the same
boot, since an agent that promises before its gate stands says no such thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pp_hostd.kube.resources import CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, Resource
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import FREED, ROSTER, backup_name
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord, Committed
from pp_hostd.model.record import Unreadable
from tests.harness.past import Change, Json

KINDS = (NODES, OPENSHIFT_MACHINES, CONFIG_MAPS)
BOOTS, KUBELET = "boots", "its kubelet starts"
"""Sentences that stand among a host's own when the host boots, and when its kubelet starts."""
VERDICTS = {
    BOOTS: BOOTS,
    KUBELET: KUBELET,
    "healthy: ": "healthy",
    "the control plane is out": "outage",
    "condemned under id": "condemned, and not armed",
    "resetting this host: its machine is condemned": "resets itself, being condemned",
    # The same for want of proof: which of the two clocks runs out first is a matter of milliseconds.
    "resetting this host: no peer confirms": "resets itself, unproven",
    "resetting this host: no proof": "resets itself, unproven",
    "resetting this host: ": "resets itself, accused by a peer",
}
"""By how the sentence begins; the first that fits."""
_ID = re.compile(r"(?:condemnation|under id) (\d+)")
_PLAIN_WORDS = {"ADDED": "created", "MODIFIED": "written", "DELETED": "deleted"}
Facts = dict[str, str]
Standing = dict[tuple[str, int], Facts]
"""The facts of each object that is about a host, by the host's place; and of the host, while it has not been down."""


@dataclass(frozen=True)
class Account:
    """Host by host; last of all, what was written of the roster."""

    writes: list[list[str]]
    verdicts: list[list[str]]


class Accounting:
    """Begins when all are well. Condemnations and boots count from there, whatever there was before."""

    def __init__(self, hosts: Sequence[str], there: Iterable[tuple[Resource, Json]]) -> None:
        there = list(there)
        self._hosts = [*hosts, ROSTER]
        self._ids: dict[str, list[int]] = {}
        self._ids_before = {(found["metadata"]["name"], _id_before(kind, found)) for kind, found in there}
        self._boots: dict[str, list[str]] = {}
        self._facts = {(kind, found["metadata"]["name"]): self._facts_of(kind, found) for kind, found in there}

    def account(self, changes: Iterable[Change], sentences: Iterable[tuple[str, str]]) -> Account:
        """Of all that was written, and of who said what, in that order."""
        writes: dict[str, list[str]] = {name: [] for name in self._hosts}
        verdicts = {host: ["healthy"] for host in self._hosts[:-1]}
        for change in sorted(changes, key=lambda each: each.revision):
            about, word = _about(change.object), self._word(change)
            if word and about in writes:
                writes[about].append(f"{change.kind.kind} {word}")
        for host, sentence in sentences:
            verdict = self._verdict(host, sentence) if host in verdicts else ""
            if verdict and verdict != next(each for each in reversed(verdicts[host]) if each != KUBELET):
                verdicts[host].append(verdict)
        return Account([_without_the_order_of_starts(each) for each in writes.values()], list(verdicts.values()))

    def standing(self, there: Iterable[tuple[Resource, Json]], unbroken: Iterable[str]) -> Standing:
        """Returns the facts of these objects and `unbroken` hosts; these hosts are in the boot that they began with."""
        facts = [(kind.kind, _about(found), self._facts_of(kind, found)) for kind, found in there]
        hosts: list[tuple[str, str, Facts]] = [("Host", name, {}) for name in unbroken]
        return {(kind, self._hosts.index(name)): each for kind, name, each in facts + hosts if name in self._hosts}

    def _word(self, change: Change) -> str:
        """Returns the change in words; empty for a Node or Machine whose facts stay the same."""
        if change.kind is CONFIG_MAPS or change.type == "DELETED":
            return _PLAIN_WORDS[change.type]
        key, facts = (change.kind, change.name), self._facts_of(change.kind, change.object)
        before = {} if change.type == "ADDED" else self._facts[key]
        self._facts[key] = facts
        changed = [each for each in {**before, **facts} if before.get(each) != facts.get(each)]
        news = ", ".join(facts.get(each) or f"not {before[each]}" for each in changed)
        return f"created: {news}" if change.type == "ADDED" else news

    def _facts_of(self, kind: Resource, found: Json) -> Facts:
        if kind is CONFIG_MAPS:
            return {}
        facts = self._node(found) if kind is NODES else self._machine(found)
        return {key: fact for key, fact in facts.items() if fact}

    def _node(self, found: Json) -> Facts:
        node = parse_node(found)
        assert isinstance(node, Node), node
        freed = self._id(node.name, found["metadata"].get("annotations", {}).get(FREED, 0))
        return {
            "cordon": "cordoned" if node.unschedulable else "",
            "taint": "tainted" if node.tainted else "",
            "marker": "marked" if node.freeing is not None else "",
            "freed": f"freed for {freed}" if freed > 0 else "",
            "record": "" if node.agent is None else self._record(node.name, node.agent),
        }

    def _record(self, host: str, record: AgentRecord | Unreadable) -> str:
        assert not isinstance(record, Unreadable), record
        boot = record.promise.boot if isinstance(record, Committed) else record.boot
        boots = self._boots.setdefault(host, [boot])
        if boot not in boots:
            boots.append(boot)
        named = f" for {self._id(host, record.id)}" if isinstance(record, Committed) else ""
        return f"{type(record).__name__}{named} in boot {boots.index(boot) + 1}"

    def _machine(self, found: Json) -> Facts:
        machine = parse_machine(found)
        assert isinstance(machine, Machine), machine
        condemnation = machine.condemnation
        named = f" {self._id(machine.name, condemnation.id)}" if isinstance(condemnation, Condemned) else ""
        return {"condemnation": f"{type(condemnation).__name__}{named}"}

    def _verdict(self, host: str, sentence: str) -> str:
        verdict = next((word for beginning, word in VERDICTS.items() if sentence.startswith(beginning)), "")
        named = _ID.search(sentence)
        return f"{verdict} {self._id(host, named.group(1))}" if verdict and named else verdict

    def _id(self, host: str, condemnation_id: int | str) -> int:
        """Ids are drawn by chance: which condemnation of this host it is, from the first on; 0 if there was none."""
        ids, wanted = self._ids.setdefault(host, [0]), int(condemnation_id)
        if (host, wanted) in self._ids_before:
            return 0
        if wanted not in ids:
            ids.append(wanted)
        return ids.index(wanted)


def _without_the_order_of_starts(writes: list[str]) -> list[str]:
    told = [
        word
        for place, word in enumerate(writes)
        if "Withdrawn" not in word or word.replace("Withdrawn", "GateClosed") not in writes[place:]
    ]
    return [
        word
        for word, following in zip(told, [*told[1:], ""])
        if "GateClosed" not in word or word.replace("GateClosed", "Armed") != following
    ]


def _about(found: Json) -> str:
    """The host that an object is about; its own name, if it is about none."""
    return str(found["metadata"]["name"]).replace(backup_name(""), "")


def _id_before(kind: Resource, found: Json) -> int:
    """The last condemnation before the play, as a machine keeps it; a Node keeps the one for which it was freed."""
    if kind is NODES:
        return int(found["metadata"].get("annotations", {}).get(FREED, 0))
    if kind is not OPENSHIFT_MACHINES:
        return 0
    machine = parse_machine(found)
    assert isinstance(machine, Machine) and isinstance(machine.condemnation, NotRequested), machine
    return machine.condemnation.last_id
