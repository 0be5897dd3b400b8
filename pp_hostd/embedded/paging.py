"""Lists in pages, all of one revision: which rows a page has, and the token that leads to the next."""

from __future__ import annotations

import base64
import json
from typing import Any

from pp_hostd.embedded.history import Key, Table
from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.selectors import Selector, parse_fields, parse_labels
from pp_hostd.embedded.status import Cause, StatusError, bad_request, expired, invalid, too_large_version
from pp_hostd.frozen import frozen

_ANY_REVISION = -1
"""In a token: go on after that key in whatever is stored now."""

_START = Key("", "")
_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or go on, inconsistently, with the continue token in this response."
)


@frozen
class Query:
    """The parameters of a list or a watch; an empty namespace stands for all. Watches ignore the last three."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""

    def selector(self, kind: Kind) -> Selector:
        """Both selectors, read; what can't be understood, or is not selectable in that kind, is a bad request."""
        return Selector(parse_labels(self.label_selector), parse_fields(kind, self.field_selector))


def page(table: Table, query: Query, current: int) -> tuple[list[Object], Object]:
    """The objects on the requested page, and the metadata of the list."""
    revision, start = _where(query, current)
    selector = query.selector(table.kind)
    try:
        rows = [row for row in table.selected(selector, query.namespace, revision) if row[0] > start]
    except StatusError:
        told = expired(_CONTINUE_TOO_OLD, _token(_ANY_REVISION, start)) if query.continue_token else expired(_TOO_OLD)
        raise told from None
    metadata: Object = {"resourceVersion": str(revision)}
    if 0 < query.limit < len(rows):
        metadata["continue"] = _token(revision, rows[query.limit - 1][0])
        if not selector:  # else the real server would have to look at each of them
            metadata["remainingItemCount"] = len(rows) - query.limit
        rows = rows[: query.limit]
    return [row.object() for _, row in rows], metadata


def _where(query: Query, current: int) -> tuple[int, Key]:
    """The revision to show, and the key to start after."""
    version, match = query.resource_version, query.resource_version_match
    if query.continue_token:
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = _read_token(query.continue_token)
        return (current if revision == _ANY_REVISION else revision), start
    if version and not version.isdecimal():
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{version}"')
    if match not in ("", "Exact", "NotOlderThan") or (match and not version):
        why = 'Unsupported value: supported are, together with a resourceVersion, "Exact" and "NotOlderThan"'
        raise invalid("meta.k8s.io", "ListOptions", "", [Cause("FieldValueNotSupported", "resourceVersionMatch", why)])
    asked = int(version or 0)
    if asked > current:
        raise too_large_version(asked, current)
    exact = match == "Exact" or (query.limit > 0 and not match)
    return (asked if asked and exact else current), _START


def _token(revision: int, last: Key) -> str:
    plain = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": list(last)})
    return base64.urlsafe_b64encode(plain.encode()).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        read: Any = json.loads(base64.urlsafe_b64decode(token))
        namespace, name = read["start"]
        return int(read["rv"]), Key(str(namespace), str(name))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise bad_request("invalid continue token: continue key is not valid") from None
