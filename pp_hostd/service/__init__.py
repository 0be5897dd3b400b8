"""The parts that both daemons run with: journal, systemd, ports for metrics; and how their commands print."""
