"""benchmarks/studies/game.py: what it counts, against plain counting."""

from __future__ import annotations

import sys
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
sys.path.append(str(Path(__file__).parent.parent))

from benchmarks.studies import game
from carolus_env.engine.rules import DICE, PLACE, Rules


@pytest.fixture(scope="module", params=[2, 3, 4])
def played(request):
    rules = Rules(request.param)
    return rules, game.play(rules, "greedy", 24, seed=3)


def test_shares_and_positions_are_those_of_whole_games(played):
    rules, games = played
    np.testing.assert_allclose(games.shares.sum(axis=1), 1)
    assert len(games.games) == len(games.positions) == len(games.actions) == len(games.choices)
    assert set(games.games) == set(range(24))
    for part in (game.seats(games, rules.players), game.places(games, rules.players)):
        assert sum(row["mean"] for row in part) == pytest.approx(1, abs=0.2)
    assert sum(row["mean"] for row in game.seats(games, rules.players)) == pytest.approx(1)


def test_whole_turns_are_counted_one_by_one(played):
    rules, games = played
    at = games.positions
    at = at[(at["phase"] == PLACE) & (at["placements_left"] == DICE[rules.players])]
    at = at[np.argsort(at["regions"], kind="stable")][:3]  # few regions: few turns
    for state, found in zip(at, game.whole_turns(at), strict=True):
        reserve = state["reserves"][state["player"]]
        paladins = list(product(range(5), range(int(state["regions"]) + 1)))
        sets = [
            some
            for some in combinations_with_replacement(paladins, int(state["placements_left"]))
            if all(sum(clan == k for clan, _ in some) <= reserve[k] for k in range(5))
        ]
        assert found == len(sets) * int(state["discs_played"][state["player"]])


def test_a_lead_is_worth_what_was_put_into_the_results():
    rules = Rules(4)
    games = game.play(rules, "greedy", 24, seed=3)
    ahead = np.random.default_rng(1).integers(-5, 6, 24)  # castles of team 0 in each game
    games.positions["castles"][:, 0] = 5 + ahead[games.games]
    games.positions["castles"][:, 1] = 5
    for seat in range(4):
        sign = 1 if rules.team(seat) == 0 else -1
        games.shares[:, seat] = (0.5 + sign * 0.03 * ahead) / 2
    found = game.leads(games, 4, np.random.default_rng(1))
    assert found["castle"]["mean"] == pytest.approx(0.03)
    assert found["clan"]["mean"] == pytest.approx(0, abs=1e-9)


def test_the_best_disc_costs_nothing_and_every_choice_is_counted(played):
    rules, games = played
    for row in game.discs(games, rules.players, np.random.default_rng(1)):
        losses = [disc["loss"]["mean"] for disc in row["discs"] if disc["loss"]]
        assert min(losses) >= 0
        assert max(losses) < 1
        assert all(disc["chosen"] is None or 0 <= disc["chosen"] <= 1 for disc in row["discs"])
