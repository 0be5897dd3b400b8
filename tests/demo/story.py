"""The scenes: hosts boot, one is cut off and remediated, one loses the API, the control plane stops. All is checked."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Callable

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.progress_events import FINISHED
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.model.moment import render_moment
from pp_hostd.model.promise import Armed
from pp_hostd.service.journal import Message
from tests.demo.api import Api
from tests.demo.expect import expect
from tests.demo.narrator import Narrator, Role, now
from tests.demo.news import STATES, News
from tests.demo.times import Times
from tests.demo.workload import POD, Workload
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.leader import Leader
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually

WAIT_SECONDS = 60.0
"""For each event, with the shortest times. A leader that loses its Lease makes the next one wait for T + 2W again."""
HOSTS, LEADERS, VICTIM, REFUGE, LONELY = 5, ("worker-1", "worker-2"), "worker-5", "worker-3", "worker-4"
MINE = {"disk": "nvme"}
"""A label that somebody else wrote on the victim's Node, and wants to find there again."""


class Story:
    """Ends with an exception as soon as something does not happen as it must."""

    def __init__(self, bed: ClusterBed, api: Api, narrator: Narrator, times: Times) -> None:
        self._bed, self._api, self._narrator, self._times = bed, api, narrator, times
        self._victim = bed.hosts[VICTIM]
        self._news = News(narrator, VICTIM)
        self._workload = Workload(api, bed.hosts[REFUGE])
        self._first_uid = bed.contents.node(VICTIM).uid
        self._leaders: list[Leader] = []
        self._to_stay_up = dict(bed.hosts)

    def tell(self) -> None:
        self._boot()
        self._lose()
        self._return()
        self._confirm()
        self._outlast()

    def _boot(self) -> None:
        self._narrator.scene(f"{HOSTS} hosts boot, 2 of them with a leader; {VICTIM} runs a database with a volume")
        self._bed.contents.patch(NODES, VICTIM, {"metadata": {"labels": MINE}})
        self._api.watch(*STATES)
        self._bed.boot()
        self._leaders += [Leader(self._bed.hosts[name]) for name in LEADERS]
        for host in self._bed.hosts.values():
            self._until(host.kubelet_started, f"{host.name} is armed, and its gate open")
        self._until(self._is_led, "a leader leads")
        for name in self._bed.hosts:
            self._report_ready(name)
        self._api.create(NODE_HEALTH_CHECKS, default_check())
        self._say("creates a NodeHealthCheck, as `pp-leader install --health-check` does: from here on, nobody asks")
        self._until(self._is_judged, "the leader has judged all Nodes by it")
        self._workload.start(self._victim)
        self._until_runs_on(VICTIM)

    def _lose(self) -> None:
        self._narrator.scene(f"{VICTIM} is cut off from everyone, and nobody does anything about it")
        cut_at, dead_seconds = now(), self._times.dead_seconds
        del self._to_stay_up[VICTIM]
        self._bed.cut(VICTIM)
        self._say(f"cuts {VICTIM} off: {POD} still runs there, and nobody may start a second copy")
        self._until(lambda: not self._victim.is_up(), f"{VICTIM} has reset itself")
        reset_at = float(self._victim.down()["at"])
        self._say(
            f"{VICTIM} is dead {reset_at - cut_at:.1f} s after the cut; it had promised {dead_seconds:g} s at most"
        )
        expect(reset_at - cut_at < dead_seconds, f"{VICTIM} is dead within {dead_seconds:g} s")
        self._bed.boot(VICTIM)
        self._to_stay_up[VICTIM] = self._victim
        self._until_runs_on(REFUGE)
        since_cut, since_reset = now() - cut_at, now() - reset_at
        self._until(self._is_finished, "the leader has given the Node back")
        self._say(
            f"{POD} ran on {REFUGE} {since_cut:.1f} s after the cut; its first copy was dead for {since_reset:.1f} s"
        )

    def _return(self) -> None:
        self._narrator.scene(f"{VICTIM} has booted, still cut off: its gate holds the kubelet, until it is connected")
        expect(not self._victim.kubelet_started(), "the kubelet of a host that is still cut off is held")
        self._bed.heal()
        self._say(f"connects {VICTIM} again")
        self._until(self._victim.kubelet_started, f"the gate of {VICTIM} opens")
        self._report_ready(VICTIM)
        node = self._bed.contents.node(VICTIM)
        expect(isinstance(node.agent, Armed) and not node.unschedulable, f"{VICTIM} is armed and schedulable again")
        recreated = self._api.get(NODES.path(name=VICTIM))["metadata"]
        expect(recreated["uid"] != self._first_uid, "the Node was deleted and recreated")
        expect(MINE.items() <= recreated["labels"].items(), f"the new Node has the old one's labels: {MINE}")

    def _confirm(self) -> None:
        host = self._bed.hosts[LONELY]
        self._narrator.scene(f"{LONELY} alone loses its way to the API: its peers confirm that it is healthy")
        self._bed.set_api(Mode.REFUSE, [LONELY])
        self._until(lambda: "confirms it" in host.status_text(), f"a peer confirms {LONELY}")
        self._bed.set_api(Mode.PASS, [LONELY])
        self._until(lambda: "confirms it" not in host.status_text(), f"{LONELY} has proof of its own")

    def _outlast(self) -> None:
        self._narrator.scene("The control plane stops: nobody can tell who is condemned, and nobody is reset")
        stopped_at, outage_seconds = now(), self._times.dead_seconds + 2
        self._bed.set_api(Mode.REFUSE)
        self._say(f"stops the API for {outage_seconds:g} s, longer than a host may live without a proof")
        self._until(lambda: now() > stopped_at + outage_seconds, "the outage has lasted")
        hosts = self._bed.hosts.values()
        expect(not self._is_led(), "nobody leads without the API")
        self._bed.set_api(Mode.PASS)
        self._say("starts the API again")
        self._until(lambda: all(host.status_text().startswith("healthy") for host in hosts), "every host has proof")
        self._until(self._is_led, "a leader leads again")
        expect(self._workload.running_on() == [REFUGE], f"{POD} runs through it all on {REFUGE}")
        expect([leader.stop() for leader in self._leaders] == [0, 0], "both leaders outlast it, and end when told to")

    def _report_ready(self, name: str) -> None:
        """As its kubelet does."""
        moment = render_moment(datetime.now(timezone.utc).replace(microsecond=0))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        self._api.patch(NODES.path(name=name, subresource="status"), {"status": {"conditions": [ready]}})

    def _is_judged(self) -> bool:
        (check,) = self._api.get(NODE_HEALTH_CHECKS.path())["items"]
        return bool(check.get("status", {}).get("currentHealthy") == HOSTS)

    def _is_led(self) -> bool:
        return any(lines and lines[-1]["line"].startswith("leads,") for lines in self._leaders_said(Message.LEADING))

    def _is_finished(self) -> bool:
        next_actions = [line["fields"] for lines in self._leaders_said(Message.COURSE) for line in lines]
        return any(next_action["PP_HOSTD_STAGE"] == FINISHED for next_action in next_actions)

    def _leaders_said(self, message: Message) -> list[list[Any]]:
        """By leader: its lines of that sort."""
        journals = [self._bed.hosts[name].events("journal") for name in LEADERS]
        return [[line for line in lines if line["fields"].get("MESSAGE_ID") == message.value] for lines in journals]

    def _until_runs_on(self, name: str) -> None:
        self._until(lambda: self._workload.running_on() == [name], f"{POD} runs on {name}")

    def _until(self, check: Callable[[], bool], what: str) -> None:
        """Wait for it, while the others tell and the played controllers work."""

        def live() -> bool:
            self._live()
            return check()

        eventually(live, what, WAIT_SECONDS * self._times.fold)

    def _live(self) -> None:
        changes = list(self._api.changes())
        self._news.tell(self._bed.hosts.values(), changes)
        for change in changes:
            self._workload.play(change)
        for host in self._to_stay_up.values():
            expect(host.is_up(), f"{host.name} stays up")

    def _say(self, line: str) -> None:
        self._live()
        self._narrator.say(Role.DEMO, "demo", line)
