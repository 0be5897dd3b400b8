"""How far the units are hardened, by systemd's own measure (0 is the best), which must not get worse unnoticed."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.harness.eventually import HANGS_SECONDS
from tests.packaging.guest import CHECKOUT

FIGURES = {
    "pp-hostd.service": 4.5,
    "pp-hostd-gate.service": 1.9,
    "pp-leader.service": 1.2,
    "pp-leader-fence@.service": 1.4,
    "pp-metrics@.service": 2.0,
}


@pytest.mark.parametrize(("unit", "most"), FIGURES.items())
def test_a_unit_is_exposed_no_more_than_the_page_says(unit: str, most: float) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(CHECKOUT / "systemd" / unit)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found is not None, said
    assert float(found[1]) <= most
    assert f"`{unit}` {most}" in (CHECKOUT / "docs" / "install.md").read_text()
