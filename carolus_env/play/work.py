"""Work in threads for requests, which ends when nobody waits for it any more.

A `Job` is one piece of work. It ends when its request is gone, when its time is up, or when the
server ends it, say because somebody pressed Stop. The work looks at a flag
(`carolus_env.system.stopping`) and gives its core back at once; what does not look, as an agent in
a user's file may, is left to itself, and its answer is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from carolus_env.play.wire import RequestError
from carolus_env.system.stopping import Stop, Stopped

GRACE: Final = 0.5
"""Seconds that a thread has to end when it was told to."""

T = TypeVar("T")
_Result = tuple[object, BaseException | None]


class Job(Stop):
    """A piece of work that the server can end."""

    def __init__(self) -> None:
        super().__init__()
        self._reason: RequestError | None = None
        self._told = asyncio.Event()

    def end(self, reason: RequestError) -> None:
        """End the work: what waits for it gets the reason. Only the first one counts."""
        if self._reason is None:
            self._reason = reason
            self.set()
            self._told.set()

    async def do(
        self,
        work: Callable[[], T],
        *,
        gone: Callable[[], Awaitable[object]] | None = None,
        seconds: float | None = None,
        late: str = "",
        ended: Callable[[], None] = lambda: None,
    ) -> T:
        """Do work that may take long in a thread, which does not keep the process alive.

        Args:
            work: what to do.
            gone: waits until nobody waits for the answer any more; None: somebody always does.
            seconds: that it may take; None: any time.
            late: what is said when it takes longer.
            ended: called in the event loop when the thread has ended, whoever still waits.

        Raises:
            RequestError: when it was ended, or when the server stops meanwhile.
            Exception: whatever ``work`` raises.
        """
        done = self._begun(work, ended)
        told = asyncio.ensure_future(self._told.wait())
        left = asyncio.ensure_future(_when(gone))
        try:
            first: set[asyncio.Future[Any]] = {done, told, left}
            await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                if left.done():
                    self.end(RequestError(400, "nobody waits for this answer"))
                self.end(RequestError(409, late, stopped=True))
                await asyncio.wait({done}, timeout=GRACE)
        except asyncio.CancelledError:
            self.end(RequestError(503, "the server is stopping"))
        finally:
            told.cancel()
            left.cancel()
        if self._reason is not None:
            raise self._reason
        result, error = done.result()
        if error is not None:
            raise error if isinstance(error, Exception) else RuntimeError(repr(error))
        return cast(T, result)

    def _begun(self, work: Callable[[], T], ended: Callable[[], None]) -> asyncio.Future[_Result]:
        """Start the thread; what it has found, or the error that it has met."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Result] = loop.create_future()

        def finish(result: _Result) -> None:
            ended()
            if not done.done():
                done.set_result(result)

        def run() -> None:
            result: _Result
            try:
                with self.watched():
                    result = work(), None
            except Stopped:
                result = None, RequestError(409, "the work was stopped", stopped=True)
            except BaseException as error:  # a user's agent can raise anything
                result = None, error
            with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(finish, result)

        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError:  # the system has no more of them
            ended()
            raise RequestError(503, "the machine is too busy; try again in a moment") from None
        return done


async def _when(gone: Callable[[], Awaitable[object]] | None) -> None:
    if gone is None:
        await asyncio.Event().wait()
    else:
        await gone()


async def in_thread(work: Callable[[], T]) -> T:
    """Do work that takes a moment in a thread, see `Job.do`."""
    return await Job().do(work)


class Places:
    """Places for work of one kind: so many at a time, and so many more that wait their turn.

    Args:
        at_once: how many work at a time.
        waiting: how many wait, at most.
        full: what is said when there is no place.
    """

    def __init__(self, at_once: int, waiting: int, full: str) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._left, self._full = at_once + waiting, full

    async def do(self, work: Callable[[], T], **how: Any) -> T:
        """Do work as `Job.do` does, when it is its turn.

        Raises:
            RequestError: when there is no place.
        """
        if self._left == 0:
            raise RequestError(503, self._full)
        self._left -= 1
        begun = False

        def ended() -> None:
            self._left += 1
            self._turns.release()

        try:
            await self._turns.acquire()
            begun = True
            return await Job().do(work, ended=ended, **how)
        finally:
            if not begun:
                self._left += 1
