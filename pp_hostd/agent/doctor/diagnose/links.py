"""Links and addresses: whether the address by which peers know this host is its own, on a link that works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pp_hostd.agent.doctor.facts import Facts, Link, NotKnown
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning

ADDRESS, LINKS = "address", "links"


def links(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.links, NotKnown):
        yield not_checked(LINKS, facts.links.why, facts.links.advice or "See: ip address")
        return
    if facts.own_member is not None:
        yield _address(facts.own_member.address, facts.links)
    yield _carriers(facts.links)


def _address(address: str, found: Sequence[Link]) -> Line:
    link = next((link for link in found if address in link.addresses), None)
    if link is None:
        said = f"the roster says that this host is at {address}, and no link here has that address"
        return failure(ADDRESS, said, "Peers ask there: is it the InternalIP of the right Node? See: ip address")
    if not (link.is_up and link.has_carrier):
        fault = "has no carrier" if link.is_up else "is down"
        return failure(ADDRESS, f"{address} is on {link.name}, which {fault}", f"See: ip link show {link.name}")
    return ok(ADDRESS, f"{address} is on {link.name}, which is up and has a carrier")


def _carriers(found: Sequence[Link]) -> Line:
    dead = [link.name for link in found if link.is_hardware and link.is_up and not link.has_carrier]
    if dead:
        advice = f"Is a cable out? If it is not in use: ip link set {dead[0]} down"
        return warning(LINKS, f"up, and without a carrier: {', '.join(dead)}", advice)
    alive = [link.name for link in found if link.has_carrier]
    if not alive:
        return failure(LINKS, "no link has a carrier", "See: ip link")
    return ok(LINKS, f"with a carrier: {', '.join(alive)}")
