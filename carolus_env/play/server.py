"""The server of the page: static files and the JSON interface, on this machine only.

Any web site can make a browser send requests to 127.0.0.1, and can point its own host name there
(DNS rebinding). The origin of a request reveals the first, its host the second. Every answer
tells the browser to run no scripts but the server's own files.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from carolus_env.engine.rules import Rules
from carolus_env.play.api import Api
from carolus_env.play.requests import Answer, RequestError
from carolus_env.play.roster import LEVELS, Roster
from carolus_env.play.session import Session, hint
from carolus_env.play.views import game_view

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 8715
STATIC: Final = Path(__file__).parent / "static"
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""HTTP headers of every answer."""


class Guard:
    """ASGI middleware that refuses requests of other sites and adds `HEADERS` to every answer.

    Args:
        app: the app behind it.
        port: the server's on 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{host}:{port}" for host in (HOST, "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache")  # or a new page loads old modules
            await send(message)

        reason = self._refusal(scope)
        app = self._app if reason is None else Answer({"error": reason}, 403)
        await app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return f"this server answers only to {', '.join(sorted(self._hosts))}"
        if not origins and scope["method"] not in ("GET", "HEAD"):
            return "a request that changes something must name its origin"
        if not self._origins.issuperset(origins):
            return "requests from other origins are refused"
        return None


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Answer({"error": error.reason, **error.more}, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Answer({"error": error.detail}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    return Answer({"error": "internal error of the server; its console shows more"}, 500)


def make_app(api: Api, port: int) -> Guard:
    """Make the ASGI app of a server that listens on ``port`` of 127.0.0.1."""
    paths = ("/", "/game/{key}", "/replay", "/replay/{key}", "/position")
    pages = [Route(path, _page) for path in paths]
    starlette = Starlette(
        routes=[*pages, *api.routes(), Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers={RequestError: _refused, HTTPException: _http_error, Exception: _failed},
    )
    starlette.router.redirect_slashes = False
    return Guard(starlette, port)


def open_socket(port: int | None) -> socket.socket:
    """Listen on a port of 127.0.0.1; None: on the usual one, or on any when that is taken.

    Raises:
        OSError: when the port is taken or not allowed.
    """
    if port is not None:
        return socket.create_server((HOST, port))
    try:
        return socket.create_server((HOST, USUAL_PORT))
    except OSError:
        return socket.create_server((HOST, 0))


class Server(uvicorn.Server):
    """A uvicorn server on an open socket: ``Server(...).run(sockets=[listening])``.

    Args:
        api: what answers requests.
        listening: the socket.
    """

    def __init__(self, api: Api, listening: socket.socket) -> None:
        self._api = api
        self.interrupted = False
        """True after Ctrl-C."""
        super().__init__(
            uvicorn.Config(
                make_app(api, listening.getsockname()[1]),
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the agents that requests wait for; what is cut off all the same ends mute."""
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).disabled = True
        for search in tuple(self._api.searches):
            search.set()
        self.interrupted |= sig == signal.SIGINT
        super().handle_exit(sig, frame)


def serve(api: Api, listening: socket.socket, program: str) -> NoReturn:
    """Serve until Ctrl-C, then end the process with exit code 130.

    Python's own end is left out: it would crash while a thread is in the compiler. Whatever else
    ends the server ends the process, too.

    Args:
        api: what answers requests.
        listening: the socket.
        program: how the user calls the command.
    """
    code, server = 1, Server(api, listening)
    try:
        try:
            start_compiling(api.roster)
            server.run(sockets=[listening])
            code = 0
        except KeyboardInterrupt:
            server.interrupted = True
        except BaseException:
            traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if server.interrupted:
            code = 130
            print(f"{program}: interrupted", file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


def start_compiling(roster: Roster) -> threading.Thread:
    """Compile the engine, the bots of the levels and the first adviser in the background.

    Numba compiles each bot when it first decides, which takes seconds to half a minute, once on
    each machine.
    """

    def run() -> None:
        specs = [level.agents[Rules().players] for level in LEVELS]
        try:
            for spec in dict.fromkeys([None, *specs]):
                agents = [None if spec is None else roster.make(spec) for _ in range(2)]
                session = Session.new(Rules(max_rounds=2), agents, seed=1)
                while not session.over:
                    game_view(session, "tall")
                    if session.agent is None:
                        session.play(session.legal()[0].action)
                    else:
                        session.ask_agent()
            hint(roster.make(roster.advisers()[0]), Session.new(Rules(), [None] * 2).state)
        except BaseException:  # the page works without it; a game with this bot reports it
            traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
