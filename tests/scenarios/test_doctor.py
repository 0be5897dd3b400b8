"""The doctor on hosts with real agents and peers: what it finds well, what it finds broken; it breaks nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pp_hostd.model.promise import Armed
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.stage import WATCHDOG_SECONDS, Stage

Lines = dict[str, list[dict[str, str]]]


def examined(host: Host, *arguments: str) -> tuple[int, Lines]:
    """The exit code, and all lines by their check."""
    ended = host.run("pp-hostd", "doctor", "--json", *arguments, check=False, timeout_seconds=60)
    assert ended.stderr == "", ended.stderr
    lines: Lines = {}
    for line in json.loads(ended.stdout):
        assert line["advice"] or line["outcome"] == "ok", line
        lines.setdefault(line["check"], []).append(line)
    return ended.returncode, lines


def outcome(lines: Lines, check: str) -> tuple[str, str]:
    """Of the first line about it: the daemon may have troubles besides."""
    line, *_ = lines[check]
    return line["outcome"], line["found"]


def failed(lines: Lines) -> set[str]:
    return {check for check, found in lines.items() if any(line["outcome"] == "failure" for line in found)}


def told(lines: Lines) -> list[str]:
    return [line["found"] for found in lines.values() for line in found if line["outcome"] == "failure"]


def stopped(host: Host) -> None:
    host.stop_agent()
    eventually(lambda: host.agent_pid == 0, "it has ended")


def test_a_healthy_host_is_found_so_and_nothing_is_opened_or_written(stage: Stage) -> None:
    host, *others = stage.hosts(3)
    before, opened = stage.contents.node(host.name), len(host.watchdog("open"))
    code, lines = examined(host, "--peers", "2")
    assert (code, failed(lines)) == (0, set()), told(lines)
    for check in ("configuration", "watchdog-identity", "watchdog-holders", "api-write-node", "roster", "address"):
        assert outcome(lines, check)[0] != "failure", lines[check]
    assert outcome(lines, "watchdog-timeout") == ("ok", f"{WATCHDOG_SECONDS} s, as read back from the armed device")
    names = [other.name for other in others]
    assert outcome(lines, "peers-to")[1].startswith(f"{names[0]} says healthy, {names[1]} says healthy")
    assert outcome(lines, "peers-from") == ("ok", f"{', '.join(names)} called back and got through to the daemon")
    assert outcome(lines, "peers-unsigned") == ("ok", f"refused, as it should be, by {', '.join(names)}")
    assert outcome(lines, "clock")[0] == "ok"
    after = stage.contents.node(host.name)
    assert (after.agent, len(host.watchdog("open"))) == (before.agent, opened)
    text = host.run("pp-hostd", "doctor", timeout_seconds=60).stdout
    assert text.splitlines()[-1].endswith("0 failures")


def test_without_its_daemon_the_doctor_itself_listens_for_those_who_call_back(stage: Stage) -> None:
    host, other, *_ = stage.hosts(2)
    stopped(host)
    code, lines = examined(host)
    assert outcome(lines, "daemon") == ("warning", "it does not run, so this host is not protected")
    assert " says healthy" in outcome(lines, "peers-to")[1]
    said = f"{other.name} called back and got through to the doctor, which listens in place of the daemon"
    assert outcome(lines, "peers-from") == ("ok", said)
    assert code == 0, failed(lines)
    host.start_agent()


def test_a_peer_that_is_off_is_told(stage: Stage) -> None:
    host, other = stage.hosts(2)
    other.kill()
    code, lines = examined(host)
    assert (code, failed(lines)) == (1, {"peers-to"}), told(lines)
    assert outcome(lines, "peers-to")[1].startswith(f"no peer answers: {other.name} (")
    assert outcome(lines, "peers-from")[0] == "warning"
    stage.alter(other)


def test_a_host_that_can_ask_its_peers_and_not_be_asked_by_them_is_told(stage: Stage) -> None:
    host, other = stage.hosts(2)
    host.kill()
    stage.configure(host, {"peers.address": "127.0.0.1"})
    stage.bed.boot(host.name)
    eventually(lambda: stage.is_well(host), "it is well, as far as it can tell")
    code, lines = examined(host)
    assert (code, failed(lines)) == (1, {"peers-from"}), told(lines)
    said = f"no peer reaches this host (the daemon): {other.name} (connection refused)"
    assert outcome(lines, "peers-from")[1] == said
    assert " says healthy" in outcome(lines, "peers-to")[1]


def test_another_key_than_the_peers_is_found(stage: Stage) -> None:
    host, *_ = stage.hosts(2)
    stage.configure(host, {"peers.key_file": "/etc/pp-hostd/other.key"})
    (host.etc / "other.key").write_text("11" * 32)
    (host.etc / "other.key").chmod(0o600)
    code, lines = examined(host)
    assert (code, failed(lines)) == (1, {"peers-to"}), told(lines)
    assert "both nodes need the same peer key" in outcome(lines, "peers-to")[1]
    assert outcome(lines, "peer-key")[0] == "ok"


def test_without_the_api_what_needs_it_says_so_and_the_rest_goes_on(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stage.bed.set_api(Mode.SWALLOW, [host.name])
    _, lines = examined(host)
    assert failed(lines) == {"api-read-node"}, told(lines)
    assert "timed out" in outcome(lines, "api-read-node")[1]
    said = "not checked: the API can't be reached (timed out)"
    assert outcome(lines, "api-write-node") == ("warning", said)
    assert "as the daemon keeps it" in outcome(lines, "roster")[1]
    assert " says healthy" in outcome(lines, "peers-to")[1]
    assert host.is_up()


@pytest.mark.parametrize(
    ("break_it", "failures"),
    [
        ("echo nonsense >> /etc/pp-hostd/pp-hostd.toml", {"configuration"}),
        ("chmod 644 /etc/pp-hostd/peer.key", {"peer-key"}),
        ("mv /etc/pp-hostd/peer.key /etc/pp-hostd/away", {"peer-key"}),
        ("mv /etc/pp-hostd/kubeconfig /etc/pp-hostd/away", {"kubeconfig"}),
        ("echo '{' > /etc/pp-hostd/kubeconfig", {"kubeconfig"}),
    ],
)
def test_whatever_is_broken_the_doctor_says_what(stage: Stage, break_it: str, failures: set[str]) -> None:
    host, *_ = stage.hosts(2)
    key = (host.etc / "peer.key").read_text()
    stage.alter(host)
    host.run("sh", "-c", break_it)
    try:
        code, lines = examined(host)
    finally:
        (host.etc / "peer.key").write_text(key)
        (host.etc / "peer.key").chmod(0o600)
    assert (code, failed(lines)) == (1, failures), told(lines)
    assert outcome(lines, "daemon")[0] == "ok"


def test_a_host_that_the_roster_does_not_list_is_told(stage: Stage) -> None:
    first, second, third = stage.hosts(3)
    stage.list_in_roster([first, second])
    _, lines = examined(third)
    assert failed(lines) == {"roster"}, told(lines)
    assert outcome(lines, "peers-to")[1] == "not checked: this host is not in the roster"


def test_machines_are_read_where_they_are_not_nodes(machine_stage: Stage) -> None:
    host, *_ = machine_stage.hosts(2)
    code, lines = examined(host)
    assert (code, failed(lines)) == (0, set()), told(lines)
    assert outcome(lines, "api-read-machine")[0] == "ok"


def test_the_packages_of_administrators_may_be_missing(stage: Stage) -> None:
    host, *_ = stage.hosts(2)
    without = "import sys; sys.modules['requests'] = sys.modules['pyroute2'] = None; from pp_hostd.cli import agent"
    command = host.command("pp-hostd", "doctor", "--json")
    command[command.index("-c") + 1] = f"{without}; sys.exit(agent())"
    lines: list[dict[str, Any]] = json.loads(host.run(*command[command.index("-c") - 1 :], timeout_seconds=60).stdout)
    told = {line["check"]: line for line in lines}
    assert told["links"]["found"] == "not checked: the Python package pyroute2 is not there"
    assert told["peers-unsigned"]["found"] == "not checked: the Python package requests is not there"
    assert told["links"]["advice"] == told["peers-unsigned"]["advice"] == "Install the package pp-hostd-admin."
    assert told["peers-from"]["outcome"] == "ok"
    assert isinstance(stage.record(host), Armed)
