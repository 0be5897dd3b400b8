"""The agent locks its memory, raises its priority and shields itself where it may, and says so where it may not."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

from pp_hostd.agent.act.process import allow_sockets, lock_memory, raise_priority, shield_from_oom
from tests.harness.isolated import isolated


def locked_kib() -> int:
    found = re.search(r"VmLck:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


@isolated
def test_memory_that_may_not_be_locked_is_said_and_survived() -> None:
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    assert lock_memory() == "memory can't be locked (Operation not permitted); a hung disk may hang this program"
    assert locked_kib() == 0


@isolated
def test_memory_is_locked_where_the_limit_allows_it() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    said = lock_memory()
    assert (said is None and locked_kib() > 1000) or (said is not None and locked_kib() == 0)


@isolated
def test_priority_that_may_not_be_raised_is_said_and_survived() -> None:
    for limit in (resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE):
        resource.setrlimit(limit, (0, 0))
    assert raise_priority() == "priority can't be raised (Permission denied); a busy host may delay this program"
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@isolated
def test_an_oom_score_that_is_refused_or_ignored_is_said(tmp_path: Path) -> None:
    said = shield_from_oom()
    assert said == "the OOM score can't be set (Permission denied); this program may be killed when memory is short"
    assert "can't be set (No such file" in str(shield_from_oom(str(tmp_path / "absent")))


def test_an_oom_score_that_was_taken_is_read_back(tmp_path: Path) -> None:
    score = tmp_path / "oom_score_adj"
    score.write_text("0")
    assert shield_from_oom(str(score)) is None
    assert score.read_text() == "-1000"


def test_an_oom_score_that_stays_what_it_was_is_said() -> None:
    assert "the OOM score stayed" in str(shield_from_oom("/dev/null"))  # as in containers that take it and keep theirs


@isolated
def test_as_many_sockets_as_a_large_cluster_has_peers_are_allowed_where_the_hard_limit_lets() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 10000))
    assert allow_sockets() is None
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (8192, 10000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
    assert "no more than 4096 files can be open" in str(allow_sockets())
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (4096, 4096)
