"""The protocol between a program that plays games and a bot in any language: docs/engine.md.

Each message is a JSON object on a line. The tables of keys here are the protocol: both sides read
messages by them, and the page shows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.state import single
from carolus_env.notation import NotationError, read_move, to_line
from carolus_env.notation.moves import run_text
from carolus_env.system.untrusted import DataError, check, cut, get, integer, parse_json, shown

PROTOCOL: Final = "carolus-engine"
VERSION: Final = 1
LONGEST: Final = 1 << 16
"""Bytes of a line, at most."""


class Key(NamedTuple):
    """A key of a message, with the type of its value; ``object`` stands for int or str."""

    name: str
    kind: type
    meaning: str
    optional: bool = False


GREETING: Final = {"protocol": PROTOCOL, "version": VERSION}
_GREETING: Final = [Key(name, type(value), f"`{value}`") for name, value in GREETING.items()]
MESSAGES: Final = {
    "greeting": _GREETING,
    "its answer": (*_GREETING, Key("name", str, "of the bot")),
    "request": (
        Key("id", int, "its number"),
        Key("position", str, "without the dice to come"),
        Key("player", int, "its seat", True),
        Key("legal", list, "the legal actions", True),
        Key("moves", list, "the same as text, with outcomes", True),
        Key("seconds", float, "time limit", True),
        Key("seed", int, "for random choices", True),
        Key("analyse", bool, "whether values are wanted", True),
    ),
    "answer": (
        Key("id", int, "the same"),
        Key("action", object, "number or text"),
        Key("values", list, "each team's win share", True),
        Key("seed", int, "the one for its next decision", True),
    ),
    "error": (
        Key("id", int, "the same, if it could be read", True),
        Key("error", str, "why there is no answer"),
    ),
}
"""The keys of each message. Unknown keys are ignored, and null is an absent value."""


class ProtocolError(ValueError):
    """A wrong message, or none; the text says what the other side did."""


def line(message: Mapping[str, Any]) -> bytes:
    """Return a message as it is sent."""
    return json.dumps(message).encode() + b"\n"


def quoted(data: bytes) -> str:
    """Quote a received text for an error: shortened, in printable ASCII."""
    return cut(repr(data.decode(errors="replace")))


def read(data: bytes, *expected: str) -> dict[str, Any]:
    """Parse a message as the first expected kind whose keys it has.

    Raises:
        ProtocolError: when it is none, or an error that was not expected.
    """
    try:
        message: dict[str, Any] = check(parse_json(data), dict, "a message")
        message = {name: value for name, value in message.items() if value is not None}
        if "error" in message:
            raise ProtocolError(f"reports an error: {shown(message['error'])}")
        kind = next((kind for kind in expected if MESSAGES[kind][0].name in message), expected[-1])
        values: dict[str, Any] = {}
        for key in MESSAGES[kind]:
            if key.name in message or not key.optional:
                either = key.kind is object  # see `action_of`
                values[key.name] = (
                    message.get(key.name) if either else get(message, key.name, key.kind)
                )
        if "protocol" in values and not values.items() >= GREETING.items():
            raise DataError(f"the protocol must be {PROTOCOL}, version {VERSION}")
        if "seed" in values:
            integer(values, "seed", 0, 2**64 - 1)
    except DataError as error:
        raise ProtocolError(f"sent {quoted(data)}: {error}") from None
    return values


def request(number: int, state: np.void, **more: Any) -> dict[str, Any]:
    """Return the request for a decision in game ``states[i]``, whose generator is not shown.

    Args:
        number: the request's number.
        state: the game.
        more: the values of ``seconds``, ``seed`` and ``analyse``.
    """
    legal = engine.legal_actions(state)
    after = np.repeat(single(state), len(legal))
    engine.step(after, legal, roll=False)
    played = zip(legal.tolist(), after, strict=True)
    return {
        "id": number,
        "position": to_line(state, generator=False),
        "player": int(state["player"]),
        "legal": legal.tolist(),
        "moves": [run_text(state, action, then) for action, then in played],
        **more,
    }


def action_of(answer: Mapping[str, Any], request: Mapping[str, Any], state: np.void) -> int:
    """Return the action number of an answer to a request.

    Raises:
        ProtocolError: when it answers another request, or is no legal action.
    """
    action = answer["action"]
    if answer["id"] != request["id"]:
        raise ProtocolError(f"answered id {answer['id']}, expected {request['id']}")
    if isinstance(action, str):
        try:
            actions = read_move(state, action)
        except NotationError as error:
            raise ProtocolError(f"answered {error}") from None
        action = actions[0] if len(actions) == 1 else action
    if type(action) not in (int, str):
        raise ProtocolError(f"answered action {shown(action)}, no whole number and no text")
    if action not in request["legal"]:
        raise ProtocolError(f"answered action {shown(action)}; legal are {request['legal']}")
    return action


def messages_table() -> str:
    """Return the keys of all messages as a Markdown table (docs/engine.md holds it)."""
    lines = ["| message | keys |", "| --- | --- |"]
    for message, keys in MESSAGES.items():
        cells = [f"`{key.name}{'?' * key.optional}`: {key.meaning}" for key in keys]
        lines.append(f"| {message} | {'; '.join(cells)} |")
    return "\n".join(lines) + "\n"
