"""The configuration: every error in it, since all else goes by it."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.facts import Facts, NotKnown
from pp_hostd.agent.doctor.line import Line, failure, ok, warning
from pp_hostd.config_error import ConfigError, Problem

CHECK = "configuration"


def configuration(facts: Facts) -> Iterator[Line]:
    loaded = facts.loaded
    if isinstance(loaded, NotKnown):
        yield failure(CHECK, loaded.why, loaded.advice or "Make the files in /etc/pp-hostd readable.")
    elif isinstance(loaded, ConfigError):
        for problem in loaded.errors:
            yield failure(CHECK, _told(problem), "Correct it; see: pp-hostd check-config --help")
    elif loaded.settings.agent.mode == "dry-run":
        yield warning(CHECK, "a dry run: this host judges, and never resets itself", 'Set agent.mode = "enforce".')
    else:
        yield ok(CHECK, f"no error in {', '.join(loaded.files)}")


def _told(problem: Problem) -> str:
    place = f"{problem.file}, line {problem.line}" if problem.line else problem.file
    return f"{place}: {' '.join(f'{problem.key} {problem.message}'.split())}"
