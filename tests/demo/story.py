"""The scenes: hosts boot, one is cut off and remediated, one loses the API, the control plane stops. All is checked."""

from __future__ import annotations

from typing import Callable

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.progress_events import FINISHED
from pp_hostd.model.condemnation import Condemned, Requested, parse_condemnation
from pp_hostd.model.keys import UNREACHABLE
from pp_hostd.model.promise import Armed
from pp_hostd.service.journal import Message
from tests.demo.expect import expect
from tests.demo.live import HOSTS, LEADERS, Live
from tests.demo.narrator import Narrator, Role, now
from tests.demo.news import News
from tests.demo.promises import Promise
from tests.demo.times import Times
from tests.demo.workload import POD
from tests.harness.eventually import eventually

WAIT_SECONDS = 60.0
"""For each event, with the shortest times. A leader that loses its Lease makes the next one wait for T + 2W again."""
DRAW_SECONDS = 0.2
VICTIM, REFUGE, LONELY = "worker-5", "worker-3", "worker-4"
MINE = {"disk": "nvme"}
"""A label that somebody else wrote on the victim's Node, and wants to find there again."""
Beat = tuple[Callable[[], bool], str]
"""A line of the story, told once this holds."""


class Story:
    """Ends with an exception as soon as something does not happen as it must."""

    def __init__(self, cluster: Live, narrator: Narrator, times: Times) -> None:
        self._live, self._narrator, self._times = cluster, narrator, times
        self._victim = cluster.hosts[VICTIM]
        self._news = News(narrator, VICTIM)
        self._first_uid = cluster.bed.contents.node(VICTIM).uid
        self._may_reset = 0
        self._beats: list[Beat] = []
        self._drawn_at = 0.0
        self._outage_seconds = times.dead_seconds + times.fold
        dead, outage = f"{times.dead_seconds:g} s", f"{self._outage_seconds:g} s"
        self.reset = Promise(f"{VICTIM}, cut off, resets itself", f"within {dead}")
        self.moved = Promise(f"{POD} runs on another host", f"within {times.moved_seconds:g} s")
        self.alone = Promise(f"{POD} never runs twice at once", "0 s together")
        self.lonely = Promise(f"{LONELY} alone loses the API: resets", "none")
        self.back = Promise(f"{VICTIM} comes back, with its labels", "once connected")
        self.outage = Promise(f"the API stops for {outage}: resets", "none")
        self.promises = [self.reset, self.moved, self.alone, self.lonely, self.back, self.outage]

    def tell(self) -> None:
        self._boot()
        self._lose()
        self._return()
        self._outlast()

    def _boot(self) -> None:
        self._live.bed.contents.patch(NODES, VICTIM, {"metadata": {"labels": MINE}})
        self._live.begin()
        self._say(f"{HOSTS} hosts boot. Their kubelets wait until pp-hostd has armed the hardware watchdog.")
        for host in self._live.hosts.values():
            self._until(host.kubelet_started, f"{host.name} is armed, and its gate open")
        self._until(self._live.led, "a leader leads")
        self._live.create_check()
        self._until(self._is_judged, "the leader has judged all Nodes by it")
        self._live.house()
        self._until_runs_on(VICTIM)
        self._say(f"All kubelets run. A NodeHealthCheck watches the Nodes; {VICTIM} runs {POD}, with an RWO volume.")

    def _lose(self) -> None:
        self._narrator.scene(f"The cable of {VICTIM} is pulled. Nobody does anything about it.")
        cut_at, wait_seconds = now(), self._times.wait_seconds
        self._may_reset = 1
        self._live.cut(VICTIM)
        self._say(f"{VICTIM} is cut off. {POD} still runs there, so nobody may start a second copy.")
        self._beats = [
            (self._is_unreachable, f"The agents of other hosts cannot reach {VICTIM}, and say so on its Node."),
            (
                self._is_requested,
                "The NodeHealthCheck finds the Node unreachable for 2 s, and requests its remediation.",
            ),
            (
                self._is_condemned,
                f"The leader has cordoned {VICTIM} and fenced it: no peer may confirm it any more. "
                f"Within {wait_seconds:g} s it is certainly dead; the leader waits for that.",
            ),
        ]
        self._until(lambda: self._victim.boots > 1, f"{VICTIM} has reset itself")
        reset_at = float(self._victim.record.events("down")[0]["at"])
        dead_after = reset_at - cut_at
        self._say(f"{VICTIM} has reset itself, {dead_after:.1f} s after the cut: neither API nor peers confirmed it.")
        self.reset.settle(f"{dead_after:.1f} s", kept=dead_after < self._times.dead_seconds)
        self._until(lambda: not self._beats, f"{VICTIM} is condemned")
        self._confirm()
        self._until_runs_on(REFUGE)
        since_cut, since_reset = now() - cut_at, now() - reset_at
        self._say(f"The wait is over. The leader has deleted Node, pod and VolumeAttachment: {POD} runs on {REFUGE}.")
        self.moved.settle(f"{since_cut:.1f} s", kept=since_cut < self._times.moved_seconds)
        self.alone.settle(f"0 s: {since_reset:.1f} s apart", kept=since_reset > 0)
        self._until(self._is_finished, "the leader has given the Node back")

    def _confirm(self) -> None:
        """While the leader waits: one host that is well."""
        host = self._live.hosts[LONELY]
        self._live.take_api([LONELY])
        self._until(lambda: "confirms it" in host.status_text(), f"a peer confirms {LONELY}")
        self._say(f"Meanwhile {LONELY} alone loses the API. Another host confirms that nobody fences it: it stays up.")
        self._live.give_api([LONELY])
        self._until(lambda: "confirms it" not in host.status_text(), f"{LONELY} has proof of its own")
        self.lonely.settle("none", kept=host.boots == 1)

    def _return(self) -> None:
        expect(not self._victim.kubelet_started(), "the kubelet of a host that is still cut off is held back")
        self._live.mend(VICTIM)
        mended_at = now()
        self._say(f"The cable is back. {VICTIM} has booted long ago; pp-hostd has held its kubelet back all the time.")
        self._until(self._victim.kubelet_started, f"the gate of {VICTIM} opens")
        node = self._live.bed.contents.node(VICTIM)
        expect(isinstance(node.agent, Armed) and not node.unschedulable, f"{VICTIM} is armed and schedulable again")
        recreated = self._live.api.get(NODES.path(name=VICTIM))["metadata"]
        expect(recreated["uid"] != self._first_uid, "the Node was deleted and recreated")
        labelled = MINE.items() <= recreated["labels"].items()
        self._say(f"{VICTIM} is fit again: watchdog armed, kubelet started, labels restored.")
        self.back.settle(f"{now() - mended_at:.1f} s later" if labelled else "without its labels", kept=labelled)

    def _outlast(self) -> None:
        self._narrator.scene("The API server stops. No host can tell whether it is being fenced.")
        stopped_at, hosts = now(), self._live.hosts.values()
        self._live.take_api(self._live.hosts)
        self._say(f"The API stops for {self._outage_seconds:g} s: longer than a host runs if nobody confirms it.")
        self._beats = [
            (
                lambda: all("control plane is out" in host.status_text() for host in hosts),
                "The hosts ask each other: most lack the API. So the control plane failed, and no host resets itself.",
            )
        ]
        self._until(lambda: now() > stopped_at + self._outage_seconds, "the outage has lasted")
        expect(not self._beats, "all hosts find that the control plane is out")
        expect(not self._live.led(), "nobody leads without the API")
        self._live.give_api(self._live.hosts)
        self._until(lambda: all(host.status_text().startswith("healthy") for host in hosts), "every host has proof")
        self._until(self._live.led, "a leader leads again")
        expect(self._live.workload.running_on() == [REFUGE], f"{POD} runs through it all on {REFUGE}")
        self._say(f"The API is back, and a leader leads. {HOSTS} hosts and {POD} ran all the time.")
        self.outage.settle(
            f"{self._live.resets - self._may_reset or 'none'}", kept=self._live.resets == self._may_reset
        )
        ended = [self._live.leaders[name].stop() for name in LEADERS]
        expect(ended == [0, 0], "both leaders outlast it, and end when told to")

    def _is_judged(self) -> bool:
        (check,) = self._live.api.get(NODE_HEALTH_CHECKS.path())["items"]
        return bool(check.get("status", {}).get("currentHealthy") == HOSTS)

    def _is_unreachable(self) -> bool:
        conditions = (self._live.api.seen(NODES, VICTIM) or {}).get("status", {}).get("conditions") or ()
        return any((each["type"], each["status"]) == (UNREACHABLE, "True") for each in conditions)

    def _is_requested(self) -> bool:
        return self._stage_is(Requested, Condemned)

    def _is_condemned(self) -> bool:
        return self._stage_is(Condemned)

    def _stage_is(self, *stages: type) -> bool:
        node = self._live.api.seen(NODES, VICTIM)
        return node is not None and isinstance(parse_condemnation(node["metadata"]), stages)

    def _is_finished(self) -> bool:
        lines = [line for name in LEADERS for line in self._live.leader_lines(name, Message.COURSE)]
        return any(line["fields"]["PP_HOSTD_STAGE"] == FINISHED for line in lines)

    def _until_runs_on(self, name: str) -> None:
        self._until(lambda: self._live.workload.running_on() == [name], f"{POD} runs on {name}")

    def _until(self, check: Callable[[], bool], what: str) -> None:
        """Wait for it, while the others tell and the played controllers work."""

        def live() -> bool:
            self._go_on()
            return check()

        eventually(live, what, WAIT_SECONDS * self._times.fold)

    def _go_on(self) -> None:
        self._news.tell(self._live.hosts.values(), self._live.live())
        while self._beats and self._beats[0][0]():
            self._tell(self._beats.pop(0)[1])
        expect(self._live.resets <= self._may_reset, "no other host is reset")
        if now() > self._drawn_at + DRAW_SECONDS:
            self._narrator.hosts(self._live.rows())
            self._drawn_at = now()

    def _say(self, line: str) -> None:
        self._go_on()
        self._tell(line)

    def _tell(self, line: str) -> None:
        self._narrator.say(Role.DEMO, "demo", line)
