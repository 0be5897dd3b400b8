"""`pp-leader pause` and `resume`: the order stands in the cluster, for all nodes or on one, with who and why."""

from __future__ import annotations

import pytest

from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.model.control import Control, Grant, Pause, parse_control
from pp_hostd.model.keys import CONTROL, NAMESPACE, PAUSED_NODE
from tests.contract.objects import sample
from tests.harness.embedded import EmbeddedCluster
from tests.leader.access.attempts import Attempt
from tests.leader.desk import WHEN, Desk, annotations_of, desk

__all__ = ["desk"]


@pytest.fixture(autouse=True)
def _fresh(desk: Desk) -> None:
    desk.remove(CONFIG_MAPS, CONTROL)
    desk.remove(NODES, "worker-1", None)
    desk.world.create(NODES, "", sample(NODES, "worker-1"))


def control(desk: Desk) -> Control:
    return parse_control(desk.world.read(CONFIG_MAPS, CONTROL, NAMESPACE).get("data"))


def test_a_pause_for_all_says_who_and_why_and_is_taken_back(desk: Desk) -> None:
    paused = desk.run("pause", "--why", "we move house")
    assert (paused.code, paused.complaint) == (0, "")
    order = control(desk).paused
    assert isinstance(order, Pause)
    assert (order.who, order.why) == ("eve", "we move house")
    resumed = desk.run("resume")
    assert "It was paused by eve since" in resumed.prose
    assert control(desk).paused is None
    assert desk.run("resume").output == "Nothing to do: it is not paused.\n"


def test_more_remediations_are_granted_on_top_of_what_is_granted_already(desk: Desk) -> None:
    granted = desk.run("resume", "--more", "2")
    assert (granted.code, granted.complaint) == (0, "")
    assert "Granted: 2 more by eve" in granted.prose
    desk.run("resume", "--more", "3", "--who", "adam")
    order = control(desk).grant
    assert isinstance(order, Grant)
    assert (order.who, order.more) == ("adam", 5)
    assert "granted 5 more by adam, in the hour after" in desk.run("status").prose


def test_what_was_granted_long_ago_is_not_added(desk: Desk) -> None:
    desk.store(CONTROL, {"more-resets": Grant("adam", WHEN, 4).render()})
    assert "(over)" in desk.run("status").prose
    desk.run("resume", "--more", "2")
    order = control(desk).grant
    assert isinstance(order, Grant)
    assert order.more == 2


def test_a_grant_ends_a_pause_too(desk: Desk) -> None:
    desk.run("pause", "--why", "we move house")
    assert "It was paused by eve" in desk.run("resume", "--more", "1").prose
    assert (control(desk).paused, control(desk).grant is None) == (None, False)


@pytest.mark.parametrize("arguments", [("--more", "0"), ("--more", "1001"), ("--more", "1", "--node", "worker-1")])
def test_a_grant_is_a_number_for_the_whole_cluster(desk: Desk, arguments: tuple[str, ...]) -> None:
    refused = desk.run("resume", *arguments)
    assert (refused.code, refused.output) == (2, "")
    assert not desk.world.make(Attempt("get", CONFIG_MAPS, CONTROL, namespace=NAMESPACE)).ok


def test_other_orders_stay(desk: Desk) -> None:
    desk.store(CONTROL, {"maintenance": "somebody's"})
    desk.run("pause", "--why", "we move house")
    desk.run("resume")
    assert desk.world.read(CONFIG_MAPS, CONTROL, NAMESPACE)["data"] == {"maintenance": "somebody's"}


def test_whose_pause_it_is_already_stays(desk: Desk) -> None:
    desk.run("pause", "--why", "we move house", "--who", "adam")
    again = desk.run("pause", "--why", "lunch")
    assert (again.code, "paused already by adam" in again.prose) == (0, True)
    order = control(desk).paused
    assert isinstance(order, Pause)
    assert order.who == "adam"


@pytest.mark.parametrize("command", [("pause", "--why", "we move house"), ("resume",)])
def test_an_order_that_can_not_be_read_is_replaced(desk: Desk, command: tuple[str, ...]) -> None:
    desk.store(CONTROL, {"paused": "garbage"})
    assert desk.run(*command).code == 0
    assert isinstance(control(desk).paused, Pause if "pause" in command else type(None))


def test_a_pause_of_one_node_is_on_that_node(desk: Desk) -> None:
    paused = desk.run("pause", "--why", "new memory", "--node", "worker-1")
    assert (paused.code, "nothing about worker-1" in paused.prose) == (0, True)
    order = parse_control({"paused": annotations_of(desk.world, NODES, "worker-1")[PAUSED_NODE]}).paused
    assert isinstance(order, Pause)
    assert (order.who, order.why) == ("eve", "new memory")
    assert "It was paused by eve" in desk.run("resume", "--node", "worker-1").prose
    assert PAUSED_NODE not in annotations_of(desk.world, NODES, "worker-1")


def test_a_reason_of_two_lines_is_refused(desk: Desk) -> None:
    refused = desk.run("pause", "--why", "one\ntwo")
    assert (refused.code, "is not one line" in refused.complaint) == (2, True)


def test_a_node_that_does_not_exist_is_answered_with_names_like_it(desk: Desk) -> None:
    refused = desk.run("pause", "--why", "new memory", "--node", "wroker-1")
    assert (refused.code, refused.output) == (2, "")
    assert refused.complaint == "pp-leader: there is no Node wroker-1\n  Did you mean worker-1?\n"


def test_where_nothing_is_installed_that_is_said() -> None:
    with EmbeddedCluster.start() as cluster:
        empty = Desk(cluster)
        refused = empty.run("pause", "--why", "we move house")
        empty.close()
    assert (refused.code, "pp-leader install" in refused.complaint) == (2, True)
