"""The user of a command has a name, whatever the system knows of that user."""

from __future__ import annotations

from pp_hostd.service.output import user_name


def test_a_user_that_the_system_knows_goes_by_its_name() -> None:
    assert user_name(0) == "root"


def test_a_user_that_the_system_does_not_know_goes_by_its_number() -> None:
    assert user_name(4_000_000_000) == "uid-4000000000"
