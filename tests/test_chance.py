"""Dice: what they can show, how likely, that their order never matters, and given rolls."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import strategies
from hypothesis import given
from scipy import stats
from strategies import history, rules, seeds

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import CROWN, FACES, OVER, Rules
from carolus_env.engine.state import equal, to_bytes


@pytest.mark.parametrize("dice", range(1, 10))
def test_outcomes_are_complete_unique_sum_to_one_and_their_ways_are_the_ordered_rolls(dice):
    faces, ways, probabilities = chance.chance_outcomes(dice)
    shown = [tuple(row) for row in faces.tolist()]
    assert all(row == tuple(sorted(row)) and set(row) <= set(range(FACES)) for row in shown)
    assert len(set(shown)) == len(shown) == math.comb(dice + FACES - 1, dice)
    assert ways.sum() == FACES**dice
    assert probabilities.tolist() == [float(Fraction(int(w), FACES**dice)) for w in ways]
    assert math.fsum(probabilities) == pytest.approx(1, abs=1e-15)
    if dice <= 4:
        rolls = itertools.product(range(FACES), repeat=dice)
        counted = Counter(tuple(sorted(roll)) for roll in rolls)
        assert dict(zip(shown, ways.tolist(), strict=True)) == counted


def test_outcomes_take_the_number_of_dice_from_a_game_and_are_shared():
    """A uint8: 6**dice would not fit, and must not be kept for the next who asks."""
    games = engine.new_games(Rules(players=3), seed=0, roll=False)
    chance._outcomes.cache_clear()
    assert chance.chance_outcomes(games["dice_due"][0]).probabilities.sum() == pytest.approx(1)
    assert chance.chance_outcomes(9).ways.sum() == 6**9
    for array in chance.chance_outcomes(3):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for dice in (0, 10, -1):
        with pytest.raises(ValueError, match=f"dice .* 1 to 9, got {dice}"):
            chance.chance_outcomes(dice)


@pytest.mark.parametrize(
    ("players", "due"), [(2, "set-up"), (2, "turn"), (3, "set-up"), (3, "turn")]
)
def test_rolls_are_as_likely_as_the_outcomes_say(players, due):
    """Each face on each die, and each multiset: 100,000 rolls, one from each of as many games."""
    games = engine.new_games(Rules(players=players), 100_000, seed=1, roll=False)
    if due == "turn":
        games["round"], games["dice_due"] = 1, Rules(players=players).dice
    rolled = chance.draw_faces(games)
    dice = rolled.shape[1]
    for die in range(dice):
        assert stats.chisquare(np.bincount(rolled[:, die], minlength=FACES)).pvalue > 0.001
    assert stats.chisquare(np.bincount(rolled.ravel(), minlength=FACES)).pvalue > 0.001

    faces, _, probabilities = chance.chance_outcomes(dice)
    number = {row: k for k, row in enumerate(map(tuple, faces.tolist()))}
    shown = map(tuple, np.sort(rolled, axis=1).tolist())
    counts = np.bincount([number[row] for row in shown], minlength=len(faces))
    expected = probabilities * len(rolled)
    # Chi-square wants no tiny classes: those below 5 expected rolls make one.
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(counts, expected).pvalue > 0.001


def test_dice_of_one_game_and_of_neighbouring_seeds_are_fair_from_roll_to_roll():
    """One generator, moved on 100,000 times: faces, and faces of neighbouring rolls together."""
    game = engine.new_games(Rules(), 1, seed=2, roll=False)
    rolled = np.concatenate([chance.draw_faces(game) for _ in range(20_000)])
    games = chance.draw_faces(engine.new_games(Rules(), 100_000, seed=3, roll=False))
    assert stats.chisquare(np.bincount(rolled.ravel())).pvalue > 0.001
    for one, other in (
        (rolled[:-1, 0], rolled[1:, 0]),
        (rolled[:, 0], rolled[:, 1]),
        (games[:-1, 0], games[1:, 0]),
    ):
        counts = np.bincount(one * FACES + other, minlength=FACES**2)
        assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_order_of_dice_never_matters(players, deferred):
    """Every order of the dice, where clans run out in mid-roll and courts return some of them."""
    random = np.random.default_rng(players)
    kind = Rules(players=players, crown_choice="deferred" if deferred else "on_roll")
    games = engine.new_games(kind, 500, seed=players, roll=False)
    games["round"], games["dice_due"] = 1, kind.dice
    games["supply"] = random.integers(0, 3, (500, 5))
    games["courts"][:, :players] = random.integers(0, 4, (500, players, 5))
    faces = random.integers(0, FACES, (500, kind.dice))
    faces[::2, 1] = faces[::2, 0]  # many of a kind, so that they run out

    before, first = games.copy(), None
    for order in itertools.permutations(range(kind.dice)):
        rolled = before.copy()
        chance.apply_roll(rolled, faces[:, order])
        first = rolled if first is None else first
        assert equal(rolled, first).all()

    returned = (first["courts"].sum(axis=1) < before["courts"].sum(axis=1)).any(axis=1)
    crowns = first["crowns"].sum(axis=1) > (faces == CROWN).sum(axis=1)
    assert returned.sum() > 20 and crowns.sum() > 20


@given(rules, seeds)
def test_drawing_and_applying_is_what_step_does_itself(rules, seed):
    rolled, taken = (engine.new_games(rules, 6, seed=seed, roll=False) for _ in range(2))
    generators = strategies.new_streams(seed, 6)
    chance.roll(rolled)
    apply_what_is_due(taken)
    for _ in range(60):
        assert to_bytes(rolled) == to_bytes(taken)
        rows = np.flatnonzero(~engine.is_over(rolled))
        actions = strategies.random_moves(rolled, generators, rows)
        engine.step(rolled, actions, rows=rows)
        engine.step(taken, actions, rows=rows, roll=False)
        apply_what_is_due(taken)


def apply_what_is_due(states):
    while (due := chance.roll_due(states)).any():
        for row in np.flatnonzero(due)[:, None]:
            chance.apply_roll(states, chance.draw_faces(states, rows=row), rows=row)


def test_rows_pick_games_given_rolls_move_no_generator_and_roll_leaves_what_is_not_due():
    games = engine.new_games(Rules(), 4, seed=6, roll=False)
    before, alike = games.copy(), games.copy()
    rows, none = np.array([3, 1]), np.zeros(0, np.int64)
    chance.apply_roll(games, [[0] * 7, [1] * 7], rows=rows)
    assert equal(games, before).tolist() == [True, False, True, False]
    assert games["reserves"][rows].sum(axis=1).tolist() == [[7, 0, 0, 0, 0], [0, 7, 0, 0, 0]]
    assert (games["generator"] == before["generator"]).all()
    chance.apply_roll(alike, [0] * 7)  # one roll for all
    assert equal(alike, games).tolist() == [False, False, False, True]
    faces = chance.draw_faces(games, rows=rows)
    assert (games["generator"] == before["generator"]).tolist() == [True, False, True, False]
    assert (faces == chance.draw_faces(before[rows])).all()
    decided = engine.new_games(Rules(), 4, seed=6)  # no rows are no rolls, whatever is due
    before = to_bytes(decided)
    assert len(chance.draw_faces(decided, rows=none)) == 0
    chance.apply_roll(decided, np.zeros((0, 7), int), rows=none)
    chance.apply_roll(decided[:0].copy(), np.zeros((0, 3), int))
    assert to_bytes(decided) == before
    for kind in strategies.ALL_KINDS[:2]:
        states = history(kind, 1, games=2).reshape(-1)
        still = states[~chance.roll_due(states)]
        assert (still["phase"] == OVER).any()
        before = to_bytes(still)
        chance.roll(still)
        assert to_bytes(still) == before


def test_impossible_faces_and_a_roll_that_is_not_due_are_refused():
    for faces, named in (
        ([0] * 6, r"\(2, 7\) or \(7,\), got .*\(6,\)"),
        ([[0] * 7], r"\(1, 7\)"),
        ([True] * 7, "bool"),
        *(([0] * 6 + [face], f"0 to 5, .* {face}") for face in (6, -1, 256)),
        ([0] * 6 + [10**30], "object"),
    ):
        games = engine.new_games(Rules(), 2, seed=0, roll=False)
        before = to_bytes(games)
        with pytest.raises(ValueError, match=f"faces .*{named}"):
            chance.apply_roll(games, faces)
        assert to_bytes(games) == before
    games = engine.new_games(Rules(), 2, seed=0, roll=False)
    mixed = games.copy()
    for _ in range(2):
        chance.apply_roll(games, [0] * 7, rows=np.array([0]))
    mixed[1] = engine.new_games(Rules(players=3), 1, seed=0, roll=False)[0]
    for states, due in ((games, "0, 7"), (mixed, "7, 9")):
        before = to_bytes(states)
        for call in (chance.draw_faces, lambda states: chance.apply_roll(states, [0] * 7)):
            with pytest.raises(ValueError, match=rf"same number of dice, .* \[{due}\]"):
                call(states)
        assert to_bytes(states) == before
