"""A position as one line, to be typed back in; docs/notation.md has the grammar.

The fields are separated by ``|``, in the order of `FIELDS`. What is read becomes the JSON form and
goes through `position.from_dict`, which checks it: only what it cannot express is refused here.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.rules import CLAN_NAMES, CLANS, NOBODY, OPTIONS, TERRITORIES, Rules
from carolus_env.engine.state import States
from carolus_env.records.position import PositionError, from_dict, read_rules, to_dict
from carolus_env.system.options import instance, value_text
from carolus_env.system.untrusted import DataError, shown

CLAN_LETTERS: Final = "rpbyg"  # red, pink, blue, yellow, green
TEAM_LETTERS: Final = "ABC"
_OVER, _PLACING, _NONE = "over", "place", "-"


class Field(NamedTuple):
    """A field of a position; ``docs/notation.md`` has the table."""

    name: str
    example: str
    meaning: str


FIELDS: Final = (
    Field("rules", "2 crown_choice=deferred", "players, then the options that are not the default"),
    Field("round", "7", "rounds begun; 0 during the set-up"),
    Field(
        "turn",
        "0 place 2",
        "seat and phase; in phase place also the paladins left to play; for a game that is over, "
        "the reason and the winners: `over castles A`, `over regions AB`, `over max_rounds -`",
    ),
    Field("emperor", "3", "first territory of the Emperor's region"),
    Field(
        "regions",
        "A2r3b2g1 p1 B1b4y1",
        "clockwise from that one: owner and castles, one for each territory, then paladins; a "
        "region without an owner is one territory",
    ),
    Field(
        "courts",
        "R2b1 P3b1",
        "of each seat; an upper-case letter: the seat controls the clan; `-`: empty",
    ),
    Field("reserves", "r3p1+2 r2b4", "of each seat; `+2`: two crowns not decided yet"),
    Field(
        "discs",
        "1:1/23 0:3/12",
        "seats in playing order, each with the disc played and those in hand; `-`: none",
    ),
    Field("generator", "0123456789abcdef", "the dice to come; may be left out"),
)

# ------------------------------------------------------------------------------------ writing


def to_line(state: np.void, *, generator: bool = True) -> str:
    """Return one game ``states[i]`` as a line; ``generator=False`` leaves out the last field."""
    data = to_dict(state)
    players = data["rules"]["players"]
    rules, defaults = [str(players)], Rules(players).to_dict()
    for name, value in data["rules"].items():
        if value != defaults[name]:
            rules.append(f"{name}={value_text(value)}")
    if data["result"]:
        winners = "".join(TEAM_LETTERS[team] for team in data["result"]["winners"])
        turn = f"{_OVER} {data['result']['reason']} {winners or _NONE}"
    else:
        turn = f"{data['player']} {data['phase']}"
        turn += f" {data['placements_left']}" if data["phase"] == _PLACING else ""
    regions, courts, reserves, discs = [], [], [], []
    for region in data["regions"]:
        owner = region["owner"]
        castles = "" if owner == NOBODY else f"{TEAM_LETTERS[owner]}{region['castles']}"
        regions.append(castles + _counts(region["paladins"]))
    for seat, crowns in enumerate(data["crowns"]):
        courts.append(_counts(data["courts"][seat], [held == seat for held in data["control"]]))
        reserve = _counts(data["reserves"][seat])
        reserves.append(f"{reserve.removeprefix(_NONE)}+{crowns}" if crowns else reserve)
    for seat in data["order"]:
        hand = "".join(map(str, data["discs_in_hand"][seat]))
        discs.append(f"{seat}:{data['discs_played'][seat] or _NONE}/{hand or _NONE}")
    emperor = str(data["regions"][0]["territories"][0])
    lists = (" ".join(words) for words in (regions, courts, reserves, discs))
    fields = [" ".join(rules), str(data["round"]), turn, emperor, *lists]
    return " | ".join([*fields, data["generator"]] if generator else fields)


def _counts(numbers: list[int], held: list[bool] | None = None) -> str:
    """Format counts as ``r3b1``; a clan that is held is in upper case, even with number 0."""
    text = ""
    for letter, number, own in zip(CLAN_LETTERS, numbers, held or [False] * CLANS, strict=True):
        if own or number:
            text += f"{letter.upper() if own else letter}{number}"
    return text or _NONE


# ------------------------------------------------------------------------------------ reading


def from_text(text: str, *, seed: int | None = None) -> States:
    """Return the game that `to_line` wrote, or that a person typed, as a batch of one.

    ``seed`` is that of a new generator for the dice to come, instead of the text's; with neither,
    it is 0. A `PositionError` names the field that cannot be read and what was expected, or says
    why no game can reach the position.
    """
    parts = [" ".join(part.split()) for part in instance("text", text, str, "a text").split("|")]
    if len(parts) > len(FIELDS):
        names = ", ".join(field.name for field in FIELDS)
        raise PositionError(f"position: a line has the fields {names}, got {len(parts)} fields")
    for field in FIELDS[len(parts) : -1]:
        raise PositionError(f"position: {field.name} is missing, expected {field.example!r}")
    given = dict(zip((field.name for field in FIELDS), parts, strict=False))
    rules = _read_rules(given["rules"])
    data: dict[str, Any] = {"rules": rules.to_dict()}
    data["round"] = int(_match("round", r"[0-9]{1,10}", given["round"])[0])
    _read_turn(data, given["turn"])
    first = int(_match("emperor", r"[0-9]|1[0-4]", given["emperor"])[0])
    _read_regions(data, first, given["regions"].split())
    _read_seats(data, {name: given[name].split() for name in ("courts", "reserves", "discs")})
    used = [region["paladins"] for region in data["regions"]] + data["courts"] + data["reserves"]
    data["supply"] = [rules.paladins_per_clan - sum(clan) for clan in zip(*used, strict=True)]
    if "generator" in given:
        data["generator"] = given["generator"]
    return from_dict(data, seed=seed)


def _read_rules(text: str) -> Rules:
    rules: dict[str, Any] = {}
    for k, word in enumerate(text.split()):
        name, _, value = word.partition("=") if k else ("players", "", word)
        if name in rules or not value:
            raise _wrong("rules", word)
        rules[name] = OPTIONS[name].parse(value) if name in OPTIONS else value
    if not rules:
        raise _wrong("rules", "")
    try:
        return read_rules(rules)
    except DataError as error:
        raise PositionError(f"position: {error}") from None


def _read_turn(data: dict[str, Any], text: str) -> None:
    over = rf"over ([a-z_]{{1,20}}) ({_NONE}|[A-C]{{1,3}})"
    result = _match("turn", rf"{over}|([0-9]) ([a-z]{{1,20}})(?: ([0-9]))?", text)
    reason, winners, player, phase, remaining = result.groups()
    data["placements_left"] = int(remaining or 0)
    if reason:
        teams = [] if winners == _NONE else [TEAM_LETTERS.index(team) for team in winners]
        data |= {"phase": _OVER, "result": {"reason": reason, "winners": teams}}
    elif phase == _OVER or (remaining is not None) != (phase == _PLACING):
        raise _wrong("turn", text)
    else:
        data |= {"phase": phase, "player": int(player)}


def _read_regions(data: dict[str, Any], territory: int, words: list[str]) -> None:
    data["regions"] = []
    for word in words:
        result = _match("regions", rf"(?:([A-C])([0-9]{{1,2}}))?({_COUNTS})", word)
        castles = int(result[2] or 0)
        data["regions"].append(
            {
                "territories": [(territory + k) % TERRITORIES for k in range(castles or 1)],
                "paladins": _read_counts("regions", result[3])[0],
                "owner": NOBODY if result[1] is None else TEAM_LETTERS.index(result[1]),
                "castles": castles,
            }
        )
        territory += castles or 1


def _read_seats(data: dict[str, Any], words: dict[str, list[str]]) -> None:
    players = data["rules"]["players"]
    data |= {"courts": [], "control": [NOBODY] * CLANS, "reserves": [], "crowns": [], "order": []}
    for seat, word in enumerate(words["courts"]):
        numbers, held = _read_counts("courts", _match("courts", rf"(?i:{_COUNTS})", word)[0])
        data["courts"].append(numbers)
        for clan in held:
            if data["control"][clan] != NOBODY:
                both = f"players {data['control'][clan]} and {seat}"
                raise PositionError(f"position: in courts, {both} control {CLAN_NAMES[clan]}")
            data["control"][clan] = seat
    for word in words["reserves"]:
        result = _match("reserves", rf"({_COUNTS})?(?:\+([0-9]))?", word)
        data["reserves"].append(_read_counts("reserves", result[1] or _NONE)[0])
        data["crowns"].append(int(result[2] or 0))
    data["discs_played"], data["discs_in_hand"] = [0] * players, [[] for _ in range(players)]
    for word in words["discs"]:
        result = _match("discs", rf"([0-9]):([1-5]|{_NONE})/([1-5]{{1,5}}|{_NONE})", word)
        seat = int(result[1])
        data["order"].append(seat)
        if seat < players:
            data["discs_played"][seat] = int(result[2].replace(_NONE, "0"))
            data["discs_in_hand"][seat] = [int(disc) for disc in result[3].replace(_NONE, "")]


_COUNTS = rf"(?:[{CLAN_LETTERS}][0-9]{{1,3}})+|{_NONE}"


def _read_counts(name: str, word: str) -> tuple[list[int], list[int]]:
    """Parse the number of each clan, and the clans with an upper-case letter."""
    numbers: list[int | None] = [None] * CLANS
    held = []
    for letter, number in re.findall(r"([a-zA-Z])([0-9]+)", word):
        clan = CLAN_LETTERS.index(letter.lower())
        if numbers[clan] is not None:
            raise PositionError(f"position: {name} give {CLAN_NAMES[clan]} twice in {shown(word)}")
        numbers[clan] = int(number)
        if letter.isupper():
            held.append(clan)
    return [number or 0 for number in numbers], held


def _match(name: str, pattern: str, text: str) -> re.Match[str]:
    if result := re.fullmatch(pattern, text):
        return result
    raise _wrong(name, text)


def _wrong(name: str, got: str) -> PositionError:
    example = next(field.example for field in FIELDS if field.name == name)
    return PositionError(f"position: {name} must be such as {example!r}, got {shown(got)}")
