"""``value``: how it chooses by a value network, ahead through dice and discs, and by the clock."""

import numpy as np
import pytest
from networks import plain_choices, positions, random_model
from strategies import ALL_KINDS, every_number

from carolus_env import bots, engine
from carolus_env.bots import ValueBot, ValueOptions
from carolus_env.bots.value import CandidateSelector, RolloutPolicy, value_candidates, values_ahead
from carolus_env.engine import chance
from carolus_env.engine.kernels import generator
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PLACE, ROLL, Rules
from carolus_env.engine.state import pick, single
from carolus_env.engine.streams import new_streams
from carolus_env.networks.forward import MOST_UPDATES, Weights, values
from carolus_env.notation import from_text
from carolus_env.planning.plans import MOST_PLANS, STOP, actions_of, best_plans, list_candidates
from carolus_env.system.compiler import entry

every_kind = pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)


def weights_of(players):
    """The weights of a random model."""
    return Weights.of(random_model(players).weights)


def bot_of(rules, **options):
    options = {"plans": "stop", "follow": 0, **options}
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


def sampled(start, team, weights, candidates, turns, bits):
    """The value to a team after some turns from ``start``, with the dice of a stream, in Python."""
    state, played = single(start), 0
    while state["phase"] != OVER and played < turns:
        if state["phase"] == ROLL:
            bits = np.uint64(generator.step(bits))
            state["generator"] = generator.mix(bits)
            chance.roll(state)
            continue
        played += state["phase"][0] in (PLACE, MOVE)
        state = best_of(state[0], weights, candidates)[1]
    return values(state, weights)[0][team]


def completed(after, seat, weights, candidates):
    """The position after the answers to a disc, or after the further crowns of ``seat``."""
    while after["phase"] == DISC and after["turn"] > 0:
        engine.step(after, [look_ahead(after[0], weights, candidates)[0]], roll=False)
    while after["phase"] == CROWN_CHOICE and after["player"] == seat:
        after = best_of(after[0], weights, candidates)[1]
    return after[0]


@pytest.mark.parametrize("rules", [Rules(2), Rules(3)], ids=repr)
def test_the_best_choices_are_followed_and_the_better_half_goes_on(rules):
    weights, bot = weights_of(rules.players), bot_of(rules, candidates=3, follow=3, samples=1)
    states, changed = positions(rules, most=400), 0
    for phase in (DISC, CROWN_CHOICE, MOVE):
        few = states["turn"] >= (rules.players - 2 if phase == DISC else 0)  # few answers
        for state in states[(states["phase"] == phase) & few][:3]:
            team, seat, listed = mover(state), state["player"], valued(state, weights, 3)
            now = [value[team] for _, _, value in listed]
            if phase == DISC:
                now = [look_ahead(after[0], weights, 3)[1][team] for _, after, _ in listed]
            order = np.argsort(-np.array(now), kind="stable")[:3].tolist()
            starts = {k: completed(listed[k][1].copy(), seat, weights, 3) for k in order}
            bits = generator.mix(np.uint64((int(state["round"]) * 4 + int(seat)) * 6 + phase))
            sums, done, more = dict.fromkeys(order, 0.0), 0, 1
            while done == 0 or len(order) > 1:
                for k in order:
                    for sample in range(done, done + more):
                        dice = np.uint64(generator.mix(np.uint64((int(bits) + sample) % 2**64)))
                        sums[k] += sampled(starts[k], team, weights, 3, rules.teams, dice)
                done, more = done + more, 2 * more
                order = sorted(order, key=lambda k: -sums[k])[: (len(order) + 1) // 2]
            if np.diff(np.sort(list(sums.values()))).min(initial=1.0) < 1e-5:
                continue  # as good: either may be kept
            assert bot.act(single(state), new_streams(1, 1)) == listed[order[0]][0][0]
            changed += int(order[0] != int(np.argmax(now)))
    assert changed > 1


def test_a_turn_is_planned_once():
    states, weights = positions(Rules(3), most=400), weights_of(3)
    begun = states[(states["phase"] == PLACE) & (states["placements_left"] == 4)][:20].copy()
    bot = bot_of(Rules(3), candidates=4, follow=4)
    wanted, streams = bots.opinion(bot, begun).values, new_streams(1, len(begun))
    while (rows := np.flatnonzero(np.isin(begun["phase"], (PLACE, MOVE)))).size:
        engine.step(begun, bot.act(begun[rows], streams[rows]), rows=rows, roll=False)
    np.testing.assert_allclose(values(begun, weights), wanted, atol=1e-6)


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
    game, bot = from_text(text), ValueBot(options=ValueOptions(follow=8))
    seat = int(game["player"][0])
    while game["player"][0] == seat and game["phase"][0] != OVER:
        engine.step(game, bot.act(game, new_streams(1, 1)))
    assert game["phase"][0] == MOVE or game["phase"][0] == PLACE, "the next player's turn"
    for plan in best_plans(game[0], MOST_PLANS):
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


@pytest.mark.parametrize("rules", [Rules(2), Rules(3)], ids=repr)
def test_following_a_disc_leaves_the_values_of_discs(rules):
    states = positions(rules, most=2000)
    due = states["turn"] == rules.players - 2  # one answer is to come
    states = states[(states["phase"] == DISC) & due][:20]
    plain = bots.opinion(bot_of(rules, candidates=3), states)
    followed = bots.opinion(bot_of(rules, candidates=3, follow=3, samples=1), states)
    same = (plain.probabilities == followed.probabilities).all(axis=1)
    assert same.sum() > 3
    np.testing.assert_array_equal(followed.values[same], plain.values[same])


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
    right = bot_of(Rules(2), follow=2).act(states, streams)
    np.testing.assert_array_equal(streams, before)
    wrong = bot_of(Rules(2), discs="now", errors=1.0).act(states, streams)
    assert (right != wrong).mean() > 0.3
    assert engine.are_legal(states, wrong).all()


@entry
def _list_and_value(states, selector):
    count = list_candidates(states[0], selector.candidates)
    return count, value_candidates(states[0], selector, count)


@every_kind
def test_values_by_differences_are_those_from_scratch(rules):
    """A turn's choices are valued one from the other; some are over, regions merge in some."""
    weights = weights_of(rules.players)
    selector = CandidateSelector.of(rules.players, weights, STOP, MOST_PLANS)
    states = positions(rules)
    most, regions = 0, set()
    for state in states[np.isin(states["phase"], (PLACE, DISC, CROWN_CHOICE))][::9]:
        count, best = _list_and_value(state.reshape(1), selector)
        after = pick(single(state), np.zeros(count, np.int64))
        for row, plan in enumerate(selector.candidates.plans[:count]):
            for action in actions_of(int(plan)):
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
    weights = RolloutPolicy().context_of(players).net.weights
    for state, action in zip(states, chosen, strict=True):
        result, team = valued(state, weights, 8), mover(state)
        best = max(value[team] for _, _, value in result)
        assert action in [actions[0] for actions, _, value in result if value[team] > best - 1e-5]
