"""Requests read and checked, and answers written: JSON, and a sentence for every error."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from carolus_env.drawing.board import LAYOUTS
from carolus_env.drawing.style import THEMES
from carolus_env.play import views
from carolus_env.system.untrusted import DataError, check, only, parse_json

MAX_BODY: Final = 4 * 2**20
"""Bytes of a JSON request."""
MAX_BODIES: Final = 128 * 2**20
"""Bytes of all requests that are being received."""
LONGEST_REASON: Final = 1000
"""Characters of an error: what a request holds is not echoed at any length."""


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: of the HTTP answer.
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
        """The content as JSON without blanks; a number that JSON lacks is refused."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        RequestError: when it is larger than ``most`` bytes, there is no room for it, or the client
            hangs up.
    """
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            _bodies.received += len(chunk)
            if len(data) > most:
                raise RequestError(413, f"too large, the limit is {most // 2**20} MiB")
            if _bodies.received > MAX_BODIES:
                raise RequestError(503, "too much is being sent; try again in a moment")
    except ClientDisconnect:  # nobody reads the answer
        raise RequestError(400, "the request was cut off") from None
    finally:
        _bodies.received -= len(data)
    return bytes(data)


class _Bodies:
    received = 0  # bytes of unfinished requests


_bodies: Final = _Bodies()


async def gone(request: Request) -> None:
    """Wait until the client has hung up, or has its answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def json_of(request: Request, **known: type) -> dict[str, Any]:
    """The JSON object in the body of a request.

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
    data = await body_of(request, MAX_BODY)
    try:
        given = check(parse_json(data), dict, "the body")
        only(given, known)
        return {
            key: None if given.get(key) is None else check(given[key], kind, key)
            for key, kind in known.items()
        }
    except DataError as error:
        raise RequestError(400, str(error)) from None


def look_of(request: Request) -> views.Look:
    """How boards are to be drawn, from the query.

    Raises:
        RequestError: for an unknown layout or theme.
    """
    look = {}
    for name, known in (("layout", LAYOUTS), ("theme", THEMES)):
        look[name] = request.query_params.get(name, known[0])
        if look[name] not in known:
            raise RequestError(400, f"{name} must be one of {', '.join(known)}")
    return cast(views.Look, look)


def number_of(request: Request, name: str, high: int) -> int:
    """A whole number from the path or the query, 0 to ``high``; 0 where it is missing.

    Raises:
        RequestError: for anything else.
    """
    text = request.path_params.get(name) or request.query_params.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= high):
        raise RequestError(400, f"{name} must be a whole number from 0 to {high}")
    return int(text)


def values_of(request: Request, teams: int) -> list[float] | None:
    """Each team's expected share of the win, from the query; None where it is missing.

    Raises:
        RequestError: for anything but ``teams`` numbers from 0 to 1.
    """
    text = request.query_params.get("values", "")
    if not text:
        return None
    try:
        values = [float(share) for share in text.split(",")]
    except ValueError:
        values = []
    if len(values) != teams or not all(0 <= share <= 1 for share in values):
        raise RequestError(400, f"values must be {teams} numbers from 0 to 1")
    return values
