"""Power cycles with real BMCs, as far as software goes: IPMI, an operator, a host that is a group of processes."""
