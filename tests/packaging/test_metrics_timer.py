"""The timer that hands node_exporter the figures, under systemd, as docs/metrics.md has it set up."""

from __future__ import annotations

from tests.harness.eventually import eventually
from tests.packaging.site import SETTINGS, Site, free_port

TEXTFILES = "/var/lib/node_exporter/textfile_collector"
OTHER = "/var/lib/prometheus/node-exporter"
TIMER, SERVICE = "pp-metrics@pp-hostd.timer", "pp-metrics@pp-hostd.service"
DROP_IN = f"[Service]\nEnvironment=TEXTFILES={OTHER}\nReadWritePaths={OTHER}\n"
ANOTHER_SECONDS = 60
"""The timer has the figures written every 15 s."""


def figures(site: Site, directory: str = TEXTFILES) -> str:
    """Those of the file; empty if there is none."""
    return site.guest.run("cat", f"{directory}/pp-hostd.prom", check=False).stdout


def begin(site: Site) -> None:
    site.configure(SETTINGS.replace("metrics_port = 0", f"metrics_port = {free_port()}", 1))
    site.start()
    site.guest.run("systemctl", "enable", "--now", TIMER)


def test_the_timer_writes_the_figures_again_and_again(site: Site) -> None:
    guest = site.guest
    guest.run("mkdir", "-p", TEXTFILES)
    begin(site)
    eventually(lambda: "pp_hostd_protected 1\n" in figures(site), "the figures are written")
    assert guest.run("stat", "--format=%a %U", f"{TEXTFILES}/pp-hostd.prom").stdout == "644 root\n"
    guest.run("systemctl", "stop", "pp-hostd.service")
    eventually(lambda: figures(site).endswith("\npp_hostd_up 0\n"), "the file says so", ANOTHER_SECONDS)
    assert "pp_hostd_protected" not in figures(site)
    assert guest.run("systemctl", "--failed", "--no-legend").stdout == ""
    guest.run("systemctl", "start", "pp-hostd.service")
    eventually(lambda: "pp_hostd_up 1\n" in figures(site), "the agent answers again", ANOTHER_SECONDS)


def test_the_figures_go_to_the_directory_that_an_administrator_names(site: Site) -> None:
    guest = site.guest
    guest.run("mkdir", "-p", OTHER)
    guest.write("/etc/systemd/system/pp-metrics@.service.d/override.conf", DROP_IN)
    guest.run("systemctl", "daemon-reload")
    begin(site)
    eventually(lambda: "pp_hostd_up 1\n" in figures(site, OTHER), "the figures are written")


def test_a_directory_that_is_not_there_is_named(site: Site) -> None:
    begin(site)
    said = f"{TEXTFILES}/pp-hostd.prom: can't be written (No such file or directory)"
    eventually(lambda: said in site.guest.journal(SERVICE), "the journal says which")
