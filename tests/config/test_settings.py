"""The values that each kind of setting accepts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pp_hostd.model.allowed import AbsolutePath, Allowed, Flag, Number, Servers, Share, Whole
from pp_hostd.model.settings import Settings, every_setting, value_of


@pytest.mark.parametrize(
    ("allowed", "value", "accepted"),
    [
        (Number(0.1, 60), 0.1, 0.1),
        (Number(0.1, 60), 60, 60.0),
        (Whole(1, 20), 1, 1),
        (Whole(1, 20), 20, 20),
        (AbsolutePath(), "/etc/pp-hostd/kube config", "/etc/pp-hostd/kube config"),
        (Flag(), False, False),
        (Share(), "0", "0"),
        (Share(), "100%", "100%"),
        (Servers(), [], ()),
        (Servers(), ["https://10.0.0.1"], ("https://10.0.0.1",)),
        (Servers(), ["https://10.0.0.1:6443/"], ("https://10.0.0.1:6443/",)),
        (Servers(), ["https://[2001:db8::1]:6443"], ("https://[2001:db8::1]:6443",)),
        (Servers(), ["https://api.example.com/k8s/clusters/c-1"], ("https://api.example.com/k8s/clusters/c-1",)),
        (Servers(), ["https://a", "https://b:65535"], ("https://a", "https://b:65535")),
    ],
)
def test_an_allowed_value_is_accepted(allowed: Allowed[Any], value: Any, accepted: Any) -> None:
    assert allowed.accept(value) == accepted
    assert type(allowed.accept(value)) is type(accepted)


@pytest.mark.parametrize("value", [0.09, 60.1, -1, math.nan, math.inf, -math.inf, 10**400, True, "4", [], None])
def test_no_other_number_is_accepted(value: Any) -> None:
    assert Number(0.1, 60).accept(value) is None


@pytest.mark.parametrize("value", [0, 21, 4.0, True, "4", [], None])
def test_no_other_whole_number_is_accepted(value: Any) -> None:
    assert Whole(1, 20).accept(value) is None


@pytest.mark.parametrize("value", ["", "%", "-1", "101%", "1.5", "40 %", "1234567", 3, True, None])
def test_no_other_share_is_accepted(value: Any) -> None:
    assert Share().accept(value) is None


@pytest.mark.parametrize("value", [0, 1, "true", "", [], None])
def test_no_other_flag_is_accepted(value: Any) -> None:
    assert Flag().accept(value) is None


@pytest.mark.parametrize("value", ["", "kubeconfig", "~/kubeconfig", "/a\n/b", "/a\0", "/a\x1b[2J", 5, [], None])
def test_no_other_path_is_accepted(value: Any) -> None:
    assert AbsolutePath().accept(value) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1",
        "10.0.0.1:6443",
        "https://",
        "https:///path",
        "https://10.0.0.256",
        "https://10.0.0",
        "https://[10.0.0.1]",
        "https://[2001:db8::1::2]",
        "https://[fe80::1%eth0]",
        "https://2001:db8::1",
        "https://a:0",
        "https://a:65536",
        "https://a:",
        "https://user@a",
        "https://a b",
        "https://a..b",
        "https://-a",
        "https://a_b",
        "https://" + "a" * 64,
        "https://" + ".".join(["a" * 60] * 5),
        "https://a?b",
        "https://a/b#c",
        "https://a\n",
        "https://ä.example.com",
        5,
        None,
    ],
)
def test_what_is_no_url_of_an_api_server_is_not_accepted(url: Any) -> None:
    assert Servers().accept([url]) is None
    assert Servers().accept(["https://10.0.0.1", url]) is None


def test_one_server_must_be_in_a_list_too() -> None:
    assert Servers().accept("https://10.0.0.1") is None


@pytest.mark.parametrize("setting", list(every_setting()), ids=lambda setting: setting.key)
def test_every_default_is_allowed_and_every_row_is_whole(setting: Any) -> None:
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    accepted = setting.allowed.accept(default)
    assert accepted == setting.default == value_of(Settings(), setting.key)
    assert type(accepted) is type(setting.default)
    assert setting.consequence.endswith(".")
    assert (setting.unit == "seconds") == setting.name.endswith("_seconds")
