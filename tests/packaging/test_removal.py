"""Removing the package: the promise is withdrawn and the watchdog disarmed first, or nothing is removed."""

from __future__ import annotations

from pp_hostd.model.promise import Withdrawn
from tests.harness.eventually import eventually
from tests.packaging.site import CONFIG_FILE, Site


def remove(site: Site, *, refused: bool = False) -> str:
    done = site.guest.run("rpm", "--erase", "--nodeps", "pp-hostd", check=False)
    assert (done.returncode != 0) == refused, done.stderr
    return done.stderr


def test_removal_withdraws_disarms_and_leaves_the_kubelet_running(site: Site) -> None:
    guest = site.guest
    site.start()
    kubelet = site.kubelet()
    guest.run("sh", "-c", f"echo '# changed' >>{CONFIG_FILE}")
    remove(site)
    assert isinstance(site.record(), Withdrawn)
    assert "disabled" in guest.watchdog()
    assert "fired" not in guest.watchdog()
    assert site.kubelet() == kubelet
    for path in ("/usr/share/pp-hostd", "/usr/bin/pp-hostd", "/usr/lib/systemd/system/pp-hostd.service", CONFIG_FILE):
        assert not guest.exists(path), path
    assert guest.exists(f"{CONFIG_FILE}.rpmsave")
    assert guest.run("systemctl", "--failed", "--no-legend").stdout == ""


def test_a_kubelet_starts_without_the_gate_once_the_package_is_gone(site: Site) -> None:
    site.start()
    remove(site)
    site.guest.run("systemctl", "restart", "kubelet.service")
    assert site.guest.is_active("kubelet.service")


def test_removal_is_refused_while_the_promise_can_t_be_withdrawn(site: Site) -> None:
    guest = site.guest
    site.start()
    kubelet, before = site.kubelet(), len(guest.watchdog())
    site.act_as("reader")
    said = remove(site, refused=True)
    assert "pp-hostd is not removed" in said
    assert "still armed" in said
    assert "403" in said
    site.act_as("admin")
    eventually(lambda: "healthy" in guest.shows("pp-hostd.service", "StatusText"), "it goes on", 60)
    assert site.is_armed()
    assert set(guest.watchdog()[before:]) <= {"feed", "settimeout"}
    assert site.kubelet() == kubelet
    remove(site)
    assert isinstance(site.record(), Withdrawn)


def test_removal_is_refused_while_the_gate_holds_the_kubelet(site: Site) -> None:
    guest = site.guest
    site.add_kubelet()
    guest.run("systemctl", "enable", "pp-hostd.service", "pp-hostd-gate.service")
    with site.without_api():
        guest.run("systemctl", "start", "--no-block", "kubelet.service", "pp-hostd.service")
        eventually(lambda: guest.shows("pp-hostd-gate.service", "ActiveState") == "activating", "the gate holds")
        assert "gate open --i-know" in remove(site, refused=True)
    eventually(lambda: guest.is_active("kubelet.service"), "the kubelet is let go", 60)


def test_removal_is_refused_while_an_armed_host_has_no_agent(site: Site) -> None:
    guest = site.guest
    site.start()
    guest.write("/etc/systemd/system/pp-hostd.service.d/slow.conf", "[Service]\nRestartSec=300\n")
    guest.run("systemctl", "daemon-reload")
    guest.run("systemctl", "kill", "--signal=SIGKILL", "pp-hostd.service")
    eventually(lambda: not guest.is_active("pp-hostd.service"), "it is dead")
    assert "the watchdog is armed, and the agent" in remove(site, refused=True)


def test_a_package_that_never_ran_is_removed_without_a_question(site: Site) -> None:
    remove(site)
    assert not site.guest.exists("/usr/share/pp-hostd")
