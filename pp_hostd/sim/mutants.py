"""The safety rules, each taken out by name. One that can be without a violation is not needed, or not tested."""

from __future__ import annotations

from pp_hostd.sim.mutant import Mutant
from pp_hostd.sim.mutants_of_host import MUTANTS_OF_HOST
from pp_hostd.sim.mutants_of_leader import MUTANTS_OF_LEADER
from pp_hostd.sim.mutants_of_power import MUTANTS_OF_POWER

MUTANTS = (*MUTANTS_OF_HOST, *MUTANTS_OF_LEADER, *MUTANTS_OF_POWER)


def mutant_called(name: str) -> Mutant:
    (found,) = [mutant for mutant in MUTANTS if mutant.name == name]
    return found
