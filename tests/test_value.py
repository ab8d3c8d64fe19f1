"""``value``: how it chooses by a value network, ahead through dice and discs, and by the clock."""

import numpy as np
import pytest
from networks import plain_choices, positions, random_model
from strategies import ALL_KINDS, every_number

from carolus_env import bots, engine
from carolus_env.bots import ValueBot, ValueOptions
from carolus_env.bots.value import ahead
from carolus_env.bots.value.ahead import values_ahead
from carolus_env.bots.value.choice import CandidateSelector, value_choices
from carolus_env.engine import chance
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PLACE, ROLL, Rules
from carolus_env.engine.state import pick, single
from carolus_env.engine.streams import new_streams
from carolus_env.networks.forward import MOST_UPDATES, Network, Weights, values
from carolus_env.notation import from_text
from carolus_env.planning.choices import EVERY, list_choices
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import STOP, actions_of, best_plans
from carolus_env.system.compiler import entry

every_kind = pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)


def weights_of(players):
    """The weights of a random model."""
    return Weights.of(random_model(players).weights)


def bot_of(rules, **options):
    options = {"plans": "stop", "next": 0, **options}
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


def through_the_dice(state, weights, candidates):
    """Each team's mean share of the win over the dice due and the best next choice, in Python."""
    if state["phase"] != ROLL:
        return values(single(state), weights)[0]
    outcomes = chance.chance_outcomes(int(state["dice_due"]))
    mean = 0.0
    for faces, probability in zip(outcomes.faces, outcomes.probabilities, strict=True):
        after = single(state)
        chance.apply_roll(after, faces)
        mean = mean + probability * look_on(after[0], weights, candidates)
    return mean


@pytest.mark.parametrize("rules", [ALL_KINDS[0], ALL_KINDS[4]], ids=repr)
def test_turns_are_followed_through_every_roll(rules):
    states = positions(rules, most=300)
    states = states[states["phase"] == MOVE][:4]
    weights = weights_of(2)
    chosen = bot_of(rules, candidates=2, next=2, rolls=0).act(states, new_streams(1, len(states)))
    for state, action in zip(states, chosen, strict=True):
        result = {
            plan[0]: through_the_dice(after[0], weights, 2)[mover(state)]
            for plan, after in plain_choices(state, 2)
        }
        assert result[action] == pytest.approx(max(result.values()), abs=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_more_turns_are_followed_late_in_the_game(late):
    states = positions(Rules(2), most=1000)
    states = states[(states["phase"] == MOVE) & ((states["regions"] <= ahead.LATE) == late)]
    weights, bot, changed = weights_of(2), bot_of(Rules(2), candidates=5, next=1, rolls=0), 0
    for state in states:
        listed, team = valued(state, weights, 5), mover(state)
        if len(listed) < 5 or changed == 2:
            continue
        [action] = bot.act(single(state), new_streams(1, 1))
        now = np.array([value[team] for _, _, value in listed])
        followed = np.argsort(-now, kind="stable")[: ahead.LATE_TURNS if late else 1]
        result = [through_the_dice(listed[k][1][0], weights, 5)[team] for k in followed]
        assert [action] == listed[followed[int(np.argmax(result))]][0]
        changed += int(np.argmax(result) != 0) if late else 1
    assert changed == 2


# The next player can win at once after most turns; a turn of the package's network stops that.
STOPPABLE = (
    "3 | 12 | 0 place 4 | 9 | A1p1b1 B1g1 C5r1p2b3y3 B1r1 A1y1 B1b1g1 A2p1b2 B3r3p1g2 | "
    "r5P10B10y7G10 R9p6b3y12g9 r8p9b9Y12g3 | r3p2b1y2g1 r2p2b4y1 r3p1y1g4 | "
    "0:1/234 1:2/135 2:5/134",
    "3 | 15 | 2 place 4 | 13 | A7r2b5y3g1 C1p1g1 B1r1p2b1 C3r1y2g4 B3r1p2y1 | "
    "R2p3b9y7g7 P11B9y1g5 r1p11Y8G9 | r2p5b1y1 r2p1b2y4 r3p1b2y2g1 | 2:1/- 0:2/- 1:3/-",
)


@pytest.mark.parametrize("text", STOPPABLE)
def test_with_three_teams_a_turn_that_stops_the_next_player_is_found(text):
    game, bot = from_text(text), ValueBot()
    seat = int(game["player"][0])
    while game["player"][0] == seat and game["phase"][0] != OVER:
        engine.step(game, bot.act(game, new_streams(1, 1)))
    assert game["phase"][0] == MOVE or game["phase"][0] == PLACE, "the next player's turn"
    for plan in best_plans(game[0], EVERY):
        after = game.copy()
        for action in plan:
            engine.step(after, [action], roll=False)
        assert after["phase"][0] != OVER or engine.returns(after)[0, game["player"][0]] < 1


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


def look_on(state, weights, candidates):
    """The value after the best next choice that is no crown, in Python."""

    def best(state):
        listed = valued(state, weights, candidates)
        return max(listed, key=lambda one: one[2][mover(state)])

    while state["phase"] == CROWN_CHOICE:
        state = best(state)[1][0]
    if state["phase"] in (OVER, ROLL):
        return values(single(state), weights)[0]
    return best(state)[2]


def test_errors_alone_are_drawn():
    states = positions(Rules(2))
    states = states[states["phase"] == DISC]
    streams, before = new_streams(1, len(states)), new_streams(1, len(states))
    right = bot_of(Rules(2), next=2, rolls=2).act(states, streams)
    np.testing.assert_array_equal(streams, before)  # so a turn's later choices see the same rolls
    wrong = bot_of(Rules(2), discs="now", errors=1.0).act(states, streams)
    assert (right != wrong).mean() > 0.3
    assert engine.are_legal(states, wrong).all()


@entry
def _list_and_value(states, selector):
    count = list_choices(states[0], selector.proposals)
    return count, value_choices(states[0], selector, count)


@every_kind
def test_values_by_differences_are_those_from_scratch(rules):
    """A turn's choices are valued one from the other; some are over, regions merge in some."""
    weights = weights_of(rules.players)
    net = Network.of(rules.players, weights)
    selector = CandidateSelector.of(net, STOP, all_weights()[rules.players].copy(), candidates=4096)
    states = positions(rules)
    most, regions = 0, set()
    for state in states[np.isin(states["phase"], (PLACE, DISC, CROWN_CHOICE))][::9]:
        count, best = _list_and_value(state.reshape(1), selector)
        after = pick(single(state), np.zeros(count, np.int64))
        for row, plan in enumerate(selector.proposals.choices[:count]):
            for action in actions_of(int(plan)):
                engine.step(after, np.array([action]), rows=np.array([row]), roll=False)
        team = state["team"][state["player"]]
        expected = values(after, weights)[:, team]
        np.testing.assert_allclose(selector.values[:count], expected, atol=1e-5)
        assert best == selector.values[:count].argmax()
        most = max(most, count)
        regions |= set((after["regions"].astype(int) - int(state["regions"])).tolist())
    if rules.paladins_per_clan == 40:  # games with few paladins are short
        assert most > MOST_UPDATES  # and so the sums were added up anew
        assert {0, -1} <= regions
