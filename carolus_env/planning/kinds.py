"""The scores after a plan, by its differences from another plan of its kind.

Two plans are of one *kind* if

- the same teams control the clans after their placements,
- their paladins on the circle lie on the same region, and it has the same heir, both before and
  after the Emperor's move (`heir_of`; a merger may change it),
- the Emperor stops at the same region.

Then the same castles are built and the same regions merge, and all other regions look the same. So
only these features can differ: those of the clans (`CLAN_FEATURES`), which are sums over the clans,
and the margins of that one region. The first plan of a kind is played out and its features are
counted; for the others only what can differ is written anew. All but the sums with tenths are whole
numbers, and those are added up in the same order, so scores are equal to the last bit. The planner
takes three to five times as many decisions a second as if each plan were played out.

Most plans are not among the best. *Rough* scores tell them apart: what is the same in a kind is
weighed once, and so is each clan's share. They are the scores but for rounding (`slack`).

Placements are a word of *shares*: byte k is ``TO_COURT`` for each paladin of clan k to the court,
plus ``TO_REGION`` for each to the region.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.kernels.courts import controlling_team
from carolus_env.engine.kernels.regions import heir_of, region_at, strength
from carolus_env.engine.kernels.turns import move_emperor, place_paladin
from carolus_env.engine.rules import CLANS, DICE, MAX_TEAMS, NOBODY, OVER, TERRITORIES
from carolus_env.engine.state import STATE, States
from carolus_env.planning.heuristic import (
    ATTACK,
    CLAN_FEATURES,
    FEATURES,
    HOLD,
    NOBODY_ROW,
    count_but_clans,
    count_clan,
    forget_features,
    margin,
    weigh,
    write_final_scores,
)
from carolus_env.system.arrays import F64, I64, Int, Records, int64
from carolus_env.system.compiler import inlined, kernel, separate

TO_REGION: Final = 1
TO_COURT: Final = max(DICE) + 1
_SHARES: Final = TO_COURT * TO_COURT
_FIRST, _LAST = CLAN_FEATURES
_ROUGH: Final = 1e-9

_CONTROLS: Final = 1 << CLANS
_ROWS: Final = 512  # kinds cached at a time, a power of 2
_KEYS: Final = _CONTROLS * 8 * 16 * 4  # keys of a position
_MIX: Final = 2_654_435_769  # 2^32 over the golden ratio: neighbours come far apart

KIND: Final = np.dtype(
    [
        ("key", "<i8"),  # the plans' common key, see `kind_after`; 0: none
        ("heir", "<i8"),  # owner of the region after the move, a row of features
        ("owner", "<i8"),  # the same
        ("powers", "<i8", (MAX_TEAMS,)),  # strengths there after the move, less the paladins placed
        ("hold", "<f8", (MAX_TEAMS,)),  # the feature, less what that region adds
        ("attack", "<f8", (MAX_TEAMS,)),  # the same
        ("rest", "<f8", (MAX_TEAMS,)),  # the score, less what the clans and that region add
        ("winners", "<i8"),  # where the game is over, bit t: team t has won; else 0
    ]
)


class Kinds(NamedTuple):
    """Cached values of the kinds of plans in one position, and scratch to compute them."""

    serial: Annotated[I64, 1]  # number of the position; values of others are stale
    scores: Annotated[F64, MAX_TEAMS]  # scratch: the scores of a plan that is played out
    states: Annotated[States, 2, STATE]  # where plans are played out
    # By clan and share: `CLAN_FEATURES` of that clan alone; the same, times their weights and added
    # up; and see `_effect`.
    clans: Annotated[F64, CLANS, _SHARES, MAX_TEAMS, len(FEATURES)]
    weighed: Annotated[F64, CLANS, _SHARES, MAX_TEAMS]
    effects: Annotated[I64, CLANS, _SHARES]
    # By who controls the clans and the steps from the Emperor: the strength of each team on that
    # region before paladins are placed there; last the owner's row.
    powers: Annotated[I64, _CONTROLS, TERRITORIES + 1, MAX_TEAMS + 1]
    powers_of: Annotated[I64, _CONTROLS]  # serial number of the position whose powers those are
    kinds: Annotated[Records, _ROWS, KIND]  # each at the row of `_row`; a newer one takes its place
    features: Annotated[F64, _ROWS, MAX_TEAMS + 1, len(FEATURES)]  # of each kind, `write_features`


class PlanContext(NamedTuple):
    """Inputs of a list of plans."""

    before: np.void  # the position
    weights: npt.NDArray[np.float64]  # ``(F,)`` float64: of the evaluation
    targets: int  # paladins may go to regions less than that many steps from the Emperor


# ------------------------------------------------------------------------------------ shares


@kernel
def share_of(shares: Int, clan: Int) -> Int:
    """Return the clan's share."""
    return shares >> 8 * clan & 255


@kernel
def with_one_more(shares: Int, clan: Int, to: Int) -> Int:
    """Return the shares with one more paladin of the clan, ``TO_COURT`` or ``TO_REGION``."""
    return shares + (to << 8 * clan)


@kernel
def _effect(clan: Int, team: Int, before: Int, on_region: Int) -> Int:
    """Return the effect of a clan's share as a number; those of all clans are added up.

    Bit ``clan`` says that another team controls the clan now than before; byte 1 + t is by how many
    paladins team t is stronger on the region.
    """
    added = 0 if team == NOBODY else on_region << 8 * (1 + team)
    return added + (int64(team != before) << clan)


@kernel
def slack(weights: F64) -> float:
    """Return the maximum error of a difference of rough scores; rounding stays far below."""
    total = 1.0
    for k in range(weights.shape[0]):
        total += abs(weights[k])
    return _ROUGH * total


@kernel
def _weighed_clans(features: F64, weights: F64) -> float:
    """Return a team's `CLAN_FEATURES` times their weights, added up."""
    total = 0.0
    for k in range(_FIRST, _LAST + 1):
        total += weights[k] * features[k]
    return total


@inlined
def begin_kinds(context: PlanContext, kinds: Kinds) -> None:
    """Reset the cache, and compute the effects of each clan's paladins in this position."""
    s, weights = context.before, context.weights
    kinds.serial[0] += 1
    most = int64(s["placements_left"])
    player = int64(s["player"])
    for clan in range(CLANS):
        at_hand = min(most, int64(s["reserves"][player, clan]))
        before = controlling_team(s, clan)
        kinds.states[0] = s
        for court in range(at_hand + 1):
            if court > 0:
                place_paladin(kinds.states[0], clan, 0)
            team = controlling_team(kinds.states[0], clan)
            kinds.states[1] = kinds.states[0]
            for on_region in range(at_hand + 1 - court):
                if on_region > 0:
                    place_paladin(kinds.states[1], clan, 1)  # any region: they are summed
                share = court * TO_COURT + on_region * TO_REGION
                kinds.effects[clan, share] = _effect(clan, team, before, on_region)
                counted = kinds.clans[clan, share]
                for row in range(MAX_TEAMS):
                    for k in range(_FIRST, _LAST + 1):
                        counted[row, k] = 0.0
                count_clan(kinds.states[1], clan, counted)
                for row in range(MAX_TEAMS):
                    kinds.weighed[clan, share, row] = _weighed_clans(counted[row], weights)


# ------------------------------------------------------------------------------------ kinds


@kernel
def _row(key: Int) -> Int:
    """Return the row of `Kinds` where the kind belongs."""
    return ((key % _KEYS * _MIX) & 0xFFFFFFFF) * _ROWS >> 32


@separate
def _place_all(s: np.void, shares: Int, destination: Int) -> None:
    """Place the paladins: those for the region at ``destination``, nowhere if that is NOBODY."""
    for clan in range(CLANS):
        court, on_region = share_of(shares, clan) // TO_COURT, share_of(shares, clan) % TO_COURT
        for _ in range(court):
            place_paladin(s, clan, 0)
        if destination != NOBODY:
            for _ in range(on_region):
                place_paladin(s, clan, destination)


@separate
def _write_powers(shares: Int, control: Int, context: PlanContext, kinds: Kinds) -> None:
    """Write ``powers`` where plans with these shares leave control."""
    s = context.before
    kinds.powers_of[control] = kinds.serial[0]
    kinds.states[0] = s
    after = kinds.states[0]
    _place_all(after, shares, NOBODY)
    for target in range(1, context.targets):
        region = region_at(s, target)
        for team in range(int64(s["teams"])):
            kinds.powers[control, target, team] = strength(after, region, team)
        for team in range(int64(s["teams"]), MAX_TEAMS):
            kinds.powers[control, target, team] = 0
        kinds.powers[control, target, MAX_TEAMS] = int64(s["region_owner"][region]) & NOBODY_ROW


@kernel
def _region_with(s: np.void, territory: Int) -> Int:
    """Return the index of the territory's region; the last may go on past the first."""
    result = int64(s["regions"]) - 1
    for region in range(int64(s["regions"])):
        if int64(s["region_first"][region]) <= territory:
            result = region
    return result


@kernel
def _write_clans(shares: Int, teams: Int, clans: F64, features: F64) -> None:
    """Write `CLAN_FEATURES`: the sums of what each clan's share leads to."""
    for team in range(teams):
        for k in range(_FIRST, _LAST + 1):
            total = 0.0
            for clan in range(CLANS):
                total += clans[clan, share_of(shares, clan), team, k]
            features[team, k] = total


@separate
def _learn_kind(shares: Int, added: Int, key: Int, context: PlanContext, kinds: Kinds) -> None:
    """Play a plan out, and store what all plans of its kind share.

    Plans that end the game are not cached as a kind: their scores are known at once.
    """
    row, target, stop = _row(key), key >> 2 & 15, key >> 6 & 7  # see `kind_after`
    s, weights, scores = context.before, context.weights, kinds.scores
    kind, features = kinds.kinds[row], kinds.features[row]
    kinds.states[0] = s
    after = kinds.states[0]
    _place_all(after, shares, 1 + target % int64(s["regions"]))
    move_emperor(after, stop)
    kind["winners"] = int64(after["winners"]) if after["phase"] == OVER else 0
    if after["phase"] == OVER:
        kind["key"] = 0
        return
    kind["key"] = key
    forget_features(features)
    _write_clans(shares, int64(s["teams"]), kinds.clans, features)
    count_but_clans(after, features)
    weigh(features, weights, scores)
    # The region of the paladins, which may have merged with others.
    region = _region_with(after, int64(s["region_first"][region_at(s, target)]))
    owner = int64(after["region_owner"][region]) & NOBODY_ROW
    power_0, power_1 = strength(after, region, 0), strength(after, region, 1)
    power_2 = strength(after, region, 2) if s["teams"] > 2 else 0
    kind["heir"] = heir_of(owner, power_0, power_1, power_2)
    kind["owner"] = owner
    kind["powers"][0] = power_0 - (added & 255)
    kind["powers"][1] = power_1 - (added >> 8 & 255)
    kind["powers"][2] = power_2 - (added >> 16 & 255)
    margin_0, margin_1, margin_2 = _margins_of(power_0, power_1, power_2)
    for team in range(MAX_TEAMS):
        own = margin_0 if team == 0 else (margin_1 if team == 1 else margin_2)
        owns = int64(team == owner)
        kind["hold"][team] = features[team, HOLD] - own * owns
        kind["attack"][team] = features[team, ATTACK] - own * (1 - owns)
        kind["rest"][team] = scores[team] - own * weights[HOLD if owns == 1 else ATTACK]
        kind["rest"][team] -= _weighed_clans(features[team], weights)


@kernel
def _margins_of(power_0: Int, power_1: Int, power_2: Int) -> tuple[Int, Int, Int]:
    margin_0, margin_1 = margin(power_0, power_1, power_2), margin(power_1, power_0, power_2)
    return margin_0, margin_1, margin(power_2, power_0, power_1)


@kernel
def _powers(kind: np.void, added: Int) -> tuple[Int, Int, Int]:
    """Return each team's strength on the region with the paladins, after a plan of the kind."""
    power_0 = int64(kind["powers"][0]) + (added & 255)
    power_1 = int64(kind["powers"][1]) + (added >> 8 & 255)
    return power_0, power_1, int64(kind["powers"][2]) + (added >> 16)


@inlined
def kind_after(
    shares: Int, effect: Int, target: Int, stop: Int, context: PlanContext, kinds: Kinds
) -> Any:
    """Return the row in `Kinds` of a plan's kind; a new kind is learnt.

    ``effect`` is the sum of the placements' effects; those not for the court are ``target`` steps
    from the Emperor, who goes ``stop`` steps.
    """
    serial = kinds.serial[0]
    control, added = effect % _CONTROLS, effect >> 8
    if kinds.powers_of[control] != serial:
        _write_powers(shares, control, context, kinds)
    powers = kinds.powers[control, target]
    added_0, added_1, added_2 = added & 255, added >> 8 & 255, added >> 16
    heir = heir_of(powers[MAX_TEAMS], powers[0] + added_0, powers[1] + added_1, powers[2] + added_2)
    key = (((serial * _CONTROLS + control) * 8 + stop) * 16 + target) * 4 + heir
    row = _row(key)
    kind = kinds.kinds[row]
    power_0, power_1, power_2 = _powers(kind, added)
    heir = heir_of(int64(kind["owner"]), power_0, power_1, power_2)
    if kind["key"] != key or kind["heir"] != heir:  # new, or merged to another heir
        _learn_kind(shares, added, key, context, kinds)
    return row


@kernel
def _margins(kind: np.void, effect: Int) -> tuple[Int, Int, Int]:
    """Return each team's margin on the region with the paladins, after a plan of the kind."""
    power_0, power_1, power_2 = _powers(kind, effect >> 8)
    return _margins_of(power_0, power_1, power_2)


@kernel
def write_weighed_clans(shares: Int, kinds: Kinds, weighed: F64) -> None:
    """Write what the clans add to each team's rough score after placements, ``(3,)`` float64."""
    clans = kinds.weighed
    total_0, total_1, total_2 = 0.0, 0.0, 0.0
    for clan in range(CLANS):
        share = share_of(shares, clan)
        total_0 += clans[clan, share, 0]
        total_1 += clans[clan, share, 1]
        total_2 += clans[clan, share, 2]
    weighed[0], weighed[1], weighed[2] = total_0, total_1, total_2


@kernel
def write_rough_scores(
    row: Int, effect: Int, weighed: F64, weights: F64, kinds: Kinds, scores: F64
) -> None:
    """Write each team's score after a plan, but for rounding; see `write_weighed_clans`."""
    kind = kinds.kinds[row]
    if kind["winners"] != 0:
        write_final_scores(kind["winners"], scores)
        return
    margin_0, margin_1, margin_2 = _margins(kind, effect)
    owner = int64(kind["owner"])
    factor_0 = weights[HOLD] if owner == 0 else weights[ATTACK]
    factor_1 = weights[HOLD] if owner == 1 else weights[ATTACK]
    factor_2 = weights[HOLD] if owner == 2 else weights[ATTACK]
    scores[0] = kind["rest"][0] + weighed[0] + margin_0 * factor_0
    scores[1] = kind["rest"][1] + weighed[1] + margin_1 * factor_1
    scores[2] = kind["rest"][2] + weighed[2] + margin_2 * factor_2


@inlined
def write_scores_after(
    row: Int, shares: Int, effect: Int, context: PlanContext, kinds: Kinds, scores: F64
) -> None:
    """Write each team's score after a plan, as `write_scores` does in the position after it."""
    kind, features, teams = kinds.kinds[row], kinds.features[row], int64(context.before["teams"])
    if kind["winners"] != 0:
        write_final_scores(kind["winners"], scores)
        return
    margin_0, margin_1, margin_2 = _margins(kind, effect)
    _write_clans(shares, teams, kinds.clans, features)
    for team in range(teams):
        own = margin_0 if team == 0 else (margin_1 if team == 1 else margin_2)
        owns = int64(kind["owner"] == team)
        features[team, HOLD] = kind["hold"][team] + own * owns
        features[team, ATTACK] = kind["attack"][team] + own * (1 - owns)
    weigh(features, context.weights, scores)
