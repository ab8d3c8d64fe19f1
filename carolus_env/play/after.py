"""The page's requests after a game and for sharing: looking back, pictures, films, positions.

Beside `api.Api`, which answers the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carolus_env.drawing import board_png, board_svg
from carolus_env.drawing.animation import animation_gif, animation_page
from carolus_env.engine import rules_of
from carolus_env.engine.rules import OVER, ROLL
from carolus_env.engine.state import States
from carolus_env.notation import from_text
from carolus_env.play import views
from carolus_env.play.api import Api
from carolus_env.play.library import GameFile, Replay
from carolus_env.play.review import review
from carolus_env.play.session import Session
from carolus_env.play.wire import Answer, RequestError, json_of, look_of, number_of
from carolus_env.play.work import in_thread
from carolus_env.records import record_line

MOST_FRAMES: Final = 1000
"""Decisions of a film."""
LONGEST: Final = 4000
"""Characters of a position."""
_WIDTH: Final = 1200  # pixels of a picture


class After:
    """Answers these requests.

    Args:
        api: which has the games and the files.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._filming = asyncio.Lock()

    def routes(self) -> list[Route]:
        """The path, method and answer of every request; they go before those of `Api`."""

        def api(path: str, answer: Any, method: str = "GET") -> Route:
            return Route(f"/api/{path}", answer, methods=[method])

        return [
            api("games/{key}/review", self.game_review, "POST"),
            api("games/{key}/picture.{kind}", self.game_picture),
            api("games/{key}/film.{kind}", self.game_film),
            api("files/{key}/{game}/review", self.file_review, "POST"),
            api("files/{key}/{game}/{position}/picture.{kind}", self.file_picture),
            api("files/{key}/{game}/film.{kind}", self.file_film),
            api("positions", self.position, "POST"),
            api("positions/hint", self.position_hint, "POST"),
            api("positions/picture.{kind}", self.position_picture),
        ]

    # -------------------------------------------------------------------------------- looking back

    async def game_review(self, request: Request) -> Response:
        """A look back at a game in play, and the file under which the viewer shows it."""
        session = self._session(request)
        if not session.over:
            raise RequestError(409, "the game is not over")
        data = record_line(session.record())
        file = await in_thread(lambda: GameFile.from_bytes("this game", data))
        replay = await in_thread(lambda: file.replay(0))
        found = await self._reviewed(request, replay)
        return Answer({"file": self._api.app.files.add(file), **found})

    async def file_review(self, request: Request) -> Response:
        """A look back at a recorded game."""
        return Answer(await self._reviewed(request, await self._api.recorded(request)))

    async def _reviewed(self, request: Request, replay: Replay) -> dict[str, Any]:
        if not replay.decisions:
            raise RequestError(409, "there are no decisions yet")
        people = [seat for seat, agent in enumerate(replay.agents) if agent is None]
        seats = people or list(range(replay.rules.players))
        found = await self._api.app.think(request, None, lambda: review(replay, seats))
        return views.review_view(replay, found)

    # -------------------------------------------------------------------------------- pictures

    def _session(self, request: Request) -> Session:
        return self._api.app.games.find(request.path_params["key"]).session

    async def game_picture(self, request: Request) -> Response:
        """The board of a game in play."""
        session = self._session(request)
        options = {"names": session.names, "last": session.last}
        return await self._picture(request, session.state, options)

    async def file_picture(self, request: Request) -> Response:
        """The board of a position of a recorded game."""
        replay = await self._api.recorded(request)
        at = number_of(request, "position", replay.events)
        options = {"names": replay.names, "last": replay.last(at)}
        return await self._picture(request, replay.states[at], options)

    async def position_picture(self, request: Request) -> Response:
        """The board of a position in text."""
        return await self._picture(request, _read(request.query_params.get("text", ""))[0], {})

    async def _picture(self, request: Request, state: Any, options: dict[str, Any]) -> Response:
        kind = _kind(request, "svg", "png")
        options = {**options, **look_of(request), "width": _WIDTH}
        if kind == "svg":
            return _download(board_svg(state, **options), "image/svg+xml", "carolus.svg")
        made = await self._made(lambda: board_png(state, **options))
        return _download(made, "image/png", "carolus.png")

    async def game_film(self, request: Request) -> Response:
        """A game in play as a film."""
        session = self._session(request)
        return await self._film(request, session.record(), session.names)

    async def file_film(self, request: Request) -> Response:
        """A recorded game as a film."""
        replay = await self._api.recorded(request)
        return await self._film(request, replay.record, replay.names)

    async def _film(self, request: Request, record: dict[str, Any], names: Any) -> Response:
        kind, theme = _kind(request, "gif", "html"), look_of(request)["theme"]
        decisions = sum("action" in event for event in record["events"])
        if decisions > MOST_FRAMES:
            raise RequestError(
                422, f"a film has at most {MOST_FRAMES:,} decisions, this game has {decisions:,}"
            )
        options: dict[str, Any] = {"names": names, "theme": theme}
        async with self._filming:  # one at a time: each takes seconds of a core
            if kind == "html":
                page = await self._made(lambda: animation_page(record, **options))
                return _download(page, "text/html", "carolus.html")
            gif = await self._made(lambda: animation_gif(record, **options))
        return _download(gif, "image/gif", "carolus.gif")

    async def _made(self, make: Callable[[], Any]) -> Any:
        try:
            return await in_thread(make)
        except ImportError as error:
            raise RequestError(501, str(error)) from None

    # -------------------------------------------------------------------------------- positions

    async def position(self, request: Request) -> Response:
        """A position in text, as a board."""
        given = await json_of(request, text=str)
        state = _read(given["text"] or "")[0]
        rules = rules_of(state)
        names = tuple(f"player {seat}" for seat in range(rules.players))
        view = views.state_view(state, rules, names, look_of(request))
        return Answer({**view, "decides": state["phase"] not in (ROLL, OVER)})

    async def position_hint(self, request: Request) -> Response:
        """An agent's opinion of a position in text."""
        given = await json_of(request, text=str, agent=str)
        state = _read(given["text"] or "")[0]
        if state["phase"] in (ROLL, OVER):
            raise RequestError(409, "there is no decision at this position")
        return await self._api.opinion(request, given["agent"] or "", state)


def _read(text: str) -> States:
    """The game of a position in text, without its generator."""
    if len(text) > LONGEST:
        raise RequestError(413, f"a position has at most {LONGEST:,} characters")
    try:
        return from_text(text, seed=0)
    except ValueError as error:
        raise RequestError(422, str(error)) from None


def _kind(request: Request, *known: str) -> str:
    kind: str = request.path_params["kind"]
    if kind not in known:
        raise RequestError(404, f"it can be had as {' or '.join(known)}")
    return kind


def _download(content: str | bytes, media: str, name: str) -> Response:
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
    }
    return Response(content, media_type=media, headers=headers)
