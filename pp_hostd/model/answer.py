"""A peer's answer about a machine: the body of the peer port's reply. Signing is the peer protocol's matter."""

from __future__ import annotations

import enum

from pp_hostd.frozen import frozen
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, NAME, OPAQUE, SUBJECT, Unreadable, document, read, render


class Health(enum.Enum):
    """The finding of the peer's own linearizable read, or of its memory (rules 1, 3, 4)."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NOT_FOUND = "not-found"
    API_ERROR = "api-error"


@frozen
class Answer:
    """One answer, bound to its question by nonce and names.

    `id` is there exactly when the answer is "unhealthy": it makes that an acknowledgement (rule 10), and lets the asker
    set a lifted condemnation aside (rule 4). The token tells whether the peer has forgotten since. `lifted_id` is the
    last condemnation that the read of a "healthy" has found lifted: the asker has then seen it lifted, too.
    """

    health: Health
    id: int | None
    token: str
    nonce: str
    answered_by: str
    asked_by: str
    about: str
    lifted_id: int = 0

    def render(self) -> str:
        return render(
            {
                "answer": self.health.value,
                "id": self.id,
                "token": self.token,
                "nonce": self.nonce,
                "by": self.answered_by,
                "to": self.asked_by,
                "about": self.about,
                "lifted": self.lifted_id or None,
            }
        )


def parse_answer(body: object) -> Answer | Unreadable:
    """Returns the answer in the body of a peer's reply."""
    return read("the peer's answer", _answer, body)


def _answer(body: object) -> Answer:
    fields = document(body, MAX_RECORD_CHARACTERS)
    health = fields.choice("answer", Health)
    return Answer(
        health=health,
        id=fields.count("id") if health is Health.UNHEALTHY else None,
        token=fields.text("token", OPAQUE),
        nonce=fields.text("nonce", OPAQUE),
        answered_by=fields.text("by", NAME),
        asked_by=fields.text("to", NAME),
        about=fields.text("about", SUBJECT),
        lifted_id=fields.count("lifted") if health is Health.HEALTHY and "lifted" in fields else 0,
    )
