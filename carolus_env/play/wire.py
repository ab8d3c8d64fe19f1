"""What comes over the wire, checked, and what goes back: JSON, and for errors a sentence."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from carolus_env.drawing.board import LAYOUTS
from carolus_env.drawing.style import THEMES
from carolus_env.play import views

MAX_BODY: Final = 4 * 2**20


class RequestError(Exception):
    """A request that is not granted: the status and a sentence, and more where that helps."""

    def __init__(self, status: int, reason: str, **more: Any) -> None:
        super().__init__(reason)
        self.status, self.reason, self.more = status, reason, more


class Answer(JSONResponse):
    """JSON in ASCII: halves of characters, which JSON may name, have no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


async def body_of(request: Request, most: int) -> bytes:
    """What a request carries.

    Raises:
        RequestError: when it is too much, or breaks off.
    """
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise RequestError(413, f"too large: at most {most // 2**20} MiB are taken")
    except ClientDisconnect:  # nobody reads the answer
        raise RequestError(400, "the request broke off") from None
    return bytes(data)


async def json_of(request: Request, **known: type) -> dict[str, Any]:
    """The JSON object that a request carries, with such keys; what is missing is None.

    Raises:
        RequestError: when it is something else.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RequestError(415, "the body must be application/json")
    data = await body_of(request, MAX_BODY)
    try:
        given = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(given, dict):
        raise RequestError(400, "the body must be a JSON object")
    for key, value in given.items():
        if key not in known:
            raise RequestError(400, f"unknown key {key[:50]!r}, known are {', '.join(known)}")
        wrong = isinstance(value, bool) and known[key] is int
        if value is not None and (wrong or not isinstance(value, known[key])):
            raise RequestError(400, f"{key} is of the wrong type")
    return {key: given.get(key) for key in known}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def look_of(request: Request) -> views.Look:
    """How boards are to be drawn.

    Raises:
        RequestError: when a board cannot be drawn like that.
    """
    look = {}
    for name, known in (("layout", LAYOUTS), ("theme", THEMES)):
        look[name] = request.query_params.get(name, known[0])
        if look[name] not in known:
            raise RequestError(400, f"{name} must be one of {', '.join(known)}")
    return cast(views.Look, look)


def number_of(request: Request, name: str, high: int) -> int:
    """A number of the path or the query, 0 to ``high``."""
    text = request.path_params.get(name) or request.query_params.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= high):
        raise RequestError(400, f"{name} must be a whole number from 0 to {high}")
    return int(text)


def values_of(request: Request, teams: int) -> list[float] | None:
    """Each team's share of the win, which the page knows from an agent and wants drawn."""
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
