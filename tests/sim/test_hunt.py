"""A mutant is caught by a schedule that breaks without the rule, and with it holds."""

from __future__ import annotations

from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.hunt import hunt
from pp_hostd.sim.mutant import Change, Mutant, taken_out
from pp_hostd.sim.mutants import MUTANTS
from pp_hostd.sim.run import CRASH, run

ARENA = Arena(Settings(), most_nodes=4)
WITHOUT_GATE = next(mutant for mutant in MUTANTS if mutant.name == "the kubelet does not wait for the gate")
CRASHING = Mutant(
    "a defect", 0, "", (Change("pp_hostd.sim.host:Host.open_gate", "boot.gate = Gate.OPEN", "boot.frob"),)
)


def test_a_mutant_is_caught_with_a_schedule_that_is_no_longer_than_its_seeds() -> None:
    hunted = hunt(WITHOUT_GATE, ARENA, range(3, 40))
    assert hunted.seed is not None
    assert hunted.seed == 3 + hunted.schedules - 1
    assert hunted.outcome is not None
    assert hunted.outcome.kind == "two copies"
    assert len(hunted.outcome.schedule.troubles) <= len(ARENA.schedule(hunted.seed).troubles)
    assert run(hunted.outcome.schedule, ARENA.settings).violation == ""


def test_nobody_is_caught_who_has_taken_nothing_out() -> None:
    hunted = hunt(Mutant("nothing", 0, "", ()), ARENA, range(3, 6))
    assert (hunted.schedules, hunted.seed, hunted.outcome) == (3, None, None)


def test_a_defect_is_a_violation_with_its_place_but_no_proof_that_a_rule_is_needed() -> None:
    with taken_out(CRASHING):
        outcome = ARENA.play(3)
    assert outcome.kind == CRASH
    assert outcome.violation.startswith("crash: AttributeError in open_gate, line ")
    assert hunt(CRASHING, ARENA, range(3, 5)).outcome is None


def test_what_is_broken_with_the_rule_too_is_not_the_mutants_doing() -> None:
    caught = hunt(WITHOUT_GATE, ARENA, range(3, 40), most_runs=0).seed
    assert caught is not None
    with taken_out(WITHOUT_GATE):
        assert hunt(Mutant("nothing", 0, "", ()), ARENA, range(caught, caught + 1)).outcome is None
