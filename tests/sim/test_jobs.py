"""Work shared out among processes: in order, all of it, and nobody is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pp_hostd.errors import UserError
from pp_hostd.sim.campaign import in_order


def test_results_come_in_the_order_of_the_tasks_also_if_the_first_takes_longest() -> None:
    reader, writer = os.pipe()

    def work(number: int) -> int:
        """The first waits until another one is done."""
        if number == 0:
            os.read(reader, 1)
        elif number == 1:
            os.write(writer, b"x")
        return number * number

    try:
        assert list(in_order(work, range(100), 3)) == [number * number for number in range(100)]
    finally:
        os.close(reader)
        os.close(writer)


def test_no_task_at_all_is_soon_done() -> None:
    assert list(in_order(abs, [], 2)) == []


def test_a_process_that_dies_is_told() -> None:
    def work(number: int) -> int:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(UserError, match="ended before its work was done"):
        list(in_order(work, range(10), 2))
    assert multiprocessing.active_children() == []


def test_ctrl_c_is_the_parents_to_answer() -> None:
    def work(number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return number

    assert list(in_order(work, range(4), 2)) == [0, 1, 2, 3]


def test_whoever_stops_listening_ends_the_others() -> None:
    def work(number: int) -> int:
        while number > 3:
            signal.pause()
        return number

    results = in_order(work, range(10), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_processes_end_soon_after_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os\n"
        "from pp_hostd.sim.campaign import in_order\n"
        "def work(number):\n"
        "    os.write(1, b'x')\n"
        "    while True: pass\n"
        "list(in_order(work, range(10), 2))\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.read(2) == b"xx"
        finally:
            parent.kill()
        assert parent.stdout.read() == b""  # which ends when the last one is gone
