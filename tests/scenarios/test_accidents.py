"""The writes of leaders are told apart, and what goes wrong between them and the API does not stay unseen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import BUDGET, CORDONED, EXTERNAL_REMEDIATION, FREEING, REQUESTED_AGAIN
from tests.harness.cluster import write_kubeconfig
from tests.harness.embedded import EmbeddedCluster
from tests.harness.go_between import Answer, Asked, GoBetween
from tests.scenarios.accidents import Write, write_of

WRITES: list[tuple[dict[str, Any], Write | None]] = [
    ({"metadata": {"annotations": {CORDONED: "1"}}}, Write.CORDON),
    ({"metadata": {"annotations": {CORDONED: None}}}, Write.UNCORDON),
    ({"metadata": {"annotations": {EXTERNAL_REMEDIATION: "2024-01-01T00:00:00Z"}}}, Write.CONDEMN),
    ({"metadata": {"annotations": {EXTERNAL_REMEDIATION: None}}}, Write.CLEAR),
    ({"metadata": {"annotations": {FREEING: "1"}}}, Write.MARK_FREEING),
    ({"metadata": {"annotations": {REQUESTED_AGAIN: "1"}}}, Write.NOTE_REQUEST),
    ({"metadata": {"annotations": {REQUESTED_AGAIN: None}}}, None),
    ({"metadata": {"annotations": {"example.com/rack": "7"}, "labels": {"a": "b"}}, "spec": {}}, None),
    ({"metadata": {"labels": {"a": "b"}}}, None),
    ({"spec": {"taints": []}}, None),
]


@pytest.mark.parametrize(("patch", "write"), WRITES)
def test_every_patch_of_a_node_is_one_of_the_writes_or_none(patch: dict[str, Any], write: Write | None) -> None:
    assert write_of(Asked("PATCH", "/api/v1/nodes/worker-1", {}, json.dumps(patch).encode())) is write


def test_the_budget_is_one_write_whether_it_is_created_or_replaced() -> None:
    path, body = "/api/v1/namespaces/pp-hostd/configmaps", json.dumps({"metadata": {"name": BUDGET}}).encode()
    assert write_of(Asked("POST", path, {}, body)) is Write.SPEND_BUDGET
    assert write_of(Asked("PUT", f"{path}/{BUDGET}", {}, body)) is Write.SPEND_BUDGET


class Mistaken(GoBetween):
    def answer(self, user: str, asked: Asked) -> Answer | None:
        raise KeyError(user, asked)


async def test_a_mistake_between_leaders_and_the_api_fails_the_test() -> None:
    with EmbeddedCluster.start() as cluster:
        certificate = cluster.authority.issue("somebody")
        with pytest.raises(AssertionError, match=r"dropped connections by mistake.*KeyError"), Mistaken(cluster) as it:
            path = cluster.directory / "mistaken"
            url = f"https://127.0.0.1:{it.port}"
            write_kubeconfig(path, url, cluster.authority.certificate_pem, certificate=certificate)
            client = ApiClient(load(str(path)), deadline_seconds=20)
            with pytest.raises(ApiError):
                await client.get(NODES, "worker-1")
            client.close()
