"""Metrics, probes and the journal: the agent tells them the same verdict that everybody else sees."""

from __future__ import annotations

import json
import signal

from pp_hostd.service.journal import Message
from tests.harness.bed.host import Host
from tests.harness.bed.record import Event
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.stage import SELF_TIMEOUT_SECONDS, Stage, now, reset_within, says, shows

FETCH = """
import sys, urllib.error, urllib.request
try:
    reply = urllib.request.urlopen("http://127.0.0.1:9479" + sys.argv[1], timeout=1)
except urllib.error.HTTPError as error:
    reply = error
except OSError:
    sys.exit("no answer")
print(reply.status, reply.headers["Content-Type"])
sys.stdout.write(reply.read().decode())
"""


def fetch(host: Host, path: str) -> tuple[str, str]:
    """The reply's status and type, and its body, as a program on the host gets them."""
    fetched = host.run("python3", "-c", FETCH, path, check=False)
    head, _, body = (fetched.stdout or fetched.stderr).partition("\n")
    return head, body


def figures(host: Host) -> dict[str, float]:
    """Every sample, under its name and labels."""
    head, body = fetch(host, "/metrics")
    assert head == "200 text/plain; version=0.0.4; charset=utf-8"
    samples = (line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def states(host: Host) -> list[str]:
    """The one state that the metrics name."""
    prefix = 'pp_hostd_state{state="'
    return [name[len(prefix) : -2] for name, value in figures(host).items() if name.startswith(prefix) and value]


def changes(host: Host, boot: int | None = None) -> list[Event]:
    events = host.events("journal", boot=boot)
    return [event for event in events if event["fields"].get("MESSAGE_ID") == Message.STATE_CHANGED.value]


def test_metrics_name_the_state_and_count_what_is_done(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    assert states(host) == ["healthy"]
    before = figures(host)
    assert 0 <= before["pp_hostd_proof_age_seconds"] < SELF_TIMEOUT_SECONDS
    eventually(lambda: figures(host)["pp_hostd_feeds_total"] > before["pp_hostd_feeds_total"], "feeds are counted")
    assert figures(host)["pp_hostd_api_requests_total"] > 0
    stage.bed.set_api(Mode.SWALLOW)
    shows(host, "the control plane is out")
    assert states(host) == ["control-plane outage"]
    assert fetch(host, "/healthz")[0].startswith("200")


def test_a_host_that_waits_says_so_and_is_no_failure_of_the_program(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.contents.condemn(host.name)
    stage.bed.boot(host.name)
    shows(host, "condemned under id")
    assert states(host) == ["condemned"]
    head, body = fetch(host, "/healthz")
    assert head.startswith("200")
    assert body == f"{host.status_text()}\n"


def test_healthz_fails_while_judgements_stop(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    assert fetch(host, "/healthz") == ("200 text/plain; charset=utf-8", "healthy: its machine is not condemned\n")
    host.signal_agent(signal.SIGSTOP)
    try:
        assert fetch(host, "/healthz") == ("no answer", "")
    finally:
        host.signal_agent(signal.SIGCONT)
    assert fetch(host, "/healthz")[0].startswith("200")


def test_each_change_of_state_is_one_line_in_the_journal_with_its_cause_and_the_age_of_its_proof(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.kill()
    stage.hosts(3)
    stage.bed.set_api(Mode.SWALLOW)
    shows(host, "the control plane is out")
    stage.bed.set_api(Mode.PASS)
    shows(host, "healthy")
    told = changes(host)
    expected = ["waiting", "healthy", "suspect", "control-plane outage", "healthy"]
    assert [event["fields"]["PP_HOSTD_STATE"] for event in told] == expected
    assert [event["fields"]["PRIORITY"] for event in told] == ["5", "5", "4", "4", "5"]
    for event in told[1:]:
        fields = event["fields"]
        assert fields["SYSLOG_IDENTIFIER"] == "pp-hostd"
        age, left = float(fields["PP_HOSTD_PROOF_AGE_SECONDS"]), float(fields["PP_HOSTD_FEEDS_FOR_SECONDS"])
        assert abs(age + left - SELF_TIMEOUT_SECONDS) < 0.01
        assert f"(proof {age:.1f} s old, feeds for {left:.1f} s)" in event["line"]


def test_after_a_reset_the_next_boot_says_once_why_the_last_one_ended(stage: Stage) -> None:
    host, *_ = stage.hosts(3, patient=1)
    since_at = now()
    stage.contents.condemn(host.name)
    reset_within(host, since_at)
    stage.contents.lift(host.name)
    stage.bed.boot(host.name)
    says(host, "the last boot ended because its machine is condemned")
    eventually(lambda: stage.is_well(host), "it is well")
    host.signal_agent(signal.SIGKILL)
    eventually(lambda: len(host.events("agent-started")) == 2 and len(changes(host)) > 2, "another agent judges")
    last = [event for event in host.events("journal") if event["fields"].get("MESSAGE_ID") == Message.LAST_BOOT.value]
    assert len(last) == 1
    first, *_ = json.loads(host.run("pp-hostd", "history", "--json").stdout)
    assert (first["state"], first["sentence"]) == ("reset", "its machine is condemned")


def test_after_the_watchdog_fired_the_next_boot_says_that_no_word_was_left(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    host.signal_agent(signal.SIGSTOP)
    assert host.await_down()["how"] == "watchdog"
    stage.bed.boot(host.name)
    says(host, "the last boot ended because its watchdog was not fed in time; that boot left no reason")
