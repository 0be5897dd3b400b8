"""Whatever stands in the place of a configuration file: one clear line, no hang, no traceback."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.config import LIMIT_BYTES, ConfigError, Problem, load
from pp_hostd.reference import commented_file


def only_error(path: Path) -> Problem:
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    (error,) = caught.value.errors
    assert "\n" not in error.message
    return error


def test_a_missing_file(tmp_path: Path) -> None:
    error = only_error(tmp_path / "pp-hostd.toml")
    assert (error.file, error.line) == (str(tmp_path / "pp-hostd.toml"), None)
    assert error.message == "does not exist"


def test_a_link_that_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").symlink_to(tmp_path / "gone")
    assert "points to a file that does not exist" in only_error(tmp_path / "pp-hostd.toml").message


def test_a_link_that_points_to_itself(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").symlink_to(tmp_path / "pp-hostd.toml")
    assert "can't be read" in only_error(tmp_path / "pp-hostd.toml").message


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in only_error(tmp_path).message


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pp-hostd.toml")
    assert "is a FIFO" in only_error(tmp_path / "pp-hostd.toml").message


def test_a_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "pp-hostd.toml"))
        assert only_error(tmp_path / "pp-hostd.toml").message


def test_a_device() -> None:
    assert "is a character device" in only_error(Path("/dev/null")).message


def test_a_file_whose_reading_fails() -> None:
    assert "can't be read" in only_error(Path("/proc/self/mem")).message


def test_a_file_that_this_user_may_not_read() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory, "pp-hostd.toml")
        path.touch(mode=0o000)
        user = os.geteuid()
        os.seteuid(user or 65534)
        try:
            error = only_error(path)
        finally:
            os.seteuid(user)
    assert "permission denied" in error.message


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pp-hostd.toml"
    path.write_bytes(b"#" * LIMIT_BYTES)
    assert load(str(path)).files == (str(path),)
    path.write_bytes(b"#" * (LIMIT_BYTES + 1))
    assert "is larger than 64 KiB" in only_error(path).message


def test_a_file_that_is_not_utf_8_names_the_line_and_the_byte(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").write_bytes(b"[api]\nkubeconfig = '/caf\xe9'\n")
    error = only_error(tmp_path / "pp-hostd.toml")
    assert error.line == 2
    assert "0xe9" in error.message


def test_a_file_in_the_place_of_conf_d(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").touch()
    (tmp_path / "conf.d").touch()
    error = only_error(tmp_path / "pp-hostd.toml")
    assert error.file == str(tmp_path / "conf.d")
    assert error.message == "must be a directory that can be read (Not a directory)"


def test_a_conf_d_that_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").touch()
    (tmp_path / "conf.d").symlink_to(tmp_path / "gone")
    assert only_error(tmp_path / "pp-hostd.toml").file == str(tmp_path / "conf.d")


def test_a_missing_file_does_not_hide_the_errors_of_conf_d(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a.toml").write_text("peers.rounds = 0")
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path / "pp-hostd.toml"))
    assert [error.key for error in caught.value.errors] == ["", "peers.rounds"]


def load_whatever(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pp-hostd.toml")
        path.write_bytes(content)
        try:
            load(str(path))
        except ConfigError as error:
            assert error.errors
            assert all(each.file == str(path) and each.message for each in error.errors)
            assert str(error).replace("\n", "").isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_give_settings_or_a_clear_error(content: bytes) -> None:
    load_whatever(content)


@given(st.integers(0, 10_000), st.binary(max_size=3))
def test_any_slip_of_the_hand_gives_settings_or_a_clear_error(position: int, slip: bytes) -> None:
    text = commented_file().replace("\n#", "\n").encode()
    position %= len(text)
    load_whatever(text[:position] + slip + text[position + 1 :])


names = st.one_of(
    st.sampled_from(["api", "peers", "servers", "rounds", "read_interval_seconds", "timeout_seconds", "kubeconfig"]),
    st.text(max_size=8).map(lambda text: f"'{text}'"),
)
scalars = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.booleans().map(lambda value: str(value).lower()),
    st.datetimes().map(str),
    st.text(max_size=12).map(lambda text: f"'{text}'"),
    st.sampled_from(["0x" + "f" * 5000, "9" * 4000, "1e999", "12:00:00"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(names, inner).map(lambda entry: f"{{{entry[0]} = {entry[1]}}}"),
    ),
    max_leaves=6,
)
lines = st.one_of(
    names.map(lambda name: f"[{name}]"),
    names.map(lambda name: f"[[{name}]]"),
    st.tuples(names, values).map(" = ".join),
    st.tuples(names, names, values).map(lambda entry: f"{entry[0]}.{entry[1]} = {entry[2]}"),
)


@given(st.lists(lines, max_size=8).map("\n".join))
def test_any_toml_gives_settings_or_a_clear_error(text: str) -> None:
    load_whatever(text.encode(errors="surrogatepass"))
