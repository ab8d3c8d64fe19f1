"""Work in threads for requests, which is stopped when nobody waits for it any more.

The work checks a flag (`system.cancellation`) and soon gives its core back. An agent in a
user's file may not check it; then its answer is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from carolus_env.play.requests import RequestError
from carolus_env.system import failures
from carolus_env.system.cancellation import Stop, Stopped

T = TypeVar("T")


class Failure(Exception):  # noqa: N818 - it tells of an error, which may be of any class
    """The work has failed.

    Args:
        error: what it raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(failures.message(error))
        self.error = error


async def in_thread(work: Callable[[], T], stop: Stop | None = None) -> T:
    """Do work in a thread that does not keep the process alive.

    Args:
        work: what to do.
        stop: tells it to end.

    Raises:
        RequestError: when it was stopped.
        Failure: when ``work`` raises what is no `Exception`, such as SystemExit, which would end
            the server.
        Exception: whatever else ``work`` raises.
    """
    loop, stop = asyncio.get_running_loop(), stop or Stop()
    # The result or the error, since a future refuses some errors.
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if not done.cancelled():
            done.set_result((result, error))

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            with stop.watched():
                result = work()
        except Stopped:
            error = RequestError(409, "The bot was stopped.", stopped=True)
        except BaseException as raised:  # a user's agent can raise anything
            error = raised
        with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, daemon=True).start()
    result, error = await done
    if error is None:
        return result  # type: ignore[return-value]
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        raise error
    raise Failure(error)


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
