"""The gate: what keeps the kubelet back after a boot, and what does not."""

from __future__ import annotations

from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from tests.harness.bed.relay import Mode
from tests.machines.bed import ETC, Bed, Plan
from tests.machines.patience import eventually

OTHERS = ("other-1", "other-2")
BROKEN = b"agent.self_timeout_secnds = 5\n"
STATIC_POD = {"/etc/kubernetes/manifests/static": b""}


def test_a_broken_configuration_keeps_the_gate_shut_and_says_what_to_do(bed: Bed) -> None:
    (guest,) = bed.gather({"broken": Plan(files={f"{ETC}/pp-hostd.toml": BROKEN})}, OTHERS)
    guest.start_units()
    advice = "did you mean agent.self_timeout_seconds"
    eventually(lambda: advice in guest.console(), "the console says what to do", 120)
    for unit in ("kubelet", "pp-hostd-gate"):
        assert advice in guest.attempt(f"systemctl status --full {unit}").said
    assert not guest.ticks()
    guest.write(f"{ETC}/pp-hostd.toml", bed.settings_file({}))
    eventually(guest.ticks, "the gate opens once it is mended", 120)


def test_a_host_that_boots_without_the_api_is_held_until_there_is_one(bed: Bed) -> None:
    (guest,) = bed.gather({"alone": Plan()}, OTHERS)
    bed.set_api(Mode.REFUSE, guest)
    guest.start_units()
    eventually(lambda: "is held" in guest.attempt("systemctl status pp-hostd-gate").said, "it is held", 120)
    assert not guest.ticks()
    bed.set_api(Mode.PASS, guest)
    eventually(guest.ticks, "its kubelet is let go", 120)
    bed.await_armed(guest)


def test_a_control_plane_host_that_is_reset_starts_its_static_pod_and_its_kubelet_sees_the_taint(bed: Bed) -> None:
    (guest,) = bed.gather({"control-plane": Plan({"agent.gate": "taint"}, STATIC_POD)}, OTHERS)
    bed.start_armed(guest)
    with bed.leader():
        bed.contents.patch(NODES, guest.name, {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}})
        guest.await_reset(0, 60)
    before = len(guest.console())
    eventually(lambda: "runs its static pod" in guest.console()[before:], "its static pod runs", 240)
    taint = "sees the taint pp-hostd.io/condemned"
    eventually(lambda: taint in guest.console()[before:], "its kubelet sees the taint", 60)
