"""Peers that deceive are as good as silent: many of them confirm nobody, and one honest peer does."""

from __future__ import annotations

from tests.harness.bed.false_peer import command
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.faults import last_proof_at, rebuilt, status
from tests.scenarios.stage import LONG_SECONDS, Stage, outlive, reset_within, says, shows

REASONS = {
    "slow": "no whole answer in time",
    "forge": "its signature is missing or wrong",
    "replay": "its signature is missing or wrong",
    "about-another": "it answers another question",
    "as-another": "it answers another question",
}
"""By deceit: why the asking host takes it for silence."""


def test_a_majority_of_deceivers_vouches_for_nobody_and_one_honest_peer_does(stage: Stage) -> None:
    asking, honest, *others = stage.hosts(2 + len(REASONS))
    deceits = dict(zip((host.name for host in others), REASONS))
    with rebuilt(stage, {name: command(deceit) for name, deceit in deceits.items()}):
        for host in others:
            host.kill()
        stage.bed.boot(*deceits)
        stage.bed.set_api(Mode.REFUSE, [asking.name])
        silences: dict[str, str] = {}
        eventually(lambda: is_deceived(asking, silences, deceits), "everybody has tried to deceive it", 60)
        outlive([asking], LONG_SECONDS)
        shows(asking, f"{honest.name} confirms it")
        since_at = last_proof_at(asking)
        stage.bed.cut_pairs((asking.name, honest.name), (honest.name, asking.name))
        reset_within(asking, since_at)
        says(asking, f"no peer confirms that it is healthy: {1 + len(others)} silent of {1 + len(others)} asked")


def is_deceived(asking: Host, silences: dict[str, str], deceits: dict[str, str]) -> bool:
    """Whether each has been taken for silent, and for the right reason; which peers are asked is left to chance."""
    assert asking.is_up(), asking.journal()[-3:]
    for answer in status(asking)["answers"]:
        if answer["peer"] in deceits and REASONS[deceits[answer["peer"]]] in str(answer):
            silences[answer["peer"]] = str(answer)
    return silences.keys() == deceits.keys()
