"""Fitting the planner's weights: the fit recovers the weights that made the results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agents import fit_planner
from carolus_env.engine.rules import Rules
from carolus_env.planning import heuristic


@pytest.mark.parametrize("teams", [2, 3])
def test_the_fit_recovers_the_weights_that_made_the_results(teams):
    random = np.random.default_rng(teams)
    weights = np.array([0.8, -0.5, 0.0, 0.2])
    features = random.normal(size=(20_000, teams, 4)) * [1, 2, 1, 5]
    scores = features @ weights
    winners = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    shares = np.eye(teams)[winners]
    result, loss = fit_planner.fit(
        fit_planner.Positions(features.astype(np.float32), shares.astype(np.float32))
    )
    np.testing.assert_allclose(result, weights, atol=0.04)
    assert 0 < loss < np.log(teams)


def test_a_feature_that_is_equal_for_all_teams_has_no_weight():
    features = np.ones((100, 2, 3), np.float32)
    features[:, 0, 1] = 2
    shares = np.tile(np.array([0.75, 0.25], np.float32), (100, 1))
    result, _ = fit_planner.fit(fit_planner.Positions(features, shares))
    assert result[0] == result[2] == 0
    assert result[1] == pytest.approx(np.log(3), abs=0.05)


@pytest.mark.parametrize("players", [2, 3])
def test_games_give_positions_and_their_winners(players):
    rules = Rules(players=players)
    weights = heuristic.all_weights().copy()
    features, shares = fit_planner.play(rules, [weights, weights], 1, range(4))
    assert features.shape == (len(shares), rules.teams, len(heuristic.FEATURES))
    assert shares.shape == (len(features), rules.teams)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert len(features) > 4 * players * 5
    again, _ = fit_planner.play(rules, [weights, weights], 1, range(4))
    assert again.tobytes() == features.tobytes()


def test_the_shipped_weights_name_the_command_that_found_them():
    result = json.loads(Path(heuristic.__file__).with_name("weights.json").read_text())["found"]
    for players in ("2", "3", "4"):
        assert result[players].startswith(f"python -m agents.fit_planner --players {players} ")


def test_the_script_prints_the_weights(capsys, monkeypatch):
    monkeypatch.setattr(
        fit_planner,
        "play",
        lambda *_: fit_planner.Positions(
            np.ones((4, 2, len(heuristic.FEATURES)), np.float32), np.full((4, 2), 0.5, np.float32)
        ),
    )
    words = "--players 2 --games 4 --rounds 1 --match-games 2"
    assert fit_planner.main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "2 players, fit 1: 4 positions" in printed
    assert all(feature.name in printed for feature in heuristic.FEATURES)
    assert "against greedy: " in printed
