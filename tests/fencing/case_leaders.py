"""A leader dies at a write of a flow: the other one goes on with the same method, and with the same Job.

Some of its writes; `crashes` has them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fencing.mortal import MortalSite, MortalSiteOfJobs
from tests.scenarios.accidents import Accident, Moment

SOME = (
    (MortalSite, Accident("DELETE pods", Moment.UNANSWERED)),
    (MortalSiteOfJobs, Accident("POST jobs off", Moment.UNANSWERED)),
)


@pytest.mark.parametrize(("kind", "accident"), SOME, ids=[f"{kind.executor}: {each}" for kind, each in SOME])
def test_a_flow_ends_well_whatever_befalls_the_leader(
    kind: type[MortalSite], accident: Accident, tmp_path: Path
) -> None:
    with kind.of(tmp_path) as site:
        site.survive(accident)
