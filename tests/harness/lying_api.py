"""A liar between hosts and their API, which rewrites what it likes."""

from __future__ import annotations

import json
from typing import Any, Callable

from pp_hostd.kube.resources import NODES
from tests.harness.cluster import Cluster
from tests.harness.go_between import Answer, Asked, GoBetween

Json = dict[str, Any]
Lie = Callable[[Json], bytes]
"""From the object that the API shows to what the host gets instead."""


class LyingApi(GoBetween):
    """`lies` says, by the name of a host, what it gets for its Node; whoever is not in there is told the truth."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.lies: dict[str, Lie] = {}

    def answer(self, user: str, asked: Asked) -> Answer | None:
        host = user.rpartition(":")[2]
        answer, lie = self.ask(asked), self.lies.get(host)
        if lie is None or (asked.method, asked.path) != ("GET", NODES.path(name=host)):
            return answer
        return answer._replace(body=lie(json.loads(answer.body)))
