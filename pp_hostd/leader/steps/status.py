"""The status of an object that the leader reports about: its conditions, and the write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, Protocol

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Kind, Port, conditional
from pp_hostd.model.moment import render_moment


class Reported(Protocol):
    """An object without a namespace, as the leader has read it."""

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


async def write_status(
    port: Port, resource: Resource, kind: Kind, about: Reported, rendered: Callable[[Json, str], Json]
) -> str:
    """Patch the status of that very version. `rendered` makes the patch of the stored object and the present moment."""
    name, version = about.name, about.resource_version
    found = await port.api.get(resource, name)
    patch = conditional(rendered(found, render_moment(port.wallclock())), about.uid, version)
    return await port.write(lambda: port.api.patch(resource, name, patch, subresource="status"), kind, name, version)


def rendered_conditions(
    conditions: Iterable[tuple[str, str, str, str]], stored: Iterable[Json] | None, moment: str
) -> list[Json]:
    """The list of these conditions: type, status, reason and message. `stored` is the list that the object has."""
    before = {each.get("type"): each for each in stored or ()}
    return [
        {
            "type": of_type,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": turned_at(before.get(of_type) or {}, status, moment),
        }
        for of_type, status, reason, message in conditions
    ]


def turned_at(before: Json, status: str, moment: str) -> str:
    """When the condition turned to this status: a condition whose status stays keeps the moment that it has."""
    stays = before.get("status") == status
    return (before.get("lastTransitionTime") if stays else None) or moment
