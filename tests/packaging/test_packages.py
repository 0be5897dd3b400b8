"""The content of the packages, their requirements, and rpmlint's findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.eventually import HANGS_SECONDS
from tests.packaging.guest import CHECKOUT

AGENT, LEADER, ADMIN = (
    "pp-hostd-0.1.0-1{}.noarch.rpm",
    "pp-leader-0.1.0-1{}.noarch.rpm",
    "pp-hostd-admin-0.1.0-1{}.noarch.rpm",
)
BUNDLED = ".bundled"
BUILDS = pytest.mark.parametrize("build", ["", BUNDLED])
HOME = "/usr/share/pp-hostd/pp_hostd"
ONLY_ADMIN = (f"{HOME}/sim/", f"{HOME}/embedded/")


def query(package: Path, *what: str) -> list[str]:
    command = ["rpm", "--query", "--package", *what, str(package)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=HANGS_SECONDS
    ).stdout.splitlines()


def sources() -> set[str]:
    """Where each module of the checkout is installed."""
    return {f"{HOME}/{path.relative_to(CHECKOUT / 'pp_hostd')}" for path in (CHECKOUT / "pp_hostd").rglob("*.py")}


def is_only_admin(path: str) -> bool:
    """Whether it is one of the directories that a protected host must not have, or lies in one."""
    return f"{path}/".startswith(ONLY_ADMIN)


def test_the_agent_s_package_holds_all_that_a_host_needs(rpms: Path) -> None:
    files = query(rpms / AGENT.format(""), "--list")
    for path in (
        "/usr/bin/pp-hostd",
        "/usr/lib/systemd/system/pp-hostd.service",
        "/usr/lib/systemd/system/pp-hostd-gate.service",
        "/usr/lib/systemd/system/pp-metrics@.service",
        "/usr/lib/systemd/system/pp-metrics@.timer",
        "/usr/lib/systemd/system/sleep.target.d/50-pp-hostd.conf",
        "/usr/lib/systemd/system-preset/90-pp-hostd.preset",
        "/usr/lib/firewalld/services/pp-hostd.xml",
        "/usr/share/bash-completion/completions/pp-hostd",
        "/usr/share/man/man8/pp-hostd.8",
        "/usr/share/man/man5/pp-hostd.toml.5",
        "/etc/pp-hostd/conf.d",
        "/var/lib/pp-hostd",
    ):
        assert path in files
    flags = query(rpms / AGENT.format(""), "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]")
    assert "/etc/pp-hostd/pp-hostd.toml cn" in flags  # configuration, not to be replaced
    assert not [path for path in files if "/tests" in path or "h11" in path]


@BUILDS
def test_only_the_administrators_package_ships_the_simulator_and_the_embedded_api(rpms: Path, build: str) -> None:
    for package in (AGENT, LEADER):
        assert not [path for path in query(rpms / package.format(build), "--list") if is_only_admin(path)]
    shipped = query(rpms / ADMIN.format(build), "--list")
    plugin = [path.removesuffix(".gz") for path in shipped if not is_only_admin(path)]
    assert plugin == ["/usr/bin/kubectl-pp", "/usr/bin/kubectl_complete-pp", "/usr/share/man/man8/kubectl-pp.8"]
    assert set(filter(is_only_admin, sources())) <= set(shipped)


@BUILDS
def test_every_module_is_shipped_with_its_byte_code(rpms: Path, build: str) -> None:
    files = {path for package in (AGENT, ADMIN) for path in query(rpms / package.format(build), "--list")}
    assert sources() <= files
    for module in (Path(path) for path in files if path.startswith("/usr/share/pp-hostd/") and path.endswith(".py")):
        compiled = module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
        assert any(str(compiled).rpartition(".cpython")[0] in path for path in files), module


def test_the_plain_package_requires_its_libraries_by_name_and_the_bundled_one_says_what_it_brings(rpms: Path) -> None:
    plain = query(rpms / AGENT.format(""), "--requires")
    assert {"python3-h11 >= 0.13", "python3-pyyaml >= 5.4"} <= set(plain)
    bundled = rpms / AGENT.format(BUNDLED)
    assert not [line for line in query(bundled, "--requires") if line.startswith("python3-")]
    brought = [line for line in query(bundled, "--provides") if line.startswith("bundled(python3dist(")]
    assert [line.partition(" = ")[0][20:-2] for line in brought] == ["h11", "pyyaml", "tomli"]


def test_the_leader_s_and_the_administrators_packages_require_the_agent_s(rpms: Path) -> None:
    assert "pp-hostd = 0.1.0-1" in query(rpms / LEADER.format(""), "--requires")
    files = query(rpms / LEADER.format(""), "--list")
    for path in (
        "/usr/bin/pp-leader",
        "/usr/lib/systemd/system/pp-leader.service",
        "/usr/lib/systemd/system/pp-leader-fence.socket",
        "/usr/lib/systemd/system/pp-leader-fence@.service",
        "/usr/share/pp-leader/prometheus/pp-hostd.rules.yml",
        "/usr/share/pp-leader/prometheus/pp-hostd.dashboard.json",
    ):
        assert path in files
    needed = query(rpms / ADMIN.format(""), "--requires")
    assert {"pp-leader = 0.1.0-1", "python3-kubernetes", "python3-pyroute2", "python3-requests"} <= set(needed)


def test_fence_agents_are_suggested_and_never_required(rpms: Path) -> None:
    assert {"fence-agents-ipmilan", "fence-agents-redfish"} <= set(query(rpms / LEADER.format(""), "--suggests"))
    for package in (AGENT, LEADER, ADMIN):
        for strength in ("--requires", "--recommends"):
            assert not [each for each in query(rpms / package.format(""), strength) if "fence" in each]


def test_rpmlint_has_nothing_to_say(rpms: Path) -> None:
    packages = [str(rpms / name.format(kind)) for name in (AGENT, LEADER, ADMIN) for kind in ("", BUNDLED)]
    command = ["rpmlint", "--config", str(CHECKOUT / "tests/packaging/rpmlint.toml"), "rpm.spec", *packages]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=110)
    said = [line for line in done.stdout.splitlines() if ": W: " in line or ": E: " in line]
    assert (done.returncode, said) == (0, [])


def test_the_man_pages_are_taken_without_a_warning(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pp_hostd.manual", str(tmp_path)], check=True, timeout=HANGS_SECONDS)
    for page in sorted(tmp_path.glob("*.[58]")):
        command = ["man", "--warnings", "--local-file", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS)
        assert (done.returncode, done.stderr) == (0, ""), page.name
