"""Three hosts that run the agent, and what becomes of them: an outage, a condemnation, a cut. Exits 0 if all held.

The hosts are namespaces with a kernel's view of their own: a network, process ids, a watchdog that really fires. So
nothing here can reset the machine that it runs on.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from pp_hostd import timing
from pp_hostd.model.promise import Armed, GateClosed
from pp_hostd.model.settings import Settings
from tests.demo.narrator import Narrator
from tests.harness.bed.cluster_bed import SETTINGS, ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually

OUTAGE_SECONDS = 1.5 * SETTINGS["agent.self_timeout_seconds"]
DEAD_SECONDS = SETTINGS["agent.self_timeout_seconds"] + 2 * SETTINGS["watchdog.timeout_seconds"]
NEXT = """
What to try next:
  pp-hostd check-config --config etc/pp-hostd.toml      the timeline for your settings (in .venv/bin)
  pp-hostd --help                                       what the agent's commands are
  make test                                             the same agents on a real kube-apiserver, and much more trouble
  docs/agent.md                                         how an agent lives; docs/design.md: the rules it keeps"""


def story(bed: ClusterBed, narrator: Narrator) -> None:
    first, second, third = bed.hosts.values()
    narrator.scene("Three hosts boot")
    bed.boot()
    for host in bed.hosts.values():
        eventually(host.kubelet_started, f"{host.name} is armed, and its gate open", 30)
        promise = bed.contents.node(host.name).agent
        expect(isinstance(promise, Armed), f"{host.name} has promised: {promise}")
    narrator.say(first.name, *first.journal()[-3:])
    narrator.say("kubelets", "each was held until its host was armed and the promise stood on its Node")

    narrator.scene("The control plane hangs: it accepts connections, and never answers")
    bed.set_api(Mode.SWALLOW)
    eventually(lambda: all("control plane is out" in host.status_text() for host in bed.hosts.values()), "all see it")
    narrator.say(first.name, first.status_text())
    narrator.say("", f"longer than a host may live without proof ({OUTAGE_SECONDS:g} s) ...")
    until = time.monotonic() + OUTAGE_SECONDS
    eventually(lambda: time.monotonic() > until, "time passes", OUTAGE_SECONDS + 1)
    expect(all(host.is_up() for host in bed.hosts.values()), "nobody was reset because the control plane failed")
    bed.set_api(Mode.PASS)
    eventually(lambda: all(host.status_text().startswith("healthy") for host in bed.hosts.values()), "all have proof")
    narrator.say("", "it answers again, and nobody was reset")

    narrator.scene(f"{second.name} loses its way to the API; its peers vouch for it")
    bed.set_api(Mode.REFUSE, [second.name])
    eventually(lambda: "vouches for it" in second.status_text(), "a peer vouches", 30)
    narrator.say(second.name, second.status_text())

    narrator.scene(f"{second.name} is condemned meanwhile: its peers know, and say so")
    condemned_at = now()
    bed.contents.condemn(second.name)
    narrator.say("leader", f"condemned {second.name}: time, id and label in one write")
    tell_end(second, condemned_at, narrator)

    narrator.scene(f"{third.name} is cut off from everyone")
    cut_at = now()
    bed.cut(third.name)
    tell_end(third, cut_at, narrator)
    expect(first.is_up(), "who could reach the API lives on")

    narrator.scene("Both boot again: one into the same isolation, one still condemned")
    bed.set_api(Mode.PASS)
    bed.boot(second.name, third.name)
    eventually(lambda: isinstance(bed.contents.node(second.name).agent, GateClosed), "the Node says that it is closed")
    eventually(lambda: second.status_text().startswith("condemned"), "it knows why it waits")
    eventually(lambda: "timed out" in third.status_text(), "it knows that it is cut off")
    for host in (second, third):
        narrator.say(host.name, host.status_text())
        expect(not host.kubelet_started(), "its kubelet waits")
    narrator.say("kubelets", "held: nothing can run twice")
    bed.contents.lift(second.name)
    narrator.say("leader", f"lifted the condemnation of {second.name}")
    bed.heal()
    narrator.say("", f"{third.name} is connected again")
    for host in (second, third):
        eventually(host.kubelet_started, "its gate opens", 30)
        narrator.say(host.name, *host.journal()[-2:])


def tell_end(host: Host, since_at: float, narrator: Narrator) -> None:
    down = host.await_down(DEAD_SECONDS + 5)
    narrator.say(host.name, host.status_text())
    took = down["at"] - since_at
    narrator.say("", f"{host.name} was reset after {took:.1f} s; it had promised to be dead within {DEAD_SECONDS:g} s")
    expect(took < DEAD_SECONDS, "the bound holds")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def main() -> int:
    allowed = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if shutil.which("unshare") is None or subprocess.run(allowed, capture_output=True, check=False).returncode:
        sys.stderr.write("demo: this machine allows no user namespaces, which the hosts are made of (unshare -Urn)\n")
        return 1
    narrator = Narrator()
    narrator.scene("An API of our own, and three hosts on a network (a few seconds)")
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, 3) as bed:
        narrator.say("api", f"{cluster.server}, with TLS, client certificates and Kubernetes' semantics")
        story(bed, narrator)
    narrator.scene("What the default settings promise about a host that is cut off, in seconds after its last proof")
    for seconds, sentence in timing.timeline(Settings()).rows():
        print(f"  {seconds:5.1f}  {sentence}")
    print(NEXT)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
