"""The server of the page: a JSON interface to sessions and record files, and static files.

It holds what is in play in memory. The page keeps each game's record too, so that a server that
was started anew, or had to forget the oldest games, takes it up again.

Every answer that is no file is JSON; an error is ``{"error": a sentence}``.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from carolus_env import __version__, bots
from carolus_env.bots import Agent
from carolus_env.drawing.board import board_svg
from carolus_env.engine.rules import CROWN_CHOICES, PARTNERS, Rules
from carolus_env.play import views
from carolus_env.play.guard import Guard
from carolus_env.play.library import Book, Replay
from carolus_env.play.preview import after_step
from carolus_env.play.roster import Roster, RosterError
from carolus_env.play.session import MAX_SEED, Session, TurnError, hint, up_to
from carolus_env.play.wire import (
    Answer,
    RequestError,
    body_of,
    json_of,
    look_of,
    number_of,
    values_of,
)
from carolus_env.records import RecordError, record_line

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 8715
MAX_GAMES: Final = 64
"""Games in play that are held, and files; the one that was not looked at longest is let go."""
MAX_FILE: Final = 16 * 2**20
MAX_THINKING: Final = 8
"""Agents that think at the same time."""
STATIC: Final = Path(__file__).parent / "static"

T = TypeVar("T")


class Held(Generic[T], OrderedDict[str, T]):
    """What is held under a random key, at most so many."""

    def __init__(self, what: str, most: int = MAX_GAMES) -> None:
        super().__init__()
        self._what, self._most = what, most

    def add(self, thing: T) -> str:
        key = secrets.token_urlsafe(9)
        self[key] = thing
        while len(self) > self._most:
            self.popitem(last=False)
        return key

    def find(self, key: str) -> T:
        """Raises: RequestError, when there is none."""
        if key not in self:
            raise RequestError(404, f"This {self._what} is not held here any more.")
        self.move_to_end(key)
        return self[key]


@dataclass
class Table:
    """A game in play; who changes it holds the lock."""

    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class House:
    """All that the server holds.

    Args:
        roster: the agents that may be seated.
        books: files that the command line names.
    """

    def __init__(self, roster: Roster, books: Sequence[Book] = ()) -> None:
        self.roster = roster
        self.tables: Held[Table] = Held("game")
        self.books: Held[Book] = Held("file")
        self.opened = [self.books.add(book) for book in books]
        self._thinking = 0

    async def think(self, work: Callable[[], T]) -> T:
        """Let an agent think, `apart`.

        Raises:
            RequestError: when too many think already.
        """
        if self._thinking >= MAX_THINKING:
            raise RequestError(503, "too many bots are thinking; try again in a moment")
        self._thinking += 1
        try:
            return await apart(work)
        finally:
            self._thinking -= 1


async def apart(work: Callable[[], T]) -> T:
    """Do what may take long in a thread, which ends with the process.

    Raises:
        RequestError: when the server stops meanwhile.
        Exception: whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def tell(answer: tuple[T | None, BaseException | None]) -> None:
        if not done.done():
            done.set_result(answer)

    def run() -> None:
        answer: tuple[T | None, BaseException | None]
        try:
            answer = work(), None
        except BaseException as error:  # a stranger's agent can raise anything
            answer = None, error
        with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(tell, answer)

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = await done
    except asyncio.CancelledError:
        raise RequestError(503, "the server stops") from None
    if error is not None:
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return cast(T, result)


# ------------------------------------------------------------------------------------ the app


class Desk:
    """Answers the page's requests."""

    def __init__(self, house: House) -> None:
        self.house = house

    def routes(self) -> list[Route]:
        def api(
            path: str, answer: Callable[[Request], Awaitable[Response]], *methods: str
        ) -> Route:
            return Route(f"/api/{path}", answer, methods=methods or ("GET",))

        return [
            api("menu", self.menu),
            api("games", self.new_game, "POST"),
            api("games/{key}", self.game),
            api("games/{key}/play", self.play, "POST"),
            api("games/{key}/undo", self.undo, "POST"),
            api("games/{key}/agent", self.agent, "POST"),
            api("games/{key}/hint", self.hint, "POST"),
            api("games/{key}/step/{action}", self.step),
            api("games/{key}/record", self.record),
            api("files", self.open_file, "POST"),
            api("files/{key}", self.file),
            api("files/{key}/{game}", self.replay),
            api("files/{key}/{game}/record", self.replay_record),
            api("files/{key}/{game}/{position}", self.position),
            api("files/{key}/{game}/{position}/hint", self.replay_hint, "POST"),
            api("files/{key}/{game}/values/all", self.values, "POST"),
        ]

    async def menu(self, request: Request) -> Response:
        """What a new game can be, and the files that the command line named."""
        return Answer(
            {
                "version": __version__,
                "agents": [row._asdict() for row in self.house.roster.menu()],
                "advisers": self.house.roster.advisers(),
                "valuers": self.house.roster.valuers(),
                "rules": Rules().to_dict(),
                "crown_choice": CROWN_CHOICES,
                "partners": PARTNERS,
                "max_seed": MAX_SEED,
                "looks": views.looks_view(),
                "files": [
                    {"key": key, "name": self.house.books[key].name}
                    for key in self.house.opened
                    if key in self.house.books
                ],
            }
        )

    # -------------------------------------------------------------------------------- games

    async def new_game(self, request: Request) -> Response:
        """A new game, or one taken up: from a record, or from a position of a file's game."""
        look = look_of(request)  # a wrong one is refused before anything is done
        given = await json_of(
            request, rules=dict, agents=list, names=list, seed=int, record=dict, replay=dict
        )
        agents = self._seated(given["agents"])
        more: dict[str, Any] = {"names": given["names"], "seed": given["seed"]}
        if given["replay"] is not None:
            record = await self._cut_record(given["replay"])
        else:
            record = given["record"]
        try:
            if record is None:
                rules = Rules.from_dict(given["rules"] or {})
                session = await apart(lambda: Session.new(rules, agents, **more))
            else:
                session = await apart(lambda: Session(record, agents, **more))
        except RecursionError:
            raise RequestError(400, "nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise RequestError(400, str(error)) from None
        key = self.house.tables.add(Table(session))
        return Answer({"key": key, **views.game_view(session, look)}, 201)

    def _seated(self, specs: list[Any] | None) -> list[Agent | None]:
        specs = [] if specs is None else specs
        if len(specs) > 4 or not all(spec is None or isinstance(spec, str) for spec in specs):
            raise RequestError(
                400, "agents must be a list: for each seat a spec, or null for a person"
            )
        return [None if spec is None else self._made(spec) for spec in specs]

    def _made(self, spec: str) -> Agent:
        try:
            return self.house.roster.make(spec)
        except RosterError as error:
            raise RequestError(400, str(error)) from None

    async def _cut_record(self, given: dict[str, Any]) -> dict[str, Any]:
        """A file's game up to a position."""
        key, game, position = (given.get(name) for name in ("key", "game", "position"))
        if not isinstance(key, str) or type(game) is not int or type(position) is not int:
            raise RequestError(400, "replay must name key, game and position")
        replay = await self._replay(self.house.books.find(key), game)
        try:
            return up_to(replay.record, position)
        except ValueError as error:
            raise RequestError(400, str(error)) from None

    def _table(self, request: Request) -> Table:
        look_of(request)  # a wrong one is refused before anything is played
        return self.house.tables.find(request.path_params["key"])

    def _answer(self, request: Request, session: Session, since: int) -> Response:
        return Answer(views.game_view(session, look_of(request), since))

    async def game(self, request: Request) -> Response:
        session = self._table(request).session
        return self._answer(request, session, number_of(request, "since", 10**9 - 1))

    def _check(self, request: Request, session: Session, version: int | None) -> int:
        """The page must speak of the game as it is now; returns the number of its events."""
        if version != session.version:
            raise RequestError(
                409,
                "the game has gone on meanwhile, in another window perhaps",
                game=views.game_view(session, look_of(request)),
            )
        return len(session.events)

    async def play(self, request: Request) -> Response:
        table = self._table(request)
        given = await json_of(request, action=int, version=int)
        async with table.lock:
            at = self._check(request, table.session, given["version"])
            if given["action"] is None:
                raise RequestError(400, "action is missing")
            try:
                table.session.play(given["action"])
            except (ValueError, TypeError, OverflowError) as error:
                raise RequestError(409, str(error)) from None
            return self._answer(request, table.session, at)

    async def undo(self, request: Request) -> Response:
        table = self._table(request)
        given = await json_of(request, version=int)
        async with table.lock:
            at = self._check(request, table.session, given["version"])
            try:
                table.session.undo()
            except TurnError as error:
                raise RequestError(409, str(error)) from None
            return self._answer(request, table.session, at - 1)

    async def agent(self, request: Request) -> Response:
        """The agent whose turn it is takes one decision."""
        table = self._table(request)
        given = await json_of(request, version=int)
        async with table.lock:
            session = table.session
            at = self._check(request, session, given["version"])
            if session.agent is None:
                raise RequestError(409, "no bot is to decide")
            session.ask_agent(await self._thought(session.agent, session.think))
            return self._answer(request, session, at)

    async def hint(self, request: Request) -> Response:
        """What an agent thinks of the decision that is due."""
        table = self._table(request)
        given = await json_of(request, agent=str, version=int)
        adviser = self._made(given["agent"] or "")
        session = table.session
        self._check(request, session, given["version"])
        if session.over:
            raise RequestError(409, "the game is over")
        state = session.state.copy()
        return await self._hinted(adviser, state, session.seed + len(session.events))

    async def _hinted(
        self, adviser: Agent, state: Any, seed: int, played: int | None = None
    ) -> Response:
        found = await self._thought(adviser, lambda: hint(adviser, state, seed))
        return Answer(views.hint_view(state, found, played))

    async def _thought(self, agent: Agent, work: Callable[[], Any]) -> Any:
        """What an agent says; a stranger's may raise anything."""
        try:
            return await self.house.think(work)
        except RequestError:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = f"{agent.name} failed with {type(error).__name__}: {error}"
            raise RequestError(502, reason) from None

    async def step(self, request: Request) -> Response:
        """The board after a step of the Emperor."""
        session = self._table(request).session
        action = number_of(request, "action", 94)
        try:
            after = after_step(session.state, action)
        except ValueError as error:
            raise RequestError(409, str(error)) from None
        last = session.state, action
        svg = board_svg(after[0], names=session.names, last=last, **look_of(request))
        return Answer({"action": action, "svg": svg})

    async def record(self, request: Request) -> Response:
        return _download(self._table(request).session.record())

    # -------------------------------------------------------------------------------- files

    async def open_file(self, request: Request) -> Response:
        """A file of records, as it is."""
        if request.headers.get("content-type") != "application/octet-stream":
            raise RequestError(415, "a file must be sent as application/octet-stream")
        name = request.query_params.get("name", "a file")[:100]
        data = await body_of(request, MAX_FILE)
        try:
            book = await apart(lambda: Book.of_bytes(name, data))
        except RecordError as error:
            raise RequestError(422, f"{name}: {error}") from None
        key = self.house.books.add(book)
        return Answer({"key": key, **views.book_view(book)}, 201)

    def _book(self, request: Request) -> Book:
        return self.house.books.find(request.path_params["key"])

    async def file(self, request: Request) -> Response:
        return Answer(views.book_view(self._book(request)))

    async def _replay(self, book: Book, game: int) -> Replay:
        try:
            if (opened := book.opened(game)) is not None:
                return opened
            return await apart(lambda: book.replay(game))
        except IndexError:
            raise RequestError(
                404, f"there is no game {game}; there are {len(book.games)}"
            ) from None
        except RecordError as error:
            raise RequestError(422, f"{book.name}, {book.games[game].title}: {error}") from None

    async def _game_of(self, request: Request) -> Replay:
        return await self._replay(self._book(request), number_of(request, "game", 10**9 - 1))

    async def replay(self, request: Request) -> Response:
        return Answer(views.replay_view(await self._game_of(request)))

    async def replay_record(self, request: Request) -> Response:
        return _download((await self._game_of(request)).record)

    async def position(self, request: Request) -> Response:
        replay = await self._game_of(request)
        at = number_of(request, "position", replay.events)
        values = values_of(request, replay.rules.teams)
        return Answer(views.position_view(replay, at, look_of(request), values))

    async def replay_hint(self, request: Request) -> Response:
        replay = await self._game_of(request)
        given = await json_of(request, agent=str)
        at = number_of(request, "position", replay.events)
        if at == replay.events or at not in replay.decisions:
            raise RequestError(409, "nobody is to decide here")
        adviser, state = self._made(given["agent"] or ""), replay.states[at].copy()
        return await self._hinted(adviser, state, at, replay.record["events"][at]["action"])

    async def values(self, request: Request) -> Response:
        """Each team's expected share of the win, by an agent, at every decision."""
        replay = await self._game_of(request)
        given = await json_of(request, agent=str)
        adviser = self._made(given["agent"] or "")
        states = replay.states[replay.decisions]
        found = (await self._thought(adviser, lambda: bots.opinion(adviser, states))).values
        if found is None:
            raise RequestError(422, f"{adviser.name} does not value positions")
        return Answer({"agent": adviser.name, "values": [views.shares(row) for row in found]})


def _download(record: dict[str, Any]) -> Response:
    name = 'attachment; filename="carolus.jsonl"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Response(record_line(record), media_type="application/jsonl", headers=headers)


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Answer({"error": error.reason, **error.more}, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Answer({"error": error.detail}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    return Answer({"error": "the server met an error of its own; its console says more"}, 500)


def make_app(house: House, port: int) -> Guard:
    """The ASGI app of a server that listens on ``port`` of 127.0.0.1."""
    pages = [Route(path, _page) for path in ("/", "/game/{key}", "/replay", "/replay/{key}")]
    app = Starlette(
        routes=[*pages, *Desk(house).routes(), Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers={RequestError: _refused, HTTPException: _http_error, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return Guard(app, port)


def open_socket(port: int | None) -> socket.socket:
    """Listen on 127.0.0.1; None: on the usual port, or another one where that is taken.

    Raises:
        OSError: when it cannot be had.
    """
    if port is not None:
        return socket.create_server((HOST, port))
    try:
        return socket.create_server((HOST, USUAL_PORT))
    except OSError:
        return socket.create_server((HOST, 0))


def make_server(house: House, listening: socket.socket) -> Any:
    """A uvicorn server on an open socket: ``make_server(...).run(sockets=[listening])``."""
    import uvicorn

    port = listening.getsockname()[1]
    return uvicorn.Server(
        uvicorn.Config(
            make_app(house, port),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http="h11",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            limit_concurrency=200,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
