"""Whether a machine is condemned, by its annotations and label, read on the safe side; or dead by a person's word."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Union

from pp_hostd.frozen import frozen
from pp_hostd.model.keys import CONDEMNATION_ID, CONDEMNED, EXTERNAL_REMEDIATION
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import (
    COUNT,
    MAX_RECORD_CHARACTERS,
    OPAQUE,
    PROSE,
    Fields,
    Refused,
    Unreadable,
    document,
    read,
    render,
)


@frozen
class NotRequested:
    """No remediation is requested. `last_id` is the last condemnation's, lifted since; 0 when there never was one."""

    last_id: int

    def render(self) -> dict[str, Any]:
        """The merge patch of metadata that leaves the machine so; it also lifts a condemnation, and keeps its id."""
        return _patch(None, self.last_id, condemned=False)


@frozen
class Requested:
    """Remediation is requested, and the machine not yet condemned: its agent still finds proof."""

    last_id: int

    def render(self) -> dict[str, Any]:
        return _patch("", self.last_id, condemned=False)


@frozen
class Condemned:
    """The machine is condemned under this id; the time is for people, no bound starts from it (rule 13)."""

    id: int
    since_wallclock: datetime

    def render(self) -> dict[str, Any]:
        """The one write of rule 9, as a merge patch of metadata: time, id, label."""
        return _patch(render_moment(self.since_wallclock), self.id, condemned=True)


@frozen
class Draw:
    """One draw of a condemnation id that no leader has drawn before (rule 9): the wall clock makes it larger than ids
    that were removed, and the dice keep two leaders, or one before and after a restored etcd, from the same one."""

    wallclock_seconds: int
    dice: int
    """A random number below DICE."""

    def id_after(self, last_id: int) -> int:
        return 1 + max(last_id, DICE * self.wallclock_seconds) + self.dice

    def id_above_all(self, last_id: int) -> int:
        """An id larger than every one that leaders whose clocks agree have drawn so far, in this second too."""
        return self.id_after(last_id) + DICE


DICE = 10**5
"""The number of ids among which one draw chooses, and of ids in a second of the wall clock."""


def drawn_wallclock(condemnation_id: int) -> int:
    """The second of the wall clock in which an id was drawn, by the clock of the leader that drew it; later if another
    id had been drawn by a clock that was ahead."""
    return condemnation_id // DICE


NotCondemned = (NotRequested, Requested)
"""For isinstance: the only two values that can be part of a proof."""

Condemnation = Union[NotRequested, Requested, Condemned]


def last_id(condemnation: Condemnation | Unreadable) -> int:
    """The newest id that it names; 0 where there never was one, or it can't be read."""
    if isinstance(condemnation, Unreadable):
        return 0
    return condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id


def parse_condemnation(metadata: object) -> Condemnation | Unreadable:
    """Returns the condemnation in the metadata of a Machine (or Node)."""
    return read("the condemnation", _condemnation, metadata)


def _condemnation(metadata: object) -> Condemnation:
    fields = Fields(metadata, "metadata")
    annotations = fields.section("annotations")
    last_id = int(annotations.text(CONDEMNATION_ID, COUNT)) if CONDEMNATION_ID in annotations else 0
    requested = EXTERNAL_REMEDIATION in annotations
    if requested and annotations.anything(EXTERNAL_REMEDIATION) != "":
        since = annotations.moment(EXTERNAL_REMEDIATION)
        if CONDEMNATION_ID not in annotations:
            raise Refused(f"{EXTERNAL_REMEDIATION} holds a time, and there is no {CONDEMNATION_ID}")
        return Condemned(last_id, since)
    return Requested(last_id) if requested else NotRequested(last_id)


def _patch(request: str | None, last_id: int, *, condemned: bool) -> dict[str, Any]:
    annotations = {EXTERNAL_REMEDIATION: request, CONDEMNATION_ID: str(last_id) if last_id else None}
    return {"annotations": annotations, "labels": {CONDEMNED: "" if condemned else None}}


@frozen
class Confirmation:
    """It speaks of the boot that the Node's record named then, None if there was no record: a host that has reported
    another boot since was switched on again, and the word is void."""

    who: str
    when_wallclock: datetime
    boot: str | None

    def render(self) -> str:
        return render({"who": self.who, "when": render_moment(self.when_wallclock), "boot": self.boot})


def parse_confirmation(text: object) -> Confirmation | Unreadable:
    """Returns the confirmation in the annotation's text."""
    return read("the confirmation", _confirmation, text)


def _confirmation(text: object) -> Confirmation:
    fields = document(text, MAX_RECORD_CHARACTERS)
    boot = fields.text("boot", OPAQUE) if "boot" in fields else None
    return Confirmation(fields.text("who", PROSE), fields.moment("when"), boot)
