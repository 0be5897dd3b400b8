"""An API that cuts every TLS handshake off draws no flood of connections from hosts that ask each other."""

from __future__ import annotations

from contextlib import closing

from tests.harness.bed.cluster_bed import SETTINGS
from tests.harness.trouble import TroubleServer
from tests.scenarios.stage import SELF_TIMEOUT_SECONDS, Stage, now, outlive, shows

HOSTS = 10
OUTAGE_SECONDS = 5 * SELF_TIMEOUT_SECONDS


def test_ten_hosts_whose_handshakes_are_cut_off_connect_no_more_often_than_each_would_by_itself(stage: Stage) -> None:
    hosts = stage.hosts(HOSTS)
    names = [host.name for host in hosts]
    with closing(TroubleServer()) as server:
        cutting_off = server.listen("closed in the handshake")
        since_at = now()
        stage.bed.divert_api(int(cutting_off.url.rpartition(":")[2]), names)
        try:
            outlive(hosts, OUTAGE_SECONDS)
            for host in hosts:
                shows(host, "the control plane is out, not this host")
            connections, seconds = cutting_off.connections, now() - since_at
        finally:
            stage.bed.divert_api(stage.bed.upstream_port, names)
    # One attempt at each retry. If each question of a peer drew one, too, there would be more than half as many again.
    assert connections < HOSTS * seconds / SETTINGS["api.retry_seconds"], (connections, seconds)
