"""The page's JSON interface: one method answers each request.

The page keeps the record of its last game, so that a restarted server can continue it. An error is
answered by ``{"error": a sentence}``.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from carolus_env import bots
from carolus_env.bots import Agent
from carolus_env.drawing.board import LAYOUTS
from carolus_env.engine import rules_of
from carolus_env.engine.rules import MAX_PLAYERS, OVER, ROLL, Rules
from carolus_env.notation import from_text
from carolus_env.play import views
from carolus_env.play.library import GameFile, Replay
from carolus_env.play.roster import LEVELS, Roster, RosterError
from carolus_env.play.session import MAX_SEED, Session, TurnError, hint, up_to
from carolus_env.play.work import RequestError, in_thread, while_asked
from carolus_env.records import RecordError, record_line
from carolus_env.system.cancellation import Stop
from carolus_env.system.options import form
from carolus_env.system.untrusted import DataError, check, get, only, parse_json

MAX_HELD: Final = 128
"""Maximum number of games in play, and of files."""
MAX_BODY: Final = 16 * 2**20
"""Maximum number of bytes of a request."""
_MAX_NUMBER: Final = 10**9 - 1
_MAX_POSITION: Final = 4000  # characters

T = TypeVar("T")


class Answer(JSONResponse):
    """JSON in ASCII, since UTF-8 cannot encode the lone surrogates that JSON may hold."""

    def render(self, content: Any) -> bytes:
        """Return the content as JSON without blanks."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Held(OrderedDict[str, T], Generic[T]):
    """A store of items under random keys; beyond `MAX_HELD` it drops the least recently used.

    Args:
        what: the kind of things, for errors.
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def add(self, thing: T) -> str:
        """Store an item; returns its key."""
        while len(self) >= MAX_HELD:
            self.popitem(last=False)
        key = secrets.token_urlsafe(9)
        self[key] = thing
        return key

    def find(self, key: str) -> T:
        """Return the item under a key.

        Raises:
            RequestError: when it is not held.
        """
        if key not in self:
            raise RequestError(404, f"The server does not hold this {self._what} any more.")
        self.move_to_end(key)
        return self[key]


@dataclass(eq=False)
class GameInPlay:
    """A session, a lock for requests that change it, and the searches that work for it."""

    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    searches: set[Stop] = field(default_factory=set)


class Api:
    """Answers the page's requests.

    Args:
        roster: the agents that a page may use.
        files: files named on the command line.

    Attributes:
        roster: the roster given.
        games: games in play.
        files: files of records.
        named_files: keys of the files named on the command line.
    """

    def __init__(self, roster: Roster, files: Sequence[GameFile] = ()) -> None:
        self.roster = roster
        self.games: Held[GameInPlay] = Held("game")
        self.files: Held[GameFile] = Held("file")
        self.named_files = [self.files.add(file) for file in files]

    def routes(self) -> list[Route]:
        """Return the path, method and answer of every request."""

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
            api("games/{key}/stop", self.stop, "POST"),
            api("games/{key}/hint", self.hint, "POST"),
            api("games/{key}/record", self.record),
            api("files", self.open_file, "POST"),
            api("files/{key}", self.file),
            api("files/{key}/{game}", self.replay),
            api("files/{key}/{game}/record", self.replay_record),
            api("files/{key}/{game}/values", self.values, "POST"),
            api("files/{key}/{game}/{position}", self.position),
            api("files/{key}/{game}/{position}/hint", self.replay_hint, "POST"),
            api("positions", self.text_position, "POST"),
            api("positions/hint", self.text_hint, "POST"),
        ]

    async def menu(self, request: Request) -> Response:
        """Return the choices for a new game, and the files named on the command line."""
        return Answer(
            {
                "agents": [row._asdict() for row in self.roster.menu()],
                "advisers": self.roster.advisers(),
                "levels": [
                    {**level._asdict(), "agent": level.agents[Rules().players]} for level in LEVELS
                ],
                "rules": Rules().to_dict(),
                "options": form(Rules),
                "max_seed": MAX_SEED,
                "icons": views.icons_view(),
                "files": [
                    {"key": key, "name": self.files[key].name}
                    for key in self.named_files
                    if key in self.files
                ],
            }
        )

    # -------------------------------------------------------------------------------- games

    async def new_game(self, request: Request) -> Response:
        """Begin a game, or continue one from a record or from a position of a recorded game."""
        layout = layout_of(request)
        body = await json_of(
            request, rules=dict, agents=list, names=list, seed=int, record=dict, replay=dict
        )
        agents = self._agents(body["agents"] or [])
        more: dict[str, Any] = {"names": body["names"], "seed": body["seed"]}
        record = body["record"]
        if body["replay"] is not None:
            record = await self._cut_record(body["replay"])
        try:
            if record is None:
                rules = Rules.from_dict(body["rules"] or {})
                session = await in_thread(lambda: Session.new(rules, agents, **more))
            else:
                session = await in_thread(lambda: Session(record, agents, **more))
        except RecursionError:
            raise RequestError(400, "nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise RequestError(400, str(error)) from None
        key = self.games.add(GameInPlay(session))
        return Answer({"key": key, **views.game_view(session, layout)}, 201)

    def _agents(self, specs: list[Any]) -> list[Agent | None]:
        known = all(spec is None or isinstance(spec, str) for spec in specs)
        if len(specs) > MAX_PLAYERS or not known:
            raise RequestError(
                400, "agents must be a list with a spec for each seat, or null for a person"
            )
        return [None if spec is None else self._made(spec) for spec in specs]

    def _made(self, spec: str) -> Agent:
        try:
            return self.roster.make(spec)
        except RosterError as error:
            raise RequestError(400, str(error)) from None

    async def _cut_record(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of a file's game up to a position."""
        try:
            key = get(body, "key", str, "replay")
            game, position = (get(body, name, int, "replay") for name in ("game", "position"))
            replay = await self._replay(self.files.find(key), game)
            return up_to(replay.record, position)
        except ValueError as error:  # DataError is one
            raise RequestError(400, str(error)) from None

    def _in_play(self, request: Request) -> GameInPlay:
        layout_of(request)  # checked before anything is played
        return self.games.find(request.path_params["key"])

    async def game(self, request: Request) -> Response:
        """Return a game in play."""
        session = self._in_play(request).session
        since = number_of(request, "since", _MAX_NUMBER)
        return Answer(views.game_view(session, layout_of(request), since))

    def _check(self, request: Request, session: Session, version: int | None) -> int:
        """Refuse a request about an older version of the game; returns the number of events."""
        if version != session.version:
            raise RequestError(
                409,
                "the game has moved on, perhaps in another window",
                game=views.game_view(session, layout_of(request)),
            )
        return len(session.events)

    async def play(self, request: Request) -> Response:
        """Play a person's decision."""
        body = await json_of(request, action=int, version=int)
        if body["action"] is None:
            raise RequestError(400, "action is missing")
        return await self._change(request, body, lambda game: game.play(body["action"]))

    async def undo(self, request: Request) -> Response:
        """Take the last decision back."""
        body = await json_of(request, version=int)
        return await self._change(request, body, Session.undo, undone=1)

    async def _change(
        self,
        request: Request,
        body: dict[str, Any],
        change: Callable[[Session], None],
        undone: int = 0,
    ) -> Response:
        game = self._in_play(request)
        async with game.lock:
            at = self._check(request, game.session, body["version"])
            try:
                change(game.session)
            except (ValueError, TypeError, OverflowError) as error:
                raise RequestError(409, str(error)) from None
            return Answer(views.game_view(game.session, layout_of(request), at - undone))

    async def agent(self, request: Request) -> Response:
        """Play one decision of the agent to move, until the request is gone or is stopped."""
        game = self._in_play(request)
        body = await json_of(request, version=int)
        async with game.lock:
            session = game.session
            at = self._check(request, session, body["version"])
            if session.agent is None:
                raise RequestError(409, "no bot is to move")
            thought = await self._thought(request, session.agent, session.think, game)
            try:
                session.ask_agent(thought)
            except TurnError as error:
                raise RequestError(409, str(error)) from None
            return Answer(views.game_view(session, layout_of(request), at))

    async def stop(self, request: Request) -> Response:
        """End all searches for a game: those of its bots, and hints."""
        searches = self._in_play(request).searches
        for search in searches:
            search.set()
        return Answer({"stopped": len(searches)})

    async def hint(self, request: Request) -> Response:
        """Return an agent's opinion of the decision to be made."""
        game = self._in_play(request)
        body = await json_of(request, agent=str, version=int)
        session = game.session
        self._check(request, session, body["version"])
        if session.over:
            raise RequestError(409, "the game is over")
        seed = session.seed + len(session.events)
        return await self._opinion(request, body["agent"], session.state, seed, game=game)

    async def _opinion(
        self,
        request: Request,
        spec: str | None,
        state: np.void,
        seed: int,
        played: int | None = None,
        game: GameInPlay | None = None,
    ) -> Response:
        adviser, now = self._made(spec or ""), state.copy()
        result = await self._thought(request, adviser, lambda: hint(adviser, now, seed), game)
        return Answer(views.hint_view(now, result, played))

    async def _thought(
        self,
        request: Request,
        agent: Agent,
        work: Callable[[], T],
        game: GameInPlay | None = None,
    ) -> T:
        """Return the result of an agent's work; a user's agent may raise anything."""
        search = Stop()
        searches = set[Stop]() if game is None else game.searches
        searches.add(search)
        try:
            return await while_asked(request, work, search)
        except RequestError:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = f"{agent.name} failed with {type(error).__name__}: {error}"
            raise RequestError(502, reason) from None
        finally:
            searches.discard(search)

    async def record(self, request: Request) -> Response:
        """Return the record of a game in play, as a download."""
        return _download(self._in_play(request).session.record())

    # -------------------------------------------------------------------------------- files

    async def open_file(self, request: Request) -> Response:
        """Open a file of records that the page sends."""
        if request.headers.get("content-type") != "application/octet-stream":
            raise RequestError(415, "a file must be sent as application/octet-stream")
        name = request.query_params.get("name", "a file")[:100]
        data = await body_of(request)
        try:
            file = await in_thread(lambda: GameFile.from_bytes(name, data))
        except RecordError as error:
            raise RequestError(422, f"{name}: {error}") from None
        return Answer({"key": self.files.add(file), **views.file_view(file)}, 201)

    def _file(self, request: Request) -> GameFile:
        return self.files.find(request.path_params["key"])

    async def file(self, request: Request) -> Response:
        """Return the list of a file's games."""
        return Answer(views.file_view(self._file(request)))

    async def _replay(self, file: GameFile, game: int) -> Replay:
        try:
            return await in_thread(lambda: file.replay(game))
        except IndexError:
            last = len(file.games) - 1
            raise RequestError(404, f"game must be from 0 to {last}, got {game}") from None
        except RecordError as error:
            raise RequestError(422, f"{file.name}, {file.games[game].title}: {error}") from None

    async def _recorded(self, request: Request) -> Replay:
        return await self._replay(self._file(request), number_of(request, "game", _MAX_NUMBER))

    async def replay(self, request: Request) -> Response:
        """Return a recorded game without its positions."""
        return Answer(views.replay_view(await self._recorded(request)))

    async def replay_record(self, request: Request) -> Response:
        """Return the record of a file's game, as a download."""
        return _download((await self._recorded(request)).record)

    async def position(self, request: Request) -> Response:
        """Return a position of a recorded game."""
        replay = await self._recorded(request)
        at = number_of(request, "position", replay.events)
        return Answer(views.position_view(replay, at, layout_of(request)))

    async def replay_hint(self, request: Request) -> Response:
        """Return an agent's opinion of a decision of a recorded game."""
        replay = await self._recorded(request)
        body = await json_of(request, agent=str)
        at = number_of(request, "position", replay.events)
        if at not in replay.decisions:
            raise RequestError(409, "there is no decision at this position")
        played = replay.record["events"][at]["action"]
        return await self._opinion(request, body["agent"], replay.states[at], at, played)

    async def values(self, request: Request) -> Response:
        """Return each team's win probability at every decision, by an agent."""
        replay = await self._recorded(request)
        body = await json_of(request, agent=str)
        adviser = self._made(body["agent"] or "")
        states = replay.states[replay.decisions]
        opinion = await self._thought(request, adviser, lambda: bots.opinion(adviser, states))
        if (result := opinion.values) is None:
            raise RequestError(422, f"{adviser.name} does not value positions")
        return Answer({"agent": adviser.name, "values": [views.shares(row) for row in result]})

    # -------------------------------------------------------------------------------- positions

    async def text_position(self, request: Request) -> Response:
        """Return a position in text, as a board."""
        body = await json_of(request, text=str)
        state = _position(body["text"])
        rules = rules_of(state)
        names = tuple(f"player {seat}" for seat in range(rules.players))
        view = views.state_view(state, rules, names, layout_of(request))
        return Answer({**view, "decides": state["phase"] not in (ROLL, OVER)})

    async def text_hint(self, request: Request) -> Response:
        """Return an agent's opinion of a position in text."""
        body = await json_of(request, text=str, agent=str)
        state = _position(body["text"])
        if state["phase"] in (ROLL, OVER):
            raise RequestError(409, "there is no decision at this position")
        return await self._opinion(request, body["agent"], state, 0)


def _position(text: str | None) -> np.void:
    """Return the game of a position in text, without its generator."""
    if len(text or "") > _MAX_POSITION:
        raise RequestError(413, f"a position has at most {_MAX_POSITION:,} characters")
    try:
        state: np.void = from_text(text or "", seed=0)[0]
    except ValueError as error:
        raise RequestError(422, str(error)) from None
    return state


def _download(record: dict[str, Any]) -> Response:
    name = 'attachment; filename="carolus.jsonl"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Response(record_line(record), media_type="application/jsonl", headers=headers)


# ------------------------------------------------------------------------------------ requests


async def body_of(request: Request) -> bytes:
    """Read the body of a request.

    Raises:
        RequestError: when it is larger than `MAX_BODY`, or the client hangs up.
    """
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BODY:
                raise RequestError(413, f"too large, the limit is {MAX_BODY // 2**20} MiB")
    except ClientDisconnect:  # nobody reads the answer
        raise RequestError(400, "the request was cut off") from None
    return bytes(data)


async def json_of(request: Request, **known: type) -> dict[str, Any]:
    """Read the JSON object in the body of a request.

    Args:
        request: its content type must be JSON.
        known: the keys that it may have, and the JSON type of each.

    Returns:
        A value for every known key; None where it is missing or null.

    Raises:
        RequestError: for any other body.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RequestError(415, "the body must be application/json")
    data = await body_of(request)
    try:
        body = check(parse_json(data), dict, "the body")
        only(body, known)
        return {
            key: None if body.get(key) is None else check(body[key], kind, key)
            for key, kind in known.items()
        }
    except DataError as error:
        raise RequestError(400, str(error)) from None


def layout_of(request: Request) -> Any:
    """Return the layout in which boards are to be drawn, from the query.

    Raises:
        RequestError: for an unknown one.
    """
    layout = request.query_params.get("layout", LAYOUTS[0])
    if layout not in LAYOUTS:
        raise RequestError(400, f"layout must be one of {', '.join(LAYOUTS)}")
    return layout


def number_of(request: Request, name: str, high: int) -> int:
    """Return a whole number from the path or the query, 0 to ``high``; 0 where it is missing.

    Raises:
        RequestError: for anything else.
    """
    text = request.path_params.get(name) or request.query_params.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= high):
        raise RequestError(400, f"{name} must be a whole number from 0 to {high}")
    return int(text)
