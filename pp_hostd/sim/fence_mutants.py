"""The safety rules of node fences, each taken out by name: a day that has a name is about each of them."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

_FENCE = "leader.remedies.node_fence."
_STATUS_AFTER = "        reply = await call(STATUS)\n        power = power_of(reply)\n    if power is"
_UNCONTRADICTED = (
    (f"{_FENCE}evidence:contradiction", "part, seen = view.memory.part(FenceMemory), view.seen", 'return ""'),
    ("leader.steps.workloads:FreeWorkloads._is_back", "if self.boot and reported != self.boot:", "if False:"),
)

ACCEPTED_IS_OFF = mutant(
    "an off that was accepted is a proof",
    11,
    "",
    (f"{_FENCE}steps:RunAgent.run", _STATUS_AFTER, "        power = wanted\n    if power is"),
)

UNKNOWN_IS_OFF = mutant(
    "a fence agent that has failed, or can't tell, has switched the host off",
    11,
    "",
    (f"{_FENCE}steps:RunAgent.run", "if not is_done(reply):", "if False:"),
    (
        f"{_FENCE}steps:RunAgent.run",
        _STATUS_AFTER,
        "        power = power_of(await call(STATUS))\n"
        "        power = wanted if power is Power.UNKNOWN else power\n"
        "    if power is",
    ),
)

KUBELET_IS_LOUD = mutant(
    "the kubelet of a host that is off by its BMC need not be silent",
    11,
    "",
    (f"{_FENCE}evidence:freed", "_silent(view, part, proof) if is_dead else None", "None"),
)

UNCONTRADICTED = mutant(
    "another boot, or a sign of life, does not contradict an off",
    12,
    "",
    *_UNCONTRADICTED,
)

ON_BEFORE_FREED = mutant(
    "a host is switched on before its workloads are freed",
    12,
    "",
    *_UNCONTRADICTED,
    (
        f"{_FENCE}steps:RunAgent.run",
        "        proof = Proof(method.fences, began_at, sentence, method.storage)",
        "        proof = Proof(method.fences, began_at, sentence, method.storage)\n        await call(ON)",
    ),
)

STORAGE_FREES_ALL = mutant(
    "storage that is cut off frees all pods",
    12,
    "",
    ("leader.steps.workloads:FreeWorkloads._workloads", "if self.freeing is Freeing.STORAGE:", "if False:"),
)

PORT_FREES = mutant(
    "an agent that fences nothing frees workloads",
    11,
    "",
    (f"{_FENCE}steps:RunAgent.run", "and method.fences is not Fences.NONE", ""),
    (f"{_FENCE}steps:RunAgent.run", "Proof(method.fences,", "Proof(Fences.POWER,"),
)

CORDON_FREES = mutant(
    "a cordon frees workloads",
    11,
    "",
    (
        f"{_FENCE}running:_built_in",
        '    return _ended(flow, running, "")',
        '    return _on_proof(flow, running, Proof(Fences.POWER, flow.part.looked_at, "it is cordoned"), True)',
    ),
)

OLD_DUMP_FREES = mutant(
    "a kernel that has crashed in an earlier boot has crashed in this one",
    11,
    "",
    (f"{_FENCE}plan:_dump", "or heard_at < flow.part.boot_at ", ""),
)

UNFENCED_EARLY = mutant(
    "a host gets its storage back in the boot whose workloads were freed",
    12,
    "",
    (f"{_FENCE}flow:still_runs", "return seen.node.boot in seen.fenced_boots", "return False"),
)
