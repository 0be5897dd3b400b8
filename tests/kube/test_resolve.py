"""Host names are resolved outside the loop, in bounded time, and the last good answer is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pp_hostd.kube.transport import FRESH_SECONDS, Resolver
from tests.kube.jumping_loop import JumpingLoop

SHORT_SECONDS, HANG_SECONDS = 0.5, 5.0


def shell(script: str) -> list[str]:
    """A command that resolves names by a shell script, which gets the name as $1."""
    return ["/bin/sh", "-c", script, "resolve"]


def exists(pid: str) -> bool:
    return Path("/proc", pid).exists()


async def test_an_address_is_its_own_answer_and_nobody_is_asked() -> None:
    assert await Resolver(["/nonexistent"]).addresses("::1", 0) == ["::1"]


async def test_the_systems_resolver_knows_localhost() -> None:
    found = await Resolver().addresses("localhost", 20)
    assert set(found) <= {"127.0.0.1", "::1"} and found


async def test_all_answers_are_taken_in_their_order_and_what_is_no_address_is_left_out() -> None:
    resolver = Resolver(shell('test "$1" = api.example && printf "192.0.2.7\\nnonsense\\n2001:db8::7\\n"'))
    assert await resolver.addresses("api.example", 20) == ["192.0.2.7", "2001:db8::7"]


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "head -c 1000000 /dev/zero"])
async def test_no_answer_is_an_error_that_names_the_host(script: str) -> None:
    with pytest.raises(OSError, match=r"^the host name api\.example can't be resolved \(no such name\)$"):
        await Resolver(shell(script)).addresses("api.example", 20)


async def test_a_resolver_that_cannot_be_started_is_an_error_that_names_the_host() -> None:
    with pytest.raises(OSError, match=r"^the host name api\.example can't be resolved \(.*No such file"):
        await Resolver(["/nonexistent"]).addresses("api.example", 20)


async def test_a_resolver_that_hangs_ends_by_the_deadline_and_its_process_is_gone(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    resolver = Resolver(shell(f"echo $$ > {pid_file}; exec sleep 1000"))
    begun_at = asyncio.get_running_loop().time()
    with pytest.raises(OSError, match=r"^the host name api\.example can't be resolved \(no answer in time\)$"):
        await resolver.addresses("api.example", SHORT_SECONDS)
    assert SHORT_SECONDS * 0.99 < asyncio.get_running_loop().time() - begun_at < HANG_SECONDS
    assert not exists(pid_file.read_text().strip())


def test_a_good_answer_is_fresh_for_a_while_and_kept_when_no_better_one_can_be_had(tmp_path: Path) -> None:
    """The first time it answers, the second time it hangs, the third time it answers differently."""
    count = f"echo >> {tmp_path}/asked; case $(wc -l < {tmp_path}/asked) in "
    answers = "1) echo 192.0.2.1;; 2) exec sleep 1000;; 3) echo 192.0.2.3;; esac"
    resolver = Resolver(shell(count + answers))
    loop = JumpingLoop()

    def ask() -> list[str]:
        return loop.run_until_complete(resolver.addresses("api.example", SHORT_SECONDS * 2))

    try:
        assert ask() == ["192.0.2.1"]
        loop.jumped_seconds += FRESH_SECONDS - 5
        assert ask() == ["192.0.2.1"]
        assert (tmp_path / "asked").read_text() == "\n", "asked although the answer was fresh"
        loop.jumped_seconds += 10
        assert ask() == ["192.0.2.1"]
        assert (tmp_path / "asked").read_text() == "\n\n", "not asked although the answer was old"
        assert ask() == ["192.0.2.3"]
    finally:
        loop.close()
