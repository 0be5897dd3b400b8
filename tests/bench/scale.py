"""`python -m tests.bench.scale`: how traffic grows from 50 over 500 to 5,000 nodes, as tables, JSON or a plot."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Callable

from pp_hostd.sim.scale.run import CASES, OUTAGE, Figures, run
from tests.bench.scale_plot import Line, Panel, plot

SIZES = (50, 500, 5000)
LEAST_NODES = 4
MEGA = 1e6
JURY = "outage, with a jury"
COLOURS = {"rack": "#1b7837", "outage": "#c51b7d", "split": "#2166ac", JURY: "#c51b7d"}
_Figure = Callable[[Figures], "float | None"]
ROWS: tuple[tuple[str, _Figure], ...] = (
    ("requests that the API carries out, /s, peak", lambda found: found.served.peak),
    ("the same, mean", lambda found: found.served.mean),
    ("requests that reach it while it is down, /s, peak", lambda found: found.unserved.peak),
    ("peer messages, /s, peak", lambda found: found.peer.peak),
    ("the same, mean", lambda found: found.peer.mean),
    ("peer messages per node, /s, peak", lambda found: found.peer.peak / found.nodes),
    ("the same, mean", lambda found: found.peer.mean / found.nodes),
    ("MB/s in all, peak", lambda found: found.bytes.peak / MEGA),
    ("the same, mean", lambda found: found.bytes.mean / MEGA),
    ("kB/s per node, peak", lambda found: found.bytes.peak / found.nodes / 1000),
    ("leader: plans", lambda found: found.leader.plans),
    ("leader: longest plan, ms", lambda found: found.leader.longest_ms),
    ("leader: writes", lambda found: found.leader.writes),
    ("leader: questions to peers", lambda found: found.leader.questions),
    ("last node freed, s after the loss", lambda found: found.freed_seconds),
    ("everybody well, s after the end", lambda found: found.recovery_seconds),
    ("resets", lambda found: found.resets),
    ("needless resets", lambda found: found.needless_resets),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES, help="the sizes (default: 50 500 5000)")
    parser.add_argument("--seed", type=int, default=1, help="what chance does (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per case and size")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the plot there, as SVG")
    given = parser.parse_args(arguments)
    if min(given.nodes) < LEAST_NODES:
        parser.error(f"--nodes: at least {LEAST_NODES}, three for leaders and one to lose")
    everything: list[Figures] = []
    for same_case in _cases(given.nodes, given.seed):
        everything += same_case
        print(_json(same_case) if given.json else table(same_case), flush=True)
    if given.plot is not None:
        given.plot.write_text(plot(_panels(everything)))
    return 1 if any(found.needless_resets for found in everything) else 0


def _cases(sizes: Sequence[int], seed: int) -> Iterator[list[Figures]]:
    for case in CASES:
        yield [run(case, nodes, seed) for nodes in sizes]
    yield [replace(run(OUTAGE, nodes, seed, with_jury=True), case=JURY) for nodes in sizes]


def _json(same_case: list[Figures]) -> str:
    return "\n".join(json.dumps(asdict(found)) for found in same_case)


def table(same_case: list[Figures]) -> str:
    """All figures of a case, in Markdown. The last column tells by which power of n a figure grew last."""
    head = [same_case[0].case, *(f"{found.nodes:,} nodes" for found in same_case), "grows like"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name, value in ROWS:
        values = [value(found) for found in same_case]
        rows.append([name, *map(_number, values), _growth(same_case, values)])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def _growth(same_case: list[Figures], values: list[float | None]) -> str:
    if len(values) < 2 or not values[-2] or not values[-1]:
        return ""
    return f"n^{math.log(values[-1] / values[-2]) / math.log(same_case[-1].nodes / same_case[-2].nodes):.1f}"


def _panels(everything: list[Figures]) -> list[Panel]:
    def panel(title: str, value: Callable[[Figures], float], ideal: Callable[[float], float]) -> Panel:
        lines = [
            Line(case, colour, case == JURY, [(each.nodes, value(each)) for each in everything if each.case == case])
            for case, colour in COLOURS.items()
        ]
        outage = next(line.points for line in lines if line.name == OUTAGE.name)
        scale = outage[0][1] / ideal(outage[0][0])
        limit = Line("n log n", "#bbbbbb", False, [(nodes, scale * ideal(nodes)) for nodes, _ in outage], width=6)
        return Panel(title, [limit, *lines])

    return [
        panel("peer messages in the cluster, per second", lambda found: found.peer.peak, lambda n: n * math.log(n)),
        panel("API requests, carried out or not, per second", _requests, lambda n: n * math.log(n)),
        panel("bytes per node and second", lambda found: found.bytes.peak / found.nodes, math.log),
    ]


def _requests(found: Figures) -> float:
    return max(found.served.peak, found.unserved.peak)


if __name__ == "__main__":
    sys.exit(main())
