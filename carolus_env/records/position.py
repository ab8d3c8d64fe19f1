"""A game as JSON, and any position as a game.

`to_dict` gives the ``state`` object of a game record (docs/rules.md) plus what restoring needs:
rules, playing order, a roll that is due, the result, the generator. `from_dict` reads it back to
the same bytes, or refuses what no game can reach with a `PositionError` that says why.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from carolus_env.engine import (
    new_games,
    rules_of,
)
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
from carolus_env.records.validity import PositionError, check

# ------------------------------------------------------------------------------------ writing


def to_dict(state: np.void) -> dict[str, Any]:
    """One game (``states[i]``) as a JSON-ready dict; the keys of a record's ``state`` come first.

    In phase ``over``, ``player`` is None; ``result`` is None until then.
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


def to_json(state: np.void) -> str:
    """`to_dict` as one line of JSON."""
    return json.dumps(to_dict(state), separators=(",", ":"))


# ------------------------------------------------------------------------------------ reading

_SHORT = reprlib.Repr()
_SHORT.maxlist = TERRITORIES


def from_json(text: str | bytes) -> States:
    """The game that `to_json` wrote, as a batch of one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PositionError(f"no position: not JSON ({error})") from None
    return from_dict(data)


def from_dict(data: Mapping[str, Any], *, seed: int | None = None) -> States:
    """Set up any position that a game can reach.

    Args:
        data: what `to_dict` gives. ``order`` may be left out where the discs on the table decide
            it, ``castles``, ``dice_due``, ``result`` (unless over) and ``generator`` always.
        seed: a new generator for the dice to come, instead of the position's own.

    Returns:
        A batch of one game, ``(1,)`` of dtype `STATE`.

    Raises:
        PositionError: naming what is missing or impossible.
    """
    if not isinstance(data, Mapping):
        raise PositionError(f"no position: expected an object, got {type(data).__name__}")
    options = _get(data, "rules", Mapping)
    try:
        rules = Rules.from_dict(options)
    except (ValueError, TypeError, RecursionError) as error:
        raise PositionError(f"position: {error}") from None
    players = rules.players
    phase = _get(data, "phase", str)
    if phase not in PHASE_NAMES:
        raise PositionError(f"position: phase must be one of {PHASE_NAMES}, got {_shown(phase)}")

    states = new_games(rules, 1, seed=seed or 0, first_player=0, roll=False)
    s = states[0]
    s["round"] = _number(data, "round", 0, 2**32 - 1)
    s["phase"] = PHASE_NAMES.index(phase)
    s["courts"][:players] = _table(data, "courts", (players, CLANS), 0, 197)
    s["control"] = _table(data, "control", (CLANS,), NOBODY, players - 1)
    s["reserves"][:players] = _table(data, "reserves", (players, CLANS), 0, 9)
    s["crowns"][:players] = _table(data, "crowns", (players,), 0, 9)
    s["supply"] = _table(data, "supply", (CLANS,), 0, 197)
    s["discs_played"][:players] = _table(data, "discs_played", (players,), 0, DISCS)
    s["placements_left"] = _number(data, "placements_left", 0, 4)
    _read_hands(s, data, players)
    _read_regions(s, data, rules)
    _read_turn(s, data, rules)
    if seed is None and "generator" in data:
        s["generator"] = _generator(data["generator"])
    elif seed is not None:
        s["generator"] = seed_generators(seed, 1)[0]
    if s["phase"] == OVER:
        _read_end(s, data, rules)
    elif data.get("result") is not None:
        raise PositionError(f"position: result must be null in phase {phase}")
    if "castles" in data:
        castles = _table(data, "castles", (rules.teams,), 0, TERRITORIES)
        _expect_same("castles", castles.tolist(), s["castles"][: rules.teams].tolist())
    if "dice_due" in data:
        _expect_same("dice_due", _number(data, "dice_due", 0, 9), int(s["dice_due"]))
    check(states)
    return states


def _read_hands(s: np.void, data: Mapping[str, Any], players: int) -> None:
    hands = _get(data, "discs_in_hand", list)
    if len(hands) != players:
        raise PositionError(
            f"position: discs_in_hand must list {players} hands, got {_shown(hands)}"
        )
    for seat, hand in enumerate(hands):
        numbers = isinstance(hand, list) and all(type(disc) is int for disc in hand)
        if not numbers or not set(hand) <= set(range(1, DISCS + 1)) or len(set(hand)) < len(hand):
            raise PositionError(
                f"position: discs_in_hand[{seat}] must hold different discs 1 to {DISCS}, "
                f"got {_shown(hand)}"
            )
        s["discs_in_hand"][seat] = sum(1 << (disc - 1) for disc in hand)


def _read_regions(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    regions = _get(data, "regions", list)
    if not 2 <= len(regions) <= TERRITORIES:
        raise PositionError(f"position: there must be 2 to 15 regions, got {len(regions)}")
    laid, rows = [], []
    for i, region in enumerate(regions):
        where = f"regions[{i}]"
        if not isinstance(region, Mapping):
            raise PositionError(f"position: {where} must be an object, got {_shown(region)}")
        territories = _get(region, "territories", list, where)
        if not territories or any(type(number) is not int for number in territories):
            raise PositionError(
                f"position: {where}.territories must be numbers, got {_shown(territories)}"
            )
        laid += territories
        rows.append(
            (
                territories[0],
                _number(region, "owner", NOBODY, rules.teams - 1, where),
                _number(region, "castles", 0, TERRITORIES, where),
                _table(region, "paladins", (CLANS,), 0, 200, where),
            )
        )
    if not all(0 <= number < TERRITORIES for number in laid) or laid != [
        (laid[0] + k) % TERRITORIES for k in range(TERRITORIES)
    ]:
        raise PositionError(
            "position: the regions' territories must be 0 to 14, each once, clockwise from the "
            f"Emperor's region on, got {_shown(laid)}"
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
        order = _table(data, "order", (players,), 0, players - 1).tolist()
        if sorted(order) != list(range(players)):
            raise PositionError(f"position: order must hold every seat once, got {order}")
    else:
        discs = s["discs_played"][:players].tolist()
        if 0 in discs or len(set(discs)) < players:
            raise PositionError(
                f"position: order is missing, and the discs played, {discs}, do not decide it"
            )
        order = sorted(range(players), key=discs.__getitem__)
    s["order"][:players] = order
    s["dice_due"] = 0
    if s["phase"] == OVER:
        s["player"] = s["turn"] = 0
        return
    s["player"] = _number(data, "player", 0, players - 1)
    s["turn"] = order.index(int(s["player"]))
    if s["phase"] == ROLL:
        s["dice_due"] = rules.reserve if s["round"] == 0 else rules.dice


def _read_end(s: np.void, data: Mapping[str, Any], rules: Rules) -> None:
    end = _get(data, "result", Mapping)
    reason, winners = _get(end, "reason", str, "result"), _get(end, "winners", list, "result")
    if reason not in REASON_NAMES[1:]:
        raise PositionError(
            f"position: result.reason must be one of {REASON_NAMES[1:]}, got {_shown(reason)}"
        )
    teams = list(range(rules.teams))
    if any(team not in teams or type(team) is not int for team in winners):
        raise PositionError(
            f"position: result.winners must be teams of {teams}, got {_shown(winners)}"
        )
    s["reason"] = REASON_NAMES.index(reason)
    s["winners"] = sum(1 << team for team in set(winners))


def _get(data: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    name = f"{where}.{key}" if where else key
    if key not in data:
        raise PositionError(f"position: {name} is missing")
    if not isinstance(data[key], kind):
        raise PositionError(
            f"position: {name} must be of type {kind.__name__.lower()}, got {_shown(data[key])}"
        )
    return data[key]


def _number(data: Mapping[str, Any], key: str, low: int, high: int, where: str = "") -> int:
    value = _get(data, key, int, where)
    if isinstance(value, bool) or not low <= value <= high:
        name = f"{where}.{key}" if where else key
        raise PositionError(f"position: {name} must be from {low} to {high}, got {_shown(value)}")
    return value


def _table(
    data: Mapping[str, Any], key: str, shape: tuple[int, ...], low: int, high: int, where: str = ""
) -> np.ndarray:
    value = _get(data, key, list, where)
    name = f"{where}.{key}" if where else key
    try:
        table = np.array(value, object)
    except ValueError:
        table = np.array(None)
    if table.shape != shape or any(type(number) is not int for number in table.flat):
        size = " x ".join(map(str, shape))
        raise PositionError(f"position: {name} must be {size} whole numbers, got {_shown(value)}")
    if table.min() < low or table.max() > high:
        raise PositionError(f"position: {name} must be from {low} to {high}, got {_shown(value)}")
    return table.astype(np.int64)


def _generator(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{16}", value):
        raise PositionError(
            f"position: generator must be 16 hexadecimal digits, got {_shown(value)}"
        )
    return int(value, 16)


def _expect_same(key: str, given: Any, computed: Any) -> None:
    if given != computed:
        raise PositionError(
            f"position: {key} is {given}, but the rest of the position gives {computed}"
        )


def _shown(value: Any) -> str:
    """What was given, for the text of an error: cut short where it is long or deep."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # whole numbers of thousands of digits
        return f"a {type(value).__name__} too long to show"
