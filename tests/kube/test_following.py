"""A kubeconfig that is replaced on disk is used without a restart; one that can't be used leaves the old one in use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load, load_aside
from pp_hostd.kube.renewing import Following
from pp_hostd.kube.resources import NODES
from tests.harness.cluster import write_kubeconfig
from tests.harness.trouble import Trouble, TroubleServer
from tests.kube.conftest import PATIENT_SECONDS


class Enrolled:
    """A host's kubeconfig, with all embedded, and the client of a daemon that runs there."""

    def __init__(self, directory: Path, server: Trouble, trouble: TroubleServer) -> None:
        self.path, self.authority = directory / "kubeconfig", trouble.authority
        self.server = server
        self.enrol("first")
        self.client = ApiClient(load(str(self.path)), deadline_seconds=PATIENT_SECONDS)
        self.following = Following(self.client, str(self.path), partial(load_aside, str(self.path)))

    def enrol(self, user: str, server: str = "") -> None:
        """As `pp-leader enroll` does it once more."""
        new = self.path.with_name("new")
        issued = self.authority.issue(user)
        write_kubeconfig(new, server or self.server.url, self.authority.certificate_pem, certificate=issued)
        new.rename(self.path)

    async def ask(self) -> None:
        await self.following.look()
        await self.client.get(NODES, "worker")


@pytest.fixture
def host(tmp_path: Path, trouble: TroubleServer) -> Iterator[Enrolled]:
    enrolled = Enrolled(tmp_path, trouble.listen("good"), trouble)
    yield enrolled
    enrolled.client.close()


async def test_a_host_that_is_enrolled_once_more_shows_its_new_certificate(host: Enrolled) -> None:
    await host.ask()
    host.enrol("second")
    await host.ask()
    assert [seen.user for seen in host.server.requests] == ["first", "second"]


async def test_another_server_in_the_new_kubeconfig_is_asked(host: Enrolled, trouble: TroubleServer) -> None:
    await host.ask()
    other = trouble.listen("good")
    host.enrol("second", other.url)
    await host.ask()
    assert [seen.user for seen in other.requests] == ["second"]
    assert len(host.server.requests) == 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
async def test_a_kubeconfig_that_is_half_written_keeps_the_old_one_in_use_and_says_so(
    host: Enrolled, share: float
) -> None:
    await host.ask()
    host.enrol("second")
    whole = host.path.read_bytes()
    host.path.write_bytes(whole[: int(len(whole) * share)])
    await host.ask()
    assert host.following.trouble.startswith("the API is still asked with the credentials as they were: ")
    assert str(host.path) in host.following.trouble
    host.path.write_bytes(whole)
    await host.ask()
    assert host.following.trouble == ""
    assert [seen.user for seen in host.server.requests] == ["first", "first", "second"]


async def test_a_kubeconfig_that_vanishes_keeps_the_old_one_in_use(host: Enrolled) -> None:
    host.path.rename(host.path.with_name("aside"))
    await host.ask()
    assert "does not exist" in host.following.trouble
    host.path.with_name("aside").rename(host.path)
    await host.ask()
    assert host.following.trouble == ""
