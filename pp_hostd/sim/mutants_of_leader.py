"""The rules on the leader, each taken out by name."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

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
            "leader.steps.node_patches:cordon",
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
            "leader.plan.electorates:Electorates.of",
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
            "leader.remedies.poison_pill.certainty:refusal",
            "elif isinstance(record, Withdrawn):",
            "elif isinstance(record, Withdrawn):\n        return ''\n    elif False:",
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
        ("leader.plan.freeing:deleted", "if stored is None or stored.backup != backup:", "if False:"),
    ),
    mutant(
        "a Node comes back without its labels",
        12,
        "isolated",
        (
            "leader.steps.node_patches:recreated",
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
            "Term(own_node, clock())",
            "Term(own_node, clock(), {name: __import__('dataclasses').replace(memory, left=None) "
            "for name, memory in actuators._leader.told.get('', {}).items()})",
        ),
        (
            "leader.driver:Driver.turn",
            "self.term, self.next_actions = planned.term, planned.next_actions",
            "self.term, self.next_actions = planned.term, planned.next_actions; "
            "self._actuators._leader.told[''] = planned.term.memories",
        ),
        (
            "leader.remedies.poison_pill.memory:sighted",
            "pill.stretch == seen.stretch",
            "getattr(seen.machine.condemnation, 'id', 0) == pill.id",
        ),
        ("leader.remedies.poison_pill.memory:unbroken", "pill.stated == stretch", "True"),
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
        ("sim.leader_term:LeaderTerm._turn", "self.clock() >= self._leader.acting_until()", "False"),
        ("leader.steps.port:Port.send", "if left_seconds <= 0:", "left_seconds = 5.0\n    if False:"),
    ),
)
