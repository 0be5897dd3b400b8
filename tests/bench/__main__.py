"""`make bench [ONLY=name]`: measure, print one line a figure, exit 1 if a target is missed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Callable

from tests.bench import agent, latency, memory, peer_port, startup, watching
from tests.bench.figure import Figure

BENCHES: dict[str, Callable[[], Iterable[Figure]]] = {
    "help": startup.help_cpu,
    "memory": memory.client_memory,
    "get": latency.get_overhead,
    "watch": watching.watch_memory,
    "peers": peer_port.peer_port,
    "agent": agent.weight,
    "costs": agent.running_costs,
    "reaction": agent.reaction,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"bench: there is no {', '.join(unknown)}; there are: {', '.join(BENCHES)}\n")
        return 2
    missed = 0
    for name in names or BENCHES:
        for figure in BENCHES[name]():
            print(figure.line(), flush=True)
            missed += not figure.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
