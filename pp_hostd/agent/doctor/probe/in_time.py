"""Probes side by side, each with a deadline of its own: whatever one hangs on, the others are heard."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable
from typing import Any, Callable, TypeVar

from pp_hostd.agent.doctor.facts import NotKnown
from pp_hostd.errors import UserError

T = TypeVar("T")


class Probes:
    """`waiting` are the names of those that have not ended."""

    def __init__(self) -> None:
        self.waiting: list[str] = []

    def begin(self, name: str, work: Awaitable[T | NotKnown], seconds: float) -> asyncio.Task[T | NotKnown]:
        """To be awaited for what it finds."""
        return asyncio.ensure_future(self._run(name, work, seconds))

    async def _run(self, name: str, work: Awaitable[T | NotKnown], seconds: float) -> T | NotKnown:
        """Neither time nor any mistake of its own makes the doctor fall silent."""
        self.waiting.append(name)
        try:
            return await asyncio.wait_for(work, seconds)
        except asyncio.TimeoutError:
            return NotKnown(f"it took more than {seconds:g} s", "Something hangs: see dmesg, and top for state D.")
        except UserError as error:
            return NotKnown.by(error)
        except Exception as error:
            return NotKnown(f"unforeseen: {error!r}", "Please report this.")
        finally:
            self.waiting.remove(name)


def in_thread(look: Callable[[], T]) -> asyncio.Future[T]:
    """For what blocks. Nobody waits for the thread in the end, as a thread can't be stopped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def run() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            try:
                found = look()
            except Exception as error:
                loop.call_soon_threadsafe(tell, future.set_exception, error)
            else:
                loop.call_soon_threadsafe(tell, future.set_result, found)

    threading.Thread(target=run, daemon=True).start()
    return future
