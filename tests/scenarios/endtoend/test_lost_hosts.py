"""Hosts that are lost: their pods run elsewhere once they are certainly dead, and the hosts come back."""

from __future__ import annotations

from tests.harness.bed.bed import REPOSITORY
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.site import TAINT, Site
from tests.scenarios.endtoend.timeline import Timeline
from tests.scenarios.leading import WAIT_SECONDS, now


def test_the_pod_of_a_worker_whose_link_is_pulled_runs_elsewhere(site: Site) -> None:
    site.begin()
    (lost,) = site.hosts_of("web-0")
    timeline = Timeline(site, [lost], "its link is pulled, and its remediation requested")
    site.bed.set_carrier(lost.name, False)
    site.request(lost)
    runs_elsewhere_after_death(site, timeline, lost, "web-0")
    site.begin()
    timeline.look()
    print(timeline.text())
    timeline.keep(REPOSITORY / "build" / "timeline.txt")


def test_two_workers_that_are_cut_off_together_are_both_freed(site: Site) -> None:
    site.begin()
    lost = site.hosts_of("web-0", "web-1")
    timeline = Timeline(site, lost, "cut off together, and their remediation requested")
    site.bed.cut(*(host.name for host in lost))
    both_run_elsewhere(site, timeline, lost)


def test_two_workers_that_are_lost_at_once_are_both_freed(site: Site) -> None:
    site.begin()
    lost = site.hosts_of("web-0", "web-1")
    timeline = Timeline(site, lost, "cut off each by itself, and their remediation requested")
    for host in lost:
        site.bed.cut(host.name)
    both_run_elsewhere(site, timeline, lost)


def test_with_half_of_the_nodes_on_its_side_a_host_is_freed_and_that_side_resets_itself(site: Site) -> None:
    hosts = site.begin()
    (lost,) = site.hosts_of("web-0")
    others = [host for host in hosts if host is not lost and host.name not in site.leading]
    side = [lost, *others[:3]]
    assert 2 * len(side) == len(hosts)
    uid = site.uid(lost)
    timeline = Timeline(site, side, "cut off from the other half, and remediation of the first requested")
    site.bed.cut(*(host.name for host in side))
    site.request(lost)
    site.freed(lost, uid)
    for host in side:
        assert host.await_down()["how"] == "reboot"
    assert lost.down()["at"] < timeline.at(f"{lost.name}: it had")
    eventually(lambda: site.workload.attached_to("web-0") != lost.name, "its volume is free")
    assert all(host.is_up() for host in hosts if host not in side)


def test_a_leader_whose_own_host_is_lost_is_followed_by_another_that_frees_it(site: Site) -> None:
    site.begin()
    lost = site.bed.hosts[site.leader()]
    uid = site.uid(lost)
    timeline = Timeline(site, [lost], "cut off, with the leader on it, and its remediation requested")
    site.bed.cut(lost.name)
    site.request(lost)
    site.freed(lost, uid)
    assert lost.down()["at"] < timeline.at(f"{lost.name}: it had")
    assert TAINT in site.given_back(lost)["spec"]["taints"]
    assert site.leader() not in ("", lost.name)


def test_a_host_that_reboots_into_the_same_isolation_stays_idle_and_does_not_reboot_again(site: Site) -> None:
    site.begin()
    (lost,) = site.hosts_of("web-0")
    timeline = Timeline(site, [lost], "cut off, and its remediation requested")
    site.bed.cut(lost.name)
    site.request(lost)
    lost.await_down()
    site.bed.boot(lost.name)
    runs_elsewhere_after_death(site, timeline, lost, "web-0")
    until_at = now() + WAIT_SECONDS
    eventually(lambda: now() > until_at, "longer than a host lives without proof", WAIT_SECONDS + 1)
    assert lost.is_up() and not lost.kubelet_started() and not lost.watchdog("open")


def both_run_elsewhere(site: Site, timeline: Timeline, lost: list[Host]) -> None:
    """Once both are requested."""
    for host in lost:
        site.request(host)
    for host, pod in zip(lost, site.workload.pods):
        runs_elsewhere_after_death(site, timeline, host, pod)


def runs_elsewhere_after_death(site: Site, timeline: Timeline, lost: Host, pod: str) -> None:
    """And nothing of it was freed, started or attached anywhere before its host was dead, which it was once."""

    def elsewhere() -> bool:
        timeline.look()
        return site.workload.node_of(pod) not in ("", lost.name)

    eventually(elsewhere, f"{pod} runs elsewhere", 3 * WAIT_SECONDS)
    timeline.look()  # it may have come just after the last look
    (died_at,) = [event["at"] for event in lost.record.events("down") if event["at"] > timeline.since_at]
    node = site.workload.node_of(pod)
    moments = [f"{lost.name}: it had", f"Pod {pod}: Running on {node}", f"Volume of {pod}: attached to {node}"]
    assert died_at < min(map(timeline.at, moments)), timeline.text()
