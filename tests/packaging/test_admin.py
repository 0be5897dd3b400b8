"""The administrators' package on a host: it brings the simulator, and takes all of it along when it is removed."""

from __future__ import annotations

from tests.packaging.guest import Guest

PROTECTED = ("pp-hostd-0.1.0-1.bundled", "pp-leader-0.1.0-1.bundled")
ADMIN = "pp-hostd-admin-0.1.0-1.bundled"
SIMULATOR = "/usr/share/pp-hostd/pp_hostd/sim"


def install(guest: Guest, *packages: str) -> None:
    guest.run("rpm", "--install", "--nodeps", *(f"/rpms/{package}.noarch.rpm" for package in packages))


def simulate(guest: Guest) -> tuple[int, str, str]:
    said = guest.run("pp-hostd", "simulate", "--days", check=False)
    return said.returncode, said.stdout.partition(" ")[0], said.stderr


def test_the_simulator_comes_and_goes_with_the_administrators_package(guest: Guest) -> None:
    missing = "pp-hostd: the simulator is not installed on this host\n  Install the package pp-hostd-admin.\n"
    install(guest, *PROTECTED)
    assert simulate(guest) == (2, "", missing)
    install(guest, ADMIN)
    assert simulate(guest) == (0, "NAME", "")
    guest.run("touch", f"{SIMULATOR}/__pycache__/run.cpython-399.pyc")  # as another Python would leave it
    guest.run("rpm", "--erase", "pp-hostd-admin")
    assert not guest.exists(SIMULATOR)
    assert simulate(guest) == (2, "", missing)
