"""The pictures of README.md and docs/, drawn from the figures that the pages and the settings state.

`make docs` writes them into docs/images/.
"""
