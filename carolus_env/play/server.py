"""The server of the page: static files and the JSON interface, on this machine only."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from carolus_env.play.after import After
from carolus_env.play.api import Api
from carolus_env.play.app_state import AppState
from carolus_env.play.guard import Guard
from carolus_env.play.wire import Answer, RequestError

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 8715
STATIC: Final = Path(__file__).parent / "static"


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Answer({"error": error.reason, **error.more}, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Answer({"error": error.detail}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    return Answer({"error": "internal error of the server; its console shows more"}, 500)


def make_app(app: AppState, port: int) -> Guard:
    """The ASGI app of a server that listens on ``port`` of 127.0.0.1."""
    paths = ("/", "/game/{key}", "/replay", "/replay/{key}", "/position")
    pages, api = [Route(path, _page) for path in paths], Api(app)
    starlette = Starlette(
        routes=[
            *pages,
            *After(api).routes(),
            *api.routes(),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
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


def make_server(app: AppState, listening: socket.socket) -> Any:
    """A uvicorn server on an open socket: ``make_server(...).run(sockets=[listening])``."""
    import uvicorn

    from carolus_env.play.connections import MOST, Connection

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.close()  # so that who waits is told
            await super().shutdown(sockets)

    port = listening.getsockname()[1]
    return Server(
        uvicorn.Config(
            make_app(app, port),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=Connection,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            limit_concurrency=2 * MOST,
            backlog=128,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
