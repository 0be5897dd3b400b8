"""A leader may die, or miss an answer, at any write: another one finishes, nothing happens twice, nothing is lost.

Some accidents, on a real control plane; `crashes` has them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.cluster import Cluster
from tests.scenarios.accidents import Accident, Moment, Write
from tests.scenarios.trial import Scheme, Trial

SOME = (
    Accident(Write.SPEND_BUDGET, Moment.UNANSWERED),
    Accident(Write.CONDEMN, Moment.UNANSWERED),
    Accident(Write.STORE_BACKUP, Moment.ANSWERED),
    Accident(Write.DELETE_NODE, Moment.LOST),
    Accident(Write.DELETE_POD, Moment.UNANSWERED),
    Accident(Write.RECREATE, Moment.BEFORE),
    Accident(Write.CLEAR, Moment.LOST),
    Accident(Write.NOTE_REQUEST, Moment.UNANSWERED),
)


@pytest.fixture(scope="module")
def trial(real_cluster: Cluster) -> Iterator[Trial]:
    with Trial.on(real_cluster, Scheme("openshift", "node-delete")) as trial:
        yield trial


@pytest.mark.parametrize("accident", SOME, ids=str)
def test_a_remediation_ends_well_whatever_befalls_the_leader(trial: Trial, accident: Accident) -> None:
    trial.survive(accident)
