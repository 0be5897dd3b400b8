"""The test bed does what scenarios rely on: hosts that die alone, cuts that are silent, an API that misbehaves."""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

import pytest

from tests.harness.bed import standins
from tests.harness.bed.bed import API, Bed
from tests.harness.bed.host import Design, Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.test_supervise import REPOSITORY, expected_to_die

NOBODY_LISTENS = 1
OWNER = """
import json, signal
from tests.harness.bed import standins
from tests.harness.bed.bed import Bed
from tests.harness.bed.host import Design
bed = Bed(["one"], 1, design=Design(agent=standins.IDLE, gate=[]))
bed.boot()
host = bed.hosts["one"]
bed_pid = bed.supervisor.processes()["bed"]["pid"]
print(json.dumps([str(bed.supervisor.directory), bed.supervisor.pid, bed_pid, host.events("up")[0]["pid"]]), flush=True)
signal.pause()
"""


@contextmanager
def booted(agent: Sequence[str], *names: str, gate: Sequence[str] = (), port: int = NOBODY_LISTENS) -> Iterator[Bed]:
    with Bed(names or ("one", "two"), port, design=Design(agent=agent, gate=gate)) as bed:
        bed.boot()
        yield bed


def say(speaker: Host, to: str, words: str) -> None:
    speaker.run(sys.executable, "-c", standins.SAYS, to, words)


def await_hearing(speaker: Host, listener: Host, family: str = "address") -> None:
    """Until one of many is heard: the listener may only just be starting."""
    heard = f"{getattr(speaker, family)} anyone there"

    def is_heard() -> bool:
        say(speaker, getattr(listener, family), "anyone there")
        return heard in listener.journal()

    eventually(is_heard, f"{listener.name} hears {speaker.name}")


# Hosts.


def test_a_host_has_a_name_and_a_boot_id_of_its_own_and_a_new_one_each_boot() -> None:
    with booted(standins.IDLE) as bed:
        look = ("sh", "-c", "hostname; cat /proc/sys/kernel/random/boot_id")
        seen = {name: host.run(*look).stdout.split() for name, host in bed.hosts.items()}
        assert seen == {name: [name, host.boot_id] for name, host in bed.hosts.items()}
        one = bed.hosts["one"]
        one.kill()
        bed.boot("one")
        assert one.run(*look).stdout.split() == ["one", one.boot_id]
        assert one.boot_id not in (seen["one"][1], seen["two"][1])


def test_a_reboot_ends_that_host_and_nothing_else() -> None:
    with booted(standins.IDLE) as bed:
        one, two = bed.hosts["one"], bed.hosts["two"]
        one.run(*standins.REBOOTS, check=False)
        assert one.await_down()["how"] == "reboot"
        assert two.is_up()
        assert two.run("echo", "alive").stdout == "alive\n"


def test_what_a_host_kept_on_disk_survives_a_reboot_and_what_it_kept_in_run_does_not() -> None:
    with booted(standins.IDLE, "one") as bed:
        one = bed.hosts["one"]
        one.run("touch", "/run/gone", "/var/lib/pp-hostd/kept")
        one.kill()
        bed.boot()
        assert one.run("ls", "/run/gone", check=False).returncode != 0
        assert one.run("ls", "/var/lib/pp-hostd").stdout == "kept\n"


def test_a_host_reaches_no_device_and_no_kernel_switch_of_the_machine() -> None:
    with booted(standins.IDLE, "one") as bed:
        one = bed.hosts["one"]
        assert one.run("ls", "/sys").stdout == ""
        assert one.run("sh", "-c", "echo /dev/w* /dev/m* /dev/k*").stdout == "/dev/watchdog /dev/m* /dev/k*\n"
        assert one.run("test", "-w", "/proc/sys/kernel/panic", check=False).returncode != 0
        if Path("/proc/sysrq-trigger").exists():  # first make sure that it is not the machine's
            one.run("sh", "-c", "test -p /proc/sysrq-trigger && printf sb > /proc/sysrq-trigger", check=False)
            assert one.await_down()["how"] == "sysrq"


def test_run_and_disk_can_be_filled_and_made_read_only() -> None:
    with booted(standins.IDLE, "one") as bed:
        one = bed.hosts["one"]
        for path in ("/run", "/var/lib/pp-hostd"):
            one.fill(path)
            full = one.run("dd", "if=/dev/zero", f"of={path}/more", "count=1", check=False)
            assert "No space left" in full.stderr
        one.make_read_only("/run")
        assert "Read-only" in one.run("rm", "/run/filling", check=False).stderr


# The watchdog.


def test_a_watchdog_that_is_not_fed_kills_the_host() -> None:
    with booted(standins.FEEDS) as bed:
        one, two = bed.hosts["one"], bed.hosts["two"]
        eventually(lambda: len(one.watchdog("feed")) > 2, "it is fed")
        one.signal_agent(signal.SIGSTOP)
        assert one.await_down(within_seconds=5)["how"] == "watchdog"
        last_feed, fired = one.watchdog("feed")[-1], one.watchdog("fired")[-1]
        assert 1.0 <= fired["at"] - last_feed["at"] < 1.5
        assert two.is_up()
        bed.boot("one")
        eventually(lambda: one.watchdog("feed"), "the watchdog of the next boot is fed")


def test_a_watchdog_can_be_made_odd() -> None:
    with Bed(["one"], NOBODY_LISTENS, design=Design(agent=standins.FEEDS, gate=[])) as bed:
        bed.hosts["one"].design.watchdog = {"permitted": False}
        bed.boot()
        eventually(lambda: "Permission denied" in "".join(bed.hosts["one"].journal()), "it is told so")


# The agent's unit.


def test_an_agent_is_restarted_and_finds_its_descriptor_in_the_fd_store() -> None:
    with booted(standins.STORES, "one") as bed:
        one = bed.hosts["one"]
        eventually(one.is_ready, "the agent is ready")
        assert one.status_text() == "armed"
        one.signal_agent(signal.SIGKILL)
        eventually(lambda: "handed over: watchdog" in one.journal(), "it got its descriptor back")
        assert one.events("agent-ended")[0]["status"] == -signal.SIGKILL
        eventually(lambda: len(one.watchdog("feed")) == 2, "both have fed")
        assert len(one.watchdog("open")) == 1
        assert not one.watchdog("close")
        assert one.is_up()


def test_an_agent_that_is_stopped_stays_so_and_its_stored_descriptors_are_closed() -> None:
    with booted(standins.STORES, "one") as bed:
        one = bed.hosts["one"]
        eventually(one.is_ready, "the agent is ready")
        one.stop_agent()
        eventually(lambda: one.watchdog("close"), "nobody holds the watchdog")
        assert one.watchdog("close")[0]["armed"]
        assert one.await_down(within_seconds=5)["how"] == "watchdog"
        assert len(one.events("agent-started")) == 1


def test_a_notify_socket_that_is_not_read_fills() -> None:
    with booted(standins.IDLE, "one") as bed:
        one = bed.hosts["one"]
        one.block("notify")
        assert one.run(*standins.CHATTERS).stdout == "full\n"
        assert not one.events("notify")
        one.unblock("notify")
        eventually(lambda: one.events("notify"), "what was sent is read")


def test_the_journal_holds_what_comes_by_its_socket() -> None:
    entry = "MESSAGE=one line\\nPRIORITY=3\\nTEXT\\n\\x05\\0\\0\\0\\0\\0\\0\\0a\\nb=c\\n"
    send = f"import socket; s = socket.socket(1, 2); s.sendto(b'{entry}', '/run/systemd/journal/socket')"
    with booted(standins.IDLE, "one") as bed:
        one = bed.hosts["one"]
        one.run(sys.executable, "-c", send)
        (event,) = eventually(lambda: one.events("journal"), "the entry is there")
        assert event["line"] == "one line"
        assert event["fields"] == {"MESSAGE": "one line", "PRIORITY": "3", "TEXT": "a\nb=c"}


def test_the_kubelet_waits_for_the_gate() -> None:
    gate = ["/bin/sh", "-c", "test -e /run/open"]
    with booted(standins.IDLE, "one", gate=gate) as bed:
        one = bed.hosts["one"]
        eventually(lambda: one.events("gate-ended"), "the gate was asked")
        assert not one.kubelet_started()
        one.run("touch", "/run/open")
        eventually(lambda: one.events("kubelet-tick"), "the kubelet runs")
        one.kill()
        ticks = len(one.events("kubelet-tick"))
        bed.boot()
        eventually(lambda: one.events("gate-ended"), "the gate is asked again")
        assert len(one.events("kubelet-tick", boot=1)) == ticks
        assert not one.kubelet_started()


# The network.


@pytest.mark.parametrize("family", ["address", "address6"])
def test_a_cut_is_silent_and_one_way_until_it_heals(family: str) -> None:
    with booted(standins.HEARS) as bed:
        one, two = bed.hosts["one"], bed.hosts["two"]
        await_hearing(one, two, family)
        bed.cut_pairs(("one", "two"))
        say(one, getattr(two, family), "lost")
        await_hearing(two, one, family)
        bed.heal()
        say(one, getattr(two, family), "last")
        eventually(lambda: f"{getattr(one, family)} last" in two.journal(), "it is heard again")
        assert f"{getattr(one, family)} lost" not in two.journal()


def test_a_host_that_is_cut_off_stays_so_through_a_reboot() -> None:
    with booted(standins.HEARS, "one", "two", "three") as bed:
        one, two, three = bed.hosts.values()
        bed.cut("one")
        one.kill()
        bed.boot("one")
        await_hearing(three, two)
        say(one, two.address, "lost")
        bed.heal()
        await_hearing(one, two)
        assert f"{one.address} lost" not in two.journal()


def test_a_pulled_cable_is_seen_by_the_host() -> None:
    with booted(standins.IDLE) as bed:
        one = bed.hosts["one"]
        carrier = (
            sys.executable,
            "-c",
            "from pyroute2 import IPRoute as R; i = R().get_links(ifname='eth0')[0]; "
            + ("print(i.get_attr('IFLA_CARRIER'))"),
        )
        assert one.run(*carrier).stdout == "1\n"
        bed.set_carrier("one", up=False)
        assert one.run(*carrier).stdout == "0\n"
        bed.set_carrier("one", up=True)
        assert one.run(*carrier).stdout == "1\n"


# The API.


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while heard := self.request.recv(100):
            self.request.sendall(heard)


@pytest.fixture
def echo_port() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


class Talk:
    """A connection from a host to the API's address."""

    def __init__(self, host: Host) -> None:
        self._process = subprocess.Popen(
            host.command(sys.executable, "-c", standins.TALKS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def say(self, words: str) -> None:
        self._order(f"say {words}")

    def hear(self, within_seconds: float = 5) -> str:
        self._order(f"hear {within_seconds}")
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate(timeout=HANGS_SECONDS)

    def _order(self, order: str) -> None:
        assert self._process.stdin is not None
        print(order, file=self._process.stdin, flush=True)


TalkFrom = Callable[[str], Talk]


@pytest.fixture
def api_bed(echo_port: int) -> Iterator[Bed]:
    with booted(standins.IDLE, port=echo_port) as bed:
        yield bed


@pytest.fixture
def talk_from(api_bed: Bed) -> Iterator[TalkFrom]:
    talks: list[Talk] = []

    def talk(name: str) -> Talk:
        talks.append(Talk(api_bed.hosts[name]))
        return talks[-1]

    yield talk
    for each in talks:
        each.close()


def test_the_api_is_reached_from_every_host(talk_from: TalkFrom) -> None:
    for name in ("one", "two"):
        talk = talk_from(name)
        talk.say("hello")
        assert talk.hear() == "hello"


def test_a_swallowing_api_stalls_old_and_new_connections_of_that_host_alone(api_bed: Bed, talk_from: TalkFrom) -> None:
    old, other = talk_from("one"), talk_from("two")
    old.say("before")
    assert old.hear() == "before"
    api_bed.set_api(Mode.SWALLOW, ["one"])
    new = talk_from("one")
    for talk in (old, new, other):
        talk.say("meanwhile")
    assert other.hear() == "meanwhile"
    assert (old.hear(0.3), new.hear(0.3)) == ("silence", "silence")
    api_bed.set_api(Mode.PASS)
    assert (old.hear(), new.hear()) == ("meanwhile", "meanwhile")


def test_a_refusing_api_resets_old_and_new_connections(api_bed: Bed, talk_from: TalkFrom) -> None:
    old, other = talk_from("one"), talk_from("two")
    old.say("before")
    assert old.hear() == "before"
    api_bed.set_api(Mode.REFUSE, ["one"])
    assert old.hear() == "reset"
    assert talk_from("one").hear() == "reset"
    other.say("still")
    assert other.hear() == "still"


def test_a_host_can_be_led_to_another_server_and_back(api_bed: Bed, talk_from: TalkFrom) -> None:
    old, other = talk_from("one"), talk_from("two")
    old.say("before")
    assert old.hear() == "before"
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        api_bed.divert_api(nobody.getsockname()[1], ["one"])
        assert old.hear() == "reset"
        assert talk_from("one").hear() == "reset"
    other.say("still")
    assert other.hear() == "still"
    api_bed.divert_api(api_bed.upstream_port, ["one"])
    back = talk_from("one")
    back.say("again")
    assert back.hear() == "again"


def test_a_trickling_api_gives_a_byte_a_second(api_bed: Bed, talk_from: TalkFrom) -> None:
    api_bed.set_api(Mode.TRICKLE, ["one"])
    talk = talk_from("one")
    talk.say("slow")
    assert [talk.hear(), talk.hear(0.3), talk.hear()] == ["s", "silence", "l"]


def test_an_api_that_resets_does_so_in_the_middle_of_an_answer(api_bed: Bed, talk_from: TalkFrom) -> None:
    api_bed.set_api(Mode.RESET, ["one"])
    talk = talk_from("one")
    talk.say("halved")
    assert [talk.hear(), talk.hear()] == ["hal", "reset"]


def test_an_api_that_is_down_resets() -> None:
    with booted(standins.IDLE, "one", port=NOBODY_LISTENS) as bed:
        talk = Talk(bed.hosts["one"])
        assert talk.hear() == "reset"
        talk.close()


def test_the_way_to_the_api_can_be_cut_like_any_other(api_bed: Bed, talk_from: TalkFrom) -> None:
    talk = talk_from("one")
    talk.say("before")
    assert talk.hear() == "before"
    api_bed.cut_pairs((API, "one"))
    talk.say("meanwhile")
    assert talk.hear(0.3) == "silence"
    api_bed.heal()
    assert talk.hear() == "meanwhile", "TCP sends it again"


# The bed.


def test_a_bed_leaves_nothing_behind_and_the_next_one_works() -> None:
    for _ in range(2):
        with booted(standins.IDLE) as bed:
            processes = [host.events("up")[0]["pid"] for host in bed.hosts.values()]
            with expected_to_die(processes):
                bed.close()
        assert not bed.supervisor.directory.exists()


def test_a_bed_dies_with_whoever_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, *pids = json.loads(owner.stdout.readline())
        with expected_to_die(pids):
            owner.kill()
    eventually(lambda: not Path(directory).exists(), "its directory is gone")


def test_hosts_die_with_a_killed_bed() -> None:
    with booted(standins.IDLE) as bed:
        main = bed.supervisor.processes()["bed"]["pid"]
        assert main is not None
        with expected_to_die([host.events("up")[0]["pid"] for host in bed.hosts.values()]):
            os.kill(main, signal.SIGKILL)


def test_twelve_hosts_are_up_within_seconds() -> None:
    with booted(standins.IDLE, *(f"worker-{number}" for number in range(1, 13))) as bed:
        started = [host.events("agent-started")[0]["at"] for host in bed.hosts.values()]
        assert max(started) - min(started) < 5
