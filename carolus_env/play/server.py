"""The server of the page: static files and the JSON interface, on this machine only.

Any web site can make a browser send requests to 127.0.0.1, and can point its own host name there
(DNS rebinding). The origin of a request reveals the first, its host the second. Every answer
tells the browser to run no scripts but the server's own files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from carolus_env.engine.rules import Rules
from carolus_env.play.api import REQUESTS, Api
from carolus_env.play.session import LEVELS, Roster
from carolus_env.system.cancellation import Stop
from carolus_env.system.untrusted import check, only, parse_json

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 8715
STATIC: Final = Path(__file__).parent / "static"
MAX_BODY: Final = 4 * 2**20  # maximum number of bytes of a request
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
    """ASGI middleware that refuses requests of other sites and adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = TrustedHostMiddleware(app, [HOST, "localhost"], www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache")  # or a new page loads old modules
            await send(message)

        app: ASGIApp = self._app
        headers = Headers(scope=scope)
        named, own = headers.getlist("origin"), [f"http://{headers.get('host')}"]
        if named != own and (named or scope["method"] not in ("GET", "HEAD")):
            app = Answer({"error": "requests of other origins are refused"}, 403)
        await app(scope, receive, guarded)


class Answer(JSONResponse):
    """JSON in ASCII, since UTF-8 cannot encode the lone surrogates that JSON may hold."""

    def render(self, content: Any) -> bytes:
        """Return the content as JSON without blanks."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def make_app(api: Api) -> ASGIApp:
    """Make the ASGI app of the server."""

    wrong = (ValueError, TypeError, OverflowError)  # as requests may be

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def menu(request: Request) -> Response:
        return Answer(api.menu())

    async def records(request: Request) -> Response:
        found = api.records(**request.path_params)
        if isinstance(found, bytes):
            return Response(found, media_type="application/json")
        return Answer(found)

    def posted(name: str) -> Route:
        work, known = getattr(api, name), REQUESTS[name]

        async def endpoint(request: Request) -> Response:
            body = await _json(request, known)
            return Answer(await _worked(request, lambda: work(body)))

        return Route(f"/api/{name}", endpoint, methods=["POST"])

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return Answer({"error": error.detail}, error.status_code)
        if isinstance(error, wrong):
            return Answer({"error": str(error)}, 400)
        traceback.print_exception(error)
        return Answer({"error": "internal error of the server; its console shows more"}, 500)

    starlette = Starlette(
        routes=[
            *(Route(path, page) for path in ("/", "/game", "/replay", "/replay/{file}")),
            Route("/api/menu", menu),
            Route("/api/records/{file:int}", records),
            Route("/api/records/{file:int}/{game:int}", records),
            *map(posted, REQUESTS),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers=dict.fromkeys((*wrong, HTTPException, Exception), failed),
    )
    starlette.router.redirect_slashes = False
    return Guard(starlette)


async def _json(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """Return the values of the known keys in the JSON object that a request brings, as sent."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "the body must be application/json")
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BODY:
                raise HTTPException(413, f"too large, the limit is {MAX_BODY // 2**20} MiB")
        body = check(parse_json(bytes(data)), dict, "the body")
        only(body, known)
        return {
            key: check(value, known[key], key) for key, value in body.items() if value is not None
        }
    except ClientDisconnect:  # nobody reads the answer
        raise HTTPException(400, "the request was cut off") from None


async def _worked(request: Request, work: Callable[[], Any]) -> Any:
    """Return the result of work in a thread, which is told to stop when the client hangs up.

    The work checks a flag (`system.cancellation`) and soon gives its core back. An agent in a
    user's file may not check it; then its answer is dropped.
    """
    stop, ended = Stop(), list[tuple[Any, BaseException | None]]()

    def run() -> None:
        try:
            with stop.watched():
                ended.append((work(), None))
        except BaseException as error:  # in the loop some would end the server
            ended.append((None, error))

    async def watch(scope: anyio.CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(watch, group.cancel_scope)
            await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
            group.cancel_scope.cancel()
    finally:
        stop.set()
    result, error = ended[0] if ended else (None, HTTPException(400, "the request was cut off"))
    if error is not None:
        raise error
    return result


# ------------------------------------------------------------------------------------ running


def open_socket(port: int | None) -> socket.socket:
    """Listen on a port of 127.0.0.1; None: on the usual one, or on any when that is taken."""
    if port is not None:
        return socket.create_server((HOST, port))
    try:
        return socket.create_server((HOST, USUAL_PORT))
    except OSError:
        return socket.create_server((HOST, 0))


def make_server(api: Api) -> uvicorn.Server:
    """Make a server: ``make_server(api).run(sockets=[open_socket(None)])``."""
    config = uvicorn.Config(
        make_app(api),
        log_config=None,
        log_level="critical",  # requests that Ctrl-C cuts off end mute
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(api: Api, listening: socket.socket, program: str) -> NoReturn:
    """Serve until Ctrl-C, then end the process with exit code 130.

    Python's own end is left out: it would crash while a thread is in the compiler. Whatever else
    ends the server ends the process, too.
    """
    code = 1
    try:
        try:
            start_compiling(api.roster)
            with contextlib.suppress(KeyboardInterrupt):  # not raised where it is ignored
                make_server(api).run(sockets=[listening])
            code = 130  # nothing but a signal ends it
            print(f"{program}: interrupted", file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


def start_compiling(roster: Roster) -> threading.Thread:
    """Compile the engine, the bots of the levels and the first adviser in the background."""

    def run() -> None:
        api = Api(roster)
        try:
            for spec in [None, *(level.agents[Rules().players] for level in LEVELS)]:
                game = api.view({"rules": {"max_rounds": 2}, "agents": [None, spec], "seed": 1})
                while game["turn"] != "over":
                    action = game["legal"][0]["action"] if game["turn"] == "person" else None
                    game = api.decide({"record": game["record"], "action": action})
            api.hint({"record": game["record"], "at": 1, "agent": roster.advisers()[0]})
        except BaseException:  # the page works without it; a game with this bot reports it
            traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
