"""What the server holds in memory: games in play, opened files, and agents at work in threads."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

from carolus_env.play.library import GameFile
from carolus_env.play.roster import Roster
from carolus_env.play.session import Session
from carolus_env.play.wire import RequestError

MAX_HELD: Final = 64
"""Games in play that are held at most, and files; the least recently used is dropped."""
MAX_THINKING: Final = 8
"""Agents that think at the same time."""

T = TypeVar("T")


class Store(Generic[T], OrderedDict[str, T]):
    """Things under random keys; when there are too many, the least recently used is dropped.

    Args:
        what: the kind of things, for errors.
        most: how many are held.
    """

    def __init__(self, what: str, most: int = MAX_HELD) -> None:
        super().__init__()
        self._what, self._most = what, most

    def add(self, thing: T) -> str:
        """Hold a thing; returns its key."""
        key = secrets.token_urlsafe(9)
        self[key] = thing
        while len(self) > self._most:
            self.popitem(last=False)
        return key

    def find(self, key: str) -> T:
        """The thing under a key.

        Raises:
            RequestError: when it is not held.
        """
        if key not in self:
            raise RequestError(404, f"The server no longer holds this {self._what}.")
        self.move_to_end(key)
        return self[key]


@dataclass
class GameInPlay:
    """A session, and the lock that every request which changes it holds."""

    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class AppState:
    """All that the server holds.

    Args:
        roster: the agents that a page may use.
        files: files named on the command line.

    Attributes:
        roster: as given.
        games: in play.
        files: of records.
        named_files: keys of the files named on the command line.
    """

    def __init__(self, roster: Roster, files: Sequence[GameFile] = ()) -> None:
        self.roster = roster
        self.games: Store[GameInPlay] = Store("game")
        self.files: Store[GameFile] = Store("file")
        self.named_files = [self.files.add(file) for file in files]
        self._thinking = 0

    async def think(self, work: Callable[[], T]) -> T:
        """Let an agent think in a thread, see `in_thread`.

        Raises:
            RequestError: when too many think already.
        """
        if self._thinking >= MAX_THINKING:
            raise RequestError(503, "too many bots are thinking; try again in a moment")
        self._thinking += 1
        try:
            return await in_thread(work)
        finally:
            self._thinking -= 1


async def in_thread(work: Callable[[], T]) -> T:
    """Do work that may take long in a thread, which does not keep the process alive.

    Raises:
        RequestError: when the server stops meanwhile.
        Exception: whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def finish(result: tuple[T | None, BaseException | None]) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result: tuple[T | None, BaseException | None]
        try:
            result = work(), None
        except BaseException as error:  # a user's agent can raise anything
            result = None, error
        with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(finish, result)

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = await done
    except asyncio.CancelledError:
        raise RequestError(503, "the server is stopping") from None
    if error is not None:
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return cast(T, answer)
