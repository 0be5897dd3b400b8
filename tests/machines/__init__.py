"""Whole machines: QEMU guests with a real kernel, watchdog and systemd, installed from the package; what befalls them.

`make test-machines` runs the cases (`case_*.py`), as root; docs/machines.md describes them.
"""
