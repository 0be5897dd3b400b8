"""The leader's page, for people on this host and those who forward its port: three files and a stream of events.

It only shows. It listens on loopback, and a browser that some other site has sent here gets nothing.
"""

from __future__ import annotations

import os

from pp_hostd import __version__
from pp_hostd.kube.client import Json
from pp_hostd.leader.page.live import Live
from pp_hostd.model.settings import Settings
from pp_hostd.service.http_port import Limits, Reply, Request
from pp_hostd.timing import timeline

ADDRESS = "127.0.0.1"
LIMITS = Limits(connections=64)
MAX_READERS = 16
EVENTS = b"/events"
FILES = {
    b"/": ("page.html", b"text/html; charset=utf-8"),
    b"/page.css": ("page.css", b"text/css; charset=utf-8"),
    b"/page.js": ("page.js", b"text/javascript; charset=utf-8"),
}
OWN_NAMES = frozenset((b"127.0.0.1", b"localhost", b"[::1]"))
OWN_SITE = frozenset((b"", b"none", b"same-origin"))
"""The site whose page has made a browser ask, as the browser tells it; older ones tell nothing."""
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = b"".join(
    b"%b: %b\r\n" % header
    for header in (
        (b"Content-Security-Policy", POLICY),
        (b"X-Content-Type-Options", b"nosniff"),
        (b"Referrer-Policy", b"no-referrer"),
        (b"X-Frame-Options", b"DENY"),
        (b"Cross-Origin-Resource-Policy", b"same-origin"),
        (b"Cross-Origin-Opener-Policy", b"same-origin"),
        (b"Cache-Control", b"no-store"),
    )
)


class PageServer:
    """`respond` is what the listener does with a request."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._files: dict[str, bytes] = {}

    async def respond(self, request: Request) -> Reply:
        reply = self._reply(request)
        return reply._replace(extra=reply.extra + HEADERS)

    def _reply(self, request: Request) -> Reply:
        host, _, port = request.headers.get(b"host", b"").rpartition(b":")
        if (host if port.isdigit() else request.headers.get(b"host", b"")).lower() not in OWN_NAMES:
            return Reply(421, b"this page is for this host alone: open it as localhost or 127.0.0.1, by ssh -L\n")
        if request.method not in (b"GET", b"HEAD"):
            return Reply(405, b"this page can only be read\n", extra=b"Allow: GET, HEAD\r\n")
        target = request.target.partition(b"?")[0]
        if target in FILES:
            name, content_type = FILES[target]
            return Reply(200, self._file(name), content_type)
        if target != EVENTS:
            return Reply(404, b"there are /, /page.css, /page.js and /events\n")
        if request.headers.get(b"sec-fetch-site", b"") not in OWN_SITE:
            return Reply(403, b"only the page itself follows its events\n")
        if self._live.readers >= MAX_READERS:
            return Reply(503, b"%d readers follow this page, and no more may\n" % MAX_READERS)
        stream = self._live.stream() if request.method == b"GET" else None
        return Reply(200, b"", b"text/event-stream; charset=utf-8", stream=stream)

    def _file(self, name: str) -> bytes:
        """Read when it is first wanted: most leaders are never looked at."""
        if name not in self._files:
            with open(os.path.join(os.path.dirname(__file__), "assets", name), "rb") as file:
                self._files[name] = file.read()
        return self._files[name]


def promise_of(settings: Settings, host: str) -> Json:
    """The part of the page that never changes: whose it is, and what its settings promise."""
    promised = timeline(settings)
    return {
        "host": host,
        "version": __version__,
        "rows": promised.rows(),
        "unfed_seconds": promised.unfed_seconds,
        "dead_seconds": promised.dead_seconds,
        "acts_seconds": promised.leader_acts_seconds,
        "outage": promised.outage(),
    }
