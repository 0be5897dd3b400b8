"""A kind of objects, in whichever version of its API the cluster serves."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Callable, TypeVar

from pp_hostd.kube.outcome import ApiError, is_unserved
from pp_hostd.kube.resources import Resource

T = TypeVar("T")


class ServedVersion:
    """`versions` are all that a cluster may serve, the newest first. The one that was served last is tried first."""

    def __init__(self, versions: tuple[Resource, ...]) -> None:
        self._versions = versions

    @property
    def first(self) -> Resource:
        """The version that the next exchange tries first."""
        return self._versions[0]

    def note(self, error: ApiError, tried: Resource) -> bool:
        """Whether the cluster does not serve the version that was tried; the next exchange begins with another then.
        Of several exchanges at once the first turns."""
        if is_unserved(error) and tried is self.first:
            self._versions = (*self._versions[1:], tried)
        return is_unserved(error)

    async def exchange(self, call: Callable[[Resource], Awaitable[T]]) -> T:
        """Returns the reply, from the first version that is served."""
        *others, last = self._versions
        for kind in others:
            try:
                return await call(kind)
            except ApiError as error:
                if not self.note(error, kind):
                    raise
        return await call(last)
