"""Attacks on the page's server by anyone with an account on the machine: does it still answer?

    python benchmarks/attacks.py
    python benchmarks/attacks.py --checkout ../before --only searches heads

Starts the server of a checkout, attacks it, and prints what came of it. The searches also show how
soon a core is free again once a search was stopped. Linux only: reads /proc.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machine import line

SEARCHES = (
    ("mcts:sims=10000000", 2),
    ("mcts:seconds=30", 2),
    ("search:seconds=30", 2),
    ("mcts:seconds=30,plans=all,root=all,width=4096", 3),
    ("value:next=4096,rolls=100000", 2),
    ("planner:plans=all", 3),
)
"""Bots that think for long, and for how many players."""
JSON = "application/json"
FILE = "application/octet-stream"


class Server:
    """A running server, and a client of it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def begin(self, method: str, path: str, body: bytes = b"", kind: str = JSON) -> socket.socket:
        """A connection on which a whole request was sent, and whose answer nobody has read."""
        own = f"127.0.0.1:{self.port}"
        head = [
            f"{method} /api/{path} HTTP/1.1",
            f"Host: {own}",
            f"Origin: http://{own}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
        ]
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        opened.sendall("\r\n".join([*head, "", ""]).encode() + body)
        return opened

    def ask(
        self, method: str, path: str, data: Any = None, kind: str = JSON
    ) -> tuple[int, dict[str, Any]]:
        """Status and content of an answer; 0 where there is none."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        try:
            with self.begin(method, path, body, kind) as opened:
                answer = http.client.HTTPResponse(opened)
                answer.begin()
                content = answer.read()
        except OSError as error:
            return 0, {"error": str(error)}
        try:
            return answer.status, json.loads(content)
        except ValueError:
            return answer.status, {"error": content.decode()[:100]}

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))


@contextmanager
def run_server(env: dict[str, str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The page's server, started as a user does in a folder, and its port; ended by Ctrl-C."""
    command = [sys.executable, "-m", "carolus_env.play", "--no-open", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, int(re.findall(r":(\d+)/", process.stdout.readline())[0])
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def serving(checkout: Path) -> Iterator[Server]:
    """The server of a checkout, once it has compiled everything."""
    with run_server({"PYTHONPATH": str(checkout)}, checkout) as (process, port):
        server = Server(process, port)
        while server.ask("GET", "warm")[1].get("cold"):  # an older server has no such answer
            time.sleep(0.5)
        before = -1.0
        while server.cpu() - before > 0.1:  # what else it compiles in the background
            before = server.cpu()
            time.sleep(2.0)
        yield server


def place(server: Server, agent: str, players: int) -> tuple[str, dict[str, Any]] | str:
    """A game with a decision due that is no easy one, for a bot in every seat; or why not."""
    people = {"rules": {"players": players}, "agents": [None] * players, "seed": 5}
    status, game = server.ask("POST", "games", people)
    key = game["key"]
    while game["turn"] == "person" and game["phase"] != "place":
        action = {"action": game["legal"][-1]["action"], "version": game["version"]}
        _, game = server.ask("POST", f"games/{key}/play", action)
    record, seated = game["record"], [agent] * players
    status, game = server.ask("POST", "games", {"record": record, "agents": seated, "seed": 5})
    return (game["key"], game) if status == 201 else game["error"]


def searches(server: Server) -> None:
    """Searches without end, whose sockets are closed at once; then a hint for somebody else."""
    for agent, players in SEARCHES:
        found = place(server, agent, players)
        if isinstance(found, str):
            print(f"  {agent}: refused: {found[:90]}")
            continue
        key, game = found
        idle = server.threads()
        asked = server.begin(
            "POST", f"games/{key}/agent", json.dumps({"version": game["version"]}).encode()
        )
        time.sleep(3.0)
        busy = server.threads() > idle
        asked.close()
        gone = time.perf_counter()
        while server.threads() > idle and time.perf_counter() - gone < 3:
            time.sleep(0.001)
        took = time.perf_counter() - gone
        state = f"core free after {1e3 * took:.0f} ms" if took < 3 else "thinks on after 3 s"
        print(f"  {agent}, {players} players: {state if busy else 'had decided before'}")
    for _ in range(8):
        found = place(server, SEARCHES[0][0], 2)
        if isinstance(found, str):
            found = place(server, SEARCHES[4][0], 2)
        assert not isinstance(found, str)
        key, game = found
        server.begin(
            "POST", f"games/{key}/agent", json.dumps({"version": game["version"]}).encode()
        ).close()
    time.sleep(1.0)
    people = {"rules": {"players": 2}, "agents": [None, None], "seed": 1}
    _, game = server.ask("POST", "games", people)
    ask = {"agent": "greedy", "version": game["version"]}
    status, answer = server.ask("POST", f"games/{game['key']}/hint", ask)
    before = server.cpu()
    time.sleep(2.0)
    print(
        f"  eight of them left: a hint is answered {status} {answer.get('error', '')}, "
        f"the server uses {(server.cpu() - before) / 2:.2f} cores"
    )


def heads(server: Server) -> None:
    """260 connections that send half of their headers."""
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(260)]
    for one in held:
        one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
    time.sleep(0.5)
    for seconds in (0, 15):
        time.sleep(seconds)
        started = time.perf_counter()
        status, _ = server.ask("GET", "menu")
        took = 1e3 * (time.perf_counter() - started)
        print(f"  260 half-sent headers, {seconds} s later: {status} in {took:.0f} ms")
    for one in held:
        one.close()


def bodies(server: Server) -> None:
    """260 connections that send all but the last byte of a request."""
    held = []
    for _ in range(260):
        one = socket.create_connection(("127.0.0.1", server.port))
        own = f"127.0.0.1:{server.port}"
        one.sendall(
            f"POST /api/games HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\n"
            f"Content-Type: {JSON}\r\nContent-Length: 2\r\n\r\n{{".encode()
        )
        held.append(one)
    time.sleep(0.5)
    started = time.perf_counter()
    status, _ = server.ask("GET", "menu")
    print(f"  260 half-sent bodies: {status} in {1e3 * (time.perf_counter() - started):.0f} ms")
    for one in held:
        one.close()


def blanks(server: Server) -> None:
    """Gzipped blank lines."""
    for size in (32, 256):
        for blank in (b"\n", b" \n"):
            content = gzip.compress(blank * (size * 2**20 // len(blank)))
            cpu, started = server.cpu(), time.perf_counter()
            status, answer = server.ask("POST", "files?name=blank.gz", content, FILE)
            print(
                f"  {size} MiB of {blank!r} in {len(content) / 1024:.0f} kB: {status} "
                f"{answer.get('error', '')[:60]!r} after {time.perf_counter() - started:.2f} s, "
                f"{server.cpu() - cpu:.2f} s of a core"
            )


def many_files(server: Server) -> None:
    """Twenty such files at once, and somebody else's request meanwhile."""
    content, statuses = gzip.compress(b" \n" * (16 * 2**20)), []

    def send() -> None:
        statuses.append(server.ask("POST", "files?name=blank.gz", content, FILE)[0])

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    started = time.perf_counter()
    status, _ = server.ask("GET", "menu")
    print(f"  the menu while 20 are read: {status} in {time.perf_counter() - started:.2f} s")
    for thread in threads:
        thread.join()
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"  they are answered {counts}, the last after {time.perf_counter() - started:.2f} s")


def games(server: Server) -> None:
    """New games until the first one is gone."""
    people = {"rules": {"players": 2}, "agents": [None, None], "seed": 1}
    _, first = server.ask("POST", "games", people)
    statuses = [server.ask("POST", "games", people) for _ in range(150)]
    made = sum(status == 201 for status, _ in statuses)
    status, _ = server.ask("GET", f"games/{first['key']}")
    print(f"  {made} of 150 new games are made; the game before them is answered {status}")
    print(f"  the last one: {statuses[-1][1].get('error', 'made')[:120]}")


def names(server: Server) -> None:
    """Bad names of 100,000 characters, and names with nothing after the colon."""
    for agent in ("x" * 100_000, "mcts:" + "x" * 100_000, "random:", "ppo:"):
        asked = {"rules": {"players": 2}, "agents": [None, agent]}
        status, answer = server.ask("POST", "games", asked)
        said = len(answer.get("error", ""))
        print(f"  {agent[:12]}: {status}, an error of {said:,} characters")


def ctrl_c(server: Server) -> None:
    """Ctrl-C while two requests wait for one bot; the last attack."""
    found = place(server, "value:next=4096,rolls=100000", 2)
    assert not isinstance(found, str)
    key, game = found
    data = json.dumps({"version": game["version"]}).encode()
    held = [server.begin("POST", f"games/{key}/agent", data) for _ in range(2)]
    time.sleep(1.0)
    server.process.send_signal(signal.SIGINT)
    started = time.perf_counter()
    assert server.process.stderr is not None
    said = server.process.stderr.read()
    server.process.wait(20)
    print(
        f"  ended after {time.perf_counter() - started:.1f} s with status "
        f"{server.process.returncode}; {len(said.splitlines())} lines of errors, "
        f"{said.count('Traceback')} tracebacks"
    )
    for one in held:
        one.close()


ATTACKS: dict[str, Callable[[Server], None]] = {
    "searches": searches,
    "heads": heads,
    "bodies": bodies,
    "blanks": blanks,
    "many_files": many_files,
    "names": names,
    "games": games,
    "ctrl_c": ctrl_c,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS))
    options = parser.parse_args()
    print(line())
    for name in options.only:  # each on a server of its own
        print(name)
        with serving(options.checkout.resolve()) as server:
            ATTACKS[name](server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
