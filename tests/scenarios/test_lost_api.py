"""A host that can't read the API asks its peers, and lives or dies by what they say."""

from __future__ import annotations

from tests.harness.bed.relay import Mode
from tests.harness.cluster import token_of
from tests.scenarios.stage import LONG_SECONDS, Stage, now, outlive, reset_within, says, shows

MODES = [Mode.REFUSE, Mode.SWALLOW, Mode.TRICKLE, Mode.RESET]
REFUSED_TOKENS = {"revoked": "401", token_of("nobody"): "403"}
"""Each with what the API answers to it: authentication revoked, rights removed."""


def test_hosts_that_lose_the_api_in_any_way_live_on_while_peers_vouch_and_die_when_they_accuse(stage: Stage) -> None:
    hosts = stage.hosts(12, tokens=2)
    well, lost, revoked = hosts[:6], hosts[6:10], dict(zip(hosts[10:], REFUSED_TOKENS))
    for host, mode in zip(lost, MODES):
        stage.bed.set_api(mode, [host.name])
    for host, token in revoked.items():
        stage.write_token(host, token)
    outlive(hosts, LONG_SECONDS)
    for host in (*lost, *revoked):
        says(host, "of 3 reads failed before it asks its peers")
        shows(host, "confirms it)")
    for host, token in revoked.items():
        says(host, REFUSED_TOKENS[token])
    since_at = now()
    for host in (*lost, *revoked):
        stage.contents.condemn(host.name)
    for host in (*lost, *revoked):
        reset_within(host, since_at)
    for host in lost:  # the others may still have a watch that was granted before
        assert "says unhealthy" in says(host, "resetting this host")
    assert all(host.is_up() for host in well)


def test_peers_that_only_a_later_sample_reaches_vouch_all_the_same(stage: Stage) -> None:
    alone, _ = stage.hosts(2, dead=10)
    stage.bed.set_api(Mode.REFUSE, [alone.name])
    shows(alone, "asks its peers, round 3 of 4", 60)  # 7 of the 11 are asked in the rounds from the third on
    shows(alone, "healthy: its machine is not condemned (worker-2 confirms it)")


def test_a_host_to_whom_nobody_answers_resets_itself_and_those_who_hear_each_other_live(any_stage: Stage) -> None:
    cut_off, *others = any_stage.hosts(3)
    since_at = now()
    any_stage.bed.cut(cut_off.name)
    reset_within(cut_off, since_at)
    says(cut_off, "no peer confirms that it is healthy: 2 silent of 2 asked")
    outlive(others, 0)


def test_rights_taken_from_everybody_reset_nobody(any_stage: Stage) -> None:
    hosts = any_stage.hosts(3, tokens=3)
    for host in hosts:
        any_stage.write_token(host, token_of("nobody"))
    outlive(hosts, LONG_SECONDS)
    for host in hosts:
        assert "403" in says(host, "of 3 reads failed")
        shows(host, "the control plane is out, not this host")
