"""The whole suite: `python -m tests.suite [PYTEST'S ARGUMENTS]`, as `make suite` runs it.

Where the control plane is still to be built, the tests that need none run meanwhile, and the others afterwards.
"""

from __future__ import annotations

import subprocess
import sys

from tests.harness.build import CONTROL_PLANE, is_built

NO_TESTS = 5
"""pytest's exit code if it has found none."""


def main(arguments: list[str]) -> int:
    _say("the suite: about 30 minutes on two idle cores, twice that where others take half of them")
    _run("-m", "tests.harness.published")
    if is_built(CONTROL_PLANE):
        return _pytest("-n", "3", *arguments)
    _say(f"building the control plane, once: about {CONTROL_PLANE.minutes} minutes")
    _say("beside it, the tests that need no control plane")
    building = subprocess.Popen([sys.executable, "-m", "tests.harness.build", "controlplane"])
    try:
        first = _pytest("--control-plane=without", "-n", "2", *map(_of_its_own, arguments))
        _say("waiting for the control plane")
        if building.wait():
            return 1
    finally:
        building.terminate()
        building.wait()
    _say("the tests that need a control plane")
    codes = {first, _pytest("--control-plane=only", "-n", "3", *arguments)}
    return max(codes - {NO_TESTS}, default=NO_TESTS)


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "--dist=loadfile", *arguments], check=False).returncode


def _of_its_own(argument: str) -> str:
    """A report of the first part is not written over by that of the second."""
    return f"{argument}.first" if argument.startswith("--junit-xml=") else argument


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True)


def _say(sentence: str) -> None:
    print(f"make suite: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
