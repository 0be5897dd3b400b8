"""`pp-leader timeline`: the last remediation of a node, drawn as text or as a picture."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from datetime import datetime
from html import escape

from pp_hostd.errors import UserError
from pp_hostd.files import write_whole
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import find_node
from pp_hostd.leader.commands.status import read_history
from pp_hostd.leader.fleet import FREED_STAGES, WAITING_STAGES
from pp_hostd.leader.timeline import Span, Timeline, last_remediation
from pp_hostd.model.moment import render_moment
from pp_hostd.service.output import filled, now, say, say_json
from pp_hostd.service.screen import EMPTY, FULL, Cell, Colour, Screen, this_screen

LEAST_CELLS = 10
LABELS, CHART, ROW, HEAD, PICTURE = 150, 560, 26, 66, 820
SHEET = """\
text { font: 13px system-ui, sans-serif; fill: #1c2733 }
.faint { fill: #66727f }
rect { fill: #3b78b5 } .held { fill: #b9c3cd } .freed { fill: #3f8f5b }
.frame { fill: #ffffff } line { stroke: #c2452d; stroke-dasharray: 4 3; stroke-width: 1.5 } .dead { fill: #c2452d }
@media (prefers-color-scheme: dark) {
text { fill: #e3e9ef } .faint { fill: #97a4b1 } .frame { fill: #12181f } .held { fill: #4a5663 } .dead { fill: #ef8a73 }
}
"""


def timeline(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        found = last_remediation(read_history(administrator), arguments.node)
        if found is None:
            find_node(administrator, arguments.node)  # a mistyped name is told with those that are like it
            hint = "The leaders keep their last 200 lines about all nodes. See: pp-leader history"
            raise UserError(f"the leaders' history has nothing about {arguments.node}", hint)
    if arguments.svg:
        write_whole(arguments.svg, timeline_svg(found, now()).encode())
    if arguments.json:
        say_json(found.as_json())
    else:
        say(timeline_text(found, this_screen(no_color=arguments.no_color), now()))
    return 0


def timeline_text(shown: Timeline, screen: Screen, at: datetime) -> str:
    """A row for each stage, its bar below the one before it where that ended."""
    width = max(len(span.stage) for span in shown.spans)
    cells = max(LEAST_CELLS, screen.width - width - 2 * 10 - 2)
    whole = max(1.0, _offset(shown, _end(shown, at)))
    rows = [
        (
            Cell(span.stage, Colour.FAINT if _is_held(span) else None),
            f"{_offset(shown, span.began_wallclock):>5g} s",
            f"{_took(span, at):>5g} s",
            _bar(shown, span, at, whole, cells, screen),
        )
        for span in shown.spans
    ]
    head = f"{shown.node}, {render_moment(shown.began_wallclock)}"
    return "\n\n".join([head, screen.table(("STAGE", "     AT", "   TOOK", ""), rows), _wrap(shown, screen)])


def _wrap(shown: Timeline, screen: Screen) -> str:
    return filled(shown.summary(), width=screen.width)


def _bar(shown: Timeline, span: Span, at: datetime, whole: float, cells: int, screen: Screen) -> Cell:
    """Each stage has one cell at least, so that a short one can be seen."""
    begins = min(cells - 1, int(cells * _offset(shown, span.began_wallclock) / whole))
    long = min(max(1, round(cells * _took(span, at) / whole)), cells - begins)
    full, empty = (FULL, EMPTY) if screen.blocks else ("#", ".")
    return Cell(empty * begins + full * long + empty * (cells - begins - long), _colour(span))


def _colour(span: Span) -> Colour | None:
    return Colour.FAINT if _is_held(span) else Colour.GREEN if _is_over(span) else Colour.YELLOW


def _is_held(span: Span) -> bool:
    return span.stage in WAITING_STAGES


def _is_over(span: Span) -> bool:
    return span.stage in FREED_STAGES


def _end(shown: Timeline, at: datetime) -> datetime:
    last = shown.spans[-1]
    return last.ended_wallclock or max(at, last.began_wallclock)


def _took(span: Span, at: datetime) -> float:
    return max(0.0, ((span.ended_wallclock or at) - span.began_wallclock).total_seconds() // 1)


def _offset(shown: Timeline, moment: datetime) -> float:
    return max(0.0, (moment - shown.began_wallclock).total_seconds() // 1)


# The picture.


def timeline_svg(shown: Timeline, at: datetime) -> str:
    """It needs nothing from elsewhere, follows the reader's colour scheme, and says in words what it shows."""
    whole = max(1.0, _offset(shown, _end(shown, at)))
    height = HEAD + ROW * len(shown.spans) + 24
    rows = "".join(_svg_row(shown, span, at, whole, HEAD + ROW * number) for number, span in enumerate(shown.spans))
    node, summary = escape(shown.node), escape(shown.summary())
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PICTURE} {height}" width="{PICTURE}" height="{height}" \
role="img" aria-labelledby="title summary">
<title id="title">The remediation of {node}</title>
<desc id="summary">{summary}</desc>
<style>
{SHEET}</style>
<rect class="frame" width="{PICTURE}" height="{height}"/>
<text x="16" y="26" font-weight="bold">{node}, {render_moment(shown.began_wallclock)}</text>
<text x="16" y="46" class="faint">{summary}</text>
{rows}{_svg_promise(shown, whole, height)}</svg>
"""


def _svg_row(shown: Timeline, span: Span, at: datetime, whole: float, y: int) -> str:
    x = LABELS + CHART * _offset(shown, span.began_wallclock) / whole
    width = max(2.0, CHART * _took(span, at) / whole)
    kind = "held" if _is_held(span) else "freed" if _is_over(span) else "work"
    return (
        f'<text x="16" y="{y + 15}">{escape(span.stage)}</text>'
        f'<rect class="{kind}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="16" rx="2">'
        f"<title>{escape(span.sentence)}</title></rect>"
        f'<text x="{LABELS + CHART + 12}" y="{y + 15}" class="faint">{_took(span, at):g} s</text>\n'
    )


def _svg_promise(shown: Timeline, whole: float, height: int) -> str:
    """The line at the promised end, if that is on the picture."""
    if shown.dead_by_wallclock is None or _offset(shown, shown.dead_by_wallclock) > whole:
        return ""
    x = LABELS + CHART * _offset(shown, shown.dead_by_wallclock) / whole
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEAD - 4}" y2="{height - 18}"/>'
        f'<text x="{x:.1f}" y="{height - 5}" text-anchor="middle" class="dead">dead by here, as promised</text>\n'
    )
