"""Figures beside their targets: `make bench`. A name, a value, a unit, a target, and whether it was met."""
