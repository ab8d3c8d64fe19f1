"""A position as one line, to be typed back in; docs/notation.md has the grammar.

The fields are separated by ``|``, in the order of `FIELDS`:

    2 | 7 | 0 place 2 | 3 | A2r3b2g1 p1 B1b4y1 ... | R2b1 P3b1 | r3p1+1 r2b4 | 1:1/23 0:3/12

What is read becomes the JSON form and goes through `position.from_dict`, which checks it. Only
what that form cannot express is refused here.

`drawing.text.board_text` draws a position.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    NOBODY,
    OPTIONS,
    PHASE_NAMES,
    PLACE,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import States
from carolus_env.notation.vocabulary import CLAN_LETTERS, TEAM_LETTERS
from carolus_env.records import PositionError
from carolus_env.records.position import from_dict, read_rules, to_dict
from carolus_env.system.options import value_text
from carolus_env.system.untrusted import DataError, shown

_OVER, _PLACING = "over", PHASE_NAMES[PLACE]
_NONE = "-"

# ------------------------------------------------------------------------------------ writing


def to_line(state: np.void, *, generator: bool = True) -> str:
    """Return one game ``states[i]`` as a line; ``generator=False`` leaves out the last field."""
    return " | ".join(map(" ".join, _words(to_dict(state), generator).values()))


def _words(data: dict[str, Any], generator: bool) -> dict[str, list[str]]:
    """Return the words of each field, in the order of `FIELDS`."""
    players = data["rules"]["players"]
    defaults = Rules(players).to_dict()
    rules = [
        f"{name}={value_text(value)}"
        for name, value in data["rules"].items()
        if value != defaults[name]
    ]
    if data["result"]:
        winners = "".join(TEAM_LETTERS[team] for team in data["result"]["winners"])
        turn = [_OVER, data["result"]["reason"], winners or _NONE]
    else:
        rest = [str(data["placements_left"])] if data["phase"] == _PLACING else []
        turn = [str(data["player"]), data["phase"], *rest]
    courts = []
    for seat, court in enumerate(data["courts"]):
        held = [data["control"][clan] == seat for clan in range(CLANS)]
        courts.append(_counts(court, held))
    reserves = []
    for reserve, crowns in zip(data["reserves"], data["crowns"], strict=True):
        plus = f"+{crowns}" if crowns else ""
        reserves.append((_counts(reserve) + plus).removeprefix(_NONE if crowns else ""))
    discs = []
    for seat in data["order"]:
        hand = "".join(map(str, data["discs_in_hand"][seat]))
        discs.append(f"{seat}:{data['discs_played'][seat] or _NONE}/{hand or _NONE}")
    fields = {
        "rules": [str(players), *rules],
        "round": [str(data["round"])],
        "turn": turn,
        "emperor": [str(data["regions"][0]["territories"][0])],
        "regions": [_region(region) for region in data["regions"]],
        "courts": courts,
        "reserves": reserves,
        "discs": discs,
    }
    return {**fields, "generator": [data["generator"]]} if generator else fields


def _region(region: dict[str, Any]) -> str:
    owner = region["owner"]
    castles = "" if owner == NOBODY else f"{TEAM_LETTERS[owner]}{region['castles']}"
    return castles + _counts(region["paladins"])


def _counts(numbers: list[int], held: list[bool] | None = None) -> str:
    """Format counts as ``r3b1``; a clan that is held is in upper case, even with number 0."""
    text = ""
    for clan, number in enumerate(numbers):
        letter = CLAN_LETTERS[clan]
        if held and held[clan]:
            text += f"{letter.upper()}{number}"
        elif number:
            text += f"{letter}{number}"
    return text or _NONE


# ------------------------------------------------------------------------------------ reading


def from_text(text: str, *, seed: int | None = None) -> States:
    """Return the game that `to_line` wrote, or that a person typed, as a batch of one.

    Args:
        text: a position's fields, separated by ``|``.
        seed: seed of a new generator for the dice to come, instead of the text's. With neither, the
            seed is 0.

    Raises:
        PositionError: naming the field that cannot be read and what was expected, or saying why
            no game can reach the position.
    """
    fields = _split(text)
    for field in FIELDS:
        if field.name not in fields and not field.optional:
            raise PositionError(f"position: {field.name} is missing, expected {field.example!r}")
    data: dict[str, Any] = {}
    for field in FIELDS:
        if field.name in fields:
            field.read(data, fields[field.name])
    data["supply"] = _supply(data)
    if seed is None and "generator" not in data:
        seed = 0
    return from_dict(data, seed=seed)


def _split(text: str) -> dict[str, list[str]]:
    """Split the text into the words of each field."""
    parts = text.split("|")
    if len(parts) > len(FIELDS):
        names = ", ".join(field.name for field in FIELDS)
        raise PositionError(f"position: a line has the fields {names}, got {len(parts)} fields")
    return {field.name: part.split() for field, part in zip(FIELDS, parts, strict=False)}


def _read_rules(data: dict[str, Any], words: list[str]) -> None:
    rules: dict[str, Any] = {}
    for k, word in enumerate(words):
        name, _, value = word.partition("=") if k else ("players", "", word)
        if name in rules or not value:
            raise _wrong("rules", word)
        rules[name] = OPTIONS[name].parse(value) if name in OPTIONS else value
    data["rules"] = rules
    if not rules:
        raise _wrong("rules", "")
    try:
        read_rules(rules)  # the fields after it need the number of players
    except DataError as error:
        raise PositionError(f"position: {error}") from None


def _read_round(data: dict[str, Any], words: list[str]) -> None:
    data["round"] = int(_match("round", r"[0-9]{1,10}", words)[0])


def _read_turn(data: dict[str, Any], words: list[str]) -> None:
    over = rf"over ([a-z_]{{1,20}}) ({_NONE}|[A-C]{{1,3}})"
    result = _match("turn", rf"{over}|([0-9]) ([a-z]{{1,20}})(?: ([0-9]))?", words)
    reason, winners, player, phase, remaining = result.groups()
    data["placements_left"] = int(remaining or 0)
    if reason:
        data["phase"], data["player"] = _OVER, None
        teams = [] if winners == _NONE else [TEAM_LETTERS.index(team) for team in winners]
        data["result"] = {"reason": reason, "winners": teams}
    elif phase == _OVER or (remaining is not None) != (phase == _PLACING):
        raise _wrong("turn", " ".join(words))
    else:
        data["phase"], data["player"] = phase, int(player)


def _read_emperor(data: dict[str, Any], words: list[str]) -> None:
    data["emperor"] = int(_match("emperor", r"[0-9]|1[0-4]", words)[0])


def _read_regions(data: dict[str, Any], words: list[str]) -> None:
    territory, data["regions"] = data.pop("emperor"), []
    for word in words:
        result = _match("regions", rf"(?:([A-C])([0-9]{{1,2}}))?({_COUNTS})", [word])
        owner = NOBODY if result[1] is None else TEAM_LETTERS.index(result[1])
        castles = int(result[2] or 0)
        data["regions"].append(
            {
                "territories": [(territory + k) % TERRITORIES for k in range(castles or 1)],
                "paladins": _read_counts("regions", result[3])[0],
                "owner": owner,
                "castles": castles,
            }
        )
        territory += castles or 1


def _read_courts(data: dict[str, Any], words: list[str]) -> None:
    data["courts"], data["control"] = [], [NOBODY] * CLANS
    for seat, word in enumerate(words):
        result = _match("courts", rf"(?i:{_COUNTS})", [word])
        numbers, held = _read_counts("courts", result[0])
        data["courts"].append(numbers)
        for clan in held:
            if data["control"][clan] != NOBODY:
                both = f"players {data['control'][clan]} and {seat}"
                raise PositionError(f"position: in courts, {both} control {CLAN_NAMES[clan]}")
            data["control"][clan] = seat


def _read_reserves(data: dict[str, Any], words: list[str]) -> None:
    data["reserves"], data["crowns"] = [], []
    for word in words:
        result = _match("reserves", rf"({_COUNTS})?(?:\+([0-9]))?", [word])
        data["reserves"].append(_read_counts("reserves", result[1] or _NONE)[0])
        data["crowns"].append(int(result[2] or 0))


def _read_discs(data: dict[str, Any], words: list[str]) -> None:
    players = data["rules"]["players"]
    played, hands = [0] * players, list[list[int]]([[]] * players)
    data["order"] = []
    for word in words:
        result = _match("discs", rf"([0-9]):([1-5]|{_NONE})/([1-5]{{1,5}}|{_NONE})", [word])
        seat = int(result[1])
        data["order"].append(seat)
        if seat < players:
            played[seat] = 0 if result[2] == _NONE else int(result[2])
            hands[seat] = [] if result[3] == _NONE else [int(disc) for disc in result[3]]
    data["discs_played"], data["discs_in_hand"] = played, hands


def _read_generator(data: dict[str, Any], words: list[str]) -> None:
    data["generator"] = " ".join(words)


_COUNTS = rf"(?:[{CLAN_LETTERS}][0-9]{{1,3}})+|{_NONE}"


def _read_counts(name: str, word: str) -> tuple[list[int], list[int]]:
    """Parse the number of each clan, and the clans with an upper-case letter."""
    numbers, held, letters = [0] * CLANS, [], ""
    for letter, number in re.findall(r"([a-zA-Z])([0-9]+)", word):
        clan = CLAN_LETTERS.index(letter.lower())
        if letter.lower() in letters:
            raise PositionError(f"position: {name} give {CLAN_NAMES[clan]} twice in {shown(word)}")
        letters += letter.lower()
        numbers[clan] = int(number)
        if letter.isupper():
            held.append(clan)
    return numbers, held


def _supply(data: dict[str, Any]) -> list[int]:
    """Return the paladins that are not elsewhere."""
    used = [region["paladins"] for region in data["regions"]] + data["courts"] + data["reserves"]
    total = Rules.from_dict(data["rules"]).paladins_per_clan
    return [total - sum(row[clan] for row in used) for clan in range(CLANS)]


class Field(NamedTuple):
    """A field of a position; ``docs/notation.md`` has the table."""

    name: str
    example: str
    meaning: str
    read: Callable[[dict[str, Any], list[str]], None]
    optional: bool = False


FIELDS: Final = (
    Field(
        "rules",
        "2 crown_choice=deferred",
        "players, then the options that are not the default",
        _read_rules,
    ),
    Field("round", "7", "rounds begun; 0 during the set-up", _read_round),
    Field(
        "turn",
        "0 place 2",
        "seat and phase; in phase place also the paladins left to play; for a game that is over, "
        "the reason and the winners: `over castles A`, `over regions AB`, `over max_rounds -`",
        _read_turn,
    ),
    Field("emperor", "3", "first territory of the Emperor's region", _read_emperor),
    Field(
        "regions",
        "A2r3b2g1 p1 B1b4y1",
        "clockwise from that one: owner and castles, one for each territory, then paladins; a "
        "region without an owner is one territory",
        _read_regions,
    ),
    Field(
        "courts",
        "R2b1 P3b1",
        "of each seat; an upper-case letter: the seat controls the clan; `-`: empty",
        _read_courts,
    ),
    Field(
        "reserves",
        "r3p1+2 r2b4",
        "of each seat; `+2`: two crowns not decided yet",
        _read_reserves,
    ),
    Field(
        "discs",
        "1:1/23 0:3/12",
        "seats in playing order, each with the disc played and those in hand; `-`: none",
        _read_discs,
    ),
    Field(
        "generator",
        "0123456789abcdef",
        "the dice to come; may be left out",
        _read_generator,
        True,
    ),
)


def _match(name: str, pattern: str, words: list[str]) -> re.Match[str]:
    text = " ".join(words)
    if result := re.fullmatch(pattern, text):
        return result
    raise _wrong(name, text)


def _wrong(name: str, got: str) -> PositionError:
    example = next(field.example for field in FIELDS if field.name == name)
    return PositionError(f"position: {name} must be such as {example!r}, got {shown(got)}")
