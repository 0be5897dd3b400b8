"""The files and the help that come from the table of settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pp_hostd.config import SETTINGS, load
from pp_hostd.model.settings import Settings
from pp_hostd.reference import commented_file, reference_page, settings_text

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "text"), [("etc/pp-hostd.toml", commented_file()), ("docs/settings.md", reference_page())]
)
def test_the_file_in_the_checkout_is_what_the_table_says(name: str, text: str) -> None:
    assert (CHECKOUT / name).read_text() == text, f"{name} is out of date: run `make docs`"


def test_the_commented_file_sets_nothing() -> None:
    loaded = load(str(CHECKOUT / "etc" / "pp-hostd.toml"))
    assert (loaded.settings, loaded.sources) == (Settings(), {})


def test_the_commented_file_uncommented_sets_every_setting_to_its_default(tmp_path: Path) -> None:
    path = tmp_path / "pp-hostd.toml"
    path.write_text(re.sub(r"^#(?=\w)", "", commented_file(), flags=re.MULTILINE))
    loaded = load(str(path))
    assert loaded.settings == Settings()
    assert set(loaded.sources) == set(SETTINGS)


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_told_with_its_range_and_consequence(key: str) -> None:
    setting = SETTINGS[key]
    for text in (commented_file(), reference_page()):
        assert setting.name in text
        assert setting.consequence in text
    _, table = settings_text().split(f"[{setting.table}]\n")
    line = next(line for line in table.splitlines() if line.startswith(f"  {setting.name} = "))
    assert line.endswith(f" {setting.allowed}")


def test_the_page_shows_the_timeline_of_the_defaults() -> None:
    assert "| 44 | the leader may act" in reference_page()
