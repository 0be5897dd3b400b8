"""docs/fencing.md: its manifests and commands work as they stand there, and its tables are true."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pp_hostd.kube.resources import CONFIG_MAPS, NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, NODES, Resource
from pp_hostd.leader.fence_metrics import GAVE_UP, MOST_PROBLEMS, REQUEST, FenceMetrics
from pp_hostd.leader.remedies.node_fence.config_maps import (
    CLUSTER_KEYS,
    DEFAULT_CONFIG,
    ClusterConfig,
    ConfigMapsSeen,
    FenceConfigMaps,
)
from pp_hostd.leader.remedies.node_fence.configuration import (
    DEFAULT_TIMEOUT_SECONDS,
    MOST_REMEDIES,
    MOST_THRESHOLDS,
    Configuration,
    Fences,
    RemedyRules,
    Threshold,
    parse_configuration,
)
from pp_hostd.leader.remedies.node_fence.configuration_definition import configuration_definition
from pp_hostd.leader.remedies.node_fence.definitions import fence_definition
from pp_hostd.leader.remedies.node_fence.dry_run import ahead
from pp_hostd.leader.remedies.node_fence.fence import (
    NodeFence,
    Progress,
    State,
    Status,
    Step,
    fence_name,
    parse_fence,
)
from pp_hostd.leader.remedies.node_fence.methods import (
    NETWORK_AGENTS,
    OURS,
    POWER_AGENTS,
    STORAGE_AGENTS,
    TIMEOUT_SECONDS,
    BuiltIn,
)
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.keys import NAMESPACE, PAUSED_NODE
from pp_hostd.model.observed import Observed
from tests.contract.objects import sample
from tests.fencing.helpers import Agents, Helpers
from tests.harness.controlplane import OTHERS, RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.pages import kubectl
from tests.leader.access.people import pp_leader
from tests.leader.fence.fence_world import properties
from tests.pages import DOCS, blocks, rows

PAGE = (DOCS / "fencing.md").read_text()
FOR_HOSTS = ("dnf", "apt", "systemctl", "journalctl")
"""These commands change or show a host, not the cluster."""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RealCluster.start(definitions=[*OTHERS, fence_definition()]) as cluster, closing(World(cluster)) as world:
        world.create(NODES, "", sample(NODES, "worker-1"))
        yield world


def test_the_page_from_its_first_command_to_its_last_works_as_it_stands_there(world: World, tmp_path: Path) -> None:
    (tmp_path / "bmc-password.txt").write_text("hunter2\n")
    agents = Agents(tmp_path)
    agents.write("grep -q password=hunter2 && exit 0; exit 1", "fence_ipmilan")
    said: dict[str, str] = {}
    with Helpers.listening(tmp_path / "sock", tmp_path):
        for block in blocks(PAGE):
            if block.startswith("apiVersion: "):
                apply(world, block)
            elif not block.startswith("groups:"):
                said.update((line, run(world, line, tmp_path)) for line in block.splitlines())
    assert "created    Namespace pp-hostd" in said["pp-leader install --flows node-fence"]
    shown = said["pp-leader fence show worker-1"]
    assert "ipmi: off by fence_ipmilan at 192.0.2.11" in shown
    assert "ERROR" not in shown and "WARNING" not in shown
    assert said["pp-leader fence test worker-1"] == "ipmi: fence_ipmilan at 192.0.2.11: on\n"
    assert "worker-1  new    Isolation  New" in said["pp-leader fence list"]
    check_stored(world)


def apply(world: World, manifest: str) -> None:
    if yaml.safe_load(manifest)["kind"] == NODE_REMEDY_CONFIGURATIONS.kind:  # whose definition the page has installed
        listing = Attempt("list", NODE_REMEDY_CONFIGURATIONS, "")
        eventually(lambda: world.make(listing).ok, "the API serves NodeRemedyConfigurations")
    kubectl(world, "apply", "--server-side", "-f", "-", given=manifest)


def check_stored(world: World) -> None:
    """The leader reads every object of the page, as the API has stored it, and finds every method that it names."""
    fence = parse_fence(world.read(NODE_FENCES, fence_name("worker-1")))
    assert isinstance(fence, NodeFence) and fence.progress == Progress()
    cache = FenceConfigMaps()
    for each in stored(world, CONFIG_MAPS, NAMESPACE):
        cache.show(cache.keep(each))
    assert (list(cache.of_nodes), list(cache.templates)) == (["worker-1"], ["ipmi"])
    config_maps = ConfigMapsSeen(cache.of_nodes, cache.templates, cache.cluster)
    flows: list[tuple[RemedyRules | None, Threshold | None]] = [(None, None)]
    for each in stored(world, NODE_REMEDY_CONFIGURATIONS):
        found = parse_configuration(each)
        assert isinstance(found, Configuration) and isinstance(found.rules, RemedyRules), found
        flows += [(found.rules, threshold) for threshold in found.rules.thresholds]
    assert len(flows) == 3
    for rules, threshold in flows:
        for step in Step:
            assert ahead(step, "worker-1", "", config_maps, rules, threshold).errors == ()


def stored(world: World, kind: Resource, namespace: str | None = None) -> list[Json]:
    found: list[Json] = world.make(Attempt("list", kind, "", namespace=namespace)).json()["items"]
    return found


def run(world: World, line: str, directory: Path) -> str:
    program, *arguments = shlex.split(line, comments=True)
    if program in FOR_HOSTS:
        return ""
    if program == "kubectl":
        return kubectl(world, *arguments, directory=directory)
    assert program == "pp-leader"
    socket = ["--socket", str(directory / "sock")] if arguments[:2] == ["fence", "test"] else []
    done = pp_leader(*arguments, *socket, "--kubeconfig", str(world.cluster.kubeconfig()))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def column(after: str, number: int = 0) -> list[str]:
    return [row[number] for row in rows(PAGE, after)[1:]]


def test_the_table_of_states_names_each_step_and_status() -> None:
    assert [each for each in column("| state |") if each] == [each.value for each in State]
    words = " ".join(column("| state |", 1))
    assert all(each.value in words for each in (*Step, *Status))


def test_the_table_of_cluster_settings_names_each_with_its_default() -> None:
    table = {key: default for key, default, _ in rows(PAGE, "**`fence-cluster-config`**")[1:]}
    assert sorted(table) == sorted(CLUSTER_KEYS)
    found = {key: default for key, default in table.items() if default not in ("none", "unlimited")}
    cache, metadata = FenceConfigMaps(), {"name": "fence-cluster-config", "uid": "u", "resourceVersion": "1"}
    cache.show(cache.keep({"metadata": metadata, "data": {"config.properties": properties(**found)}}))
    assert cache.cluster == ClusterConfig()


def test_the_tables_of_a_nodes_config_map_are_whole() -> None:
    found = {key: default for key, default, _ in rows(PAGE, "**`fence-config-NODE`**")[1:]}
    keys = {"isolation": Step.ISOLATION, "power_management": Step.POWER_MANAGEMENT, "recovery": Step.RECOVERY}
    assert found.keys() == {"node_name", *keys}
    assert [(found[key],) for key in keys] == [DEFAULT_CONFIG.steps[step] for step in keys.values()]
    methods = {key: default for key, default, _ in rows(PAGE, "**The same ConfigMap**")[1:]}
    assert methods.keys() == {*OURS, "..._secret", "any other"}
    assert methods["timeout_seconds"] == str(TIMEOUT_SECONDS)


def test_the_tables_of_remedy_configurations_are_whole() -> None:
    schema = configuration_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found = {key: (default, meaning) for key, default, meaning in rows(PAGE, "| `spec` |")[1:]}
    assert found.keys() == schema["properties"].keys()
    assert f"1 to {MOST_THRESHOLDS} thresholds" in found["thresholdConfigs"][1]
    assert f"at most {MOST_REMEDIES}" in found["remedyConfigs"][1]
    ladder = f"remedy1` ... `remedy{MOST_REMEDIES}"
    assert set(column("| of a threshold |")) == {
        ladder,
        *schema["properties"]["thresholdConfigs"]["items"]["properties"],
    }
    remedy = {key: default for key, default, _ in rows(PAGE, "| of a remedy |")[1:]}
    assert remedy.keys() == schema["properties"]["remedyConfigs"]["items"]["properties"].keys()
    assert (remedy["timeoutSeconds"], remedy["fences"]) == (str(DEFAULT_TIMEOUT_SECONDS), Fences.NONE.value)
    assert "more than `max_non_responsive` of all Nodes" in PAGE and f"`{PAUSED_NODE}`" in PAGE


def test_the_table_of_methods_names_all_that_are_built_in() -> None:
    assert sorted(column("| method |")) == sorted(each.value for each in BuiltIn)


def test_the_lists_of_agents_are_those_of_the_leader() -> None:
    quoted = [part.split() for part in re.findall(r"\n\n((?:> .*\n)+)", PAGE)]
    power, storage = ([word for word in each if word != ">"] for each in quoted)
    assert (sorted(power), sorted(storage)) == (sorted(POWER_AGENTS), sorted(STORAGE_AGENTS))
    assert all(f"`{each}` switches a network port" in PAGE for each in NETWORK_AGENTS)


def test_the_table_of_metrics_names_those_that_there_are() -> None:
    names = {each.name for each in FenceMetrics().metrics(Observed())}
    assert set(column("| metric |")) == names
    told = " ".join(column("| metric |", 1))
    assert all(f"`{word}" in told for word in (GAVE_UP, REQUEST)) and f"At most {MOST_PROBLEMS} pairs" in told
