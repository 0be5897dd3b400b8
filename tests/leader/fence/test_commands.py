"""`pp-leader fence`: how far fencing has come, what a flow would run, and a person's word."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.embedded.kinds import KINDS
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODE_FENCES, NODES, SECRETS
from pp_hostd.leader.remedies.node_fence.definitions import fence_definition
from pp_hostd.leader.remedies.node_fence.fence import fence_name
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE, renewed_spec
from pp_hostd.model.moment import render_moment
from tests.contract.objects import sample
from tests.fencing.helpers import Agents, Helpers
from tests.harness.controlplane import OTHERS, RealCluster
from tests.leader.access.attempts import Attempt
from tests.leader.desk import Desk, Said, any_desk
from tests.leader.fence.fence_world import properties

__all__ = ["any_desk"]

NAMES = ("worker-1", "worker-2")
IPMI = {"agent_name": "fence_ipmilan", "ip": "192.0.2.7", "username": "admin", "password_secret": "bmc/password"}
GAVE_UP = {"type": "GaveUp", "status": "True", "reason": "TooManyRestarts", "message": "it has failed 6 times"}
FAILED: dict[str, Any] = {
    "step": "Power-Management",
    "status": "Error",
    "restarts": 5,
    "reason": "the BMC is silent",
    "id": 17,
    "methods": [
        {"name": "ipmi", "action": "off", "outcome": "Failed", "tried": 3, "message": "it ended with 1"},
        {"name": "drain", "action": "", "outcome": "Running", "tried": 1, "job": "drain-0123456789abcdef"},
    ],
}


@pytest.fixture(autouse=True)
def _fresh(any_desk: Desk) -> None:
    """Two Nodes, a Secret, nothing configured, and nobody leads."""
    any_desk.remove(LEASES, LEASE)
    for kind, namespace in ((NODE_FENCES, None), (CONFIG_MAPS, NAMESPACE)):
        for found in any_desk.world.make(Attempt("list", kind, "", namespace=namespace)).json()["items"]:
            any_desk.remove(kind, found["metadata"]["name"], namespace)
    for name in NAMES:
        any_desk.world.create(NODES, "", sample(NODES, name))
    secret = b64encode(b"hunter2\n").decode()
    any_desk.put(SECRETS, {"metadata": {"name": "bmc"}, "data": {"password": secret}})


def fence(desk: Desk, node: str = "worker-1", **more: Any) -> None:
    body = {"metadata": {"name": fence_name(node)}, "node": node, **more}
    assert desk.world.make(Attempt("create", NODE_FENCES, "", body)).status_code == 201


def configure(desk: Desk, node: str = "worker-1", power: str = "ipmi", **methods: dict[str, str]) -> None:
    described = {f"fence-method-{name.replace('_', '-')}": properties(**each) for name, each in methods.items()}
    desk.store(f"fence-config-{node}", {"config.properties": properties(power_management=power), **described})


def stored(desk: Desk) -> dict[str, Any]:
    return desk.world.read(NODE_FENCES, fence_name("worker-1"))


def is_there(desk: Desk) -> bool:
    return bool(desk.world.make(Attempt("get", NODE_FENCES, fence_name("worker-1"))).ok)


def said_of(desk: Desk, *arguments: str) -> str:
    said = desk.run("fence", *arguments)
    assert (said.code, said.complaint) == (0, "")
    assert max(map(len, said.output.splitlines())) <= 80
    return said.prose


def refused(desk: Desk, *arguments: str) -> str:
    said = desk.run("fence", *arguments)
    assert said.code == 2
    return " ".join(said.complaint.split())


# The list


def test_without_a_fence_the_list_says_so(any_desk: Desk) -> None:
    assert said_of(any_desk, "list") == "No node is being fenced: there is no NodeFence. "
    assert json.loads(any_desk.run("fence", "list", "--json").output) == {"installed": True, "fences": []}


def test_each_fence_has_a_row(any_desk: Desk) -> None:
    since = datetime.now(timezone.utc) - timedelta(minutes=10, seconds=30)
    moment = render_moment(since.replace(microsecond=0))
    fence(any_desk, **FAILED, conditions=[GAVE_UP], cleaned=True, stepStartedAt=moment)
    fence(any_desk, "worker-2", step="Isolation", status="Done", reason="Ready=Unknown", id=18)
    prose = said_of(any_desk, "list")
    assert "NODE STATE STEP STATUS RESTARTS FREED SINCE REASON" in prose
    assert "worker-1 error Power-Management Error 5 yes 10m gave up: the BMC is silent" in prose
    assert "worker-2 running Isolation Done 0 no - Ready=Unknown" in prose
    first, _ = json.loads(any_desk.run("fence", "list", "--json").output)["fences"]
    assert first == {
        "name": "node-fence-worker-1",
        "node": "worker-1",
        "state": "error",
        "step": "Power-Management",
        "status": "Error",
        "restarts": 5,
        "freed": True,
        "gave_up": True,
        "refuted": [],
        "since": moment,
        "cause": "a person's request",
        "reason": "the BMC is silent",
    }


def test_where_the_kind_is_not_defined_every_command_says_how_to_get_it() -> None:
    with RealCluster.start(definitions=OTHERS) as cluster:
        desk = Desk(cluster)
        desk.world.create(NODES, "", sample(NODES, "worker-1"))
        assert "To install it: pp-leader install --flows node-fence" in said_of(desk, "list")
        assert json.loads(desk.run("fence", "list", "--json").output) == {"installed": False, "fences": []}
        assert "worker-1 is not being fenced" in said_of(desk, "show", "worker-1")
        for word in ("retry", "abort"):
            assert "pp-leader install --flows node-fence" in refused(desk, word, "worker-1")
        desk.close()


# One node


def test_what_a_flow_would_run_by_default(any_desk: Desk) -> None:
    assert said_of(any_desk, "show", "worker-1") == (
        "worker-1 is not being fenced: it has no NodeFence. "
        "By default, since it has no fence-config, a flow would run now: "
        "Isolation: - mark-unschedulable: cordons the Node "
        "Power-Management: - restart-instance: power-cycles its BareMetalHost if there is one, "
        "else has the host reset itself "
        "Recovery: - mark-schedulable: uncordons the Node, if the leader has cordoned it "
    )


def test_what_a_flow_would_run_by_its_configuration(any_desk: Desk) -> None:
    san = {"agent_name": "fence_brocade", "ip": "192.0.2.9", "storage": "fast slow", "plug": "4", "action": "off"}
    configure(any_desk, power="ipmi san clean-pods", ipmi={**IPMI, "action": "reboot"}, san=san)
    prose = said_of(any_desk, "show", "worker-1")
    assert "By ConfigMap pp-hostd/fence-config-worker-1, a flow would run now:" in prose
    secret = "password from Secret pp-hostd/bmc, key password"
    assert f"- ipmi: off by fence_ipmilan at 192.0.2.7; {secret}; fences power: then all workloads are freed" in prose
    assert f"- ipmi: on by fence_ipmilan at 192.0.2.7; {secret}; frees nothing" in prose
    cut = "fences storage: then the workloads on fast, slow are freed"
    assert f"- san: off by fence_brocade at 192.0.2.9, plug 4; {cut}" in prose
    assert "- clean-pods: succeeds only if its workloads were freed before" in prose
    assert "ERROR" not in prose and "WARNING" not in prose


def test_every_error_of_the_configuration_is_told(any_desk: Desk) -> None:
    configure(
        any_desk,
        power="nothing no-agent no-template traces no-secret no-key",
        no_agent={"ip": "192.0.2.7"},
        no_template={"template": "pdu"},
        traces={**IPMI, "logfile": "/tmp/x"},
        no_secret={**IPMI, "password_secret": "none/password"},
        no_key={**IPMI, "password_secret": "bmc/pin"},
    )
    any_desk.store("fence-cluster-config", {"config.properties": "grace_timeout=soon"})
    prose = said_of(any_desk, "show", "worker-1")
    for told in (
        "ERROR: there is no method nothing: it is none of mark-unschedulable,",
        "ERROR: agent_name of method no-agent is missing, not the name of a fence agent.",
        "ERROR: method no-template refers to the template pdu, and there is no such ConfigMap.",
        "ERROR: method traces would be refused: the parameter logfile is not allowed here; leave it out.",
        "ERROR: there is no Secret pp-hostd/none, which method no-secret needs.",
        "ERROR: Secret pp-hostd/bmc has no key pin, which method no-key needs.",
        "ERROR: ConfigMap pp-hostd/fence-cluster-config: grace_timeout is",
    ):
        assert prose.count(told) == 1, (told, prose)


def test_an_unreadable_configuration_is_told_once(any_desk: Desk) -> None:
    any_desk.store("fence-config-worker-1", {"config.properties": "power=ipmi"})
    told = "ERROR: ConfigMap pp-hostd/fence-config-worker-1: power is none of node_name, isolation,"
    assert said_of(any_desk, "show", "worker-1").count(told) == 1


def test_a_password_in_a_config_map_is_warned_about_and_never_shown(any_desk: Desk) -> None:
    configure(any_desk, ipmi={"agent_name": "fence_ipmilan", "ip": "192.0.2.7", "password": "hunter2"})
    prose = said_of(any_desk, "show", "worker-1")
    assert prose.count("WARNING: password of method ipmi is in a ConfigMap, where many can read it.") == 1
    assert "write password_secret=NAME/KEY in its place" in prose
    assert "hunter2" not in prose


def test_agents_in_jobs_are_shown_and_a_password_that_a_job_would_show_is_an_error(any_desk: Desk) -> None:
    image = properties(executor="job", agent_image="registry.example/agents:1")
    any_desk.store("fence-cluster-config", {"config.properties": image})
    configure(any_desk, ipmi=IPMI)
    prose = said_of(any_desk, "show", "worker-1")
    assert "a flow would run now, agents in Jobs:" in prose and "ERROR" not in prose
    configure(any_desk, ipmi={"agent_name": "fence_ipmilan", "ip": "192.0.2.7", "password": "hunter2"})
    prose = said_of(any_desk, "show", "worker-1")
    assert "ERROR: method ipmi: password is in a ConfigMap, and with executor=job everybody could read it" in prose
    assert "hunter2" not in prose


def test_a_flow_is_shown_with_its_methods_and_what_it_waits_for(any_desk: Desk) -> None:
    fence(any_desk, **{**FAILED, "status": "Running"}, stepStartedAt="2026-03-01T12:00:00Z")
    prose = said_of(any_desk, "show", "worker-1")
    assert (
        "NodeFence node-fence-worker-1: running (Power-Management Running) since 2026-03-01T12:00:00Z, for a person's "
        "request. Reason: the BMC is silent. The flow began again 5 times. Its workloads were not freed."
    ) in prose
    assert "Nothing is done about it: nobody leads." in prose
    assert "METHOD ACTION OUTCOME TRIED JOB MESSAGE ipmi off Failed 3 - it ended with 1" in prose
    assert "drain - Running 1 drain-0123456789abcdef" in prose
    spec = renewed_spec("control-1", 3600, datetime.now(timezone.utc))
    any_desk.put(LEASES, {"metadata": {"name": LEASE}, "spec": spec})
    assert "control-1 leads, and has said nothing about it yet." in said_of(any_desk, "show", "worker-1")


def test_methods_that_are_not_believed_any_more_are_named(any_desk: Desk) -> None:
    fence(any_desk, **FAILED, refuted=["ipmi"])
    prose = said_of(any_desk, "show", "worker-1")
    assert "Not believed any more: ipmi. The host was heard after it had been called dead." in prose
    assert "Correct that, then: pp-leader fence retry worker-1." in prose
    assert json.loads(any_desk.run("fence", "show", "worker-1", "--json").output)["fence"]["refuted"] == ["ipmi"]


def test_all_that_is_shown_of_a_node_can_be_had_as_json(any_desk: Desk) -> None:
    fence(any_desk, **FAILED, conditions=[GAVE_UP])
    configure(any_desk, power="ipmi none", ipmi={**IPMI, "password": "hunter2"})
    said = any_desk.run("fence", "show", "worker-1", "--json")
    assert (said.code, said.complaint) == (0, "")
    assert "hunter2" not in said.output
    found = json.loads(said.output)
    assert found["node"] == "worker-1"
    listed = json.loads(any_desk.run("fence", "list", "--json").output)["fences"][0]
    told = found["fence"]
    assert {key: told.pop(key) for key in listed} == listed
    assert told["conditions"] == [GAVE_UP]
    assert told["methods"] == [{"job": "", "message": "", **each} for each in FAILED["methods"]]
    assert told["waits"].startswith("It waits for a person")
    (flow,) = found["plan"]["flows"]
    does = "off by fence_ipmilan at 192.0.2.7; password from Secret pp-hostd/bmc, key password; fences power: then all"
    assert flow == {
        "configuration": None,
        "threshold": None,
        "steps": {
            "Isolation": [{"name": "mark-unschedulable", "does": "cordons the Node"}],
            "Power-Management": [{"name": "ipmi", "does": f"{does} workloads are freed"}],
            "Recovery": [
                {"name": "mark-schedulable", "does": "uncordons the Node, if the leader has cordoned it"},
            ],
        },
    }
    (error,), (warning,) = found["plan"]["errors"], found["plan"]["warnings"]
    assert error.startswith("there is no method none") and warning.startswith("password of method ipmi is in a")


def test_a_node_without_a_fence_or_a_fence_without_a_node_is_null_in_json(any_desk: Desk) -> None:
    shown = json.loads(any_desk.run("fence", "show", "worker-1", "--json").output)
    assert (shown["fence"], shown["plan"]["errors"]) == (None, [])
    fence(any_desk, "gone")
    shown = json.loads(any_desk.run("fence", "show", "gone", "--json").output)
    assert (shown["fence"]["node"], shown["plan"]) == ("gone", None)


def test_a_flow_that_gave_up_says_who_it_waits_for(any_desk: Desk) -> None:
    fence(any_desk, **FAILED, conditions=[GAVE_UP])
    prose = said_of(any_desk, "show", "worker-1")
    assert "GaveUp=True (TooManyRestarts): it has failed 6 times." in prose
    assert "It waits for a person" in prose
    assert "To begin again: pp-leader fence retry worker-1. To end it: pp-leader fence abort worker-1." in prose


def test_a_node_that_does_not_exist_is_answered_with_names_like_it(any_desk: Desk) -> None:
    assert "Did you mean worker-1" in refused(any_desk, "show", "worker-11")
    fence(any_desk, "gone")
    assert "There is no Node gone: its NodeFence will be deleted." in said_of(any_desk, "show", "gone")


# A person's word


@pytest.mark.parametrize("conditions", [[], [GAVE_UP, {**GAVE_UP, "type": "Fenced"}]])
def test_a_flow_that_failed_begins_again(any_desk: Desk, conditions: list[dict[str, str]]) -> None:
    fence(any_desk, **FAILED, conditions=conditions, cleaned=True, retries=2)
    prose = said_of(any_desk, "retry", "worker-1", "--who", "anna")
    assert "The fencing of worker-1 begins again" in prose and "Now nobody leads." in prose
    found = stored(any_desk)
    wanted = {"step": "Isolation", "status": "New", "restarts": 0, "retries": 0, "cleaned": True, "id": 18}
    assert {key: found[key] for key in wanted} == wanted
    assert found["reason"] == "begun again by anna"
    assert found["methods"] == []
    assert [each["type"] for each in found["conditions"]] == ["Fenced"] * (len(conditions) > 1)
    assert found["stepStartedAt"] > "2026-03-01"


def test_a_flow_that_has_not_failed_does_not_begin_again(any_desk: Desk) -> None:
    fence(any_desk, **{**FAILED, "status": "Running"})
    before = stored(any_desk)
    told = "nothing was changed: the fencing of worker-1 has not failed, it is running (Power-Management Running)"
    assert told in refused(any_desk, "retry", "worker-1")
    assert stored(any_desk) == before
    assert "worker-2 is not being fenced" in refused(any_desk, "retry", "worker-2")


def test_a_flow_is_aborted_only_by_somebody_who_means_it(any_desk: Desk) -> None:
    fence(any_desk, **FAILED)
    assert "If you are sure, say --yes." in refused(any_desk, "abort", "worker-1")
    with any_desk.asked("fence", "abort", "worker-1") as dialogue:
        assert b"A host that is off stays off" in dialogue.heard
        assert dialogue.answer("worker-2\n").code == 2
    assert is_there(any_desk)
    prose = said_of(any_desk, "abort", "worker-1", "--yes")
    assert "frees nothing more" in prose and "Deleted. Now nobody leads." in prose
    assert not is_there(any_desk)
    assert "worker-1 is not being fenced" in refused(any_desk, "abort", "worker-1", "--yes")


def test_a_fence_that_came_in_its_place_is_not_deleted(any_desk: Desk) -> None:
    fence(any_desk, **FAILED)
    with any_desk.asked("fence", "abort", "worker-1") as dialogue:
        any_desk.remove(NODE_FENCES, fence_name("worker-1"), None)
        fence(any_desk)
        said = dialogue.answer("worker-1\n")
    assert (said.code, "nothing was deleted" in said.complaint) == (2, True)
    assert is_there(any_desk)


# The agents


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


def asked(desk: Desk, agents: Agents, node: str = "worker-1") -> Said:
    path = agents.directory / "sock"
    with Helpers.listening(path, agents.directory):
        said = desk.run("fence", "test", node, "--socket", str(path))
    path.unlink()
    assert said.complaint == ""
    return said


def test_every_agent_is_asked_for_its_status_and_for_nothing_else(any_desk: Desk, agents: Agents) -> None:
    agents.write("cat >> asked; exit 0", "fence_ipmilan")
    agents.write("cat >> asked; exit 2", "fence_eaton_snmp")
    eaton = {"agent_name": "fence_eaton_snmp", "ip": "192.0.2.8", "plug": "2", "action": "off"}
    configure(any_desk, power="ipmi eaton", ipmi={**IPMI, "action": "reboot"}, eaton=eaton)
    said = asked(any_desk, agents)
    assert said.code == 0
    assert said.output.splitlines() == [
        "eaton: fence_eaton_snmp at 192.0.2.8, plug 2: off",
        "ipmi: fence_ipmilan at 192.0.2.7: on",
    ]
    given = (agents.directory / "asked").read_text().split()
    assert [line for line in given if line.startswith("action")] == ["action=status"] * 2
    assert "password=hunter2" in given


def test_an_agent_that_does_not_answer_is_told_with_its_trouble(any_desk: Desk, agents: Agents) -> None:
    agents.write("echo login refused for hunter2; exit 1", "fence_ipmilan")
    lost = {**IPMI, "ip": "192.0.2.8", "password_secret": "none/password"}
    configure(any_desk, ipmi=IPMI, lost=lost, broken={"template": "pdu"})
    said = asked(any_desk, agents)
    assert said.code == 1
    assert "ipmi: fence_ipmilan at 192.0.2.7: no answer: it ended with 1 and said: login refused for ***" in said.prose
    assert "lost: fence_ipmilan at 192.0.2.8: not asked: there is no Secret pp-hostd/none" in said.prose
    assert "ERROR: method broken refers to the template pdu" in said.prose


def test_two_nodes_on_one_plug_are_warned_about(any_desk: Desk, agents: Agents) -> None:
    agents.write("exit 0", "fence_ipmilan")
    configure(any_desk, ipmi=IPMI)
    configure(any_desk, "worker-2", bmc=IPMI, other={**IPMI, "ip": "192.0.2.8"}, third={**IPMI, "ipport": "6230"})
    told = "WARNING: method ipmi of worker-1 and method bmc of worker-2 switch the same: fence_ipmilan at 192.0.2.7."
    said = asked(any_desk, agents)
    assert (said.code, said.prose.count(told), said.prose.count("WARNING")) == (0, 1, 1)
    assert told in said_of(any_desk, "show", "worker-1")


def test_where_no_helper_listens_the_command_says_where_to_run_it(any_desk: Desk, tmp_path: Path) -> None:
    assert "there is nothing to ask" in said_of(any_desk, "test", "worker-1", "--socket", str(tmp_path / "none"))
    configure(any_desk, ipmi=IPMI)
    told = refused(any_desk, "test", "worker-1", "--socket", str(tmp_path / "none"))
    assert "so no agent was asked" in told
    assert "Run it as root on a control-plane host where pp-leader runs" in told


def test_the_embedded_api_has_every_field_of_a_fence() -> None:
    schema = fence_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert set(KINDS[NODE_FENCES].content) == set(schema["properties"])
