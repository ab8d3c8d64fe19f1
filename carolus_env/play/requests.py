"""Requests of the page: read and checked, worked for in threads, answered in JSON.

The work checks a flag (`system.cancellation`) and soon gives its core back when nobody waits for
it any more. An agent in a user's file may not check it; then its answer is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from carolus_env.drawing.board import LAYOUTS
from carolus_env.records import record_line
from carolus_env.system import failures
from carolus_env.system.cancellation import Stop, Stopped
from carolus_env.system.untrusted import DataError, check, only, parse_json

MAX_BODY: Final = 16 * 2**20
"""Maximum number of bytes of a request."""
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


class Answer(JSONResponse):
    """JSON in ASCII, since UTF-8 cannot encode the lone surrogates that JSON may hold."""

    def render(self, content: Any) -> bytes:
        """Return the content as JSON without blanks."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def download(record: dict[str, Any]) -> Response:
    """Return a record as a file."""
    name = 'attachment; filename="carolus.jsonl"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Response(record_line(record), media_type="application/jsonl", headers=headers)


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


# ------------------------------------------------------------------------------------ held


class Store(Generic[T]):
    """What the server holds for its pages, under random keys; the item unused for longest goes.

    Args:
        what: the kind of items, for errors.
        most: the maximum number of items, those that are kept for good not counted.
    """

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most = what, most
        self._kept: dict[str, T] = {}
        self._items: OrderedDict[str, T] = OrderedDict()

    def add(self, item: T, *, keep: bool = False) -> str:
        """Store an item, for good with ``keep``; returns its key."""
        key = secrets.token_urlsafe(9)
        (self._kept if keep else self._items)[key] = item
        if len(self._items) > self._most:
            self._items.popitem(last=False)
        return key

    def find(self, key: str) -> T:
        """Return the item under a key.

        Raises:
            RequestError: when it is not held.
        """
        if key in self._kept:
            return self._kept[key]
        if key not in self._items:
            raise RequestError(404, f"The server does not hold this {self._what} any more.")
        self._items.move_to_end(key)
        return self._items[key]


# ------------------------------------------------------------------------------------ work


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
