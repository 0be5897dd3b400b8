"""Addresses, hosts and API servers' URLs: what is one, for settings and kubeconfigs alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.allowed import Servers
from pp_hostd.model.endpoint import Endpoint, is_address, is_host, parse_endpoint


def test_only_literals_are_addresses() -> None:
    assert all(map(is_address, ["127.0.0.1", "::1", "2001:db8::1"]))
    assert not any(map(is_address, ["", "localhost", "127.1", "[::1]", "fe80::1%eth0", "1.2.3.4\0"]))


def test_numbers_that_are_no_address_are_no_host_name_either() -> None:
    assert all(map(is_host, ["192.0.2.1", "::1", "api", "api.example.com", "API-1.example"]))
    assert not any(map(is_host, ["", "192.0.2.256", "10.0.0", "-a", "a_b", "a..b", "a.", "a" * 64, "a b"]))


def test_a_url_comes_apart() -> None:
    url = "https://[2001:DB8::1]:6443/k8s/"
    assert parse_endpoint(url) == Endpoint(url, "2001:db8::1", 6443, "/k8s")
    assert parse_endpoint("https://api") == Endpoint("https://api", "api", 443, "")


@given(st.from_regex(r"https?://[\[\]0-9a-z.:@_-]{0,20}(/[a-z?#]{0,5})?") | st.text(max_size=30))
def test_settings_allow_exactly_the_urls_that_can_be_taken_apart(url: str) -> None:
    endpoint = parse_endpoint(url)
    assert (Servers().accept([url]) is not None) == (endpoint is not None)
    assert endpoint is None or (is_host(endpoint.host) and 1 <= endpoint.port <= 65535)
