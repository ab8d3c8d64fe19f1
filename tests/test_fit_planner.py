"""The planner's weights come from results of games: the fit finds the weights that made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agents import fit_planner
from carolus_env.bots.planner import evaluation
from carolus_env.engine.rules import Rules


@pytest.mark.parametrize("teams", [2, 3])
def test_the_fit_recovers_the_weights_that_made_the_results(teams):
    random = np.random.default_rng(teams)
    weights = np.array([0.8, -0.5, 0.0, 0.2])
    features = random.normal(size=(20_000, teams, 4)) * [1, 2, 1, 5]
    scores = features @ weights
    winners = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    parts = np.eye(teams)[winners]
    found, loss = fit_planner.fit(
        fit_planner.Positions(features.astype(np.float32), parts.astype(np.float32))
    )
    np.testing.assert_allclose(found, weights, atol=0.04)
    assert 0 < loss < np.log(teams)


def test_what_is_the_same_for_all_teams_has_no_weight():
    features = np.ones((100, 2, 3), np.float32)
    features[:, 0, 1] = 2
    parts = np.tile(np.array([0.75, 0.25], np.float32), (100, 1))
    found, _ = fit_planner.fit(fit_planner.Positions(features, parts))
    assert found[0] == found[2] == 0
    assert found[1] == pytest.approx(np.log(3), abs=0.05)


@pytest.mark.parametrize("players", [2, 3])
def test_games_give_positions_and_who_won_them(players):
    rules = Rules(players=players)
    weights = evaluation.all_weights().copy()
    features, parts = fit_planner.play(rules, [weights, weights], games=4, seed=1)
    assert features.shape == (len(parts), rules.teams, len(evaluation.FEATURES))
    assert parts.shape == (len(features), rules.teams)
    np.testing.assert_allclose(parts.sum(axis=1), 1)
    assert len(features) > 4 * players * 5
    again, _ = fit_planner.play(rules, [weights, weights], games=4, seed=1)
    assert again.tobytes() == features.tobytes()


def test_the_weights_of_the_package_say_how_they_were_found():
    found = json.loads(Path(evaluation.__file__).with_name("weights.json").read_text())["found"]
    for players in ("2", "3", "4"):
        assert found[players].startswith(f"python -m agents.fit_planner --players {players} ")


def test_the_script_shows_what_it_finds(capsys, monkeypatch):
    monkeypatch.setattr(
        fit_planner,
        "play",
        lambda *_: fit_planner.Positions(
            np.ones((4, 2, len(evaluation.FEATURES)), np.float32), np.full((4, 2), 0.5, np.float32)
        ),
    )
    words = "--players 2 --games 4 --rounds 1 --match-games 2"
    assert fit_planner.main(words.split()) == 0
    said = capsys.readouterr().out
    assert "2 players, fit 1: 4 positions" in said
    assert all(feature.name in said for feature in evaluation.FEATURES)
    assert "against greedy: " in said
