"""Jobs of a flow: the step that creates one and follows it to its end, and the Job itself."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, written_by
from pp_hostd.kube.resources import JOBS, NODE_FENCES, NODES
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.fence import NodeFence
from pp_hostd.leader.remedies.node_fence.memory import JobFound, MethodEnded, Proof, RunKey
from pp_hostd.leader.remedies.node_fence.methods import OFF, JobMethod
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import NODE, Port, conditional, if_there
from pp_hostd.model.keys import NAMESPACE, REMEDIATION_PODNAME, REMEDIATION_TIMESTAMP
from pp_hostd.model.moment import parse_moment, render_moment
from pp_hostd.model.step import Written

SERVICE_ACCOUNT = "node-fence"
"""Of Jobs, in our namespace."""
OF_FENCE, OF_METHOD = "pp-hostd.io/node-fence", "pp-hostd.io/method"
"""The label of a Job that names its NodeFence, and the annotation that holds the digest of its method."""
OLDEST_JOB_SECONDS = 120.0
"""A Job that has been complete for longer proves nothing: nobody has asked the device since."""


def job_name(run: RunKey, method: str) -> str:
    """Any leader finds the Job of this very attempt by it."""
    digest = hashlib.sha256("/".join(map(str, (*run[:3], run.step.value, *run[4:]))).encode()).hexdigest()
    return f"{method[:40].rstrip('-.').replace('.', '-')}-{digest[:16]}"


@frozen
class RunJob:
    """Create the Job of a method, unless it is there, and look at it. `known`: it was there before."""

    run_key: RunKey
    method: JobMethod
    fence: NodeFence
    known: bool

    async def run(self, port: Port) -> str:
        name = job_name(self.run_key, self.method.name)
        found = await if_there(port.api.get(JOBS, name, namespace=NAMESPACE))
        if found is None and self.known:
            return self._ends(port, f"Job {NAMESPACE}/{name} was deleted before it had ended")
        if found is None:
            body = job_of(name, self.method, self.fence)
            await name_job(port, self.fence.node, name)
            try:
                found = await port.send(lambda: port.api.create(JOBS, body, namespace=NAMESPACE))
            except ApiError as error:
                if written_by(error) is not Written.NOT_DONE:
                    raise
                return self._ends(port, f"Job {NAMESPACE}/{name} could not be created: {error.sentence}")
        if (found["metadata"].get("labels") or {}).get(OF_FENCE) != self.fence.uid:
            return self._ends(port, f"Job {NAMESPACE}/{name} is not of this flow: somebody else has made it")
        ended = {each.get("type"): each for each in (found.get("status") or {}).get("conditions") or () if _holds(each)}
        if "Failed" in ended:
            told = f"Job {NAMESPACE}/{name} has failed: kubectl -n {NAMESPACE} logs job/{name}"
            return self._ends(port, told, job=name)
        if "Complete" not in ended:
            port.tell(JobFound(port.key, self.run_key, name, port.clock()))
            return ""
        return self._concluded(port, name, found, ended["Complete"])

    def _concluded(self, port: Port, name: str, found: Json, complete: Json) -> str:
        """It was carried out; it proves something by the definition that it was made by, and not for long."""
        method = self.method
        if (found["metadata"].get("annotations") or {}).get(OF_METHOD) != digest_of(method):
            changed = f"the configuration of method {method.name} has changed since its Job was made"
            return self._ends(port, f"{changed}, so Job {NAMESPACE}/{name} proves nothing", job=name)
        if method.fences is Fences.NONE or method.action not in ("", OFF):
            return self._ends(port, "", job=name)
        age_seconds = _age_seconds(complete, port.wallclock())
        if age_seconds > OLDEST_JOB_SECONDS:
            return self._ends(port, f"Job {NAMESPACE}/{name} ended {age_seconds:.0f} s ago: no proof now", job=name)
        told = f"Job {NAMESPACE}/{name} is complete, and its remedy fences {method.fences.value}"
        return self._ends(port, "", Proof(method.fences, port.clock(), told, method.storage), name)

    def _ends(self, port: Port, failure: str, proof: Proof | None = None, job: str = "") -> str:
        port.tell(MethodEnded(port.key, self.run_key, not failure, port.clock(), self.method, failure, proof, job))
        return ""


async def name_job(port: Port, node: str, job: str | None) -> None:
    """Have the Node say which Job is about it, and since when; None: no more."""
    found = await if_there(port.api.get(NODES, node))
    if found is None:
        return
    since = None if job is None else render_moment(port.wallclock())
    marks = {REMEDIATION_TIMESTAMP: since, REMEDIATION_PODNAME: job}
    version, uid = found["metadata"]["resourceVersion"], found["metadata"]["uid"]
    patch = conditional({"metadata": {"annotations": marks}}, uid, version)
    await port.write(lambda: port.api.patch(NODES, node, patch), NODE, node, version)


def _age_seconds(condition: Json, now: datetime) -> float:
    since = parse_moment(str(condition.get("lastTransitionTime")))
    return 0.0 if since is None else (now - since).total_seconds()


def digest_of(method: JobMethod) -> str:
    """Changes with all that makes the Job what it is, and with what it proves."""
    config = method.config
    parts = method.action, config.pod, config.timeout_seconds, config.fences.value, config.storage
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _holds(condition: Json) -> bool:
    return condition.get("status") == "True"


def job_of(name: str, method: JobMethod, fence: NodeFence) -> Json:
    """The Job: once, with a deadline, and never on the very node that it is about. Its pod has the deadline, too, since
    a kubelet that is cut off keeps that one alone."""
    template: Json = json.loads(method.config.pod)
    seconds = int(method.config.timeout_seconds)
    own = {"restartPolicy": "Never", "serviceAccountName": SERVICE_ACCOUNT, "activeDeadlineSeconds": seconds}
    spec: Json = {**own, **(template.get("spec") or {})}
    elsewhere = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [fence.node]}]}
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    of_node = affinity["nodeAffinity"] = dict(affinity.get("nodeAffinity") or {})
    required = dict(of_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    of_node["requiredDuringSchedulingIgnoredDuringExecution"] = required
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), *elsewhere["matchFields"]]} for term in terms
    ]
    for container in spec.get("containers") or ():
        container["env"] = [*(container.get("env") or ()), {"name": "NODE_NAME", "value": fence.node}]
    labels, annotations = {OF_FENCE: fence.uid}, {OF_METHOD: digest_of(method)}
    owner = {"apiVersion": NODE_FENCES.api_version, "kind": NODE_FENCES.kind, "name": fence.name, "uid": fence.uid}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name, "labels": labels, "annotations": annotations, "ownerReferences": [owner]},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "template": {"metadata": {**(template.get("metadata") or {})}, "spec": spec},
        },
    }
