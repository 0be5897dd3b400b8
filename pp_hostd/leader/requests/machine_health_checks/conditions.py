"""The lists of conditions in the status of Machines and of their health checks, as each version of an API has them."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.status import turned_at
from pp_hostd.model.record import Fields


class Spelling(enum.Enum):
    """The API that has the kinds, and its version."""

    OPENSHIFT = "machine.openshift.io/v1beta1"
    V1BETA1 = "cluster.x-k8s.io/v1beta1"
    V1BETA2 = "cluster.x-k8s.io/v1beta2"

    @property
    def is_cluster_api(self) -> bool:
        return self is not Spelling.OPENSHIFT


class Where(enum.Enum):
    """The lists that have a condition."""

    ALL = "all"
    OLDER = "older"
    NEWER = "newer"


@frozen
class ConditionList:
    """`told` is status, reason and message of each condition, by its type. In an `older` one a condition has a
    severity, and one that is true has no reason."""

    path: tuple[str, ...]
    older: bool
    told: tuple[tuple[str, tuple[str, str, str]], ...] = ()

    def said(self, of_type: str) -> tuple[str, str, str] | None:
        return next((said for each, said in self.told if each == of_type), None)


@frozen
class Wanted:
    """A condition as it is to be. `older_reason` and `older_message` are those of older lists, where these have others.
    Without a status there is to be none."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    older_reason: str = ""
    where: Where = Where.ALL
    severity: str = "Warning"
    older_message: str | None = None

    def belongs_to(self, conditions: ConditionList) -> bool:
        return self.where is Where.ALL or (self.where is Where.OLDER) == conditions.older

    def said_in(self, conditions: ConditionList) -> tuple[str, str, str] | None:
        """Status, reason and message; None if there is to be none."""
        if not self.status:
            return None
        if not conditions.older:
            return self.status, self.reason, self.message
        if self.status == "True":
            return self.status, "", ""
        message = self.message if self.older_message is None else self.older_message
        return self.status, self.older_reason or self.reason, message

    def differs_from(self, lists: Iterable[ConditionList]) -> bool:
        return any(each.said(self.type) != self.said_in(each) for each in lists if self.belongs_to(each))


_NEWER, _OLDER = ("v1beta2", "conditions"), ("deprecated", "v1beta1", "conditions")


def read_lists(spelling: Spelling, status: Fields) -> tuple[ConditionList, ...]:
    """Those that are written: in v1beta1 the newer list only where there is one already."""
    if spelling is Spelling.V1BETA2:
        return _list(status, ("conditions",), older=False), _list(status, _OLDER, older=True)
    oldest = _list(status, ("conditions",), older=True)
    if spelling is Spelling.V1BETA1 and "v1beta2" in status:
        return oldest, _list(status, _NEWER, older=False)
    return (oldest,)


def _list(status: Fields, path: tuple[str, ...], *, older: bool) -> ConditionList:
    for section in path[:-1]:
        status = status.section(section)
    found = (each for each in status.elements(path[-1]) if isinstance(each, dict) and each.get("type"))
    told = {str(each["type"]): _said(each) for each in found}
    return ConditionList(path, older, tuple(sorted(told.items())))


def _said(condition: Json) -> tuple[str, str, str]:
    status, reason, message = (str(condition.get(key) or "") for key in ("status", "reason", "message"))
    return status, reason, message


def with_conditions(stored: Json, lists: Iterable[ConditionList], wanted: Iterable[Wanted], moment: str) -> Json:
    """The part of a merge patch of the status: in each of the lists the conditions that are wanted, and all others as
    they are stored. A condition whose status stays has become so when it did."""
    change: Json = {}
    wanted = tuple(wanted)
    for conditions in lists:
        here = [each for each in wanted if each.belongs_to(conditions)]
        if not any(each.differs_from([conditions]) for each in here):
            continue
        before, within = _stored(stored, conditions.path), change
        for section in conditions.path[:-1]:
            within = within.setdefault(section, {})
        types = {each.type for each in here}
        kept = [each for each in before if each.get("type") not in types]
        rendered = (_rendered(each, conditions, before, moment) for each in here)
        within[conditions.path[-1]] = [*kept, *(each for each in rendered if each is not None)]
    return change


def _stored(status: Json, path: tuple[str, ...]) -> list[Json]:
    found: Json = status
    for section in path[:-1]:
        found = found.get(section) or {}
    return [each for each in found.get(path[-1]) or () if isinstance(each, dict)]


def _rendered(wanted: Wanted, conditions: ConditionList, before: list[Json], moment: str) -> Json | None:
    said = wanted.said_in(conditions)
    if said is None:
        return None
    last = next((each for each in before if each.get("type") == wanted.type), {})
    since = turned_at(last, wanted.status, moment)
    rendered = {"type": wanted.type, "status": said[0], "lastTransitionTime": since}
    if not conditions.older:
        return {**rendered, "reason": said[1], "message": said[2]}
    severity = {} if said[0] == "True" else {"severity": wanted.severity}
    return {**rendered, **severity, **{key: text for key, text in zip(("reason", "message"), said[1:]) if text}}
