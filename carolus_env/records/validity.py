"""Reachability of positions: `check_positions` refuses those that no game can reach and says why.

Kernels index their arrays by what a game holds, unchecked. So whatever makes games of bytes, JSON
or text from outside checks them here, whole: a field that is within its range can still point
outside an array when another does not fit it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from carolus_env.engine import any_clan_can_be_taken, new_games, rules_of
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    CROWN_CHOICE,
    DISC,
    DISCS,
    MAX_TEAMS,
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
from carolus_env.engine.state import (
    FIELDS,
    OPTION_FIELDS,
    STATE,
    States,
    check_ranges,
    equal,
    pick,
    winning_teams,
)
from carolus_env.system.options import instance

_OF_A_SEAT = ("team", "order", "discs_in_hand", "discs_played", "crowns", "courts", "reserves")
_OF_A_REGION = ("region_first", "region_owner", "region_castles")


class PositionError(ValueError):
    """A position that no game can reach, or one whose JSON or text cannot be read."""


def from_bytes(data: bytes) -> States:
    """Return the batch that `to_bytes` wrote, about 3,000 games a second: each is checked.

    Raises:
        ValueError: when the length is not a multiple of the record's.
        PositionError: for a position that no game can reach, see `check_positions`.
    """
    instance("data", data, (bytes, bytearray, memoryview), "bytes")
    if len(data) % STATE.itemsize:
        raise ValueError(
            f"data of {len(data)} bytes are not a whole number of games of {STATE.itemsize} bytes "
            "each"
        )
    states = np.frombuffer(data, STATE).copy()
    check_positions(states)
    return states


def are_set_ups(states: States) -> npt.NDArray[np.bool_]:
    """Return which games are as ``new_games(..., roll=False)`` makes them, ``(N,)`` bool."""
    check_ranges(states)
    options = states[list(OPTION_FIELDS.values())]
    first, kinds = np.unique(options, return_index=True, return_inverse=True)[1:]
    result = np.zeros(len(states), np.bool_)
    for kind, row in enumerate(first):
        rows = np.flatnonzero(kinds == kind)
        given = pick(states, rows)
        with contextlib.suppress(ValueError):  # no territories, or no seat, of a game
            games = new_games(
                rules_of(states[row]),
                len(rows),
                seed=np.zeros(len(rows), np.uint64),
                territories=given["region_paladins"][:, :, :TERRITORIES].argmax(axis=1),
                first_player=given["order"][:, 0],
                roll=False,
            )
            games["generator"] = given["generator"]
            result[rows] = equal(games, given)
    return result


def check_positions(states: States) -> None:
    """Refuse positions that no game can reach."""
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
    yield from _derived(s, rules)
    yield from _conservation(s, rules)
    yield from _circle(s, rules)
    yield from _control(s, rules)
    if rules.max_rounds is not None and s["round"] > rules.max_rounds:
        yield f"round {s['round']} is past max_rounds, {rules.max_rounds}"
    reason = REASON_NAMES[int(s["reason"])]
    if max(s["castles"]) >= rules.castles_to_win and reason != "castles":
        yield f"a team has {max(s['castles'])} castles in play, so the game must be over (castles)"
    if s["regions"] < MIN_REGIONS and reason not in ("castles", "regions"):
        yield f"only {s['regions']} regions are left, so the game must be over (regions)"
    if s["phase"] == OVER:
        yield from _ending(s, rules)
        if reason in ("castles", "regions"):
            yield from _discs(s, rules)
    else:
        yield from _phase(s, rules)
        yield from (_set_up if s["round"] == 0 else _discs)(s, rules)
    yield from _reserves(s, rules)


def _derived(s: np.void, rules: Rules) -> Iterator[str]:
    """Yield fields that other fields decide; those of unused seats, teams and regions are zero."""
    players, phase, player = rules.players, int(s["phase"]), int(s["player"])
    order = s["order"][:players].tolist()
    if sorted(order) != list(range(players)) or player >= players:
        yield f"player {player} or order {order} does not fit {players} seats"
        return
    owners = s["region_owner"][: s["regions"]]
    right = s.copy()
    right["teams"] = rules.teams
    right["team"][:players] = [rules.team(seat) for seat in range(players)]
    for team in range(MAX_TEAMS):
        right["castles"][team] = s["region_castles"][: s["regions"]][owners == team].sum()
    right["castles"][rules.teams :] = 0
    right["region_owner"] = s["region_owner"].clip(max=rules.teams - 1)
    right["control"] = s["control"].clip(max=players - 1)
    for name in _OF_A_SEAT:
        right[name][players:] = 0
    for name in _OF_A_REGION:
        right[name][s["regions"] :] = 0
    right["region_paladins"][:, s["regions"] :] = 0
    right["dice_due"] = 0
    if phase == ROLL:
        right["dice_due"] = rules.reserve if s["round"] == 0 else rules.dice
    right["turn"] = order.index(player)
    if phase == OVER:
        right["player"] = right["turn"] = right["placements_left"] = 0
        right["winners"] = s["winners"] & (2**rules.teams - 1)
    else:
        right["reason"] = right["winners"] = 0
    for field in FIELDS:
        stated, computed = s[field.name].tolist(), right[field.name].tolist()
        if stated != computed:
            yield f"{field.name} is {stated}, but the rest of the position implies {computed}"


def _conservation(s: np.void, rules: Rules) -> Iterator[str]:
    total = (
        s["courts"].sum(axis=0, dtype=int)
        + s["reserves"].sum(axis=0, dtype=int)
        + s["region_paladins"].sum(axis=1, dtype=int)
        + s["supply"]
    )
    for clan in range(CLANS):
        if total[clan] != rules.paladins_per_clan:
            yield (
                f"courts, reserves, regions and supply hold {total[clan]} {CLAN_NAMES[clan]} "
                f"paladins (clan {clan}) in all, not {rules.paladins_per_clan}"
            )


def _circle(s: np.void, rules: Rules) -> Iterator[str]:
    count = int(s["regions"])
    firsts, owners = s["region_first"][:count].astype(int), s["region_owner"][:count]
    if (np.diff(firsts) <= 0).any() or s["emperor"] >= count:
        yield "the regions are not in ascending order, or the Emperor is on none of them"
        return
    sizes = np.diff(np.append(firsts, firsts[0] + TERRITORIES))
    for i in range(count):
        castles, name = int(s["region_castles"][i]), f"the region from territory {firsts[i]}"
        if owners[i] == NOBODY and (castles > 0 or sizes[i] > 1):
            yield f"{name} has {castles} castles and {sizes[i]} territories but no owner"
        if owners[i] != NOBODY and castles != sizes[i]:
            yield f"{name} has {castles} castles on {sizes[i]} territories; each must have one"
        if owners[i] != NOBODY and owners[i] == owners[(i + 1) % count]:
            yield f"{name} and the next one both belong to team {owners[i]} but are not merged"
        if s["region_paladins"][:, i].sum(dtype=int) < sizes[i]:
            yield f"{name} has fewer paladins than territories; each started with one"


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
    # Only where the supply has been empty can a roll give fewer paladins than dice.
    first = CLANS * rules.paladins_per_clan - TERRITORIES - rules.players * rules.reserve
    empty = -(-first // (rules.players * rules.dice))  # the first round in which it can be
    for turn, seat in enumerate(s["order"][: rules.players].tolist()):
        held, most = s["reserves"][seat].sum(dtype=int) + int(s["crowns"][seat]), rules.reserve
        if seat == s["player"] and s["phase"] in (PLACE, MOVE, ROLL):  # the dice fill it up
            most += int(s["placements_left"]) - (int(s["dice_due"]) or rules.dice)
        if held > most:
            yield f"player {seat} has {held} paladins and crowns in reserve, but at most {most} now"
        rolled = s["phase"] != OVER and (s["round"] > 0 or turn <= s["turn"])
        if rolled and held < most and s["round"] < empty:
            yield (
                f"player {seat} has {held} paladins and crowns in reserve; before round {empty} it "
                f"must have {most}"
            )


def _phase(s: np.void, rules: Rules) -> Iterator[str]:
    phase, player = int(s["phase"]), int(s["player"])
    in_reserve = s["reserves"][player].sum(dtype=int)
    remaining = int(s["placements_left"])
    if phase == PLACE and not 1 <= remaining <= min(rules.dice, in_reserve):
        yield (
            f"placements_left is {remaining}, but player {player} plays at most {rules.dice} "
            f"paladins a turn and has {in_reserve} in reserve"
        )
    if phase != PLACE and remaining:
        yield f"placements_left is {remaining} in phase {PHASE_NAMES[phase]}; it must be 0"
    if rules.crown_choice == "on_roll":
        for seat in range(rules.players):
            if s["crowns"][seat] and (phase != CROWN_CHOICE or seat != player):
                yield f"player {seat} has undecided crowns, which are decided when rolled"
    elif phase in (PLACE, MOVE) and s["crowns"][player]:
        yield f"player {player} has undecided crowns, which are decided before paladins are played"
    if phase == CROWN_CHOICE:
        if not s["crowns"][player]:
            yield f"player {player} must decide a crown but has none"
        if not any_clan_can_be_taken(s):
            yield "a crown must be decided, but no clan can be taken"


def _set_up(s: np.void, rules: Rules) -> Iterator[str]:
    if s["phase"] not in (ROLL, CROWN_CHOICE):
        yield f"round 0 is the set-up, which has no phase {PHASE_NAMES[int(s['phase'])]}"
    if rules.crown_choice == "deferred" and s["phase"] == CROWN_CHOICE:
        yield "deferred crowns are not decided in the set-up"
    on_each = s["region_paladins"].sum(axis=0)[:TERRITORIES]
    fresh = s["regions"] == TERRITORIES and (on_each == 1).all()
    laid_out = (s["region_paladins"].sum(axis=1) == PALADINS_LAID_OUT).all()
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
            yield f"player {seat} has a reserve before rolling for it"


def _discs(s: np.void, rules: Rules) -> Iterator[str]:
    order = s["order"][: rules.players].tolist()
    opening = s["phase"] == DISC
    to_play = order[int(s["turn"]) :] if opening else []
    used = (int(s["round"]) - 1) % DISCS
    hands = s["discs_in_hand"].tolist()
    for seat in range(rules.players):
        hand, disc = hands[seat], int(s["discs_played"][seat])
        if (disc == 0) != (seat in to_play):
            state = "has not played a disc" if disc == 0 else f"has played disc {disc}"
            yield f"player {seat} {state}, which does not fit phase, player and order"
        if disc and hand >> (disc - 1) & 1:
            yield f"player {seat} has disc {disc} both in hand and played"
        due = DISCS - used - (disc > 0)
        if hand.bit_count() != due:
            yield f"player {seat} has {hand.bit_count()} discs in hand, in this round not {due}"
    discs = [int(s["discs_played"][seat]) for seat in order]
    if not opening and discs != sorted(discs):
        yield f"order {order} does not follow the discs played: lower numbers first"
    for turn, seat in enumerate(order):
        free = [d for d in range(1, DISCS + 1) if d not in discs and hands[seat] >> (d - 1) & 1]
        if discs[turn] and discs[turn] in discs[:turn] and free:
            yield f"player {seat} has repeated disc {discs[turn]}, but could have played {free}"


def _ending(s: np.void, rules: Rules) -> Iterator[str]:
    reason, winners = REASON_NAMES[int(s["reason"])], winning_teams(s)
    castles = s["castles"][: rules.teams].tolist()
    if reason is None:
        yield "the game is over, but result.reason is missing"
    elif reason == "castles":
        if len(winners) != 1 or castles[winners[0]] < rules.castles_to_win:
            yield f"winners by castles cannot be {winners}, with {castles} castles in play"
    elif reason == "regions":
        most = [team for team in range(rules.teams) if castles[team] == max(castles)]
        if s["regions"] >= MIN_REGIONS or winners != most:
            yield (
                f"winners by regions cannot be {winners}, with {s['regions']} regions left and "
                f"{castles} castles in play"
            )
    elif reason == "max_rounds":
        if winners or s["round"] != rules.max_rounds:
            yield (
                f"max_rounds is {rules.max_rounds}, which cannot end the game "
                f"in round {s['round']} with winners {winners}"
            )
    elif len(winners) != rules.teams - 1:
        yield f"after a forfeit all teams but one must share the win, not {winners}"
