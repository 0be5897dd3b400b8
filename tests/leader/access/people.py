"""Users in the tests of access: the leader, agents, nodes that may do anything, and a person at the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS
from tests.harness.eventually import HANGS_SECONDS
from tests.leader import forked

PP_LEADER = Path(sys.executable).with_name("pp-leader")
LEADER = (LEADER_USER, (LEADERS,))


def pp_leader(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, as a person runs it. A new one where variables matter: libraries read them as they are imported."""
    plain = {"LC_ALL": "C", "COLUMNS": "100", "HOME": "/nonexistent"}
    if not environment:
        return forked.pp_leader(*arguments, environment=plain)
    command, env = [str(PP_LEADER), *arguments], {**plain, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)


def agent(node: str) -> tuple[str, tuple[str, ...]]:
    """Returns the user and groups of an agent's credential, as `install` expects them."""
    return f"system:node:{node}", ("system:nodes", AGENTS)


def almighty(node: str) -> tuple[str, tuple[str, ...]]:
    """A node that RBAC grants everything, and that the NodeRestriction plug-in does not see: only policies stop it."""
    return f"system:node:{node}", ("system:masters",)
