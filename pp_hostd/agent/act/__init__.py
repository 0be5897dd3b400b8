"""What the agent does: to its Node, its watchdog, its gate and its host."""
