"""The probes, each against the real thing or files like it: what they find, and that nothing hangs or raises."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pp_hostd.agent.act.watchdog_device import all_known, query, same_device
from pp_hostd.agent.doctor.facts import AccessFacts, DaemonFacts, KernelFacts, NotKnown, Rival, SystemdFacts
from pp_hostd.agent.doctor.probe import host
from pp_hostd.agent.doctor.probe.cluster import Calls, expiring, server_certificate
from pp_hostd.agent.doctor.probe.cluster import cluster as look_at_cluster
from pp_hostd.agent.doctor.probe.host import links, parse_shown, systemd
from pp_hostd.agent.doctor.probe.in_time import Probes, in_thread
from pp_hostd.agent.doctor.probe.peers import some
from pp_hostd.errors import UserError
from pp_hostd.kube.certificate import expiry
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.credentials import Credentials
from pp_hostd.kube.kubeconfig import Kubeconfig, Material, load
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.model.endpoint import Endpoint, parse_endpoint
from pp_hostd.model.keys import AGENT, NAMESPACE, ROSTER
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.settings import Api, Settings
from tests.agent.command_line import daemon, make_host
from tests.agent.values import judged
from tests.contract.objects import sample
from tests.harness.cluster import Cluster
from tests.harness.isolated import isolated
from tests.harness.pki import CertificateAuthority
from tests.kube.credential_files import Files

ROSTER_MAP = {"metadata": {"name": ROSTER}, "data": {ROSTER: Roster.of(1, 1, []).render()}}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_probe_that_hangs_or_breaks_is_told_and_left_behind() -> None:
    probes, released = Probes(), threading.Event()

    def refuse() -> None:
        raise UserError("it is broken", "Mend it.")

    def forbid() -> None:
        raise UserError("key: can't be read by user id 7 (permission denied)", "Allowed: a secret.")

    began_at = time.monotonic()
    hung = probes.begin("what hangs", in_thread(released.wait), 2)
    broken = probes.begin("what breaks", in_thread(lambda: 1 // 0), 5)
    refused = probes.begin("what refuses", in_thread(refuse), 5)
    forbidden = await probes.begin("what is forbidden", in_thread(forbid), 5)
    assert isinstance(forbidden, NotKnown) and (forbidden.advice, forbidden.forbidden) == ("Run this as root.", True)
    assert "what hangs" in probes.waiting
    assert await refused == NotKnown("it is broken", "Mend it.")
    assert isinstance(await broken, NotKnown)
    found = await hung
    assert isinstance(found, NotKnown) and found.why == "it took more than 2 s"
    assert time.monotonic() - began_at < 30 and probes.waiting == []
    released.set()


def test_the_kernel_is_asked_through_its_files(tmp_path: Path) -> None:
    assert host.kernel(str(tmp_path), str(tmp_path)) == KernelFacts()
    write(tmp_path / "sys/kernel/panic", "-1\n")
    write(tmp_path / "sys/kernel/sysrq", "438\n")
    write(tmp_path / "sysrq-trigger", "")
    write(tmp_path / "kernel/kexec_crash_loaded", "1\n")
    assert host.kernel(str(tmp_path), str(tmp_path)) == KernelFacts(-1, 438, True, True)


@pytest.mark.parametrize(
    ("flags", "vendor", "hypervisor"),
    [
        ("fpu vme hypervisor lahf_lm", "QEMU\n", "QEMU"),
        ("fpu vme hypervisor", None, "unnamed"),
        ("fpu vme", "Dell Inc.\n", ""),
        ("", "QEMU\n", "QEMU"),
        ("fpu vme", None, ""),
    ],
)
def test_a_virtual_machine_is_known_by_its_processor_or_its_firmware(
    tmp_path: Path, flags: str, vendor: str | None, hypervisor: str
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    (tmp_path / "class/dmi/id").mkdir(parents=True)
    if vendor is not None:
        (tmp_path / "class/dmi/id/sys_vendor").write_text(vendor)
    assert host.kernel(str(tmp_path), str(tmp_path)).hypervisor == hypervisor


def test_other_programs_that_fence_are_found_and_threads_of_the_kernel_are_not(tmp_path: Path) -> None:
    processes = {
        1: ("systemd", "/sbin/init\0"),
        42: ("watchdogd", ""),
        50: ("sbd", "sbd: inquisitor\0"),
        60: ("manager", "/self-node-remediation/manager\0--is-manager=false\0"),
        70: ("python3", "python3\0watchdog.py\0"),
    }
    for pid, (name, command) in processes.items():
        write(tmp_path / str(pid) / "comm", f"{name}\n")
        write(tmp_path / str(pid) / "cmdline", command)
    assert host.rivals(str(tmp_path)) == [Rival("sbd", 50), Rival("self-node-remediation", 60)]


@isolated
async def test_the_daemon_is_found_with_its_process_and_its_report() -> None:
    make_host()
    assert await in_thread(host.daemon) == DaemonFacts()
    async with daemon(judged()):
        found = await in_thread(host.daemon)
    assert found.pid == os.getpid()
    assert not isinstance(found.report, NotKnown) and found.report["state"] == "healthy"
    assert found.locked_kib == 0 and found.locked_limit


def test_units_are_told_apart_by_their_order_as_an_alias_is_shown_by_another_name() -> None:
    text = "Id=a.service\nLoadState=loaded\nRequires=\n\nId=c.service\nLoadState=masked\n"
    assert parse_shown(text) == [
        {"Id": "a.service", "LoadState": "loaded", "Requires": ""},
        {"Id": "c.service", "LoadState": "masked"},
    ]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'not booted with systemd' >&2; exit 1", "not booted with systemd"),
        ("sleep 60", "did not end within 5 s"),
    ],
)
def test_a_systemd_that_does_not_answer_is_told(tmp_path: Path, script: str, why: str) -> None:
    command = tmp_path / "systemctl"
    command.write_text(f"#!/bin/sh\n{script.replace('sleep', 'exec sleep')}\n")
    command.chmod(0o755)
    found = systemd(["a.service"], str(command))
    assert isinstance(found, NotKnown) and why in found.why


def test_a_host_without_systemctl_is_told_and_one_with_it_is_asked(tmp_path: Path) -> None:
    missing = systemd(["a.service"], str(tmp_path / "systemctl"))
    assert isinstance(missing, NotKnown) and "can't be run (No such file or directory)" in missing.why
    command = tmp_path / "systemctl"
    command.write_text('#!/bin/sh\n[ $# = 2 ] && echo Version=252 || printf "Id=b.service\\n\\nId=c.service\\n"\n')
    command.chmod(0o755)
    found = systemd(["a.service", "c.service"], str(command))
    assert found == SystemdFacts(
        {"Version": "252"}, {"a.service": {"Id": "b.service"}, "c.service": {"Id": "c.service"}}
    )


@isolated
def test_links_are_told_with_their_addresses_and_whether_they_work() -> None:
    found = links()
    assert not isinstance(found, NotKnown)
    assert [(link.name, link.is_up, link.is_hardware) for link in found] == [("lo", False, False)]


def test_a_watchdog_is_known_by_its_driver_and_options_where_sysfs_tells_them(tmp_path: Path) -> None:
    write(tmp_path / "watchdog0" / "identity", "iTCO_wdt\n")
    write(tmp_path / "watchdog0" / "options", "0x8180\n")
    (tmp_path / "watchdog0" / "device").mkdir()
    (tmp_path / "watchdog0" / "device" / "driver").symlink_to("../../../drivers/iTCO_wdt")
    write(tmp_path / "watchdog1" / "options", "garbage\n")
    seen = query("/dev/watchdog", str(tmp_path))
    assert (seen.identity, seen.driver, seen.options) == ("iTCO_wdt", "iTCO_wdt", 0x8180)
    assert query("/dev/watchdog1", str(tmp_path)).options is None
    assert all_known(str(tmp_path)) == ["watchdog0 (iTCO_wdt)", "watchdog1 (unnamed)"]


def test_the_first_watchdog_has_two_names() -> None:
    assert same_device("/dev/watchdog", "/dev/watchdog0")
    assert not same_device("/dev/watchdog", "/dev/watchdog1")


def parsed(port: int) -> Endpoint:
    found = parse_endpoint(f"https://127.0.0.1:{port}")
    assert found is not None
    return found


async def make_contents(admin: ApiClient, node: str) -> None:
    await admin.create(NODES, sample(NODES, node))
    for kind, body, place in (
        (NAMESPACES, {"metadata": {"name": NAMESPACE}}, None),
        (CONFIG_MAPS, ROSTER_MAP, NAMESPACE),
    ):
        try:
            await admin.create(kind, body, namespace=place)
        except ApiError as error:
            assert error.outcome is Outcome.CONFLICT  # other tests share the cluster


def outcomes(calls: Calls) -> dict[str, Any]:
    """By check: nothing, the outcome of the failed call, or why it was not made."""
    errors = {each.check: each.error for each in calls.attempts}
    return {check: error.outcome if isinstance(error, ApiError) else error for check, error in errors.items()}


async def test_each_right_is_tried_and_nothing_is_changed(client_of: Callable[[str], ApiClient], unique: str) -> None:
    admin = client_of("admin")
    await make_contents(admin, unique)
    before = await admin.get(NODES, unique)
    calls = Calls(admin, "node", unique)
    await calls.make()
    assert set(outcomes(calls).values()) == {None} and len(calls.attempts) == 7
    assert calls.roster is not None and ROSTER in calls.roster["data"]
    after = await admin.get(NODES, unique)
    assert after == before and AGENT not in (after["metadata"].get("annotations") or {})


async def test_a_right_that_is_missing_is_found_by_the_call_that_needs_it(
    client_of: Callable[[str], ApiClient], unique: str
) -> None:
    await make_contents(client_of("admin"), unique)
    reader = Calls(client_of("reader"), "node", unique)
    await reader.make()
    assert [check for check, error in outcomes(reader).items() if error is Outcome.FORBIDDEN] == ["api-write-node"]
    nobody = Calls(client_of("nobody"), "node", unique)
    await nobody.make()
    found = outcomes(nobody)
    write_error = found.pop("api-write-node")
    assert set(found.values()) == {Outcome.FORBIDDEN}
    assert isinstance(write_error, NotKnown) and write_error.why == "the Node could not be read"


async def test_an_api_that_is_away_is_asked_once(kubeconfig_of: Callable[[str], Kubeconfig]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    known = kubeconfig_of("admin")
    away = ApiClient(Kubeconfig(**{**vars(known), "endpoints": (parsed(port),)}), deadline_seconds=5)
    calls = Calls(away, "openshift", "a")
    await calls.make()
    found = outcomes(calls)
    assert found.pop("api-read-node") is Outcome.UNREACHABLE
    assert {error.why for error in found.values()} == {"the API can't be reached (unreachable)"}


async def test_the_ends_of_certificates_are_found_those_of_the_server_too(cluster: Cluster) -> None:
    path = cluster.kubeconfig("admin")
    found, roster = await look_at_cluster(Settings(api=Api(kubeconfig=str(path), read_deadline_seconds=10)), "nobody")
    assert isinstance(found, AccessFacts)
    ends = {each.check: each.ends_wallclock for each in found.expiring}
    assert set(ends) == {"client-certificate", "authority", "server-certificate"}
    assert all(isinstance(end, datetime) and end > datetime.now(timezone.utc) for end in ends.values())
    assert found.exposed == "" and roster is not None
    path.chmod(0o644)
    again, _ = await look_at_cluster(Settings(api=Api(kubeconfig=str(path))), "nobody")
    assert isinstance(again, AccessFacts) and again.exposed == "mode 0644"


def test_a_server_that_can_not_be_reached_shows_no_certificate() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = parsed(taken.getsockname()[1])
    found = server_certificate(endpoint, "")
    assert isinstance(found.ends_wallclock, NotKnown) and "refused" in found.ends_wallclock.why


def token(claims: object) -> bytes:
    return b"e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=") + b".c2ln"


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (token({"exp": 1772323200}), datetime(2026, 3, 1, tzinfo=timezone.utc)),
        (token({"iat": 1}), None),
        (token([]), None),
        (token({"exp": "soon"}), None),
        (token({"exp": 1e300}), None),
        (b"opaque", None),
        (b"a.\xff.c", None),
    ],
)
def test_a_token_tells_its_end_if_it_is_one_that_does(data: bytes, ends: datetime | None) -> None:
    kubeconfig: Any = SimpleNamespace(certificate=None, authority=None, token=Material("token", data=data))
    assert [each.ends_wallclock for each in expiring(kubeconfig)] == ([] if ends is None else [ends])


async def test_of_several_authorities_the_first_to_end_counts(cluster: Cluster) -> None:
    known = load(str(cluster.kubeconfig("admin")))
    assert known.authority is not None
    pem = known.authority.read() * 2
    kubeconfig: Any = SimpleNamespace(certificate=None, authority=Material("ca", data=pem), token=None)
    (found,) = expiring(kubeconfig)
    assert isinstance(found.ends_wallclock, datetime)
    assert found.ends_wallclock > datetime.now(timezone.utc) + timedelta(hours=1)
    broken: Any = SimpleNamespace(certificate=None, authority=Material("ca", data=b"nothing"), token=None)
    (unknown,) = expiring(broken)
    assert isinstance(unknown.ends_wallclock, NotKnown)


def test_a_member_is_not_asked_about_itself() -> None:
    members = [Member(name, None, "192.0.2.1", f"uid-{name}", 1, None) for name in "abcdef"]
    electorate: Any = Roster.of(1, 1, members).as_of(1)
    chosen = [tuple(member.name for member in some(electorate, "a", 2)) for _ in range(50)]
    assert all(len(names) == 2 and "a" not in names for names in chosen)
    assert len(set(chosen)) > 1
    assert [member.name for member in some(electorate, "a", 50)] == list("bcdef")


def test_of_a_kubeconfigs_certificate_and_a_renewed_one_the_end_of_the_one_in_use_counts(tmp_path: Path) -> None:
    authority = CertificateAuthority("expiring")
    files = Files(tmp_path, "https://192.0.2.1", authority)
    issued = authority.issue("first", starts_seconds_ago=60, valid_seconds=40 * 86400)
    (tmp_path / "client.pem").write_bytes(issued.cert_pem + issued.key_pem)
    in_use = Credentials(replace(files.kubeconfig, renewed=str(tmp_path / "client.pem"))).current().certificate
    certificate, _ = expiring(files.kubeconfig, in_use)
    assert certificate.ends_wallclock == expiry(issued.cert_pem.decode())
