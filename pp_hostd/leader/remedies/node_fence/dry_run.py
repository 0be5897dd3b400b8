"""A look ahead at the fencing of a node: the methods that each step would run now, and all that is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pp_hostd.fencing.call import AgentCall, is_secret, parse_call
from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.remedies.node_fence.config_maps import CONFIG, ConfigMapsSeen, FenceConfig
from pp_hostd.leader.remedies.node_fence.configuration import RemedyRules, Threshold
from pp_hostd.leader.remedies.node_fence.fence import Step
from pp_hostd.leader.remedies.node_fence.methods import STATUS, AgentMethod, Method, methods_of, names_of
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.record import Unreadable

_ADDRESS = ("ip", "ipaddr")
_PLUG = ("plug", "port", "systems_uri")
"""The names that agents have for the place of a device, and for what it switches there."""


@frozen
class Ahead:
    """The methods that could be run, and a sentence about each that could not."""

    methods: tuple[Method, ...] = ()
    errors: tuple[str, ...] = ()


def ahead(
    step: Step,
    node: str,
    provider: str,
    config_maps: ConfigMapsSeen,
    rules: RemedyRules | None = None,
    cause: Threshold | None = None,
) -> Ahead:
    """The methods of this step. `cause` is the threshold that has triggered the flow, or would."""
    config = config_maps.of_node(node)
    if isinstance(config, Unreadable):
        return _unreadable(node, config)
    return _each(step, names_of(step, config, cause), node, provider, config_maps, config, rules)


def agents_of(node: str, provider: str, config_maps: ConfigMapsSeen) -> Ahead:
    """All methods that the ConfigMap of this node describes: the fence agents that a flow could run."""
    config = config_maps.of_node(node)
    if isinstance(config, Unreadable):
        return _unreadable(node, config)
    return _each(Step.ISOLATION, tuple(sorted(config.methods)), node, provider, config_maps, config, None)


def _unreadable(node: str, config: Unreadable) -> Ahead:
    return Ahead((), (f"ConfigMap {NAMESPACE}/{CONFIG}{node}: {config.reason}",))


def _each(
    step: Step,
    names: tuple[str, ...],
    node: str,
    provider: str,
    config_maps: ConfigMapsSeen,
    config: FenceConfig,
    rules: RemedyRules | None,
) -> Ahead:
    """One by one, so that an error in one hides no other."""
    methods: list[Method] = []
    errors: list[str] = []
    for name in names:
        alone = replace(config_maps, of_nodes={node: FenceConfig({step: (name,)}, config.methods)})
        found = methods_of(step, node, provider, alone, rules, None)
        if isinstance(found, Unreadable):
            errors.append(found.reason)
            continue
        methods += found
        errors += filter(None, (_refused(each) for each in found[:1] if isinstance(each, AgentMethod)))
    return Ahead(tuple(methods), tuple(errors))


def _refused(method: AgentMethod) -> str:
    """Why the helper that runs agents would refuse this call; empty if it would not."""
    given = {**dict(method.parameters), **{each.parameter: "" for each in method.secrets}, "action": STATUS}
    call = parse_call(AgentCall(method.agent, tuple(given.items()), method.seconds).render())
    return f"method {method.name} would be refused: {call.reason}" if isinstance(call, Unreadable) else ""


def plain_secrets(method: Method) -> tuple[str, ...]:
    """The parameters whose secret values everybody can read who may read ConfigMaps."""
    if not isinstance(method, AgentMethod):
        return ()
    return tuple(key for key, value in method.parameters if value and is_secret(key))


def device(method: AgentMethod) -> tuple[str, str]:
    """The address of the device that the agent speaks with, and what it switches there; each empty if not given."""
    given = dict(method.parameters)
    address, plug = (next((given[key] for key in keys if given.get(key)), "") for keys in (_ADDRESS, _PLUG))
    return f"{address}:{given['ipport']}" if address and given.get("ipport") else address, plug


def twins(node: str, methods: Mapping[str, Ahead]) -> Iterator[str]:
    """Yields a sentence for each method of another node that switches the same as a method of this one. `methods` are
    by node."""
    own = _places(methods[node])
    for other in sorted(methods.keys() - {node}):
        for place, name in _places(methods[other]).items():
            if place in own:
                yield (
                    f"method {own[place]} of {node} and method {name} of {other} switch the same: {' '.join(place)}. "
                    "One of the two nodes would lose its power for the other one: correct the wrong one"
                )


def _places(found: Ahead) -> dict[tuple[str, ...], str]:
    """The first method for each agent, address and plug."""
    places: dict[tuple[str, ...], str] = {}
    for each in found.methods:
        if isinstance(each, AgentMethod) and any(device(each)):
            places.setdefault((each.agent, described(each)), each.name)
    return places


def described(method: AgentMethod) -> str:
    """Its device in a sentence; empty if the method names none."""
    address, plug = device(method)
    return ", ".join(filter(None, (f"at {address}" if address else "", f"plug {plug}" if plug else "")))
