"""A NodeRemedyConfiguration is read generously, and whatever is wrong with it is told by the name of the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.facts.selector import Requirement, Selector
from pp_hostd.leader.remedies.node_fence.configuration import (
    Configuration,
    ConfigurationsCache,
    Fences,
    LadderRemedy,
    RemedyConfig,
    RemedyRules,
    Threshold,
    parse_configuration,
)
from pp_hostd.model.keys import PAUSED_NODE
from pp_hostd.model.record import Unreadable

Json = dict[str, Any]
METADATA: Json = {"name": "workers", "uid": "u", "resourceVersion": "1", "generation": 3}
PROPOSED = """
# optional node selector (type=compute, type=accelerated, type=storage-optimized, type=bare-metal)
nodeSelector: type=compute
# list of thresholds tracked, and the remedy to execute if triggered
# note: you could track many node conditions other than ready
thresholdConfigs:
- nodeConditionType: Ready
  nodeConditionStatus: false
  nodeConditionPeriod: 5s
  remedy1: 
   - name: repair   
   - period: 3m
  remedy2: 
   - name: terminate
   - clean-resourece: true
  recovery:
   - name: recovery
- nodeConditionType: DiskPressure
  nodeConditionStatus: true
  nodeConditionPeriod: 10m
  remedy1:
   - name: storage-fence
   - clean-resourece: true
  recovery:
   - name: recovery

# users may create remedies for any number of things that could happen to a node
# the tool only cares if the configured job runs to success or failure
remedyConfigs:
# the repair remedy that in this case says run a job that executes a command to clean node
# the pod template should assume standard input via downward api that describes what node is being remedied
- name: repair
  podTemplate:
   spec:
    containers:
    - name: repair
      image: IMAGE:VERSION
      command: [ "binary", "clean node command" ]
      env: ["secret-key"]
      configmaps: ["fence-method-config"]
    restartPolicy: Never
# the terminate remedy that in this case says run a job that executes a command to terminate node
- name: terminate
  podTemplate:
   spec:
    containers:
    - name: terminate
      image: IMAGE:VERSION
      command: [ "binary", "terminate node command" ]
    restartPolicy: Never
"""  # noqa: W291
"""As the proposal has it, under `spec`."""
CONTAINER: Json = {"name": "main", "image": "registry.example/main:1"}
TEMPLATE: Json = {"spec": {"containers": [CONTAINER]}}
THRESHOLD: Json = {"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown", "nodeConditionPeriod": "1m30s"}


def parsed(spec: object, **metadata: Any) -> RemedyRules | Unreadable:
    found = parse_configuration({"metadata": {**METADATA, **metadata}, "spec": spec})
    assert isinstance(found, Configuration), found
    return found.rules


def rules(**spec: Any) -> RemedyRules:
    found = parsed({"thresholdConfigs": [THRESHOLD], **spec})
    assert isinstance(found, RemedyRules), found
    return found


def threshold(**more: Any) -> Json:
    return {"thresholdConfigs": [{**THRESHOLD, **more}]}


def remedy(**more: Any) -> Json:
    config = {"name": "repair", "podTemplate": TEMPLATE, **more}
    return {"thresholdConfigs": [THRESHOLD], "remedyConfigs": [config]}


def container(**more: Any) -> Json:
    return remedy(podTemplate={"spec": {"containers": [{**CONTAINER, **more}]}})


def pod_of(spec: Json) -> Any:
    found = parsed(spec)
    assert isinstance(found, RemedyRules), found
    return json.loads(found.remedies[0].pod)


def test_the_proposals_own_example_is_read() -> None:
    found = parsed(yaml.safe_load(PROPOSED))
    assert isinstance(found, RemedyRules), found
    assert found.selector == Selector((Requirement("type", "In", ("compute",)),))
    ladder = (LadderRemedy("repair", 180.0), LadderRemedy("terminate", clean=True))
    storage = (LadderRemedy("storage-fence", clean=True),)
    assert found.thresholds == (
        Threshold("Ready", "False", 5.0, ladder, "recovery"),
        Threshold("DiskPressure", "True", 600.0, storage, "recovery"),
    )
    assert [(each.name, each.timeout_seconds, each.fences) for each in found.remedies] == [
        ("repair", 600, Fences.NONE),
        ("terminate", 600, Fences.NONE),
    ]
    (main,) = json.loads(found.remedies[0].pod)["spec"]["containers"]
    sources = [{"secretRef": {"name": "secret-key"}}, {"configMapRef": {"name": "fence-method-config"}}]
    command = ["binary", "clean node command"]
    assert main == {"name": "repair", "image": "IMAGE:VERSION", "command": command, "envFrom": sources}


def test_long_forms_are_read() -> None:
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    ladder = {"remedy1": {"name": "off", "period": "2m", "clean-resource": True}, "remedy2": {"name": "on"}}
    given = {"thresholdConfigs": [{**THRESHOLD, **ladder, "recovery": {"name": "back"}}], "nodeSelector": selector}
    config = {
        "name": "off",
        "podTemplate": TEMPLATE,
        "timeoutSeconds": 60,
        "fences": "storage",
        "storage": ["fast", "csi.io"],
    }
    found = rules(**given, remedyConfigs=[config])
    assert found.selector.matches({"a": "b", "c": ""}) and not found.selector.matches({"a": "b"})
    expected = Threshold("Ready", "Unknown", 90.0, (LadderRemedy("off", 120.0, True), LadderRemedy("on")), "back")
    assert found.thresholds == (expected,)
    pod = '{"spec":{"containers":[{"image":"registry.example/main:1","name":"main"}]}}'
    assert found.remedies == (RemedyConfig("off", pod, 60, Fences.STORAGE, ("fast", "csi.io")),)
    assert hash(found) == hash(rules(**given, remedyConfigs=[config]))


@pytest.mark.parametrize(
    ("given_status", "status"),
    [(True, "True"), (False, "False"), ("True", "True"), ("false", "False"), ("Unknown", "Unknown")],
)
def test_a_status_is_text_or_a_boolean(given_status: object, status: str) -> None:
    assert rules(**threshold(nodeConditionStatus=given_status)).thresholds[0].status == status


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a=b,c=d", {"a": "b", "c": "d"}),
        (" a = b ", {"a": "b"}),
        ("a==b", {"a": "b"}),
        ("x.io/role=", {"x.io/role": ""}),
    ],
)
def test_a_text_selects_by_labels(text: str, labels: dict[str, str]) -> None:
    found = rules(nodeSelector=text).selector
    assert found.matches({**labels, "more": ""})
    assert not any(found.matches({**labels, key: "other"}) for key in labels)


def test_without_a_selector_all_nodes_are_selected() -> None:
    assert rules().selector.matches({})


def test_ordinary_variables_and_init_containers_stay_as_they_are() -> None:
    variable = {"name": "LEVEL", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    given_sources = [{"secretRef": {"name": "first"}, "prefix": "P_"}]
    both = container(env=[variable, "token"], envFrom=given_sources)
    both["remedyConfigs"][0]["podTemplate"]["spec"]["initContainers"] = [{**CONTAINER, "configmaps": ["m"]}]
    spec = pod_of(both)["spec"]
    assert spec["containers"][0]["env"] == [variable]
    assert spec["containers"][0]["envFrom"] == [*given_sources, {"secretRef": {"name": "token"}}]
    assert spec["initContainers"][0]["envFrom"] == [{"configMapRef": {"name": "m"}}]


REFUSED: dict[str, tuple[Json, str]] = {
    "nothing": ({}, "thresholdConfigs is empty: no Node would ever be fenced"),
    "no list": ({"thresholdConfigs": {}}, "thresholdConfigs is of type dict, not a list"),
    "no object": ({"thresholdConfigs": ["Ready"]}, "thresholdConfigs[0]: it is 'Ready', not an object"),
    "no type": (
        threshold(nodeConditionType=None),
        "thresholdConfigs[0]: nodeConditionType is missing, not the type of",
    ),
    "a status": (
        threshold(nodeConditionStatus="no"),
        "nodeConditionStatus is 'no', not one of True, False, Unknown",
    ),
    "a number": (threshold(nodeConditionStatus=1), "nodeConditionStatus is '1', not one of True, False, Unknown"),
    "a period": (threshold(nodeConditionPeriod="5"), "nodeConditionPeriod is '5', not a duration like 300s, 5m"),
    "no period": (threshold(nodeConditionPeriod=None), "nodeConditionPeriod is 'None', not a duration"),
    "twice": (
        {"thresholdConfigs": [THRESHOLD, THRESHOLD]},
        "two elements of thresholdConfigs are about Ready=Unknown, and one is allowed",
    ),
    "too many": ({"thresholdConfigs": [THRESHOLD] * 21}, "thresholdConfigs has 21 elements, and 20 are the most"),
    "a gap": (threshold(remedy2={"name": "a"}), "it has 'remedy2': beside nodeConditionType"),
    "a typo": (threshold(remdy1={"name": "a"}), "it has 'remdy1': beside nodeConditionType"),
    "no name": (threshold(remedy1={"period": "3m"}), "thresholdConfigs[0]: remedy1: name is missing, not a Kubernetes"),
    "a bad name": (threshold(remedy1={"name": "A b"}), "remedy1: name is 'A b', not a Kubernetes name"),
    "a stray key": (
        threshold(remedy1={"name": "a", "cleans": True}),
        "remedy1 has 'cleans', and only name, period, clean-resource are allowed",
    ),
    "said twice": (
        threshold(remedy1=[{"name": "a"}, {"clean-resource": True}, {"clean-resourece": False}]),
        "remedy1 has clean-resource twice",
    ),
    "clean": (
        threshold(remedy1={"name": "a", "clean-resource": "yes"}),
        "remedy1: clean-resource is 'yes', not true or false",
    ),
    "no time to help": (
        threshold(remedy1={"name": "a"}, remedy2={"name": "b"}),
        "remedy1 has no period, and another remedy follows: say how long remedy1 has to help, like 3m",
    ),
    "a remedy's period": (threshold(remedy1={"name": "a", "period": 3}), "remedy1: period is '3', not a duration"),
    "recovery": (threshold(remedy1={"name": "a"}, recovery={"period": "3m"}), "recovery has 'period', and only name"),
    "recovery alone": (threshold(recovery={"name": "a"}), "recovery is set without remedy1"),
    "labels": ({**threshold(), "nodeSelector": {"type": "compute"}}, "nodeSelector has 'type', and only matchLabels"),
    "no labels": ({**threshold(), "nodeSelector": ""}, "nodeSelector is '', not labels like type=compute,zone=a"),
    "half a label": ({**threshold(), "nodeSelector": "a=b,c"}, "To select all Nodes: leave nodeSelector out"),
    "an operator": (
        {**threshold(), "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
        "the operator of a is 'Gt', not one of In, NotIn, Exists, DoesNotExist",
    ),
    "no pod": (remedy(podTemplate=None), "remedyConfigs[0]: podTemplate: it is missing, not an object"),
    "no containers": (remedy(podTemplate={"spec": {}}), "podTemplate: spec.containers is empty"),
    "no image": (container(image=None), "podTemplate: image is missing, not one line of text"),
    "a Secret": (container(env=["Secret Key"]), "a Secret in env is 'Secret Key', not a Kubernetes name"),
    "a ConfigMap": (
        container(configmaps=[{"name": "a"}]),
        "an element of configmaps is of type dict, not a Kubernetes",
    ),
    "a time": (remedy(timeoutSeconds=0), "timeoutSeconds is 0, not a whole number from 1 to 86400"),
    "fences": (remedy(fences="network"), "fences is 'network', not one of none, storage, power"),
    "no storage": (remedy(fences="storage"), "it is needed for fences: storage, and allowed for it alone"),
    "storage": (remedy(fences="power", storage=["a"]), "it is needed for fences: storage, and allowed for it alone"),
    "storage's name": (remedy(fences="storage", storage=["A B"]), "an element of storage is 'A B', not a Kubernetes"),
    "two of a name": (
        {"thresholdConfigs": [THRESHOLD], "remedyConfigs": [{"name": "a", "podTemplate": TEMPLATE}] * 2},
        "two elements of remedyConfigs are about a, and one is allowed",
    ),
}


@pytest.mark.parametrize(("spec", "told"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_the_field_and_what_is_allowed(spec: Json, told: str) -> None:
    found = parsed(spec)
    assert isinstance(found, Unreadable), found
    assert told in str(found)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


def _mostly(spec: Any) -> st.SearchStrategy[Any]:
    """The same shape, with any of its parts replaced by something else."""
    whole: st.SearchStrategy[Any] = st.just(spec)
    if isinstance(spec, dict):
        parts = st.fixed_dictionaries({key: _mostly(value) for key, value in spec.items()})
        whole = st.builds(
            lambda known, stray: {**stray, **known}, parts, st.just({}) | st.dictionaries(st.text(), _JSON)
        )
    elif isinstance(spec, list):
        whole = st.tuples(*map(_mostly, spec)).map(list)
    return st.one_of(whole, whole, whole, _JSON)


@given(_JSON, _JSON, _JSON)
def test_nothing_that_the_api_may_hold_makes_reading_raise(metadata: object, spec: object, status: object) -> None:
    parse_configuration(spec)
    parse_configuration({"metadata": metadata, "spec": spec, "status": status})
    found = parse_configuration({"metadata": METADATA, "spec": spec, "status": status})
    assert isinstance(found, Configuration)


@given(_mostly(yaml.safe_load(PROPOSED)))
def test_nothing_that_is_almost_right_makes_reading_raise(spec: object) -> None:
    found = parsed(spec)
    assert isinstance(found, (RemedyRules, Unreadable))
    hash(found)


@given(_JSON)
def test_a_pod_template_becomes_the_same_text_whatever_its_order(more: object) -> None:
    first = {"a": more, "spec": {"containers": [CONTAINER]}}
    second = {"spec": {"containers": [dict(reversed(list(CONTAINER.items())))]}, "a": more}
    assert parsed(remedy(podTemplate=first)) == parsed(remedy(podTemplate=second))


def test_a_pod_template_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "nested too deeply" in str(parsed(remedy(podTemplate={**TEMPLATE, "deep": deep})))


def test_only_what_is_judged_by_counts_as_a_change() -> None:
    cache = ConfigurationsCache()

    def show(**more: Any) -> int:
        cache.show(cache.keep({"metadata": METADATA, "spec": threshold(), **more}))
        return cache.changes

    assert [show(), show(status={"selectedNodes": 4}), show(spec=threshold(nodeConditionPeriod="2m"))] == [1, 1, 2]
    assert show(metadata={**METADATA, "annotations": {PAUSED_NODE: ""}}) == 3
    assert cache.seen["workers"].paused == f"the annotation {PAUSED_NODE}"
    cache.show_gone("workers")
    assert (cache.changes, cache.seen) == (4, {})
