"""The end of a certificate is told: before it comes, once more when it has come, and with the command that helps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import EVENTS
from pp_hostd.service.expiry import ExpiryNotice, now_wallclock
from pp_hostd.service.journal import Journal
from tests.harness.cluster import write_kubeconfig
from tests.harness.embedded import EmbeddedCluster

DAY = 86400.0
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


def client_whose_certificate(cluster: EmbeddedCluster, directory: Path, *, lasts: float, ends_in: float) -> ApiClient:
    started = lasts - ends_in
    issued = cluster.authority.issue(AGENT, ["system:nodes"], valid_seconds=lasts, starts_seconds_ago=started)
    authority = cluster.authority.certificate_pem
    path = write_kubeconfig(directory / "kubeconfig", cluster.server, authority, certificate=issued)
    return ApiClient(load(str(path)), deadline_seconds=20)


async def events(client: ApiClient) -> list[tuple[str, str]]:
    page = await client.list(EVENTS, namespace="default")
    return [(each["type"], each["message"]) for each in page.items]


async def test_a_certificate_that_ends_in_a_month_is_told_once_with_what_to_do(
    cluster: EmbeddedCluster, tmp_path: Path, journal: Journal, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(client_whose_certificate(cluster, tmp_path, lasts=365 * DAY, ends_in=29 * DAY)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal)
        await notice.look()
        await notice.look()
        said = f"the client certificate of {AGENT} ends at {notice.ends}, and its renewal has not come; "
        said += "an administrator renews it with `pp-leader enroll worker-1`"
        assert notice.sentence == said
        assert capfd.readouterr().err == f"<4>{said}\n"
    with closing(ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=20)) as administrator:
        assert ("Warning", said) in await events(administrator)


@pytest.mark.parametrize(("lasts", "ends_in"), [(365 * DAY, 31 * DAY), (DAY, 0.2 * DAY)])
async def test_a_certificate_whose_end_is_far_is_shown_and_not_told(
    cluster: EmbeddedCluster,
    tmp_path: Path,
    journal: Journal,
    capfd: pytest.CaptureFixture[str],
    lasts: float,
    ends_in: float,
) -> None:
    with closing(client_whose_certificate(cluster, tmp_path, lasts=lasts, ends_in=ends_in)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal)
        await notice.look()
        (metric,) = notice.metrics("pp_hostd")
        assert notice.sentence == capfd.readouterr().err == ""
        assert metric.name == "pp_hostd_certificate_expires_wallclock_seconds"
        assert abs(metric.samples[0][1] - time.time() - ends_in) < 300


async def test_a_certificate_that_has_ended_under_a_running_daemon_is_told_once_more(
    cluster: EmbeddedCluster, tmp_path: Path, journal: Journal, capfd: pytest.CaptureFixture[str]
) -> None:
    later = timedelta()
    with closing(client_whose_certificate(cluster, tmp_path, lasts=10 * DAY, ends_in=DAY)) as client:
        notice = ExpiryNotice(client, "worker-1", "pp-hostd", journal, lambda: now_wallclock() + later)
        await notice.look()
        later = timedelta(days=2)
        await notice.look()
        await notice.look()
    first, second = capfd.readouterr().err.splitlines()
    assert " ends at " in first
    assert second.startswith(f"<3>the client certificate of {AGENT} ended at ")
