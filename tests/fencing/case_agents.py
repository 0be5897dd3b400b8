"""Debian's own agents, run by the helper, against BMCs: power goes when the reply says so, and trouble is no answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from pp_hostd.fencing.call import AgentReply, Power, is_done, power_of
from pp_hostd.fencing.client import run_agent
from tests.fencing.bmcs import Bmc, Ipmi, Redfish
from tests.fencing.helpers import Helpers
from tests.fencing.values import a_call
from tests.harness.eventually import eventually
from tests.harness.supervise import Supervisor

WRONG = "not-the-password"
Act = Callable[..., AgentReply]


@pytest.fixture
def helpers(tmp_path: Path) -> Iterator[Helpers]:
    """They run the agents that are installed."""
    with Helpers.listening(tmp_path / "sock") as helpers:
        yield helpers


@pytest.fixture
def act(helpers: Helpers) -> Act:
    def act(bmc: Bmc, action: str, **more: str) -> AgentReply:
        reply = asyncio.run(run_agent(helpers.path, a_call({**bmc.access, **more}, bmc.agent, action)))
        print(bmc.agent, action, more, reply)
        return reply

    return act


@pytest.fixture
def ipmi(act: Act) -> Iterator[Ipmi]:
    """Its host is on."""
    with contextlib.closing(Supervisor()) as supervisor:
        bmc = Ipmi(supervisor)
        bmc.start()
        try:
            eventually(lambda: power_of(act(bmc, "status")) is Power.OFF, "the BMC answers", 60)
            assert is_done(act(bmc, "on")) and bmc.host_pid()
            yield bmc
        finally:
            bmc.switch_off()


@pytest.fixture
def redfish(act: Act) -> Iterator[Redfish]:
    """Its host is off."""
    with contextlib.closing(Supervisor()) as supervisor:
        bmc = Redfish(supervisor)
        bmc.start()
        eventually(lambda: power_of(act(bmc, "status")) is Power.OFF, "the BMC answers", 60)
        yield bmc


def test_an_ipmi_host_is_on_then_off_then_on_again(ipmi: Ipmi, act: Act) -> None:
    assert power_of(act(ipmi, "status")) is Power.ON
    assert is_done(act(ipmi, "off")) and not ipmi.host_pid()
    assert power_of(act(ipmi, "status")) is Power.OFF
    assert is_done(act(ipmi, "off"))  # already
    assert is_done(act(ipmi, "on")) and ipmi.host_pid()
    assert power_of(act(ipmi, "status")) is Power.ON


def test_a_reboot_is_a_power_off_and_a_power_on(ipmi: Ipmi, act: Act) -> None:
    before = ipmi.host_pid()
    assert is_done(act(ipmi, "reboot"))
    assert ipmi.host_pid() not in (0, before)


def test_a_power_off_that_is_accepted_and_never_done_fails_and_the_status_says_on(ipmi: Ipmi, act: Act) -> None:
    ipmi.set_wires("dead")
    assert act(ipmi, "off", power_timeout="2").code == 1
    assert power_of(act(ipmi, "status")) is Power.ON and ipmi.host_pid()


def test_a_redfish_host_is_off_then_on_then_off_again(redfish: Redfish, act: Act) -> None:
    assert is_done(act(redfish, "on"))
    assert power_of(act(redfish, "status")) is Power.ON
    assert is_done(act(redfish, "off"))
    assert power_of(act(redfish, "status")) is Power.OFF


@pytest.mark.parametrize("action", ["status", "off"])
@pytest.mark.parametrize("kind", ["ipmi", "redfish"])
def test_a_bmc_that_is_unreachable_says_nothing_about_its_host(
    request: pytest.FixtureRequest, kind: str, action: str, act: Act
) -> None:
    bmc: Bmc = request.getfixturevalue(kind)
    bmc.stop()
    reply = act(bmc, action, power_timeout="3")
    assert (power_of(reply), is_done(reply), reply.code) == (Power.UNKNOWN, False, 1)


@pytest.mark.parametrize("action", ["status", "off"])
@pytest.mark.parametrize("kind", ["ipmi", "redfish"])
def test_a_wrong_password_says_nothing_about_the_host_and_is_not_shown(
    request: pytest.FixtureRequest, kind: str, action: str, act: Act
) -> None:
    reply = act(request.getfixturevalue(kind), action, password=WRONG, verbose="1")
    assert (power_of(reply), is_done(reply), reply.code) == (Power.UNKNOWN, False, 1)
    assert WRONG not in reply.output


def test_an_agent_that_takes_longer_than_it_may_is_killed(ipmi: Ipmi, helpers: Helpers) -> None:
    slow = a_call({**ipmi.access, "delay": "9000"}, ipmi.agent, "off", seconds=3)
    reply = asyncio.run(run_agent(helpers.path, slow))
    assert reply.code is None and "was killed" in reply.trouble
    assert ipmi.host_pid()


@pytest.mark.parametrize(("action", "code"), [("status", 0), ("off", 1), ("status", 0)])
def test_the_dummy_that_never_switches_off_fails_and_is_on(helpers: Helpers, action: str, code: int) -> None:
    call = a_call({"type": "fail", "plug": "host", "power_timeout": "1"}, "fence_dummy", action)
    assert asyncio.run(run_agent(helpers.path, call)).code == code
