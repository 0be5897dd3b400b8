"""`pp-hostd gate hold`: it holds until the daemon opens in this boot, and says to systemd what is waited for."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.commands.gate import BY_HAND
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import RUN_DIRECTORY, StateFiles
from pp_hostd.model.boot_commitments import Gate
from tests.agent.command_line import make_host, run, start
from tests.agent.values import judged
from tests.harness.bed.namespaces import mount
from tests.harness.isolated import isolated


def configuration(directory: Path, text: str = "") -> str:
    path = directory / "pp-hostd.toml"
    path.write_text(text)
    return str(path)


def without_systemctl(directory: Path, exit_inactive: str | None = None) -> str:
    """A PATH with no systemctl, or with one that knows when the kubelet's unit was first started."""
    if exit_inactive is not None:
        (directory / "systemctl").write_text(f"#!/bin/sh\necho {exit_inactive}\n")
        (directory / "systemctl").chmod(0o755)
    return str(directory)


async def held(process: asyncio.subprocess.Process) -> str:
    """The next thing that it says it waits for."""
    assert process.stderr is not None
    return (await asyncio.wait_for(process.stderr.readline(), 30)).decode().strip()


@isolated
async def test_the_kubelet_is_held_until_the_daemon_opens_in_this_boot(tmp_path: Path) -> None:
    make_host()
    gate, files = GateFiles(RUN_DIRECTORY), StateFiles()
    gate.open("another-boot", "its promise was stored")
    files.save_report(judged())  # of another boot
    holder = await start("gate", "hold", "--config", configuration(tmp_path), PATH=without_systemctl(tmp_path))
    assert await held(holder) == f"kubelet.service is held: pp-hostd has not reported in this boot yet. {BY_HAND}"
    assert gate.state(boot_id()) == (Gate.CLOSED, ())
    files.save_report({**judged(), "boot": boot_id(), "sentence": "not armed: there is no roster yet"})
    assert await held(holder) == f"kubelet.service is held: not armed: there is no roster yet. {BY_HAND}"
    (Path(RUN_DIRECTORY) / "gate-open").write_text("damage")
    files.save_report({**judged(), "boot": boot_id(), "sentence": "not armed: it is damaged"})
    assert await held(holder) == f"kubelet.service is held: not armed: it is damaged. {BY_HAND}"
    gate.open(boot_id(), "its promise is stored")
    output, _ = await asyncio.wait_for(holder.communicate(), 30)
    assert (holder.returncode, output) == (0, b"the gate is open\n")


@isolated
async def test_what_was_opened_in_this_boot_is_passed_at_once(tmp_path: Path) -> None:
    make_host()
    GateFiles(RUN_DIRECTORY).open(boot_id(), "its promise is stored")
    result = await run("gate", "hold", "--config", configuration(tmp_path), PATH=without_systemctl(tmp_path))
    assert result == (0, "the gate is open\n", "")


@isolated
async def test_where_nothing_is_to_be_held_it_says_so_and_passes(tmp_path: Path) -> None:
    make_host()
    for text, reason in (
        ('mode = "dry-run"', "a dry run holds nothing"),
        ('gate = "taint"', 'agent.gate is "taint"'),
        ('gate = "none"', 'agent.gate is "none"'),
    ):
        config = configuration(tmp_path, f"[agent]\n{text}\n")
        result = await run("gate", "hold", "--config", config, PATH=without_systemctl(tmp_path))
        assert result == (0, f"the gate is open: {reason}\n", "")
    assert os.listdir(RUN_DIRECTORY) == []


def make_manifests() -> None:
    """As on a host of the control plane."""
    mount("tmpfs", "/etc/kubernetes" if os.path.isdir("/etc/kubernetes") else "/etc")
    os.makedirs("/etc/kubernetes/manifests", exist_ok=True)
    Path("/etc/kubernetes/manifests/api.yaml").write_text("metadata:\n  name: kube-apiserver\n")


@isolated
async def test_a_host_that_starts_the_api_server_is_not_held_whatever_is_set_and_even_if_that_is_wrong(
    tmp_path: Path,
) -> None:
    make_host()
    make_manifests()
    for text in ("", '[agent]\ngate = "hold"\n', "[agent]\ngate = 1\n"):
        config = configuration(tmp_path, text)
        result = await run("gate", "hold", "--config", config, PATH=without_systemctl(tmp_path))
        assert (result.code, 'here "taint": this host starts a part of the control plane' in result.output) == (0, True)
    assert os.listdir(RUN_DIRECTORY) == []


@isolated
async def test_a_host_that_turns_out_to_start_the_api_server_is_held_no_longer(tmp_path: Path) -> None:
    make_host()
    holder = await start("gate", "hold", "--config", configuration(tmp_path), PATH=without_systemctl(tmp_path))
    assert (await held(holder)).startswith("kubelet.service is held")
    make_manifests()
    output, _ = await asyncio.wait_for(holder.communicate(), 30)
    assert (holder.returncode, "starts a part of the control plane" in output.decode()) == (0, True)
    assert GateFiles(RUN_DIRECTORY).state(boot_id()) == (Gate.OPEN, ())


@isolated
async def test_a_gate_that_is_opened_offline_ends_the_wait_for_a_configuration_that_can_be_read(tmp_path: Path) -> None:
    make_host()
    process = await start("gate", "hold", "--config", configuration(tmp_path, "[agent]\ngate = 1\n"))
    assert (await held(process)).startswith("the gate stays closed")
    GateFiles(RUN_DIRECTORY).open(boot_id(), "eve opened it by hand, offline")
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, output) == (0, b"the gate is open\n")


@isolated
async def test_a_kubelet_that_runs_already_is_not_said_to_be_held(tmp_path: Path) -> None:
    make_host()
    path = without_systemctl(tmp_path, exit_inactive="81234567")
    result = await run("gate", "hold", "--config", configuration(tmp_path), PATH=path)
    assert (result.code, "kubelet.service has run in this boot already" in result.output) == (0, True)
    assert GateFiles(RUN_DIRECTORY).state(boot_id()) == (Gate.ABSENT, ())


@isolated
async def test_a_kubelet_that_never_ran_is_held(tmp_path: Path) -> None:
    make_host()
    path = without_systemctl(tmp_path, exit_inactive="0")
    holder = await start("gate", "hold", "--config", configuration(tmp_path), PATH=path)
    assert (await held(holder)).startswith("kubelet.service is held")
    holder.kill()
    await holder.communicate()
    assert GateFiles(RUN_DIRECTORY).state(boot_id()) == (Gate.CLOSED, ())


@isolated
async def test_systemd_hears_what_is_waited_for_and_that_it_takes_longer(tmp_path: Path) -> None:
    make_host()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind("/run/notify")
        notify.settimeout(30)
        holder = await start(
            "gate",
            "hold",
            "--config",
            configuration(tmp_path),
            PATH=without_systemctl(tmp_path),
            NOTIFY_SOCKET="/run/notify",
        )
        heard = {notify.recv(4096), notify.recv(4096)}
    holder.kill()
    await holder.communicate()
    reason = b"pp-hostd has not reported in this boot yet"
    assert heard == {b"STATUS=kubelet.service is held: " + reason, b"EXTEND_TIMEOUT_USEC=60000000"}


@isolated
async def test_a_bad_configuration_keeps_the_gate_closed_until_it_is_mended(tmp_path: Path) -> None:
    make_host()
    process = await start("gate", "hold", "--config", configuration(tmp_path, "[agent]\ngate = 1\n"))
    assert process.stderr is not None
    assert "the gate stays closed" in (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
    configuration(tmp_path, '[agent]\ngate = "none"\n')
    output, complaint = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, "the gate is open" in output.decode()) == (0, True)
    assert "agent.gate" in complaint.decode()
