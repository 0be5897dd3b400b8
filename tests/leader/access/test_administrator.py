"""The administrator's calls: what the commands count on while others write, and in clusters that are large or old."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, Resource
from pp_hostd.leader.commands.administrator import IMAGES, PAGE_SIZE, Administrator
from pp_hostd.leader.commands.install import unmark
from tests.contract.objects import annotate, sample
from tests.harness.embedded import EmbeddedCluster
from tests.leader.access.attempts import Attempt, World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with EmbeddedCluster.start() as cluster:
        world = World(cluster)
        yield world
        world.close()


@pytest.fixture
def administrator(world: World) -> Iterator[Administrator]:
    with closing(Administrator(str(world.cluster.kubeconfig()))) as administrator:
        yield administrator


@pytest.mark.parametrize("token", [True, False])
def test_it_shows_a_token_or_a_certificate(world: World, token: bool) -> None:
    with closing(Administrator(str(world.cluster.kubeconfig("admin", token=token)))) as administrator:
        assert administrator.get(NODES, "nobody-has-made-it") is None


@pytest.mark.parametrize("text", ["", "[]", "a: [", "\x00", "clusters: 7", "current-context: x\ncontexts: []"])
def test_a_kubeconfig_that_is_none_is_refused_in_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(
        UserError, match=r"no kubeconfig that can be used \(.*/kubeconfig\): (.+\n)+ +Name one with --kubeconfig"
    ):
        Administrator(str(path))


def test_a_list_has_all_pages(world: World, administrator: Administrator) -> None:
    for number in range(PAGE_SIZE + 1):
        world.create(CONFIG_MAPS, "", sample(CONFIG_MAPS, f"map-{number}"), "default")
    assert len(administrator.list(CONFIG_MAPS, "default")) == PAGE_SIZE + 1


def test_of_a_list_of_nodes_the_images_are_cut_out_and_nothing_else() -> None:
    images = [{"names": ["a@sha256:1", "a:v1"], "sizeBytes": 7}, {"names": [], "sizeBytes": 8}]
    odd = [{"sizeBytes": 9, "names": ["b"]}]
    note = 'it says "images":[{"names":["c"],"sizeBytes":1}] in a text'
    node = {"metadata": {"annotations": {"note": note}}, "status": {"images": images, "phase": ""}, "images": odd}
    text = json.dumps([node, node], separators=(",", ":")).encode()
    lean = {**node, "status": {"images": [], "phase": ""}}
    assert json.loads(IMAGES.sub(b'"images":[]', text)) == [lean, lean]


def test_a_kind_that_is_not_served_has_no_objects_and_can_not_be_applied(administrator: Administrator) -> None:
    unserved = Resource("unheard.example", "v1", "Thing", "things", namespaced=False)
    assert administrator.list(unserved) == []
    with pytest.raises(UserError, match=r"PATCH /apis/unheard.example/v1/things/one: .*\n.*Kubernetes 1\.30"):
        administrator.apply(unserved, {"metadata": {"name": "one"}})


def test_an_object_that_changed_since_it_was_read_is_unmarked_as_it_is_now(
    world: World, administrator: Administrator
) -> None:
    world.create(NODES, "busy", sample(NODES, "busy", annotations={"pp-hostd.io/paused": "a"}))
    stale = world.read(NODES, "busy")
    world.make(Attempt("patch", NODES, "busy", annotate(**{"example.com/news": "b", "pp-hostd.io/freed": "7"})))
    unmark(administrator, NODES, stale)
    assert world.read(NODES, "busy")["metadata"]["annotations"] == {"example.com/news": "b"}


def test_an_object_that_is_gone_needs_no_unmarking(world: World, administrator: Administrator) -> None:
    world.create(NODES, "gone", sample(NODES, "gone", annotations={"pp-hostd.io/paused": "a"}))
    stale = world.read(NODES, "gone")
    world.make(Attempt("delete", NODES, "gone"))
    unmark(administrator, NODES, stale)
    assert administrator.get(NODES, "gone") is None
