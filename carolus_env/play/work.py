"""Work in threads for requests, which is stopped when nobody waits for it any more.

The work checks a flag (`system.cancellation`) and soon gives its core back. An agent in a
user's file may not check it; then its answer is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request

from carolus_env.system.cancellation import Stop, Stopped

LONGEST_REASON: Final = 1000
"""Maximum length of an error."""

T = TypeVar("T")


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: status of the HTTP answer.
        reason: a sentence for the page.
        more: further keys of the answer.
    """

    def __init__(self, status: int, reason: str, **more: Any) -> None:
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]} ..."
        super().__init__(reason)
        self.status, self.reason, self.more = status, reason, more


async def in_thread(work: Callable[[], T], stop: Stop | None = None) -> T:
    """Do work in a thread that does not keep the process alive.

    Args:
        work: what to do.
        stop: tells it to end.

    Raises:
        RequestError: when it was stopped.
        Exception: whatever ``work`` raises.
    """
    loop, stop = asyncio.get_running_loop(), stop or Stop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def run() -> None:
        result: T | None = None
        error: Exception | None = None
        try:
            with stop.watched():
                result = work()
        except Stopped:
            error = RequestError(409, "The bot was stopped.", stopped=True)
        except Exception as raised:  # a user's agent can raise anything
            error = raised
        with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await done


async def while_asked(request: Request, work: Callable[[], T], stop: Stop) -> T:
    """Do work in a thread, until the client hangs up; then ``stop`` is set.

    Raises:
        RequestError: when it was stopped.
        Exception: whatever ``work`` raises.
    """
    done = asyncio.ensure_future(in_thread(work, stop))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            stop.set()
        return await done
    finally:
        gone.cancel()


async def _gone(request: Request) -> None:
    """Wait until the client has hung up."""
    with contextlib.suppress(ClientDisconnect):
        while (await request.receive())["type"] != "http.disconnect":
            pass
