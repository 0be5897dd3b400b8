"""`pp-hostd ask`: put the daemon's question to its peers by hand, with the same key, over the same port."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from functools import partial
from typing import Any

from pp_hostd import config
from pp_hostd.agent.commands.daemon_link import report
from pp_hostd.agent.sense.peers import Round
from pp_hostd.agent.state import StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member
from pp_hostd.model.settings import Settings
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.peers.signing import UNSIGNED, load_keyring
from pp_hostd.service.output import say, say_json, table


def ask(arguments: Namespace) -> int:
    if bool(arguments.peers) == arguments.all:
        raise UserError("name the peers to ask, or say --all", "See: pp-hostd ask --help")
    settings, current = config.load(arguments.config).settings, report()
    node, machine = current["node"], current["machine"]
    if machine is None:
        raise UserError("the daemon has not read this host's machine yet", "See: pp-hostd status")
    namespace, _, name = machine["subject"].rpartition("/")
    question = Question(MachineReference(namespace or None, name, machine["uid"]), node)
    answers = _asked(settings, _members(arguments.peers, node), question)
    rows = [_row(each) for each in answers]
    if arguments.json:
        say_json(rows)
    else:
        cells = [[row["peer"], row["said"], f"{row['took_seconds']:.3f} s", row["why"]] for row in rows]
        say(table(["PEER", "SAID", "TOOK", "WHY"], cells))
    return 0 if all(each.answer is not None for each in answers) else 1


def _members(names: list[str], node: str) -> list[Member]:
    electorate = _newest_electorate()
    wanted = names or [name for name in electorate.names if name != node]
    members = [(name, electorate.member(name)) for name in wanted]
    strangers = [name for name, member in members if member is None]
    if strangers:
        known = f"version {electorate.version} of the roster, of {electorate.n} nodes"
        raise UserError(f"{', '.join(strangers)}: not in {known}", "Ask all of them with: pp-hostd ask --all")
    return [member for _, member in members if member is not None]


def _newest_electorate() -> Electorate:
    rosters, _ = StateFiles().load_rosters()
    electorate = rosters[0].as_of(rosters[0].version) if rosters else None
    if electorate is None or isinstance(electorate, Unreadable):
        raise UserError("this host has no roster yet, so it knows no peers", "See: pp-hostd status")
    return electorate


def _asked(settings: Settings, members: list[Member], question: Question) -> list[PeerAnswered]:
    keyring = UNSIGNED if settings.peers.auth == "none" else load_keyring(settings.peers.key_file)
    answers: list[PeerAnswered] = []
    clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    asyncio.run(Round(settings, keyring, clock, answers.append).ask(members, question))
    return sorted(answers, key=lambda each: each.peer)


def _row(answered: PeerAnswered) -> dict[str, Any]:
    answer = answered.answer
    return {
        "peer": answered.peer,
        "said": "silent" if answer is None else answer.health.value,
        "id": None if answer is None else answer.id,
        "why": answered.silence if answer is None or answer.id is None else f"condemnation {answer.id}",
        "took_seconds": round(answered.ended_at - answered.began_at, 3),
    }
