"""A person's word that a host is dead: the annotation `pp-hostd.io/confirmed-dead` on its Node (rule 11)."""

from __future__ import annotations

from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, OPAQUE, PROSE, Unreadable, document, read, render


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
    """What the annotation says."""
    return read("the confirmation", _confirmation, text)


def _confirmation(text: object) -> Confirmation:
    fields = document(text, MAX_RECORD_CHARACTERS)
    boot = fields.text("boot", OPAQUE) if "boot" in fields else None
    return Confirmation(fields.text("who", PROSE), fields.moment("when"), boot)
