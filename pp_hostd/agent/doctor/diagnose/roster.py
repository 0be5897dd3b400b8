"""The roster: whether there is one, and this host is in it."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.facts import Facts, NotKnown
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning

CHECK = "roster"


def roster(facts: Facts) -> Iterator[Line]:
    found, member = facts.roster, facts.own_member
    if isinstance(found, NotKnown):
        yield not_checked(CHECK, found.why, found.advice or "See the lines about the API above.")
        return
    electorate = found.electorate
    known = f"version {electorate.version}, {electorate.n} nodes{', as the daemon keeps it' if found.kept else ''}"
    if member is None:
        said = f"{facts.node} is not in it ({known}): nobody counts on this host, and no peer answers for it"
        yield failure(CHECK, said, f"Do: pp-leader enroll {facts.node}; is that the name of this host's Node?")
    elif electorate.n == 1:
        alone = "this host is alone in it: nobody could take its workloads over, so it is not armed"
        yield warning(CHECK, f"{known}: {alone}", "Enroll the other nodes: pp-leader enroll NODE")
    else:
        yield ok(CHECK, f"{known}; {facts.node} is in it, at {member.address}")
