"""The safety rules of node fences, each taken out by name, as those of the other flows are."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

_FENCE = "leader.remedies.node_fence."
_STATUS_AFTER = "        reply = await call(STATUS)\n        power = power_of(reply)\n    if power is"
_UNCOMPARED = (
    (f"{_FENCE}evidence:contradiction", "seen.node.boot != fence.progress.boot", "False"),
    ("leader.steps.workloads:FreeWorkloads._is_back", "if self.boot and reported != self.boot:", "if False:"),
)

MUTANTS_OF_FENCES = (
    mutant(
        "an off that was accepted is a proof",
        11,
        "fence devices fail",
        (f"{_FENCE}steps:RunAgent.run", _STATUS_AFTER, "        power = wanted\n    if power is"),
    ),
    mutant(
        "a fence agent that has failed, or can't tell, has switched the host off",
        11,
        "fence devices fail",
        (f"{_FENCE}steps:RunAgent.run", "if not is_done(reply):", "if False:"),
        (
            f"{_FENCE}steps:RunAgent.run",
            _STATUS_AFTER,
            "        power = power_of(await call(STATUS))\n"
            "        power = wanted if power is Power.UNKNOWN else power\n"
            "    if power is",
        ),
    ),
    mutant(
        "the kubelet of a host that is off by its BMC need not be silent",
        11,
        "wrong plugs",
        (f"{_FENCE}evidence:freed", "_silent(view, part, proof) if is_dead else None", "None"),
    ),
    mutant("the boot that was fenced is not compared", 12, "a button is pressed", *_UNCOMPARED),
    mutant(
        "a host is switched on before its workloads are freed",
        12,
        "leaders change in a fence",
        *_UNCOMPARED,
        (
            f"{_FENCE}steps:RunAgent.run",
            "        proof = Proof(method.fences, began_at, sentence, method.storage)",
            "        proof = Proof(method.fences, began_at, sentence, method.storage)\n        await call(ON)",
        ),
    ),
    mutant(
        "storage that is cut off frees all pods",
        12,
        "fenced storage",
        ("leader.steps.workloads:FreeWorkloads._workloads", "if self.freeing is Freeing.STORAGE:", "if False:"),
    ),
    mutant(
        "an agent that fences nothing frees workloads",
        11,
        "fence devices fail",
        (f"{_FENCE}steps:RunAgent.run", "and method.fences is not Fences.NONE", ""),
        (f"{_FENCE}steps:RunAgent.run", "Proof(method.fences,", "Proof(Fences.POWER,"),
    ),
    mutant(
        "a cordon frees workloads",
        11,
        "fence devices fail",
        (
            f"{_FENCE}running:_built_in",
            '    return _ended(flow, running, "")',
            '    return _on_proof(flow, running, Proof(Fences.POWER, flow.part.looked_at, "it is cordoned"), True)',
        ),
    ),
    mutant(
        "a host gets its storage back in the boot whose workloads were freed",
        12,
        "fenced storage",
        (f"{_FENCE}flow:still_runs", 'return seen.fenced_boot != "" and', "return False and"),
    ),
)
