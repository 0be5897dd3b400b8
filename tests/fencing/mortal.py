"""A site whose two leaders die at their writes: the agent's own record, and the API, tell whether a flow ended well.

The agent is a script that the real helper runs. The test acts for the kubelet, and for the controller of Jobs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pp_hostd.kube.resources import (
    JOBS,
    KUBELET_LEASES,
    LEASES,
    NAMESPACES,
    NODE_FENCES,
    NODES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from pp_hostd.model.keys import BUDGET, CORDONED, FENCED_BOOT, FREEING, LEADER_USER, LEADERS, NAMESPACE
from pp_hostd.model.keys import REMEDIATION_PODNAME as JOB
from pp_hostd.model.lease import LEASE
from tests.bmc.rig import NODE, PLACE, Json
from tests.fencing.bmcs import Bmc
from tests.fencing.helpers import Agents
from tests.fencing.site import FENCE, UNKNOWN, FenceSite
from tests.harness.eventually import eventually
from tests.harness.go_between import Asked
from tests.scenarios.accidents import Accident, Accidents

LEADING = ("first", "second")
LONG_SECONDS = 240.0
AGENT = """
read -r up rest </proc/uptime
while read -r line; do case "$line" in action=*) action="${line#action=}";; esac; done
echo "$up $action" >>calls
case "$action" in
status) test -e power || exit 2;;
off) rm -f power;;
on) : >power;;
esac
"""
"""Its host has power while the file `power` is there."""
_MARKS = {CORDONED: "cordoned", FENCED_BOOT: "fenced boot", FREEING: "freeing", JOB: "job"}


def name_of(asked: Asked) -> str | None:
    """Names a write of a flow, by what it makes of its object. None: a read, or the leader's own affairs."""
    if asked.method == "GET":
        return None
    body = json.loads(asked.body) if asked.body else {}
    parts = asked.path.partition("?")[0].split("/")
    plural, name = parts[-2:] if asked.method != "POST" else (parts[-1], body["metadata"].get("name"))
    if plural == NODE_FENCES.plural and asked.method == "PATCH":
        return f"flow: {_progress(body)}"
    if plural == NODES.plural:
        marks = body["metadata"].get("annotations") or {}
        told = ["taints"] if (body.get("spec") or {}).get("taints") else []
        told += [f"{word} {'set' if marks[key] else 'removed'}" for key, word in _MARKS.items() if key in marks]
        return f"node: {', '.join(told)}" if told else None
    if name == BUDGET:
        return "budget"
    if plural == JOBS.plural:
        return f"{asked.method} jobs {_action(body)}"
    written = (NODE_FENCES, PODS, VOLUME_ATTACHMENTS)
    return f"{asked.method} {plural}" if plural in [kind.plural for kind in written] else None


def _progress(body: Json) -> str:
    last = next(reversed(body["methods"]), None)
    words = [body["step"], body["status"]]
    if last is not None:
        words += [last["name"], last["action"], last["outcome"], "as a Job" if last.get("job") else ""]
    return " ".join(filter(None, words))


def _action(job: Json) -> str:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return "off" if "call off" in container["command"][-1] else "on"


class Scripted(Bmc):
    """No device: the agent itself knows the power."""

    agent, name, access, command = "fence_ipmilan", "none", {"ip": "192.0.2.7", "password": ""}, []

    def start(self) -> None:
        """There is nothing to start."""


class MortalSite(FenceSite):
    """`of` is how to get one. Agents run beside the leader, or as Jobs."""

    settings: Mapping[str, Any] = {**FenceSite.settings, "leader.lease_seconds": 5.0}
    executor = "host"
    agents: Path
    """Their directory."""

    @classmethod
    @contextlib.contextmanager
    def of(cls, directory: Path) -> Iterator[MortalSite]:
        agents = Agents(directory)
        agents.write(AGENT, Scripted.agent)
        with cls.begin(directory, directory) as site:
            assert isinstance(site, MortalSite)
            site.agents = directory
            with site.accidents:
                try:
                    yield site
                finally:
                    for name in LEADING:
                        site.supervisor.kill(name)

    def _build(self) -> None:
        self.accidents = Accidents(self.cluster, lambda user: self.supervisor.kill(user.rpartition(":")[2]), name_of)
        self.create(NAMESPACES, {"metadata": {"name": PLACE}})
        self.install()
        self.bmc = Scripted(self.supervisor)
        self.configure({"power_management": "bmc"})
        self.remedy(UNKNOWN)
        self.create(NODES, {"metadata": {"name": NODE}})
        self.create(LEASES, {"metadata": {"name": NODE}, "spec": {"holderIdentity": NODE}}, KUBELET_LEASES)
        self._boots = 0

    def create_map(self, name: str, data: dict[str, str]) -> None:
        more = "" if name != "fence-cluster-config" else f"executor={self.executor}\nagent_image=agents\n"
        super().create_map(name, {key: f"{text}{more}" for key, text in data.items()})

    def own_settings(self, name: str) -> dict[str, str]:
        """Its own user, and the way through the accidents."""
        path = self.cluster.kubeconfig(f"{LEADER_USER}:{name}", (LEADERS,))
        path.write_text(path.read_text().replace(self.cluster.server, f"https://127.0.0.1:{self.accidents.port}"))
        return {"leader.kubeconfig": str(path), "agent.node_name": f"outside-{name}"}

    # A trial.

    def survive(self, accident: Accident | None) -> list[str]:
        """Has the node fenced, with this accident on the way, and checks all that must be so. Returns the writes."""
        self._begin()
        self.accidents.prepare(accident)
        self.report("Unknown", f"boot-{self._boots}")
        try:
            eventually(self._is_over, "the flow is over", LONG_SECONDS)
            if accident is not None:  # the last write of a flow is seen before its accident
                eventually(lambda: self.accidents.struck, "it has befallen a leader")
        except TimeoutError as error:
            tails = self.supervisor.log_tails()
            raise AssertionError(f"{accident}: {error}\n{self.fence()}\n{tails['first']}\n{tails['second']}") from error
        self._check()
        done = [str(write) for write in self.accidents.done_at]
        self.accidents.prepare(None)
        self.delete(NODE_FENCES, FENCE)
        eventually(lambda: not self.fence(), "the NodeFence is gone", LONG_SECONDS)
        return done

    def _begin(self) -> None:
        """All is well, and both leaders run."""
        (self.agents / "power").touch()
        (self.agents / "calls").write_text("")
        self._boots += 1
        self.report("True", f"boot-{self._boots}")
        self.renew()
        self.add_pod("web-0")
        spec = {"attacher": "example.com", "nodeName": NODE, "source": {"persistentVolumeName": "web"}}
        self.create(VOLUME_ATTACHMENTS, {"metadata": {"name": "web"}, "spec": spec})
        for name in LEADING:
            process = self.supervisor.processes().get(name)
            if process is None or process["exit"] is not None:
                self.start_leader(name)
        eventually(lambda: self._leads() in LEADING, "somebody leads", LONG_SECONDS)

    def _leads(self) -> str:
        """The name of the leader that holds the Lease, and runs; empty if there is none."""
        lease = self.find(LEASES, LEASE, NAMESPACE) or {}
        holder = str((lease.get("spec") or {}).get("holderIdentity") or "").partition("_")[0]
        name = holder.rpartition("-")[2]
        process = self.supervisor.processes().get(name)
        return name if process is not None and process["exit"] is None else ""

    def _is_over(self) -> bool:
        """Whether the flow is final. Until then, acts for the kubelet, and for the controller of Jobs."""
        for job in self.jobs():
            self._end(job)
        if any(action == "on" for _, action in self.calls()):
            self.report("True", f"boot-{self._boots + 1}")
            return self.is_over()
        return False

    def jobs(self) -> list[Json]:
        """Those that run."""
        return [each for each in self.items(JOBS) if not (each.get("status") or {}).get("conditions")]

    def _end(self, job: Json) -> None:
        """Its pod runs once, and succeeds."""
        self.act(_action(job))
        now = job["metadata"]["creationTimestamp"]
        ended = {"status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        conditions = [{**ended, "type": each} for each in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}
        self.patch(JOBS, job["metadata"]["name"], {"status": status}, NAMESPACE, "status")

    def calls(self) -> list[tuple[float, str]]:
        """When the agent has been called, and for what."""
        lines = (line.split() for line in (self.agents / "calls").read_text().splitlines())
        return [(float(at), action) for at, action in lines]

    def _check(self) -> None:
        """Checks that it was switched off, after a look, by another leader once more while it is off; freed once, while
        off; switched on once, after that; and that each Job was made once."""
        fence, calls = self.fence(), self.calls()
        done_at = {str(write): times for write, times in self.accidents.done_at.items()}
        assert (fence["restarts"], fence["cleaned"]) == (0, True), fence
        assert len(done_at["POST nodefences"]) == 1, done_at
        actions = [action for _, action in calls]
        assert "off" in actions and actions.count("on") == 1, calls
        assert "off" not in actions[actions.index("on") :], calls
        off_at, on_at = calls[actions.index("off")][0], calls[actions.index("on")][0]
        for write in ("DELETE pods", "DELETE volumeattachments"):
            (freed_at,) = done_at[write]
            assert off_at <= freed_at <= on_at, (write, freed_at, calls)
        made = [len(times) for write, times in done_at.items() if write.startswith("POST jobs")]
        if self.executor == "host":
            assert actions[actions.index("off") - 1] == actions[actions.index("on") - 1] == "status", calls
            assert not made
        else:
            assert made == [1, 1] and len(set(fence["jobs"])) == len(fence["jobs"]) == 2, (made, fence)
        node = self.find(NODES, NODE) or {}
        assert not node["spec"].get("unschedulable"), node


class MortalSiteOfJobs(MortalSite):
    executor = "job"
