"""Outages that are the control plane's: nobody is reset, nothing is deleted, and the workload stays where it runs."""

from __future__ import annotations

from pp_hostd.model.condemnation import Condemned
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.site import Site
from tests.scenarios.leading import WAIT_SECONDS
from tests.scenarios.stage import outlive


def test_a_majority_that_is_cut_off_from_the_api_is_neither_freed_nor_reset(site: Site) -> None:
    hosts = site.begin()
    (suspected,) = site.hosts_of("web-0")
    majority = [host for host in hosts if host.name not in site.leading]
    uid = site.uid(suspected)
    site.bed.cut(*(host.name for host in majority))
    site.request(suspected)
    site.shows("3 of 8 nodes have acknowledged, and 1 more must")
    outlive(hosts, WAIT_SECONDS)
    assert site.uid(suspected) == uid
    assert site.machine(suspected) is Condemned
    site.lift(suspected)


def test_when_the_api_server_is_dead_nobody_is_reset_and_all_goes_on_after(site: Site) -> None:
    hosts = site.begin()
    places = site.hosts_of("web-0", "web-1")
    uids = [site.uid(host) for host in hosts]
    site.cluster.stop_api()
    site.says("leads no longer")
    outlive(hosts, WAIT_SECONDS)
    site.cluster.start_api()
    eventually(site.leader, "somebody leads again", 30)
    site.begin()
    assert site.hosts_of("web-0", "web-1") == places
    assert [site.uid(host) for host in hosts] == uids
