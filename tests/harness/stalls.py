"""Tell a stall of this machine from a fault: a test that failed while the machine stood still is run again."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass

import pytest
from _pytest.runner import runtestprotocol

MOST_RUNS = 4
"""Of one test: a fault fails each time."""
MOST_REPEATS = 12
"""Of all tests of one process: where more fail, it is hardly the machine, and a run has to end."""
CALM_SECONDS = 5.0
MOST_CALMING_SECONDS = 120.0
"""Before a test is run again, the machine has to move for so long; it is waited for at most so long."""
TICK_SECONDS = 0.1
FEW_TICKS = 10
"""The share of a processor in fewer ticks is chance."""
STALL_SECONDS = 1.0
"""So long this process did not run though it wanted to: a host with a short T resets itself."""
LEAST_SHARE = 0.25
"""Of the time that the watch worked, a processor worked for it: with less, each deadline is four times as short."""
WORK = bytes(500_000)
"""Is hashed, without the interpreter's lock, at each tick: about a millisecond of a processor."""
REPEATED = "repeated"


@dataclass(frozen=True)
class Withheld:
    """The longest stall of a process, and the share of a processor that the process got while it worked."""

    stall_seconds: float
    share: float

    @property
    def strain_seconds(self) -> float:
        """Returns the longest stall, or one as hard to bear as this share of a processor if that is longer."""
        return max(self.stall_seconds, STALL_SECONDS * LEAST_SHARE / self.share)

    def __str__(self) -> str:
        return f"stood still for {self.stall_seconds:.1f} s at most and gave {self.share:.0%} of a processor"


class Watch:
    """Measures what the machine withholds from this process, until it is closed."""

    def __init__(self) -> None:
        self._longest = self._wanted = self._got = 0.0
        self._ticks = 0
        self._ticked_at = now()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._closed.wait(TICK_SECONDS):
            began, ran = now(), time.thread_time()
            hashlib.sha256(WORK).digest()
            ended = now()
            self._got += time.thread_time() - ran  # first, so that no share is 0
            self._wanted += ended - began
            self._ticks += 1
            self._longest, self._ticked_at = self._late_seconds(), ended

    def _late_seconds(self) -> float:
        """Also of a tick that has not come yet."""
        return max(self._longest, now() - self._ticked_at - TICK_SECONDS)

    def restart(self) -> None:
        """Forget what was measured."""
        self._longest = self._wanted = self._got = 0.0
        self._ticks = 0

    def withheld(self) -> Withheld:
        """Returns what the machine withheld since the watch was restarted."""
        return Withheld(self._late_seconds(), self._got / self._wanted if self._ticks >= FEW_TICKS else 1.0)

    def wait_for_calm(self) -> None:
        """Until the machine has moved for a while, or for as long as anybody would wait for that."""
        ends_at = now() + MOST_CALMING_SECONDS
        self.restart()
        while now() < ends_at:
            self._closed.wait(CALM_SECONDS)
            if self.withheld().strain_seconds < STALL_SECONDS:
                return
            self.restart()

    def close(self) -> None:
        """Measure no more."""
        self._closed.set()
        self._thread.join()


class Repeats:
    """A pytest plugin: runs a test again that failed while the machine stood still, and says so at the end."""

    def __init__(self, most_repeats: int = MOST_REPEATS) -> None:
        self._watch, self._repeats_left = Watch(), most_repeats
        self._repeated: list[str] = []
        self._runs: dict[str, list[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test; if a stall disturbed it, run it again with nothing left of the first time."""
        earlier = self._runs.setdefault(item.nodeid, [])
        if earlier:
            self._watch.wait_for_calm()
        else:
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._watch.restart()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = [report for report in reports if report.failed]
        withheld = self._watch.withheld()
        disturbed = withheld.strain_seconds >= STALL_SECONDS
        again = self._repeats_left > 0 and len(earlier) + 1 < MOST_RUNS
        if failed and disturbed and again and _torn_down(item):
            self._repeats_left -= 1
            earlier.append(f"the machine {withheld}, and it failed: {failed[0].longreprtext.splitlines()[-1]}")
            # Through the hook, so that pytest-timeout starts its timer again, too.
            item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            return True
        for report in reports:
            if report.when == "call":
                report.user_properties += [(REPEATED, why) for why in earlier]
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note who was repeated; with several workers, in the process that prints."""
        self._repeated += [f"{report.nodeid}: {why}" for name, why in report.user_properties if name == REPEATED]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which tests were repeated, and why."""
        if self._repeated:
            terminalreporter.section("repeated after a stall of this machine")
            for line in self._repeated:
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """End the watch's thread."""
        self._watch.close()


def _torn_down(item: pytest.Item) -> bool:
    """Close what the test shares with others of its file, too: a bed whose hosts were reset serves nobody."""
    try:
        item.session._setupstate.teardown_exact(item.session)  # type: ignore[arg-type]  # what is not above it
    except Exception:
        return False
    return True


def now() -> float:
    """Hosts count the time in which the machine slept, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
