"""A condemned machine is reset, once and in bounded time; a machine that is merely asked about is not."""

from __future__ import annotations

import signal

from pp_hostd.model.condemnation import Requested
from pp_hostd.model.promise import Committed, Withdrawn
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.stage import LONG_SECONDS, Stage, now, outlive, reset_within, says, shows

AT_ONCE_SECONDS = 2.0
"""By the watch, or by the next read."""


def test_a_condemned_host_resets_itself_at_once_and_leaves_word_everywhere(any_stage: Stage) -> None:
    condemned, *peers = any_stage.hosts(3)
    since_at = now()
    condemnation_id = any_stage.contents.condemn(condemned.name)
    reset_within(condemned, since_at, AT_ONCE_SECONDS)
    record = any_stage.record(condemned)
    assert isinstance(record, Committed)
    assert (record.id, record.promise.boot) == (condemnation_id, condemned.boot_id)
    any_stage.bed.boot(condemned.name)
    says(condemned, "the last boot ended because its machine is condemned")
    assert all(peer.is_up() for peer in peers)


def test_a_host_for_which_remediation_is_only_requested_lives_on(stage: Stage) -> None:
    requested, *_ = stage.hosts(3)
    stage.contents.patch(stage.contents.machines, requested.name, {"metadata": Requested(0).render()})
    outlive([requested], LONG_SECONDS)


def test_a_condemned_host_that_has_lost_the_api_is_told_by_its_peers(any_stage: Stage) -> None:
    condemned, *peers = any_stage.hosts(3)
    any_stage.bed.set_api(Mode.SWALLOW, [condemned.name])
    since_at = now()
    any_stage.contents.condemn(condemned.name)
    reset_within(condemned, since_at)
    assert "says unhealthy, and no majority says api-error" in says(condemned, "resetting this host")
    assert all(peer.is_up() for peer in peers)


def test_a_condemned_machine_resets_its_host_and_no_other(machine_stage: Stage) -> None:
    condemned, *peers = machine_stage.hosts(3)
    since_at = now()
    machine_stage.contents.condemn(condemned.name)
    reset_within(condemned, since_at, AT_ONCE_SECONDS)
    assert isinstance(machine_stage.record(condemned), Committed)
    outlive(peers, 0)


def test_a_host_whose_machine_was_deleted_withdraws_and_lives_on(machine_stage: Stage) -> None:
    deleted, *peers = machine_stage.hosts(3)
    machine_stage.delete_machine(deleted)
    shows(deleted, "is gone, and its Node untouched")
    eventually(lambda: isinstance(machine_stage.contents.node(deleted.name).agent, Withdrawn), "it has withdrawn")
    outlive(peers, LONG_SECONDS)
    assert deleted.is_up() and deleted.kubelet_started()


def test_an_agent_that_restarts_without_the_api_still_asks_about_its_own_machine(machine_stage: Stage) -> None:
    host, *_ = machine_stage.hosts(3, patient=1)
    machine_stage.bed.set_api(Mode.REFUSE, [host.name])
    host.signal_agent(signal.SIGKILL)
    eventually(lambda: len(host.events("agent-started")) == 2, "another agent runs")
    shows(host, "healthy: its machine is not condemned (")
    since_at = now()
    machine_stage.contents.condemn(host.name)
    reset_within(host, since_at)
    assert "says unhealthy" in host.status_text()
