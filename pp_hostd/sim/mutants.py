"""The safety rules, each taken out by name: a small change of the real code, in this process and for a while only.

A rule that can be taken out without a violation is not needed, or not tested.
"""

from __future__ import annotations
import __future__ as features

import contextlib
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """In the source of a function or method (`package.module:Class.method`), this line is another one."""

    where: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """`rule` is its number in the design, `theme` the kind of day on which it is missed most, if there is one."""

    name: str
    rule: int
    theme: str
    changes: tuple[Change, ...]


def _mutant(name: str, rule: int, theme: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant(name, rule, theme, tuple(Change(f"pp_hostd.{where}", old, new) for where, old, new in changes))


MUTANTS = (
    _mutant(
        "a proof counts from when the answer came",
        1,
        "",
        ("agent.judge:_after_read", "Proof(read.began_at, Source.OWN_READ)", "Proof(read.ended_at, Source.OWN_READ)"),
        ("agent.judge:_after_read", "memory.proof.at > read.began_at", "memory.proof.at > read.ended_at"),
    ),
    _mutant(
        "a cached read is a proof",
        1,
        "",
        ("sim.agent:Agent._read", "self._client.api.found", "self._client.api.found_in_cache"),
    ),
    _mutant(
        "a machine that is not found is no accusation",
        1,
        "anything",
        ("agent.judge:_inquired", "inquiry.said(Said.UNHEALTHY, Said.NOT_FOUND)", "inquiry.said(Said.UNHEALTHY)"),
        (
            "model.inquiry:is_outage",
            "reply.said is Said.API_ERROR",
            "reply.said in (Said.API_ERROR, Said.NOT_FOUND)",
        ),
    ),
    _mutant(
        "the watchdog is fed whatever the judgement",
        2,
        "isolated",
        ("agent.driver:Driver.turn", "elif verdict.feed:", "else:"),
        ("agent.driver:Driver.turn", "if verdict.reset is not None:", "if verdict.reset and verdict.reset.id:"),
    ),
    _mutant(
        "the wait is T + W",
        2,
        "isolated",
        ("leader.plan.memory:wait_seconds", "2 * promise.watchdog", "promise.watchdog"),
    ),
    _mutant(
        "half of the nodes are enough for an outage",
        3,
        "divided",
        (
            "model.inquiry:is_outage",
            "2 * len(cut_off.intersection(nodes)) > ",
            "2 * len(cut_off.intersection(nodes)) >= ",
        ),
    ),
    _mutant(
        "an outage is dated by its end",
        3,
        "outage",
        ("agent.judge:_inquired", "Proof(inquiry.started_at, Source.OUTAGE", "Proof(now, Source.OUTAGE"),
    ),
    _mutant(
        "peers do not remember",
        4,
        "deaf",
        (
            "agent.witness:Witness.answer",
            "return self._remembered(subject, uid, now)",
            "return self._remembered(subject, uid, now if isinstance(condemnation, Condemned) else None)",
        ),
        ("agent.witness:Witness._remembered", "if memory is None:", "if memory is None or now is None:"),
    ),
    _mutant(
        "a host takes ids that were lifted for accusations",
        4,
        "outage",
        ("model.inquiry:weigh", "answer.id <= lifted_id", "False"),
    ),
    _mutant(
        "the kubelet does not wait for the gate",
        6,
        "isolated",
        ("sim.host:Host.power_on", "self.start(self.boot)", "self.start(self.boot); self.open_gate(self.boot)"),
    ),
    _mutant(
        "the gate opens before the promise is stored",
        6,
        "rough boot",
        (
            "agent.plan:_keep",
            "if wanted is not None and (bond.stored != wanted or bond.pending):",
            "if bond.gate is not Gate.CLOSED and wanted is not None and (bond.stored != wanted or bond.pending):",
        ),
    ),
    _mutant(
        "a restart forgets",
        6,
        "",
        ("sim.agent:Agent._recalled", "if boot.run else None", "if False else None"),
    ),
    _mutant(
        "a condemnation that was put back counts as if it had never lapsed",
        9,
        "lapsing",
        (
            "leader.sights:Machines._stretched",
            'return MachineSeen(found, self._stretches, "" if before is None else before.machine.resource_version)',
            "first = self.__dict__.setdefault('first', {}); return replace(first.setdefault(_standing(found), "
            "MachineSeen(found, self._stretches, before.machine.resource_version if before else '')), machine=found)",
        ),
    ),
    _mutant(
        "nobody has to acknowledge",
        10,
        "divided",
        ("leader.plan.memory:counted", "2 * len(case.tokens) >= electorate.n", "True"),
        ("leader.plan.certainty:_on_promise", "if 2 * len(case.again) < electorate.n:", "if False:"),
    ),
    _mutant(
        "nobody is asked again after the wait",
        10,
        "deaf",
        ("leader.plan.certainty:_on_promise", "if 2 * len(case.again) < electorate.n:", "if False:"),
    ),
    _mutant(
        "tokens are ignored",
        10,
        "deaf",
        ("leader.plan.memory:_objection", "case.tokens.get(answer.peer) != answer.token", "False"),
    ),
    _mutant(
        "a third of the nodes are enough",
        10,
        "divided",
        ("leader.plan.memory:counted", "2 * len(case.tokens) >=", "3 * len(case.tokens) >="),
        ("leader.plan.certainty:_on_promise", "2 * len(case.again) <", "3 * len(case.again) <"),
    ),
    _mutant(
        "the committed record needs no wait",
        11,
        "isolated",
        ("leader.plan.certainty:_evidence", "case.committed_at + seconds", "case.committed_at"),
    ),
    _mutant(
        "there is no look before the deletion",
        12,
        "lagging",
        ("leader.plan.certainty:_on_promise", "if inspection.began_at < over_at:", "if False:"),
        ("leader.plan.certainty:_on_evidence", "if inspection.began_at < evidence.act_at:", "if False:"),
        (
            "sim.steps:Steps._delete_node",
            "DeleteOptions(uid=step.uid, resource_version=step.resource_version)",
            "DeleteOptions()",
        ),
    ),
    _mutant(
        "a leader acts without a valid Lease",
        14,
        "leaders",
        (
            "sim.leader:Leader._look_at_office",
            "acting = self.candidacy.acting(now)",
            "acting = self.candidacy.term > 0",
        ),
        ("sim.office:Office._turn", "self.clock() >= self._leader.acting_until()", "False"),
        ("sim.office:Office._run", "if left_seconds <= 0:", "left_seconds = 5.0\n        if False:"),
    ),
)


@contextlib.contextmanager
def taken_out(mutant: Mutant) -> Iterator[None]:
    """Inside, the real code runs without that rule."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for change in mutant.changes:
            undo += _changed(change)
        yield
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


def _changed(change: Change) -> list[tuple[Any, str, Any]]:
    module_name, _, path = change.where.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    found = getattr(owner, name)
    source = getattr(found, "mutated_source", "") or textwrap.dedent(inspect.getsource(found))
    if source.count(change.old) != 1:
        raise ValueError(f"{change.where}: {change.old!r} stands there {source.count(change.old)} times, not once")
    source = source.replace(change.old, change.new)
    made: dict[str, Any] = {}
    code = compile(source, f"<{change.where} without a rule>", "exec", features.annotations.compiler_flag)
    exec(code, found.__globals__, made)
    made[name].mutated_source = source
    # Whoever has imported it by name has it under that name.
    owners = [owner] if outer else [each for each in list(sys.modules.values()) if getattr(each, name, None) is found]
    for each in owners:
        setattr(each, name, made[name])
    return [(each, name, found) for each in owners]
