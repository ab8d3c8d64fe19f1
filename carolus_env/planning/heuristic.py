"""Evaluation of positions for each team: features, their weights, and win probabilities.

A team's *score* is the sum of its features times their weights (``weights.json``), and the teams'
win probabilities are the softmax of their scores. So only differences between teams count. Two,
three and four players have the same features and separate weights. The weights are fitted to the
results of games (``python -m agents.fit_planner``), not set by hand.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules
from carolus_env.engine.kernels import regions
from carolus_env.engine.kernels.courts import NOTHING, controlling_team, reserve_size
from carolus_env.engine.kernels.regions import count_at, heir_of, region_at, strength
from carolus_env.engine.kernels.turns import acts_this_round, move_emperor, place_paladin
from carolus_env.engine.rules import CLANS, DICE, DISCS, MAX_TEAMS, NOBODY, OVER, TEAMS
from carolus_env.engine.state import STATE, States, as_states
from carolus_env.system.arrays import F64, I64, Int, Records, float32, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.untrusted import shown


class Feature(NamedTuple):
    """A number that is counted for each team."""

    name: str
    scale: float  # factor of the networks' input, which makes its maximum about one
    meaning: str


FEATURES: Final = (
    Feature("castles", 0.1, "castles in play"),
    Feature("castles_squared", 0.1, "the square of that, divided by the castles needed to win"),
    Feature("clans", 0.25, "clans controlled by its players"),
    Feature("influence", 0.05, "paladins of those clans on the regions"),
    Feature("lead", 0.1, "lead in court over all other players in each such clan, at most 6 each"),
    Feature("lead_paladins", 0.1, "the same, times a tenth of the clan's paladins on the regions"),
    Feature("backing", 0.2, "paladins of those clans in the reserves of their controllers"),
    Feature("takeable", 0.3, "other teams' clans that a player could take from its reserve"),
    Feature("takeable_paladins", 0.05, "paladins of those clans on the regions"),
    Feature("ahead_1", 0.3, "territories that it would own if the Emperor stopped one step ahead"),
    Feature("ahead_2", 0.3, "the same, two steps ahead"),
    Feature("ahead_3", 0.3, "the same, three steps ahead"),
    Feature("ahead_far", 0.1, "the same, summed over all other regions"),
    Feature("hold", 0.05, "margins of strength on its regions, each from -3 to 3"),
    Feature("attack", 0.05, "margins of strength on all other regions, each from -3 to 3"),
    Feature("gain", 0.3, "most castles that one of its players still to act this round can win"),
    Feature("last_blow", 1.0, "1 if that would win the game, else 0"),
    Feature("turns_left", 0.5, "turns of its players still to come this round"),
    Feature("highest", 0.1, "sum of the highest discs in its players' hands"),
    Feature("reserve", 0.05, "paladins in its players' reserves, crowns included"),
)
(
    CASTLES, CASTLES_SQUARED, CLANS_HELD, INFLUENCE, LEAD, LEAD_PALADINS, BACKING,
    TAKEABLE, TAKEABLE_PALADINS, AHEAD_1, AHEAD_2, AHEAD_3, AHEAD_FAR,
    HOLD, ATTACK, GAIN, LAST_BLOW, TURNS_LEFT, HIGHEST, RESERVE,
) = range(len(FEATURES))  # fmt: skip

assert AHEAD_FAR == AHEAD_1 + 3
CLAN_FEATURES: Final = (CLANS_HELD, TAKEABLE_PALADINS)
"""The first and the last of the features that `count_clan` counts."""

NOBODY_ROW: Final = NOBODY & 3  # the row of features after the last team
assert NOBODY_ROW == MAX_TEAMS
SURE: Final = 50.0  # the winners' score when the game is over
_LARGEST: Final = 1e100  # weight
_MARGIN, _LEAD = 3, 6

HIGHEST_DISC: Final = np.array([hand.bit_length() for hand in range(1 << DISCS)])  # of each hand


# ------------------------------------------------------------------------------------ features


@kernel
def count_clan(s: np.void, clan: Int, features: F64) -> None:
    """Add one clan to `CLAN_FEATURES`: all that they hold is a sum over the clans."""
    out = regions.paladins_out(s, clan)
    holder = int64(s["control"][clan])
    holding_team = int64(s["team"][holder]) if holder != NOBODY else NOBODY
    most, second, first = -1, -1, NOBODY  # counts and holder of the largest courts
    for player in range(int64(s["players"])):
        count = int64(s["courts"][player, clan])
        if count > most:
            most, second, first = count, most, player
        elif count > second:
            second = count
    if holder != NOBODY:
        rival = second if holder == first else most
        features[holding_team, CLANS_HELD] += 1
        features[holding_team, INFLUENCE] += out
        lead = int64(s["courts"][holder, clan]) - rival
        lead = min(lead, _LEAD)
        features[holding_team, LEAD] += lead
        features[holding_team, LEAD_PALADINS] += lead * out * 0.1
        features[holding_team, BACKING] += int64(s["reserves"][holder, clan])
    for player in range(int64(s["players"])):
        team = int64(s["team"][player])
        if team == holding_team:
            continue
        rival = second if player == first else most
        needed = rival + 1 - int64(s["courts"][player, clan])
        at_hand = min(int64(s["reserves"][player, clan]), DICE[int64(s["players"])])
        if needed <= at_hand:
            features[team, TAKEABLE] += 1
            features[team, TAKEABLE_PALADINS] += out


@kernel
def _margins(power_0: Int, power_1: Int, power_2: Int) -> tuple[Int, Int, Int]:
    """Return each team's lead in strength over every other, within bounds."""
    margin_0 = min(max(power_0 - max(power_1, power_2), -_MARGIN), _MARGIN)
    margin_1 = min(max(power_1 - max(power_0, power_2), -_MARGIN), _MARGIN)
    return margin_0, margin_1, min(max(power_2 - max(power_0, power_1), -_MARGIN), _MARGIN)


@inlined
def _count_regions(s: np.void, features: F64) -> None:
    count, emperor = int64(s["regions"]), int64(s["emperor"])
    three = int64(s["teams"] > 2)
    circle_0, circle_1 = regions.strengths(s, 0), regions.strengths(s, 1)
    circle_2 = regions.strengths(s, 2) if three else (NOTHING, NOTHING)
    reach_0, reach_1, reach_2 = 0, 0, 0  # by team: the highest disc of those still to act
    for place in range(int64(s["players"])):
        if acts_this_round(s, place):
            player = int64(s["order"][place])
            team, disc = int64(s["team"][player]), int64(s["discs_played"][player])
            features[team, TURNS_LEFT] += 1
            reach_0 = max(reach_0, disc) if team == 0 else reach_0
            reach_1 = max(reach_1, disc) if team == 1 else reach_1
            reach_2 = max(reach_2, disc) if team == 2 else reach_2
    hold_0, hold_1, hold_2, attack_0, attack_1, attack_2 = 0, 0, 0, 0, 0, 0
    for region in range(count):
        steps = region - emperor
        steps = steps + count if steps <= 0 else steps
        owner, castles = int64(s["region_owner"][region]), int64(s["region_castles"][region])
        size = max(castles, 1)
        owns_0, owns_1, owns_2 = int64(owner == 0), int64(owner == 1), int64(owner == 2)
        power_0 = count_at(circle_0, region) + castles * owns_0
        power_1 = count_at(circle_1, region) + castles * owns_1
        power_2 = count_at(circle_2, region) + castles * owns_2
        # NOBODY_ROW comes after the last team and is never read.
        heir = heir_of(owner & NOBODY_ROW, power_0, power_1, power_2)
        features[heir, AHEAD_1 + min(steps, 4) - 1] += size
        if heir != owner & NOBODY_ROW:
            reach = reach_0 if heir == 0 else (reach_1 if heir == 1 else reach_2)
            if steps <= reach:
                features[heir, GAIN] = max(features[heir, GAIN], size)
        margin_0, margin_1, margin_2 = _margins(power_0, power_1, power_2)
        margin_2 *= three
        hold_0, attack_0 = hold_0 + margin_0 * owns_0, attack_0 + margin_0 * (1 - owns_0)
        hold_1, attack_1 = hold_1 + margin_1 * owns_1, attack_1 + margin_1 * (1 - owns_1)
        hold_2, attack_2 = hold_2 + margin_2 * owns_2, attack_2 + margin_2 * (1 - owns_2)
    features[0, HOLD], features[1, HOLD], features[2, HOLD] = hold_0, hold_1, hold_2
    features[0, ATTACK], features[1, ATTACK], features[2, ATTACK] = attack_0, attack_1, attack_2


@separate
def count_but_clans(s: np.void, features: F64) -> None:
    """Write all of `FEATURES` but those of the clans to rows that hold zeros."""
    _count_regions(s, features)
    to_win = rules.CASTLES_TO_WIN[int64(s["players"])]
    for team in range(int64(s["teams"])):
        castles = int64(s["castles"][team])
        features[team, CASTLES] = castles
        features[team, CASTLES_SQUARED] = castles * castles / to_win
        if features[team, GAIN] > 0 and castles + features[team, GAIN] >= to_win:
            features[team, LAST_BLOW] = 1.0
    for player in range(int64(s["players"])):
        team, hand = int64(s["team"][player]), int64(s["discs_in_hand"][player])
        features[team, HIGHEST] += HIGHEST_DISC[hand]
        features[team, RESERVE] += int64(s["crowns"][player])
        features[team, RESERVE] += reserve_size(s, player)


@kernel
def clear_features(features: F64) -> None:
    """Write zeros."""
    for team in range(MAX_TEAMS):
        for k in range(features.shape[1]):
            features[team, k] = 0.0


@inlined
def write_features(s: np.void, features: F64) -> None:
    """Write `FEATURES` of each team to ``features``, ``(4, F)`` float64; the last row is unused."""
    clear_features(features)
    for clan in range(CLANS):
        count_clan(s, clan, features)
    count_but_clans(s, features)


# ------------------------------------------------------------------------------------ scores


@kernel
def weigh(features: F64, weights: F64, scores: F64) -> None:
    """Write the sum of each team's features times their weights to ``scores``."""
    score_0, score_1, score_2 = 0.0, 0.0, 0.0  # three sums at once: none waits for another
    for k in range(len(FEATURES)):
        score_0 += weights[k] * features[0, k]
        score_1 += weights[k] * features[1, k]
        score_2 += weights[k] * features[2, k]
    scores[0], scores[1], scores[2] = score_0, score_1, score_2


@kernel
def write_final_scores(winners: Int, scores: F64) -> None:
    """Write each team's score where the game is over: `SURE` if it has won (bit t), else 0."""
    for team in range(MAX_TEAMS):
        scores[team] = SURE * (int64(winners) >> team & 1)


@separate
def write_scores(s: np.void, weights: F64, features: F64, scores: F64) -> None:
    """Write each team's score to ``scores``, ``(3,)`` float64; `SURE` if it has won."""
    if s["phase"] == OVER:
        write_final_scores(s["winners"], scores)
        return
    write_features(s, features)
    weigh(features, weights, scores)


@kernel
def rivals(team: Int, teams: Int) -> tuple[Int, Int]:
    """Return the two other teams; of two teams the other one, twice."""
    first = (team + 1) % teams
    return first, first if teams == 2 else (team + 2) % teams


@kernel
def advantage(scores: F64, team: Int, teams: Int) -> Any:
    """Return the team's log odds of winning: its score less the log-sum-exp of the other scores."""
    first, second = rivals(team, teams)
    if teams == 2:
        return scores[team] - scores[first]
    high, low = max(scores[first], scores[second]), min(scores[first], scores[second])
    return scores[team] - high - np.log1p(np.exp(low - high))


def _tangent(x: float) -> tuple[float, float]:
    """Return slope and value at 0 of the tangent to log(1 + exp) at ``x``, safe from rounding."""
    slope = 1.0 / (1.0 + math.exp(-x))
    return slope, math.log1p(math.exp(x)) - slope * x - 1e-9


_SLOPE, _AT_0 = _tangent(0.0)
_FLAT_SLOPE, _FLAT_AT_0 = _tangent(-2.0)


@kernel
def advantage_at_most(scores: F64, team: Int, first: Int, second: Int) -> Any:
    """Return a logarithm-free bound of `advantage`; ``first`` and ``second`` are the `rivals`.

    It is exact for two teams. Of three, log(1 + exp(x)) lies above its tangents and above 0.
    """
    high = max(scores[first], scores[second])
    apart = min(scores[first], scores[second]) - high
    least = max(_AT_0 + _SLOPE * apart, _FLAT_AT_0 + _FLAT_SLOPE * apart)
    return scores[team] - high - (0.0 if first == second else max(least, 0.0))


@kernel
def softmax(count: Int, scores: Any, chances: Any) -> tuple[Any, Any]:
    """Write the softmax of the first scores; returns m, the greatest, and the sum of exp(x - m)."""
    most = scores[0]
    for k in range(1, count):
        most = max(most, scores[k])
    total = float32(0)  # of the arrays' type with the first term
    for k in range(count):
        chances[k] = np.exp(scores[k] - most)
        total += chances[k]
    for k in range(count):
        chances[k] /= total
    return most, total


# ------------------------------------------------------------------------------------ kinds
# The scores after a plan, by its differences from another plan of its kind. Two plans are of one
# kind if
#
# - the same teams control the clans after their placements,
# - their paladins on the circle lie on the same region, and it has the same heir, both before and
#   after the Emperor's move (`heir_of`; a merger may change it),
# - the Emperor stops at the same region.
#
# Then the same castles are built and the same regions merge, and all other regions look the same.
# So only these features can differ: those of the clans (`CLAN_FEATURES`), which are sums over the
# clans, and the margins of that one region. The first plan of a kind is played out and its features
# are counted; for the others only what can differ is written anew. All but the sums with tenths are
# whole numbers, and those are added up in the same order, so scores are equal to the last bit (but
# where a region holds more than 255 paladins, see `regions.strengths`). The planner takes three to
# five times as many decisions a second as if each plan were played out.
#
# Most plans are not among the best. Rough scores tell them apart: what is the same in a kind is
# weighed once, and so is each clan's share. They are the scores but for rounding (`slack`).
#
# Placements are a word of shares: byte k is ``TO_COURT`` for each paladin of clan k to the court,
# plus ``TO_REGION`` for each to the region.

TO_REGION: Final = 1
TO_COURT: Final = max(DICE) + 1
_SHARES: Final = TO_COURT * TO_COURT
_FIRST, _LAST = CLAN_FEATURES
_ROUGH: Final = 1e-9

_CONTROLS: Final = 1 << CLANS
_ROWS: Final = 512  # kinds cached at a time, a power of 2
_KEYS: Final = _CONTROLS * 8 * 16 * 4  # keys of a position
_MIX: Final = 2_654_435_769  # 2^32 over the golden ratio: neighbours come far apart

KIND: Final = np.dtype([
    ("key", "<i8"),  # the plans' common key, see `kind_after`; 0: none
    ("heir", "<i8"),  # owner of the region after the move, a row of features
    ("owner", "<i8"),  # the same
    ("powers", "<i8", (MAX_TEAMS,)),  # strengths there after the move, less the paladins placed
    ("hold", "<f8", (MAX_TEAMS,)),  # the feature, less what that region adds
    ("attack", "<f8", (MAX_TEAMS,)),  # the same
    ("rest", "<f8", (MAX_TEAMS,)),  # the score, less what the clans and that region add
    ("winners", "<i8"),  # where the game is over, bit t: team t has won; else 0
])  # fmt: skip


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
    powers: Annotated[I64, _CONTROLS, rules.TERRITORIES + 1, MAX_TEAMS + 1]
    powers_of: Annotated[I64, _CONTROLS]  # serial number of the position whose powers those are
    kinds: Annotated[Records, _ROWS, KIND]  # each at the row of `_row`; a newer one takes its place
    features: Annotated[F64, _ROWS, MAX_TEAMS + 1, len(FEATURES)]  # of each kind, `write_features`


class PlanContext(NamedTuple):
    """Inputs of a list of plans."""

    before: np.void  # the position
    weights: npt.NDArray[np.float64]  # ``(F,)`` float64: of the evaluation
    targets: int  # paladins may go to regions less than that many steps from the Emperor


@kernel
def share_of(shares: Int, clan: Int) -> Int:
    """Return the clan's share."""
    return shares >> 8 * clan & 255


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
def _cache_kind(shares: Int, added: Int, key: Int, context: PlanContext, kinds: Kinds) -> None:
    """Play a plan out, and store what all plans of its kind share, unless it ends the game."""
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
    clear_features(features)
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
    margin_0, margin_1, margin_2 = _margins(power_0, power_1, power_2)
    for team in range(MAX_TEAMS):
        own = margin_0 if team == 0 else (margin_1 if team == 1 else margin_2)
        owns = int64(team == owner)
        kind["hold"][team] = features[team, HOLD] - own * owns
        kind["attack"][team] = features[team, ATTACK] - own * (1 - owns)
        kind["rest"][team] = scores[team] - own * weights[HOLD if owns == 1 else ATTACK]
        kind["rest"][team] -= _weighed_clans(features[team], weights)


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
    """Return the row in `Kinds` of a plan's kind; a new kind is cached.

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
        _cache_kind(shares, added, key, context, kinds)
    return row


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
    power_0, power_1, power_2 = _powers(kind, effect >> 8)
    margin_0, margin_1, margin_2 = _margins(power_0, power_1, power_2)
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
    power_0, power_1, power_2 = _powers(kind, effect >> 8)
    margin_0, margin_1, margin_2 = _margins(power_0, power_1, power_2)
    _write_clans(shares, teams, kinds.clans, features)
    for team in range(teams):
        own = margin_0 if team == 0 else (margin_1 if team == 1 else margin_2)
        owns = int64(kind["owner"] == team)
        features[team, HOLD] = kind["hold"][team] + own * owns
        features[team, ATTACK] = kind["attack"][team] + own * (1 - owns)
    weigh(features, context.weights, scores)


# ------------------------------------------------------------------------------------ weights


@cache
def all_weights() -> npt.NDArray[np.float64]:
    """Return the fitted weights by number of players: ``(5, F)`` float64, read-only."""
    path = Path(__file__).with_name("weights.json")
    table = json.loads(path.read_text())["weights"]
    names = [feature.name for feature in FEATURES]
    weights = np.zeros((len(TEAMS), len(names)))
    for players in (2, 3, 4):
        row = table[str(players)]
        if list(row) != names:
            raise ValueError(f"{path.name}: weights must be of {names}, got {list(row)}")
        weights[players] = list(row.values())
    weights.flags.writeable = False
    return weights


def weights_table(weights: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    """Return weights as kernels read them, ``(5, F)`` float64; None: the fitted ones."""
    if weights is None:
        return all_weights().copy()
    shape = all_weights().shape
    if getattr(weights, "shape", None) != shape or weights.dtype != np.float64:
        raise ValueError(f"weights must be float64 {shape}, got {shown(weights)}")
    if not (np.abs(weights) <= _LARGEST).all():  # NaN, or sums could be none
        raise ValueError(f"weights must be of size {_LARGEST:g} at most, got {shown(weights)}")
    return np.array(weights, order="C")


def features(states: States) -> npt.NDArray[np.float64]:
    """Return `FEATURES` of each team: ``(N, 3, F)`` float64, zeros for missing teams."""
    states = as_states(states)
    counted = np.zeros((len(states), MAX_TEAMS + 1, len(FEATURES)))
    _features(states, counted)
    return counted[:, :MAX_TEAMS]


def chances(
    states: States, weights: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Return each team's win probability: ``(N, 3)`` float64; rows sum to 1, also after the end.

    ``weights`` are ``(5, F)`` by number of players; None: the fitted ones.
    """
    states = as_states(states)
    won = np.zeros((len(states), MAX_TEAMS))
    counted, scores = np.zeros((MAX_TEAMS + 1, len(FEATURES))), np.zeros(MAX_TEAMS)
    _chances(states, weights_table(weights), counted, scores, won)
    return won


@entry
def _features(states: Records, counted: F64) -> None:
    for g in range(states.shape[0]):
        write_features(states[g], counted[g])


@entry
def _chances(states: Records, weights: F64, features: F64, scores: F64, chances: F64) -> None:
    for g in range(states.shape[0]):
        s = states[g]
        write_scores(s, weights[int64(s["players"])], features, scores)
        softmax(int64(s["teams"]), scores, chances[g])
