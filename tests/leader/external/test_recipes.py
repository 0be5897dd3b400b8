"""The recipes of docs/power.md: a cluster takes them as they stand there, and their templates have hosts remedied."""

from __future__ import annotations

import subprocess
from contextlib import closing

import pytest
import yaml

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NAMESPACES
from tests.harness.build import binaries
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.external.enrolled import TEMPLATES, enrolled, settings_for
from tests.leader.in_term import client_for, term
from tests.leader.power.clusters import Clusters
from tests.pages import DOCS, blocks

MACHINES = {"cluster.x-k8s.io/v1beta2": "cluster-api", "machine.openshift.io/v1beta1": "openshift"}
"""The kind of machines, by the health check's API; else Nodes."""


def recipes() -> list[str]:
    """The indented blocks of the page that are manifests."""
    return [block for block in blocks((DOCS / "power.md").read_text()) if block.startswith("apiVersion: ")]


def parts(recipe: str) -> tuple[Json, Json]:
    template, check = yaml.safe_load_all(recipe)
    return template, check


EACH = pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: str(parts(recipe)[1]["apiVersion"]))


def test_there_is_a_recipe_for_each_health_check() -> None:
    found = [parts(recipe)[1]["apiVersion"] for recipe in recipes()]
    assert found == [*MACHINES, "remediation.medik8s.io/v1alpha1"]


@EACH
def test_a_recipe_names_the_template_that_stands_above_it(recipe: str) -> None:
    template, check = parts(recipe)
    spec = check["spec"]
    named = spec["remediation"]["templateRef"] if "remediation" in spec else spec["remediationTemplate"]
    wanted = {"apiVersion": template["apiVersion"], "kind": template["kind"], **template["metadata"]}
    assert named.items() <= wanted.items()
    assert check["metadata"].get("namespace") in (None, template["metadata"]["namespace"])


@EACH
def test_kubectl_applies_it_to_a_cluster_with_the_published_definitions(clusters: Clusters, recipe: str) -> None:
    template, check = parts(recipe)
    with clusters.place("published", MACHINES.get(check["apiVersion"], "node")) as place:
        kubectl(place.admin, "apply", recipe=yaml.safe_dump(namespace_of(template)))
        done = kubectl(place.admin, "apply", "--validate=strict", recipe=recipe)
        assert len(done.splitlines()) == 2


def namespace_of(template: Json) -> Json:
    metadata = {"name": template["metadata"]["namespace"]}
    return {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": metadata}


def kubectl(kubeconfig: str, *arguments: str, recipe: str) -> str:
    """The words of kubectl about each object."""
    command = [str(binaries() / "kubectl"), "--kubeconfig", kubeconfig, *arguments, "-f", "-"]
    done = subprocess.run(command, input=recipe, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("cluster", ["embedded", "real"])
async def test_the_template_of_the_recipe_for_medik8s_has_a_node_remedied(clusters: Clusters, cluster: str) -> None:
    template, _ = parts(recipes()[-1])
    namespace = template["metadata"]["namespace"]
    with clusters.place(cluster, "node") as place, closing(client_for(place.leader)) as leader:
        async with enrolled(place, namespace) as nodes, term(leader, settings_for("node")):
            await nodes.add("worker")
            await nodes.client.create(TEMPLATES, template, namespace=namespace)
            await nodes.make("worker", template, None)
            await nodes.until_reason("worker", namespace, "Succeeded")
