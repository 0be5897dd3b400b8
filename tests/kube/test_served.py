"""A kind that a cluster serves in one of several versions: the one that is served is found, and tried first after."""

from __future__ import annotations

import asyncio

import pytest

from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import CLUSTERS, NODES, Resource
from pp_hostd.kube.served import ServedVersion

NEW, OLD = CLUSTERS[0], CLUSTERS[-1]
UNSERVED = ApiError(Outcome.NOT_FOUND, "no such path")
MISSING = ApiError(Outcome.NOT_FOUND, "no such object", reason="NotFound")
REFUSED = ApiError(Outcome.FORBIDDEN, "not allowed")


class Cluster:
    """Serves one of the versions; of an object of that one it raises `error`, if there is one."""

    def __init__(self, serves: Resource, error: ApiError | None = None) -> None:
        self.serves, self.error = serves, error
        self.tried: list[Resource] = []

    async def call(self, kind: Resource) -> Resource:
        self.tried.append(kind)
        if kind is not self.serves:
            raise UNSERVED
        if self.error is not None:
            raise self.error
        return kind


def test_the_version_that_is_served_answers_and_is_tried_first_from_then_on() -> None:
    version, cluster = ServedVersion((NEW, OLD)), Cluster(OLD)
    assert asyncio.run(version.exchange(cluster.call)) is OLD
    assert asyncio.run(version.exchange(cluster.call)) is OLD
    assert cluster.tried == [NEW, OLD, OLD]


def test_a_cluster_that_changes_its_version_is_followed() -> None:
    version, cluster = ServedVersion((NEW, OLD)), Cluster(OLD)
    asyncio.run(version.exchange(cluster.call))
    cluster.serves = NEW
    assert asyncio.run(version.exchange(cluster.call)) is NEW
    assert version.first is NEW


@pytest.mark.parametrize("error", [MISSING, REFUSED], ids=["missing", "refused"])
def test_what_the_served_version_answers_counts_and_no_other_one_is_tried(error: ApiError) -> None:
    version, cluster = ServedVersion((NEW, OLD)), Cluster(NEW, error)
    with pytest.raises(ApiError) as raised:
        asyncio.run(version.exchange(cluster.call))
    assert raised.value is error
    assert (cluster.tried, version.first) == ([NEW], NEW)


def test_a_kind_that_is_served_in_no_version_is_unserved() -> None:
    version, cluster = ServedVersion((NEW, OLD)), Cluster(NODES)
    with pytest.raises(ApiError) as raised:
        asyncio.run(version.exchange(cluster.call))
    assert raised.value is UNSERVED and cluster.tried == [NEW, OLD]


def test_of_several_exchanges_at_once_the_first_turns() -> None:
    version = ServedVersion((NEW, OLD))
    assert version.note(UNSERVED, NEW) and version.note(UNSERVED, NEW)
    assert version.first is OLD
