"""The table of settings as people read it: etc/pp-hostd.toml, docs/settings.md, and the list in `--help`.

`python -m pp_hostd.reference` writes the two files of a checkout.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

from pp_hostd.model.settings import Setting, Settings, every_setting
from pp_hostd.timing import Timeline, timeline

FILE_HEAD = """\
# The settings of pp-hostd and pp-leader. Each is shown with its default; remove the # in front of one to change it.
# The daemons read files named conf.d/*.toml beside this one after it, in the order of their names; the later file wins.
# `pp-hostd check-config` finds every mistake, and prints what the settings promise.
"""
PAGE_HEAD = """\
# Settings

The daemons read `/etc/pp-hostd/pp-hostd.toml`, and then the files `/etc/pp-hostd/conf.d/*.toml` in the order of their
names; the later file wins. `pp-hostd check-config` finds every mistake, and prints what the settings promise.

`make docs` generates this page and the commented file from the table in `pp_hostd/model/settings.py`.
"""


def by_table() -> Iterator[tuple[str, str, list[Setting]]]:
    """Each TOML table: its name, what it is about, and its settings."""
    for table, settings in itertools.groupby(every_setting(), key=lambda setting: setting.table):
        yield table, type(getattr(Settings, table)).__doc__ or "", list(settings)


def toml_value(value: Any) -> str:
    """A default, as it is written in TOML."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def commented_file() -> str:
    """etc/pp-hostd.toml, which the package installs: nothing is set in it."""
    text = FILE_HEAD
    for table, about, settings in by_table():
        text += f"\n# {about}\n[{table}]\n"
        for setting in settings:
            unit = f"{setting.unit.capitalize()}: " if setting.unit else ""
            allowed = f"{unit}{setting.allowed}"
            text += f"\n# {setting.consequence}\n# {allowed[0].upper()}{allowed[1:]}.\n"
            text += f"#{setting.name} = {toml_value(setting.default)}\n"
    return text


def reference_page() -> str:
    """docs/settings.md."""
    text = PAGE_HEAD
    for table, about, settings in by_table():
        text += f"\n## [{table}]\n{about}\n\n"
        text += "| setting | default | unit | allowed | what it means |\n|---|---|---|---|---|\n"
        for setting in settings:
            default = f"`{toml_value(setting.default)}`"
            cells = (f"`{setting.name}`", default, setting.unit, str(setting.allowed), setting.consequence)
            text += f"| {' | '.join(cells)} |\n"
    promise = timeline(Settings())
    text += "\n## What the defaults promise\nOf a host that fails, in seconds after its last proof began:\n\n"
    text += "| seconds | |\n|---|---|\n"
    text += "".join(f"| {seconds:g} | {sentence} |\n" for seconds, sentence in promise.rows())
    return text + f"\nWhen the control plane is what failed: {promise.outage()}.\n"


def settings_text() -> str:
    """Every setting with its default and what is allowed, for `--help`."""
    text = "settings, with their defaults and what is allowed:\n"
    for table, _, settings in by_table():
        text += f"\n  [{table}]\n"
        for setting in settings:
            assignment = f"{setting.name} = {toml_value(setting.default)}"
            text += f"  {assignment:<42} {setting.allowed}\n"
    return text


def promise_text(promise: Timeline) -> str:
    """The timeline for a terminal."""
    text = "What these settings promise of a host that fails, in seconds after its last proof began:\n\n"
    text += "".join(f"  {seconds:>6g}  {sentence}\n" for seconds, sentence in promise.rows())
    return text + f"\nWhen the control plane is what failed:\n\n  {promise.outage()}\n"


def main() -> None:
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, text in (("etc/pp-hostd.toml", commented_file()), ("docs/settings.md", reference_page())):
        path = os.path.join(checkout, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        sys.stdout.write(f"wrote {name}\n")


if __name__ == "__main__":
    main()
