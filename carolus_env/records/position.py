"""A game as JSON, and any position as a game.

`to_dict` gives the ``state`` object of a game record (docs/formats.md), and what else restoring a
game needs. `from_dict` reads it back to the same bytes, or refuses it with a `PositionError` that
says why: positions are untrusted data (`carolus_env.system.untrusted` has the threat model).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from carolus_env.engine import new_games, rules_of
from carolus_env.engine.rules import (
    CLANS,
    DISCS,
    MAX_PLAYERS,
    MAX_TEAMS,
    NOBODY,
    OVER,
    PHASE_NAMES,
    REASON_NAMES,
    ROLL,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import FIELDS, States, winning_teams
from carolus_env.engine.streams import seed_generators
from carolus_env.records.validity import PositionError, check_positions
from carolus_env.system import untrusted
from carolus_env.system.untrusted import DataError, get, integer, integers, one_of, shown, table

STATE_KEYS: Final = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "castles", "placements_left",
)  # fmt: skip
"""The keys of `to_dict` that all implementations share: a record's ``state``."""
_NUMBERS: Final = (
    "round", "courts", "control", "reserves", "crowns", "supply", "discs_played", "castles",
    "placements_left", "order", "dice_due",
)  # fmt: skip
"""The keys whose values are those of a field of the state, less unused seats and teams."""
_FIELDS: Final = {field.name: field for field in FIELDS}


def _shape(key: str, rules: Rules) -> tuple[int, ...]:
    used = {MAX_PLAYERS: rules.players, MAX_TEAMS: rules.teams}
    return tuple(used.get(size, size) for size in _FIELDS[key].shape)


# ------------------------------------------------------------------------------------ writing


def to_dict(state: np.void) -> dict[str, Any]:
    """Return one game (``states[i]``) as a JSON-ready dict that begins like a record's ``state``.

    ``player`` is None when the game is over; ``result`` is None before.
    """
    rules = rules_of(state)
    count, over = int(state["regions"]), state["phase"] == OVER
    firsts = state["region_first"].astype(int)
    regions = []
    for i in ((state["emperor"] + k) % count for k in range(count)):
        size = (firsts[(i + 1) % count] - firsts[i]) % TERRITORIES
        regions.append(
            {
                "territories": [int(firsts[i] + k) % TERRITORIES for k in range(size)],
                "paladins": state["region_paladins"][:, i].tolist(),
                "owner": int(state["region_owner"][i]),
                "castles": int(state["region_castles"][i]),
            }
        )
    data = {key: state[key][tuple(map(slice, _shape(key, rules)))].tolist() for key in _NUMBERS}
    data |= {
        "phase": PHASE_NAMES[state["phase"]],
        "player": None if over else int(state["player"]),
        "regions": regions,
        "discs_in_hand": [
            [disc for disc in range(1, DISCS + 1) if int(bits) >> (disc - 1) & 1]
            for bits in state["discs_in_hand"][: rules.players]
        ],
    }
    return {
        **{key: data[key] for key in STATE_KEYS},
        "rules": rules.to_dict(),
        "order": data["order"],
        "dice_due": data["dice_due"],
        "result": {"reason": REASON_NAMES[state["reason"]], "winners": winning_teams(state)}
        if over
        else None,
        "generator": f"{int(state['generator']):016x}",
    }


# ------------------------------------------------------------------------------------ reading


def from_dict(data: Mapping[str, Any], *, seed: int | None = None) -> States:
    """Set up any position that a game can reach; a batch of one game, ``(1,)`` of dtype `STATE`.

    Args:
        data: a dict of `to_dict`. ``castles``, ``dice_due``, ``generator`` and, unless the game
            is over, ``result`` may be missing; so may ``order`` where the discs played decide it.
        seed: of a new generator for the dice to come, instead of the position's.

    Raises:
        PositionError: naming what is missing or impossible.
    """
    try:
        states = _read(untrusted.check(data, dict, "it"), seed)
    except DataError as error:
        raise PositionError(f"position: {error}") from None
    check_positions(states)
    return states


def _read(data: Mapping[str, Any], seed: int | None) -> States:
    rules = read_rules(get(data, "rules", dict))
    states = new_games(rules, 1, seed=seed or 0, first_player=0, roll=False)
    s = states[0]
    s["phase"] = PHASE_NAMES.index(one_of(data, "phase", PHASE_NAMES))
    for key in _NUMBERS:
        if key not in ("castles", "order", "dice_due"):  # which the rest may decide
            _read_field(s, data, key, rules)
    _read_hands(s, data, rules.players)
    _read_regions(s, data, rules)
    _read_turn(s, data, rules)
    if seed is not None:
        s["generator"] = seed_generators(seed, 1)[0]
    elif "generator" in data:
        value: str = get(data, "generator", str)
        if not re.fullmatch("[0-9a-fA-F]{16}", value):
            raise DataError(f"generator must be 16 hexadecimal digits, got {shown(value)}")
        s["generator"] = int(value, 16)
    if s["phase"] == OVER:
        _read_end(s, data, rules)
    elif data.get("result") is not None:
        raise DataError(f"result must be null in phase {data['phase']}")
    for key in [key for key in ("castles", "dice_due") if key in data]:
        computed = s[key].tolist()
        _read_field(s, data, key, rules)
        if s[key].tolist() != computed:
            raise DataError(
                f"{key} is {data[key]}, but the rest of the position implies "
                f"{computed[: rules.teams] if key == 'castles' else computed}"
            )
    return states


def _read_field(s: np.void, data: Mapping[str, Any], key: str, rules: Rules) -> None:
    """Read the values of a field, within the limits of `FIELDS`."""
    field, shape = _FIELDS[key], _shape(key, rules)
    low, high = field.low, rules.players - 1 if key in ("control", "order") else field.high
    if shape:
        s[key][tuple(map(slice, shape))] = table(data, key, shape, low, high)
    else:
        s[key] = integer(data, key, low, high)


def read_rules(options: Mapping[str, Any]) -> Rules:
    """Make `Rules` of untrusted options."""
    for key, value in options.items():
        if not (value is None or isinstance(value, str | int | float | np.integer)):
            raise DataError(
                f"rules: {shown(key)} must be a number, a string or null, got {shown(value)}"
            )
    try:
        return Rules.from_dict(options)
    except ValueError as error:
        raise DataError(untrusted.cut(str(error))) from None


def _read_hands(s: np.void, data: Mapping[str, Any], players: int) -> None:
    hands = get(data, "discs_in_hand", list)
    if len(hands) != players:
        raise DataError(f"discs_in_hand must list {players} hands, got {shown(hands)}")
    for seat, hand in enumerate(hands):
        numbers = isinstance(hand, list) and all(type(disc) is int for disc in hand)
        if not numbers or not set(hand) <= set(range(1, DISCS + 1)) or len(set(hand)) < len(hand):
            raise DataError(
                f"discs_in_hand[{seat}] must hold different discs 1 to {DISCS}, got {shown(hand)}"
            )
        s["discs_in_hand"][seat] = sum(1 << (disc - 1) for disc in hand)


def _read_regions(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    regions = get(data, "regions", list)
    if not 2 <= len(regions) <= TERRITORIES:
        raise DataError(f"there must be 2 to {TERRITORIES} regions, got {len(regions)}")
    circle, rows = [], []
    for i, region in enumerate(regions):
        where = f"regions[{i}]"
        untrusted.check(region, dict, where)
        territories = integers(region, "territories", where)
        if not territories:
            raise DataError(f"{where}.territories must not be empty")
        circle += territories
        owner = integer(region, "owner", NOBODY, rules.teams - 1, where)
        castles = integer(region, "castles", 0, TERRITORIES, where)
        rows.append(
            (territories[0], owner, castles, table(region, "paladins", (CLANS,), 0, 200, where))
        )
    clockwise = [(circle[0] + k) % TERRITORIES for k in range(TERRITORIES)]
    if not 0 <= circle[0] < TERRITORIES or circle != clockwise:
        raise DataError(
            f"the regions' territories must be 0 to {TERRITORIES - 1}, each once, clockwise from "
            f"the Emperor's region, got {shown(circle)}"
        )
    ordered = sorted(rows, key=lambda row: row[0])
    s["regions"], s["emperor"] = len(rows), ordered.index(rows[0])
    for name in ("region_first", "region_owner", "region_castles", "region_paladins", "castles"):
        s[name] = 0
    for i, (first, owner, castles, paladins) in enumerate(ordered):
        s["region_first"][i], s["region_owner"][i], s["region_castles"][i] = first, owner, castles
        s["region_paladins"][:, i] = paladins
        if owner != NOBODY:
            s["castles"][owner] += castles


def _read_turn(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    players = rules.players
    if "order" in data:
        _read_field(s, data, "order", rules)
        order = s["order"][:players].tolist()
        if sorted(order) != list(range(players)):
            raise DataError(f"order must hold every seat once, got {order}")
    else:
        discs = s["discs_played"][:players].tolist()
        if 0 in discs or len(set(discs)) < players:
            raise DataError(f"order is missing, and the discs played, {discs}, do not decide it")
        order = s["order"][:players] = sorted(range(players), key=discs.__getitem__)
    s["player"] = s["turn"] = s["dice_due"] = 0
    if s["phase"] != OVER:
        s["player"] = integer(data, "player", 0, players - 1)
        s["turn"] = order.index(s["player"])
    if s["phase"] == ROLL:
        s["dice_due"] = rules.reserve if s["round"] == 0 else rules.dice


def _read_end(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    end = get(data, "result", dict)
    s["reason"] = REASON_NAMES.index(one_of(end, "reason", REASON_NAMES[1:], "result"))
    winners = integers(end, "winners", "result")
    if not set(winners) <= set(range(rules.teams)):
        raise DataError(
            f"result.winners must be teams 0 to {rules.teams - 1}, got {shown(winners)}"
        )
    s["winners"] = sum(1 << team for team in set(winners))
