"""The end of a certificate is told: before it comes, once more when it has come, and with the command that helps.

The certificates are valid now, as TLS has it; only the wall clock that the notice reads is moved to their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from freezegun import freeze_time

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import EVENTS
from pp_hostd.model.moment import render_moment
from pp_hostd.service.expiry import ExpiryNotice
from pp_hostd.service.journal import Journal
from tests.harness.cluster import write_kubeconfig
from tests.harness.embedded import EmbeddedCluster

DAY, YEAR = timedelta(days=1), timedelta(days=365)
AGENT = "system:node:worker-1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start() as cluster:
        yield cluster


@pytest.fixture
def journal(capfd: pytest.CaptureFixture[str]) -> Iterator[Journal]:
    """It goes to stderr, which `capfd` takes."""
    assert capfd is not None
    with closing(Journal(path="/nonexistent")) as journal:
        yield journal


def client_of(cluster: EmbeddedCluster, directory: Path, lasts: timedelta) -> ApiClient:
    """With a certificate that the cluster has just signed."""
    issued = cluster.authority.issue(AGENT, ["system:nodes"], valid_seconds=lasts.total_seconds(), starts_seconds_ago=0)
    authority = cluster.authority.certificate_pem
    path = write_kubeconfig(directory / "kubeconfig", cluster.server, authority, certificate=issued)
    return ApiClient(load(str(path)), deadline_seconds=20)


def end_of(client: ApiClient) -> datetime:
    assert client.certificate is not None
    return client.certificate.ends


async def events(cluster: EmbeddedCluster, message: str) -> list[Json]:
    with closing(ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=20)) as administrator:
        page = await administrator.list(EVENTS, namespace="default")
    return [each for each in page.items if each["message"].endswith(f": {message}")]


async def test_a_certificate_that_ends_in_a_month_is_told_once_a_day_with_what_to_do(
    cluster: EmbeddedCluster, tmp_path: Path, journal: Journal, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(client_of(cluster, tmp_path, YEAR)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal)
        first = end_of(client) - 29 * DAY
        said = f"the client certificate of {AGENT} ends at {notice.ends}, and its renewal has not come; "
        said += "an administrator renews it with `pp-leader enroll worker-1`"
        with freeze_time(first, real_asyncio=True) as wall_clock:
            for _ in range(2):
                await notice.look()
                await notice.look()
                assert notice.sentence == said
                assert capfd.readouterr().err == f"<4>{said}\n"
                wall_clock.tick(DAY)
    [event] = await events(cluster, said)
    assert (event["type"], event["firstTimestamp"]) == ("Warning", render_moment(first))


@pytest.mark.parametrize(("lasts", "left"), [(YEAR, 31 * DAY), (DAY, 0.2 * DAY)])
async def test_a_certificate_whose_end_is_far_is_shown_and_not_told(
    cluster: EmbeddedCluster,
    tmp_path: Path,
    journal: Journal,
    capfd: pytest.CaptureFixture[str],
    lasts: timedelta,
    left: timedelta,
) -> None:
    with closing(client_of(cluster, tmp_path, lasts)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal)
        with freeze_time(end_of(client) - left, real_asyncio=True):
            await notice.look()
            assert notice.sentence == capfd.readouterr().err == ""
        (metric,) = notice.metrics("pp_hostd_certificate_expiry_timestamp_seconds")
        assert metric.name == "pp_hostd_certificate_expiry_timestamp_seconds"
        assert metric.samples == [({}, end_of(client).timestamp())]


async def test_a_certificate_that_has_ended_under_a_running_daemon_is_told_once_more(
    cluster: EmbeddedCluster, tmp_path: Path, journal: Journal, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(client_of(cluster, tmp_path, 10 * DAY)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal)
        with freeze_time(end_of(client) - DAY, real_asyncio=True) as wall_clock:
            await notice.look()
            for _ in range(2):
                wall_clock.tick(DAY)
                await notice.look()
    first, second = capfd.readouterr().err.splitlines()
    assert " ends at " in first
    assert second.startswith(f"<3>the client certificate of {AGENT} ended at ")
