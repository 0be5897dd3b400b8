"""Reading the configuration: what wins, and every mistake with its place and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pp_hostd.config import ConfigError, Loaded, Problem, Source, load
from pp_hostd.model.settings import Api, Settings


def write(directory: Path, **files: str) -> str:
    """pp-hostd.toml from `main`, and a file of conf.d from each other argument."""
    (directory / "conf.d").mkdir()
    for name, text in files.items():
        place = directory / "pp-hostd.toml" if name == "main" else directory / "conf.d" / f"{name}.toml"
        place.write_text(text)
    return str(directory / "pp-hostd.toml")


def errors_of(path: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return caught.value.errors


def test_an_empty_file_means_every_default(tmp_path: Path) -> None:
    path = write(tmp_path, main="")
    assert load(path) == Loaded(Settings(), (path,), {})


def test_a_missing_conf_d_is_fine(tmp_path: Path) -> None:
    (tmp_path / "pp-hostd.toml").write_text("[api]\n")
    assert load(str(tmp_path / "pp-hostd.toml")).settings == Settings()


def test_later_files_win_key_by_key_in_the_order_of_their_names(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main="[api]\nread_interval_seconds = 3\nread_deadline_seconds = 1\nretry_seconds = 2\n",
        z="[api]\nread_interval_seconds = 5\n",
        a="[api]\nread_interval_seconds = 2\nread_deadline_seconds = 1.5\n",
    )
    loaded = load(path)
    assert loaded.settings.api == Api(read_interval_seconds=5, read_deadline_seconds=1.5, retry_seconds=2)
    a, z = (str(tmp_path / "conf.d" / name) for name in ("a.toml", "z.toml"))
    assert loaded.files == (path, a, z)
    assert loaded.sources == {
        "api.read_interval_seconds": Source(z, 2),
        "api.read_deadline_seconds": Source(a, 3),
        "api.retry_seconds": Source(path, 4),
    }


def test_of_conf_d_only_toml_files_that_are_not_hidden_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, main="")
    for name in ("a.toml.rpmnew", "b.toml~", ".c.toml", "README"):
        (tmp_path / "conf.d" / name).write_text("this is no TOML")
    assert load(path).files == (path,)


@pytest.mark.parametrize(
    ("text", "line", "key", "found", "nearest", "words"),
    [
        # a value that is not allowed
        ("[api]\n\nread_interval_seconds = 0", 3, "api.read_interval_seconds", "0", "", "from 0.1 to 60 (seconds)"),
        ("[api]\nread_interval_seconds = nan", 2, "api.read_interval_seconds", "nan", "", "must be a number"),
        ("[api]\nread_interval_seconds = inf", 2, "api.read_interval_seconds", "inf", "", "must be a number"),
        ("[api]\nread_interval_seconds = true", 2, "api.read_interval_seconds", "true", "", "must be a number"),
        ("[api]\nread_interval_seconds = '4s'", 2, "api.read_interval_seconds", "'4s'", "", "must be a number"),
        ("[api]\nretry_seconds = 2024-01-01", 2, "api.retry_seconds", "2024-01-01", "", "must be a number"),
        ("peers.rounds = 2.5", 1, "peers.rounds", "2.5", "", "must be a whole number from 1 to 20"),
        ("[watchdog]\ntimeout_seconds = true", 2, "watchdog.timeout_seconds", "true", "", "whole number from 2 to 120"),
        ("[api]\nkubeconfig = 'kube'", 2, "api.kubeconfig", "'kube'", "", "must be a path that begins with /"),
        ("[api]\nservers = 'https://a'", 2, "api.servers", "'https://a'", "", "must be a list of https URLs"),
        ("[api]\nservers = [\n'https://a',\n['b', 5]]", 2, "api.servers", "['https://a', [...]]", "", "must be a list"),
        ("[api.servers]\na = 1", 1, "api.servers", "a table", "", "must be a list of https URLs"),
        # what should be a table
        ("api = 4", 1, "api", "4", "", "must be a table, written [api]"),
        ("\n[[api]]\n[[api]]", 2, "api", "a list of tables", "", "must be a table, written [api]"),
        # what is not known
        ("[apis]\nx = 1\ny = 2", 1, "apis", "a table", "api", "not a known table; did you mean [api]?"),
        ("[kubernetes]\nx = 1", 1, "kubernetes", "a table", "", "no table is like it"),
        ("[api]\nread_interval = 4", 2, "api.read_interval", "4", "api.read_interval_seconds", "did you mean api"),
        ("[agent]\ntimeout = 4", 2, "agent.timeout", "4", "agent.self_timeout_seconds", "did you mean agent.self"),
        ("[api]\nrounds = 4", 2, "api.rounds", "4", "peers.rounds", "did you mean peers.rounds?"),
        ("read_interval_seconds = 4", 1, "read_interval_seconds", "4", "api.read_interval_seconds", "did you mean api"),
        ("[api]\ncolour = 'red'", 2, "api.colour", "'red'", "", "not a known setting; no setting is like it"),
        ("'api.servers' = []", 1, "'api.servers'", "[]", "api.servers", "did you mean api.servers?"),
        ("[api]\n'\\e[2J' = 4\n\"\\u001b\" = 4", 2, "api.'\\\\e[2J'", "4", "", "not a known setting"),
        # what is hard to show
        ("[" + "x" * 9000 + "]", 1, "x" * 117 + "...", "a table", "", "not a known table"),
        ("[api]\nretry_seconds = 0x" + "f" * 9000, 2, "api.retry_seconds", "0x" + "f" * 115 + "...", "", "must be"),
        ("[api]\nkubeconfig = '" + "x" * 9000 + "'", 2, "api.kubeconfig", "'" + "x" * 116 + "...", "", "must be"),
        ("[api]\nkubeconfig = \"\\u001b[2J\"", 2, "api.kubeconfig", "'\\x1b[2J'", "", "must be"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_place_and_the_way_out(
    tmp_path: Path, text: str, line: int, key: str, found: str, nearest: str, words: str
) -> None:
    path = write(tmp_path, main=text)
    error = errors_of(path)[0]
    assert (error.file, error.line, error.key, error.found, error.nearest) == (path, line, key, found, nearest)
    assert words in error.message
    assert error.allowed in error.message


def test_every_error_of_every_file_is_reported_at_once_by_file_and_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main="[agent]\nself_timeout_seconds = 'x'\n[api]\nretry = 1\nservers = 1\n",
        a="this is no TOML\n",
        b="[peers]\n\nrounds = 0\n",
    )
    a, b = (str(tmp_path / "conf.d" / name) for name in ("a.toml", "b.toml"))
    places = [(error.file, error.line) for error in errors_of(path)]
    assert places == [(path, 2), (path, 4), (path, 5), (a, 1), (b, 3)]


def test_a_value_that_is_not_allowed_is_an_error_even_where_a_later_file_mends_it(tmp_path: Path) -> None:
    path = write(tmp_path, main="peers.rounds = 0", a="peers.rounds = 4")
    assert [error.key for error in errors_of(path)] == ["peers.rounds"]


def test_a_contradiction_says_where_each_of_its_settings_was_set(tmp_path: Path) -> None:
    path = write(tmp_path, main="[api]\nread_interval_seconds = 3", a="[agent]\nself_timeout_seconds = 18.5")
    a = str(tmp_path / "conf.d" / "a.toml")
    (error,) = errors_of(path)
    assert (error.file, error.line, error.key, error.found) == (a, 2, "agent.self_timeout_seconds", "18.5")
    sentence, change, *rows = error.message.split("\n")
    assert "the first inquiry is 19 s and must be less than the self timeout, 18.5 s" in sentence
    assert change.startswith("to mend it, raise agent.self_timeout_seconds above 19 s, or lower api.read_interval_")
    assert [row.split(maxsplit=3) for row in rows] == [
        ["agent.self_timeout_seconds", "=", "18.5", f"{a}, line 2"],
        ["api.read_interval_seconds", "=", "3", f"{path}, line 2"],
        ["api.read_deadline_seconds", "=", "2", "the default"],
        ["peers.rounds", "=", "4", "the default"],
        ["peers.round_seconds", "=", "2", "the default"],
        ["api.retry_seconds", "=", "1", "the default"],
    ]


def test_a_contradiction_stands_beside_errors_that_do_not_touch_it(tmp_path: Path) -> None:
    path = write(tmp_path, main="[agent]\nself_timeout_seconds = 18.5\n[leader]\nmargin_seconds = 'x'\n")
    assert [error.key for error in errors_of(path)] == ["agent.self_timeout_seconds", "leader.margin_seconds"]


@pytest.mark.parametrize(
    "doubt",
    [
        "[api]\nread_interval_seconds = 'x'",
        "[api]\nread_intervall_seconds = 1",
        "[apis]\nread_interval_seconds = 1",
        "api = 1",
        "is no TOML",
    ],
)
def test_what_rests_on_a_doubtful_value_is_not_called_a_contradiction(tmp_path: Path, doubt: str) -> None:
    path = write(tmp_path, main="[agent]\nself_timeout_seconds = 15\n", a=doubt)
    assert [error.file for error in errors_of(path)] == [str(tmp_path / "conf.d" / "a.toml")]


def test_the_report_groups_the_errors_by_file_and_counts_them(tmp_path: Path) -> None:
    path = write(tmp_path, main="[api]\nretry = 1\n[apis]\n", a="[peers]\nrounds = 0\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert (
        str(caught.value)
        == f"""the configuration can't be used

{path}
  line 2    api.retry = 1
            is not a known setting; did you mean api.retry_seconds?
  line 3    [apis]
            is not a known table; did you mean [api]?

{tmp_path}/conf.d/a.toml
  line 2    peers.rounds = 0
            must be a whole number from 1 to 20 (rounds)

3 errors in 2 files.
  Correct them and run check-config again; check-config --help lists every setting."""
    )


@pytest.mark.parametrize(
    "key",
    ["power.cycle", "remediations.metal3", "remediations.metal3_proposed", "health.machine_health_checks"],
)
def test_what_needs_machines_is_refused_where_nodes_stand_for_themselves(tmp_path: Path, key: str) -> None:
    table, name = key.split(".")
    path = write(tmp_path, main=f"[{table}]\n{name} = true\n")
    (error,) = errors_of(path)
    assert (error.key, error.line) == (key, 2)
    assert 'needs api.machines = "openshift" or "cluster-api"' in error.message
    (tmp_path / "conf.d" / "a.toml").write_text('[api]\nmachines = "cluster-api"\n')
    assert load(path).sources[key] == Source(path, 2)


def test_objects_for_hosts_that_reset_themselves_are_allowed_where_nodes_stand_for_themselves(tmp_path: Path) -> None:
    assert load(write(tmp_path, main="[remediations]\npoison_pill = true\n")).settings.remediations.poison_pill
