"""A test bed: hosts as namespaces on a network that can be cut, in front of any cluster of the harness.

Processes, all in one user namespace in which nothing has rights over the machine, each gone with its parent:

    supervise.py      keeps the leash, as for every cluster
      switch.py       the wires: a bridge, a veth per host; boots hosts
        relay.py      what hosts see at the API servers' addresses; it alone stays in the machine's network
        machine.py    one per boot of a host: its power, its watchdog
          init.py     process 1 of that host: plays systemd for the agent, the gate and the kubelet

Tests use `Bed` (bed.py) and `Host` (host.py), which ask those processes over Unix sockets and read their records.
"""
