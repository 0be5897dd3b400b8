"""Tests that a stall of the machine disturbed are run again; a fault fails all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.stalls import LEAST_SHARE, MOST_RUNS, STALL_SECONDS, Withheld

pytest_plugins = ["pytester"]

STALL = """
    import os, signal, subprocess, time
    from pathlib import Path
    import pytest
    from tests.harness.stalls import CALM_SECONDS

    def stall():
        "Stop this process for two seconds, as a machine does that another one displaces."
        subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)

    def runs():
        "How often this was called, over all runs of the test."
        with open("runs", "a+") as file:
            file.write("x")
            file.seek(0)
            return len(file.read())
"""


@pytest.mark.parametrize(
    ("withheld", "strain_seconds"),
    [
        (Withheld(2.0, 1.0), 2.0),
        (Withheld(0.0, LEAST_SHARE), STALL_SECONDS),
        (Withheld(2.0, LEAST_SHARE / 3), 3 * STALL_SECONDS),
    ],
    ids=["a stall", "the least share", "a third of the least share"],
)
def test_a_small_share_of_a_processor_is_as_bad_as_a_stall(withheld: Withheld, strain_seconds: float) -> None:
    assert withheld.strain_seconds == pytest.approx(strain_seconds)


@pytest.fixture
def house(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose tests are repeated as this one's are."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    repeating(pytester, "Repeats()")
    return pytester


def repeating(house: pytest.Pytester, plugin: str) -> None:
    """Has the project's tests repeated by this plugin."""
    house.makeconftest(
        f"""
        from tests.harness.stalls import Repeats

        def pytest_configure(config):
            config.pluginmanager.register({plugin})
        """
    )


def run_of(house: pytest.Pytester, test: str) -> tuple[dict[str, int], str, int]:
    """Runs the test; returns its outcomes, the printed text, and how often it ran."""
    house.makepyfile(STALL + test)
    result = house.runpytest_subprocess("-p", "no:cacheprovider")
    return result.parseoutcomes(), result.stdout.str(), len((house.path / "runs").read_text())


def test_a_test_that_failed_in_a_stall_is_repeated_and_named(house: pytest.Pytester) -> None:
    test = """
    def test_it():
        if runs() == 1:
            stall()
            assert "too" == "late"
    """
    outcomes, printed, runs = run_of(house, test)
    assert (outcomes, runs) == ({"passed": 1}, 2)
    assert "repeated after a stall of this machine" in printed
    assert "test_it: the machine stood still for " in printed


def test_its_fixtures_begin_anew_those_of_its_file_too(house: pytest.Pytester) -> None:
    test = """
    @pytest.fixture(scope="module")
    def bed():
        return []

    @pytest.fixture
    def place():
        return []

    def test_before(bed):
        bed.append("test_before")

    def test_it(bed, place):
        assert not place
        first = runs() == 1
        assert bed == (["test_before"] if first else [])
        place.append("used")
        if first:
            stall()
            assert False

    def test_after(bed):
        assert bed == []
    """
    outcomes, _, runs = run_of(house, test)
    assert (outcomes, runs) == ({"passed": 3}, 2)


def test_a_fixture_that_failed_in_a_stall_is_repeated(house: pytest.Pytester) -> None:
    test = """
    @pytest.fixture(scope="module")
    def bed():
        if runs() == 1:
            stall()
            raise TimeoutError("not ready in time")

    def test_it(bed):
        pass
    """
    outcomes, _, runs = run_of(house, test)
    assert (outcomes, runs) == ({"passed": 1}, 2)


def test_what_always_fails_fails(house: pytest.Pytester) -> None:
    test = """
    def test_it():
        runs()
        stall()
        assert False
    """
    outcomes, printed, runs = run_of(house, test)
    assert (outcomes, runs) == ({"failed": 1}, MOST_RUNS)
    assert printed.count("test_it: the machine ") == MOST_RUNS - 1


def test_what_fails_on_a_machine_that_moves_fails_at_once(house: pytest.Pytester) -> None:
    test = """
    def test_it():
        assert runs() > 1
    """
    outcomes, printed, runs = run_of(house, test)
    assert (outcomes, runs) == ({"failed": 1}, 1)
    assert "repeated" not in printed


def test_before_it_is_repeated_the_machine_has_to_move_again(house: pytest.Pytester) -> None:
    test = """
    def test_it():
        with open("times", "a+") as times:
            times.write(f"{time.monotonic()}\\n")
        if runs() == 1:
            stall()
            assert False
        first, second = map(float, open("times").read().split())
        assert second - first >= 2 + CALM_SECONDS
    """
    outcomes, _, runs = run_of(house, test)
    assert (outcomes, runs) == ({"passed": 1}, 2)


def test_where_many_fail_not_all_are_repeated(house: pytest.Pytester) -> None:
    repeating(house, "Repeats(most_repeats=1)")
    test = """
    @pytest.mark.parametrize("number", range(3))
    def test_it(number):
        runs()
        stall()
        assert False
    """
    outcomes, _, runs = run_of(house, test)
    assert (outcomes, runs) == ({"failed": 3}, 4)
