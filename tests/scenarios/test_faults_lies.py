"""An API that lies: what is not this host's own object, whole and true to its uid, proves nothing (rule 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.harness.lying_api import Json, Lie, LyingApi
from tests.scenarios.faults import last_proof_at
from tests.scenarios.stage import Stage, outlive, reset_within, says, shows

AT_ONCE_SECONDS = 2.0


@contextmanager
def led_to_liar(stage: Stage, hosts: Sequence[Host]) -> Iterator[LyingApi]:
    """These hosts find it where the API was."""
    names = [host.name for host in hosts]
    with LyingApi(stage.contents.cluster) as liar:
        stage.bed.divert_api(liar.port, names)
        try:
            yield liar
        finally:
            stage.bed.divert_api(stage.bed.upstream_port, names)


def with_metadata(**changes: str) -> Lie:
    return lambda node: json.dumps({**node, "metadata": {**node["metadata"], **changes}}).encode()


def another_kind(node: Json) -> bytes:
    return json.dumps({**node, "kind": "ConfigMap"}).encode()


def fails_for(host: Host, reason: str) -> bool:
    return any("of 3 reads failed" in line and reason in line for line in host.journal())


def test_lies_prove_nothing_so_peers_are_asked_and_without_them_the_host_dies(stage: Stage) -> None:
    *hosts, peer = stage.hosts(7)
    told_truth, *deceived = hosts
    lies: dict[str, tuple[Lie, str]] = {
        "another node": (with_metadata(name=peer.name, uid="1"), peer.name),
        "another uid": (with_metadata(uid="1"), "has another uid than the one promised"),
        "another kind": (another_kind, "ConfigMap"),
        "half a reply": (lambda node: json.dumps(node).encode()[:-20], "JSON"),
        "garbage": (lambda _: b"<html>welcome</html>", "JSON"),
    }
    with led_to_liar(stage, hosts) as liar:
        for host, (lie, _) in zip(deceived, lies.values()):
            liar.lies[host.name] = lie
        for host, (_, reason) in zip(deceived, lies.values()):
            eventually(lambda: fails_for(host, reason), f"{host.name} says {reason!r}")  # noqa: B023  (called here)
            shows(host, "confirms it")
        proofs_at = {host: last_proof_at(host) for host in deceived}
        everybody = [host.name for host in (*hosts, peer)]
        stage.bed.cut_pairs(*((one, other) for one in everybody for other in everybody if one != other))
        for host, proof_at in proofs_at.items():
            reset_within(host, proof_at)
            says(host, "no peer confirms that it is healthy: 6 silent of 6 asked")
        outlive([told_truth], 0)
