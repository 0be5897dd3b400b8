"""`pp-leader rotate-key`: any two hosts have a key in common at any time, and it shows who is not so far."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.rotate_key import PEER_KEY, PeerKeys, Phase, fresh_key, moved, parse_peer_keys
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.roster import Member, Roster
from pp_hostd.peers.signing import Keyring, load_keyring
from tests.harness.controlplane import RealCluster
from tests.leader.desk import Desk, Said
from tests.peers.talk import peer_port

OLD, NEW = (fresh_key() for _ in range(2))
STEPS = [
    PeerKeys((OLD,), Phase.SETTLED),
    PeerKeys((OLD, NEW), Phase.ADDING),
    PeerKeys((NEW, OLD), Phase.SWAPPING),
    PeerKeys((NEW, OLD), Phase.DROPPING),
    PeerKeys((NEW,), Phase.SETTLED),
]


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """Of a real cluster: the embedded one has no Secrets."""
    with RealCluster.start() as cluster, closing(Desk(cluster)) as desk:
        desk.install()
        yield desk


def store(desk: Desk, keys: PeerKeys) -> None:
    desk.put(SECRETS, {"metadata": {"name": PEER_KEY}, **keys.render()})


def stored(desk: Desk) -> PeerKeys:
    return parse_peer_keys(desk.world.read(SECRETS, PEER_KEY, NAMESPACE))


def lines(keys: PeerKeys) -> list[str]:
    return keys.file.decode().split()


def test_each_step_leads_to_the_next_and_the_last_forgets_the_old_key() -> None:
    assert [step.next(NEW) for step in STEPS[:-1]] == STEPS[1:]


@pytest.mark.parametrize("step", range(len(STEPS) - 1))
def test_hosts_of_two_neighbouring_steps_understand_each_other(step: int) -> None:
    files = [lines(each) for each in STEPS[step : step + 2]]
    assert all(one[0] in other for one in files for other in files)


def test_without_a_word_it_changes_nothing(desk: Desk) -> None:
    store(desk, STEPS[1])
    said = desk.run("rotate-key")
    assert (said.code, "Step 1 of 3" in said.prose) == (0, True)
    assert stored(desk) == STEPS[1]
    assert OLD not in said.output + said.complaint


def test_told_so_it_goes_on_step_by_step_and_writes_each_hosts_file(desk: Desk, tmp_path: Path) -> None:
    store(desk, STEPS[0])
    file, seen = tmp_path / "peer.key", []
    for _ in range(4):
        assert desk.run("rotate-key", "next", "--unasked", "--out", str(file)).code == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert load_keyring(str(file)).keys
        seen.append(file.read_text().split())
        assert seen[-1] == lines(stored(desk))
    new = seen[-1][0]
    assert new != OLD
    assert seen == [[OLD, new], [new, OLD], [new], [new]]


ANSWERS = [
    (STEPS[0], [OLD], "as it should be now"),
    (STEPS[0], [NEW], "not known: "),
    (STEPS[1], [OLD], "signs with the old key, does not accept the new one"),
    (STEPS[1], [OLD, NEW], "as it should be now"),
    (STEPS[2], [OLD, NEW], "signs with the old key"),
    (STEPS[2], [NEW, OLD], "as it should be now"),
    (STEPS[3], [NEW, OLD], "signs with the new key, still accepts the old one"),
    (STEPS[3], [NEW], "as it should be now"),
]


@pytest.mark.parametrize(("keys", "file", "sentence"), ANSWERS)
async def test_asked_a_host_shows_how_far_it_is(
    desk: Desk, tmp_path: Path, keys: PeerKeys, file: list[str], sentence: str
) -> None:
    store(desk, keys)
    member = Member("peer", "metal/peer", "127.0.0.1", "uid-1", 3, None)
    desk.store(ROSTER, {ROSTER: Roster.of(3, 3, [member]).render()})
    async with peer_port(keyring=Keyring(PeerKeys(tuple(file)).secrets)) as port:
        (tmp_path / "c.toml").write_text(f"[peers]\nport = {port.number}\n")

        def run(*arguments: str) -> Said:
            return desk.run("rotate-key", *arguments, "--config", str(tmp_path / "c.toml"))

        shown = await asyncio.to_thread(run, "--ask")
        as_json = await asyncio.to_thread(run, "--ask", "--json")
        moved = await asyncio.to_thread(run, "next")
    assert (shown.code, f"peer {sentence}" in shown.prose) == (0, True)
    told = json.loads(as_json.output)
    assert (told["phase"], told["hosts"]["peer"].startswith(sentence)) == (keys.phase.value, True)
    ready = sentence.startswith("as it")
    assert moved.code == (0 if ready else 2)
    assert (stored(desk).phase is keys.phase) is not ready
    assert ready or "1 of the hosts are not so far: peer" in moved.complaint


def test_a_step_that_somebody_else_has_taken_is_not_taken_twice(desk: Desk) -> None:
    store(desk, STEPS[2])
    with closing(Administrator(desk.kubeconfig)) as administrator, pytest.raises(UserError, match="somebody else"):
        moved(administrator, STEPS[1])
    assert stored(desk) == STEPS[2]


def test_no_step_is_taken_whose_file_can_not_be_written(desk: Desk, tmp_path: Path) -> None:
    """A person who tries again with a better name would take two steps."""
    store(desk, STEPS[1])
    refused = desk.run("rotate-key", "next", "--unasked", "--out", str(tmp_path / "missing" / "peer.key"))
    assert (refused.code, "can't be written" in refused.complaint) == (2, True)
    assert stored(desk) == STEPS[1]


def test_what_is_no_file_is_not_replaced_by_one(desk: Desk, tmp_path: Path) -> None:
    """As /dev/stdout would be, by root."""
    store(desk, STEPS[1])
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    for name in ("fifo", "link"):
        refused = desk.run("rotate-key", "next", "--unasked", "--out", str(tmp_path / name))
        assert (refused.code, "is no regular file" in refused.complaint) == (2, True)
    assert ((tmp_path / "fifo").is_fifo(), (tmp_path / "link").is_symlink()) == (True, True)
    assert stored(desk) == STEPS[1]


def test_a_step_that_is_taken_once_more_by_mistake_is_refused_while_hosts_are_behind_or_away(
    desk: Desk, tmp_path: Path
) -> None:
    store(desk, STEPS[1])
    away = Member("away", None, "127.0.0.1", "uid-1", 3, None)
    desk.store(ROSTER, {ROSTER: Roster.of(3, 3, [away]).render()})
    (tmp_path / "c.toml").write_text("[peers]\nport = 1\n")
    refused = desk.run("rotate-key", "next", "--config", str(tmp_path / "c.toml"))
    assert (refused.code, "not so far: away" in refused.complaint, "--unasked" in refused.complaint) == (2, True, True)
    assert stored(desk) == STEPS[1]


@pytest.mark.parametrize("arguments", [["--ask"], ["next"]])
def test_without_a_roster_nobody_is_asked(desk: Desk, arguments: list[str]) -> None:
    store(desk, STEPS[0])
    desk.remove(CONFIG_MAPS, ROSTER)
    said = desk.run("rotate-key", *arguments)
    assert (said.code, "without a roster nobody can be asked" in said.complaint) == (2, True)
    assert stored(desk) == STEPS[0]


def test_before_the_first_enrolment_there_is_no_key(desk: Desk) -> None:
    desk.remove(SECRETS, PEER_KEY)
    said = desk.run("rotate-key")
    assert (said.code, "has no peer key yet" in said.complaint) == (2, True)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"keys": OLD},
        {"keys": OLD, "phase": "lost"},
        {"keys": OLD, "phase": "adding"},
        {"keys": f"{OLD}\n{NEW}", "phase": "settled"},
        {"keys": "c2hvcnQ=", "phase": "settled"},
        {"keys": f"{OLD}!", "phase": "settled"},
    ],
)
def test_a_secret_that_somebody_spoiled_is_not_used(desk: Desk, data: dict[str, str]) -> None:
    desk.put(SECRETS, {"metadata": {"name": PEER_KEY}, "stringData": data})
    said = desk.run("rotate-key", "next")
    assert (said.code, "is not as pp-leader has made it" in said.complaint) == (2, True)
    assert OLD not in said.complaint
