"""The equipment of tests: an event loop for `async def` tests, and a real control plane for those that request it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
from collections.abc import Generator, Iterator
from typing import Any

import freezegun
import pytest
from hypothesis import settings

from tests.harness.controlplane import RealCluster
from tests.harness.stalls import Repeats

pytest_plugins = ["tests.quick"]

# freezegun looks at every module, and this one imports its parts as soon as somebody looks.
freezegun.configure(extend_ignore_list=["kubernetes"])


def pytest_configure(config: pytest.Config) -> None:
    """Hear Ctrl-C, and let programs hear it, in a shell's background too, where it would be ignored.

    How long an example takes says something about the machine, and nothing about what is tested.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")
    config.pluginmanager.register(Repeats())


def pytest_collection_finish() -> None:
    """Keep all that was collected out of the garbage collector's sight: thousands of tests take it half a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end; pytest-timeout bounds it from outside."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show beside a failure what the control plane's programs last said."""
    report = yield
    for used in getattr(item, "funcargs", {}).values():
        if report.failed and isinstance(used, RealCluster):
            report.sections += [(f"{name}'s log", tail) for name, tail in used.supervisor.log_tails().items()]
    return report


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """One kube-apiserver and etcd for the whole run: no test may count on finding it empty."""
    with RealCluster.start() as cluster:
        yield cluster
