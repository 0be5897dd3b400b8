"""What both daemons are run with: journal, systemd, ports for metrics; and how their commands print."""
