"""Links and addresses of this host, by pyroute2 where it is installed."""

from __future__ import annotations

from typing import Any

from pp_hostd.agent.doctor.facts import Link, NotKnown

UP, LOWER_UP = 0x1, 0x10000


def links() -> list[Link] | NotKnown:
    try:
        from pyroute2 import IPRoute
    except ImportError:
        return NotKnown("the Python package pyroute2 is not there", "Install the package pp-hostd-admin.")
    with IPRoute() as netlink:
        addresses = [(each["index"], _address(each)) for each in netlink.get_addr()]
        return [_link(each, addresses) for each in netlink.get_links()]


def _link(message: Any, addresses: list[tuple[int, str]]) -> Link:
    name, flags = str(message.get_attr("IFLA_IFNAME")), int(message["flags"])
    return Link(
        name=name,
        is_up=bool(flags & UP),
        has_carrier=bool(flags & LOWER_UP),
        is_hardware=name != "lo" and message.get_attr("IFLA_LINKINFO") is None,
        addresses=tuple(address for index, address in addresses if index == message["index"]),
    )


def _address(message: Any) -> str:
    return str(message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS"))
