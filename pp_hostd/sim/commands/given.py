"""What was given on the command line, or what is taken in its place."""

from __future__ import annotations

import os
import random
import shlex
from argparse import Namespace

from pp_hostd import config
from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.simulate_command import NODES

FRESH_SEEDS = 10**9


def settings(arguments: Namespace) -> Settings:
    return Settings() if arguments.settings is None else config.load(arguments.settings).settings


def arena(arguments: Namespace) -> Arena:
    return Arena(settings(arguments), arguments.nodes or NODES)


def seed(arguments: Namespace) -> int:
    return random.SystemRandom().randrange(FRESH_SEEDS) if arguments.seed is None else int(arguments.seed)


def jobs(arguments: Namespace) -> int:
    return arguments.jobs or _processors()


def _processors() -> int:
    """Those that this process may use; PyPy only knows how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def replay_command(arguments: Namespace, seed: int) -> str:
    """What tells the whole story again."""
    words = ["pp-hostd simulate --replay", str(seed)]
    words += ["--nodes", str(arguments.nodes)] if arguments.nodes else []
    words += ["--settings", shlex.quote(arguments.settings)] if arguments.settings else []
    return " ".join(words)
