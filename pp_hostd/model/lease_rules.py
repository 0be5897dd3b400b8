"""When a candidate for the Lease may take it, and until when it may act once it has (rules 13 and 14).

Two never act at once. A term ends `term_seconds` after its last renewal was sent. That renewal gave the Lease a new
resourceVersion, which others can only have seen later, and they take the Lease no sooner than a whole duration after
that. Whatever is written is conditional on the version that was seen.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace

from pp_hostd.frozen import frozen
from pp_hostd.model.lease import Lease

TERM_PART = 0.9
"""Of the duration. Clocks that drift apart by 1000 ppm each need 0.2 % of it; the rest is for a write on its way."""
PERIOD_PART = 0.2
"""Of the duration: how often the Lease is renewed or looked at, and how long that may take."""
RETRY_PART = 0.05
NEVER = -math.inf


class Exchange(enum.Enum):
    """What a candidate does with the Lease."""

    LOOK = "look"
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    GIVE_UP = "give up"


@frozen
class Candidacy:
    """What one candidate knows. `identity` is that of one process, so a Lease in its name was written by it.

    `lease` is None when there is none. It was first seen at `seen_at`, dated by the end of that exchange; `certain`
    says whether the last exchange succeeded. The last renewal of the present term was sent at `renewed_at`.
    """

    identity: str
    duration_seconds: float
    lease: Lease | None = None
    seen_at: float = NEVER
    certain: bool = False
    exchanged_at: float = NEVER
    renewed_at: float = NEVER
    rest_until_at: float = NEVER
    term: int = 0

    @property
    def acting_until_at(self) -> float:
        return self.renewed_at + TERM_PART * self.duration_seconds

    @property
    def period_seconds(self) -> float:
        return PERIOD_PART * self.duration_seconds

    @property
    def in_our_name(self) -> bool:
        return self.lease is not None and self.lease.holder == self.identity

    def acting(self, now: float) -> bool:
        return now < self.acting_until_at

    def exchange_seconds(self, now: float) -> float:
        """How long an exchange may take that begins now; none outlives the term."""
        left_seconds = self.acting_until_at - now
        return min(self.period_seconds, left_seconds) if self.acting(now) else self.period_seconds

    def next_exchange(self, now: float) -> tuple[Exchange, float]:
        """What is to be done next with the Lease, and when. It may be another thing by then."""
        if not self.certain:
            return Exchange.LOOK, self.exchanged_at + RETRY_PART * self.duration_seconds
        if self.in_our_name and now < self.rest_until_at:
            return Exchange.GIVE_UP, now
        if self.acting(now):
            return Exchange.RENEW, self.renewed_at + self.period_seconds
        look_at = self.exchanged_at + self.period_seconds
        campaign_at = max(self._free_at(), self.rest_until_at)
        if campaign_at > look_at:
            return Exchange.LOOK, look_at
        return Exchange.CREATE if self.lease is None else Exchange.TAKE, campaign_at

    def _free_at(self) -> float:
        """When a missing Lease may be created (which begins no term), or the one that was seen taken."""
        if self.lease is None or self.lease.given_up:
            return self.seen_at
        return self.seen_at + max(self.duration_seconds, self.lease.duration_seconds)

    def saw(self, lease: Lease | None, now: float) -> Candidacy:
        """After an exchange that showed the Lease, or that there is none."""
        version = self.lease and self.lease.resource_version
        unchanged = lease is not None and lease.resource_version == version
        seen = replace(self, lease=lease, seen_at=self.seen_at if unchanged else now, certain=True, exchanged_at=now)
        return seen if seen.in_our_name else seen._ended()

    def held(self, exchange: Exchange, lease: Lease, sent_at: float, now: float) -> Candidacy:
        """After a TAKE or a RENEW that the API carried out. One that is resting, or was too late, does not act."""
        seen = self.saw(lease, now)
        too_late = exchange is Exchange.RENEW and not self.acting(now)
        if too_late or now < self.rest_until_at or not seen.in_our_name:
            return seen._ended()
        return replace(seen, renewed_at=sent_at, term=self.term + (exchange is Exchange.TAKE))

    def failed(self, exchange: Exchange, now: float, *, overtaken: bool) -> Candidacy:
        """After an exchange that did not succeed; `overtaken` says that the Lease is not the one that was seen."""
        unsure = replace(self, certain=False, exchanged_at=now)
        return unsure._ended() if overtaken and exchange is Exchange.RENEW else unsure

    def resigned(self, now: float) -> Candidacy:
        """It acts no more, and campaigns only after a duration, so that another one can take the Lease."""
        return replace(self._ended(), rest_until_at=now + self.duration_seconds)

    def _ended(self) -> Candidacy:
        return self if self.renewed_at == NEVER else replace(self, renewed_at=NEVER)
