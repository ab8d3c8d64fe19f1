"""Requests as the page sends them, read and checked, and their answers."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from carolus_env.drawing.board import LAYOUTS
from carolus_env.records import record_line
from carolus_env.system.untrusted import DataError, check, only, parse_json

MAX_BODY: Final = 16 * 2**20
"""Maximum number of bytes of a request."""
LONGEST_REASON: Final = 1000
"""Maximum length of an error."""


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
