"""A kubeconfig says whom to ask and what to show; one that can't be used is an error that names file and place."""

from __future__ import annotations

import json
import os
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pp_hostd.errors import UserError
from pp_hostd.kube.credentials import Credentials
from pp_hostd.kube.kubeconfig import KubeconfigError, endpoint, load
from pp_hostd.model.endpoint import Endpoint
from tests.harness.examples import tries

SOME_BYTES = b"anything"
SOME_BASE64 = b64encode(SOME_BYTES).decode()


def document(cluster: Any = None, user: Any = None, **top: Any) -> dict[str, Any]:
    """A kubeconfig with one cluster, user and context, all called `here`, and what a case wants otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://192.0.2.1:6443", **(cluster or {})}}],
        "users": [{"name": "here", "user": {"token": "secret"} if user is None else user}],
        **top,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def write(path: Path, content: Any) -> str:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def complaint(path: Path, content: Any) -> str:
    """Returns the loader's error message without the path of the file, with which it must begin."""
    with pytest.raises(UserError) as caught:
        load(write(path, content))
    assert caught.value.message.startswith(str(path))
    return caught.value.message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://192.0.2.1", ("192.0.2.1", 443, "", "192.0.2.1:443")),
        ("https://192.0.2.1:6443/", ("192.0.2.1", 6443, "", "192.0.2.1:6443")),
        ("https://[2001:db8::1]:6443", ("2001:db8::1", 6443, "", "[2001:db8::1]:6443")),
        (
            "https://API.example/k8s/clusters/c-1/",
            ("api.example", 443, "/k8s/clusters/c-1", "api.example:443"),
        ),
    ],
)
def test_the_server_is_an_address_or_a_name_with_a_port_and_a_prefix(
    path: Path, url: str, expected: tuple[str, int, str, str]
) -> None:
    (server,) = load(write(path, document({"server": url}))).endpoints
    assert (server.host, server.port, server.prefix, server.authority) == expected


def test_further_servers_come_after_the_kubeconfigs_own(path: Path) -> None:
    kubeconfig = load(write(path, document()), ["https://192.0.2.2:6443"])
    assert kubeconfig.endpoints[1] == Endpoint("https://192.0.2.2:6443", "192.0.2.2", 6443, "")
    assert [server.host for server in kubeconfig.endpoints] == ["192.0.2.1", "192.0.2.2"]


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1",
        "192.0.2.1:6443",
        "https://",
        "https://192.0.2.1:0",
        "https://192.0.2.1:65536",
        "https://192.0.2.1:port",
        "https://[::1",
        "https://[fe80::1%25eth0]:6443",
        "https://192.0.2.1/?a=b",
        "https://192.0.2.1/#a",
        "https://user@192.0.2.1",
        "https://:password@192.0.2.1",
        "https://192.0.2.1/with space",
        "https://192.0.2.1/ä",
        "https://exa\u0000mple.com",
        "https://exa\nmple.com",
        "https://ä.example.com",
        "https://.example.com",
        "https://192.0.2.256",
        "https://exam_ple.com",
        "https://example..com",
        f"https://{'a' * 64}.example.com",
        "\ud800",
    ],
)
def test_what_is_no_url_of_an_api_server_is_refused(url: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        endpoint(url, "api.servers")
    assert caught.value.message == f"api.servers: {url!r} is not the URL of an API server"


def test_embedded_data_is_decoded_and_may_have_line_breaks(path: Path) -> None:
    user = {"client-certificate-data": SOME_BASE64, "client-key-data": f"{SOME_BASE64[:4]}\n{SOME_BASE64[4:]}\n"}
    kubeconfig = load(write(path, document({"certificate-authority-data": SOME_BASE64}, user)))
    for material in (kubeconfig.authority, kubeconfig.certificate, kubeconfig.key):
        assert material is not None and (material.read(), material.path) == (SOME_BYTES, "")


def test_files_are_found_beside_the_kubeconfig_or_by_their_full_path(path: Path) -> None:
    user = {"client-certificate": "pki/client.crt", "client-key": "/etc/client.key", "tokenFile": "../token"}
    kubeconfig = load(os.path.relpath(write(path, document({"certificate-authority": "ca.crt"}, user))))
    materials = (kubeconfig.authority, kubeconfig.certificate, kubeconfig.key, kubeconfig.token)
    paths = [material and os.path.normpath(material.path) for material in materials]
    here = path.parent
    assert paths == [f"{here}/ca.crt", f"{here}/pki/client.crt", "/etc/client.key", f"{here.parent}/token"]


def test_embedded_data_wins_over_a_file_and_a_token_file_over_a_token(path: Path) -> None:
    user = {"token": "old", "tokenFile": "token"}
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": SOME_BASE64}
    kubeconfig = load(write(path, document(cluster, user)))
    assert kubeconfig.authority is not None and kubeconfig.authority.read() == SOME_BYTES
    assert kubeconfig.token is not None and kubeconfig.token.path == str(path.parent / "token")


@pytest.mark.parametrize(
    ("user", "key"),
    [
        ({"exec": {"command": "aws"}}, "exec"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider"),
        ({"username": "me", "password": "x"}, "username"),
        ({"password": "x"}, "password"),
        ({"token": "x", "as": "admin"}, "as"),
    ],
)
def test_credentials_that_a_daemon_must_not_use_are_refused_by_name(path: Path, user: dict[str, Any], key: str) -> None:
    assert complaint(path, document(user=user)).startswith(f": users[here].user.{key} can't be used: ")


@pytest.mark.parametrize(("key", "value"), [("proxy-url", "http://proxy"), ("insecure-skip-tls-verify", True)])
def test_ways_to_the_server_that_prove_nothing_are_refused_by_name(path: Path, key: str, value: object) -> None:
    assert complaint(path, document({key: value})).startswith(f": clusters[here].cluster.{key} can't be used: ")


def test_what_is_refused_when_true_may_be_false(path: Path) -> None:
    load(write(path, document({"insecure-skip-tls-verify": False})))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (document(**{"current-context": ""}), ": current-context is not set"),
        (document(**{"current-context": 5}), ": current-context is of type int, not text"),
        (document(**{"current-context": "there"}), ": contexts has no entry named 'there'"),
        (document(contexts=None), ": contexts has no entry named 'here'"),
        (document(contexts=[{"name": "here"}]), ": contexts[here].context is not a mapping"),
        (document(clusters=[{"name": "there"}]), ": clusters has no entry named 'here'"),
        (document(clusters={"here": {}}), ": clusters has no entry named 'here'"),
        (document(clusters=["here", 1, None]), ": clusters has no entry named 'here'"),
        (document(clusters=[{"name": "here", "cluster": []}]), ": clusters[here].cluster is not a mapping"),
        (document(users=[{"name": ["here"]}]), ": users has no entry named 'here'"),
        (document(users=[{"name": "here", "user": "me"}]), ": users[here].user is not a mapping"),
        (
            document({"server": "http://x"}),
            ": clusters[here].cluster.server: 'http://x' is not the URL of an API",
        ),
        (document({"server": None}), ": clusters[here].cluster.server is not set"),
        (document({"server": ["x"]}), ": clusters[here].cluster.server is of type list, not text"),
        (
            document({"tls-server-name": ".x"}),
            ": clusters[here].cluster.tls-server-name: '.x' is neither a host name nor an address",
        ),
        (
            document({"certificate-authority-data": "no base64"}),
            ": clusters[here].cluster.certificate-authority-data is not base64",
        ),
        (
            document({"certificate-authority-data": 5}),
            ": clusters[here].cluster.certificate-authority-data is of type int, not text",
        ),
        (document(user={}), ": users[here].user holds no credential"),
        (
            document(user={"client-certificate": "a.crt"}),
            ": users[here].user has a client-certificate and no client-key",
        ),
        (
            document(user={"client-key-data": SOME_BASE64}),
            ": users[here].user has a client-key and no client-certificate",
        ),
        ([], ": the document is not a mapping"),
        ("text", ": the document is not a mapping"),
        (b"", ": the document is not a mapping"),
        (b"a: b\nc: [", ", line 2: is not YAML: expected the node content, but found '<stream end>'"),
        (b"a: b\na: *c", ", line 2: is not YAML: found undefined alias 'c'"),
        (b"a: !!python/object:os.system b", ", line 1: is not YAML: could not determine a constructor for the tag"),
        (b"a: b\n---\nc: d", ", line 2: is not YAML: but found another document"),
        (b"\xff\xfe\xfd", ": is not YAML: unacceptable character"),
        (b"a: \xe4", ": is not YAML: unacceptable character"),
        (b"a: !!bool perhaps", ": is not YAML: it could not be read: KeyError: 'perhaps'"),
        (b"[" * 1_000, ": is not YAML: it refers to itself, or is nested too deeply"),
        (b"a: &a [*a]", ": is not YAML: it refers to itself, or is nested too deeply"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_names_the_place(path: Path, content: Any, said: str) -> None:
    assert complaint(path, content).startswith(said)


def test_an_unknown_name_is_answered_with_those_that_there_are(path: Path) -> None:
    users = [{"name": "kubelet"}, {"name": "admin"}, {"name": {"a": "b"}}]
    with pytest.raises(KubeconfigError) as caught:
        load(write(path, document(users=users)))
    assert caught.value.hint == "There are: admin, kubelet."


def test_aliases_that_stand_for_far_more_than_they_weigh_are_refused(path: Path) -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 6):
        aliases = b", ".join([b"*a%d" % (level - 1)] * 10)
        lines.append(b"a%d: &a%d [%s]" % (level, level, aliases))
    assert complaint(path, b"\n".join(lines)).startswith(": is not YAML: it stands for more than")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    (tmp_path / "dangling").symlink_to("nowhere")
    for name, said in {
        "missing": "does not exist",
        "dangling": "points to a file that does not exist",
        ".": "is a directory; a regular file is needed",
        "fifo": "is a FIFO; a regular file is needed",
        "large": "is larger than 1024 KiB, the most that is read",
    }.items():
        path = os.path.abspath(tmp_path / name)
        with pytest.raises(UserError) as caught:
            load(path)
        assert caught.value.message == f"{path}: {said}"
    with pytest.raises(UserError, match="embedded null byte"):
        load("a\0b")


# Reading YAML takes a process each time, so there are fewer examples than usual.
FEW = tries(25, suppress_health_check=[HealthCheck.too_slow])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["here", "a\0b"])
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=5
)


def only_user_errors(content: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        try:
            Credentials(load(write(Path(directory) / "kubeconfig", content)))
        except UserError as error:
            assert error.message.startswith(directory)


@FEW
@given(st.binary() | st.text().map(str.encode))
def test_arbitrary_bytes_are_never_more_than_an_error_for_people(content: bytes) -> None:
    only_user_errors(content)


@FEW
@given(st.data())
def test_a_kubeconfig_with_arbitrary_values_in_it_is_never_more_than_an_error_for_people(data: st.DataObject) -> None:
    keys = ["certificate-authority", "certificate-authority-data", "tls-server-name", "server"]
    cluster = data.draw(st.dictionaries(st.sampled_from(keys), ANYTHING, max_size=2))
    keys = ["client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile"]
    user = data.draw(st.none() | st.dictionaries(st.sampled_from(keys), ANYTHING))
    top = data.draw(st.dictionaries(st.sampled_from(["contexts", "clusters", "users"]), ANYTHING, max_size=1))
    only_user_errors(document(cluster, user, **top))
