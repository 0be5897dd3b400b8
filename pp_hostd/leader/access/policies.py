"""Admission policies: of all that pp-hostd relies on, a node's credential changes its own annotations alone.

They concern the credentials of nodes and leaders alone, so that no failure of theirs can stop anybody else's write.
They do not count on the NodeRestriction plug-in, and they hold whatever else RBAC may grant a node.
"""

from __future__ import annotations

from pp_hostd.kube.client import Json
from pp_hostd.kube.renewing import REQUESTS
from pp_hostd.kube.resources import (
    CAPI_MACHINES,
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    NODES,
    OPENSHIFT_MACHINES,
    Resource,
)
from pp_hostd.model import keys
from pp_hostd.model.keys import (
    AGENT,
    AGENT_INFO,
    CONDEMNED,
    EXTERNAL_REMEDIATION,
    NAMESPACE,
    OUT_OF_SERVICE,
    PREFIX,
    SUSPECTS,
)
from pp_hostd.model.renewal import LEADERS_REQUESTS, SIGNER, USAGES, requests_of

ADMISSION = "admissionregistration.k8s.io"
SECRETS = Resource("", "v1", "Secret", "secrets")
_FROM_A_NODE = (
    f"request.userInfo.username.startsWith('{keys.NODE_USER}') || (has(request.userInfo.groups) && "
    f"request.userInfo.groups.exists(group, group in ['{keys.NODES_GROUP}', '{keys.AGENTS}']))"
)
_FROM_A_LEADER = f"has(request.userInfo.groups) && '{keys.LEADERS}' in request.userInfo.groups"
_OWN = f"request.userInfo.username == '{keys.NODE_USER}' + object.metadata.name"
MACHINE_ANNOTATIONS = (
    "machine.openshift.io/machine",
    "cluster.x-k8s.io/machine",
    "cluster.x-k8s.io/cluster-namespace",
)
"""By which a Node names its machine; controllers write them, never a kubelet."""
OWN = (AGENT, AGENT_INFO, SUSPECTS)
"""The annotations that an agent writes, on its own Node alone."""
_OF_OUR_NAMESPACE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}


def policies() -> list[Json]:
    """Each with the binding that puts it in force."""
    return [
        *_policy("nodes", _constraints(NODES), _nodes()),
        *_policy(
            "machines",
            _constraints(OPENSHIFT_MACHINES, CAPI_MACHINES),
            {"validations": [_refused_unless("false", "the credential of a node changes no Machine")]},
        ),
        *_policy(
            "namespace",
            {**_constraints(CONFIG_MAPS, SECRETS, LEASES, NAMESPACES), **_OF_OUR_NAMESPACE},
            {"validations": [_refused_unless("false", f"the credential of a node changes nothing in {NAMESPACE}")]},
        ),
        *_policy("renewals", _constraints(REQUESTS), _renewals()),
        *_policy("approvals", _constraints(REQUESTS), _approvals(), ("from-a-leader", _FROM_A_LEADER)),
    ]


def _renewals() -> Json:
    """A node requests client certificates for itself alone. Those of the kubelets' own signers are not our business.

    CEL can't read the request itself: that it names the user under whose name it stands, the leader checks.
    """
    theirs = f"variables.of.spec.signerName != '{SIGNER}'"
    own = f"request.userInfo.username.replace('{keys.NODE_USER}', '{requests_of(keys.NODE_USER)[:-1]}', 1)"
    plain = f"{_has_our_usages('variables.of')} && !has(variables.of.spec.expirationSeconds)"
    return {
        "variables": [{"name": "of", "expression": "request.operation == 'DELETE' ? oldObject : object"}],
        "validations": [
            _refused_unless(
                f"{theirs} || request.operation == 'CREATE'", f"a node decides and deletes no request to {SIGNER}"
            ),
            _refused_unless(
                f"{theirs} || variables.of.metadata.?name.orValue('').startsWith({own} + '.')",
                f"a node requests certificates of {SIGNER} under its own name only: {requests_of('system:node:NODE')}*",
            ),
            _refused_unless(f"{theirs} || ({plain})", f"a node renews for {' and '.join(USAGES)} alone"),
        ],
    }


def _approvals() -> Json:
    """A leader's credential decides renewals of agents and leaders, and no other request."""
    name, spec = "variables.of.metadata.?name.orValue('')", "variables.of.spec"
    requester = f"{spec}.?username.orValue('')"
    own_name = f"{requester}.replace('{keys.NODE_USER}', '{requests_of(keys.NODE_USER)[:-1]}', 1) + '.'"
    of_agent = (
        f"{requester}.startsWith('{keys.NODE_USER}') && '{keys.AGENTS}' in {spec}.?groups.orValue([]) && "
        f"{name}.startsWith({own_name})"
    )
    of_leader = f"{requester} == '{keys.LEADER_USER}' && {name}.startsWith('{LEADERS_REQUESTS}')"
    ours = f"{spec}.signerName == '{SIGNER}' && {_has_our_usages('variables.of')}"
    return {
        "variables": [{"name": "of", "expression": "request.operation == 'CREATE' ? object : oldObject"}],
        "validations": [
            _refused_unless("request.operation != 'DELETE'", "a leader deletes no request for a certificate"),
            _refused_unless(ours, f"a leader has to do with requests to {SIGNER} for {' and '.join(USAGES)} alone"),
            _refused_unless(
                f"request.operation == 'CREATE' ? {name}.startsWith('{LEADERS_REQUESTS}') : "
                f"(({of_agent}) || ({of_leader}))",
                "a leader decides renewals of agents and leaders alone, and requests its own under its own name",
            ),
        ],
    }


def _has_our_usages(request: str) -> str:
    return f"sets.equivalent({request}.spec.usages, {[*USAGES]})"


def _nodes() -> Json:
    """Returns the policy for Nodes: of all that pp-hostd has there, a node changes only what its agent writes on
    its own Node.

    That holds through nodes/status too, and for a new Node, which had nothing of it before. A node deletes no Node: the
    workloads of that Node would start elsewhere.
    """
    kept = "request.operation == 'DELETE' || sets.equivalent(variables.before, variables.after)"
    return {
        "variables": [
            {"name": "own", "expression": _OWN},
            {"name": "before", "expression": f"oldObject == null ? [] : {_marks('oldObject')}"},
            {"name": "after", "expression": _marks("object")},
        ],
        "validations": [
            _refused_unless("request.operation != 'DELETE'", "the credential of a node deletes no Node"),
            _refused_unless(
                kept, f"of what pp-hostd relies on at Nodes, a node changes only {', '.join(OWN)} of its own"
            ),
        ],
    }


def _marks(node: str) -> str:
    """CEL for the list of what the rules rest on at that Node, without what its own agent may change.

    An owner that does not exist has the Node deleted by the garbage collector, a finalizer keeps the leader from doing
    so, and a Node that names another machine than its own is none that the leader works on.
    """
    agents = f"(key in {[*OWN]} && variables.own)"
    guarded = f"(({_is_ours('key')} && !{agents}) || key in {list(MACHINE_ANNOTATIONS)})"
    freeing = f"({_is_ours('taint.key')} || taint.key == '{OUT_OF_SERVICE}')"
    taints = f"{node}.?spec.?taints.orValue([])"
    condemned = f"{taints}.exists(taint, taint.key == '{CONDEMNED}')"
    parts = [
        f"{node}.metadata.?annotations.orValue({{}}).map(key, {guarded}, "
        f"'annotation ' + key + '=' + {node}.metadata.annotations[key])",
        f"{node}.metadata.?labels.orValue({{}}).map(key, {_is_ours('key')}, "
        f"'label ' + key + '=' + {node}.metadata.labels[key])",
        f"{taints}.map(taint, {freeing}, 'taint ' + taint.key + '=' + taint.?value.orValue('') + ':' + taint.effect)",
        f"({condemned} && {node}.?spec.?unschedulable.orValue(false) ? ['cordon'] : [])",
        f"{node}.metadata.?ownerReferences.orValue([]).map(owner, 'owner ' + owner.uid)",
        f"{node}.metadata.?finalizers.orValue([]).map(name, 'finalizer ' + name)",
    ]
    return " + ".join(parts)


def _is_ours(key: str) -> str:
    """The CEL of `is_ours` in model/keys.py."""
    return f"({key}.startsWith('{PREFIX}') || {key} == '{EXTERNAL_REMEDIATION}')"


def _refused_unless(expression: str, message: str) -> Json:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _constraints(*kinds: Resource) -> Json:
    rules = [
        {
            "apiGroups": [kind.group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [kind.plural, f"{kind.plural}/*"],
            "scope": "*",  # the default, which kubectl apply would else find missing each time
        }
        for kind in kinds
    ]
    return {"resourceRules": rules}


def _policy(
    about: str, constraints: Json, judgement: Json, whose: tuple[str, str] = ("from-a-node", _FROM_A_NODE)
) -> list[Json]:
    name = f"{about}.pp-hostd.io"
    condition = {"name": whose[0], "expression": whose[1]}
    specs: dict[str, Json] = {
        "ValidatingAdmissionPolicy": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": [condition],
            **judgement,
        },
        "ValidatingAdmissionPolicyBinding": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [
        {"apiVersion": f"{ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in specs.items()
    ]
