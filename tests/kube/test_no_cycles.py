"""A failed exchange leaves nothing for the cycle collector: TLS state would pile up between its rare full runs."""

from __future__ import annotations

import gc

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import NODES
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial


@pytest.mark.parametrize(
    "behaviour", ["silent", "silent before TLS", "not TLS", "reset", "half a body", "not JSON", "403 in HTML", "100 MB"]
)
async def test_failures_are_freed_at_once(behaviour: str, trouble: TroubleServer, dial: Dial) -> None:
    client = dial(trouble.listen(behaviour).url, deadline_seconds=0.2)
    await fail(client)
    gc.collect()
    gc.disable()
    try:
        await fail(client)
        assert gc.collect() == 0
    finally:
        gc.enable()


async def fail(client: ApiClient) -> None:
    for _ in range(5):
        try:
            await client.get(NODES, "worker")
        except ApiError:
            continue
        raise AssertionError("the trouble server was no trouble")
