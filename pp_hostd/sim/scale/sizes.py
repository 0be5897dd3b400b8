"""How many bytes each message takes: HTTP heads and bodies as the daemons write them, without TLS, TCP and IP."""

from __future__ import annotations

from pp_hostd.model.settings import Settings

PEER_QUESTION = 374
PEER_ANSWER = 366
"""With names of 24 characters."""
UNANSWERED = 120
"""A question to a peer that nothing reaches: two packets that ask for a connection."""

MACHINE, NODE = 3000, 8000
"""A Machine, and a Node with its list of images, as the API's JSON."""
API_HEADS = 550
"""Both heads of an exchange with the API, by client certificate."""
LOOK = API_HEADS + NODE
STORE = API_HEADS + NODE + 500
ORDERS = API_HEADS + 200
WATCH = API_HEADS


def machine(settings: Settings) -> int:
    """What a read of a host's machine brings, and each event of the watch on the condemned."""
    return NODE if settings.api.machines == "node" else MACHINE


def read(settings: Settings) -> int:
    return API_HEADS + machine(settings)
