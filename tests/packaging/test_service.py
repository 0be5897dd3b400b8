"""The installed units under systemd: from installing to an armed host, and all that may happen to its agent."""

from __future__ import annotations

import re

from tests.harness.eventually import eventually
from tests.packaging.guest import Guest
from tests.packaging.site import CONFIG_FILE, OVERRIDES, SETTINGS, Site

UNITS = ("pp-hostd.service", "pp-hostd-gate.service", "pp-leader.service")
DOZE = "[Unit]\nRequires=sleep.target\nAfter=sleep.target\n[Service]\nType=oneshot\nExecStart=/bin/true\n"
"""In place of systemd-suspend.service, which would send the machine under the tests to sleep."""
AGENT = """#!/bin/sh
cat
id -u
touch /etc/left 2>/dev/null && echo wrote
ls /dev/watchdog 2>/dev/null
logger leaked 2>/dev/null
exit 2
"""
CALL = """
import asyncio
from pp_hostd.fencing.call import AgentCall
from pp_hostd.fencing.client import SOCKET, run_agent
print(repr(asyncio.run(run_agent(SOCKET, AgentCall("fence_test", (("action", "status"),), 60.0)))))
"""
CALLING = """[Service]
Type=oneshot
RemainAfterExit=yes
Restart=no
WatchdogSec=0
Environment=PYTHONPATH=/usr/share/pp-hostd
ExecStart=
ExecStart=/usr/bin/python3 /etc/pp-hostd/call.py
"""
"""In place of the leader, with all else that its unit has."""
UPGRADE = ("pp-hostd-0.1.0-2.bundled", "pp-leader-0.1.0-2.bundled")


def let_go(events: list[str]) -> set[str]:
    """Returns the events that would have left the host unprotected, or reset it; empty if none."""
    return {"open", "close", "magic", "disabled", "fired"}.intersection(events)


def agent_of(guest: Guest) -> str:
    """The agent's process, once it runs."""

    def pid() -> str:
        shown = guest.shows("pp-hostd.service", "MainPID")
        return "" if shown == "0" else shown

    return eventually(pid, "the agent runs")


def test_what_is_installed_is_not_enabled_and_does_not_run(site: Site) -> None:
    for unit in UNITS:
        assert site.guest.run("systemctl", "is-enabled", unit, check=False).stdout == "disabled\n"
        assert not site.guest.is_active(unit)
    assert site.guest.run("systemctl", "--failed", "--no-legend").stdout == ""


def test_the_gate_holds_no_kubelet_whose_only_api_server_is_on_loopback(site: Site) -> None:
    """A local proxy that the kubelet starts could be there; the emulated machines hold theirs."""
    guest = site.guest
    site.add_kubelet()
    guest.run("systemctl", "enable", *UNITS[:2])
    with site.without_api():
        guest.run("systemctl", "start", "--no-block", "kubelet.service", "pp-hostd.service")
        eventually(lambda: guest.is_active("pp-hostd.service"), "the agent runs")
        eventually(lambda: guest.is_active("kubelet.service"), "the kubelet runs")
    eventually(site.is_armed, "the host is armed", 60)
    assert "healthy" in guest.shows("pp-hostd.service", "StatusText")


def test_a_mistake_in_the_settings_keeps_the_gate_shut_and_is_told_at_the_kubelet(site: Site) -> None:
    guest = site.guest
    site.add_kubelet()
    guest.write(OVERRIDES, "agent.self_timeout_secnds = 5\n")
    guest.run("systemctl", "enable", *UNITS[:2])
    guest.run("systemctl", "start", "--no-block", "kubelet.service", "pp-hostd.service")
    for unit in ("kubelet.service", "pp-hostd-gate.service", "pp-hostd.service"):
        eventually(lambda unit=unit: "did you mean" in guest.status_of(unit), f"{unit} says what to do")  # type: ignore[misc]
    assert not guest.is_active("kubelet.service")
    site.configure()
    eventually(lambda: guest.is_active("kubelet.service"), "the kubelet is let go", 60)


def test_restarting_upgrading_or_crashing_never_stops_the_kubelet_nor_lets_go_of_the_watchdog(site: Site) -> None:
    guest = site.guest
    site.start()
    kubelet, promise, before = site.kubelet(), site.record(), len(guest.watchdog())
    agents = [agent_of(guest)]
    for accident in (
        ["systemctl", "restart", "pp-hostd.service"],
        ["systemctl", "try-restart", "pp-hostd.service"],
        ["systemctl", "kill", "--signal=SIGKILL", "pp-hostd.service"],
        ["rpm", "--upgrade", "--nodeps", *(f"/rpms/{package}.noarch.rpm" for package in UPGRADE)],
    ):
        guest.run(*accident)
        eventually(lambda: agent_of(guest) not in agents, f"there is another agent after {accident}")
        agents.append(agent_of(guest))
        eventually(lambda: "healthy" in guest.shows("pp-hostd.service", "StatusText"), "it is healthy", 60)
        assert guest.shows("pp-hostd.service", "NFileDescriptorStore") == "1"
        assert site.kubelet() == kubelet
        assert not let_go(guest.watchdog()[before:])
    assert site.record() == promise
    assert "0.1.0-2" in guest.run("rpm", "--query", "pp-hostd").stdout


def test_the_agent_outlives_isolate(site: Site) -> None:
    site.start()
    agent = agent_of(site.guest)
    site.guest.run("systemctl", "isolate", "rescue.target")
    assert agent_of(site.guest) == agent
    assert site.guest.is_active("pp-hostd-gate.service")


def test_a_host_under_care_does_not_sleep(site: Site) -> None:
    guest = site.guest
    guest.write("/etc/systemd/system/doze.service", DOZE)
    guest.run("systemctl", "start", "doze.service")
    guest.run("systemctl", "stop", "sleep.target")
    site.start()
    refused = guest.run("systemctl", "start", "doze.service", check=False)
    assert refused.returncode != 0
    assert "Assertion failed for sleep.target" in guest.journal("sleep.target")
    suspend = guest.run("systemctl", "cat", "systemd-suspend.service").stdout
    assert "Requires=sleep.target" in suspend
    assert "After=sleep.target" in suspend


def test_the_hardened_agent_has_all_that_it_asks_for(site: Site) -> None:
    site.start()
    journal = site.guest.journal("pp-hostd.service")
    # Two rights the machine under the tests may not have itself: to lower an OOM score, and to press sysrq.
    for trouble in ("memory can't be locked", "priority", "files can be open"):
        assert trouble not in journal


def test_the_leader_runs_as_a_user_of_its_own_with_copies_of_the_credentials(site: Site) -> None:
    guest = site.guest
    site.give_leader_credentials()
    guest.run("systemctl", "enable", "--now", "pp-leader.service")
    eventually(lambda: "leads" in guest.shows("pp-leader.service", "StatusText"), "it leads", 60)
    process = guest.run("cat", f"/proc/{guest.shows('pp-leader.service', 'MainPID')}/status").stdout
    assert "Uid:\t0" not in process
    assert "CapPrm:\t0000000000000000" in process


def called(site: Site, *as_whom: str) -> str:
    """The reply to somebody who has an agent run."""
    return site.guest.run(*as_whom, "env", "PYTHONPATH=/usr/share/pp-hostd", "python3", "/etc/pp-hostd/call.py").stdout


def test_the_leader_has_a_fence_agent_run_in_a_sandbox_and_nobody_else_has_but_root(site: Site) -> None:
    guest = site.guest
    guest.write("/usr/sbin/fence_test", AGENT, "755")
    guest.write("/etc/pp-hostd/call.py", CALL)
    guest.write("/etc/systemd/system/pp-leader.service.d/calling.conf", CALLING)
    guest.run("systemctl", "daemon-reload")
    assert not guest.is_active("pp-leader-fence.socket")
    guest.run("systemctl", "start", "pp-leader.service")
    said = guest.journal("pp-leader.service")
    found = re.search(r"AgentReply\(code=2, output='action=status\\n(\d+)\\n', trouble=''\)", said)
    assert found is not None, said
    assert int(found[1]) > 1000  # a user that exists while it runs
    logged = guest.journal("pp-leader-fence@*")
    assert "fence_test status: exit code 2" in logged and "action=status" in logged
    assert "leaked" not in guest.run("journalctl", "--no-pager").stdout
    assert guest.is_active("pp-leader-fence.socket")
    assert "code=2" in called(site)
    assert "only pp-leader.service and root may have fence agents run" in called(site, "setpriv", "--reuid=1000")
    guest.run("systemctl", "stop", "pp-leader.service")
    eventually(lambda: not guest.exists("/run/pp-leader-fence.sock"), "the socket goes with the leader")


def test_a_leader_without_credentials_says_which_file_is_missing(site: Site) -> None:
    site.guest.run("systemctl", "start", "--no-block", "pp-leader.service")
    said = "/etc/pp-hostd/leader.kubeconfig: does not exist"
    eventually(lambda: said in site.guest.journal("pp-leader.service"), "it says so")


def test_settings_of_the_administrator_outlive_an_upgrade(site: Site) -> None:
    guest = site.guest
    guest.write(CONFIG_FILE, SETTINGS)
    site.install(*UPGRADE)
    assert guest.run("cat", CONFIG_FILE).stdout == SETTINGS
