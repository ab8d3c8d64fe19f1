"""What the server holds in memory: games in play, opened files, and work in threads."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from starlette.requests import Request

from carolus_env.bots import Agent
from carolus_env.play.library import GameFile
from carolus_env.play.roster import THINKING_SECONDS, Roster
from carolus_env.play.session import Session
from carolus_env.play.warm import Warmth
from carolus_env.play.wire import RequestError, gone
from carolus_env.play.work import Job, Places

MAX_HELD: Final = 128
"""Games in play that are held at most, and files."""
KEPT_SECONDS: Final = 30 * 60
"""How long one is surely held after it was last asked for."""
MAX_THINKING: Final = 8
"""Agents that think at the same time."""
MAX_OPENING: Final = 2
"""Files and records that are read at the same time; four times as many wait."""
OPENING_SECONDS: Final = 60
"""How long reading one of them may take."""
MAX_WAITING: Final = 4
"""Requests that change a game and wait for another one that does."""

T = TypeVar("T")


class Store(Generic[T], OrderedDict[str, T]):
    """Things under keys. When there are too many, the one used longest ago is dropped.

    One that was used in the last `KEPT_SECONDS` is not dropped: there is no room for another then.

    Args:
        what: the kind of things, for errors.
        most: how many are held.
        key_of: the key of a thing; None: a random one.
        clock: tells the time in seconds.
        drop: called with each thing that is dropped.
    """

    def __init__(
        self,
        what: str,
        most: int = MAX_HELD,
        key_of: Callable[[T], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        drop: Callable[[T], None] = lambda thing: None,
    ) -> None:
        super().__init__()
        self._what, self._most, self._key_of = what, most, key_of
        self._clock, self._drop = clock, drop
        self._used: dict[str, float] = {}
        self._named: set[str] = set()

    def add(self, thing: T, *, named: bool = False) -> str:
        """Hold a thing, in the place of one under the same key; returns the key.

        Args:
            thing: the thing.
            named: whether the user who started the server named it: it is never dropped.

        Raises:
            RequestError: when there is no room.
        """
        key = secrets.token_urlsafe(9) if self._key_of is None else self._key_of(thing)
        if key not in self and not named:
            self._make_room()
        self[key] = thing
        if named:
            self._named.add(key)
        return self._use(key)

    def find(self, key: str) -> T:
        """The thing under a key.

        Raises:
            RequestError: when it is not held.
        """
        if key not in self:
            raise RequestError(404, f"The server no longer holds this {self._what}.")
        return self[self._use(key)]

    def remove(self, key: str) -> None:
        """Hold the thing no longer, if it is held."""
        if key in self:
            self._used.pop(key)
            self._drop(self.pop(key))

    def _use(self, key: str) -> str:
        self.move_to_end(key)
        self._used[key] = self._clock()
        return key

    def _make_room(self) -> None:
        others = [key for key in self if key not in self._named]
        if len(others) < self._most:
            return
        idle = self._clock() - self._used[others[0]]
        if idle < KEPT_SECONDS:
            minutes = math.ceil((KEPT_SECONDS - idle) / 60)
            raise RequestError(
                503,
                f"There is no room for another {self._what}: {len(others)} were used in the last "
                f"{KEPT_SECONDS // 60} minutes. Forget one, or try again in {minutes} min.",
            )
        self.remove(others[0])


@dataclass(eq=False)
class GameInPlay:
    """A session, and who works for it."""

    session: Session
    jobs: dict[Job, Agent | None] = field(default_factory=dict)
    """Whose thread has not ended, each with the agent that thinks."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[Session]:
        """The session for a request that changes it; one after the other.

        Raises:
            RequestError: when too many wait already.
        """
        if self._waiting > MAX_WAITING:
            raise RequestError(503, "too many requests wait for this game")
        self._waiting += 1
        try:
            async with self._lock:
                yield self.session
        finally:
            self._waiting -= 1

    def stop(self, reason: str) -> int:
        """End all searches for this game; returns how many there were."""
        for job in self.jobs:
            job.end(RequestError(409, reason, stopped=True))
        return len(self.jobs)


class AppState:
    """All that the server holds.

    Args:
        roster: the agents that a page may use.
        files: files named on the command line.
        warms: whether to compile what the page needs, from `Warmth.start` on.

    Attributes:
        roster: as given.
        games: in play.
        files: of records.
        named_files: keys of the files named on the command line.
        opening: places for reading files and records.
        warmth: how far compiling is.
    """

    def __init__(
        self, roster: Roster, files: Sequence[GameFile] = (), *, warms: bool = False
    ) -> None:
        self.roster = roster
        self.games: Store[GameInPlay] = Store("game", drop=_drop)
        self.files: Store[GameFile] = Store("file", key_of=lambda file: file.key)
        self.named_files = [self.files.add(file, named=True) for file in files]
        self.opening = Places(
            MAX_OPENING, 4 * MAX_OPENING, "other files are being read; try again in a moment"
        )
        self.warmth = Warmth(roster if warms else None)
        self._thinking = 0
        self._jobs: set[Job] = set()
        self._closed = False

    async def think(
        self,
        request: Request,
        agent: Agent | None,
        work: Callable[[], T],
        game: GameInPlay | None = None,
        seconds: float | None = None,
    ) -> T:
        """Let an agent think in a thread, until the request is gone.

        Args:
            request: that waits for the answer.
            agent: that thinks; None: one of the page's own. One of the command line may think as
                long as it likes.
            work: what it does.
            game: whose searches it belongs to; None: none.
            seconds: that it may take; None: `THINKING_SECONDS`.

        Raises:
            RequestError: when too many think already, or the work is ended.
        """
        if self._thinking >= MAX_THINKING:
            raise RequestError(503, "too many bots are thinking; try again in a moment")
        if self._closed:
            raise RequestError(503, "the server is stopping")
        self._thinking += 1
        job = Job()
        self._jobs.add(job)
        if game is not None:
            game.jobs[job] = agent
        most = THINKING_SECONDS if seconds is None else seconds
        name = "it" if agent is None else agent.name

        def ended() -> None:
            self._thinking -= 1
            self._jobs.discard(job)
            if game is not None:
                del game.jobs[job]

        return await job.do(
            work,
            gone=lambda: gone(request),
            seconds=None if self.roster.is_named(name) else most,
            late=f"{name} was stopped after {most:.0f} seconds, the most for a bot of "
            "this page; an agent named on the command line with --bot may take longer",
            ended=ended,
        )

    async def read(self, request: Request, work: Callable[[], T]) -> T:
        """Read a file or a record, in a thread of its own kind, until the request is gone.

        Raises:
            RequestError: when too many are being read, or the work is ended.
            Exception: whatever ``work`` raises.
        """
        late = f"reading it takes more than {OPENING_SECONDS} seconds, the most for this page"
        return await self.opening.do(
            work, gone=lambda: gone(request), seconds=OPENING_SECONDS, late=late
        )

    def close(self) -> None:
        """End all work, as the server stops."""
        self._closed = True
        self.warmth.stop.set()
        for job in self._jobs:
            job.end(RequestError(503, "the server is stopping"))


def _drop(game: GameInPlay) -> None:
    game.stop("the server no longer holds this game")
