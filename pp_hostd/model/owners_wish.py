"""Whether the owner of a Machine wants nobody to remedy it: what the Machine and its Cluster of Cluster API say."""

from __future__ import annotations

from pp_hostd.model.keys import PAUSED_MACHINE
from pp_hostd.model.machine_details import MachineDetails
from pp_hostd.model.record import Fields, Unreadable, read


def parse_cluster_pause(api_object: object) -> str | Unreadable:
    """What pauses a Cluster of the API; empty if nothing does."""
    return read("the Cluster", lambda source: _pause(Fields(source)), api_object)


def _pause(cluster: Fields) -> str:
    if PAUSED_MACHINE in cluster.section("metadata").section("annotations"):
        return f"the annotation {PAUSED_MACHINE}"
    return "spec.paused" if cluster.section("spec").anything("paused") else ""


def wish_of_machine(subject: str, about: MachineDetails) -> str:
    """Why its own marks hold the remedy back; empty if none."""
    return f"Machine {subject} bears {about.paused}. To go on: remove that annotation" if about.paused else ""


def wish_of_cluster(cluster: str, pause: str | Unreadable | None) -> str:
    """Why its Cluster holds the remedy back; empty if it does not. `pause` is None if there is no such Cluster."""
    if pause is None:
        return f"whether Cluster {cluster} is paused is not known: there is none that can be read. Correct that"
    if isinstance(pause, Unreadable):
        return f"whether Cluster {cluster} is paused is not known: {pause}. Correct that"
    return f"Cluster {cluster} is paused ({pause}). To go on: end that pause" if pause else ""
