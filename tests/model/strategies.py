"""The records that hypothesis draws: valid ones, their parts, and the ways in which a stranger damages them."""

from __future__ import annotations

import copy
from datetime import timezone
from typing import Any

from hypothesis import strategies as st

from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.backup import Backup
from pp_hostd.model.budget import Beginning, Budget
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.control import MOST_GRANTED, Grant, Maintenance, Pause
from pp_hostd.model.keys import is_ours
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.suspicion import MAX_SUSPECTS, Suspicion
from tests.harness.examples import tries

# The machine may be busy: an example that takes long is no failure.
examples = tries(100)

counts = st.integers(1, 10**15 - 1)
names = st.builds("{}{}{}".format, st.sampled_from("az09"), st.text("az09-.", max_size=12), st.sampled_from("az09"))
machines = st.builds("{}/{}".format, names, names)
words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128)
uids = st.one_of(st.uuids().map(str), words)
prose = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=500)
moments = st.datetimes(timezones=st.just(timezone.utc))
timeouts = st.floats(1, 3600)
addresses = st.ip_addresses().map(str)
texts = st.dictionaries(st.text(min_size=1), st.text(), max_size=4)

armed = st.builds(
    Armed,
    boot=words,
    self_timeout_seconds=timeouts,
    watchdog_timeout_seconds=timeouts,
    watchdog=st.sampled_from(WatchdogKind),
    gate=st.sampled_from(GateKind),
    machine_uid=words,
    roster_version=counts,
)
agent_records = st.one_of(
    armed,
    st.builds(Committed, armed, counts),
    st.builds(GateClosed, words, st.sampled_from([GateKind.HOLD, GateKind.TAINT])),
    st.builds(Withdrawn, words),
)
condemnations = st.one_of(
    st.builds(NotRequested, st.just(0) | counts),
    st.builds(Requested, st.just(0) | counts),
    st.builds(Condemned, counts, moments),
)
answers = st.sampled_from(Health).flatmap(
    lambda health: st.builds(
        Answer,
        health=st.just(health),
        id=counts if health is Health.UNHEALTHY else st.none(),
        token=words,
        nonce=words,
        answered_by=names,
        asked_by=names,
        about=names | machines,
    )
)
pauses = st.builds(Pause, prose, moments, prose)
maintenances = st.builds(Maintenance, prose, moments, prose, moments)
grants = st.builds(Grant, prose, moments, st.integers(1, MOST_GRANTED))
beginnings = st.builds(Beginning, names, st.integers(0, 2**33))
budgets = st.lists(beginnings, max_size=5).map(lambda listed: Budget(tuple(listed)))
agent_infos = st.builds(AgentInfo, words, st.none() | moments)
suspicions = st.sets(names, min_size=1, max_size=MAX_SUSPECTS).map(lambda drawn: Suspicion(tuple(sorted(drawn))))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([0, -1, 10**30, "", "0"]),
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
anything = st.one_of(st.text(), st.binary(), json_values)

finite_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
taints = st.fixed_dictionaries({"key": words.map("example.com/".__add__), "effect": st.just("NoSchedule")})
specs = st.fixed_dictionaries(
    {},
    optional={
        "podCIDR": st.text(),
        "podCIDRs": st.lists(st.text(), max_size=2),
        "providerID": st.text(),
        "ofTheFuture": finite_values,
        "taints": st.lists(taints, min_size=1, max_size=3),
    },
)
others = texts.map(lambda found: {key: value for key, value in found.items() if not is_ours(key)})  # ours is left out
backups = st.builds(Backup, name=names, uid=words, id=counts, labels=others, annotations=others, spec=specs)


@st.composite
def rosters(draw: st.DrawFn) -> Roster:
    """Nodes that come, change and leave: each has up to three rows, none of them in the same version."""
    version = draw(st.integers(1, 12))
    oldest = draw(st.integers(1, version))
    members = []
    for name in draw(st.lists(names, unique=True, max_size=5)):
        bounds = sorted(draw(st.sets(st.integers(1, version), min_size=1, max_size=4)))
        ends = [*bounds[1:], None] if draw(st.booleans()) else bounds[1:]
        for since, until in zip(bounds, ends):
            machine = draw(st.none() | machines)
            members.append(Member(name, machine, draw(addresses), draw(uids), since, until))
    return Roster.of(version, oldest, tuple(draw(st.permutations(members))))


@st.composite
def damaged(draw: st.DrawFn, sound: Any) -> Any:
    """The JSON value with one to three places dropped, replaced or added to, anywhere inside."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        value = draw(_damaged_once(value))
    return value


@st.composite
def _damaged_once(draw: st.DrawFn, value: Any) -> Any:
    place = value
    while isinstance(place, (dict, list)) and place:
        key = draw(st.sampled_from(sorted(place, key=repr) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], (dict, list)) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.booleans()):
            place[key] = draw(json_values)
        else:
            del place[key]
        return value
    return draw(json_values)
