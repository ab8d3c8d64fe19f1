"""Positions: which ones a game can reach, and a game as JSON (the ``state`` of docs/formats.md).

Kernels index their arrays by what a game holds, unchecked: whatever makes games of bytes, JSON or
text checks them here, whole (`carolus_env.system.untrusted` has the threat model). A field within
its range can still point outside an array.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import rules
from carolus_env.engine import state as layout
from carolus_env.engine.chance import seed_generators
from carolus_env.engine.rules import CLANS, DISCS, NOBODY, PHASE_NAMES, TERRITORIES, Rules
from carolus_env.engine.state import CIRCLE, FIELDS, STATE, States, winning_teams
from carolus_env.system import options, untrusted
from carolus_env.system.arrays import Bools
from carolus_env.system.untrusted import DataError, get, integer, integers, one_of, shown, table

STATE_KEYS: Final = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "castles", "placements_left",
)  # fmt: skip
"""The keys of `to_dict` that all implementations share: a record's ``state``."""
_OTHERS: Final = ("phase", "player", "regions", "discs_in_hand")
_NUMBERS: Final = (*(key for key in STATE_KEYS if key not in _OTHERS), "order", "dice_due")
"""The keys whose values are those of a field of the state, less unused seats and teams."""
_FIELDS: Final = {field.name: field for field in FIELDS}


class PositionError(ValueError):
    """A position that no game can reach, or one whose JSON or text cannot be read."""


def from_bytes(data: bytes) -> States:
    """Return the batch that `to_bytes` wrote; `PositionError` where no game can reach one of it."""
    options.instance("data", data, (bytes, bytearray, memoryview), "bytes")
    if len(data) % (size := STATE.itemsize):
        raise ValueError(f"data of {len(data)} bytes is no whole number of games of {size} bytes")
    states = np.frombuffer(data, STATE).copy()
    check_positions(states)
    return states


def are_set_ups(states: States) -> Bools:
    """Return which games are as ``new_games(..., roll=False)`` makes them, ``(N,)`` bool."""
    layout.check_ranges(states)
    result = np.zeros(len(states), np.bool_)
    for kind, rows in _by_rules(states):
        given = layout.pick(states, rows)
        with contextlib.suppress(ValueError):  # no territories, or no seat, of a game
            clans = given["region_paladins"][:, :, :TERRITORIES].argmax(axis=1)
            laid_out = {"territories": clans, "first_player": given["order"][:, 0]}
            seeds = np.zeros(len(rows), np.int64)  # nothing is drawn
            games = engine.new_games(kind, len(rows), seed=seeds, **laid_out, roll=False)
            games["generator"] = given["generator"]
            result[rows] = layout.equal(games, given)
    return result


def check_positions(states: States) -> None:
    """Refuse positions that no game can reach, with a `PositionError`."""
    try:
        layout.check_ranges(states)
    except ValueError as error:
        raise PositionError(f"position: {error}") from None
    for kind, rows in _by_rules(states):
        for broken, text, *values in _faults(layout.pick(states, rows), kind):
            if broken.any():
                at = tuple(np.argwhere(broken)[0])
                got = (np.asarray(value)[at[: np.ndim(value)]].tolist() for value in values)
                where = f"game {rows[at[0]]}: " if len(states) > 1 else ""
                raise PositionError(f"position: {where}{text.format(*got)}")


def _by_rules(states: States) -> Iterator[tuple[Rules, npt.NDArray[np.int64]]]:
    """Yield the rules that some games have, and the rows of these games."""
    codes = states[list(layout.OPTION_FIELDS.values())]
    firsts, kinds = np.unique(codes, return_index=True, return_inverse=True)[1:]
    for kind, first in enumerate(firsts):
        yield engine.rules_of(states[first]), np.flatnonzero(kinds == kind)


# ------------------------------------------------------------------------------------ validity

_Fault = tuple[Any, ...]
"""Where a batch breaks a rule, ``(N, ...)`` bool; a text; what to fill in, alike or a scalar."""


def _implied(s: States, kind: Rules) -> States:
    """Return games with the fields that others decide; what is not used is zero."""
    right, players = layout.copy(s), kind.players
    on_circle = np.arange(CIRCLE) < s["regions"][:, None]
    right["teams"] = kind.teams
    right["team"][:, :players] = [kind.team(seat) for seat in range(players)]
    for team in range(rules.MAX_TEAMS):
        owned = on_circle & (s["region_owner"] == team)
        right["castles"][:, team] = np.where(owned, s["region_castles"], 0).sum(axis=1)
    right["castles"][:, kind.teams :] = 0
    right["region_owner"] = np.minimum(s["region_owner"], kind.teams - 1)
    right["control"] = np.minimum(s["control"], players - 1)
    for name, field in _FIELDS.items():
        if field.shape[:1] == (rules.MAX_PLAYERS,):
            right[name][:, players:] = 0
        elif name.startswith("region_"):
            right[name] *= on_circle if field.shape == (CIRCLE,) else on_circle[:, None]
    over, rolling = s["phase"] == rules.OVER, s["phase"] == rules.ROLL
    right["dice_due"] = rolling * np.where(s["round"] == 0, kind.reserve, kind.dice)
    right["turn"] = (s["order"][:, :players] == s["player"][:, None]).argmax(axis=1)
    for name in ("player", "turn", "placements_left"):
        right[name][over] = 0
    right["reason"] *= over
    right["winners"] = over * (s["winners"] & (2**kind.teams - 1))
    return right


def _faults(s: States, kind: Rules) -> Iterator[_Fault]:
    """Yield each rule of games with the same rules; those before it hold for what follows."""
    players, order, right = kind.players, s["order"][:, : kind.players], _implied(s, kind)
    unordered = np.sort(order) != np.arange(players)
    yield unordered.any(axis=1), "order must hold every seat once, got {}", order
    yield s["player"] >= players, "player must be from 0 to {}, got {}", players - 1, s["player"]
    for name in _FIELDS:
        wrong = (s[name] != right[name]).reshape(len(s), -1).any(axis=1)
        text = f"{name} is {{}}, but the rest of the position implies {{}}"
        yield wrong, text, s[name], right[name]
    yield from _paladins(s, kind)
    yield from _circle(s)
    yield from _end(s, kind)
    going_on, begun = s["phase"] != rules.OVER, s["round"] > 0
    yield from _due(s, kind, going_on)
    yield from _set_up(s, kind, going_on & ~begun)
    by_rule = (s["reason"] == rules.BY_CASTLES) | (s["reason"] == rules.BY_REGIONS)
    yield from _discs(s, kind, by_rule | (going_on & begun))
    yield from _reserves(s, kind, going_on)


def _paladins(s: States, kind: Rules) -> Iterator[_Fault]:
    clans, names = (np.tile(each, (len(s), 1)) for each in (range(CLANS), rules.CLAN_NAMES))
    courts = s["courts"][:, : kind.players].astype(int)
    total = s["region_paladins"].sum(axis=2, dtype=int) + courts.sum(axis=1) + s["supply"]
    total += s["reserves"].sum(axis=1, dtype=int)
    text = "courts, reserves, regions and supply hold {} {} paladins (clan {}) in all, not {}"
    yield total != kind.paladins_per_clan, text, total, names, clans, kind.paladins_per_clan
    control, of_clan = s["control"].astype(int), courts.swapaxes(1, 2)
    held = np.take_along_axis(of_clan, np.maximum(control, 0)[:, :, None], axis=2)[:, :, 0]
    nobody, less = control == NOBODY, held < courts.max(axis=1)
    text = "nobody controls {}, but courts hold {} of it"
    yield nobody & courts.any(axis=1), text, names, of_clan
    text = "player {} controls {}, but the courts hold {} of it"
    yield ~nobody & less, text, control, names, of_clan


def _circle(s: States) -> Iterator[_Fault]:
    count, at = s["regions"][:, None], np.arange(CIRCLE)
    firsts, owners = s["region_first"].astype(int), s["region_owner"]
    castles, within, last = s["region_castles"], at < count, at + 1 == count
    sizes = np.where(last, firsts[:, :1] + TERRITORIES, np.roll(firsts, -1, axis=1)) - firsts
    wrong = (within & (sizes <= 0)).any(axis=1) | (s["emperor"] >= s["regions"])
    yield wrong, "the regions are not in ascending order, or the Emperor is on none of them"
    owned, name = owners != NOBODY, "the region from territory {} "
    text = name + "has {} castles and {} territories but no owner"
    yield within & ~owned & ((castles > 0) | (sizes > 1)), text, firsts, castles, sizes
    text = name + "has {} castles on {} territories; each must have one"
    yield within & owned & (castles != sizes), text, firsts, castles, sizes
    text = name + "and the next one both belong to team {} but are not merged"
    nexts = np.where(last, owners[:, :1], np.roll(owners, -1, axis=1))
    yield within & owned & (owners == nexts), text, firsts, owners
    text = name + "has fewer paladins than territories; each started with one"
    yield within & (s["region_paladins"].sum(axis=1) < sizes), text, firsts


def _end(s: States, kind: Rules) -> Iterator[_Fault]:
    """Yield what ends a game, and who wins then."""
    reason, round_now, regions = s["reason"], s["round"], s["regions"]
    castles = s["castles"][:, : kind.teams]
    most, few = castles.max(axis=1), regions < rules.MIN_REGIONS
    if kind.max_rounds is not None:
        text = "round {} is past max_rounds, {}"
        yield round_now > kind.max_rounds, text, round_now, kind.max_rounds
    by_castles, by_regions = reason == rules.BY_CASTLES, reason == rules.BY_REGIONS
    text = "a team has {} castles in play, so the game must be over (castles)"
    yield (most >= kind.castles_to_win) & ~by_castles, text, most
    text = "only {} regions are left, so the game must be over (regions)"
    yield few & ~by_castles & ~by_regions, text, regions
    over = s["phase"] == rules.OVER
    if not over.any():
        return
    yield over & (reason == rules.NOT_OVER), "the game is over, but result.reason is missing"
    winners = np.array([str(winning_teams(game)) for game in s])
    won = s["winners"][:, None] >> np.arange(kind.teams) & 1 > 0
    number = won.sum(axis=1)
    wrong = (number != 1) | (won & (castles < kind.castles_to_win)).any(axis=1)
    text = "winners by castles cannot be {}, with {} castles in play"
    yield by_castles & wrong, text, winners, castles
    wrong = ~few | (won != (castles == most[:, None])).any(axis=1)
    text = "winners by regions cannot be {}, with {} regions left and {} castles in play"
    yield by_regions & wrong, text, winners, regions, castles
    wrong = (number > 0) | (round_now != kind.max_rounds)
    text = "max_rounds is {}, which cannot end the game in round {} with winners {}"
    yield (reason == rules.BY_MAX_ROUNDS) & wrong, text, str(kind.max_rounds), round_now, winners
    text = "after a forfeit all teams but one must share the win, not {}"
    yield (reason == rules.BY_FORFEIT) & (number != kind.teams - 1), text, winners


def _due(s: States, kind: Rules, going_on: Bools) -> Iterator[_Fault]:
    """Yield the rules of what is due: paladins to play, crowns to decide."""
    phase, player, left = s["phase"], s["player"], s["placements_left"]
    placing, deciding = phase == rules.PLACE, phase == rules.CROWN_CHOICE
    rows, seats = np.arange(len(s)), np.arange(rules.MAX_PLAYERS)
    held, crowns = s["reserves"].sum(axis=2)[rows, player], s["crowns"][rows, player] > 0
    wrong = (left < 1) | (left > np.minimum(held, kind.dice))
    text = "placements_left is {}, but player {} plays at most {} paladins, and has {} in reserve"
    yield placing & wrong, text, left, player, kind.dice, held
    text = "placements_left is {} in phase {}; it must be 0"
    yield ~placing & (left > 0), text, left, np.array(PHASE_NAMES)[phase]
    if kind.crown_choice == "on_roll":
        now = deciding[:, None] & (seats == player[:, None])
        text = "player {} has undecided crowns, which are decided when rolled"
        wrong = going_on[:, None] & (s["crowns"] > 0) & ~now
        yield wrong, text, np.tile(seats, (len(s), 1))
    else:
        text = "player {} has undecided crowns, which are decided before paladins are played"
        yield (placing | (phase == rules.MOVE)) & crowns, text, player
    yield deciding & ~crowns, "player {} must decide a crown but has none", player
    stuck = ~(s["supply"] | s["courts"][:, : kind.players].min(axis=1)).any(axis=1)
    yield deciding & stuck, "a crown must be decided, but no clan can be taken"


def _set_up(s: States, kind: Rules, setting_up: Bools) -> Iterator[_Fault]:
    """Yield the rules of round 0."""
    phase, order = s["phase"], s["order"][:, : kind.players].astype(int)
    deciding, paladins = phase == rules.CROWN_CHOICE, s["region_paladins"]
    text = "round 0 is the set-up, which has no phase {}"
    yield setting_up & ~deciding & (phase != rules.ROLL), text, np.array(PHASE_NAMES)[phase]
    if kind.crown_choice == "deferred":
        yield setting_up & deciding, "deferred crowns are not decided in the set-up"
    laid_out = (paladins.sum(axis=1)[:, :TERRITORIES] == 1).all(axis=1)
    laid_out &= (paladins.sum(axis=2) == rules.PALADINS_LAID_OUT).all(axis=1)
    played = s["castles"].any(axis=1) | s["courts"].any(axis=(1, 2)) | (s["emperor"] > 0)
    hands, now = s["discs_in_hand"][:, : kind.players], "in the set-up (round 0) "
    text = now + "nothing has been played and the Emperor is on territory 0"
    yield setting_up & (played | ~laid_out), text
    yield setting_up & (s["control"] != NOBODY).any(axis=1), now + "nobody controls a clan"
    full = ~s["discs_played"].any(axis=1) & (hands == 2**DISCS - 1).all(axis=1)
    yield setting_up & ~full, now + "every player holds all five discs"
    clockwise = (order == (order[:, :1] + np.arange(kind.players)) % kind.players).all(axis=1)
    yield setting_up & ~clockwise, now + "the order goes clockwise, got {}", order
    held = np.take_along_axis(s["reserves"].sum(axis=2) + s["crowns"], order, axis=1)
    waiting = np.arange(kind.players) >= (s["turn"] + deciding)[:, None]
    text = "player {} has a reserve before rolling for it"
    yield setting_up[:, None] & waiting & (held > 0), text, order


def _discs(s: States, kind: Rules, in_rounds: Bools) -> Iterator[_Fault]:
    """Yield the rules of discs, of players in the order of their turns."""
    order, numbers = s["order"][:, : kind.players].astype(int), np.arange(1, DISCS + 1)
    discs = np.take_along_axis(s["discs_played"], order, axis=1).astype(int)
    hands = np.take_along_axis(s["discs_in_hand"], order, axis=1)[:, :, None]
    holds, plays = hands >> numbers - 1 & 1 > 0, discs[:, :, None] == numbers
    used, opening = discs > 0, s["phase"] == rules.DISC
    within = in_rounds[:, None]
    to_play = opening[:, None] & (np.arange(kind.players) >= s["turn"][:, None])
    text = "player {} has not played a disc, which does not fit phase, player and order"
    yield within & ~used & ~to_play, text, order
    text = "player {} has played disc {}, which does not fit phase, player and order"
    yield within & used & to_play, text, order, discs
    text = "player {} has disc {} both in hand and played"
    yield within & (holds & plays).any(axis=2), text, order, discs
    count, due = holds.sum(axis=2), DISCS - (s["round"].astype(int)[:, None] - 1) % DISCS - used
    text = "player {} has {} discs in hand, in this round not {}"
    yield within & (count != due), text, order, count, due
    unsorted = ~opening & (np.diff(discs) < 0).any(axis=1)
    text = "order {} does not follow the discs played: lower numbers first"
    yield in_rounds & unsorted, text, order
    repeats = (plays & (np.cumsum(plays, axis=1) > 1)).any(axis=2)
    free = (numbers * (holds & ~plays.any(axis=1, keepdims=True))).max(axis=2)
    text = "player {} has repeated disc {}, but could have played {}"
    yield within & repeats & (free > 0), text, order, discs, free


def _reserves(s: States, kind: Rules, going_on: Bools) -> Iterator[_Fault]:
    """Yield the rules of reserves, of players in the order of their turns."""
    order, round_now = s["order"][:, : kind.players].astype(int), s["round"][:, None]
    # Only where the supply has been empty can a roll give fewer paladins than dice.
    first = CLANS * kind.paladins_per_clan - TERRITORIES - kind.players * kind.reserve
    empty = -(-first // (kind.players * kind.dice))  # the first round in which it can be
    held = np.take_along_axis(s["reserves"].sum(axis=2) + s["crowns"], order, axis=1)
    spent = np.where(s["dice_due"] > 0, s["dice_due"], kind.dice) - s["placements_left"].astype(int)
    spent[~np.isin(s["phase"], (rules.PLACE, rules.MOVE, rules.ROLL))] = 0
    turns, now = np.arange(kind.players), s["turn"][:, None]
    most = kind.reserve - (turns == now) * spent[:, None]  # the dice fill it up
    text = "player {} has {} paladins and crowns in reserve, but at most {} now"
    yield held > most, text, order, held, most
    rolled = going_on[:, None] & ((round_now > 0) | (turns <= now))
    text = "player {} has {} paladins and crowns in reserve; before round {} it must have {}"
    yield rolled & (held < most) & (round_now < empty), text, order, held, empty, most


# ------------------------------------------------------------------------------------ writing


def _shape(key: str, kind: Rules) -> tuple[int, ...]:
    used = {rules.MAX_PLAYERS: kind.players, rules.MAX_TEAMS: kind.teams}
    return tuple(used.get(size, size) for size in _FIELDS[key].shape)


def to_dict(state: np.void) -> dict[str, Any]:
    """Return one game (``states[i]``) as a JSON-ready dict that begins like a record's ``state``.

    ``player`` is None when the game is over; ``result`` is None before.
    """
    kind = engine.rules_of(state)
    count, over = int(state["regions"]), state["phase"] == rules.OVER
    firsts = state["region_first"][:count].astype(int)
    sizes = (np.roll(firsts, -1) - firsts) % TERRITORIES
    data: dict[str, Any] = {
        key: state[key][tuple(map(slice, _shape(key, kind)))].tolist() for key in _NUMBERS
    }
    hands = state["discs_in_hand"][: kind.players, None] >> np.arange(DISCS) & 1
    data |= {
        "phase": PHASE_NAMES[state["phase"]],
        "player": None if over else int(state["player"]),
        "regions": [
            {
                "territories": [int(firsts[i] + k) % TERRITORIES for k in range(sizes[i])],
                "paladins": state["region_paladins"][:, i].tolist(),
                "owner": int(state["region_owner"][i]),
                "castles": int(state["region_castles"][i]),
            }
            for i in np.roll(np.arange(count), -int(state["emperor"]))
        ],
        "discs_in_hand": [(np.flatnonzero(hand) + 1).tolist() for hand in hands],
    }
    result = {"reason": rules.REASON_NAMES[state["reason"]], "winners": winning_teams(state)}
    more = {"rules": kind.to_dict(), "order": data["order"], "dice_due": data["dice_due"]}
    more |= {"result": result if over else None, "generator": f"{int(state['generator']):016x}"}
    return {key: data[key] for key in STATE_KEYS} | more


# ------------------------------------------------------------------------------------ reading


def from_dict(data: Mapping[str, Any], *, seed: int | None = None) -> States:
    """Set up any position that a game can reach; a batch of one game, ``(1,)`` of dtype `STATE`.

    Of a dict of `to_dict`, ``castles``, ``dice_due``, ``generator`` and, unless the game is over,
    ``result`` may be missing; so may ``order`` where the discs played decide it. ``seed`` gives a
    new generator for the dice to come. A `PositionError` names what is missing or impossible.
    """
    try:
        states = _read(untrusted.check(data, dict, "it"), seed)
    except DataError as error:
        raise PositionError(f"position: {error}") from None
    check_positions(states)
    return states


def _read(data: Mapping[str, Any], seed: int | None) -> States:
    kind = read_rules(get(data, "rules", dict))
    states = engine.blank_games(kind, 1)
    s = states[0]
    s["phase"] = PHASE_NAMES.index(one_of(data, "phase", PHASE_NAMES))
    over = s["phase"] == rules.OVER
    s["generator"] = seed_generators(seed or 0, 1)[0]
    if seed is None and "generator" in data:
        value: str = get(data, "generator", str)
        if not re.fullmatch("[0-9a-fA-F]{16}", value):
            raise DataError(f"generator must be 16 hexadecimal digits, got {shown(value)}")
        s["generator"] = int(value, 16)
    if not over:
        s["player"] = integer(data, "player", 0, kind.players - 1)
    for key in _NUMBERS:
        if key in data or key not in ("castles", "order", "dice_due"):  # which the rest may decide
            field, shape = _FIELDS[key], _shape(key, kind)
            high = kind.players - 1 if key in ("control", "order") else field.high
            if shape:
                s[key][tuple(map(slice, shape))] = table(data, key, shape, field.low, high)
            else:
                s[key] = integer(data, key, field.low, high)
    if "order" not in data:
        discs = s["discs_played"][: kind.players].tolist()
        if 0 in discs or len(set(discs)) < kind.players:
            raise DataError(f"order is missing, and the discs played, {discs}, do not decide it")
        s["order"][: kind.players] = np.argsort(discs)
    _read_hands(s, data, kind.players)
    _read_regions(s, data, kind.teams)
    if over:
        end, known = get(data, "result", dict), rules.REASON_NAMES
        s["reason"] = known.index(one_of(end, "reason", known[1:], "result"))
        winners = {*integers(end, "winners", "result")}
        if not winners <= {*range(kind.teams)}:
            raise DataError(
                f"result.winners must be teams 0 to {kind.teams - 1}, got {shown(end['winners'])}"
            )
        s["winners"] = sum(1 << team for team in winners)
    elif data.get("result") is not None:
        raise DataError(f"result must be null in phase {data['phase']}")
    implied = _implied(states, kind)
    for key in ("turn", "castles", "dice_due"):
        if key not in data:
            s[key] = implied[key][0]
    return states


def read_rules(values: Mapping[str, Any]) -> Rules:
    """Make `Rules` of untrusted options."""
    for key, value in values.items():
        if not (value is None or isinstance(value, str | int | float | np.integer)):
            raise DataError(
                f"rules: {shown(key)} must be a number, a string or null, got {shown(value)}"
            )
    try:
        return Rules.from_dict(values)
    except ValueError as error:
        raise DataError(untrusted.cut(str(error))) from None


def _read_hands(s: np.void, data: Mapping[str, Any], players: int) -> None:
    hands = get(data, "discs_in_hand", list)
    if len(hands) != players:
        raise DataError(f"discs_in_hand must list {players} hands, got {shown(hands)}")
    for seat, hand in enumerate(hands):
        numbers = isinstance(hand, list) and all(type(disc) is int for disc in hand)
        if not numbers or not {*hand} <= {*range(1, DISCS + 1)} or len({*hand}) < len(hand):
            raise DataError(
                f"discs_in_hand[{seat}] must hold different discs 1 to {DISCS}, got {shown(hand)}"
            )
        s["discs_in_hand"][seat] = sum(1 << (disc - 1) for disc in hand)


def _read_regions(s: np.void, data: Mapping[str, Any], teams: int) -> None:
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
        owner = integer(region, "owner", NOBODY, teams - 1, where)
        castles = integer(region, "castles", 0, TERRITORIES, where)
        paladins = table(region, "paladins", (CLANS,), 0, _FIELDS["region_paladins"].high, where)
        rows.append((territories[0], owner, castles, paladins))
    clockwise = [(circle[0] + k) % TERRITORIES for k in range(TERRITORIES)]
    if not 0 <= circle[0] < TERRITORIES or circle != clockwise:
        raise DataError(
            f"the regions' territories must be 0 to {TERRITORIES - 1}, each once, clockwise from "
            f"the Emperor's region, got {shown(circle)}"
        )
    firsts = [row[0] for row in rows]
    s["regions"], s["emperor"] = len(rows), sorted(firsts).index(firsts[0])
    for i, k in enumerate(np.argsort(firsts)):
        s["region_first"][i], s["region_owner"][i], s["region_castles"][i], paladins = rows[k]
        s["region_paladins"][:, i] = paladins
