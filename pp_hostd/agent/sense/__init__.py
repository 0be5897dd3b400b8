"""What the agent finds out: about its machine, its peers, its links and its boot."""
