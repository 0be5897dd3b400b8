"""The marks that pp-hostd has left on Nodes and Machines, and why a cluster may not be ready to do without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES, Resource
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.model.condemnation import NotCondemned, parse_condemnation
from pp_hostd.model.keys import (
    AGENT,
    CONDEMNATION_ID,
    CORDONED,
    ENROLLED,
    EXTERNAL_REMEDIATION,
    FREEING,
    PREFIX,
    backup_name,
)
from pp_hostd.model.machine_details import Claim, MachineDetails, parse_machine_details
from pp_hostd.model.promise import GateClosed, Withdrawn, parse_agent_record

Found = tuple[Resource, Json]
"""A Node or a Machine, and its kind."""


def removal(api_object: Json) -> Json | None:
    """The merge patch that takes our marks off, if the object is still as it was read; None where there are none.

    A request for remediation stays: who made it takes it back. A health check of ours can't do so any more; its request
    goes. The last condemnation's id stays, too: hosts and peers may still know of it, and the next one must be another
    (rule 9).
    """
    metadata, spec = api_object["metadata"], api_object.get("spec", {})
    marks: Json = {}
    for section in ("annotations", "labels"):
        ours = [key for key in metadata.get(section, {}) if key.startswith(PREFIX) and key != CONDEMNATION_ID]
        marks.update({section: dict.fromkeys(ours)} if ours else {})
    if _is_our_request(api_object):
        marks["annotations"][EXTERNAL_REMEDIATION] = None
    taints = spec.get("taints", [])
    kept = [taint for taint in taints if not taint["key"].startswith(PREFIX)]
    changes: Json = {"taints": kept} if kept != taints else {}
    if CORDONED in marks.get("annotations", {}):
        changes["unschedulable"] = None
    if not marks and not changes:
        return None
    return {"metadata": {**marks, "resourceVersion": metadata["resourceVersion"]}, "spec": changes}


def _is_our_request(api_object: Json) -> bool:
    details = parse_machine_details(api_object)
    claim = details.claim if isinstance(details, MachineDetails) else None
    return isinstance(claim, Claim) and any(each.has_made(claim) for each in REGISTRY.requesters)


def condition_removal(node: Json) -> Json | None:
    """The merge patch of the status that takes our conditions off the Node; None where there are none."""
    conditions = (node.get("status") or {}).get("conditions") or []
    kept = [each for each in conditions if not each.get("type", "").startswith(PREFIX)]
    return {"status": {"conditions": kept}} if kept != conditions else None


def objections(
    lease: Json | None, found: Sequence[Found], config_maps: Sequence[Json], read_by_flows: Sequence[Found] = ()
) -> list[str]:
    """Why this cluster can't do without pp-hostd now, each with what to do about it. `read_by_flows` are the objects
    that remedies and requesters read for themselves."""
    nodes = [each for kind, each in found if kind is NODES]
    others = [why for flow in REGISTRY.all for kind, each in read_by_flows for why in flow.objections(kind, each)]
    return [*_leading(lease), *_missing(nodes, config_maps), *_condemned(found), *_armed(nodes), *others]


def _leading(lease: Json | None) -> Iterator[str]:
    holder = lease["spec"].get("holderIdentity") if lease else None
    if lease and holder:
        metadata = lease["metadata"]
        gone = f"if it is gone for good, kubectl delete lease -n {metadata['namespace']} {metadata['name']}"
        yield f"{holder} leads: stop pp-leader on every host; {gone}"


def _missing(nodes: Sequence[Json], config_maps: Sequence[Json]) -> Iterator[str]:
    prefix = backup_name("")
    data = {config_map["metadata"]["name"]: config_map.get("data") or {} for config_map in config_maps}
    there = {node["metadata"]["name"] for node in nodes}
    stored = {name[len(prefix) :] for name in data if name.startswith(prefix)}
    for node in sorted(stored - there):
        yield f"Node {node} is missing, and only pp-hostd has a backup of it: pp-leader restore {node}"
    for node in sorted(data.get(ENROLLED, {}).keys() - there - stored):
        gone = f"if that host is gone for good, pp-leader unenroll {node} --force"
        yield f"Node {node} is enrolled and missing, so its host may be armed: restart its kubelet; {gone}"


def _condemned(found: Sequence[Found]) -> Iterator[str]:
    for kind, api_object in found:
        metadata = api_object["metadata"]
        what = kind.describe(metadata.get("namespace"), metadata["name"])
        if FREEING in metadata.get("annotations", {}):
            yield f"{what} is being freed: let pp-leader finish"
        elif not isinstance(parse_condemnation(metadata), NotCondemned):
            yield f"{what} is condemned: let pp-leader finish, or see pp-leader absolve --help"


def _armed(nodes: Sequence[Json]) -> Iterator[str]:
    """Agents that lose their rights one after the other would ask each other, and some would be reset."""
    for node in nodes:
        name, record = node["metadata"]["name"], node["metadata"].get("annotations", {}).get(AGENT)
        if record is not None and not isinstance(parse_agent_record(record), (GateClosed, Withdrawn)):
            gone = f"if that host is gone for good, kubectl annotate node {name} {AGENT}-"
            yield f"the host of Node {name} is armed: stop pp-hostd there; {gone}"
