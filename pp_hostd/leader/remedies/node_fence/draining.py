"""One pass of a drain: it has the pods of a Node evicted, as disruption budgets allow. Their kubelet ends them."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing
from pp_hostd.kube.resources import PODS
from pp_hostd.leader.remedies.node_fence.memory import Drained, RunKey
from pp_hostd.leader.steps.port import Port
from pp_hostd.leader.steps.workloads import stays


@frozen
class DrainPods:
    """Evict all pods but daemon and static ones that nobody has evicted yet."""

    node: str
    run_key: RunKey

    async def run(self, port: Port) -> str:
        left, refused = 0, ""
        for pod in (await port.api.list(PODS, field_selector=f"spec.nodeName={self.node}")).items:
            metadata = pod["metadata"]
            if stays(pod):
                continue
            left += 1
            if "deletionTimestamp" not in metadata:
                refused = await _evict(port, metadata["namespace"], metadata["name"], metadata["uid"]) or refused
        port.tell(Drained(port.key, self.run_key, port.clock(), left, refused))
        return refused


async def _evict(port: Port, namespace: str, name: str, uid: str) -> str:
    """Why the API refuses that; empty if it does not."""
    try:
        await port.send(lambda: port.api.evict(name, namespace=namespace, uid=uid))
    except ApiError as error:
        if error.outcome in (Outcome.THROTTLED, Outcome.FORBIDDEN):
            return error.sentence
        if not is_missing(error):
            raise
    return ""
