"""Getting, feeding and leaving a watchdog: each refusal is a state with a sentence, and none is left unfed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.agent.act.watchdog import INHERITED, Places, SoftwareOnly, acquire, adopt
from pp_hostd.agent.act.watchdog_device import CARD_RESET, Device, Done, Trouble, Unusable, query
from pp_hostd.model.promise import WatchdogKind
from tests.agent.watchdogs import Watchdogs, watchdogs
from tests.harness.isolated import isolated

FALSE = ("false",)
SLOW = ("sh", "-c", "sleep 0.5; exit 3")


def places(directory: Path, softdog: str = "", modprobe: tuple[str, ...] = FALSE) -> Places:
    """A sysfs that shows one softdog by that name, or none."""
    sysfs = directory / "sysfs"
    sysfs.mkdir()
    if softdog:
        show(sysfs / softdog, identity="Software Watchdog")
    return Places(str(sysfs), str(directory / "watchdogs"), modprobe)


def show(entry: Path, **attributes: str) -> None:
    entry.mkdir()
    for name, value in attributes.items():
        (entry / name).write_text(f"{value}\n")


def states(served: Watchdogs, name: str = "watchdog") -> list[str]:
    return [event for event in served.names(name) if event not in ("feed", "magic")]


@isolated
async def test_the_device_is_armed_with_the_timeout_that_was_asked_for(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert (watchdog.kind, watchdog.timeout_seconds) == (WatchdogKind.HARDWARE, 10)
        assert watchdog.identity == "FUSE hardware watchdog"
        assert watchdog.troubles == ()
        assert watchdog.feed() is Done.DONE
        assert served.names() == ["open", "settimeout", "feed"]
        assert watchdog.time_left_seconds() in (9, 10)


@isolated
async def test_the_real_timeout_is_the_one_that_is_told(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"granted_seconds": 16}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.timeout_seconds == 16
        assert watchdog.set_timeout(5) is Done.DONE
        assert watchdog.timeout_seconds == 16


@isolated
async def test_a_refused_timeout_leaves_the_device_its_own_and_says_so(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"refuses_timeout": True}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert (watchdog.kind, watchdog.timeout_seconds) == (WatchdogKind.HARDWARE, 60)
        assert watchdog.troubles == (
            f"{served.path()} refused a timeout of 10 s (Invalid argument); it keeps its own 60 s",
        )


@isolated
async def test_a_device_that_calls_itself_software_watchdog_is_a_softdog(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"identity": "Software Watchdog"}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.kind is WatchdogKind.SOFTDOG


UNFIT = [
    ({"granted_seconds": 2}, "10 s were requested; its timeout is 2 s, and 4 to 3600 s is needed"),
    ({"granted_seconds": 7200}, "10 s were requested; its timeout is 7200 s, and 4 to 3600 s is needed"),
    (
        {"refuses_timeout": True, "timeout_seconds": 2},
        "refused a timeout of 10 s (Invalid argument); its timeout is 2 s",
    ),
    ({"magic_close": False}, "stops whenever its holder ends"),
]


@pytest.mark.parametrize(("behaviour", "sentence"), UNFIT)
@isolated
async def test_an_unfit_device_is_disarmed_and_softdog_takes_its_place(
    behaviour: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    devices = {"watchdog": behaviour, "watchdog1": {"identity": "Software Watchdog"}}
    with watchdogs(tmp_path, devices) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path, softdog="watchdog1"))
        assert (watchdog.kind, watchdog.timeout_seconds) == (WatchdogKind.SOFTDOG, 10)
        assert sentence in watchdog.troubles[0]
        assert served.events()[-1]["event"] == "close"
        assert served.events()[-1]["armed"] is False
        assert states(served, "watchdog1") == ["open", "settimeout"]


@isolated
async def test_an_unfit_device_that_can_not_be_stopped_is_used_as_it_is(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"granted_seconds": 2, "nowayout": True}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert (watchdog.kind, watchdog.timeout_seconds) == (WatchdogKind.HARDWARE, 2)
        assert "never to stop (nowayout)" in watchdog.troubles[1]
        assert watchdog.feed() is Done.DONE
        assert "close" not in served.names()


@isolated
async def test_without_any_device_software_alone_remains_and_says_why(tmp_path: Path) -> None:
    watchdog = await acquire(str(tmp_path / "watchdog"), 10, 4, places(tmp_path, modprobe=("no-such-modprobe",)))
    assert isinstance(watchdog, SoftwareOnly)
    assert (watchdog.kind, watchdog.timeout_seconds, watchdog.fileno()) == (WatchdogKind.SOFTWARE_ONLY, 10, None)
    assert watchdog.troubles == (
        f"{tmp_path}/watchdog does not exist or has no driver",
        "softdog is not there (no-such-modprobe can't be run: No such file or directory)",
    )
    assert watchdog.disarm() is Done.DONE


@isolated
async def test_softdog_is_loaded_when_it_is_not_there_yet(tmp_path: Path) -> None:
    entry = tmp_path / "sysfs" / "watchdog3"
    load = f"import os; os.mkdir({str(entry)!r}); open({str(entry / 'identity')!r}, 'w').write('Software Watchdog\\n')"
    with watchdogs(tmp_path, {"watchdog3": {"identity": "Software Watchdog"}}) as served:
        modprobe = (sys.executable, "-c", load)
        watchdog = await acquire(served.path("absent"), 10, 4, places(tmp_path, modprobe=modprobe))
        assert watchdog.kind is WatchdogKind.SOFTDOG
        assert len(watchdog.troubles) == 1


@isolated
async def test_softdog_is_taken_under_the_name_that_was_tried_if_it_gets_it_when_it_is_loaded(tmp_path: Path) -> None:
    entry = tmp_path / "sysfs" / "watchdog3"
    load = f"import os; os.mkdir({str(entry)!r}); open({str(entry / 'identity')!r}, 'w').write('Software Watchdog\\n')"
    with watchdogs(tmp_path, {"watchdog3": {"identity": "Software Watchdog"}}):
        modprobe = (sys.executable, "-c", load)
        watchdog = await acquire(str(tmp_path / "not-yet" / "watchdog3"), 10, 4, places(tmp_path, modprobe=modprobe))
        assert watchdog.kind is WatchdogKind.SOFTDOG


@isolated
async def test_what_modprobe_says_is_passed_on(tmp_path: Path) -> None:
    complain = ("sh", "-c", "echo Module softdog not found >&2; exit 1")
    watchdog = await acquire(str(tmp_path / "absent"), 10, 4, places(tmp_path, modprobe=complain))
    assert watchdog.troubles[1] == "softdog is not there (Module softdog not found)"


@isolated
async def test_a_device_held_by_another_process_is_busy_and_the_holder_is_named(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        holder = os.open(served.path(), os.O_WRONLY)
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert f"{served.path()} is busy: " in watchdog.troubles[0]
        assert "(pid 1) holds it" in watchdog.troubles[0]
        os.close(holder)


@isolated
async def test_a_device_that_may_not_be_opened_says_who_may_not(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"permitted": False}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.troubles[0] == f"{served.path()} can't be opened by user id 0 (permission denied)"


@isolated
async def test_what_is_no_watchdog_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    os.mkfifo(tmp_path / "fifo")
    where = places(tmp_path)
    for name in ("file", "fifo", "sysfs"):
        watchdog = await acquire(str(tmp_path / name), 10, 4, where)
        assert watchdog.troubles[0].startswith(f"{tmp_path / name} is not a watchdog")
    assert (tmp_path / "file").read_text() == "precious"


@isolated
async def test_a_disarmed_device_is_stopped_closed_and_never_fires(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.disarm() is Done.DONE
        assert watchdog.fileno() is None
        served.await_event("close")
        assert served.names() == ["open", "settimeout", "disabled", "feed", "magic", "close"]
        assert served.events()[-1]["armed"] is False
        assert isinstance(watchdog.feed(), Trouble)


@isolated
async def test_a_device_without_a_way_out_refuses_to_be_disarmed_and_can_still_be_fed(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"nowayout": True}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        outcome = watchdog.disarm()
        assert isinstance(outcome, Trouble)
        assert outcome.state is Unusable.NO_WAY_OUT
        assert watchdog.feed() is Done.DONE
        assert served.names() == ["open", "settimeout", "feed"]


@isolated
async def test_a_feed_that_fails_is_told(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"refuses_feeding": True}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.feed() == Trouble(Unusable.FAILED, f"{served.path()} can't be fed (Input/output error)")


@isolated
async def test_the_timeout_is_shortened_as_far_as_the_device_allows(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"min_seconds": 3}}) as served:
        watchdog = await acquire(served.path(), 10, 4, places(tmp_path))
        assert watchdog.shorten() is Done.DONE
        assert watchdog.timeout_seconds == 4
        asked = [event["asked_seconds"] for event in served.events() if event["event"] == "settimeout"]
        assert asked == [10, 1, 2, 4]


@isolated
async def test_an_adopted_descriptor_is_known_without_being_fed(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"boot_status": CARD_RESET}}) as served:
        before = await acquire(served.path(), 10, 4, places(tmp_path))
        descriptor = before.fileno()
        assert descriptor is not None
        watchdog = adopt(descriptor)
        assert isinstance(watchdog, Device)
        assert (watchdog.kind, watchdog.timeout_seconds) == (WatchdogKind.HARDWARE, 10)
        assert watchdog.boot_status() == CARD_RESET
        assert served.names() == ["open", "settimeout"]  # both by the first holder


@isolated
async def test_an_adopted_descriptor_of_something_else_is_refused(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    assert adopt(descriptor) == Trouble(Unusable.NOT_A_WATCHDOG, f"{INHERITED} is not a watchdog")


@isolated
async def test_a_modprobe_that_is_slow_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    task = asyncio.ensure_future(acquire(str(tmp_path / "absent"), 10, 4, places(tmp_path, modprobe=SLOW)))
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0.01)
    assert turns > 10
    assert (await task).troubles[1] == f"softdog is not there ({' '.join(SLOW)} ended with status 3)"


@isolated
async def test_a_query_tells_what_sysfs_knows_and_opens_nothing(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        show(tmp_path / "watchdog", identity="iTCO_wdt", timeout="30", state="active", nowayout="0", bootstatus="32")
        seen = query(served.path(), str(tmp_path))
        assert (seen.exists, seen.identity, seen.timeout_seconds, seen.state) == (True, "iTCO_wdt", 30, "active")
        assert (seen.nowayout, seen.boot_status, seen.time_left_seconds) == (0, 32, None)
        assert "not opened" in seen.note
        assert served.names() == []


def test_a_query_about_nothing_says_so() -> None:
    seen = query("/nowhere/watchdog")
    assert (seen.exists, seen.identity, seen.holders) == (False, None, ())
