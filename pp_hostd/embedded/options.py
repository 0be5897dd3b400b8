"""What a request says beside its path: the query string and the body, read into what the store takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import Cause, StatusError, bad_request, invalid

Parameters = Mapping[str, str]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
_POLICIES = (None, "Foreground", "Background", "Orphan")


def query(namespace: str, parameters: Parameters) -> Query:
    """Which objects a list or a watch is about."""
    return Query(
        namespace=namespace,
        label_selector=parameters.get("labelSelector", ""),
        field_selector=parameters.get("fieldSelector", ""),
        resource_version=parameters.get("resourceVersion", ""),
        resource_version_match=parameters.get("resourceVersionMatch", ""),
        limit=number(parameters, "limit") or 0,
        continue_token=parameters.get("continue", ""),
    )


def number(parameters: Parameters, name: str) -> int | None:
    """The number under that name, if there is something."""
    text = parameters.get(name)
    try:
        return int(text) if text else None
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def truth(parameters: Parameters, name: str) -> bool:
    """Whether the request wants that."""
    return parameters.get(name, "false").lower() not in ("false", "0")


def body(content_type: str, wanted: str, raw: bytes) -> Any:
    """A JSON body of the type that is wanted. Without a type it counts as plain JSON."""
    if (content_type or JSON).partition(";")[0].strip().lower() != wanted:
        message = f"the body of the request was in an unknown format - accepted media types include: {wanted}"
        raise StatusError(415, "UnsupportedMediaType", message)
    return _parsed(raw)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from None


def delete_options(parameters: Parameters, raw: bytes) -> DeleteOptions:
    """The options of a deletion: from the body, or else from the query string."""
    read = _parsed(raw or b"{}")
    if not isinstance(read, dict) or read.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("the body of a deletion must be DeleteOptions")
    conditions = read.get("preconditions") or {}
    grace = read.get("gracePeriodSeconds", number(parameters, "gracePeriodSeconds"))
    policy = read.get("propagationPolicy", parameters.get("propagationPolicy"))
    if not isinstance(conditions, dict) or not isinstance(grace, (int, type(None))):
        raise bad_request("DeleteOptions: preconditions must be an object, gracePeriodSeconds a number")
    if policy not in _POLICIES:
        why = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan"'
        cause = Cause("FieldValueNotSupported", "propagationPolicy", why)
        raise invalid("meta.k8s.io", "DeleteOptions", "", [cause])
    return DeleteOptions(conditions.get("uid"), conditions.get("resourceVersion"), grace, policy)
