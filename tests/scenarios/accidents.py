"""Accidents of leaders: at a write that is named, the leader is killed, or the API's answer to it is lost.

Writes have the names of a table, here that of a remediation. Where texts name them, each is its own name.
"""

from __future__ import annotations

import enum
import json
from collections import defaultdict
from http import HTTPStatus
from typing import Callable, NamedTuple, Union

from pp_hostd.model.keys import BUDGET, CORDONED, EXTERNAL_REMEDIATION, FREEING, LEADER_USER, REQUESTED_AGAIN
from tests.harness.cluster import Cluster
from tests.harness.go_between import Answer, Asked, GoBetween
from tests.scenarios.stage import now


class Write(enum.Enum):
    """The writes of a remediation, by how they begin: the method, then what a patch makes of the Node or its machine,
    or the kind and name that are created or deleted. The budget is created once, and replaced from then on."""

    SPEND_BUDGET = "STORE configmaps/budget"
    CORDON = "PATCH cordoned"
    CONDEMN = "PATCH condemned"
    STORE_BACKUP = "POST configmaps/backup-"
    DELETE_NODE = "DELETE nodes/"
    MARK_FREEING = "PATCH freeing"
    DELETE_POD = "DELETE pods/"
    DELETE_ATTACHMENT = "DELETE volumeattachments/"
    RECREATE = "POST nodes/"
    CLEAR = "PATCH lifted"
    UNCORDON = "PATCH uncordoned"
    DROP_BACKUP = "DELETE configmaps/backup-"
    NOTE_REQUEST = "PATCH requested again"


class Moment(enum.Enum):
    """When what happens."""

    BEFORE = "killed before it is carried out"
    UNANSWERED = "killed when it is carried out and not answered"
    ANSWERED = "killed when it is answered"
    LOST = "the answer is lost"


Name = Union[Write, str]
"""Of a write."""


class Accident(NamedTuple):
    """It happens once, and to whoever leads."""

    write: Name
    moment: Moment

    def __str__(self) -> str:
        name = self.write if isinstance(self.write, str) else self.write.name.lower().replace("_", " ")
        return f"{name}, {self.moment.value}"


class Accidents(GoBetween):
    """Where the leaders find the API. `done_at` says when each write was carried out since the last accident was
    prepared; `struck` is the leader, by user, that it happened to."""

    def __init__(
        self, cluster: Cluster, kill: Callable[[str], None], name_of: Callable[[Asked], Name | None] | None = None
    ) -> None:
        """`kill` ends the leader of that user at once. `name_of` names the writes that count, and no other request."""
        super().__init__(cluster)
        self._kill, self._name_of = kill, name_of or write_of
        self._prepared: Accident | None = None
        self._doomed = ""
        self.struck = ""
        self.done_at: dict[Name, list[float]] = defaultdict(list)

    def prepare(self, accident: Accident | None) -> None:
        """None: all goes well."""
        self._prepared, self.struck, self.done_at = accident, "", defaultdict(list)

    def answer(self, user: str, asked: Asked) -> Answer | None:
        if user == self._doomed:  # its first request after it took the answer
            self._doomed = ""
            self._strike(user)
            return None
        write = self._name_of(asked) if user.startswith(LEADER_USER) else None
        if write is None:
            return self.ask(asked)
        moment = self._moment(write)
        answer = None if moment is Moment.BEFORE else self._carry_out(write, asked)
        if moment in (Moment.BEFORE, Moment.UNANSWERED):
            self._strike(user)
        elif moment is Moment.ANSWERED:
            self._doomed = user
        elif moment is Moment.LOST:
            self.struck = user
        return answer if moment in (None, Moment.ANSWERED) else None

    def _carry_out(self, write: Name, asked: Asked) -> Answer:
        answer = self.ask(asked)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            self.done_at[write].append(now())
        return answer

    def _moment(self, write: Name) -> Moment | None:
        accident = self._prepared
        if accident is None or accident.write != write:
            return None
        self._prepared = None
        return accident.moment

    def _strike(self, user: str) -> None:
        self._kill(user)
        self.struck = user


def write_of(asked: Asked) -> Write | None:
    """Returns the write of a remediation that this request is; None: a read, or the leader's own affairs."""
    if asked.method == "GET":
        return None
    body = json.loads(asked.body)
    path = asked.path if asked.method != "POST" else f"{asked.path}/{body['metadata'].get('name')}"
    plural, name = path.split("/")[-2:]
    if asked.method == "PATCH" and plural in ("nodes", "machines"):
        words = f"PATCH {_state(body.get('metadata', {}).get('annotations', {}))}"
    else:
        words = f"{'STORE' if name == BUDGET else asked.method} {plural}/{name}"
    return next((write for write in Write if words.startswith(write.value)), None)


def _state(annotations: dict[str, str | None]) -> str:
    if EXTERNAL_REMEDIATION in annotations:
        return "condemned" if annotations[EXTERNAL_REMEDIATION] else "lifted"
    if annotations.get(FREEING):
        return "freeing"
    if annotations.get(REQUESTED_AGAIN):
        return "requested again"
    if CORDONED in annotations:
        return "cordoned" if annotations[CORDONED] else "uncordoned"
    return "none of these"  # such as one that completes a Node which its kubelet has made
