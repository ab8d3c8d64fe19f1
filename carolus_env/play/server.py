"""The server of the page: static files and the JSON interface, on this machine only.

It holds no game: the page keeps its record, with names, agents and seed, and sends it with each
request, which is answered from what it brings.

Any web site can make a browser send requests to 127.0.0.1, and can point its own host name there
(DNS rebinding). The origin of a request reveals the first, its host the second. Every answer
tells the browser to run no scripts but the server's own files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import anyio
import numpy as np
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

from carolus_env import bots
from carolus_env.bots import Agent
from carolus_env.drawing.board import LAYOUTS, board_svg
from carolus_env.drawing.pieces import CASTLE, CLAN_STYLES, TEAM_STYLES, clan_shape, polygon
from carolus_env.engine import rules
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import STATE
from carolus_env.notation import descriptions, to_line
from carolus_env.play.session import (
    LEVELS,
    GameFile,
    Hint,
    Replay,
    Roster,
    RosterError,
    Session,
    agents_of,
    hint,
)
from carolus_env.system import options, untrusted
from carolus_env.system.cancellation import Stop, Stopped
from carolus_env.system.untrusted import DataError, check, cut, get, only, parse_json

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 8715
STATIC: Final = Path(__file__).parent / "static"
MAX_BODY: Final = 4 * 2**20  # maximum number of bytes of a request
HEADERS: Final = {  # of every answer
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",  # nor does the window keep another site's name
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


# ------------------------------------------------------------------------------------ requests


MAX_SEED: Final = 2**53 - 1  # JavaScript keeps whole numbers exact up to here
_GAME: Final[dict[str, type]] = {"record": dict, "layout": str, "since": int}
_NEW: Final[dict[str, type]] = {"rules": dict, "agents": list, "names": list, "seed": int}
REQUESTS: Final[dict[str, dict[str, type]]] = {
    "view": {**_GAME, **_NEW, "at": int},
    "decide": {**_GAME, "action": int},
    "hint": {"record": dict, "agent": str, "at": int},
    "values": {"record": dict, "agent": str},
}
"""The requests that bring JSON: the keys of each, and their types; any may be missing or null."""
_LONGEST_REASON: Final = 1000  # characters
_LISTED: Final = 8  # actions of a hint, at most
Body = dict[str, Any]
View = dict[str, Any]
Steps = Iterator[View | None]
Lend = Callable[[str], Agent]
T = TypeVar("T")


class Api:
    """Answers the page's requests; an HTTPException says what is wrong with one."""

    def __init__(self, roster: Roster, files: Sequence[GameFile] = ()) -> None:
        self.roster, self._files = roster, files

    def menu(self) -> View:
        """Return the choices for a new game, and the files named on the command line."""
        clans = [  # icons, about the origin
            {"name": name, **CLAN_STYLES[clan]._asdict(), "path": clan_shape(clan, 10.0)}
            for clan, name in enumerate(rules.CLAN_NAMES)
        ]
        teams = [{**look._asdict(), "path": polygon(CASTLE, 10.0)} for look in TEAM_STYLES]
        return {
            "agents": [{"spec": spec, "about": what} for spec, what in self.roster.menu().items()],
            "advisers": self.roster.advisers(),
            "levels": [
                {**level._asdict(), "agent": level.agents[Rules().players]} for level in LEVELS
            ],
            "rules": Rules().to_dict(),
            "options": options.form(Rules),
            "max_seed": MAX_SEED,
            "icons": {"clans": clans, "teams": teams},
            "files": [file.name for file in self._files],
        }

    def records(self, file: str, game: str | None = None) -> View | bytes:
        """Return the list of a file's games, or the record of one, as a line of JSON."""
        found = _numbered(self._files, file, "The server was not started with this file.")
        if game is None:
            problems = {"problems": found.problems[:20], "all_problems": len(found.problems)}
            return {"name": found.name, **problems, "games": found.games, "more": found.more}
        return _numbered(found.lines, game, f"The file has no game {cut(game, 20)}.")

    def answer(self, request: str, body: Body) -> View:
        """Answer one of `REQUESTS`; its method yields None once it has read the body."""
        with self.roster.lending() as lend:
            steps = getattr(self, f"_{request}")(
                body, lambda spec: _asked(spec, lambda: lend(spec))
            )
            try:
                next(steps)
            except ValueError as error:  # later ones are the server's own
                raise HTTPException(400, str(error)) from None
            view: View = next(steps)
            return view

    def _view(self, body: Body, agent: Lend) -> Steps:
        """Return a position of a recorded game (``at``), or a game in play.

        That goes on with the record by its own agents, names and seed, or by those of the body;
        without a record it is new.
        """
        look = _look(body)
        if body.get("at") is None:
            session = _session(body, agent)
            yield None
            yield session_view(session, **look)
            return
        replay, at = _replayed(body)
        yield None
        yield {
            **_position(replay, at, look["layout"], legal=True),
            "agents": agents_of(body["record"]),
            "result": replay.outcome(),
            "log": [line._asdict() for line in replay.log(look["since"])],
        }

    def _decide(self, body: Body, agent: Lend) -> Steps:
        """Play a person's decision (``action``), or else those of the agent to move."""
        get(body, "record", dict)
        session, look, asked = _session(body, agent), _look(body), None
        if body.get("action") is not None:
            session.play(body["action"])
        elif (asked := session.agent) is None:
            raise ValueError("no bot is to move")
        yield None
        if asked is not None:
            _asked(asked, session.ask_agent)
        yield session_view(session, **look)

    def _hint(self, body: Body, agent: Lend) -> Steps:
        """Return an agent's opinion of a position of a game, by default of the last."""
        replay, at = _replayed(body)
        state, adviser = replay.states[at], agent(body.get("agent") or "")
        if state["phase"] in (rules.ROLL, rules.OVER):
            raise ValueError("there is no decision at this position")
        yield None
        played = replay.events[at]["action"] if at < len(replay.events) else None
        yield hint_view(state, _asked(adviser, lambda: hint(adviser, state)), played)

    def _values(self, body: Body, agent: Lend) -> Steps:
        """Return each team's win probability at every decision of a game, by an agent."""
        (replay, _), adviser = _replayed(body), agent(body.get("agent") or "")
        yield None
        states = np.array([replay.states[index] for index in replay.decisions], STATE)
        values = _asked(adviser, lambda: bots.opinion(adviser, states).values)
        if values is None:
            raise HTTPException(400, f"{adviser.name} does not value positions")
        yield {"agent": adviser.name, "values": values.round(4).tolist()}


def _numbered(items: Sequence[T], number: str, reason: str) -> T:
    """Return the item that an address numbers; 404 for anything else."""
    if not re.fullmatch("[0-9]{1,9}", number) or int(number) >= len(items):
        raise HTTPException(404, reason)
    return items[int(number)]


def _session(body: Body, agent: Lend) -> Session:
    record, specs, seed = body.get("record"), body.get("agents"), body.get("seed")
    own = record if specs is None else None
    if (given := seed if own is None else own.get("seed")) is not None:
        options.whole_number("seed", given, 0, MAX_SEED)
    if own is not None:
        return Session.resumed(own, agent)
    seats = [
        None if spec is None else agent(check(spec, str, f"agents[{seat}]"))
        for seat, spec in enumerate((specs or [])[: rules.MAX_PLAYERS + 1])
    ]
    if record is not None:
        return Session(record, seats, names=body.get("names"), seed=seed)
    wanted = Rules.from_dict(body.get("rules") or {})
    return Session.new(wanted, seats, names=body.get("names"), seed=seed)


def _replayed(body: Body) -> tuple[Replay, int]:
    """Return the game of a request, and the position that it names: the last by default."""
    replay = Replay(get(body, "record", dict))
    last = len(replay.events)
    return replay, options.whole_number("at", body.get("at", last), 0, last)


def _look(body: Body) -> dict[str, Any]:
    look = {"layout": LAYOUTS[0], "since": 0, **body}
    since = options.whole_number("since", look["since"], 0, MAX_SEED)
    return {"layout": untrusted.one_of(look, "layout", LAYOUTS), "since": since}


_LOCKS: Final[dict[int, threading.Lock]] = {}  # by the identity of what is asked


def _asked(agent: Agent | str, work: Callable[[], T]) -> T:
    """Return what an agent, or the maker of a spec, answers; a user's may raise anything.

    Two threads never ask one object at once.
    """
    try:
        with _LOCKS.setdefault(id(agent), threading.Lock()):
            return work()
    except (Stopped, RosterError):
        raise
    except BaseException as error:
        traceback.print_exception(error)  # whole, on the console
        name = agent if isinstance(agent, str) else agent.name
        reason = f"{name} failed with {untrusted.message(error)}"
        raise HTTPException(502, reason[:_LONGEST_REASON]) from None


# ------------------------------------------------------------------------------------ views


def session_view(session: Session, *, layout: Any, since: int) -> View:
    """Return a game in play, for the player to move, with the log from event ``since`` on."""
    news, is_person = session.news, session.agent is None and not session.over
    drawn = {"legal": is_person, "turn": session.decided(news) or None}
    return {
        **_position(session, len(session.events), layout, **drawn),
        "agents": [agent and agent.name for agent in session.agents],
        "turn": "over" if session.over else "person" if is_person else "agent",
        "legal": _decisions(session) if is_person else [],
        "log": [line._asdict() for line in session.log(since)],
        "news": news,
        "undo": session.can_undo,
        "record": session.record(),
    }


def hint_view(state: np.void, hint: Hint, played: int | None) -> View:
    """Return an agent's opinion; the action that was played (None: none yet) is always listed."""

    def named(action: int) -> View:
        return {"action": action, "text": descriptions.action_words(state, action)}

    moves = None
    if hint.probabilities is not None:
        listed = dict.fromkeys([*hint.ranked(_LISTED), *([] if played is None else [played])])
        shares = hint.probabilities.round(4).tolist()
        moves = [{**named(action), "share": shares[action]} for action in listed]
    return {
        "agent": hint.agent,
        "choice": named(hint.choice),
        "played": played,
        "moves": moves,
        "values": None if hint.values is None else hint.values.round(4).tolist(),
    }


def _position(game: Replay, at: int, layout: Any, **drawn: Any) -> View:
    """Return the game before event ``at``; ``drawn``: further arguments of `board_svg`."""
    state, names, teams = game.states[at], game.names, game.team_names()
    over = bool(state["phase"] == rules.OVER)
    last = next(iter(game.decided(range(at))[::-1]), None)
    return {
        "at": at,
        "names": names,
        "teams": [game.rules.team(seat) for seat in range(game.rules.players)],
        "team_names": teams,
        "rules": game.rules.to_dict(),
        "regions": [_region(region, teams) for region in descriptions.regions_of(state, teams)],
        "words": descriptions.board_words(state, names),
        "line": to_line(state, generator=False),
        "round": int(state["round"]),
        "phase": rules.PHASE_NAMES[int(state["phase"])],
        "seat": None if over else int(state["player"]),
        "left": int(state["placements_left"]),
        "crowns": int(state["crowns"][state["player"]]),
        "outcome": descriptions.outcome(state, names) if over else None,
        "svg": board_svg(state, layout=layout, names=names, last=last, **drawn),
    }


def _region(region: descriptions.Region, teams: Sequence[str]) -> View:
    return {**region._asdict(), "powers": descriptions.per_team(region.strengths, teams)}


def _decisions(session: Session) -> list[View]:
    """Return the legal actions: what to click on the board for each, and its result."""
    state, teams = session.state, session.team_names()
    places = descriptions.placements(state, session.names, teams)
    steps = {step.action: step for step in descriptions.emperor_steps(state, teams)}
    views = []
    for action in session.legal():
        kind, _, clan, destination = rules.action_parts(action)
        text = descriptions.action_label(state, action)
        view: View = {"action": action, "kind": kind, "text": text}
        if clan != rules.NOBODY:
            view["clan"] = rules.CLAN_NAMES[clan]
        if target := places.get(action):
            view |= {"held": int(state["reserves"][state["player"], clan]), "to": destination}
            view |= {"result": target} if isinstance(target, str) else _region(target, teams)
        if step := steps.get(action):
            view |= {"region": step.region, "result": step.text}
            view |= {"changes": step.changes, "team": step.owner}
        views.append(view)
    return views


# ------------------------------------------------------------------------------------ HTTP


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
        async def endpoint(request: Request) -> Response:
            body = await _json(request, REQUESTS[name])
            return Answer(await _worked(request, lambda: api.answer(name, body)))

        return Route(f"/api/{name}", endpoint, methods=["POST"])

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return Answer({"error": error.detail}, error.status_code)
        traceback.print_exception(error)
        return Answer({"error": "internal error of the server; its console shows more"}, 500)

    starlette = Starlette(
        routes=[
            *(Route(path, page) for path in ("/", "/game", "/replay", "/replay/{file}")),
            Route("/api/menu", menu),
            Route("/api/records/{file}", records),
            Route("/api/records/{file}/{game}", records),
            *map(posted, REQUESTS),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers=dict.fromkeys((HTTPException, Exception), failed),
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
        return {key: check(each, known[key], key) for key, each in body.items() if each is not None}
    except (DataError, ClientDisconnect) as error:  # the latter has no text, and no reader
        raise HTTPException(400, str(error) or "the request was cut off") from None


async def _worked(request: Request, work: Callable[[], Any]) -> Any:
    """Return the result of work in a thread, which is told to stop when the client hangs up.

    The work checks a flag (`system.cancellation`) and soon gives its core back. An agent in a
    user's file may not check it; then its answer is dropped.
    """
    stop, answer = Stop(), Future[Any]()

    def run() -> None:
        try:
            with stop.watched():
                answer.set_result(work())
        except BaseException as error:  # in the loop some would end the server
            answer.set_exception(error)

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
    if not answer.done():
        raise HTTPException(400, "the request was cut off")
    return answer.result()


# ------------------------------------------------------------------------------------ running


def open_socket(port: int | None) -> socket.socket:
    """Listen on a port of 127.0.0.1; None: on the usual one, or on any when that is taken."""
    if port is None:
        with contextlib.suppress(OSError):
            return socket.create_server((HOST, USUAL_PORT))
    return socket.create_server((HOST, port or 0))


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
                new = {"rules": {"max_rounds": 2}, "agents": [None, spec], "seed": 1}
                game = api.answer("view", new)
                while game["turn"] != "over":
                    action = game["legal"][0]["action"] if game["turn"] == "person" else None
                    game = api.answer("decide", {"record": game["record"], "action": action})
            asked = {"record": game["record"], "at": 1, "agent": roster.advisers()[0]}
            api.answer("hint", asked)
        except BaseException:  # the page works without it; a game with this bot reports it
            traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
