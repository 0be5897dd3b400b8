"""A StatefulSet's pod with a volume that only one node may hold, and the controllers that the embedded API lacks.

The pod is a real process on a host. This module plays, on the cluster's own events, the StatefulSet controller and the
scheduler (a pod whose object is gone is made again, on another node), the attachment of its volume, and a kubelet that
starts what is bound to it. None of them acts before pod and VolumeAttachment are gone; pp-leader deletes them.
"""

from __future__ import annotations

import subprocess

from pp_hostd.kube.resources import PODS, VOLUME_ATTACHMENTS
from tests.demo.api import Api, Change
from tests.demo.expect import expect
from tests.harness.bed.host import Host

NAMESPACE, POD, VOLUME = "default", "db-0", "data-db-0"


class Workload:
    """Once `start`ed on a host, it moves to the refuge when the cluster lets it go."""

    def __init__(self, api: Api, refuge: Host) -> None:
        self._api, self._refuge = api, refuge
        self._gone = {PODS: False, VOLUME_ATTACHMENTS: False}
        self._copies: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, host: Host) -> None:
        """Bind it, attach its volume, run it."""
        expect(not self.running_on(), f"{POD} never runs twice at once")
        spec = {"nodeName": host.name, "containers": [{"name": "db", "image": "db"}]}
        self._api.create(PODS, {"metadata": {"name": POD}, "spec": spec}, NAMESPACE)
        held = {"attacher": "demo", "nodeName": host.name, "source": {"persistentVolumeName": VOLUME}}
        self._api.create(VOLUME_ATTACHMENTS, {"metadata": {"name": VOLUME}, "spec": held})
        self._copies.append((host.name, subprocess.Popen(host.command("sleep", "infinity"), start_new_session=True)))
        self._api.patch(PODS.path(NAMESPACE, POD, "status"), {"status": {"phase": "Running"}})

    def play(self, change: Change) -> None:
        """Plays the controllers' reaction to a change."""
        if change.how != "DELETED" or change.kind not in self._gone:
            return
        self._gone[change.kind] = True
        if all(self._gone.values()):
            self.start(self._refuge)

    def running_on(self) -> list[str]:
        """The hosts on which a copy runs now."""
        return [name for name, process in self._copies if process.poll() is None]
