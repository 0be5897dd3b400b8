"""Clusters of many hosts, of whom few live in full: what is counted is what the detailed simulator does."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from pp_hostd.model.answer import Answer
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import ask
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.sim.api import SERVERS, ServerHealth
from pp_hostd.sim.exchange import Answered
from pp_hostd.sim.scale import tally
from pp_hostd.sim.scale.crowd import Crowd, jurors, jury
from pp_hostd.sim.scale.run import MINUTE, OUTAGE, RACK, SPLIT, Figures, run
from pp_hostd.sim.scale.tally import HOUR_SECONDS, Kind, Tally
from pp_hostd.sim.world import World
from tests.bench import scale
from tests.bench.scale_plot import Line, Panel, plot
from tests.peers.talk import KEYRING, Neighbour, peer_port, say

NODES = 10
SHORT_OUTAGE = replace(OUTAGE, seconds=MINUTE)
SHORT_SPLIT = replace(SPLIT, seconds=2 * MINUTE)


class CountedWorld(World):
    """The detailed simulator; it counts the questions that hosts put to their peers."""

    asked = 0

    def _ask(self, source: str, peer: str, question: Question, answered: Answered) -> None:
        self.asked += 1
        super()._ask(source, peer, question, answered)


def asked_in_crowd(living: int, nodes: int = NODES) -> float:
    """How many questions are asked in a minute without control plane; each is answered."""
    crowd = Crowd(Settings(), nodes, 1)
    crowd.populate([(crowd.names, living)])
    crowd.time.run(MINUTE)
    crowd.ail(ServerHealth.DEAD)
    crowd.time.run(2 * MINUTE)
    assert crowd.resets == 0
    return crowd.tally.rate(Kind.PEER).mean * (HOUR_SECONDS - 40) / 2


def in_detail() -> int:
    world = CountedWorld(Settings(), NODES, 1, lambda *_: None)
    world.begin()
    world.time.run(MINUTE)
    world.api.health.update(dict.fromkeys(SERVERS, ServerHealth.DEAD))
    resets: list[str] = []
    world.on_decided = lambda name, *_: resets.append(name)
    world.time.run(2 * MINUTE)
    assert not resets
    return world.asked


def without_stopwatch(found: Figures) -> Figures:
    return replace(found, leader=replace(found.leader, longest_ms=0.0))


# The crowd and the detailed simulator.


def test_a_crowd_in_an_outage_asks_as_much_as_the_detailed_simulator_does() -> None:
    assert asked_in_crowd(living=NODES) == pytest.approx(in_detail(), rel=0.05)


def test_a_few_representatives_ask_as_much_as_all_hosts_do() -> None:
    assert asked_in_crowd(living=5, nodes=20) == pytest.approx(asked_in_crowd(living=20, nodes=20), rel=0.05)


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (run(SHORT_OUTAGE, NODES, seed=3) for _ in range(2))
    assert without_stopwatch(first) == without_stopwatch(second)
    assert without_stopwatch(run(SHORT_OUTAGE, NODES, seed=4)) != without_stopwatch(first)


# The fate of the hosts.


def test_nobody_is_reset_when_the_control_plane_fails_and_all_are_well_an_interval_after_its_end() -> None:
    found = run(SHORT_OUTAGE, 50)
    assert (found.resets, found.needless_resets, found.freed_seconds) == (0, 0, None)
    assert 0 < found.recovery_seconds < 5


def test_the_hosts_of_a_lost_rack_reset_themselves_and_are_freed() -> None:
    found = run(replace(RACK, seconds=4 * MINUTE), 50)
    assert (found.apart, found.resets, found.needless_resets) == (4, 4, 0)
    assert found.freed_seconds is not None and 100 < found.freed_seconds < 200
    assert found.leader.questions >= 4 * 50  # half of the nodes for each, and the same ones again


def test_a_half_without_api_resets_itself_and_a_majority_without_it_stays_up() -> None:
    half = run(SHORT_SPLIT, 20)
    majority = run(replace(SHORT_SPLIT, apart=lambda nodes: nodes // 2 + 1), 20)
    assert (half.resets, majority.resets) == (10, 0)


def test_quiet_hosts_ask_no_peer_and_read_as_often_as_the_settings_say() -> None:
    crowd = Crowd(Settings(), 40, 1)
    crowd.populate([(crowd.names, 10)])
    crowd.time.run(180.0)
    crowd.tally.go_on_from(180)
    assert crowd.tally.rate(Kind.PEER).peak == 0
    each_second = 1 / 4 + 1 / 60 + 1 / 30 + 2 / 240  # reads, looks at the Node, orders, watches
    assert crowd.tally.rate(Kind.SERVED).mean == pytest.approx(40 * each_second, rel=0.02)


# Juries.


def test_a_jury_is_the_same_wherever_it_is_drawn_and_another_for_each_host_and_version() -> None:
    names = [f"node-{number}" for number in range(200)]
    drawn = jury(7, "node-3", names)
    assert drawn == jury(7, "node-3", list(reversed(names)))
    assert (drawn[0], len(set(drawn))) == ("node-3", 1 + jurors(200))
    assert len({drawn[1:], jury(8, "node-3", names)[1:], jury(7, "node-4", names)[1:]}) == 3


def test_a_small_cluster_is_its_own_jury() -> None:
    assert set(jury(1, "b", ["a", "b", "c"])) == {"a", "b", "c"}


def test_with_a_jury_nobody_is_reset_either_and_far_fewer_are_asked() -> None:
    with_jury, without = run(SHORT_OUTAGE, 200, with_jury=True), run(SHORT_OUTAGE, 200)
    assert with_jury.resets == 0
    assert with_jury.peer.mean < without.peer.mean / 2


# The counts, and how they are shown.


def test_what_is_spread_over_time_is_counted_in_each_of_its_seconds() -> None:
    tally = Tally()
    tally.add(Kind.PEER, 99.5, 2.0, 100)
    rate = tally.rate(Kind.PEER)
    assert rate.peak == pytest.approx(50)
    assert rate.mean * (HOUR_SECONDS - 40) == pytest.approx(100)


async def test_questions_and_answers_are_as_large_as_those_that_are_counted() -> None:
    name, uid = "worker-0042.rack.example", "e8e0c0ea-6d3b-4f9b-9d4f-0d7a3c1f5b11"
    about = MachineReference("openshift-machine-api", name, uid)
    found: list[int] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = await reader.readuntil(b"\r\n\r\n")
        answer = await say(port.number, question)
        found.extend((len(question), len(answer)))
        writer.write(answer)
        writer.close()

    async with peer_port() as port, await asyncio.start_server(pass_on, "127.0.0.1", 0) as between:
        number = between.sockets[0].getsockname()[1]
        said = await ask(Neighbour(), number, Question(about, name), KEYRING, deadline_seconds=5)
    assert isinstance(said, Answer)
    shorter = len(name) - len(Neighbour().name)
    assert found == [tally.PEER_QUESTION - shorter, tally.PEER_ANSWER - shorter]


def test_growth_is_shown_as_a_power_of_the_number_of_nodes() -> None:
    found = [run(SHORT_OUTAGE, nodes) for nodes in (4, 8)]
    lines = scale.table(found).splitlines()
    assert lines[0] == "| outage | 4 nodes | 8 nodes | grows like |"
    first, second = (each.served.mean for each in found)
    mean = next(line for line in lines if line.startswith("| the same, mean"))
    assert mean.endswith(f"n^{math.log2(second / first):.1f} |")


def test_every_line_of_the_plot_is_in_every_panel() -> None:
    lines = [Line("one", "red", False, [(50, 1.0), (500, 20.0)]), Line("two", "blue", True, [(50, 3.0), (500, 0.0)])]
    drawn = ElementTree.fromstring(plot([Panel("first", lines), Panel("second", lines)]))
    names = [element.tag.rpartition("}")[2] for element in drawn]
    assert (names.count("polyline"), names.count("circle")) == (4, 6)  # there is no logarithm of nothing
