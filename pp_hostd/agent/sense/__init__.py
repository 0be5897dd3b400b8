"""The agent's senses: how it finds out about its machine, its peers, its links and its boot."""
