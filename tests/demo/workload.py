"""A pod with a volume that only one node may hold, and the programs that a Kubernetes would run beside its API.

The pod is a real process on a host. This module plays, on what the API shows, the StatefulSet controller and the
scheduler (a pod whose object is gone is made again), the attachment of its volume, and the kubelet that starts what is
bound to its host and ends what is deleted. The next copy waits until pod and VolumeAttachment are gone: of a host that
nobody reaches, only pp-leader deletes them.
"""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.kube.resources import PODS, VOLUME_ATTACHMENTS
from pp_hostd.model.moment import render_moment
from tests.demo.api import Api, Json
from tests.demo.expect import expect
from tests.harness.bed.host import Host

NAMESPACE, POD, VOLUME = "default", "db-0", "data-db-0"


class Workload:
    """`play` it often. `place` chooses the host of the next copy, and None if there is none now."""

    def __init__(self, api: Api, place: Callable[[], Host | None]) -> None:
        self._api, self._place = api, place
        self._copies: list[tuple[str, int, subprocess.Popen[bytes]]] = []

    def play(self, kubelets: dict[str, Host]) -> None:
        """`kubelets` are the hosts whose kubelets run and reach the API."""
        pod, attachment = self._api.seen(PODS, POD), self._api.seen(VOLUME_ATTACHMENTS, VOLUME)
        if pod is None and attachment is None:
            self._bind(self._place())
        elif pod is None and attachment is not None and attachment["spec"]["nodeName"] in kubelets:
            self._api.delete(VOLUME_ATTACHMENTS.path(name=VOLUME))  # its host has ended the pod
        elif pod is not None and pod["spec"]["nodeName"] in kubelets:
            self._keep(kubelets[pod["spec"]["nodeName"]], pod, attached=attachment is not None)

    def running_on(self) -> list[str]:
        """The hosts on which a copy runs now."""
        return [name for name, _, process in self._copies if process.poll() is None]

    def _bind(self, host: Host | None) -> None:
        if host is None:
            return
        spec = {"nodeName": host.name, "containers": [{"name": "db", "image": "db"}]}
        self._api.create(PODS, {"metadata": {"name": POD}, "spec": spec}, NAMESPACE)
        held = {"attacher": "demo", "nodeName": host.name, "source": {"persistentVolumeName": VOLUME}}
        self._api.create(VOLUME_ATTACHMENTS, {"metadata": {"name": VOLUME}, "spec": held})

    def _keep(self, host: Host, pod: Json, *, attached: bool) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            for name, _, process in self._copies:
                if name == host.name and process.poll() is None:
                    process.kill()
                    process.wait()
            self._api.delete(PODS.path(NAMESPACE, POD), {"gracePeriodSeconds": 0})
        elif attached and host.name not in self.running_on():
            self._run(host)

    def _run(self, host: Host) -> None:
        expect(not self.running_on(), f"{POD} never runs twice at once")
        command = host.command("sleep", "infinity")
        self._copies.append((host.name, host.boots, subprocess.Popen(command, start_new_session=True)))
        started = {"startedAt": render_moment(datetime.now(timezone.utc).replace(microsecond=0))}
        container = {"name": "db", "image": "db", "imageID": "db", "ready": True, "restartCount": 0}
        status = {
            "phase": "Running",
            "podIP": host.address,
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{**container, "state": {"running": started}}],
        }
        self._api.patch(PODS.path(NAMESPACE, POD, "status"), {"status": status})
