"""A game as JSON, and any position as a game.

`to_dict` gives the ``state`` object of a game record (docs/formats.md), and what else restoring a
game needs: rules, playing order, a roll that is due, the result, the generator. `from_dict`
reads it back to the same bytes, or refuses it with a `PositionError` that says why.

Positions are untrusted data; `carolus_env.system.untrusted` has the threat model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from carolus_env.engine import new_games, rules_of
from carolus_env.engine.rules import (
    CLANS,
    DISCS,
    NOBODY,
    OVER,
    PHASE_NAMES,
    REASON_NAMES,
    ROLL,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import States, winning_teams
from carolus_env.engine.streams import seed_generators
from carolus_env.records.validity import PositionError, check_positions
from carolus_env.system import untrusted
from carolus_env.system.untrusted import (
    DataError,
    cut,
    get,
    integer,
    integers,
    one_of,
    shown,
    table,
)

# ------------------------------------------------------------------------------------ writing


def to_dict(state: np.void) -> dict[str, Any]:
    """Return one game (``states[i]``) as a JSON-ready dict that begins like a record's ``state``.

    ``player`` is None when the game is over; ``result`` is None before.
    """
    rules = rules_of(state)
    players, count = rules.players, int(state["regions"])
    emperor, over = int(state["emperor"]), int(state["phase"]) == OVER
    firsts = state["region_first"].astype(int)
    regions = []
    for i in ((emperor + k) % count for k in range(count)):
        size = int(firsts[(i + 1) % count] - firsts[i]) % TERRITORIES
        regions.append(
            {
                "territories": [int(firsts[i] + k) % TERRITORIES for k in range(size)],
                "paladins": state["region_paladins"][:, i].tolist(),
                "owner": int(state["region_owner"][i]),
                "castles": int(state["region_castles"][i]),
            }
        )
    return {
        "round": int(state["round"]),
        "phase": PHASE_NAMES[int(state["phase"])],
        "player": None if over else int(state["player"]),
        "regions": regions,
        "courts": state["courts"][:players].tolist(),
        "control": state["control"].tolist(),
        "reserves": state["reserves"][:players].tolist(),
        "crowns": state["crowns"][:players].tolist(),
        "supply": state["supply"].tolist(),
        "discs_in_hand": [
            [disc for disc in range(1, DISCS + 1) if int(bits) >> (disc - 1) & 1]
            for bits in state["discs_in_hand"][:players]
        ],
        "discs_played": state["discs_played"][:players].tolist(),
        "castles": state["castles"][: rules.teams].tolist(),
        "placements_left": int(state["placements_left"]),
        "rules": rules.to_dict(),
        "order": state["order"][:players].tolist(),
        "dice_due": int(state["dice_due"]),
        "result": _end(state) if over else None,
        "generator": f"{int(state['generator']):016x}",
    }


def _end(state: np.void) -> dict[str, Any]:
    return {
        "reason": REASON_NAMES[int(state["reason"])],
        "winners": winning_teams(state),
    }


# ------------------------------------------------------------------------------------ reading


def from_dict(data: Mapping[str, Any], *, seed: int | None = None) -> States:
    """Set up any position that a game can reach.

    Args:
        data: a dict of `to_dict`. ``castles``, ``dice_due``, ``generator`` and, unless the game
            is over, ``result`` may be missing; so may ``order`` where the discs played decide it.
        seed: seed of a new generator for the dice to come, instead of the position's.

    Returns:
        A batch of one game, ``(1,)`` of dtype `STATE`.

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
    players = rules.players
    states = new_games(rules, 1, seed=seed or 0, first_player=0, roll=False)
    s = states[0]
    s["round"] = integer(data, "round", 0, 2**32 - 1)
    s["phase"] = PHASE_NAMES.index(one_of(data, "phase", PHASE_NAMES))
    s["courts"][:players] = table(data, "courts", (players, CLANS), 0, 197)
    s["control"] = table(data, "control", (CLANS,), NOBODY, players - 1)
    s["reserves"][:players] = table(data, "reserves", (players, CLANS), 0, 9)
    s["crowns"][:players] = table(data, "crowns", (players,), 0, 9)
    s["supply"] = table(data, "supply", (CLANS,), 0, 197)
    s["discs_played"][:players] = table(data, "discs_played", (players,), 0, DISCS)
    s["placements_left"] = integer(data, "placements_left", 0, 4)
    _read_hands(s, data, players)
    _read_regions(s, data, rules)
    _read_turn(s, data, rules)
    if seed is not None:
        s["generator"] = seed_generators(seed, 1)[0]
    elif "generator" in data:
        s["generator"] = _generator(data)
    if s["phase"] == OVER:
        _read_end(s, data, rules)
    elif data.get("result") is not None:
        raise DataError(f"result must be null in phase {data['phase']}")
    if "castles" in data:
        castles = table(data, "castles", (rules.teams,), 0, TERRITORIES)
        _expect_same("castles", castles.tolist(), s["castles"][: rules.teams].tolist())
    if "dice_due" in data:
        _expect_same("dice_due", integer(data, "dice_due", 0, 9), int(s["dice_due"]))
    return states


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
        raise DataError(cut(str(error))) from None


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
        rows.append(
            (
                territories[0],
                integer(region, "owner", NOBODY, rules.teams - 1, where),
                integer(region, "castles", 0, TERRITORIES, where),
                table(region, "paladins", (CLANS,), 0, 200, where),
            )
        )
    if not 0 <= circle[0] < TERRITORIES or circle != [
        (circle[0] + k) % TERRITORIES for k in range(TERRITORIES)
    ]:
        raise DataError(
            f"the regions' territories must be 0 to {TERRITORIES - 1}, each once, clockwise from "
            f"the Emperor's region, got {shown(circle)}"
        )
    for name in ("region_first", "region_owner", "region_castles", "region_paladins"):
        s[name] = 0
    s["regions"] = len(rows)
    ordered = sorted(rows, key=lambda row: row[0])
    s["emperor"] = ordered.index(rows[0])
    s["castles"] = 0
    for i, (first, owner, castles, paladins) in enumerate(ordered):
        s["region_first"][i] = first
        s["region_owner"][i] = owner
        s["region_castles"][i] = castles
        s["region_paladins"][:, i] = paladins
        if owner != NOBODY:
            s["castles"][owner] += castles


def _read_turn(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    players = rules.players
    if "order" in data:
        order = table(data, "order", (players,), 0, players - 1).tolist()
        if sorted(order) != list(range(players)):
            raise DataError(f"order must hold every seat once, got {order}")
    else:
        discs = s["discs_played"][:players].tolist()
        if 0 in discs or len(set(discs)) < players:
            raise DataError(f"order is missing, and the discs played, {discs}, do not decide it")
        order = sorted(range(players), key=discs.__getitem__)
    s["order"][:players] = order
    s["dice_due"] = 0
    if s["phase"] == OVER:
        s["player"] = s["turn"] = 0
        return
    s["player"] = integer(data, "player", 0, players - 1)
    s["turn"] = order.index(int(s["player"]))
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


def _generator(data: Mapping[str, Any]) -> int:
    value: str = get(data, "generator", str)
    if not re.fullmatch("[0-9a-fA-F]{16}", value):
        raise DataError(f"generator must be 16 hexadecimal digits, got {shown(value)}")
    return int(value, 16)


def _expect_same(key: str, stated: Any, computed: Any) -> None:
    if stated != computed:
        raise DataError(f"{key} is {stated}, but the rest of the position implies {computed}")
