"""The shape of a game record: checked key by key before anything is played.

Records are untrusted data; `carolus_env.system.untrusted` has the threat model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.rules import CLANS, PALADINS_LAID_OUT, Rules
from carolus_env.system.untrusted import (
    DataError,
    check,
    cut,
    expect,
    get,
    integer,
    integers,
    is_a,
    only,
    shown,
)

FORMAT: Final = "carolus-record"
VERSION: Final = 1

RESULT_KEYS: Final = ("reason", "winners", "castles", "regions", "rounds", "returns")
ROLL_KEYS: Final = ("roll", "player")
ACTION_KEYS: Final = ("action", "player", "legal", "state")

Record = dict[str, Any]
"""A game record: the object that a line of JSON holds (docs/formats.md)."""


class RecordError(ValueError):
    """A file or an object that is not a game record.

    Attributes:
        reason: a description of what is wrong, and where in the record.
        path: the file; None for an object that was not read from one.
        line: line number, counted from 1; None likewise.
    """

    def __init__(self, reason: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(reason if path is None else f"{path}, line {line}: {reason}")
        self.reason, self.path, self.line = reason, path, line


class Setup(NamedTuple):
    """Start of a record's game."""

    rules: Rules
    territories: list[int]
    first_player: int


def check_record(record: object) -> None:
    """Refuse what does not have the shape of a record.

    Unknown keys are accepted at the top only (the players' names, say): in an event one could be
    a misspelt ``legal``, which would then not be compared. Whether the rules allow the game is
    for `carolus_env.replay` to say.

    Raises:
        RecordError: naming the first thing wrong and the index of its event.
    """
    try:
        data = check(record, dict, "a game record")
        expect(data, format=FORMAT, version=VERSION)
        _setup(data)
        for index, event in enumerate(get(data, "events", list)):
            try:
                _check_event(event)
            except DataError as error:
                raise DataError(f"event {index}: {error}") from None
        if "result" not in data or data["result"] is not None:
            _check_result(get(data, "result", dict))
    except DataError as error:
        raise RecordError(str(error)) from None


def read_setup(record: Record) -> Setup:
    """Read the rules and the set-up of a record; its events are ignored.

    Raises:
        RecordError: when there are none.
    """
    try:
        return _setup(record)
    except DataError as error:
        raise RecordError(str(error)) from None


def read_rules(options: Mapping[str, Any]) -> Rules:
    """Make `Rules` of untrusted options.

    Raises:
        DataError: for an unknown key or an impossible value.
    """
    for key, value in options.items():
        if not (value is None or isinstance(value, str | int | float | np.integer)):
            raise DataError(
                f"rules: {shown(key)} must be a number, a string or null, got {shown(value)}"
            )
    try:
        return Rules.from_dict(options)
    except ValueError as error:
        raise DataError(cut(str(error))) from None


def _setup(record: Record) -> Setup:
    rules = read_rules(get(record, "rules", dict))
    setup = get(record, "setup", dict)
    only(setup, ("territories", "first_player"), "setup")
    territories = integers(setup, "territories", "setup")
    if sorted(territories) != [clan for clan in range(CLANS) for _ in range(PALADINS_LAID_OUT)]:
        raise DataError(
            f"setup.territories must hold each clan 0 to {CLANS - 1} exactly "
            f"{PALADINS_LAID_OUT} times, got {shown(territories)}"
        )
    return Setup(rules, territories, integer(setup, "first_player", 0, rules.players - 1, "setup"))


def _check_event(event: object) -> None:
    if not isinstance(event, dict) or ("roll" in event) == ("action" in event):
        raise DataError(f"an event is an object with either 'roll' or 'action', got {shown(event)}")
    get(event, "player", int)
    if "roll" in event:
        only(event, ROLL_KEYS)
        integers(event, "roll")
        return
    only(event, ACTION_KEYS)
    get(event, "action", int)
    if "legal" in event:
        integers(event, "legal")
    if "state" in event:
        get(event, "state", dict)


def _check_result(result: Record) -> None:
    only(result, RESULT_KEYS, "result")
    get(result, "reason", str, "result")
    for key in ("winners", "castles"):
        integers(result, key, "result")
    for key in ("regions", "rounds"):
        get(result, key, int, "result")
    for value in get(result, "returns", list, "result"):
        if not is_a(value, float):
            raise DataError(f"result.returns must hold numbers, got {shown(value)}")
