"""Facts of Nodes, and how health checks and thresholds speak of them: selectors, limits, durations, ages."""
