"""The network of the bed by netlink: a bridge, addresses, and neighbours that can be made to swallow packets.

Every host knows its neighbours' hardware addresses from the start, so nobody has to ask for one. A neighbour that is
lost gets one that nobody has: what is sent to it vanishes without a word, and only in this direction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping

from pyroute2 import IPRoute, NetlinkError

BRIDGE = "br0"
API_PORT = 6443
NOBODY = "02:77:ff:ff:ff:ff"
NUD_PERMANENT = 0x80
IFA_F_NODAD = 2

Addresses = Mapping[str, str]
"""By address, the hardware address that answers to it."""


def addresses_of(number: int) -> tuple[str, str]:
    """The IPv4 and IPv6 address of the bed's nth interface."""
    return f"10.77.0.{number}", f"fd77::{number:x}"


def hardware_address(number: int) -> str:
    return f"02:77:00:00:00:{number:02x}"


def add_bridge(numbers: Iterable[int]) -> None:
    """A bridge that holds the addresses of these numbers."""
    with IPRoute() as netlink:
        netlink.link("add", ifname=BRIDGE, kind="bridge", address=hardware_address(1))
    for number in numbers:
        configure(BRIDGE, number)


def plug_in(number: int, pid: int) -> None:
    """Lay a cable from the bridge to `eth0` of that process, in place of the one that the host had before."""
    with IPRoute() as netlink:
        for old in netlink.link_lookup(ifname=_port(number)):
            with contextlib.suppress(NetlinkError):  # a host that is gone takes its cable along, perhaps just now
                netlink.link("del", index=old)
        peer = {"ifname": "eth0", "net_ns_pid": pid, "address": hardware_address(number)}
        netlink.link("add", ifname=_port(number), kind="veth", peer=peer)
        (bridge,) = netlink.link_lookup(ifname=BRIDGE)
        (port,) = netlink.link_lookup(ifname=_port(number))
        netlink.link("set", index=port, master=bridge, state="up")


def set_carrier(number: int, up: bool) -> None:
    """Pull a host's cable, or put it back."""
    with IPRoute() as netlink:
        (port,) = netlink.link_lookup(ifname=_port(number))
        netlink.link("set", index=port, state="up" if up else "down")


def configure(interface: str, number: int) -> None:
    """Give the interface its addresses."""
    with IPRoute() as netlink:
        (index,) = netlink.link_lookup(ifname=interface)
        netlink.link("set", index=1, state="up")
        netlink.link("set", index=index, state="up")
        for address, length in zip(addresses_of(number), (24, 64)):
            netlink.addr("add", index=index, address=address, prefixlen=length, flags=IFA_F_NODAD)


def set_neighbours(interface: str, neighbours: Addresses, lost: Collection[str]) -> None:
    """Make these the neighbours, and let nothing reach those that are lost."""
    with IPRoute() as netlink:
        (index,) = netlink.link_lookup(ifname=interface)
        for address, hardware in neighbours.items():
            reached = NOBODY if address in lost else hardware
            netlink.neigh("replace", dst=address, lladdr=reached, ifindex=index, state=NUD_PERMANENT)


def _port(number: int) -> str:
    return f"host{number}"
