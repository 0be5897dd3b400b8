"""The timeline of a site: what the cluster showed and what the leaders and the hosts said, in the order of time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pp_hostd.kube.resources import PODS
from tests.harness.bed.host import Host
from tests.scenarios.endtoend.site import Site
from tests.scenarios.endtoend.workload import PLACE
from tests.scenarios.leading import now

Shown = dict[str, str]


class Moment(NamedTuple):
    """An entry of the timeline: `who` names the host or the object, `what` says what happened to it."""

    at: float
    who: str
    what: str


class Timeline:
    """Begins with what somebody does to these hosts, told by `what`; `look` again and again until it is over."""

    def __init__(self, site: Site, hosts: list[Host], what: str) -> None:
        self._site, self._hosts = site, hosts
        self._shown = self._show()
        self.since_at = now()
        self._changes = [Moment(self.since_at, ", ".join(host.name for host in hosts), what)]

    def look(self) -> None:
        """Note what has changed in the cluster."""
        shown, at = self._show(), now()
        self._changes += [Moment(at, who, what) for who, what in shown.items() if what != self._shown.get(who)]
        self._shown = shown

    def at(self, words: str) -> float:
        """When something with these words was first told."""
        return next(at for at, who, what in self.moments() if words in f"{who}: {what}")

    def moments(self) -> list[Moment]:
        """All that is known by now."""
        said = [
            Moment(event["at"], host.name, f"says: {event['line']}")
            for host in self._site.bed.hosts.values()
            for event in host.record.events("journal")
            if event["source"] == "socket" and (host in self._hosts or self._concerns(str(event["line"])))
        ]
        downs = [(host, event) for host in self._hosts for event in host.record.events("down")]
        resets = [Moment(event["at"], host.name, f"is down: {event['how']}") for host, event in downs]
        return sorted(moment for moment in (*self._changes, *said, *resets) if moment.at >= self.since_at)

    def text(self) -> str:
        return "".join(f"{at - self.since_at:6.1f} s  {who}: {what}\n" for at, who, what in self.moments())

    def keep(self, path: Path) -> None:
        """As a file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(self.text())
        part.replace(path)

    def _concerns(self, line: str) -> bool:
        return any(line.startswith(f"{host.name}: ") for host in self._hosts)

    def _show(self) -> Shown:
        """Returns the state of the nodes, the workload and its volumes, as `kubectl get` would show it."""
        nodes = {f"Node {host.name}": self._show_node(host) for host in self._hosts}
        pods = {f"Pod {pod}": self._show_pod(pod) for pod in self._site.workload.pods}
        attached = {pod: self._site.workload.attached_to(pod) for pod in self._site.workload.pods}
        volumes = {f"Volume of {pod}": f"attached to {node}" if node else "detached" for pod, node in attached.items()}
        return {**nodes, **pods, **volumes}

    def _show_node(self, host: Host) -> str:
        uid = self._site.uid(host)
        return f"is there (uid {uid[:8]})" if uid else "is gone"

    def _show_pod(self, name: str) -> str:
        pod = self._site.contents.find(PODS, name, PLACE)
        if pod is None:
            return "is gone"
        if "deletionTimestamp" in pod["metadata"]:
            return "is to end"
        return f"{pod['status']['phase']} on {pod['spec'].get('nodeName', 'no node yet')}"
