"""The page's JSON interface: one method answers each request.

The page keeps the record of each game in play, so that a restarted server, or one that has dropped
the game, can continue it. An error is answered by ``{"error": a sentence}``.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carolus_env import bots
from carolus_env.bots import Agent
from carolus_env.drawing.board import board_svg
from carolus_env.engine.rules import ACTIONS, CROWN_CHOICES, MAX_PLAYERS, PARTNERS, Rules
from carolus_env.play import views
from carolus_env.play.app_state import AppState, GameInPlay
from carolus_env.play.levels import LEVELS
from carolus_env.play.library import GameFile, Replay
from carolus_env.play.preview import after_step
from carolus_env.play.roster import LIMITS, RosterError
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
from carolus_env.play.work import in_thread
from carolus_env.records import RecordError, record_line
from carolus_env.system.untrusted import DataError, get
from carolus_env.system.version import __version__

MAX_FILE: Final = 16 * 2**20
"""Bytes of a file that a page sends."""
VALUING_SECONDS: Final = 300
"""How long an agent may take to value all positions of a game."""
_MAX_NUMBER: Final = 10**9 - 1

T = TypeVar("T")


class Api:
    """Answers the page's requests.

    Args:
        app: what the server holds.
    """

    def __init__(self, app: AppState) -> None:
        self.app = app

    def routes(self) -> list[Route]:
        """The path, method and answer of every request."""

        def api(
            path: str, answer: Callable[[Request], Awaitable[Response]], *methods: str
        ) -> Route:
            return Route(f"/api/{path}", answer, methods=methods or ("GET",))

        return [
            api("menu", self.menu),
            api("example", self.example),
            api("warm", self.warm),
            api("games", self.new_game, "POST"),
            api("games/{key}", self.game),
            api("games/{key}", self.forget, "DELETE"),
            api("games/{key}/play", self.play, "POST"),
            api("games/{key}/undo", self.undo, "POST"),
            api("games/{key}/agent", self.agent, "POST"),
            api("games/{key}/stop", self.stop, "POST"),
            api("games/{key}/seat", self.seat, "POST"),
            api("games/{key}/hint", self.hint, "POST"),
            api("games/{key}/step/{action}", self.step),
            api("games/{key}/positions/{position}", self.past),
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
        """The choices for a new game, and the files named on the command line."""
        return Answer(
            {
                "version": __version__,
                "agents": [row._asdict() for row in self.app.roster.menu()],
                "advisers": self.app.roster.advisers(),
                "valuers": self.app.roster.valuers(),
                "levels": [
                    {**level._asdict(), "agent": level.agents[Rules().players]} for level in LEVELS
                ],
                "limits": LIMITS,
                "warm": self.app.warmth.view(),
                "rules": Rules().to_dict(),
                "crown_choice": CROWN_CHOICES,
                "partners": PARTNERS,
                "max_seed": MAX_SEED,
                "looks": views.looks_view(),
                "files": [
                    {"key": key, "name": self.app.files[key].name}
                    for key in self.app.named_files
                    if key in self.app.files
                ],
            }
        )

    async def example(self, request: Request) -> Response:
        """The board that the help takes its pictures from."""
        return Answer(views.example_view(look_of(request)))

    async def warm(self, request: Request) -> Response:
        """How far the server is with compiling."""
        return Answer(self.app.warmth.view())

    # -------------------------------------------------------------------------------- games

    async def new_game(self, request: Request) -> Response:
        """A new game, or one continued from a record or from a position of a recorded game."""
        look = look_of(request)  # checked before anything is done
        given = await json_of(
            request, rules=dict, agents=list, names=list, seed=int, record=dict, replay=dict
        )
        agents = self._agents(given["agents"])
        more: dict[str, Any] = {"names": given["names"], "seed": given["seed"]}
        if given["replay"] is not None:
            record = await self._cut_record(request, given["replay"])
        else:
            record = given["record"]
        try:
            if record is None:
                rules = Rules.from_dict(given["rules"] or {})
                session = await in_thread(lambda: Session.new(rules, agents, **more))
            else:
                session = await self.app.read(request, lambda: Session(record, agents, **more))
        except RecursionError:
            raise RequestError(400, "nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise RequestError(400, str(error)) from None
        key = self.app.games.add(GameInPlay(session))
        return Answer({"key": key, **views.game_view(session, look)}, 201)

    def _agents(self, specs: list[Any] | None) -> list[Agent | None]:
        specs = [] if specs is None else specs
        known = all(spec is None or isinstance(spec, str) for spec in specs)
        if len(specs) > MAX_PLAYERS or not known:
            raise RequestError(
                400, "agents must be a list with a spec for each seat, or null for a person"
            )
        return [None if spec is None else self._made(spec) for spec in specs]

    def _made(self, spec: str) -> Agent:
        try:
            return self.app.roster.make(spec)
        except RosterError as error:
            raise RequestError(400, str(error)) from None

    async def _cut_record(self, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
        """The record of a file's game up to a position."""
        try:
            key = get(given, "key", str, "replay")
            game, position = (get(given, name, int, "replay") for name in ("game", "position"))
        except DataError as error:
            raise RequestError(400, str(error)) from None
        replay = await self._replay(request, self.app.files.find(key), game)
        try:
            return up_to(replay.record, position)
        except ValueError as error:
            raise RequestError(400, str(error)) from None

    def _in_play(self, request: Request) -> GameInPlay:
        look_of(request)  # checked before anything is played
        return self.app.games.find(request.path_params["key"])

    def _answer(self, request: Request, session: Session, since: int) -> Response:
        return Answer(views.game_view(session, look_of(request), since))

    async def game(self, request: Request) -> Response:
        """A game in play."""
        session = self._in_play(request).session
        return self._answer(request, session, number_of(request, "since", _MAX_NUMBER))

    def _check(self, request: Request, session: Session, version: int | None) -> int:
        """Refuse a request about an older version of the game; returns the number of events."""
        if version != session.version:
            raise RequestError(
                409,
                "the game has moved on, perhaps in another window",
                game=views.game_view(session, look_of(request)),
            )
        return len(session.events)

    async def play(self, request: Request) -> Response:
        """A person's decision."""
        game = self._in_play(request)
        given = await json_of(request, action=int, version=int)
        async with game.changing() as session:
            at = self._check(request, session, given["version"])
            if given["action"] is None:
                raise RequestError(400, "action is missing")
            try:
                session.play(given["action"])
            except (ValueError, TypeError, OverflowError) as error:
                raise RequestError(409, str(error)) from None
            return self._answer(request, session, at)

    async def undo(self, request: Request) -> Response:
        """The last decision taken back."""
        game = self._in_play(request)
        given = await json_of(request, version=int)
        async with game.changing() as session:
            at = self._check(request, session, given["version"])
            try:
                session.undo()
            except TurnError as error:
                raise RequestError(409, str(error)) from None
            return self._answer(request, session, at - 1)

    async def agent(self, request: Request) -> Response:
        """One decision of the agent to move, until the request is gone or `stop` is asked for."""
        game = self._in_play(request)
        given = await json_of(request, version=int)
        async with game.changing() as session:
            at = self._check(request, session, given["version"])
            if (agent := session.agent) is None:
                raise RequestError(409, "no bot is to move")
            if agent in game.jobs.values():  # it does not look at the flag
                raise RequestError(409, f"{agent.name} has not stopped yet; replace it")
            session.ask_agent(await self._thought(request, agent, session.think, game))
            return self._answer(request, session, at)

    async def stop(self, request: Request) -> Response:
        """All searches for a game ended: those of its bots, and hints."""
        return Answer({"stopped": self._in_play(request).stop("The bot was stopped.")})

    async def seat(self, request: Request) -> Response:
        """Another agent in a seat, or a person; searches for the game end."""
        game = self._in_play(request)
        given = await json_of(request, seat=int, agent=str, name=str, version=int)
        if given["seat"] is None:
            raise RequestError(400, "seat is missing")
        agent = None if given["agent"] is None else self._made(given["agent"])
        self._check(request, game.session, given["version"])
        game.stop("The bot was replaced.")
        async with game.changing() as session:
            at = self._check(request, session, given["version"])
            try:
                session.replace(given["seat"], agent, given["name"])
            except ValueError as error:
                raise RequestError(409, str(error)) from None
            return self._answer(request, session, at)

    async def forget(self, request: Request) -> Response:
        """A game dropped; searches for it end."""
        self.app.games.remove(request.path_params["key"])
        return Answer({})

    async def hint(self, request: Request) -> Response:
        """An agent's opinion of the decision to be made."""
        game = self._in_play(request)
        given = await json_of(request, agent=str, version=int)
        adviser = self._made(given["agent"] or "")
        session = game.session
        self._check(request, session, given["version"])
        if session.over:
            raise RequestError(409, "the game is over")
        state = session.state.copy()
        seed = session.seed + len(session.events)
        return await self._hinted(request, adviser, state, seed, game=game)

    async def opinion(self, request: Request, spec: str, state: np.void) -> Response:
        """What an agent thinks of a position in which a decision is due."""
        return await self._hinted(request, self._made(spec), state.copy(), 0)

    async def _hinted(
        self,
        request: Request,
        adviser: Agent,
        state: np.void,
        seed: int,
        played: int | None = None,
        game: GameInPlay | None = None,
    ) -> Response:
        found = await self._thought(request, adviser, lambda: hint(adviser, state, seed), game)
        return Answer(views.hint_view(state, found, played))

    async def _thought(
        self,
        request: Request,
        agent: Agent,
        work: Callable[[], T],
        game: GameInPlay | None = None,
        seconds: float | None = None,
    ) -> T:
        """The result of an agent's work; a user's agent may raise anything."""
        try:
            return await self.app.think(request, agent, work, game, seconds)
        except RequestError:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = f"{agent.name} failed with {type(error).__name__}: {error}"
            raise RequestError(502, reason) from None

    async def step(self, request: Request) -> Response:
        """The board after a step of the Emperor."""
        session = self._in_play(request).session
        action = number_of(request, "action", ACTIONS - 1)
        try:
            after = after_step(session.state, action)
        except ValueError as error:
            raise RequestError(409, str(error)) from None
        last = session.state, action
        svg = board_svg(after[0], names=session.names, last=last, **look_of(request))
        return Answer({"action": action, "svg": svg})

    async def past(self, request: Request) -> Response:
        """The board as it was before an event of a game in play."""
        session = self._in_play(request).session
        at = number_of(request, "position", len(session.events))
        return Answer(views.past_view(session, at, look_of(request)))

    async def record(self, request: Request) -> Response:
        """The record of a game in play, as a download."""
        return _download(self._in_play(request).session.record())

    # -------------------------------------------------------------------------------- files

    async def open_file(self, request: Request) -> Response:
        """A file of records that the page sends."""
        if request.headers.get("content-type") != "application/octet-stream":
            raise RequestError(415, "a file must be sent as application/octet-stream")
        name = request.query_params.get("name", "a file")[:100]
        data = await body_of(request, MAX_FILE)
        try:
            file = await self.app.read(request, lambda: GameFile.from_bytes(name, data))
        except RecordError as error:
            raise RequestError(422, f"{name}: {error}") from None
        key = self.app.files.add(file)
        return Answer({"key": key, **views.file_view(file)}, 201)

    def _file(self, request: Request) -> GameFile:
        return self.app.files.find(request.path_params["key"])

    async def file(self, request: Request) -> Response:
        """The list of a file's games."""
        return Answer(views.file_view(self._file(request)))

    async def _replay(self, request: Request, file: GameFile, game: int) -> Replay:
        try:
            if (opened := file.opened(game)) is not None:
                return opened
            return await self.app.read(request, lambda: file.replay(game))
        except IndexError:
            last = len(file.games) - 1
            raise RequestError(404, f"game must be from 0 to {last}, got {game}") from None
        except RecordError as error:
            raise RequestError(422, f"{file.name}, {file.games[game].title}: {error}") from None

    async def recorded(self, request: Request) -> Replay:
        """The game of a file that a request names."""
        game = number_of(request, "game", _MAX_NUMBER)
        return await self._replay(request, self._file(request), game)

    async def replay(self, request: Request) -> Response:
        """A recorded game without its positions."""
        return Answer(views.replay_view(await self.recorded(request)))

    async def replay_record(self, request: Request) -> Response:
        """The record of a file's game, as a download."""
        return _download((await self.recorded(request)).record)

    async def position(self, request: Request) -> Response:
        """A position of a recorded game."""
        replay = await self.recorded(request)
        at = number_of(request, "position", replay.events)
        values = values_of(request, replay.rules.teams)
        return Answer(views.position_view(replay, at, look_of(request), values))

    async def replay_hint(self, request: Request) -> Response:
        """An agent's opinion of a decision of a recorded game."""
        replay = await self.recorded(request)
        given = await json_of(request, agent=str)
        at = number_of(request, "position", replay.events)
        if at == replay.events or at not in replay.decisions:
            raise RequestError(409, "there is no decision at this position")
        adviser, state = self._made(given["agent"] or ""), replay.states[at].copy()
        played = replay.record["events"][at]["action"]
        return await self._hinted(request, adviser, state, at, played)

    async def values(self, request: Request) -> Response:
        """Each team's expected share of the win at every decision, by an agent."""
        replay = await self.recorded(request)
        given = await json_of(request, agent=str)
        adviser = self._made(given["agent"] or "")
        states = replay.states[replay.decisions]
        opinion = await self._thought(
            request, adviser, lambda: bots.opinion(adviser, states), seconds=VALUING_SECONDS
        )
        if (found := opinion.values) is None:
            raise RequestError(422, f"{adviser.name} does not value positions")
        return Answer({"agent": adviser.name, "values": [views.shares(row) for row in found]})


def _download(record: dict[str, Any]) -> Response:
    name = 'attachment; filename="carolus.jsonl"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Response(record_line(record), media_type="application/jsonl", headers=headers)
