"""Node fences: thresholds, the automaton, its methods, and what may be freed."""
