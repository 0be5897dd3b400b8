"""The ConfigMaps of fencing, and the methods that they describe: what each proves, and every way to get them wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.node_fence.config_maps import (
    DEFAULT_CONFIG,
    ClusterConfig,
    ConfigMapsSeen,
    FenceConfigMaps,
)
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.fence import Step
from pp_hostd.leader.remedies.node_fence.methods import AgentMethod, BuiltInMethod, Method, methods_of
from pp_hostd.model.record import Unreadable
from tests.leader.fence.fence_world import properties

SEED = {
    "config.properties": "node_name=x\nisolation=fc-off\npower_management=eaton-off eaton-on\nrecovery=fc-on",
    "fence-method-fc-on": "template=fence-method-template-fc-switch-brocade\nplug=2\naction=on",
    "fence-method-fc-off": "template=fence-method-template-fc-switch-brocade\nplug=2\naction=off\nstorage=san",
    "fence-method-eaton-on": "template=fence-method-template-eaton-pdu\nplug=1\naction=on",
    "fence-method-eaton-off": "template=fence-method-template-eaton-pdu\nplug=1\naction=off",
}
"""The example of the proposal, but for the storage that is cut off."""
TEMPLATES = {
    "fc-switch-brocade": properties(agent_name="fence_brocade", ip="192.0.2.1", username="admin"),
    "eaton-pdu": properties(agent_name="fence_eaton_snmp", ip="192.0.2.2", plug="9"),
}


def seen(data: dict[str, str] | None = None, cluster: str = "", **templates: str) -> ConfigMapsSeen:
    cache = FenceConfigMaps()
    config_maps: dict[str, dict[str, str]] = {} if data is None else {"fence-config-x": data}
    config_maps.update(
        {f"fence-method-template-{name}": {"config.properties": text} for name, text in templates.items()}
    )
    config_maps.update({"fence-cluster-config": {"config.properties": cluster}} if cluster else {})
    for number, (name, content) in enumerate(config_maps.items()):
        metadata = {"name": name, "uid": f"uid-{number}", "resourceVersion": "1"}
        cache.show(cache.keep({"metadata": metadata, "data": content}))
    return ConfigMapsSeen(cache.of_nodes, cache.templates, cache.cluster)


def methods(step: Step, data: dict[str, str], provider: str = "", **templates: str) -> tuple[Method, ...] | Unreadable:
    return methods_of(step, "x", provider, seen(data, **templates), None, None)


def the_agent(method: dict[str, str], provider: str = "", **templates: str) -> AgentMethod:
    data = {"config.properties": "isolation=m", "fence-method-m": properties(**method)}
    found = methods(Step.ISOLATION, data, provider, **templates)
    assert isinstance(found, tuple), found
    assert isinstance(found[0], AgentMethod)
    return found[0]


def refused(method: dict[str, str], **templates: str) -> str:
    data = {"config.properties": "isolation=m", "fence-method-m": properties(**method)}
    found = methods(Step.ISOLATION, data, **templates)
    assert isinstance(found, Unreadable), found
    return str(found)


def test_the_proposals_example_is_read() -> None:
    isolation = methods(Step.ISOLATION, SEED, **TEMPLATES)
    power = methods(Step.POWER_MANAGEMENT, SEED, **TEMPLATES)
    recovery = methods(Step.RECOVERY, SEED, **TEMPLATES)
    assert isinstance(isolation, tuple) and isinstance(power, tuple) and isinstance(recovery, tuple)
    assert [(each.name, each.action, each.fences) for each in (*isolation, *power, *recovery)] == [
        ("fc-off", "off", Fences.STORAGE),
        ("eaton-off", "off", Fences.POWER),
        ("eaton-on", "on", Fences.POWER),
        ("fc-on", "on", Fences.STORAGE),
    ]
    assert isinstance(power[0], AgentMethod)
    assert dict(power[0].parameters) == {"ip": "192.0.2.2", "plug": "1"}, "its own plug wins over the template's"


def test_a_node_without_a_config_map_has_the_default() -> None:
    found = [methods_of(step, "x", "", seen(), None, None) for step in Step]
    names = [method.name for each in found if isinstance(each, tuple) for method in each]
    assert names == ["mark-unschedulable", "restart-instance", "mark-schedulable"]
    assert all(isinstance(method, BuiltInMethod) for each in found if isinstance(each, tuple) for method in each)


def test_a_list_that_is_missing_is_the_default_and_an_empty_one_is_empty() -> None:
    found = seen({"config.properties": "power_management="}).of_node("x")
    assert not isinstance(found, Unreadable)
    assert found.steps[Step.ISOLATION] == DEFAULT_CONFIG.steps[Step.ISOLATION]
    assert found.steps[Step.POWER_MANAGEMENT] == ()


def test_a_reboot_is_an_off_and_an_on() -> None:
    data = {
        "config.properties": "power_management=m",
        "fence-method-m": properties(agent_name="fence_ipmilan", action="reboot"),
    }
    found = methods(Step.POWER_MANAGEMENT, data)
    assert isinstance(found, tuple)
    assert [each.action for each in found] == ["off", "on"]


def test_passwords_come_from_secrets() -> None:
    found = the_agent({"agent_name": "fence_ipmilan", "password_secret": "bmc/password"})
    assert [(each.parameter, each.name, each.key) for each in found.secrets] == [("password", "bmc", "password")]
    assert found.parameters == ()


@pytest.mark.parametrize(
    ("agent", "said", "fences"),
    [
        ("fence_ipmilan", "", Fences.POWER),
        ("fence_redfish", "", Fences.POWER),
        ("fence_scsi", "", Fences.STORAGE),
        ("fence_ifmib", "", Fences.NONE),
        ("fence_something", "", Fences.NONE),
        ("fence_vmware_rest", "", Fences.NONE),
        ("fence_virsh", "power", Fences.POWER),
        ("fence_something", "power", Fences.POWER),
        ("fence_dummy", "power", Fences.POWER),
        ("fence_ipmilan", "none", Fences.NONE),
    ],
)
def test_an_agent_proves_what_it_is_known_for_or_declares(agent: str, said: str, fences: Fences) -> None:
    method = {"agent_name": agent, "storage": "san", **({"fences": said} if said else {})}
    assert the_agent(method).fences is fences


@pytest.mark.parametrize("key", ["missing_as_off", "missing-as-off", "network_fencing", "missing_as_off_secret"])
def test_a_parameter_by_which_an_agent_may_lie_is_refused(key: str) -> None:
    value = "a/b" if key.endswith("_secret") else "1"
    assert "by which an agent may say off" in refused({"agent_name": "fence_azure_arm", key: value})


def test_what_a_method_says_itself_replaces_its_templates_word_by_whatever_name() -> None:
    shared = properties(agent_name="fence_ipmilan", ipaddr="192.0.2.1", password_secret="all/password", login="root")
    own = {"template": "shared", "ip": "192.0.2.7", "password": "own", "username_secret": "bmc/user"}
    found = the_agent(own, shared=shared)
    assert dict(found.parameters) == {"ip": "192.0.2.7", "password": "own"}
    assert [each.parameter for each in found.secrets] == ["username"]


def test_more_methods_than_a_node_fence_can_hold_are_refused() -> None:
    names = [f"m{number}" for number in range(11)]
    described = {f"fence-method-{name}": properties(agent_name="fence_ipmilan", action="reboot") for name in names}
    found = methods(Step.POWER_MANAGEMENT, {"config.properties": f"power_management={' '.join(names)}", **described})
    assert "it has 22 methods (a reboot is two), and 20 are allowed" in str(found)


PROVIDERS = [
    ("fence_aws", "aws:///eu-west-1a/i-0abc", {"plug": "i-0abc"}),
    ("fence_gce", "gce://shop/europe-west1-b/worker-7", {"project": "shop", "zone": "europe-west1-b",
                                                         "plug": "worker-7"}),
    ("fence_openstack", "openstack:///7c1b", {"plug": "7c1b"}),
    ("fence_openstack", "openstack://region/7c1b", {"plug": "7c1b"}),
    ("fence_azure_arm", "azure:///subscriptions/s-1/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/w7",
     {"plug": "w7", "resourceGroup": "shop", "subscriptionId": "s-1"}),
    ("fence_vmware_rest", "vsphere://4221a0", {"plug": "x"}),
    ("fence_ipmilan", "aws:///eu-west-1a/i-0abc", {}),
    ("fence_aws", "", {}),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "provider", "expected"), PROVIDERS)
def test_the_instance_of_a_cloud_follows_from_the_nodes_provider(
    agent: str, provider: str, expected: dict[str, str]
) -> None:
    assert dict(the_agent({"agent_name": agent}, provider).parameters) == expected


def test_a_plug_of_its_own_wins_over_the_provider() -> None:
    found = the_agent({"agent_name": "fence_aws", "plug": "i-1"}, "aws:///eu-west-1a/i-0abc")
    assert dict(found.parameters) == {"plug": "i-1"}


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"agent_name": "ipmilan"}, "not the name of a fence agent"),
    ({"action": "off"}, "agent_name of method m is missing"),
    ({"agent_name": "fence_ipmilan", "action": "explode"}, "not one of on, off, reboot, status"),
    ({"template": "fence-method-template-nowhere"}, "there is no such ConfigMap"),
    ({"agent_name": "fence_ipmilan", "password_secret": "bmc"}, "not the name of a Secret, a slash, and a key"),
    ({"agent_name": "fence_brocade", "fences": "power", "storage": "san"}, "fence_brocade fences storage"),
    ({"agent_name": "fence_ipmilan", "fences": "storage", "storage": "san"}, "fence_ipmilan fences power"),
    ({"agent_name": "fence_ifmib", "fences": "power"}, "fence_ifmib fences none"),
    ({"agent_name": "fence_scsi"}, "storage= must name"),
    ({"agent_name": "fence_ipmilan", "timeout_seconds": "0"}, "from 1 to 600"),
    ({"agent_name": "fence_openstack", "missing-as-off": "1"}, "may say off of a host that may be on"),
    ({"agent_name": "fence_ipmilan", "fences": "luck"}, "not one of none, storage, power"),
]


@pytest.mark.parametrize(("method", "sentence"), REFUSED)
def test_a_method_that_is_wrong_is_refused(method: dict[str, str], sentence: str) -> None:
    assert sentence in refused(method)


def test_a_method_that_nobody_knows_is_refused_with_those_that_are_there() -> None:
    told = str(methods(Step.ISOLATION, {"config.properties": "isolation=prayer"}))
    assert "there is no method prayer" in told
    assert "mark-unschedulable" in told


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"config.properties": "isolation"}, "line 1 of config.properties is not name=value"),
        ({"config.properties": "node_name=y"}, "by its name it is about x"),
        ({"config.properties": "isolate=m"}, "isolate is none of node_name, isolation"),
        ({"config.properties": "isolation=a\nisolation=b"}, "sets isolation twice"),
        ({"config.properties": "isolation=A!"}, "not the name of a method"),
        ({"config.properties": "isolation=" + " ".join(["m"] * 21)}, "20 are allowed"),
    ],
)
def test_a_config_map_that_is_wrong_is_no_default(data: dict[str, str], sentence: str) -> None:
    told = methods(Step.ISOLATION, data)
    assert isinstance(told, Unreadable)
    assert sentence in str(told)


def test_the_cluster_has_its_numbers() -> None:
    assert seen().cluster == ClusterConfig()
    text = properties(grace_timeout="1m", step_retries="0", kdump="true", kdump_timeout="90s", executor="job")
    more = properties(agent_image="example.com/agents:1", drain_timeout="30s", max_non_responsive="20%")
    last = properties(pods_per_second="0.5", storage_probe="[2001:db8::1]:3260")
    assert seen(cluster="\n".join((text, more, last))).cluster == ClusterConfig(
        grace_seconds=60.0,
        step_retries=0,
        kdump=True,
        kdump_seconds=90.0,
        executor="job",
        agent_image="example.com/agents:1",
        drain_seconds=30.0,
        max_non_responsive="20%",
        deletions_per_second=0.5,
        storage_probe=("2001:db8::1", 3260),
    )


WRONG_NUMBERS = """
grace_timeout=soon step_retries=-1 max_at_once=0 kdump=yes pace=1 executor=job executor=pod drain_timeout=x
max_non_responsive=101% max_non_responsive=-1 max_non_responsive=% max_non_responsive=1.5 pods_per_second=0
pods_per_second=-1 pods_per_second=inf pods_per_second=fast storage_probe=192.0.2.1 storage_probe=san:3260
storage_probe=192.0.2.1:0 storage_probe=192.0.2.1:65536 storage_probe=2001:db8::1:3260 storage_probe=:3260
"""


@pytest.mark.parametrize("text", WRONG_NUMBERS.split())
def test_numbers_of_the_cluster_that_are_wrong_are_refused(text: str) -> None:
    assert isinstance(seen(cluster=text).cluster, Unreadable)


@given(
    st.dictionaries(
        st.sampled_from(["config.properties", "fence-method-m"]),
        st.text(max_size=60) | st.sampled_from(["isolation=m", "agent_name=fence_aws", "template=t"]),
    )
)
def test_reading_never_raises(data: dict[str, Any]) -> None:
    for step in Step:
        methods(step, data, "aws:///a/b", t="agent_name=fence_ipmilan")
