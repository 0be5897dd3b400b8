"""docs/status.md shows what the commands print: each picture on it is printed here again, from the same cluster."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from textwrap import indent

import pytest

from pp_hostd.leader.commands.fleet_text import fleet_text
from pp_hostd.leader.commands.timeline import timeline_text
from pp_hostd.leader.fleet import Fleet
from pp_hostd.leader.node_memory import Stage
from pp_hostd.leader.timeline import FINISHED, last_remediation
from pp_hostd.model.control import Maintenance
from pp_hostd.model.leader_status import CourseTold, Told
from pp_hostd.model.promise import Withdrawn
from pp_hostd.service.screen import Screen
from tests.leader.test_fleet import AT, fleet, leader, node

PAGE = Path(__file__).parents[2] / "docs" / "status.md"
SCREEN = Screen(110)
BEGAN = AT - timedelta(seconds=27)
WAITS = "at least half of 60 nodes know; it is dead 44 s after they did, at the latest"
SILENT = "its agent has promised nothing"


def sixty_hosts() -> Fleet:
    """Of which one is remedied, one promises nothing and one is in maintenance."""
    order = Maintenance("eve", AT, "new disks", AT + timedelta(minutes=40))
    nodes = {f"worker-{number}": node(f"worker-{number}") for number in range(1, 61)}
    nodes["worker-17"] = node("worker-17", None, "False")
    nodes["worker-17"]["status"]["conditions"][1].update(reason="NoPromise", message=SILENT)
    nodes["worker-30"] = node("worker-30", Withdrawn("boot-1", order).render(), "False")
    dead_by = BEGAN + timedelta(seconds=45)
    course = CourseTold(
        "worker-7", "worker-7", Stage.WAITING.value, WAITS, False, BEGAN + timedelta(seconds=1), dead_by, BEGAN, dead_by
    )
    return fleet(*nodes.values(), enrolled=" ".join(nodes), ours=leader(course))


def remediation() -> list[Told]:
    steps = (
        (0, Stage.CONDEMNING, "condemning its machine"),
        (1, Stage.ACKNOWLEDGING, "0 of 60 nodes have acknowledged, and 30 more must"),
        (1, Stage.WAITING, WAITS),
        (45, Stage.CHECKING, "the wait is over; asking the same nodes again"),
        (46, Stage.FREEING, "it had 44 s to reset itself; deleting its Node"),
        (47, Stage.RESTORING, "recreating its Node"),
        (48, Stage.CLEARING, "lifting the condemnation"),
    )
    dead_by = BEGAN + timedelta(seconds=45)
    lines = [Told(BEGAN + timedelta(seconds=s), "worker-7", stage.value, text, dead_by) for s, stage, text in steps]
    return [*lines, Told(BEGAN + timedelta(seconds=48), "worker-7", FINISHED, "nothing is left to do", dead_by)]


def status() -> str:
    return fleet_text(sixty_hosts(), SCREEN, wide=False)


def timeline() -> str:
    found = last_remediation(remediation(), "worker-7")
    assert found is not None
    return timeline_text(found, SCREEN, AT)


@pytest.mark.parametrize("picture", [status, timeline])
def test_the_page_shows_what_is_printed(picture: object) -> None:
    assert callable(picture)
    shown = indent(picture(), "    ")
    assert shown in PAGE.read_text(), f"docs/status.md should show:\n{shown}"
