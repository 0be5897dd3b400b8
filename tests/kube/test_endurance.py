"""10,000 exchanges that go wrong in every way there is leave nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys

from pp_hostd.kube.kubeconfig import Kubeconfig
from tests.harness.trouble import ROOT, TroubleServer
from tests.kube.test_trouble import MAY_BE_DONE, NEVER_LEAVES, REFUSED

WARM_UP, EXCHANGES = 1_000, 10_000
SMALL_BYTES = 3 * 1024 * 1024
"""A leak of 300 bytes an exchange would show. The allocator's own ups and downs were seen to stay below 1 MB."""
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
    command = [sys.executable, "-m", "tests.kube.endurance", kubeconfig.path, str(WARM_UP), str(EXCHANGES), *turns]
    warm, done = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    print(warm, done)
    assert sum(done["outcomes"].values()) == EXCHANGES
    assert done["rss_bytes"] - warm["rss_bytes"] < SMALL_BYTES
    assert (done["descriptors"], done["tasks"], done["threads"]) == (warm["descriptors"], 1, 1)
