"""The safety rules, each taken out by name. One that can be without a violation is not needed, or not tested."""

from __future__ import annotations

from pp_hostd.sim.mutants_of_host import MUTANTS_OF_HOST
from pp_hostd.sim.mutants_of_leader import MUTANTS_OF_LEADER

MUTANTS = (*MUTANTS_OF_HOST, *MUTANTS_OF_LEADER)
