"""`pp-hostd maintenance`: disarm this host for planned work, and say who does it, why and until when."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta, timezone

from pp_hostd.agent.commands.daemon_link import order, report
from pp_hostd.agent.commands.status import maintenance_text
from pp_hostd.errors import UserError
from pp_hostd.model.moment import parse_duration, parse_moment, render_moment
from pp_hostd.service.output import one_line, say, say_json, who

EXIT_STILL_ARMED = 1


def begin(arguments: Namespace) -> int:
    until = moment_of(arguments.until, datetime.now(timezone.utc))
    wanted = {"who": who(arguments.who), "why": one_line(arguments.why), "until": render_moment(until)}
    answer = order("maintenance-on", **wanted)
    say(answer.sentence)
    return 0 if answer.done else EXIT_STILL_ARMED


def end(arguments: Namespace) -> int:
    say(order("maintenance-off", who=who(arguments.who)).sentence)
    return 0


def status(arguments: Namespace) -> int:
    current = report()["maintenance"]
    if arguments.json:
        say_json(current)
    else:
        say(maintenance_text(current) or "There is no maintenance.")
    return 0


def moment_of(text: str, now: datetime) -> datetime:
    """The time that was named, or that lies so far ahead; it must be to come."""
    seconds, moment = parse_duration(text), parse_moment(text)
    if seconds is not None:
        moment = now.replace(microsecond=0) + timedelta(seconds=seconds)
    if moment is None:
        raise UserError(f"--until {text}: is no time", "Allowed: 90s, 30m, 4h, 2d, or a time like 2026-03-01T12:00:00Z")
    if moment <= now:
        raise UserError(f"--until {text}: is over already", "Name a time to come.")
    return moment
