"""`pp-leader restore`: a missing Node comes back from its backup, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, OPENSHIFT_MACHINES
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import BACKUP_KEY, CONDEMNATION_ID, FREED, NAMESPACE, backup_name
from pp_hostd.model.lease import LEASE, renewed_spec
from tests.contract.objects import sample
from tests.leader.access.attempts import Attempt
from tests.leader.desk import WHEN, Desk, desk

__all__ = ["desk"]

TAINT = {"key": "example.com/dedicated", "value": "a", "effect": "NoSchedule"}
BACKUP = Backup(
    name="lost",
    uid="uid-1",
    id=7,
    labels={"example.com/rack": "4"},
    annotations={"example.com/owner": "adam"},
    spec={"providerID": "metal3://host-1", "taints": [TAINT]},
)
LOST = ("lost", "--machines", "node")


@pytest.fixture(autouse=True)
def _fresh(desk: Desk) -> None:
    """Its Node is missing, a backup is there, and nobody leads."""
    desk.remove(NODES, "lost", None)
    desk.remove(LEASES, LEASE)
    store(desk, BACKUP.render())


def store(desk: Desk, text: str) -> None:
    desk.store(backup_name("lost"), {BACKUP_KEY: text})


def has_backup(desk: Desk) -> bool:
    return desk.world.make(Attempt("get", CONFIG_MAPS, backup_name("lost"), namespace=NAMESPACE)).ok


def has_node(desk: Desk) -> bool:
    return desk.world.make(Attempt("get", NODES, "lost")).ok


@pytest.mark.parametrize(("machines", "more"), [("node", {CONDEMNATION_ID: "7"}), ("openshift", {})])
def test_the_node_is_back_with_all_that_it_had_and_our_marks(desk: Desk, machines: str, more: Json) -> None:
    said = desk.run("restore", "lost", "--machines", machines)
    assert (said.code, said.complaint) == (0, "")
    node = desk.world.read(NODES, "lost")
    assert [(each["type"], each["status"]) for each in node["status"]["conditions"]] == [("Ready", "Unknown")]
    assert node["metadata"]["labels"] == BACKUP.labels
    assert node["metadata"]["annotations"] == {**BACKUP.annotations, FREED: "7", **more}
    assert node["spec"]["providerID"] == "metal3://host-1"
    assert TAINT in node["spec"]["taints"]
    assert has_backup(desk)


def test_a_machine_that_is_still_condemned_is_told_of(desk: Desk) -> None:
    annotated = {"example.com/owner": "adam", "machine.openshift.io/machine": "default/lost"}
    store(desk, replace(BACKUP, annotations=annotated).render())
    condemned = sample(OPENSHIFT_MACHINES, "lost", **Condemned(7, WHEN).render())
    desk.world.create(OPENSHIFT_MACHINES, "", condemned, "default")
    said = desk.run("restore", "lost", "--machines", "openshift")
    assert (said.code, "pp-leader absolve lost" in said.prose) == (0, True)
    desk.remove(OPENSHIFT_MACHINES, "lost", "default")


def test_the_backup_is_dropped_on_demand(desk: Desk) -> None:
    assert desk.run("restore", *LOST, "--drop-backup").code == 0
    assert not has_backup(desk)


def test_a_node_that_is_there_is_left_alone_and_what_it_lacks_is_named(desk: Desk) -> None:
    desk.world.create(NODES, "", sample(NODES, "lost", labels={"example.com/rack": "9"}))
    before = desk.world.read(NODES, "lost")
    refused = desk.run("restore", *LOST, "--drop-backup")
    assert (refused.code, refused.output) == (2, "")
    assert "Of its backup it lacks: annotation example.com/owner, spec.taints." in refused.complaint
    assert desk.world.read(NODES, "lost") == before
    assert has_backup(desk)


def test_run_again_it_says_how_to_drop_a_backup_that_is_used_up(desk: Desk) -> None:
    assert desk.run("restore", *LOST).code == 0
    again = desk.run("restore", *LOST, "--drop-backup")
    assert (again.code, has_backup(desk)) == (2, True)
    assert "It has all that is in its backup. To drop that now: kubectl delete configmap" in again.complaint


def test_a_backup_that_can_not_be_read_restores_nothing(desk: Desk) -> None:
    store(desk, "garbage")
    refused = desk.run("restore", *LOST)
    assert (refused.code, "kubectl edit configmap -n pp-hostd backup-lost" in refused.complaint) == (2, True)
    assert not has_node(desk)


def test_the_backup_of_another_node_restores_nothing(desk: Desk) -> None:
    store(desk, BACKUP.render().replace('"lost"', '"other"'))
    refused = desk.run("restore", *LOST)
    assert (refused.code, "it is of Node other" in refused.complaint) == (2, True)


def test_without_a_backup_those_that_exist_are_named(desk: Desk) -> None:
    refused = desk.run("restore", "losst", "--machines", "node")
    assert (refused.code, "There are backups of: lost." in refused.complaint) == (2, True)


def test_while_a_leader_leads_it_is_the_leaders_to_do(desk: Desk) -> None:
    spec = renewed_spec("control-1", 15, datetime.now(timezone.utc))
    desk.put(LEASES, {"metadata": {"name": LEASE}, "spec": spec})
    refused = desk.run("restore", *LOST)
    assert (refused.code, "control-1 leads" in refused.complaint) == (2, True)
    assert not has_node(desk)


def test_what_the_machines_are_must_be_known(desk: Desk) -> None:
    refused = desk.run("restore", "lost")
    assert refused.code == 2
    assert "--machines openshift" in refused.complaint


def test_a_configuration_says_what_the_machines_are(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "pp-hostd.toml"
    path.write_text('[api]\nmachines = "openshift"\n')
    assert desk.run("restore", "lost", "--config", str(path)).code == 0
    assert CONDEMNATION_ID not in desk.world.read(NODES, "lost")["metadata"]["annotations"]
