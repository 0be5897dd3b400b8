"""Rights and kinds of the flows that a cluster may have or not: granted when they are chosen, taken away after."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    METAL3_REMEDIATIONS,
    OPENSHIFT_MACHINES,
    POISON_PILL_REMEDIATIONS,
    Resource,
)
from pp_hostd.leader.access.manifests import KINDS
from pp_hostd.leader.requests.remediation_objects import HEALTH_CHECKS, REMEDIATION_OBJECTS
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, pp_leader

PLACE = "default"
LABELS = ("cluster.x-k8s.io/aggregate-to-manager", "rbac.ext-remediation/aggregate-to-ext-remediation")
TEMPLATES = Resource("pp-hostd.io", "v1", "PoisonPillRemediationTemplate", "poisonpillremediationtemplates")
OF_POWER = [
    Attempt("list", BARE_METAL_HOSTS, ""),
    Attempt("watch", BARE_METAL_HOSTS, ""),
    Attempt("get", BARE_METAL_HOSTS, "metal", namespace=PLACE),
    Attempt("patch", BARE_METAL_HOSTS, "metal", {"metadata": {"annotations": {"reboot.metal3.io/x": ""}}}, PLACE),
    Attempt("delete", OPENSHIFT_MACHINES, "worker", namespace=PLACE),
]
OF_OBJECTS = [
    Attempt("list", POISON_PILL_REMEDIATIONS, ""),
    Attempt("watch", METAL3_REMEDIATIONS, ""),
    Attempt("patch", POISON_PILL_REMEDIATIONS, "worker", {"metadata": {"finalizers": ["pp-hostd.io/x"]}}, PLACE),
    Attempt("patch", POISON_PILL_REMEDIATIONS, "worker", {"status": {"phase": "Running"}}, PLACE, "status"),
    Attempt("patch", OPENSHIFT_MACHINES, "worker", {"status": {"phase": "Failed"}}, PLACE, "status"),
]


def install(world: World, *arguments: str) -> None:
    done = pp_leader("install", "--kubeconfig", str(world.cluster.kubeconfig()), *arguments)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RealCluster.start() as cluster:
        world = World(cluster)
        install(world, "--machines", "openshift", "--flows", "power-cycle,external-remediation")
        eventually(lambda: world.make(OF_OBJECTS[0]).ok, "our kinds are served")
        world.create(BARE_METAL_HOSTS, "metal", {"metadata": {"name": "metal"}, "spec": {"online": True}}, PLACE)
        world.create(OPENSHIFT_MACHINES, "worker", {"metadata": {"name": "worker"}, "spec": {}}, PLACE)
        world.create(POISON_PILL_REMEDIATIONS, "worker", {"metadata": {"name": "worker"}, "spec": {}}, PLACE)
        yield world
        world.close()


def allowed(world: World, attempt: Attempt) -> bool:
    return world.make(attempt, LEADER, dry=True).ok


def test_each_flows_rights_come_with_it_stay_when_the_install_is_repeated_and_go_when_it_is_left_out(
    world: World,
) -> None:
    for attempt in (*OF_POWER, *OF_OBJECTS):
        eventually(lambda attempt=attempt: allowed(world, attempt), f"{attempt} is allowed")  # type: ignore[misc]
    install(world)
    assert all(allowed(world, attempt) for attempt in (*OF_POWER, *OF_OBJECTS))
    assert world.read(KINDS["ClusterRole"], HEALTH_CHECKS)["rules"]
    install(world, "--flows", "power-cycle")
    assert not world.read(KINDS["ClusterRole"], HEALTH_CHECKS).get("rules")
    for attempt in OF_OBJECTS[:-1]:
        eventually(lambda attempt=attempt: not allowed(world, attempt), f"{attempt} is refused")  # type: ignore[misc]
    assert all(allowed(world, attempt) for attempt in OF_POWER)
    install(world, "--flows", "poison-pill")
    for attempt in OF_POWER:
        eventually(lambda attempt=attempt: not allowed(world, attempt), f"{attempt} is refused")  # type: ignore[misc]


@pytest.mark.parametrize("label", LABELS)
def test_health_checks_gather_the_rights_on_objects_and_templates_by_their_own_label(label: str) -> None:
    (role,) = REMEDIATION_OBJECTS.roles(OPENSHIFT_MACHINES, granted=True)
    assert role["metadata"]["labels"][label] == "true"
    granted = {(rule["apiGroups"][0], plural): rule["verbs"] for rule in role["rules"] for plural in rule["resources"]}
    read = ["get", "list", "watch"]
    assert granted == {
        ("pp-hostd.io", "poisonpillremediationtemplates"): read,
        ("pp-hostd.io", "poisonpillremediations"): [*read, "create", "delete"],
        ("remediation.metal3.io", "metal3remediationtemplates"): read,
        ("remediation.metal3.io", "metal3remediations"): [*read, "create", "delete"],
    }
    (nothing,) = REMEDIATION_OBJECTS.roles(OPENSHIFT_MACHINES, granted=False)
    assert not nothing["rules"] and nothing["metadata"]["name"] == role["metadata"]["name"]


def test_our_kinds_have_defaults_and_say_what_is_wrong(world: World) -> None:
    found = world.read(POISON_PILL_REMEDIATIONS, "worker", PLACE)
    assert found["spec"] == {"retryLimit": 1, "timeoutSeconds": 600}
    for spec, told in (({"timeoutSeconds": -1}, "greater than or equal to 1"), ({"retryLimit": "many"}, "integer")):
        bad = {"metadata": {"name": "bad"}, "spec": {"template": {"spec": spec}}}
        reply = world.make(Attempt("create", TEMPLATES, "", bad, PLACE))
        assert reply.status_code == 422
        assert told in reply.json()["message"]


def test_where_nodes_stand_for_themselves_remediation_objects_bring_nothing_that_is_about_machines() -> None:
    done = pp_leader("install", "--dry-run", "--machines", "node", "--flows", "external-remediation")
    assert (done.returncode, done.stderr) == (0, "")
    without = list(yaml.safe_load_all(pp_leader("install", "--dry-run", "--machines", "node").stdout))
    made = [each for each in yaml.safe_load_all(done.stdout) if each not in without]
    defined = [each["metadata"]["name"] for each in made if each["kind"] == "CustomResourceDefinition"]
    assert defined == ["poisonpillremediations.pp-hostd.io", "poisonpillremediationtemplates.pp-hostd.io"]
    before, after = (
        [rule for each in every if each["metadata"]["name"] == "pp-hostd:leader" for rule in each.get("rules") or ()]
        for every in (without, made)
    )
    more = {
        f"{plural}: {' '.join(rule['verbs'])}" for rule in after if rule not in before for plural in rule["resources"]
    }
    assert more == {"poisonpillremediations: get list watch patch", "poisonpillremediations/status: patch"}
    (role,) = [each for each in made if each["metadata"]["name"] == HEALTH_CHECKS]
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {"pp-hostd.io"}


def test_flows_that_need_machines_are_refused_where_nodes_stand_for_themselves() -> None:
    refused = pp_leader("install", "--dry-run", "--flows", "power-cycle")
    assert refused.returncode == 2
    assert "--machines openshift or --machines cluster-api" in refused.stderr
    unknown = pp_leader("install", "--dry-run", "--flows", "prayer")
    assert unknown.returncode == 2
    assert "power-cycle, node-fence, poison-pill, external-remediation" in unknown.stderr
