"""Chromium, its driver, and a program that makes pictures small. python -m tests.page.tools gets them (apt: root)."""

from __future__ import annotations

import subprocess
import sys

from tests.bmc.tools import install

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver", "pngquant": "pngquant"}


def main() -> None:
    try:
        install(PACKAGES)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"make test-page: {error}")


if __name__ == "__main__":
    main()
