"""Candidates as real processes, stopped, killed and cut off: what they wrote down shows that no two acted at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.harness.supervise import Supervisor
from tests.leader import campaigner
from tests.leader.campaign import DURATION_SECONDS, GIVEN_UP, lease_of, put_lease

Look = tuple[float, int]
"""When a candidate looked, and the number of its term if it might act then; else 0."""


class Campaign:
    """The candidates of one test, and their notes."""

    def __init__(self, supervisor: Supervisor, kubeconfig: Path) -> None:
        self._supervisor, self._kubeconfig = supervisor, kubeconfig
        self._names: list[str] = []

    def start(self, name: str, duration_seconds: float = DURATION_SECONDS) -> None:
        arguments = [str(self._kubeconfig), name, str(duration_seconds), str(self._notes(name))]
        self._notes(name).touch()
        self._supervisor.run(name, [sys.executable, str(campaigner.__file__), *arguments])
        self._names.append(name)

    def signal(self, name: str, number: signal.Signals) -> None:
        pid = self._supervisor.processes()[name]["pid"]
        assert pid is not None
        os.kill(pid, number)

    def exit_of(self, name: str) -> int | None:
        return self._supervisor.processes()[name]["exit"]

    def looks(self, name: str) -> list[Look]:
        """All but a line that is being written."""
        lines = self._notes(name).read_text().split("\n")[:-1]
        return [(float(at), int(term)) for at, term in (line.split() for line in lines)]

    def acts(self, name: str) -> bool:
        """By its last look."""
        return any(term for _, term in self.looks(name)[-1:])

    def leader(self) -> str:
        """Waits until a candidate acts; returns its name."""
        return eventually(lambda: next(filter(self.acts, self._names), ""), "somebody acts")

    def terms(self) -> list[tuple[float, float, str]]:
        """When each term of each candidate was first and last acted in, in order."""
        found: dict[tuple[str, int], list[float]] = {}
        for name in self._names:
            for at, term in self.looks(name):
                if term:
                    found.setdefault((name, term), []).append(at)
        return sorted((ats[0], ats[-1], name) for (name, _), ats in found.items())

    def check(self) -> None:
        """No term begins before another one ends."""
        terms = self.terms()
        for (_, end, one), (begin, _, other) in zip(terms, terms[1:]):
            assert end < begin, f"{one} acted until {end}, and {other} from {begin} on"

    def _notes(self, name: str) -> Path:
        return self._supervisor.directory / f"{name}.looks"


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor()
    yield supervisor
    supervisor.close()


@pytest.fixture
def campaign(supervisor: Supervisor, cluster: Cluster) -> Campaign:
    return Campaign(supervisor, cluster.kubeconfig())


async def test_a_leader_that_was_stopped_past_its_lease_does_not_act_when_it_goes_on(
    campaign: Campaign, client: ApiClient
) -> None:
    await put_lease(client, GIVEN_UP)
    for name in ("ada", "bob"):
        campaign.start(name)
    stopped = campaign.leader()
    campaign.signal(stopped, signal.SIGSTOP)
    looked = len(campaign.looks(stopped))
    other = "bob" if stopped == "ada" else "ada"
    eventually(lambda: campaign.acts(other), f"{other} acts instead of {stopped}")
    campaign.signal(stopped, signal.SIGCONT)
    eventually(lambda: len(campaign.looks(stopped)) > looked + 50, f"{stopped} looks again")
    campaign.check()
    assert {name for _, _, name in campaign.terms()} == {"ada", "bob"}


async def test_a_leader_that_is_told_to_leave_gives_the_lease_up_and_another_need_not_wait_for_its_end(
    campaign: Campaign, client: ApiClient
) -> None:
    await put_lease(client, GIVEN_UP)
    campaign.start("ada", 40.0)
    eventually(lambda: campaign.acts("ada"), "ada acts")
    campaign.start("bob", 40.0)
    eventually(lambda: campaign.looks("bob"), "bob looks")
    campaign.signal("ada", signal.SIGTERM)
    eventually(lambda: campaign.exit_of("ada") == 0, "ada has left")
    eventually(lambda: campaign.acts("bob"), "bob acts", within_seconds=20)
    campaign.check()
    assert (await lease_of(client))["spec"]["leaseTransitions"] == GIVEN_UP["leaseTransitions"] + 2


async def test_a_leader_that_was_killed_is_followed_by_another(campaign: Campaign, client: ApiClient) -> None:
    await put_lease(client, GIVEN_UP)
    for name in ("ada", "bob"):
        campaign.start(name)
    killed = campaign.leader()
    campaign.signal(killed, signal.SIGKILL)
    other = "bob" if killed == "ada" else "ada"
    eventually(lambda: campaign.acts(other), f"{other} acts instead of {killed}")
    campaign.check()


async def test_nobody_acts_on_while_the_api_hangs_and_one_acts_again_when_it_is_back(supervisor: Supervisor) -> None:
    with EmbeddedCluster.start() as cluster:
        kubeconfig = cluster.kubeconfig()
        client = ApiClient(load(str(kubeconfig)), deadline_seconds=10)
        await put_lease(client, GIVEN_UP)
        client.close()
        campaign = Campaign(supervisor, kubeconfig)
        for name in ("ada", "bob"):
            campaign.start(name)
        campaign.leader()
        os.kill(cluster.pid, signal.SIGSTOP)
        eventually(lambda: not campaign.acts("ada") and not campaign.acts("bob"), "nobody acts")
        before = campaign.terms()
        os.kill(cluster.pid, signal.SIGCONT)
        eventually(lambda: len(campaign.terms()) > len(before), "somebody acts again")
        campaign.check()
