"""Leaders killed at every write of a remediation, or without news of its success: it ends well.

By hand, or by .ci/nightly: python -m tests.scenarios.crashes
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.harness.embedded import EmbeddedCluster
from tests.scenarios.accidents import Accident, Moment, Write
from tests.scenarios.stage import now
from tests.scenarios.trial import Scheme, Trial

KEEPING = (Write.MARK_FREEING, Write.UNCORDON)
TABLE = {
    Scheme("openshift", "node-delete"): [write for write in Write if write not in KEEPING],
    Scheme("node", "node-delete"): [Write.CORDON, Write.CONDEMN, Write.RECREATE],
    Scheme("cluster-api", "resources"): [Write.DELETE_POD, Write.CLEAR, *KEEPING],
}
"""At which writes accidents happen: all of the first scheme, and of the others those that differ."""
TRIALS_AT_ONCE = 3


def survive(scheme: Scheme, accidents: Sequence[Accident]) -> None:
    """All of them in one trial, in a process of its own: agents and leaders wait for what that has in between."""
    with EmbeddedCluster.start() as cluster, Trial.on(cluster, scheme) as trial:
        for accident in accidents:
            print(f"{trial.survive(accident):5.1f} s: {scheme}: {accident}", flush=True)


def main() -> int:
    since_at, count = now(), 0
    for scheme, writes in TABLE.items():
        accidents = [Accident(write, moment) for write in writes for moment in Moment]
        count += len(accidents)
        with ProcessPoolExecutor(TRIALS_AT_ONCE) as processes:
            shares = [accidents[first::TRIALS_AT_ONCE] for first in range(TRIALS_AT_ONCE)]
            for trial in [processes.submit(survive, scheme, share) for share in shares]:
                trial.result()
    print(f"{count} accidents in {now() - since_at:.0f} s: each time one reset, nothing done twice, and nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
