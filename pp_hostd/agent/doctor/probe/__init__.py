"""From the host and its cluster to facts: each looks at one thing, changes nothing, and decides nothing."""
