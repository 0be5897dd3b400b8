"""Leaders killed at every write of a node fence: another one goes on, and it ends well.

By hand, or by .ci/nightly: python -m tests.fencing.crashes
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fencing.mortal import MortalSite, MortalSiteOfJobs
from tests.scenarios.accidents import Accident, Moment
from tests.scenarios.stage import now

MOMENTS = (Moment.BEFORE, Moment.UNANSWERED)
TRIALS_AT_ONCE = 3


def survive(kind: type[MortalSite], accidents: Sequence[Accident | None]) -> list[str]:
    """All of them on one site, in a process of its own. Returns the writes of the last flow."""
    written: list[str] = []
    with tempfile.TemporaryDirectory() as directory, kind.of(Path(directory)) as site:
        for accident in accidents:
            since_at = now()
            written = site.survive(accident)
            print(f"{now() - since_at:5.1f} s: executor={kind.executor}: {accident or 'no accident'}", flush=True)
    return written


def main() -> int:
    since_at, known, count = now(), set[str](), 0
    with ProcessPoolExecutor(TRIALS_AT_ONCE) as processes:
        kinds = (MortalSite, MortalSiteOfJobs)
        for kind, written in zip(kinds, processes.map(survive, kinds, [(None,)] * len(kinds))):
            writes = [write for write in written if write not in known]  # of Jobs, those that differ
            known.update(writes)
            accidents = [Accident(write, moment) for write in writes for moment in MOMENTS]
            count += len(accidents)
            shares = [accidents[first::TRIALS_AT_ONCE] for first in range(TRIALS_AT_ONCE)]
            for trial in [processes.submit(survive, kind, share) for share in shares if share]:
                trial.result()
    print(
        f"{count} accidents at {len(known)} writes in {now() - since_at:.0f} s: each flow was finished, and freed once"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
