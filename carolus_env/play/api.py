"""The page's JSON interface: one method answers each request.

The page keeps the record of its last game, so that a restarted server can continue it. An error is
answered by ``{"error": a sentence}``.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine import rules_of
from carolus_env.engine.rules import MAX_PLAYERS, OVER, ROLL, Rules
from carolus_env.engine.state import STATE
from carolus_env.notation import from_text
from carolus_env.play import views
from carolus_env.play.library import GameFile
from carolus_env.play.requests import (
    Answer,
    Failure,
    RequestError,
    Store,
    body_of,
    download,
    in_thread,
    json_of,
    layout_of,
    number_of,
    while_asked,
)
from carolus_env.play.roster import LEVELS, Roster, RosterError
from carolus_env.play.session import Replay, Session, TurnError, hint, up_to
from carolus_env.records import RecordError
from carolus_env.system import failures
from carolus_env.system.cancellation import Stop
from carolus_env.system.options import form, whole_number
from carolus_env.system.untrusted import get

MAX_GAMES: Final = 128
MAX_FILES: Final = 8
"""Maximum numbers of games in play and of open files."""
MAX_SEED: Final = 2**53 - 1
"""JavaScript keeps whole numbers exact up to here."""
_MAX_NUMBER: Final = 10**9 - 1
_MAX_POSITION: Final = 4000  # characters

T = TypeVar("T")


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
        named_files: the files named on the command line, by key; these are never dropped.
        searches: the work of agents that requests wait for.
    """

    def __init__(self, roster: Roster, files: Sequence[GameFile] = ()) -> None:
        self.roster = roster
        self.games: Store[GameInPlay] = Store("game", MAX_GAMES)
        self.files: Store[GameFile] = Store("file", MAX_FILES)
        self.named_files = {self.files.add(file, keep=True): file for file in files}
        self.searches: set[Stop] = set()

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
            api("games/{key}/record", self.record),
            api("files", self.open_file, "POST"),
            api("files/{key}", self.file),
            api("files/{key}/{game}", self.replay),
            api("files/{key}/{game}/record", self.replay_record),
            api("files/{key}/{game}/values", self.values, "POST"),
            api("files/{key}/{game}/{position}", self.position),
            api("positions", self.text_position, "POST"),
            api("hint", self.hint, "POST"),
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
                    {"key": key, "name": file.name} for key, file in self.named_files.items()
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
            whole_number("seed", body["seed"] or 0, 0, MAX_SEED)
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
        except BaseException as error:  # a user's agent can raise anything
            raise _failed(spec, error) from None

    async def _cut_record(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of a file's game up to a position."""
        try:
            key = get(body, "key", str, "replay")
            game, position = (get(body, name, int, "replay") for name in ("game", "position"))
            replay = await self._replay(self.files.find(key), game)
            return up_to(replay.record(), position)
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
        """End the searches of a game's bots."""
        searches = self._in_play(request).searches
        for search in searches:
            search.set()
        return Answer({"stopped": len(searches)})

    async def _thought(
        self,
        request: Request,
        agent: Agent,
        work: Callable[[], T],
        game: GameInPlay | None = None,
    ) -> T:
        """Return the result of an agent's work; a user's agent may raise anything."""
        search = Stop()
        of_game = set[Stop]() if game is None else game.searches
        for searches in (of_game, self.searches):
            searches.add(search)
        try:
            return await while_asked(request, work, search)
        except RequestError:
            raise
        except Exception as raised:
            error = raised.error if isinstance(raised, Failure) else raised
            raise _failed(agent.name, error) from None
        finally:
            for searches in (of_game, self.searches):
                searches.discard(search)

    async def record(self, request: Request) -> Response:
        """Return the record of a game in play, as a download."""
        return download(self._in_play(request).session.record())

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
        return download((await self._recorded(request)).record())

    async def position(self, request: Request) -> Response:
        """Return a position of a recorded game."""
        replay = await self._recorded(request)
        at = number_of(request, "position", len(replay.events))
        return Answer(views.position_view(replay, at, layout_of(request)))

    async def values(self, request: Request) -> Response:
        """Return each team's win probability at every decision, by an agent."""
        replay = await self._recorded(request)
        body = await json_of(request, agent=str)
        adviser = self._made(body["agent"] or "")
        states = np.array([replay.states[index] for index in replay.decisions], STATE)
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

    async def hint(self, request: Request) -> Response:
        """Return an agent's opinion of a position in text, of a game, a record or any other."""
        body = await json_of(request, text=str, agent=str, played=int)
        state = _position(body["text"])
        if state["phase"] in (ROLL, OVER):
            raise RequestError(409, "there is no decision at this position")
        played = body["played"]
        if played is not None and played not in engine.legal_actions(state).tolist():
            raise RequestError(400, f"played must be a legal action, got {played}")
        adviser = self._made(body["agent"] or "")
        result = await self._thought(request, adviser, lambda: hint(adviser, state))
        return Answer(views.hint_view(state, result, played))


def _failed(agent: str, error: BaseException) -> RequestError:
    """Return the answer for an error of an agent, which the console shows whole."""
    traceback.print_exception(error)
    return RequestError(502, f"{agent} failed with {failures.message(error)}")


def _position(text: str | None) -> np.void:
    """Return the game of a position in text, without its generator."""
    if len(text or "") > _MAX_POSITION:
        raise RequestError(413, f"a position has at most {_MAX_POSITION:,} characters")
    try:
        state: np.void = from_text(text or "", seed=0)[0]
    except ValueError as error:
        raise RequestError(422, str(error)) from None
    return state
