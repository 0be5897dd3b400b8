"""Nothing of a cluster outlives its owner: not after close, and not after anybody's kill -9."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.harness.supervise import Supervisor

REPOSITORY = Path(__file__).parents[1]
FOREVER = (sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()")
OWNER = """
import json, signal
from tests.harness.controlplane import RealCluster
from tests.test_supervise import pids_of
cluster = RealCluster.start(controllers=True, kwok=True)
print(json.dumps([str(cluster.directory), *pids_of(cluster.supervisor)]), flush=True)
signal.pause()
"""


def pids_of(supervisor: Supervisor) -> list[int]:
    """The supervisor's own and those of all its processes."""
    return [supervisor.pid, *(int(process["pid"] or 0) for process in supervisor.processes().values())]


@contextmanager
def expected_to_die(pids: Iterable[int], within_seconds: float = 20) -> Iterator[None]:
    """Each of them lives now, and is dead that long after the block: by the kernel's word, whoever may reap it."""
    with ExitStack() as opened:
        handles = [os.pidfd_open(pid) for pid in pids]
        for handle in handles:
            opened.callback(os.close, handle)
        assert not select.select(handles, [], [], 0)[0], "one of them was dead before"
        yield
        for handle in handles:
            assert select.select([handle], [], [], within_seconds)[0], "it lives on"


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor()
    yield supervisor
    supervisor.close()


def test_close_leaves_no_process_and_no_directory() -> None:
    cluster = RealCluster.start()
    with expected_to_die(pids_of(cluster.supervisor), within_seconds=0):
        cluster.close()
    assert not cluster.directory.exists()


def test_a_killed_owner_leaves_no_process_and_no_directory() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, *pids = json.loads(owner.stdout.readline())
        assert len(pids) == 6, "the supervisor, etcd, three of Kubernetes' programs and kwok"
        with expected_to_die(pids):
            owner.kill()
    assert not Path(directory).exists()


def test_processes_die_with_a_killed_supervisor(supervisor: Supervisor) -> None:
    supervisor.run("one", FOREVER)
    supervisor.run("two", FOREVER)
    with expected_to_die(pids_of(supervisor)):
        os.kill(supervisor.pid, signal.SIGKILL)
    shutil.rmtree(supervisor.directory)


def test_a_supervisor_that_is_asked_to_end_leaves_nothing(supervisor: Supervisor) -> None:
    supervisor.run("one", FOREVER)
    with expected_to_die(pids_of(supervisor)):
        os.kill(supervisor.pid, signal.SIGTERM)
    assert not supervisor.directory.exists()


def test_a_process_of_the_same_name_replaces_the_first(supervisor: Supervisor) -> None:
    supervisor.run("one", FOREVER)
    first = supervisor.processes()["one"]["pid"]
    assert first is not None
    with expected_to_die([first], within_seconds=0):
        supervisor.run("one", FOREVER)
    assert list(supervisor.processes()) == ["one"]
    assert supervisor.processes()["one"]["exit"] is None


def test_a_process_that_is_killed_is_gone_until_it_is_run_again(supervisor: Supervisor) -> None:
    supervisor.run("one", FOREVER)
    (_, pid) = pids_of(supervisor)
    with expected_to_die([pid], within_seconds=0):
        supervisor.kill("one")
    assert supervisor.processes() == {}
    supervisor.run("one", FOREVER)
    assert list(supervisor.processes()) == ["one"]


def test_what_a_process_printed_and_how_it_ended_can_be_read(supervisor: Supervisor) -> None:
    supervisor.run("failing", [sys.executable, "-c", "import sys; print('first'); sys.exit('last')"])
    eventually(lambda: supervisor.processes()["failing"]["exit"] == 1, "it has ended with status 1")
    assert sorted(supervisor.log_tails()["failing"].splitlines()) == ["first", "last"]
