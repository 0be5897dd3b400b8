"""A host whose storage alone is cut off: pods on that storage start elsewhere, others stay, and the storage is given
back to another boot of the host only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.kube.resources import NODE_FENCES, PODS, VOLUME_ATTACHMENTS
from tests.bmc.rig import NODE, PLACE, REPOSITORY
from tests.fencing.helpers import Agents
from tests.fencing.living import LONG_SECONDS, OTHER, STATEFUL_SETS, LivingSite, stateful_set
from tests.fencing.site import UNKNOWN
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.attacher import DRIVER
from tests.scenarios.endtoend.workload import CSI_DRIVERS, VOLUMES

STORAGE, DATA = "san", "data-0"
SWITCH = "agent_name=fence_dummy\nfences=storage\nstorage=san\n"
AGENT = "{ cat; echo status_file=switch; } | /usr/sbin/fence_dummy"
"""Debian's, with a file of its own. People can't have it write to a file that they name."""


class StorageSite(LivingSite):
    """NODE also runs a pod on a volume of the storage that its switch cuts off."""

    switch: Path

    def settle(self) -> None:
        attacher = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.scenarios.endtoend.attacher"]
        self.supervisor.run("attacher", [*attacher, str(self.cluster.kubeconfig())])
        self.create(CSI_DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}})
        size = {"storage": "1Gi"}
        shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": STORAGE}
        of_claim = {"namespace": PLACE, "name": f"disk-{DATA}"}
        source = {"csi": {"driver": DRIVER, "volumeHandle": DATA}, "claimRef": of_claim}
        self.create(VOLUMES, {"metadata": {"name": DATA}, "spec": {**shared, **source, "capacity": size}})
        claim = {"metadata": {"name": "disk"}, "spec": {**shared, "resources": {"requests": size}}}
        self.create(STATEFUL_SETS, stateful_set("data", claim), PLACE)
        super().settle()
        eventually(lambda: self.place(DATA) == self.attached() == NODE, "its pod has its volume", LONG_SECONDS)

    def attached(self) -> str:
        """The node that has the volume."""
        every = [each for each in self.items(VOLUME_ATTACHMENTS) if each.get("status", {}).get("attached")]
        return " ".join(str(each["spec"]["nodeName"]) for each in every)

    def is_cut_off(self) -> bool:
        return self.switch.read_text() == "off"


@pytest.fixture
def site(tmp_path: Path, agents: Agents) -> Iterator[StorageSite]:
    agents.write(AGENT, "fence_dummy")
    agents.write('exec /usr/sbin/fence_ipmilan "$@"', "fence_ipmilan")
    with StorageSite.begin(tmp_path, agents.directory) as site:
        assert isinstance(site, StorageSite)
        site.switch = agents.directory / "switch"
        site.switch.write_text("on")
        try:
            site.settle()
            yield site
        finally:
            site.end()


def test_only_pods_on_a_storage_that_is_cut_off_move_and_only_another_boot_gets_it_back(site: StorageSite) -> None:
    lists = {"isolation": "mark-unschedulable,cut", "power_management": "", "recovery": "mark-schedulable,give-back"}
    site.configure(lists, cut=f"{SWITCH}action=off\n", give_back=f"{SWITCH}action=on\n")
    site.remedy(UNKNOWN)
    pid, uid, data_uid = site.pid, site.pod()["metadata"]["uid"], site.pod(DATA)["metadata"]["uid"]
    site.stand_still()
    eventually(lambda: site.pod(DATA).get("metadata", {}).get("uid") != data_uid, "it is freed", LONG_SECONDS)
    assert site.is_cut_off()
    eventually(lambda: site.place(DATA) == site.attached() == OTHER, "it runs elsewhere", LONG_SECONDS)
    site.reaches("Power-Management", "Done")

    site.go_on()
    eventually(site.is_ready, "the same boot is Ready again", LONG_SECONDS)
    site.create(NODE_FENCES, {"metadata": {"name": f"node-fence-{OTHER}"}, "node": OTHER})
    eventually(lambda: len(site.items(NODE_FENCES)) == 1, "the leader has looked at all flows", LONG_SECONDS)
    assert site.pid == pid
    assert site.is_cut_off()
    assert site.fence()["status"] == "Done"
    metadata = site.pod()["metadata"]
    assert metadata["uid"] == uid and "deletionTimestamp" not in metadata

    site.act("reboot")
    site.reaches("Recovery", "Final")
    assert site.pid not in (0, pid)
    assert not site.is_cut_off()
    assert site.place(DATA) == site.attached() == OTHER
    assert [each["metadata"]["uid"] for each in site.items(PODS) if each["metadata"]["name"] == "web-0"] == [uid]
