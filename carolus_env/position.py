"""A game as JSON, and any position as a game.

`to_dict` gives the ``state`` object of a game record (docs/rules.md) plus what restoring needs:
rules, playing order, a roll that is due, the result, the generator. `from_dict` reads it back to
the same bytes, or refuses what no game can reach with a `PositionError` that says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from carolus_env.engine import (
    any_clan_can_be_taken,
    new_games,
    rules_of,
    seed_generators,
)
from carolus_env.rules import (
    CLAN_NAMES,
    CLANS,
    CROWN_CHOICE,
    DISC,
    DISCS,
    MIN_REGIONS,
    MOVE,
    NOBODY,
    OVER,
    PALADINS_LAID_OUT,
    PHASE_NAMES,
    PLACE,
    REASON_NAMES,
    ROLL,
    TERRITORIES,
    Rules,
)
from carolus_env.state import States, check_ranges


class PositionError(ValueError):
    """A position that no game can reach, or a description of one that cannot be read."""


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
                "paladins": state["region_paladins"][i].tolist(),
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
        "winners": [team for team in range(int(state["teams"])) if state["winners"] >> team & 1],
    }


def to_json(state: np.void) -> str:
    """`to_dict` as one line of JSON."""
    return json.dumps(to_dict(state), separators=(",", ":"))


# ------------------------------------------------------------------------------------ reading


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
    try:
        rules = Rules.from_dict(_get(data, "rules", Mapping))
    except (ValueError, TypeError) as error:
        raise PositionError(f"position: {error}") from None
    players = rules.players
    phase = _get(data, "phase", str)
    if phase not in PHASE_NAMES:
        raise PositionError(f"position: phase must be one of {PHASE_NAMES}, got {phase!r}")

    states = new_games(rules, 1, seed=seed or 0, first_player=0, roll=False)
    s = states[0]
    s["round"] = _number(data, "round", 0, 65535)
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
    _expect_same(data, "castles", s["castles"][: rules.teams].tolist())
    _expect_same(data, "dice_due", int(s["dice_due"]))
    check(states)
    return states


def _read_hands(s: np.void, data: Mapping[str, Any], players: int) -> None:
    hands = _get(data, "discs_in_hand", list)
    if len(hands) != players:
        raise PositionError(f"position: discs_in_hand must list {players} hands, got {hands!r}")
    for seat, hand in enumerate(hands):
        numbers = isinstance(hand, list) and all(type(disc) is int for disc in hand)
        if not numbers or not set(hand) <= set(range(1, DISCS + 1)) or len(set(hand)) < len(hand):
            raise PositionError(
                f"position: discs_in_hand[{seat}] must hold different discs 1 to {DISCS}, "
                f"got {hand!r}"
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
            raise PositionError(f"position: {where} must be an object, got {region!r}")
        territories = _get(region, "territories", list, where)
        if not territories or any(type(number) is not int for number in territories):
            raise PositionError(f"position: {where}.territories must be numbers: {territories!r}")
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
            f"Emperor's region on, got {laid}"
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
        s["region_paladins"][i] = paladins
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
            f"position: result.reason must be one of {REASON_NAMES[1:]}, got {reason!r}"
        )
    teams = list(range(rules.teams))
    if any(team not in teams or type(team) is not int for team in winners):
        raise PositionError(f"position: result.winners must be teams of {teams}, got {winners!r}")
    s["reason"] = REASON_NAMES.index(reason)
    s["winners"] = sum(1 << team for team in set(winners))


def _get(data: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    name = f"{where}.{key}" if where else key
    if key not in data:
        raise PositionError(f"position: {name} is missing")
    if not isinstance(data[key], kind):
        raise PositionError(
            f"position: {name} must be of type {kind.__name__.lower()}, got {data[key]!r}"
        )
    return data[key]


def _number(data: Mapping[str, Any], key: str, low: int, high: int, where: str = "") -> int:
    value = _get(data, key, int, where)
    if isinstance(value, bool) or not low <= value <= high:
        name = f"{where}.{key}" if where else key
        raise PositionError(f"position: {name} must be from {low} to {high}, got {value!r}")
    return value


def _table(
    data: Mapping[str, Any], key: str, shape: tuple[int, ...], low: int, high: int, where: str = ""
) -> np.ndarray:
    value = _get(data, key, list, where)
    name = f"{where}.{key}" if where else key
    try:
        table = np.array(value)
    except ValueError:
        table = np.array(None)
    if table.shape != shape or table.dtype.kind not in "iu":
        size = " x ".join(map(str, shape))
        raise PositionError(f"position: {name} must be {size} whole numbers, got {value!r}")
    if table.min() < low or table.max() > high:
        raise PositionError(f"position: {name} must be from {low} to {high}, got {value!r}")
    return table


def _generator(value: Any) -> int:
    try:
        number = int(value, 16)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < 2**64:
        raise PositionError(f"position: generator must be 16 hexadecimal digits, got {value!r}")
    return number


def _expect_same(data: Mapping[str, Any], key: str, computed: Any) -> None:
    if key in data and data[key] != computed:
        raise PositionError(
            f"position: {key} is {data[key]!r}, but the rest of the position gives {computed!r}"
        )


# ------------------------------------------------------------------------------------ checking


def check(states: States) -> None:
    """Refuse positions that no game can reach.

    Raises:
        PositionError: naming the game's row (for a batch of several) and what is impossible.
    """
    try:
        check_ranges(states)
    except ValueError as error:
        raise PositionError(f"position: {error}") from None
    for row, state in enumerate(states):
        for problem in _problems(state):
            where = f"game {row}: " if len(states) > 1 else ""
            raise PositionError(f"position: {where}{problem}")


def _problems(s: np.void) -> Iterator[str]:
    """Yield what is impossible about a position, in words."""
    rules = rules_of(s)
    yield from _conservation(s, rules)
    yield from _circle(s, rules)
    yield from _control(s, rules)
    yield from _reserves(s, rules)
    if s["phase"] == OVER:
        yield from _ending(s, rules)
        return
    if max(s["castles"]) >= rules.castles_to_win:
        yield f"a team has {max(s['castles'])} castles in play, so the game is over"
    if s["regions"] < MIN_REGIONS:
        yield f"only {s['regions']} regions are left, so the game is over"
    if rules.max_rounds is not None and s["round"] > rules.max_rounds:
        yield f"round {s['round']} is past max_rounds, {rules.max_rounds}"
    yield from _phase(s, rules)
    yield from (_set_up if s["round"] == 0 else _discs)(s, rules)


def _conservation(s: np.void, rules: Rules) -> Iterator[str]:
    total = (
        s["courts"].sum(axis=0, dtype=int)
        + s["reserves"].sum(axis=0, dtype=int)
        + s["region_paladins"].sum(axis=0, dtype=int)
        + s["supply"]
    )
    for clan in range(CLANS):
        if total[clan] != rules.paladins_per_clan:
            yield (
                f"there are {total[clan]} {CLAN_NAMES[clan]} paladins (clan {clan}) in courts, "
                f"reserves, regions and supply together, not {rules.paladins_per_clan}"
            )


def _circle(s: np.void, rules: Rules) -> Iterator[str]:
    count = int(s["regions"])
    firsts, owners = s["region_first"][:count].astype(int), s["region_owner"][:count]
    if (np.diff(firsts) <= 0).any() or s["emperor"] >= count:
        yield "the regions are not in ascending order, or the Emperor stands on none"
        return
    sizes = np.diff(np.append(firsts, firsts[0] + TERRITORIES))
    for i in range(count):
        castles, name = int(s["region_castles"][i]), f"the region from territory {firsts[i]}"
        if owners[i] == NOBODY and (castles > 0 or sizes[i] > 1):
            yield f"{name} has {castles} castles and {sizes[i]} territories but no owner"
        if owners[i] != NOBODY and castles != sizes[i]:
            yield f"{name} has {castles} castles on {sizes[i]} territories; each has one"
        if owners[i] != NOBODY and owners[i] == owners[(i + 1) % count]:
            yield f"{name} and the next one both belong to team {owners[i]} but are not merged"
        if s["region_paladins"][i].sum(dtype=int) < sizes[i]:
            yield f"{name} has fewer paladins than territories; each was given one"


def _control(s: np.void, rules: Rules) -> Iterator[str]:
    for clan in range(CLANS):
        court, holder = s["courts"][: rules.players, clan], int(s["control"][clan])
        if holder == NOBODY:
            if court.max() > 0:
                yield f"nobody controls {CLAN_NAMES[clan]}, but courts hold {court.tolist()} of it"
        elif court[holder] < court.max():
            yield (
                f"player {holder} controls {CLAN_NAMES[clan]}, "
                f"but the courts hold {court.tolist()} of it"
            )


def _reserves(s: np.void, rules: Rules) -> Iterator[str]:
    for seat in range(rules.players):
        held = s["reserves"][seat].sum(dtype=int) + int(s["crowns"][seat])
        if held > rules.reserve:
            yield f"player {seat} has {held} in reserve (crowns included), at most {rules.reserve}"


def _phase(s: np.void, rules: Rules) -> Iterator[str]:
    phase, player = int(s["phase"]), int(s["player"])
    in_reserve = s["reserves"][player].sum(dtype=int)
    left = int(s["placements_left"])
    if phase == PLACE and not 1 <= left <= min(rules.dice, in_reserve):
        yield (
            f"placements_left is {left}, but player {player} plays at most {rules.dice} "
            f"paladins a turn and has {in_reserve} in reserve"
        )
    if phase != PLACE and left:
        yield f"placements_left is {left} in phase {PHASE_NAMES[phase]}; it must be 0"
    if rules.crown_choice == "on_roll":
        for seat in range(rules.players):
            if s["crowns"][seat] and (phase != CROWN_CHOICE or seat != player):
                yield f"player {seat} has crowns that should have been decided when rolled"
    elif phase in (PLACE, MOVE) and s["crowns"][player]:
        yield f"player {player} has crowns, which are decided before paladins are played"
    if phase == CROWN_CHOICE:
        if not s["crowns"][player]:
            yield f"player {player} is to decide a crown but has none"
        if not any_clan_can_be_taken(s):
            yield "a crown is to be decided, but no clan can be taken"


def _set_up(s: np.void, rules: Rules) -> Iterator[str]:
    if s["phase"] not in (ROLL, CROWN_CHOICE):
        yield f"round 0 is the set-up, which has no phase {PHASE_NAMES[int(s['phase'])]}"
    if rules.crown_choice == "deferred" and s["phase"] == CROWN_CHOICE:
        yield "deferred crowns are not decided in the set-up"
    fresh = s["regions"] == TERRITORIES and (s["region_paladins"].sum(axis=1) == 1).all()
    laid_out = (s["region_paladins"].sum(axis=0) == PALADINS_LAID_OUT).all()
    if not (fresh and laid_out) or s["castles"].any() or s["courts"].any() or s["emperor"]:
        yield "in the set-up (round 0) nothing has been played and the Emperor is on territory 0"
    if (s["control"] != NOBODY).any():
        yield "in the set-up (round 0) nobody controls a clan"
    if s["discs_played"].any() or (s["discs_in_hand"][: rules.players] != 2**DISCS - 1).any():
        yield "in the set-up (round 0) every player holds all five discs"
    order = s["order"][: rules.players].tolist()
    if order != [(order[0] + k) % rules.players for k in range(rules.players)]:
        yield f"in the set-up (round 0) the order goes clockwise, got {order}"
    waiting = order[int(s["turn"]) + (s["phase"] == CROWN_CHOICE) :]
    for seat in waiting:
        if s["reserves"][seat].any() or s["crowns"][seat]:
            yield f"player {seat} has a reserve before the own set-up roll"


def _discs(s: np.void, rules: Rules) -> Iterator[str]:
    order = s["order"][: rules.players].tolist()
    opening = s["phase"] == DISC
    to_play = order[int(s["turn"]) :] if opening else []
    used = (int(s["round"]) - 1) % DISCS
    for seat in range(rules.players):
        hand, disc = int(s["discs_in_hand"][seat]), int(s["discs_played"][seat])
        if (disc == 0) != (seat in to_play):
            state = "has not played a disc" if disc == 0 else f"has played disc {disc}"
            yield f"player {seat} {state}, which does not fit phase, player and order"
        if disc and hand >> (disc - 1) & 1:
            yield f"player {seat} has disc {disc} in hand and on the table"
        wanted = DISCS - used - (disc > 0)
        if hand.bit_count() != wanted:
            yield f"player {seat} has {hand.bit_count()} discs in hand in this round, not {wanted}"
    discs = [int(s["discs_played"][seat]) for seat in order]
    if not opening and discs != sorted(discs):
        yield f"order {order} does not follow the discs played: lower numbers first"


def _ending(s: np.void, rules: Rules) -> Iterator[str]:
    reason, winners = REASON_NAMES[int(s["reason"])], _end(s)["winners"]
    castles = s["castles"][: rules.teams].tolist()
    if reason is None:
        yield "the game is over, but result.reason is missing"
    elif reason == "castles":
        if len(winners) != 1 or castles[winners[0]] < rules.castles_to_win:
            yield f"team {winners} cannot have won by castles with {castles} in play"
    elif reason == "regions":
        most = [team for team in range(rules.teams) if castles[team] == max(castles)]
        if s["regions"] >= MIN_REGIONS or winners != most:
            yield f"{s['regions']} regions and {castles} castles are no win for team {winners}"
    elif reason == "max_rounds":
        if winners or s["round"] != rules.max_rounds:
            yield f"round {s['round']} of {rules.max_rounds} is no cut-off without a winner"
    elif len(winners) != rules.teams - 1:
        yield f"after a forfeit all teams but one share the win, not {winners}"
