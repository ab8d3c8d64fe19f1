"""``value``: how it chooses by a value network, ahead through dice and discs, and by the clock."""

import numpy as np
import pytest
from networks import asked, plain_choices, positions, random_model
from strategies import ALL_KINDS, every_number

from carolus_env import bots, engine
from carolus_env.bots import ValueBot, ValueOptions
from carolus_env.bots.network import RolloutPolicy, Selector, values_ahead
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PLACE, ROLL, Rules
from carolus_env.engine.state import pick, single
from carolus_env.networks.network import MOST_UPDATES, Weights, values
from carolus_env.planning.plans import MOST_PLANS, STOP, actions_of

every_kind = pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)


def weights_of(players):
    """The weights of a random model."""
    return Weights.of(random_model(players).weights)


def bot_of(rules, **options):
    options = {"plans": "stop", **options}
    return ValueBot(random_model(rules.players), ValueOptions(**options))


def valued(state, weights, candidates, plans="stop"):
    """Every choice by plain Python: its actions, the position after it, each team's value there."""
    listed = plain_choices(state, candidates, plans)
    return [(actions, after, values(after, weights)[0]) for actions, after in listed]


def mover(state):
    """The team of the player to move."""
    return int(state["team"][state["player"]])


@pytest.mark.parametrize("plans", ["stop", "one"])
@every_kind
def test_it_plays_what_leads_to_the_best_position(rules, plans):
    states = positions(rules, most=60)
    states = states[np.isin(states["phase"], (CROWN_CHOICE, DISC, PLACE, MOVE))]
    bot = bot_of(rules, candidates=5, discs="now", plans=plans)
    chosen = bot.act(states, new_streams(1, len(states)))
    for state, action in zip(states, chosen, strict=True):
        result, team = valued(state, weights_of(rules.players), 5, plans), mover(state)
        best = max(value[team] for _, _, value in result)  # but for rounding
        assert action in [actions[0] for actions, _, value in result if value[team] > best - 1e-5]


def test_a_turn_is_planned_once():
    states, weights = positions(Rules(3), most=400), weights_of(3)
    begun = states[(states["phase"] == PLACE) & (states["placements_left"] == 4)][:20].copy()
    bot = bot_of(Rules(3), candidates=4)
    wanted, streams = bots.opinion(bot, begun).values, new_streams(1, len(begun))
    while (rows := np.flatnonzero(np.isin(begun["phase"], (PLACE, MOVE)))).size:
        engine.step(begun, bot.act(begun[rows], streams[rows]), rows=rows, roll=False)
    np.testing.assert_allclose(values(begun, weights), wanted, atol=1e-6)


def look_ahead(state, weights, candidates):
    """The best disc and its value by plain Python: every answer, then the first turn."""
    if state["phase"] != DISC:
        return None, look_on(state, weights, candidates)
    answers = [
        (disc, look_ahead(after[0], weights, candidates)[1])
        for [disc], after in plain_choices(state, candidates)
    ]
    return max(answers, key=lambda answer: answer[1][mover(state)])


@pytest.mark.parametrize("rules", [ALL_KINDS[k] for k in (0, 1, 3, 4, 6)], ids=repr)
def test_discs_are_looked_at_one_turn_ahead(rules):
    states = positions(rules, most=2000)
    last = states["turn"] >= rules.players - 2  # few answers
    states = states[(states["phase"] == DISC) & last][:8].copy()
    assert len(states)
    weights = weights_of(rules.players)
    bot = bot_of(rules, candidates=3)
    chosen = bot.act(states, new_streams(1, len(states)))
    opinion = bots.opinion(bot, states)
    for row, state in enumerate(states):
        disc, value = look_ahead(state, weights, 3)
        assert chosen[row] == disc
        assert opinion.probabilities[row, disc] == 1
        np.testing.assert_allclose(opinion.values[row], value, atol=1e-6)


@every_number
def test_a_position_is_worth_what_the_best_next_choice_makes_of_it(players):
    states, weights = positions(Rules(players), most=40), weights_of(players)
    result = values_ahead(states, weights, candidates=3)
    now = values(states, weights)
    for state, value, as_it_is in zip(states, result, now, strict=True):
        expected = as_it_is if state["phase"] == ROLL else look_on(state, weights, 3)
        np.testing.assert_allclose(value, expected, atol=1e-6)


def best_of(state, weights, candidates):
    """The best choice by the position after it, in Python, see `valued`."""
    return max(valued(state, weights, candidates), key=lambda one: one[2][mover(state)])


def look_on(state, weights, candidates):
    """The value after the best next choice that is no crown, in Python."""
    while state["phase"] == CROWN_CHOICE:
        state = best_of(state, weights, candidates)[1][0]
    if state["phase"] in (OVER, ROLL):
        return values(single(state), weights)[0]
    return best_of(state, weights, candidates)[2]


def test_errors_alone_are_drawn():
    states = positions(Rules(2))
    states = states[states["phase"] == DISC]
    streams, before = new_streams(1, len(states)), new_streams(1, len(states))
    right = bot_of(Rules(2)).act(states, streams)
    np.testing.assert_array_equal(streams, before)
    wrong = bot_of(Rules(2), discs="now", errors=1.0).act(states, streams)
    assert (right != wrong).mean() > 0.3
    assert engine.are_legal(states, wrong).all()


@every_kind
def test_values_by_differences_are_those_from_scratch(rules):
    """A turn's choices are valued one from the other; some are over, regions merge in some."""
    weights = weights_of(rules.players)
    selector = Selector.of(rules.players, weights, STOP, MOST_PLANS)
    states = positions(rules)
    most, regions = 0, set()
    for state in states[np.isin(states["phase"], (PLACE, DISC, CROWN_CHOICE))][::9]:
        count, plan = asked(ValueBot, state, selector)
        listed = selector.candidates.plans.tolist()
        best = listed.index(plan)
        after = pick(single(state), np.zeros(count, np.int64))
        for row, plan in enumerate(listed[:count]):
            for action in actions_of(plan):
                engine.step(after, np.array([action]), rows=np.array([row]), roll=False)
        result = selector.values[:count, : rules.teams]
        np.testing.assert_allclose(result, values(after, weights), atol=1e-5)
        assert best == result[:, state["team"][state["player"]]].argmax()
        most = max(most, count)
        regions |= set((after["regions"].astype(int) - int(state["regions"])).tolist())
    if rules.paladins_per_clan == 40:  # games with few paladins are short
        assert most > MOST_UPDATES  # and so the sums were added up anew
        assert {0, -1} <= regions


@every_number
def test_rollouts_are_played_by_the_best_of_the_planners_eight_plans(players):
    states = positions(Rules(players), most=60)
    states = states[np.isin(states["phase"], (CROWN_CHOICE, DISC, PLACE, MOVE))]
    chosen = bots.make("rollout_policy").act(states, new_streams(1, len(states)))
    weights = RolloutPolicy().context(players).net.weights
    for state, action in zip(states, chosen, strict=True):
        result, team = valued(state, weights, 8), mover(state)
        best = max(value[team] for _, _, value in result)
        assert action in [actions[0] for actions, _, value in result if value[team] > best - 1e-5]
