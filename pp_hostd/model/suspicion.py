"""The hosts that an agent can't reach: the annotation `pp-hostd.io/suspects` on the agent's own Node.

It requests nothing but a look: the leader tries such a host itself, and has others try it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pp_hostd.frozen import frozen
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, NAME, Refused, Unreadable, document, matching, read, render

MAX_SUSPECTS = 8
"""More than an agent probes."""


@frozen
class Suspicion:
    """The suspects, by name; at least one. `Suspicion.of` makes one."""

    suspects: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Suspicion | None:
        """Returns the suspicion of these; None if there are none."""
        suspects = tuple(sorted(set(names)))[:MAX_SUSPECTS]
        return cls(suspects) if suspects else None

    def render(self) -> str:
        return render({"suspects": self.suspects})


def parse_suspicion(text: object) -> Suspicion | Unreadable:
    """The suspicion in the annotation."""
    return read("the suspicion", _suspicion, text)


def _suspicion(text: object) -> Suspicion:
    suspects = tuple(
        matching(name, NAME, "a suspect") for name in document(text, MAX_RECORD_CHARACTERS).elements("suspects")
    )
    if not 1 <= len(suspects) <= MAX_SUSPECTS:
        raise Refused(f"it names {len(suspects)} suspects, not 1 to {MAX_SUSPECTS}")
    return Suspicion(tuple(sorted(set(suspects))))
