"""Failures as the API tells them: one exception that carries a Status with code, reason, message and details."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pp_hostd.kube.resources import Resource


class Cause(NamedTuple):
    """One field that is wrong, and why."""

    reason: str
    field: str
    message: str


def wrong(field: str, value: Any, why: str) -> Cause:
    """A value that is not allowed."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {json.dumps(value)}: {why}")


def required(field: str, why: str = "") -> Cause:
    """A value that is missing."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def too_long(field: str, limit: int) -> Cause:
    """Values that are too much together."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


class StatusError(Exception):
    """The API's refusal. `body()` is what a server sends; `code` is its HTTP status."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None, continue_token: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = continue_token

    def body(self) -> dict[str, Any]:
        """The Status object."""
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.continue_token:
            body["metadata"]["continue"] = self.continue_token
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def success(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """The Status that reports a deletion."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**body, "details": {**_details(resource.plural, resource.group, name), "uid": uid}}


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def server_error(message: str) -> StatusError:
    """500, which the API also answers to a few requests that are the client's fault."""
    return StatusError(500, "", message)


def not_found(resource: Resource, name: str) -> StatusError:
    """404 for an object."""
    message = f"{_qualified(resource.plural, resource.group)} {_quoted(name)} not found"
    return StatusError(404, "NotFound", message, _details(resource.plural, resource.group, name))


def no_such_path() -> StatusError:
    """404 for a path that nothing is served under."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 on creation."""
    message = f"{_qualified(resource.plural, resource.group)} {_quoted(name)} already exists"
    return StatusError(409, "AlreadyExists", message, _details(resource.plural, resource.group, name))


def conflict(resource: Resource, name: str, why: str, *, of_kind: bool = False) -> StatusError:
    """409 on a write whose precondition fails. Deletions name the kind (`of_kind`), other writes the resource."""
    noun = resource.kind if of_kind else resource.plural
    message = f"Operation cannot be fulfilled on {_qualified(noun, resource.group)} {_quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, _details(noun, resource.group, name))


def modified(resource: Resource, name: str) -> StatusError:
    """409: another version is stored than the one that the writer had read."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def forbidden(group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    """403."""
    subject = _qualified(plural, group) + (f" {_quoted(name)}" if name else "")
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", _details(plural, group, name, causes))


def invalid(group: str, noun: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 with every field that is wrong."""
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    what = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    message = f"{_qualified(noun, group)} {_quoted(name)} is invalid: {what}"
    return StatusError(422, "Invalid", message, _details(noun, group, name, causes))


def expired(message: str, continue_token: str = "") -> StatusError:
    """410: the history that this needs is forgotten."""
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large_version(asked: int, current: int) -> StatusError:
    """504: the request names a version that is still to come."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _qualified(noun: str, group: str) -> str:
    return f"{noun}.{group}" if group else noun


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _details(noun: str, group: str, name: str, causes: Sequence[Cause] = ()) -> dict[str, Any]:
    details: dict[str, Any] = {key: value for key, value in (("name", name), ("group", group)) if value}
    details["kind"] = noun
    if causes:
        details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return details
