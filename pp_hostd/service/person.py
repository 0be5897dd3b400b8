"""Whom a command speaks with: who it is, when, and their word that they mean it."""

from __future__ import annotations

import os
import pwd
import sys
from datetime import datetime, timezone

from pp_hostd.errors import UserError
from pp_hostd.model.record import PROSE


def who(name: str = "") -> str:
    """The name given, or the user behind sudo, or the user."""
    return one_line(name or os.environ.get("SUDO_USER") or user_name(os.getuid()))


def user_name(uid: int) -> str:
    """Their name, or, as in a container that knows nobody, the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def one_line(text: str) -> str:
    """The text, if a record can hold it."""
    if PROSE.pattern.fullmatch(text) is None:
        raise UserError(f"{text[:60]!a}: is not one line of 1 to 500 characters")
    return text


def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def confirm(name: str, *, yes: bool | None) -> None:
    """Return only if they type the node's name back, or have said --yes; None: the command has no such option."""
    if yes:
        return
    if not (sys.stdin and sys.stdin.isatty()):
        hint = "Run it on a terminal." if yes is None else "If you are sure, say --yes."
        raise UserError("nothing was changed: there is no terminal to ask on", hint)
    try:
        typed = input("Type the node's name to go on: ")
    except EOFError:
        typed = ""
    if typed.strip() != name:
        raise UserError(f"nothing was changed: that is not {name}")
