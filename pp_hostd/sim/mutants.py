"""The safety rules, each taken out by name. One that can be without a violation is not needed, or not tested."""

from __future__ import annotations

from pp_hostd.sim.mutant import Mutant, mutant

MUTANTS_OF_HOST = (
    mutant(
        "a proof counts from when the answer came",
        1,
        "",
        ("agent.judge:_after_read", "_by_read(memory, read.began_at)", "_by_read(memory, read.ended_at)"),
    ),
    mutant(
        "a cached read is a proof",
        1,
        "",
        ("sim.agent_port:AgentApi.get", "self._client.api.found", "self._client.api.found_in_cache"),
    ),
    mutant(
        "a peer's word counts from when it came",
        1,
        "",
        (
            "agent.judge:_after_answers",
            "Proof(each.began_at, Source.PEER, each.peer)",
            "Proof(each.ended_at, Source.PEER, each.peer)",
        ),
    ),
    mutant(
        "another machine of the same name is a proof",
        1,
        "replaced",
        ("agent.judge:_after_read", "standing.machine_uid not in (None, read.machine.uid)", "False"),
    ),
    mutant(
        "the watchdog is fed whatever the judgement",
        2,
        "isolated",
        ("agent.driver:Driver.turn", "elif verdict.feed:", "else:"),
        ("agent.driver:Driver.turn", "if verdict.reset is not None:", "if verdict.reset and verdict.reset.id:"),
    ),
    mutant(
        "the wait is T + W",
        2,
        "isolated",
        ("leader.remedies.poison_pill.memory:wait_seconds", "2 * promise.watchdog", "promise.watchdog"),
    ),
    mutant(
        "half of the nodes are enough for an outage",
        3,
        "divided",
        (
            "model.inquiry:is_outage",
            "2 * len(cut_off.intersection(nodes)) > ",
            "2 * len(cut_off.intersection(nodes)) >= ",
        ),
    ),
    mutant(
        "an outage is dated by its end",
        3,
        "outage",
        ("agent.judge:_inquired", "Proof(inquiry.started_at, Source.OUTAGE", "Proof(now, Source.OUTAGE"),
    ),
    mutant("a host does not count itself", 3, "outage", ("model.inquiry:is_outage", "{host, *(", "{*(")),
    mutant(
        "peers do not remember",
        4,
        "deaf",
        (
            "agent.witness:Witness.answer",
            "last_id)\n    return self._remembered(machine_key, uid, now)",
            "last_id)\n    now = now if isinstance(condemnation, Condemned) else None\n"
            "    return self._remembered(machine_key, uid, now)",
        ),
        ("agent.witness:Witness._remembered", "if memory is None:", "if memory is None or now is None:"),
    ),
    mutant(
        "a promise is written whatever the Node has become",
        5,
        "marked",
        ("agent.sense.api:_patch", '{"uid": node.uid, "resourceVersion": node.resource_version}', "{}"),
    ),
    mutant(
        "a host disarms before it withdraws",
        5,
        "stopped",
        (
            "agent.plan:_leave",
            "    if commitments.look is None and (\n",
            "    if commitments.watchdog is not None:\n"
            "        return Disarm() if now >= commitments.not_before_at else Wait(reason)\n"
            "    if commitments.look is None and (\n",
        ),
    ),
    mutant(
        "a longer T is used before it is stored",
        5,
        "upgraded",
        ("agent.binding:standing", "*(promise.self_timeout_seconds for promise in promises)", ""),
    ),
    mutant(
        "a host asks by the newest roster, not by the one that it has promised",
        5,
        "membership",
        (
            "agent.binding:standing",
            "if not promises and host_context.electorate is not None:",
            "if host_context.electorate is not None:",
        ),
    ),
    mutant(
        "the kubelet does not wait for the gate",
        6,
        "isolated",
        ("sim.host:Host.power_on", "self.start(self.boot)", "self.start(self.boot); self.open_gate(self.boot)"),
    ),
    mutant(
        "the gate opens before the promise is stored",
        6,
        "rough boot",
        (
            "agent.plan:_keep",
            "if wanted is not None and (commitments.stored != wanted or commitments.pending):",
            "if commitments.gate is not Gate.CLOSED and wanted is not None and "
            "(commitments.stored != wanted or commitments.pending):",
        ),
    ),
    mutant(
        "a restart forgets",
        6,
        "",
        ("sim.agent:Agent._recalled", "if boot.run else None", "if False else None"),
    ),
)


MUTANTS_OF_LEADER = (
    mutant(
        "a condemnation that was put back counts as if it had never lapsed",
        9,
        "lapsing",
        (
            "leader.caches:Machines._stretched",
            'return MachineSeen(found, self._stretches, "" if before is None else before.machine.resource_version)',
            "first = self.__dict__.setdefault('first', {}); return replace(first.setdefault(_standing(found), "
            "MachineSeen(found, self._stretches, before.machine.resource_version if before else '')), machine=found)",
        ),
    ),
    mutant(
        "a Node is condemned without a taint",
        9,
        "tainted",
        (
            "leader.steps.nodes:cordon",
            "taints=_with(node, condemned_taint(condemnation_id))",
            "taints=_taints(node)",
        ),
        ("leader.remedies.poison_pill.plan:_condemned", "if not node.tainted or not", "if not"),
    ),
    mutant(
        "nobody has to acknowledge",
        10,
        "divided",
        ("leader.remedies.poison_pill.memory:counted", "2 * len(pill.tokens) >= electorate.n", "True"),
        ("leader.remedies.poison_pill.certainty:_on_promise", "if 2 * len(pill.again) < electorate.n:", "if False:"),
    ),
    mutant(
        "nobody is asked again after the wait",
        10,
        "deaf",
        ("leader.remedies.poison_pill.certainty:_on_promise", "if 2 * len(pill.again) < electorate.n:", "if False:"),
    ),
    mutant(
        "tokens are ignored",
        10,
        "deaf",
        ("leader.remedies.poison_pill.memory:_objection", "pill.tokens.get(answer.peer) != answer.token", "False"),
    ),
    mutant(
        "a third of the nodes are enough",
        10,
        "divided",
        ("leader.remedies.poison_pill.memory:counted", "2 * len(pill.tokens) >=", "3 * len(pill.tokens) >="),
        ("leader.remedies.poison_pill.certainty:_on_promise", "2 * len(pill.again) <", "3 * len(pill.again) <"),
    ),
    mutant(
        "the leader asks by the newest roster, not by the one that was promised",
        10,
        "membership",
        (
            "leader.plan.view:Electorates.of",
            "version = promise.roster_version",
            "version = getattr(getattr(self._roster, 'roster', None), 'version', promise.roster_version)",
        ),
    ),
    mutant(
        "the committed record needs no wait",
        11,
        "isolated",
        ("leader.remedies.poison_pill.certainty:_evidence", "pill.committed_at + seconds", "pill.committed_at"),
    ),
    mutant(
        "another boot is evidence",
        11,
        "tainted",
        ("leader.remedies.poison_pill.certainty:_boot_trouble", "or not overtaken(found.node)", "or True"),
        (
            "leader.remedies.poison_pill.certainty:_evidence",
            "    if _confirmed(found) and",
            "    if isinstance(record, Armed) and overtaken(found.node):\n"
            "        return Evidence('it has booted again', at_once, held=True)\n"
            "    if _confirmed(found) and",
        ),
    ),
    mutant(
        "what was stated before the condemnation is evidence",
        11,
        "tainted",
        ("leader.remedies.poison_pill.certainty:_evidence", "and not overtaken(found.node) and", "and"),
        (
            "leader.remedies.poison_pill.certainty:_nothing_started",
            "return closed.gate is GateKind.HOLD if promise is None else closed.boot != promise.boot",
            "return True",
        ),
    ),
    mutant(
        "a host that promises nothing is freed all the same",
        11,
        "stopped",
        (
            "leader.remedies.poison_pill.certainty:unbound",
            "if isinstance(record, Withdrawn):",
            "if isinstance(record, Withdrawn):\n        return None\n    if False:",
        ),
        (
            "leader.remedies.poison_pill.certainty:_on_nothing",
            "told, due_at =",
            "return _free(view, inspection, found, trouble)\n    told, due_at =",
        ),
    ),
    mutant(
        "there is no look before the deletion",
        12,
        "lagging",
        ("leader.remedies.poison_pill.certainty:_on_promise", "if inspection.began_at < over_at:", "if False:"),
        (
            "leader.remedies.poison_pill.certainty:_on_evidence",
            "if inspection.began_at < evidence.act_at:",
            "if False:",
        ),
        (
            "leader.steps.nodes:DeleteNode.run",
            "port.api.delete(NODES, name, uid=self.uid, resource_version=version)",
            "port.api.delete(NODES, name)",
        ),
    ),
    mutant(
        "the gate does not honour the marker",
        12,
        "marked",
        ("agent.plan:_obstacle", "if node.freeing is not None:", "if False:"),
    ),
    mutant(
        "no backup is stored before the deletion",
        12,
        "isolated",
        (
            "leader.plan.freeing:deleted",
            "if stored is None or stored.backup != backup or view.memory.stored != backup.id:",
            "if False:",
        ),
    ),
    mutant(
        "a Node comes back without its labels",
        12,
        "isolated",
        (
            "leader.steps.nodes:recreated",
            "node = backup.node()",
            "node = backup.node(); node['metadata']['labels'] = {}",
        ),
    ),
    mutant(
        "a leader goes on with the wait of another one, by the clock of that one's host",
        13,
        "leaders",
        (
            "leader.driver:Driver.__init__",
            "Term(own_node, clock()",
            "Term(own_node, clock(), {name: __import__('dataclasses').replace(memory, left=None) "
            "for name, memory in actuators._leader.told.get('', {}).items()}",
        ),
        (
            "leader.driver:Driver.turn",
            "self.term, self.next_actions = planned.term, planned.next_actions",
            "self.term, self.next_actions = planned.term, planned.next_actions; "
            "self._actuators._leader.told[''] = planned.term.memories",
        ),
        (
            "leader.remedies.poison_pill.memory:sighted",
            "pill.unbroken_since == seen.unbroken_since",
            "getattr(seen.machine.condemnation, 'id', 0) == pill.id",
        ),
        ("leader.remedies.poison_pill.memory:unbroken", "pill.stated == unbroken_since", "True"),
    ),
    mutant(
        "a leader acts without a valid Lease",
        14,
        "divided",
        (
            "sim.leader:Leader._look_at_term",
            "acting = self.candidacy.acting(now)",
            "acting = self.candidacy.term > 0",
        ),
        ("sim.leader:LeaderTerm._turn", "self.clock() >= self._leader.acting_until()", "False"),
        ("leader.steps.port:Port.send", "if left_seconds <= 0:", "left_seconds = 5.0\n    if False:"),
    ),
)


MUTANTS_OF_POWER = (
    mutant(
        'an "off" that was read before a pause frees workloads',
        12,
        "powered on by hand",
        (
            "leader.remedies.power_cycle.bare_metal_host:has_turned_off",
            "if before is None or before.uid != found.uid or not isinstance(found.request, PowerRequest):",
            "if not isinstance(found.request, PowerRequest):",
        ),
        (
            "leader.remedies.power_cycle.bare_metal_host:has_turned_off",
            "began_on = before.powered_on is True and not before.obstacle\n    return "
            "before.request == found.request and (began_on or before.seen_off)",
            "return True",
        ),
    ),
    mutant(
        "a request that is made while a host is off begins a second power cycle",
        16,
        "requested again",
        (
            "leader.remedies.power_cycle.plan:_asks",
            "return not booting_of(view) and (not _is_deleted(view) or _is_over(view, machine))",
            "return True",
        ),
    ),
    mutant(
        "hosts are switched off that the API needs",
        15,
        "requested",
        ("leader.plan.valves:Valves._held", "if self.leaves_no_quorum(view.name or view.machine_key):", "if False:"),
    ),
)


MUTANTS = (*MUTANTS_OF_HOST, *MUTANTS_OF_LEADER, *MUTANTS_OF_POWER)


def mutant_called(name: str) -> Mutant:
    (found,) = [mutant for mutant in MUTANTS if mutant.name == name]
    return found
