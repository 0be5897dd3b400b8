"""Prometheus, promtool and node_exporter. python -m tests.metrics.tools gets what is missing (apt: root)."""

from __future__ import annotations

import subprocess
import sys

from tests.bmc.tools import install

PACKAGES = {"promtool": "prometheus", "prometheus-node-exporter": "prometheus-node-exporter"}


def main() -> None:
    try:
        install(PACKAGES)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"make test-metrics: {error}")


if __name__ == "__main__":
    main()
