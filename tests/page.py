"""The page's server, as `python -m carolus_env.play` starts it, and games to be shown in it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from carolus_env import bots
from carolus_env.engine.rules import Rules
from carolus_env.play.api import Api
from carolus_env.play.server import make_server, open_socket
from carolus_env.play.session import Session


class Page:
    """A running server and a plain client of it."""

    def __init__(self, app: Api, port: int) -> None:
        self.app, self.port = app, port
        self.address = f"http://127.0.0.1:{port}"

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower case) and content of the answer; a header of None is left out."""
        given = {"Host": f"127.0.0.1:{self.port}", "Origin": self.address}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None and "Content_Length" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> tuple[int, Any]:
        status, _, content = self.request("GET", f"/api/{path}", **headers)
        return status, json.loads(content)

    def post(self, path: str, data: Any, **headers: str | None) -> tuple[int, Any]:
        headers = {"Content_Type": "application/json", **headers}
        body = json.dumps(data).encode()
        status, _, content = self.request("POST", f"/api/{path}", body, **headers)
        return status, json.loads(content)

    def post_file(self, name: str, content: bytes) -> tuple[int, Any]:
        kind = "application/octet-stream"
        status, _, answer = self.request(
            "POST", f"/api/files?name={name}", content, Content_Type=kind
        )
        return status, json.loads(answer)


@contextmanager
def serving(app: Api, port: int = 0) -> Iterator[Page]:
    """A server on this port (0: a free one), until the context ends."""
    listening = open_socket(port)
    server = make_server(app, listening)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Page(app, listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


def finished(
    agent: str = "random", rounds: int | None = 3, seed: int = 1, **more: Any
) -> dict[str, Any]:
    """The record of a game that an agent plays against itself; ``more`` replaces its keys."""
    session = Session.new(Rules(max_rounds=rounds), [bots.make(agent)] * 2, seed=seed)
    while not session.over:
        session.ask_agent()
    return {**session.record(), **more}
