"""``search`` by a value network: a choice is worth what the network says of the position after."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from test_bots import middle_games
from test_policy import decisions, rewrite, small

import carolus_env as ce
from carolus_env import bots, engine
from carolus_env.bots import MctsBot, ModelError, NetworkJudge, ValueJudge, ValueSearchOptions
from carolus_env.bots.neural import model as policy_model
from carolus_env.bots.planner.bot import best_crown
from carolus_env.bots.planner.evaluation import all_weights
from carolus_env.bots.planner.plans import actions_of
from carolus_env.bots.search.forest import BY_PLANNER, BY_VALUE, CROWNS, VALUE, Forest, tree_of
from carolus_env.bots.search.tree import _crown
from carolus_env.bots.value import model, network
from carolus_env.bots.value.inputs import inputs
from carolus_env.bots.value.model import ValueModel
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, PLACE, Rules
from carolus_env.engine.streams import new_streams

every_number = pytest.mark.parametrize("players", [2, 3, 4])


@cache
def random_model(players=2, seed=0) -> ValueModel:
    """A random model with opinions: its values are not all alike."""
    size = network.Size(players, width=16, hidden=4)
    weights = network.random_weights(size, seed)
    rows = 0.2 * np.random.default_rng(seed).standard_normal(weights["rows"].shape)
    weights["rows"] = rows.astype(np.float32)
    return ValueModel(size, weights, {"seed": seed})


@pytest.fixture
def saved(tmp_path):
    model.save(random_model(), tmp_path / "v")
    return tmp_path / "v"


def shares(states):
    """Each team's share by the network in NumPy; by the rules where the game is over."""
    found = []
    for state in states:
        game, team = state.reshape(1), int(state["team"][state["player"]])
        if engine.is_over(game)[0]:
            seats = engine.win_shares(game)[0]
            of_teams = [seats[state["team"][: state["players"]] == t].sum() for t in range(3)]
            found.append(of_teams[: state["teams"]])
            continue
        weights = random_model(int(state["players"])).weights
        found.append(np.roll(network.forward(weights, inputs(game))[0], team))
    return np.array(found)


def after(state, actions):
    """The position after the actions, before the dice."""
    game = state.reshape(1).copy()
    for action in actions:
        engine.step(game, np.array([action]), roll=False)
    return game


def log_odds(chances):
    chances = np.clip(chances, 1e-6, 1 - 1e-6)
    return np.log(chances / (1 - chances))


def root_of(bot):
    """The plans, first values and priors of the last search's root."""
    edges = bot._forest.edges[0, : bot._forest.nodes["edges"][0, 0]]
    return [actions_of(int(plan)) for plan in edges["plan"]], edges["first_value"], edges["prior"]


def search(players=2, sims=1, **options):
    judge = ValueJudge(random_model(players))
    return MctsBot(ValueSearchOptions(sims=sims, **options), judge=judge)


@every_number
@pytest.mark.parametrize("moves", ["turn", "single"])
def test_every_choice_begins_at_the_networks_value_of_the_position_after_it(players, moves):
    states = middle_games(Rules(players, "deferred"), 25)[::9].copy()
    phases, ended = set(), 0
    for state in states:
        if engine.legal_masks(state.reshape(1)).sum() == 1:
            continue
        bot = search(players, moves=moves, temperature=2.0)
        bot.consider(state.reshape(1), new_streams(1, 1))
        choices, first, prior = root_of(bot)
        positions = [after(state, actions) for actions in choices]
        team = int(state["team"][state["player"]])
        wanted = np.concatenate([shares(game)[:, team] for game in positions])
        np.testing.assert_allclose(first, wanted, atol=3e-5)
        odds = np.exp((log_odds(wanted) - log_odds(wanted).max()) / 2.0)
        np.testing.assert_allclose(prior, odds / odds.sum(), rtol=2e-3, atol=1e-5)
        phases.add(int(state["phase"]))
        ended += sum(engine.is_over(game)[0] for game in positions)
    assert len(phases) >= 3
    assert ended or moves == "single", "a choice that ends the game is among them"


@every_number
def test_what_is_backed_up_is_the_best_choice_for_whoever_decides(players):
    """No dice lie between two discs, so the position after one is known; teams are not swapped."""
    states = middle_games(Rules(players), 25)
    states = states[(states["phase"] == DISC) & (states["turn"] == 0)][:12]
    assert len(states) > 3
    for state in states:
        if engine.legal_masks(state.reshape(1)).sum() == 1:
            continue
        [choices] = search(players).consider(state.reshape(1), new_streams(1, 1))
        first = after(state, choices[0].actions)
        assert first["phase"][0] == DISC
        second = [after(first[0], [action])[0] for action in engine.legal_actions(first).tolist()]
        values = shares(np.array(second))
        team = int(first["team"][0, first["player"][0]])
        np.testing.assert_allclose(choices[0].chances, values[values[:, team].argmax()], atol=3e-5)


def test_in_mid_turn_the_player_goes_on_maximising():
    states = middle_games(Rules(2), 25)
    states = states[(states["phase"] == PLACE) & (states["placements_left"] > 1)][:6]
    for state in states:
        [choices] = search(moves="single").consider(state.reshape(1), new_streams(1, 1))
        [action] = choices[0].actions
        first = after(state, [action])
        legal = [a for a in engine.legal_actions(first).tolist() if a >= action]
        values = shares(np.array([after(first[0], [a])[0] for a in legal]))
        team = int(state["team"][state["player"]])
        assert choices[0].chances[team] == pytest.approx(values[:, team].max(), abs=3e-5)


@every_number
@pytest.mark.parametrize(
    "ways", [{"crowns": "value"}, {"moves": "single"}, {"chance": "explicit", "width": 4}]
)
def test_a_search_counts_every_simulation_and_knows_no_dice_to_come(players, ways):
    states = middle_games(Rules(players), 25)[::9].copy()
    other = states.copy()
    other["generator"] = new_streams(5, len(states))
    found, again = (
        search(players, 30, **ways).consider(games, new_streams(1, len(games)))
        for games in (states, other)
    )
    for state, choices, others in zip(states, found, again, strict=True):
        legal = engine.legal_actions(state).tolist()
        assert sum(choice.visits for choice in choices) == (30 if len(legal) > 1 else 0)
        assert {choice.actions[0] for choice in choices} <= set(legal)
        for choice in choices:
            assert choice.chances.sum() == (pytest.approx(1, abs=1e-5) if choice.visits else 0)
        assert [(c.actions, c.visits) for c in choices] == [(c.actions, c.visits) for c in others]


def test_a_win_at_once_is_certain_and_found():
    won = 0
    states = middle_games(Rules(2), 25)
    for state in states[states["phase"] == MOVE]:
        team = int(state["team"][state["player"]])
        for action in engine.legal_actions(state).tolist():
            end = after(state, [action])
            if engine.is_over(end)[0] and shares(end)[0, team] == 1:
                [choices] = search(sims=20).consider(state.reshape(1), new_streams(1, 1))
                assert choices[0].chances[team] == 1
                won += 1
                break
    assert won


def test_an_opinion_is_the_searchs_visits_and_mean_values():
    states = decisions(2, 12)
    given = bots.opinion(search(sims=20), states)
    assert given.values.shape == (12, 2)
    assert given.probabilities.sum(axis=1) == pytest.approx(1)
    for row in range(12):
        if engine.legal_masks(states[row : row + 1]).sum() == 1:
            assert given.values[row] == pytest.approx(shares(states[row : row + 1])[0], abs=3e-5)


@every_number
def test_crowns_inside_the_tree_are_the_networks_choice_or_the_evaluations(players):
    states = middle_games(Rules(players), 100)
    states = states[
        (states["phase"] == CROWN_CHOICE) & (engine.legal_masks(states).sum(axis=1) > 1)
    ]
    weights, differ = all_weights()[players], 0
    net = ValueJudge(random_model(players)).net(players)
    for state in states[:20]:
        tree = getattr(tree_of, "py_func", tree_of)(Forest.new(1, 2, 8), 0)  # views stay views
        chosen = {
            crowns: _crown(
                state, ValueSearchOptions(crowns=crowns).settings(VALUE), weights, tree, net
            )
            for crowns in CROWNS
        }
        legal = engine.legal_actions(state).tolist()
        values = shares(np.concatenate([after(state, [action]) for action in legal]))
        team = int(state["team"][state["player"]])
        of_chosen = values[legal.index(chosen["value"]), team]
        assert of_chosen == pytest.approx(values[:, team].max(), abs=3e-5)
        assert chosen["planner"] == best_crown(state, weights, tree.scratch)
        differ += chosen["value"] != chosen["planner"]
    assert differ


def test_a_search_by_the_clock_has_defaults_of_its_own():
    """Those of a number of simulations never change: the ladder's rungs play by them."""
    counted = ValueSearchOptions(sims=100).settings(VALUE)
    timed = ValueSearchOptions(seconds=1.0).settings(VALUE)
    assert (counted.width, counted.root_width, counted.crowns) == (32, 128, BY_PLANNER)
    assert (timed.width, timed.root_width, timed.crowns) == (12, 128, BY_VALUE)
    assert counted._replace(width=12, crowns=BY_VALUE) == timed
    said = ValueSearchOptions(seconds=1.0, width=9, root_width=0, crowns="planner").settings(VALUE)
    assert (said.width, said.root_width, said.crowns) == (9, 9, BY_PLANNER)


def test_the_compiler_changes_nothing(saved):
    code = (
        "import sys, carolus_env as ce\n"
        "from carolus_env import bots\n"
        "games = ce.new_games(ce.Rules(), 1, seed=1)\n"
        "bot, streams = bots.make(sys.argv[1]), ce.new_streams(1, 1)\n"
        "for _ in range(5):\n"
        "    ce.step(games, bot.act(games, streams))\n"
        "print(bot.simulations, games.tobytes().hex())"
    )
    spec = f"search:{saved},sims=3,width=3,root_width=3,crowns=value"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code, spec],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
        ).stdout
        for off in ("0", "1")
    ]
    assert printed[0] == printed[1]


# ------------------------------------------------------------------------------------ specs


def test_a_file_says_whether_it_is_a_policy_or_a_value_network(saved, tmp_path):
    policy_model.save(small(), tmp_path / "p")
    for name, judge in ((saved, ValueJudge), (tmp_path / "p", NetworkJudge)):
        for suffix in ("", ".json", ".safetensors"):
            bot = bots.make(f"search:{name}{suffix},sims=5")
            assert isinstance(bot._judge, judge)
            assert bot.options.sims == 5
    states = decisions()[:4]
    as_spec = bots.make(f"search:{saved},sims=9").consider(states, new_streams(1, 4))
    for one, other in zip(as_spec, search(sims=9).consider(states, new_streams(1, 4)), strict=True):
        assert [(c.actions, c.visits) for c in one] == [(c.actions, c.visits) for c in other]


def test_v1_names_the_first_networks_for_any_number_of_players():
    states = np.concatenate([decisions(players, 10) for players in (2, 3, 4)])
    first, plain = bots.make("ppo:v1"), bots.PolicyAgent()
    acted = [bot.act(states, new_streams(1, 30)).tolist() for bot in (first, plain)]
    assert acted[0] == acted[1]
    assert bots.make("ppo:v1,temperature=1").options.temperature == 1
    found = bots.make("search:v1,sims=7").act(states, new_streams(1, 30))
    wanted = MctsBot(bots.SearchOptions(sims=7), judge=NetworkJudge()).act(
        states, new_streams(1, 30)
    )
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("spec", ["search:{}", "search:{},sims=9"])
def test_a_network_for_another_number_of_players_is_refused(saved, spec):
    spec = spec.format(saved)
    with pytest.raises(
        ValueError, match=f"agent '{re.escape(spec)}': has a model for 2 players, not for 3"
    ):
        bots.make(spec).act(decisions(3), ce.new_streams(0, 64))


def test_models_that_the_package_lacks_are_named(monkeypatch, tmp_path):
    here = replace(model.ValueModel.kind(), folder=tmp_path)
    monkeypatch.setattr(model.ValueModel, "kind", staticmethod(lambda: here))
    with pytest.raises(ModelError, match=r"has no model for 2 players: there is no .*2p\.json"):
        bots.make("search:2p")
    with pytest.raises(ModelError, match="has no model for 3 players"):
        bots.make("search").act(decisions(3), ce.new_streams(0, 64))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "zip"}, "format must be 'carolus-policy' or 'carolus-value', got 'zip'"),
        ({"format": 1}, "format must be a string, got 1"),
        ({"format": "carolus-policy"}, "version must be 2, got 1"),
    ],
)
def test_a_file_of_another_kind_is_refused(saved, changes, reason):
    rewrite(saved, **changes)
    with pytest.raises(ModelError, match=rf"v\.json: {reason}"):
        bots.make(f"search:{saved}")


def test_a_file_without_a_format_is_refused(saved):
    about = json.loads(saved.with_suffix(".json").read_text())
    del about["format"]
    saved.with_suffix(".json").write_text(json.dumps(about))
    with pytest.raises(ModelError, match=r"v\.json: format is missing"):
        bots.make(f"search:{saved}")
    with pytest.raises(ModelError, match=r"nowhere\.json: cannot be read"):
        bots.make(f"search:{saved.parent / 'nowhere'}")
