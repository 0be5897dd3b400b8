"""Every inequality between timeouts, once, and the timeline that a set of settings promises.

One clock serves all figures: seconds after the host's last proof began. The rules are those of the design, section 4.
"""

from __future__ import annotations

import math
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.model.lease import PERIOD_PART
from pp_hostd.model.settings import Settings

FAILED_READS = 3
"""So many reads in a row must fail before a host asks its peers (rule 3). Part of the rules, so not a setting."""


def inquiry_seconds(settings: Settings) -> float:
    """How long a host asks its peers at most."""
    return settings.peers.rounds * settings.peers.round_seconds


def peer_read_seconds(settings: Settings) -> float:
    """How long an answering peer may read the API, from the question's arrival on: shorter than its caller waits."""
    return 0.75 * settings.peers.round_seconds


def tick_seconds(settings: Settings) -> float:
    """A judgement is due after this long even if nothing has happened, since only judgements feed (rule 2)."""
    return settings.watchdog.timeout_seconds / 4


def next_read_seconds(settings: Settings) -> float:
    """When the read after the last proof begins; if that came from a peer, its answer may have taken a whole round."""
    return max(settings.api.read_interval_seconds, settings.peers.round_seconds)


def first_inquiry_begins_seconds(settings: Settings) -> float:
    reads = FAILED_READS * settings.api.read_deadline_seconds
    pauses = (FAILED_READS - 1) * settings.api.retry_seconds
    return next_read_seconds(settings) + reads + pauses


def first_inquiry_ends_seconds(settings: Settings) -> float:
    return first_inquiry_begins_seconds(settings) + inquiry_seconds(settings)


def later_inquiry_ends_seconds(settings: Settings) -> float:
    """In a long outage a verdict is dated by the start of its inquiry, and one failed read starts the next (rule 3)."""
    inquiry = inquiry_seconds(settings)
    return max(settings.api.read_interval_seconds, inquiry) + settings.api.read_deadline_seconds + inquiry


def judgement_gap_seconds(settings: Settings) -> float:
    """The longest regular time between two finished judgements; only those feed the watchdog (rule 2)."""
    retried = settings.api.read_deadline_seconds + settings.api.retry_seconds
    return max(settings.api.read_interval_seconds, retried, settings.peers.round_seconds)


def dead_seconds(settings: Settings) -> float:
    """T + 2W: a stall between judging and feeding can cost one more watchdog timeout (rule 2)."""
    return settings.agent.self_timeout_seconds + 2 * settings.watchdog.timeout_seconds


def computed_wait_seconds(settings: Settings) -> float:
    """Returns the seconds that the leader must wait at least (rule 11)."""
    return dead_seconds(settings) + settings.leader.margin_seconds


def least_lease_seconds(settings: Settings) -> float:
    """An exchange with the leaders' Lease may take PERIOD_PART of its duration, and that is no less than a read may."""
    return settings.api.read_deadline_seconds / PERIOD_PART


@frozen
class Quantity:
    """One side of an inequality: what it is, the settings it rests on, and how it follows from them."""

    name: str
    keys: tuple[str, ...]
    seconds: Callable[[Settings], float]


@frozen
class Inequality:
    """`smaller` must be less than `larger`, or at most that if it `may_be_equal`; or else `otherwise` happens."""

    smaller: Quantity
    larger: Quantity
    may_be_equal: bool
    otherwise: str


@frozen
class Contradiction:
    """An inequality that the settings break: the keys on either side, the figures, and what to change."""

    smaller_keys: tuple[str, ...]
    larger_keys: tuple[str, ...]
    sentence: str
    change: str

    @property
    def keys(self) -> tuple[str, ...]:
        return self.larger_keys + self.smaller_keys


_INQUIRY_KEYS = ("api.read_interval_seconds", "api.read_deadline_seconds", "peers.rounds", "peers.round_seconds")

READ_DEADLINE = Quantity(
    "the deadline of a read", ("api.read_deadline_seconds",), lambda settings: settings.api.read_deadline_seconds
)
READ_INTERVAL = Quantity(
    "the time between two reads", ("api.read_interval_seconds",), lambda settings: settings.api.read_interval_seconds
)
FIRST_INQUIRY = Quantity(
    "the time from the last proof to the end of the first inquiry",
    (*_INQUIRY_KEYS, "api.retry_seconds"),
    first_inquiry_ends_seconds,
)
LATER_INQUIRY = Quantity("the age of the oldest proof in a long outage", _INQUIRY_KEYS, later_inquiry_ends_seconds)
SELF_TIMEOUT = Quantity(
    "the self timeout", ("agent.self_timeout_seconds",), lambda settings: settings.agent.self_timeout_seconds
)
TWO_GAPS = Quantity(
    "twice the longest time between two judgements (for one that is late)",
    ("api.read_interval_seconds", "api.read_deadline_seconds", "api.retry_seconds", "peers.round_seconds"),
    lambda settings: 2 * judgement_gap_seconds(settings),
)
WATCHDOG_TIMEOUT = Quantity(
    "the watchdog's timeout", ("watchdog.timeout_seconds",), lambda settings: settings.watchdog.timeout_seconds
)
COMPUTED_WAIT = Quantity(
    "the leader's computed wait",
    ("agent.self_timeout_seconds", "watchdog.timeout_seconds", "leader.margin_seconds"),
    computed_wait_seconds,
)
SAFE_TIME = Quantity(
    "the configured safe time (0 waits as computed)",
    ("leader.safe_time_seconds",),
    lambda settings: settings.leader.safe_time_seconds or math.inf,
)
LEAST_LEASE = Quantity(
    f"{1 / PERIOD_PART:g} times the deadline of a read (a renewal may take {PERIOD_PART:g} of the Lease)",
    ("api.read_deadline_seconds",),
    least_lease_seconds,
)
LEASE_DURATION = Quantity(
    "the leaders' Lease", ("leader.lease_seconds",), lambda settings: settings.leader.lease_seconds
)

INEQUALITIES = (
    Inequality(READ_DEADLINE, READ_INTERVAL, True, "a read is still under way when the next one is due"),
    Inequality(FIRST_INQUIRY, SELF_TIMEOUT, False, "a host gives up before its peers could confirm it"),
    Inequality(LATER_INQUIRY, SELF_TIMEOUT, False, "every host resets itself when the control plane is what failed"),
    Inequality(TWO_GAPS, WATCHDOG_TIMEOUT, True, "one late judgement is enough to reset a host that is well"),
    Inequality(COMPUTED_WAIT, SAFE_TIME, True, "workloads start elsewhere while the host may still run them"),
    Inequality(LEAST_LEASE, LEASE_DURATION, True, "a leader loses its Lease when the API is slow, and yet well"),
)


def broken(settings: Settings) -> list[Contradiction]:
    """Every inequality that does not hold."""
    return [_contradiction(each, settings) for each in INEQUALITIES if not _holds(each, settings)]


def _holds(inequality: Inequality, settings: Settings) -> bool:
    # Rounded to microseconds, so that 0.1 + 0.2 is at most 0.3.
    spare = round(inequality.larger.seconds(settings) - inequality.smaller.seconds(settings), 6)
    return spare > 0 or (spare == 0 and inequality.may_be_equal)


def _contradiction(inequality: Inequality, settings: Settings) -> Contradiction:
    smaller, larger = inequality.smaller, inequality.larger
    least = f"{smaller.seconds(settings):g} s"
    relation, goal = ("at most", "to at least") if inequality.may_be_equal else ("less than", "above")
    sentence = (
        f"{smaller.name} is {least} and must be {relation} {larger.name}, {larger.seconds(settings):g} s; "
        f"otherwise {inequality.otherwise}"
    )
    change = f"raise {', '.join(larger.keys)} {goal} {least}, or lower {', '.join(smaller.keys)}"
    return Contradiction(smaller.keys, larger.keys, sentence, change)


@frozen
class Timeline:
    """The promise of the settings about a host that fails just after its last proof began, in seconds from there."""

    next_read_seconds: float
    noticed_seconds: float
    asks_peers_seconds: float
    condemned_seconds: float
    unfed_seconds: float
    reset_seconds: float
    dead_seconds: float
    leader_acts_seconds: float
    oldest_proof_in_outage_seconds: float

    def rows(self) -> list[tuple[float, str]]:
        """The timeline for a person: seconds, and what happens then."""
        return [
            (0, "its last proof begins: a read of its own Machine that shows it is not condemned"),
            (self.next_read_seconds, "the next read begins, and fails"),
            (self.noticed_seconds, "the failure is noticed: that read has run into its deadline"),
            (self.asks_peers_seconds, f"{FAILED_READS} reads have failed: the host asks its peers"),
            (self.condemned_seconds, "no peer confirmed it: it is condemned and resets itself"),
            (self.unfed_seconds, "it stops feeding its watchdog, even if it never came to a verdict"),
            (self.reset_seconds, "its watchdog resets it, if nothing else did"),
            (self.dead_seconds, "dead at the latest, even if a stall let it feed once more"),
            (
                self.leader_acts_seconds,
                "the leader may act (it counts from when half of the nodes know, after which no proof begins)",
            ),
        ]

    def outage(self) -> str:
        """Returns the promise of the settings for a failure of the control plane."""
        return (
            "nobody is reset, however long it lasts: no proof gets older than "
            f"{self.oldest_proof_in_outage_seconds:g} s, and a host gives up at {self.unfed_seconds:g} s"
        )


def timeline(settings: Settings) -> Timeline:
    next_read = next_read_seconds(settings)
    self_timeout = settings.agent.self_timeout_seconds
    return Timeline(
        next_read_seconds=next_read,
        noticed_seconds=next_read + settings.api.read_deadline_seconds,
        asks_peers_seconds=first_inquiry_begins_seconds(settings),
        condemned_seconds=first_inquiry_ends_seconds(settings),
        unfed_seconds=self_timeout,
        reset_seconds=self_timeout + settings.watchdog.timeout_seconds,
        dead_seconds=dead_seconds(settings),
        leader_acts_seconds=max(computed_wait_seconds(settings), settings.leader.safe_time_seconds),
        oldest_proof_in_outage_seconds=max(first_inquiry_ends_seconds(settings), later_inquiry_ends_seconds(settings)),
    )
