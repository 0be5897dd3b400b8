"""The agent's figures for Prometheus: pure functions of its memory, its commitments and the record of earlier boots."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator

from pp_hostd.agent.driver import Driver
from pp_hostd.agent.plan import too_few
from pp_hostd.agent.sense.boot import Ending
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.model.boot_commitments import BootCommitments
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.memory import Memory, Source
from pp_hostd.model.moment import parse_moment
from pp_hostd.model.promise import Armed, WatchdogKind
from pp_hostd.model.settings import Settings
from pp_hostd.service.metric import Metric, build_info, gauge


class Unprotected(enum.Enum):
    """Why a host is not bound to reset itself."""

    DRY_RUN = "dry-run"
    RESETTING = "resetting"
    STOPPING = "stopping"
    MAINTENANCE = "maintenance"
    CONDEMNED = "condemned"
    FREEING = "freeing"
    NO_MACHINE = "no-machine"
    NO_ROSTER = "no-roster"
    NOT_ENROLLED = "not-enrolled"
    TOO_FEW_NODES = "too-few-nodes"
    NO_NODE = "no-node"
    NO_PROOF = "no-proof"
    ARMING = "arming"


class Concluded(enum.Enum):
    """How an inquiry ended."""

    CONFIRMED = "confirmed"
    """A peer has said "healthy"."""
    OUTAGE = "outage"
    OWN_READ = "own-read"
    CONDEMNED = "condemned"
    """The host resets itself; so only a dry run, or a scrape in the last seconds, shows it."""
    NOTHING = "nothing"
    """A peer found no machine, so the host reads again; or the host is not armed any more."""


class EndedBy(enum.Enum):
    """The cause of an earlier boot's reset, as the record in /var/lib says."""

    CONDEMNED = "condemned"
    OUTVOTED = "outvoted"
    NO_PROOF = "no-proof"
    WATCHDOG = "watchdog"
    TEST = "test"
    SHUTDOWN = "shutdown"
    OTHER = "other"


_CAUSES = {
    "its machine is condemned": EndedBy.CONDEMNED,
    "no peer confirms that it is healthy": EndedBy.OUTVOTED,
    "no majority says api-error": EndedBy.OUTVOTED,
    "no proof for": EndedBy.NO_PROOF,
    "its watchdog was not fed in time": EndedBy.WATCHDOG,
    "ordered a test": EndedBy.TEST,
    "its promise could neither be prolonged nor withdrawn": EndedBy.SHUTDOWN,
}
"""By words of the sentence: the record must stay readable over versions, and it holds the sentence alone."""


def ended_by(cause: str) -> EndedBy:
    return next((reason for words, reason in _CAUSES.items() if words in cause), EndedBy.OTHER)


def why_unprotected(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, memory: Memory
) -> Unprotected | None:
    """None if the watchdog is armed, a promise stands on the Node, and no reset is decided."""
    if commitments.watchdog is not None and isinstance(commitments.stored, Armed) and memory.decision is None:
        return None
    node = None if commitments.look is None else commitments.look.node
    electorate = host_context.electorate
    reasons = {
        Unprotected.DRY_RUN: settings.agent.mode == "dry-run",
        Unprotected.RESETTING: memory.decision is not None,
        Unprotected.STOPPING: host_context.stopping,
        Unprotected.MAINTENANCE: host_context.maintenance is not None,
        Unprotected.CONDEMNED: memory.condemned_id is not None,
        Unprotected.FREEING: node is not None and node.freeing is not None,
        Unprotected.NO_MACHINE: memory.machine_gone,
        Unprotected.NO_ROSTER: electorate is None,
        Unprotected.NOT_ENROLLED: electorate is not None and host_context.member is None,
        Unprotected.TOO_FEW_NODES: electorate is not None and bool(too_few(settings, electorate.n)),
        Unprotected.NO_NODE: commitments.look is not None and commitments.look.missing,
        Unprotected.NO_PROOF: memory.proof is None or bool(memory.failed_reads),
    }
    return next((reason for reason, holds in reasons.items() if holds), Unprotected.ARMING)


def conclusion(before: Memory, after: Memory) -> Concluded | None:
    """How the inquiry under way has ended between two judgements; None if there was none, or it goes on."""
    begun = before.inquiry
    if begun is None or (after.inquiry is not None and after.inquiry.started_at == begun.started_at):
        return None
    if after.decision is not None:
        return Concluded.CONDEMNED
    if after.proof is None or after.proof is before.proof:
        return Concluded.NOTHING
    sources = {Source.PEER: Concluded.CONFIRMED, Source.OUTAGE: Concluded.OUTAGE, Source.OWN_READ: Concluded.OWN_READ}
    return sources[after.proof.source]


class Inquiries:
    """Counts how inquiries of this process have ended."""

    def __init__(self) -> None:
        self._ended: Counter[Concluded] = Counter()
        self._before = Memory()

    def follow(self, memory: Memory) -> None:
        """To be called after each judgement."""
        ended, self._before = conclusion(self._before, memory), memory
        if ended is not None:
            self._ended[ended] += 1

    def metrics(self) -> Iterator[Metric]:
        samples = [({"verdict": each.value}, self._ended[each]) for each in Concluded]
        yield Metric("pp_hostd_inquiries_total", "Inquiries that ended, by what they found.", "counter", samples)


class Figures:
    """The figures of the agent's state and of the record of earlier boots."""

    def __init__(self, driver: Driver, senses: AgentSenses, endings: Iterable[Ending]) -> None:
        self._driver, self._senses = driver, senses
        self._resets = list(reset_figures(endings))

    def metrics(self) -> Iterator[Metric]:
        driver = self._driver
        yield build_info("pp_hostd_build_info")
        yield from standing_figures(driver.settings, self._senses.host_context(), driver.commitments, driver.memory)
        yield from self._resets


def standing_figures(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, memory: Memory
) -> Iterator[Metric]:
    why = why_unprotected(settings, host_context, commitments, memory)
    text = "1 while the watchdog is armed and the promise stands on the Node."
    yield gauge("pp_hostd_protected", text, int(why is None))
    reasons = [({"reason": each.value}, int(each is why)) for each in Unprotected]
    yield Metric("pp_hostd_unprotected_reason", "1 for the reason why it is not protected.", "gauge", reasons)
    timeout_seconds = settings.agent.self_timeout_seconds
    text = "T: without a proof for so long, the host stops feeding its watchdog."
    yield gauge("pp_hostd_self_timeout_seconds", text, timeout_seconds)
    armed = commitments.watchdog
    kinds = [({"kind": each.value}, int(armed is not None and armed.kind is each)) for each in WatchdogKind]
    yield Metric("pp_hostd_watchdog_armed", "1 for the kind of watchdog that is armed.", "gauge", kinds)
    text = "W: the timeout of the watchdog that is armed, as its device reads it back."
    yield gauge("pp_hostd_watchdog_timeout_seconds", text, None if armed is None else armed.timeout_seconds)


def reset_figures(endings: Iterable[Ending]) -> Iterator[Metric]:
    """A reset ends the kernel and every counter with it: these come from the record of the last 100 that survives."""
    found = list(endings)
    counted = Counter(ended_by(each.cause) for each in found)
    samples = [({"reason": each.value}, counted[each]) for each in EndedBy]
    text = "Resets of this host in the record of the last 100, by what ended that boot."
    yield Metric("pp_hostd_recorded_resets", text, "gauge", samples)
    moments = [moment for moment in (parse_moment(each.ended_wallclock) for each in found) if moment is not None]
    text = "When the last of them was decided, in seconds since 1970, if a record says so."
    yield gauge("pp_hostd_last_reset_timestamp_seconds", text, max(moments).timestamp() if moments else None)
