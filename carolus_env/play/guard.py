"""The server answers its own page, on this machine, and nothing else.

Any web site can make a browser send requests to 127.0.0.1, and can point its own host name there
(DNS rebinding). The origin of a request gives away the first, its host the second. Every answer
tells the browser to run no scripts but the server's own files.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_SAFE_METHODS: Final = ("GET", "HEAD")


class Guard:
    """ASGI middleware that refuses requests of other sites and adds `HEADERS` to every answer.

    Args:
        app: the app behind it.
        port: the server's on 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        if port == 80:
            self._hosts |= {"127.0.0.1", "localhost", "[::1]"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # web sockets are not used
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache")  # or a new page loads old modules
            await send(message)

        reason = self._refusal(scope)
        if reason is not None:
            await JSONResponse({"error": reason}, 403)(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except asyncio.CancelledError:  # the server stops
            if not begun:
                stopping = JSONResponse({"error": "the server is stopping"}, 503)
                await stopping(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return f"this server answers only to {', '.join(sorted(self._hosts))}"
        reads = scope["method"] in _SAFE_METHODS
        origins = headers.getlist("origin")
        if not origins and not reads:
            return "a request that changes something must name its origin"
        if not self._origins.issuperset(origins):
            return "requests from other origins are refused"
        site = headers.get("sec-fetch-site", "none")
        opens_page = (
            reads
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
            and not scope["path"].startswith("/api/")
        )
        if site not in ("same-origin", "none") and not opens_page:
            return "requests from other sites are refused"
        return None
