"""Nobody who hears of a host can hold it up: not journald, not whoever reads stderr, not systemd."""

from __future__ import annotations

import re

from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.faults import dies_by_the_bound, isolate, python
from tests.scenarios.stage import LONG_SECONDS, Stage, outlive, says, shows

JOURNAL, NOTIFY = "/run/systemd/journal/socket", "/run/systemd/notify"
FILL_SOCKET = """
import socket, sys
def sent(noise):
    try:
        return noise.send(b"MESSAGE=noise")
    except BlockingIOError:
        return 0
full = False
while not full:  # a new socket when one has sent as much as it may
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as noise:
        noise.connect(sys.argv[1])
        full = not sent(noise)
        while sent(noise):
            pass
"""
FILL_PIPE = """
import os, sys
pipe = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
try:
    while os.write(pipe, b"noise\\n" * 600):
        pass
except BlockingIOError:
    pass
"""
DROPPED = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9479/metrics", timeout=5).read().decode())
"""


def clog(host: Host, name: str) -> None:
    """Nobody reads that any more, and it takes not a byte."""
    host.block(name)
    if name == "stderr":
        host.run("rm", JOURNAL)  # or nothing would be written there
        python(host, FILL_PIPE, f"/proc/{host.agent_pid}/fd/2")
    else:
        python(host, FILL_SOCKET, {"journal": JOURNAL, "notify": NOTIFY}[name])


def dropped(host: Host, to: str) -> int:
    found = re.search(rf'pp_hostd_dropped_total{{to="{to}"}} (\d+)', python(host, DROPPED))
    assert found
    return int(found[1])


def test_a_host_whose_words_nobody_takes_lives_on_if_it_is_well_and_dies_if_it_is_not(stage: Stage) -> None:
    hosts = stage.hosts(7)
    names = ("journal", "stderr", "notify")
    well, cut_off = dict(zip(hosts, names)), dict(zip(hosts[3:], names))
    for host, name in {**well, **cut_off}.items():
        stage.alter(host)
        clog(host, name)
    stage.bed.set_api(Mode.REFUSE, [host.name for host in well])  # so that there is something to say
    for host, proof_at in isolate(stage, list(cut_off)).items():
        dies_by_the_bound(host, proof_at)
    outlive(list(well), LONG_SECONDS)
    journal, stderr, notify = well
    for host in (journal, stderr):
        assert dropped(host, "journal") > 1
        assert not any("reads failed" in line for line in host.journal())
    assert dropped(notify, "systemd") > 1
    for host, name in well.items():
        host.unblock(name)
    for host in (journal, stderr):
        assert re.search(r"\((\d+) lines before this one could not be written\)", says(host, "could not be written"))
    shows(notify, "confirms it")
    eventually(lambda: any("WATCHDOG" in event["message"] for event in notify.events("notify")[-20:]), "it is alive")
