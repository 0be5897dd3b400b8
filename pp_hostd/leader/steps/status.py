"""The status of an object that the leader reports about: its conditions, and the write."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Callable, Protocol

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Kind, Port, conditional
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Fields

Told = tuple[str, str, str, str]
"""A condition: its type, status, reason and message."""
_KEYS = ("type", "status", "reason", "message")


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


def stored_conditions(status: Fields, own: Collection[str]) -> tuple[Told, ...]:
    """Returns the conditions of the leader's `own` types. Refused if the list can't be read."""
    every = (Fields(each, "a condition") for each in status.elements("conditions"))
    found = (tuple(str(each.anything(key) or "") for key in _KEYS) for each in every)
    return tuple((each[0], each[1], each[2], each[3]) for each in found if each[0] in own)


def rendered_conditions(
    conditions: Iterable[Told], own: Collection[str], stored: Iterable[Json] | None, moment: str
) -> list[Json]:
    """Returns the list with these conditions. `stored` is the list that the object has: what others have written there,
    of types that are not the leader's `own`, stays."""
    before = {each.get("type"): each for each in stored or ()}
    ours = [
        {**dict(zip(_KEYS, each)), "lastTransitionTime": turned_at(before.get(each[0]) or {}, each[1], moment)}
        for each in conditions
    ]
    return [*ours, *(each for of_type, each in before.items() if of_type not in own)]


def turned_at(before: Json, status: str, moment: str) -> str:
    """When the condition turned to this status: a condition whose status stays keeps the moment that it has."""
    stays = before.get("status") == status
    return (before.get("lastTransitionTime") if stays else None) or moment
