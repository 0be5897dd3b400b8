"""Fence agents: programs of the packages fence-agents-* that switch other hosts off and on, run beside the leader."""
