"""pp-hostd: a sick host resets itself in bounded time, and the cluster is told only when that is certain."""

__version__ = "0.1.0"
