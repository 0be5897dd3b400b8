"""10,000 exchanges that go wrong in every way there is leave nothing behind."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from pp_hostd.kube.kubeconfig import Kubeconfig
from tests.harness.trouble import ROOT, TroubleServer
from tests.kube.test_trouble import MAY_BE_DONE, NEVER_LEAVES, REFUSED

LAPS, EXCHANGES = 6, 2_000
"""The first lap warms up."""
LEAK_LIMITS = {"malloc_bytes": 30, "python_blocks": 0.1}
"""An exchange, of what is in use. Lost memory grows by as much in every lap; a cache that was filled once does not."""
BURNERS = {"tiny chunks", "endless 1xx"}
"""Keep the client's CPU busy until the deadline; amid 200 others they would only make everything else time out."""
RARE = ["100 MB in chunks", "100 MB until closed", "deep nesting"]
"""Megabytes each, so once in a few hundred exchanges is enough."""


def test_ten_thousand_failures_leave_no_memory_descriptor_task_or_thread_behind(
    trouble: TroubleServer, kubeconfig: Kubeconfig
) -> None:
    urls = {behaviour: trouble.listen(behaviour).url for behaviour in [*NEVER_LEAVES, *MAY_BE_DONE, *REFUSED, "good"]}
    urls |= {kind: trouble.listen("good", certificate=kind).url for kind in ("expired", "foreign", "for another name")}
    # A handshake costs as much as ten failures before it, so those come more often: the whole is to take seconds.
    often = [*(name for name in urls if name not in {*BURNERS, *RARE}), *[*NEVER_LEAVES] * 4]
    turns = [urls[behaviour] for behaviour in [*often, *often, *often, *often, *RARE]]
    command = [sys.executable, "-m", "tests.kube.endurance", kubeconfig.path, str(LAPS), str(EXCHANGES), *turns]
    warm, *laps = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    for lap in laps:
        assert sum(lap["outcomes"].values()) == EXCHANGES
        assert (lap["descriptors"], lap["tasks"], lap["threads"]) == (warm["descriptors"], 1, 1)
    for kind, limit in LEAK_LIMITS.items():
        grown = [after[kind] - before[kind] for before, after in zip([warm, *laps], laps)]
        assert statistics.median(grown) < limit * EXCHANGES, f"{kind}: {grown}"
