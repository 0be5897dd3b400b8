"""Which gate a host has: never one whose held kubelet would have to start the API that opens the gate (rule 6)."""

from __future__ import annotations

import pytest

from pp_hostd.model.gate_kind import GateFacts, ServerFacts, gate_kind, hindrance, objection
from pp_hostd.model.promise import GateKind

ELSEWHERE = ServerFacts("192.0.2.1")
OWN = ServerFacts("192.0.2.2", own=True)
LOOPBACK = ServerFacts("127.0.0.1", loopback=True)
HINDERED = {
    "it starts an API server": GateFacts("/etc/kubernetes/manifests/kube-apiserver.yaml", (ELSEWHERE,)),
    "an API server's address is its own": GateFacts(servers=(ELSEWHERE, OWN)),
    "every server is reached by loopback": GateFacts(servers=(LOOPBACK, LOOPBACK)),
}
FREE = {
    "nothing is known": GateFacts(),
    "all servers are elsewhere": GateFacts(servers=(ELSEWHERE,)),
    "one server is reached directly": GateFacts(servers=(LOOPBACK, ELSEWHERE)),
}


@pytest.mark.parametrize("facts", HINDERED.values(), ids=HINDERED)
def test_a_host_that_might_wait_for_itself_relies_on_the_taint_and_hold_is_refused(facts: GateFacts) -> None:
    why = hindrance(facts)
    assert gate_kind("auto", why) is gate_kind("hold", why) is GateKind.TAINT
    assert why in objection("hold", why)
    assert not objection("auto", why)


@pytest.mark.parametrize("facts", FREE.values(), ids=FREE)
def test_any_other_host_is_held(facts: GateFacts) -> None:
    why = hindrance(facts)
    assert gate_kind("auto", why) is gate_kind("hold", why) is GateKind.HOLD
    assert not objection("hold", why)


@pytest.mark.parametrize("kind", [GateKind.TAINT, GateKind.NONE])
@pytest.mark.parametrize("why", ["", "it starts an API server"])
def test_what_is_set_otherwise_stays(kind: GateKind, why: str) -> None:
    assert gate_kind(kind.value, why) is kind
    assert not objection(kind.value, why)


def test_who_is_refused_for_loopback_addresses_reads_which_setting_helps() -> None:
    assert "direct addresses in api.servers" in objection("hold", hindrance(GateFacts(servers=(LOOPBACK,))))
