"""The acts of the agent: on its watchdog, its gate, its host and its own process."""
