"""The Ignition file for CoreOS-like hosts is what its source says, and what Ignition takes."""

from __future__ import annotations

import json
import subprocess

from tests.harness.eventually import HANGS_SECONDS
from tests.packaging.ignition import TRANSLATED, translated

SLEEP = ("sleep", "suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate")


def test_the_file_in_the_checkout_is_what_its_source_says() -> None:
    assert TRANSLATED.read_text() == translated(), f"{TRANSLATED} is out of date: run `make ignition`"


def test_ignition_takes_it() -> None:
    done = subprocess.run(["ignition-validate", str(TRANSLATED)], capture_output=True, text=True, timeout=HANGS_SECONDS)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_host_gets_the_package_the_gate_and_no_sleep() -> None:
    host = json.loads(TRANSLATED.read_text())
    units = {unit["name"]: unit for unit in host["systemd"]["units"]}
    assert all(units[f"{name}.target"]["mask"] for name in SLEEP)
    assert "rpm-ostree install" in units["pp-hostd-layer.service"]["contents"]
    links = {link["path"]: link["target"] for link in host["storage"]["links"]}
    assert links["/etc/systemd/system/kubelet.service.requires/pp-hostd-gate.service"].endswith(
        "/pp-hostd-gate.service"
    )
