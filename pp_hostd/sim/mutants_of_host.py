"""The rules on the host, each taken out by name."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

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
        ("sim.objects:Objects.read", "self._client.api.found", "self._client.api.found_in_cache"),
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
            "last_id)\n    return self._remembered(subject, uid, now)",
            "last_id)\n    return self._remembered(subject, uid, now if isinstance(condemnation, Condemned) else None)",
        ),
        ("agent.witness:Witness._remembered", "if memory is None:", "if memory is None or now is None:"),
    ),
    mutant(
        "a promise is written whatever the Node has become",
        5,
        "marked",
        ("sim.objects:Objects.write", '{"uid": node.uid, "resourceVersion": node.resource_version}', "{}"),
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
