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
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules
from carolus_env.engine.kernels.courts import reserve_size
from carolus_env.engine.kernels.packed import NOTHING
from carolus_env.engine.kernels.regions import count_at, heir_of, paladins_out, strengths
from carolus_env.engine.kernels.turns import acts_this_round
from carolus_env.engine.rules import CLANS, DICE, DISCS, MAX_TEAMS, NOBODY, OVER, TEAMS
from carolus_env.engine.state import States, as_states
from carolus_env.system.arrays import F64, Int, Records, int64
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
    Feature(
        "lead", 0.1, "lead in court over all other players in each of those clans, at most 6 each"
    ),
    Feature(
        "lead_paladins", 0.1, "the same, each times a tenth of the clan's paladins on the regions"
    ),
    Feature(
        "backing", 0.2, "paladins of those clans in the reserves of the players who control them"
    ),
    Feature(
        "takeable", 0.3, "clans of other teams that one of its players could take from its reserve"
    ),
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
_MARGIN, _LEAD = 3, 6

_HIGHEST = np.array([hand.bit_length() for hand in range(1 << DISCS)])


# ------------------------------------------------------------------------------------ features


@kernel
def count_clan(s: np.void, clan: Int, features: F64) -> None:
    """Add one clan to `CLAN_FEATURES`: all that they hold is a sum over the clans."""
    out = paladins_out(s, clan)
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
def margin(power: Int, other: Int, third: Int) -> Int:
    """Return a team's lead in strength over every other, within bounds."""
    return min(max(power - max(other, third), -_MARGIN), _MARGIN)


@inlined
def _count_regions(s: np.void, features: F64) -> None:
    count, emperor = int64(s["regions"]), int64(s["emperor"])
    three = int64(s["teams"] > 2)
    circle_0, circle_1 = strengths(s, 0), strengths(s, 1)
    circle_2 = strengths(s, 2) if three else (NOTHING, NOTHING)
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
        margin_0 = margin(power_0, power_1, power_2)
        margin_1 = margin(power_1, power_0, power_2)
        margin_2 = margin(power_2, power_0, power_1) * three
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
        features[team, HIGHEST] += _HIGHEST[hand]
        features[team, RESERVE] += int64(s["crowns"][player])
        features[team, RESERVE] += reserve_size(s, player)


@kernel
def forget_features(features: F64) -> None:
    """Write zeros."""
    for team in range(MAX_TEAMS):
        for k in range(features.shape[1]):
            features[team, k] = 0.0


@inlined
def write_features(s: np.void, features: F64) -> None:
    """Write `FEATURES` of each team to ``features``, ``(4, F)`` float64; the last row is unused."""
    forget_features(features)
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
def write_chances(scores: F64, teams: Int, chances: F64) -> None:
    """Write each team's win probability: the softmax of the scores."""
    most = max(scores[0], scores[1])
    most = max(most, scores[2]) if teams > 2 else most
    total = 0.0
    for team in range(teams):
        chances[team] = np.exp(scores[team] - most)
        total += chances[team]
    for team in range(teams):
        chances[team] /= total


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
    return np.array(weights, order="C")


def features(states: States) -> npt.NDArray[np.float64]:
    """Return `FEATURES` of each team: ``(N, 3, F)`` float64, zeros for missing teams."""
    counted = np.zeros((len(as_states(states)), MAX_TEAMS + 1, len(FEATURES)))
    _features(states, counted)
    return counted[:, :MAX_TEAMS]


def chances(
    states: States, weights: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Return each team's win probability: ``(N, 3)`` float64; rows sum to 1.

    Args:
        states: ``(N,)`` games at any point; when a game is over, the winners share probability 1.
        weights: ``(5, F)`` by number of players; None: the fitted ones.
    """
    won = np.zeros((len(as_states(states)), MAX_TEAMS))
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
        write_chances(scores, int64(s["teams"]), chances[g])
