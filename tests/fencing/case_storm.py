"""A storm on the real API: five of eleven Nodes are silent at once, and nobody is fenced until fewer are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, NODES
from pp_hostd.model.keys import LEADER, NAMESPACE, PAUSED_NODE, STATUS
from tests.bmc.rig import Json
from tests.fencing.site import UNKNOWN, FenceSite
from tests.harness.eventually import eventually

NAMES = [f"node-{number:02}" for number in range(11)]
SICK = NAMES[:5]
LONG_SECONDS = 120.0


class Storm(FenceSite):
    """Nodes without hosts: this is about whom the leader would fence."""

    settings: Mapping[str, Any] = {**FenceSite.settings, "leader.max_unhealthy": "40%", "leader.cool_down_seconds": 1.0}

    def _build(self) -> None:
        self.install()
        for name in NAMES:
            self.create(NODES, {"metadata": {"name": name}})
            self.report("True", "boot-1", name)
        self.remedy(UNKNOWN)
        self.pause(True)
        self.start_leader()

    def pause(self, paused: bool) -> None:
        """The configuration, so that no Node is fenced before all that are to be sick are."""
        change = {"metadata": {"annotations": {PAUSED_NODE: "" if paused else None}}}
        self.patch(NODE_REMEDY_CONFIGURATIONS, "all", change)

    def matching(self, count: int) -> None:
        """Waits until the leader has judged that so many Nodes have reached a threshold."""

        def judged() -> bool:
            status = (self.find(NODE_REMEDY_CONFIGURATIONS, "all") or {}).get("status", {})
            return bool(status.get("matchingNodes") == count)

        eventually(judged, f"{count} Nodes have reached a threshold", LONG_SECONDS)

    def allowed(self) -> Json:
        """The condition that says whether Nodes are fenced."""
        status = (self.find(NODE_REMEDY_CONFIGURATIONS, "all") or {})["status"]
        found: Json = next(each for each in status["conditions"] if each["type"] == "FencingAllowed")
        return found

    def begun(self) -> list[str]:
        """The nodes whose fencing has begun."""
        fences = self.items(NODE_FENCES)
        return [each["node"] for each in fences if (each["step"], each["status"]) != ("Isolation", "New")]

    def storms_told(self) -> list[Json]:
        return [each for each in self.items(EVENTS) if each["reason"] == "TooManyNotResponding"]


@pytest.fixture
def site() -> Iterator[Storm]:
    with Storm.on([]) as site:
        assert isinstance(site, Storm)
        yield site


def test_in_a_storm_nobody_is_fenced_and_one_event_says_so(site: Storm) -> None:
    for name in SICK:
        site.report("Unknown", "boot-1", name)
    site.matching(5)
    site.pause(False)
    eventually(site.storms_told, "an Event tells it", LONG_SECONDS)
    site.report("Unknown", "boot-1", NAMES[5])
    site.matching(6)
    assert site.allowed()["reason"] == "TooManyNotResponding" and "6 of 11" in site.allowed()["message"]
    (told,) = site.storms_told()
    assert told.get("count", 1) == 1 and "5 of 11" in told["message"]
    assert site.items(NODE_FENCES) == []
    for name in NAMES[4:6]:
        site.report("True", "boot-1", name)
    eventually(site.begun, "one of the four that are left is fenced", LONG_SECONDS)
    assert site.begun()[0] in SICK[:4]
    assert len(site.storms_told()) == 1


def test_in_a_storm_not_even_a_persons_request_is_carried_out(site: Storm) -> None:
    for name in SICK:
        site.report("Unknown", "boot-1", name)
    site.matching(5)
    site.create(NODE_FENCES, {"metadata": {"name": f"node-fence-{SICK[0]}"}, "node": SICK[0]})

    def held() -> bool:
        status = (site.find(CONFIG_MAPS, LEADER, NAMESPACE) or {}).get("data", {}).get(STATUS, "")
        return "together 5 of 11" in status

    eventually(held, "the leader says what it waits for", LONG_SECONDS)
    assert site.begun() == []
    site.report("True", "boot-1", SICK[4])
    eventually(site.begun, "it is fenced once four are sick", LONG_SECONDS)
