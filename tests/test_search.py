"""``search`` by a value network: a choice is worth what the network says of the position after."""

from __future__ import annotations

import numpy as np
import pytest
from networks import random_model
from positions import after
from test_bots import middle_games
from test_models import decisions

from carolus_env import bots, engine
from carolus_env.bots import (
    AgentError,
    Evaluator,
    NetworkModel,
    SearchBot,
    SearchOptions,
)
from carolus_env.bots.planner import best_crown
from carolus_env.bots.search.forest import BY_PLANNER, BY_VALUE, CHOICES, CROWNS, Forest, tree_of
from carolus_env.bots.search.tree import _crown
from carolus_env.engine.rules import CROWN_CHOICE, DISC, Rules
from carolus_env.engine.streams import new_streams
from carolus_env.networks import network
from carolus_env.networks.forward import Network, Weights, values
from carolus_env.networks.inputs import encode_all
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import actions_of

every_number = pytest.mark.parametrize("players", [2, 3, 4])


@pytest.fixture
def saved(tmp_path):
    random_model(2).save(tmp_path / "v")
    return tmp_path / "v"


def shares(states):
    """Each team's share by the network in NumPy; by the rules where the game is over."""
    result = []
    for state in states:
        game, team = state.reshape(1), int(state["team"][state["player"]])
        if engine.is_over(game)[0]:
            seats = engine.win_shares(game)[0]
            of_teams = [seats[state["team"][: state["players"]] == t].sum() for t in range(3)]
            result.append(of_teams[: state["teams"]])
            continue
        weights = random_model(int(state["players"])).weights
        result.append(np.roll(network.values(weights, encode_all(game))[0], team))
    return np.array(result)


def log_odds(chances):
    chances = np.clip(chances, 1e-6, 1 - 1e-6)
    return np.log(chances / (1 - chances))


def root_of(bot):
    """The plans, first values and priors of the last search's root."""
    edges = bot._forest.edges[0, : bot._forest.nodes["edges"][0, 0]]
    return [actions_of(int(plan)) for plan in edges["plan"]], edges["first_value"], edges["prior"]


def search(players=2, sims=1, **options):
    return SearchBot(random_model(players), SearchOptions(sims=sims, **options))


@every_number
def test_every_choice_begins_at_the_networks_value_of_the_position_after_it(players):
    states = middle_games(Rules(players, "deferred"), 25)[::9].copy()
    phases, ended = set(), 0
    for state in states:
        if engine.legal_masks(state.reshape(1)).sum() == 1:
            continue
        bot = search(players, temperature=2.0)
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
    assert ended, "a choice that ends the game is among them"


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


@every_number
def test_crowns_inside_the_tree_are_the_networks_choice_or_the_evaluations(players):
    states = middle_games(Rules(players), 100)
    states = states[
        (states["phase"] == CROWN_CHOICE) & (engine.legal_masks(states).sum(axis=1) > 1)
    ]
    weights, differ = all_weights()[players], 0
    net = Network.of(players, Weights.of(random_model(players).weights))
    for state in states[:20]:
        tree = getattr(tree_of, "py_func", tree_of)(Forest.new(1, 2, 8), 0)  # views stay views
        chosen = {
            crowns: _crown(
                state, SearchOptions(crowns=crowns).settings(CHOICES), weights, tree, net
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
    counted = SearchOptions(sims=100).settings(CHOICES)
    timed = SearchOptions(seconds=1.0).settings(CHOICES)
    assert (counted.width, counted.root_width, counted.crowns) == (32, 128, BY_PLANNER)
    assert (timed.width, timed.root_width, timed.crowns) == (12, 128, BY_VALUE)
    assert counted._replace(width=12, crowns=BY_VALUE) == timed
    said = SearchOptions(seconds=1.0, width=9, root_width=0, crowns="planner").settings(CHOICES)
    assert (said.width, said.root_width, said.crowns) == (9, 9, BY_PLANNER)


def test_a_spec_names_a_network_and_options(saved):
    states = decisions()[:4]
    result = search(sims=9).consider(states, new_streams(1, 4))
    for suffix in ("", ".json", ".safetensors"):
        bot = bots.make(f"search:{saved}{suffix},sims=9")
        assert bot.options.sims == 9
        assert told(bot.consider(states, new_streams(1, 4))) == told(result)


class ByNetwork(Evaluator):
    """The values of a network, by way of Python."""

    def __init__(self, value: NetworkModel):
        self.weights, self.asked = Weights.of(value.weights), []

    def evaluate(self, states):
        assert not engine.is_over(states).any()
        self.asked.append(states.copy())
        return values(states, self.weights)


def told(found):
    """The choices and visits of searches."""
    return [[(choice.actions, choice.visits) for choice in choices] for choices in found]


@every_number
@pytest.mark.parametrize("options", [{}, {"chance": "explicit", "width": 4}], ids=str)
def test_an_evaluator_gives_the_tree_that_the_same_network_gives_built_in(players, options):
    value = exact_model(players)
    states, options = decisions(players, 24), SearchOptions(sims=40, **options)
    own, built_in = SearchBot(ByNetwork(value), options), SearchBot(value, options)
    streams, same = new_streams(1, 24), new_streams(1, 24)
    result, wanted = own.consider(states, streams), built_in.consider(states, same)
    assert told(result) == told(wanted) and (streams == same).all()
    for ours, theirs in zip(result, wanted, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a.prior == b.prior and (a.chances == b.chances).all()
    assert (own.act(states, streams) == built_in.act(states, same)).all()
    assert (bots.opinion(own, states).values == bots.opinion(built_in, states).values).all()


def exact_model(players):
    """A network whose sums are exact, in whatever order and by differences they are added up."""
    result = random_model(players)
    weights = dict(result.weights)
    weights["rows"] = (np.round(weights["rows"] * 256) / 256).astype(np.float32)
    for name in ("features", "bias"):
        weights[name] = np.zeros_like(weights[name])
    return NetworkModel(result.size, weights)


def test_an_evaluator_is_asked_once_a_simulation_about_all_games():
    value, states = ByNetwork(random_model(2)), decisions(2, 12)
    bot = SearchBot(value, SearchOptions(sims=5))
    result = bot.consider(states, new_streams(1, 12))
    choices = [choice for one in result if len(one) > 1 for choice in one]
    assert len(value.asked) == 6, "the roots first"
    ended = sum(
        engine.is_over(after(s, c.actions))[0]
        for s, o in zip(states, result, strict=True)
        for c in o
    )
    assert len(value.asked[0]) >= len(choices) - ended
    other = states.copy()
    other["generator"] += np.uint64(12345)
    before = [states.tobytes() for states in value.asked]
    value.asked.clear()
    bot.consider(other, new_streams(1, 12))
    assert [_still(states) for states in value.asked] == [
        _still(np.frombuffer(data, states.dtype)) for data in before
    ], "the dice to come are not known"


def _still(states):
    bare = states.copy()
    bare["generator"] = 0
    return bare.tobytes()


@pytest.mark.parametrize("wrong", [np.zeros((3, 2)), np.full((1, 2), np.nan), np.zeros(0)])
def test_wrong_values_are_refused(wrong):
    class Wrong(Evaluator):
        def evaluate(self, states):
            return wrong if np.shape(wrong) != (1, 2) else np.full((len(states), 2), np.nan)

    with pytest.raises(ValueError, match=r"Wrong.evaluate of \d+ positions must return finite"):
        SearchBot(Wrong()).consider(decisions()[:1], new_streams(1, 1))


def test_an_evaluator_chooses_no_crowns():
    with pytest.raises(AgentError, match="crowns must be auto or planner"):
        SearchBot(ByNetwork(random_model(2)), SearchOptions(crowns="value"))
