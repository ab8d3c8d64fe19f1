"""The page's server, as `carolus play` starts it, and games to be shown in it."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from carolus_env import bots
from carolus_env.engine.rules import Rules
from carolus_env.play.server import Api, make_server, open_socket
from carolus_env.play.session import GameFile, Session
from carolus_env.records import record_line
from carolus_env.system import cancellation


class Page:
    """A running server and a plain client of it."""

    def __init__(self, port: int) -> None:
        self.port, self.address = port, f"http://127.0.0.1:{port}"

    def request(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower case) and content of the answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers, answer.read()

    def get(self, path: str) -> tuple[int, Any]:
        status, _, content = self.request(f"/api/{path}")
        return status, json.loads(content)

    def send(self, path: str, data: Any, kind: str = "application/json") -> Any:
        """A connection with a request, whose answer nobody has read."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Origin": self.address, "Content-Type": kind}
        connection.request("POST", f"/api/{path}", body, headers)
        return closing(connection)

    def post(self, path: str, data: Any, kind: str = "application/json") -> tuple[int, Any]:
        with self.send(path, data, kind) as connection:
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())


class Slow(bots.Agent):
    """Thinks until it may go on and fails, or until it is stopped."""

    def __init__(self) -> None:
        self.begun, self.going, self.ended = (threading.Event() for _ in range(3))

    def act(self, states: Any, generators: Any) -> Any:
        self.begun.set()
        try:
            while not self.going.wait(0.02):
                cancellation.current().check()
            raise RuntimeError("no idea")
        finally:
            self.ended.set()


@contextmanager
def serving(app: Api, port: int = 0) -> Iterator[Page]:
    """A server on this port (0: a free one), until the context ends."""
    listening = open_socket(port)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Page(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


def book(path: Path, *games: dict[str, Any] | bytes) -> GameFile:
    """A file of these games, each a record or a line."""
    lines = [game if isinstance(game, bytes) else record_line(game) for game in games]
    path.write_bytes(b"".join(lines))
    return GameFile(path)


def finished(
    agent: str = "random", rounds: int | None = 3, seed: int = 1, **more: Any
) -> dict[str, Any]:
    """The record of a game that an agent plays against itself; ``more`` replaces its keys."""
    session = Session.new(Rules(max_rounds=rounds), [bots.make(agent)] * 2, seed=seed)
    while not session.over:
        session.ask_agent()
    return {**session.record(), **more}
