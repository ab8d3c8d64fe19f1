"""The value network: what it sees, its values, and how it chooses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from carolus_env.bots.turns import model as turns_model
from strategies import ALL_KINDS, history, renamed

from carolus_env import bots, engine
from carolus_env.bots import AgentError, model_files
from carolus_env.bots.value import ahead, inference, inputs, model, network, tables, timed
from carolus_env.bots.value.ahead import disc_values, values_ahead
from carolus_env.bots.value.bot import ValueBot, ValueOptions
from carolus_env.bots.value.choice import Chooser, value_choices
from carolus_env.bots.value.timed import TimedValueBot
from carolus_env.engine import chance
from carolus_env.engine.rules import (
    CROWN_CHOICE,
    DISC,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    ROLL,
    TEAMS,
    Rules,
)
from carolus_env.engine.state import pick, single
from carolus_env.engine.streams import new_streams
from carolus_env.learners.value.learning import learn, new_worker, update
from carolus_env.networks.files import ModelError
from carolus_env.networks.forward import Weights
from carolus_env.networks.network import LEAK, LINEAR, Size
from carolus_env.planning.choices import list_choices
from carolus_env.planning.evaluation import FEATURES, all_weights
from carolus_env.planning.plans import STOP, actions_of, best_plans
from carolus_env.records import position

every_kind = pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)
every_number = pytest.mark.parametrize("players", [2, 3, 4])


def weights_of(players, seed=1, width=24, hidden=8):
    """Random weights with opinions; the tables' rows too."""
    size = Size(players, width, hidden)
    weights = network.random_weights(size, seed)
    random = np.random.default_rng(seed)
    weights["rows"] = (random.standard_normal(weights["rows"].shape) * 0.3).astype(np.float32)
    weights["out"] *= 5
    return weights


def positions(rules, seed=5, most=400):
    """Positions of random games, rolls that are due included, none of them over."""
    states = history(rules, seed=seed, games=6).ravel()
    states = states[states["phase"] != OVER]
    chosen = np.random.default_rng(seed).permutation(len(states))[:most]
    return states[np.sort(chosen)].copy()


def rotated(states, rules):
    """The same positions with everyone one seat further on, and the team that each becomes."""
    seats = [(seat + 1) % rules.players for seat in range(rules.players)]
    turned = [position.from_dict(renamed(position.to_dict(state), seats)) for state in states]
    after = {rules.team(old): rules.team(new) for old, new in enumerate(seats)}
    return np.concatenate(turned), np.array([after[team] for team in range(rules.teams)])


# ------------------------------------------------------------------------------------ inputs


def table_of(rows, players, name):
    """The rows that belong to a table, counted from its first."""
    layout = tables.layout(players)
    first = getattr(layout, name)
    after = layout[layout._fields.index(name) + 1]
    return rows[(rows >= first) & (rows < after)] - first


@every_kind
def test_a_position_has_its_rows_of_each_table(rules):
    states = positions(rules)
    seen = inputs.inputs(states)
    for state, rows in zip(states, seen.rows, strict=True):
        for table in tables.TABLES:
            there = table_of(rows[rows >= 0], rules.players, table.name)
            expected = tables.lookups(table, rules.players)
            if table.per.startswith("region"):
                expected = expected // 15 * int(state["regions"])
            assert len(there) == expected, table.name


@every_kind
def test_rows_say_what_the_tables_say(rules):
    states = positions(rules, most=60)
    seen = inputs.inputs(states)
    for state, rows in zip(states, seen.rows, strict=True):
        player = int(state["player"])
        team, teams = int(state["team"][player]), rules.teams
        # the region where the Emperor stands comes last, and its team's margin is in the row
        powers, _ = engine.strengths(state)
        own = powers[:, team] - np.delete(powers, team, axis=1).max(axis=1)
        limit = 7 if teams == 2 else 5
        margins = np.clip(np.roll(own, -1), -limit, limit) + 7
        views = teams if teams > 2 else 1
        there = table_of(rows, rules.players, "region")
        first_view = there[::views] if teams > 2 else there
        np.testing.assert_array_equal(first_view // tables.OWNERS % tables.MARGINS, margins)
        owners = np.roll(state["region_owner"][: state["regions"]], -int(state["emperor"]) - 1)
        sizes = np.roll(state["region_castles"][: state["regions"]], -int(state["emperor"]) - 1)
        size = np.minimum(sizes, 8 if teams == 2 else 4)
        expected = np.where((owners == NOBODY) | (owners == team), size, size + 8)
        np.testing.assert_array_equal(first_view % tables.OWNERS, expected)
        # hands: the player's first
        hands = table_of(rows, rules.players, "hand")
        assert hands[0] // 2 == state["discs_in_hand"][player]
        assert hands[0] % 2 == (state["discs_played"][player] > 0)
        # castles against each rival
        castles = table_of(rows, rules.players, "castles")
        for rival in range(1, teams):
            other = (team + rival) % teams
            pair = divmod(castles[rival - 1] % tables.MOST_CASTLES**2, tables.MOST_CASTLES)
            assert pair == (min(state["castles"][team], 10), min(state["castles"][other], 10))
        # clans: the lead in court over all others
        leads = table_of(rows, rules.players, "clan")[:: rules.players] // 48 % tables.LEADS
        courts = state["courts"][: rules.players].astype(int)
        lead = courts[player] - np.delete(courts, player, axis=0).max(axis=0)
        limit = 4 if teams == 2 else 3
        np.testing.assert_array_equal(leads, np.clip(lead, -limit, limit) + 4)


@pytest.mark.parametrize(
    "rules", [Rules(2), Rules(3), Rules(4), Rules(3, crown_choice="deferred")], ids=repr
)
def test_seats_do_not_matter(rules):
    states = positions(rules)
    weights = Weights.of(weights_of(rules.players))
    turned, owners = rotated(states, rules)
    before, after = inputs.inputs(states), inputs.inputs(turned)
    np.testing.assert_array_equal(before.rows, after.rows)
    np.testing.assert_array_equal(before.numbers, after.numbers)
    values = inference.values(states, weights)
    np.testing.assert_array_equal(inference.values(turned, weights)[:, owners], values)


def test_reach_says_what_a_turn_can_win():
    """A paladin of an own clan in the reserve makes a tie a win, where the disc gets there."""
    states = engine.new_games(Rules(2), 1, seed=3)
    state = states[0]
    state["phase"], state["round"], state["order"] = PLACE, 1, [0, 1, 0, 0]
    state["discs_played"], state["player"], state["turn"] = [2, 3, 0, 0], 0, 0
    state["placements_left"], state["control"] = 3, [0, NOBODY, NOBODY, NOBODY, NOBODY]
    state["courts"], state["reserves"] = 0, 0
    state["courts"][0, 0] = 1
    state["reserves"][0] = [1, 0, 0, 0, 6]
    state["region_paladins"] = 0
    rows = inputs.inputs(states).rows[0]
    reach = table_of(rows, 2, "reach")[::2]  # of the player to move
    after = reach // tables.OWNERS % tables.AFTERS + tables.LOST
    # green: one to the court takes the clan, two more come to the region; red alone: one
    np.testing.assert_array_equal(after, np.full(15, 2))
    classes = reach // (tables.OWNERS * tables.AFTERS)
    np.testing.assert_array_equal(classes, [tables.NOW] * 2 + [tables.NOT] * 13)


def test_a_game_that_is_over_has_no_inputs():
    states = engine.new_games(Rules(2), 1, seed=1)
    states["phase"] = OVER
    with pytest.raises(ValueError, match="its value is known"):
        inputs.inputs(states)
    mixed = np.concatenate([engine.new_games(Rules(p), 1, seed=1) for p in (2, 3)])
    with pytest.raises(ValueError, match="different numbers of players have different inputs"):
        inputs.inputs(mixed)


# ------------------------------------------------------------------------------------ values


@every_kind
def test_the_kernel_is_the_network(rules):
    states = positions(rules)
    weights = weights_of(rules.players)
    by_role = network.forward(weights, inputs.inputs(states))
    values = inference.values(states, Weights.of(weights))
    own = states["team"][np.arange(len(states)), states["player"]].astype(int)
    for role in range(rules.teams):
        team = (own + role) % rules.teams
        np.testing.assert_allclose(
            values[np.arange(len(states)), team], by_role[:, role], rtol=0, atol=1e-5
        )
    assert values.std(axis=0).min() > 0.05  # it has opinions


def test_the_value_of_the_end_is_the_result():
    states = history(Rules(3), seed=5, games=6)[-1]
    states = states[states["phase"] == OVER]
    assert len(states) > 3
    found = inference.values(states, Weights.of(weights_of(3)))
    np.testing.assert_array_equal(found, engine.win_shares(states))


# ------------------------------------------------------------------------------------ choices


def bot_of(rules, **options):
    size = Size(rules.players, 24, 8)
    options = {"plans": "stop", "next": 0, **options}
    return ValueBot(model.ValueModel(size, weights_of(rules.players)), ValueOptions(**options))


def value_after(state, actions, weights):
    """Each team's share of the win after actions, before the dice."""
    after = single(state)
    for action in actions:
        engine.step(after, np.array([action]), roll=False)
    return inference.values(after, weights)[0]


def best_now(state, weights, candidates, plans="stop"):
    """The best choice by plain Python: its actions, and the value after it."""
    if state["phase"] in (PLACE, MOVE):
        choices = best_plans(state, candidates, plans)
    else:
        choices = [[int(action)] for action in engine.legal_actions(state)]
    team = int(state["team"][state["player"]])
    values = [value_after(state, choice, weights) for choice in choices]
    best = int(np.argmax([value[team] for value in values]))
    return choices[best], values[best]


@pytest.mark.parametrize("plans", ["stop", "one"])
@every_kind
def test_it_plays_what_leads_to_the_best_position(rules, plans):
    states = positions(rules, most=60)
    states = states[np.isin(states["phase"], (CROWN_CHOICE, DISC, PLACE, MOVE))]
    weights = Weights.of(weights_of(rules.players))
    bot = bot_of(rules, candidates=5, discs="now", plans=plans)
    chosen = bot.act(states, new_streams(1, len(states)))
    for state, action in zip(states, chosen, strict=True):
        assert action == best_now(state, weights, 5, plans)[0][0]


def through_the_dice(state, weights, candidates):
    """Each team's mean share of the win over the dice due and the best next choice, in Python."""
    outcomes = chance.chance_outcomes(int(state["dice_due"]))
    mean = 0.0
    for faces, probability in zip(outcomes.faces, outcomes.probabilities, strict=True):
        after = single(state)
        chance.apply_roll(after, faces)
        while after["phase"][0] == CROWN_CHOICE:
            [crown], value = best_now(after[0], weights, candidates)
            engine.step(after, np.array([crown]), roll=False)
        if after["phase"][0] not in (OVER, ROLL):
            value = best_now(after[0], weights, candidates)[1]
        else:
            value = inference.values(after, weights)[0]
        mean = mean + probability * value
    return mean


@pytest.mark.parametrize("rules", [ALL_KINDS[0], ALL_KINDS[4]], ids=repr)
def test_turns_are_followed_through_every_roll(rules):
    states = positions(rules, most=300)
    states = states[states["phase"] == MOVE][:4]
    weights = Weights.of(weights_of(2))
    chosen = bot_of(rules, candidates=2, next=2, rolls=0).act(states, new_streams(1, len(states)))
    for state, action in zip(states, chosen, strict=True):
        found = {}
        for plan in best_plans(state, 2):
            after = single(state)
            engine.step(after, np.array(plan), roll=False)
            if after["phase"][0] == ROLL:
                value = through_the_dice(after[0], weights, 2)
            else:
                value = inference.values(after, weights)[0]
            found[plan[0]] = value[state["team"][state["player"]]]
        assert found[action] == pytest.approx(max(found.values()), abs=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_more_turns_are_followed_late_in_the_game(late):
    states = positions(Rules(2), most=1000)
    states = states[(states["phase"] == MOVE) & ((states["regions"] <= ahead.LATE) == late)]
    weights, changed = Weights.of(weights_of(2)), 0
    for state in states:
        team = state["team"][state["player"]]
        plans = best_plans(state, 5)
        if len(plans) < 5 or changed == 2:
            continue
        [action] = bot_of(Rules(2), candidates=5, next=1, rolls=0).act(
            single(state), new_streams(1, 1)
        )
        now = np.array([value_after(state, plan, weights)[team] for plan in plans])
        followed = np.argsort(-now, kind="stable")[: ahead.LATE_TURNS if late else 1]
        found = []
        for k in followed:
            after = single(state)
            engine.step(after, np.array(plans[k]), roll=False)
            is_roll = after["phase"][0] == ROLL
            found.append(through_the_dice(after[0], weights, 5)[team] if is_roll else now[k])
        assert [action] == plans[followed[int(np.argmax(found))]]
        changed += int(np.argmax(found) != 0) if late else 1
    assert changed == 2


def test_sampled_rolls_do_not_change_the_mind_within_a_turn():
    """What is planned after the first placement is what is planned after the others."""
    games = engine.new_games(Rules(2), 2, seed=8)
    bot = bot_of(Rules(2), candidates=3, next=2, rolls=2)
    streams, before = new_streams(1, 2), new_streams(1, 2)
    for _ in range(12):
        engine.step(games, bot.act(games, streams))
    np.testing.assert_array_equal(streams, before)  # nothing is drawn


def look_ahead(state, weights, candidates):
    """The best disc and its value by plain Python: every answer, then the first turn."""
    if state["phase"] != DISC:
        after = single(state)
        while after["phase"][0] == CROWN_CHOICE:
            [crown], _ = best_now(after[0], weights, candidates)
            engine.step(after, np.array([crown]), roll=False)
        if after["phase"][0] == OVER:
            return None, inference.values(after, weights)[0]
        return None, best_now(after[0], weights, candidates)[1]
    team, best = int(state["team"][state["player"]]), (None, None)
    for disc in engine.legal_actions(state):
        after = single(state)
        engine.step(after, np.array([disc]), roll=False)
        value = look_ahead(after[0], weights, candidates)[1]
        if best[1] is None or value[team] > best[1][team]:
            best = int(disc), value
    return best


@pytest.mark.parametrize("rules", [ALL_KINDS[k] for k in (0, 1, 3, 4, 6)], ids=repr)
def test_discs_are_looked_at_one_turn_ahead(rules):
    states = positions(rules, most=2000)
    last = states["turn"] >= rules.players - 2  # few answers
    states = states[(states["phase"] == DISC) & last][:8].copy()
    assert len(states)
    weights = Weights.of(weights_of(rules.players))
    bot = bot_of(rules, candidates=3)
    chosen = bot.act(states, new_streams(1, len(states)))
    told = bots.opinion(bot, states)
    for row, state in enumerate(states):
        disc, value = look_ahead(state, weights, 3)
        assert chosen[row] == disc
        assert told.probabilities[row, disc] == 1
        np.testing.assert_allclose(told.values[row], value, atol=1e-6)
    seen = disc_values(states, weights, candidates=3)
    team = states["team"][np.arange(len(states)), states["player"]].astype(int)
    best = np.nanargmax(seen[np.arange(len(states)), :, team], axis=1)
    np.testing.assert_array_equal(best, chosen)
    playable = engine.legal_masks(states)[:, :5]
    np.testing.assert_array_equal(np.isnan(seen).all(axis=2), playable == 0)


@every_number
def test_a_position_is_worth_what_the_best_next_choice_makes_of_it(players):
    states, weights = positions(Rules(players), most=40), Weights.of(weights_of(players))
    found = values_ahead(states, weights, candidates=3)
    now = inference.values(states, weights)
    for state, value, as_it_is in zip(states, found, now, strict=True):
        expected = as_it_is if state["phase"] == ROLL else look_on(state, weights, 3)
        np.testing.assert_allclose(value, expected, atol=1e-6)
    with pytest.raises(ValueError, match="phase disc"):
        disc_values(states, weights)


def look_on(state, weights, candidates):
    """The value after the best next choice that is no crown, in Python."""
    after = single(state)
    while after["phase"][0] == CROWN_CHOICE:
        [crown], _ = best_now(after[0], weights, candidates)
        engine.step(after, np.array([crown]), roll=False)
    if after["phase"][0] in (OVER, ROLL):
        return inference.values(after, weights)[0]
    return best_now(after[0], weights, candidates)[1]


def test_games_of_different_numbers_of_players_are_decided_together(tmp_path, monkeypatch):
    here = dataclasses.replace(model.ValueModel.kind(), folder=tmp_path)
    monkeypatch.setattr(model.ValueModel, "kind", staticmethod(lambda: here))
    for players in (2, 3):
        size = Size(players, 24, 8)
        model.save(model.ValueModel(size, weights_of(players)), tmp_path / f"{players}p")
    states = np.concatenate([engine.new_games(Rules(p), 3, seed=4) for p in (3, 2, 3)])
    found = bots.make("value:discs=now").act(states, new_streams(1, 9))
    alone = [bots.make("value:discs=now").act_one(state) for state in states]
    np.testing.assert_array_equal(found, alone)
    with pytest.raises(ModelError, match="no model for 4 players"):
        bots.make("value").act_one(engine.new_games(Rules(4), 1, seed=1)[0])


def test_one_model_is_for_one_number_of_players():
    with pytest.raises(AgentError, match="has a model for 2 players, not for 3"):
        bot_of(Rules(2)).act_one(engine.new_games(Rules(3), 1, seed=1)[0])


def test_errors_are_drawn():
    states = positions(Rules(2))
    states = states[states["phase"] == DISC]
    streams = new_streams(1, len(states))
    right = bot_of(Rules(2), discs="now").act(states, streams.copy())
    wrong = bot_of(Rules(2), discs="now", errors=1.0).act(states, streams.copy())
    assert (right != wrong).mean() > 0.3
    assert engine.are_legal(states, wrong).all()


@every_kind
def test_values_by_differences_are_those_from_scratch(rules):
    """A turn's choices are valued one from the other; some are over, regions merge in some."""
    weights = Weights.of(weights_of(rules.players))
    net = inference.Network.of(rules.players, weights)
    chooser = Chooser.of(net, STOP, all_weights()[rules.players].copy(), candidates=4096)
    states = positions(rules)
    most, regions = 0, set()
    for state in states[np.isin(states["phase"], (PLACE, DISC, CROWN_CHOICE))][::9]:
        count = list_choices(state, chooser.lister)
        best = value_choices(state, chooser, count)
        after = pick(single(state), np.zeros(count, np.int64))
        for row, plan in enumerate(chooser.lister.choices[:count]):
            for action in actions_of(int(plan)):
                engine.step(after, np.array([action]), rows=np.array([row]), roll=False)
        team = state["team"][state["player"]]
        expected = inference.values(after, weights)[:, team]
        np.testing.assert_allclose(chooser.values[:count], expected, atol=1e-5)
        assert best == chooser.values[:count].argmax()
        most = max(most, count)
        regions |= set((after["regions"].astype(int) - int(state["regions"])).tolist())
    if rules.paladins_per_clan == 40:  # games with few paladins are short
        assert most > inference.MOST_CHANGES  # and so the sums were added up anew
        assert {0, -1} <= regions


# ------------------------------------------------------------------------------------ the clock


def timed_bot(rules, **options):
    size = Size(rules.players, 24, 8)
    options = ValueOptions(**{"plans": "stop", **options})
    return TimedValueBot(model.ValueModel(size, weights_of(rules.players)), options)


@pytest.mark.parametrize("rules", [ALL_KINDS[0], Rules(3)], ids=repr)
def test_with_time_enough_all_plans_are_followed_through_every_roll(rules):
    states = positions(rules, most=300)
    states = states[np.isin(states["phase"], (PLACE, MOVE, DISC))][:12]
    streams = new_streams(1, len(states))
    expected = bot_of(rules, candidates=4, next=4, rolls=0).act(states, streams.copy())
    bot = timed_bot(rules, candidates=4, seconds=1000.0)
    np.testing.assert_array_equal(bot.act(states, streams.copy()), expected)
    found = bot.opinion(states, streams)
    np.testing.assert_array_equal(found.probabilities.argmax(axis=1), expected)
    np.testing.assert_allclose(found.values.sum(axis=1), 1, atol=1e-5)


def test_its_opinion_is_the_mean_over_the_dice():
    states = positions(Rules(2), most=300)
    states = states[states["phase"] == MOVE][:3]
    found = timed_bot(Rules(2), candidates=1, seconds=1000.0).opinion(states, new_streams(1, 3))
    for row, state in enumerate(states):
        after = single(state)
        engine.step(after, found.probabilities[row : row + 1].argmax(axis=1), roll=False)
        if after["phase"][0] == ROLL:  # positions ahead have one candidate here, too
            expected = through_the_dice(after[0], Weights.of(weights_of(2)), 1)
            np.testing.assert_allclose(found.values[row], expected, atol=1e-5)


def test_without_time_the_best_plan_is_played_by_the_position_after_it():
    states = positions(Rules(2), most=300)
    states = states[states["phase"] == PLACE][:6]
    bot = timed_bot(Rules(2), candidates=5, seconds=1e-9)
    for state in states:
        plan = best_now(state, Weights.of(weights_of(2)), 5)[0]
        game, streams = single(state), new_streams(1, 1)
        for action in plan:  # the rest of the turn is remembered
            assert bot.act(game, streams).tolist() == [action]
            engine.step(game, np.array([action]))


def test_a_turn_is_thought_about_once(monkeypatch):
    states = positions(Rules(2), most=300)
    game = single(states[(states["phase"] == PLACE) & (states["placements_left"] == 3)][0])
    bot, streams, thought = timed_bot(Rules(2), seconds=0.01), new_streams(1, 1), []
    listed = timed._list
    monkeypatch.setattr(timed, "_list", lambda *given: thought.append(1) or listed(*given))
    for _ in range(4):
        engine.step(game, bot.act(game, streams))
    assert thought == [1]


def test_the_clock_goes_with_no_errors():
    with pytest.raises(AgentError, match=r"no errors with seconds=0.1, got errors=0.5"):
        ValueOptions(seconds=0.1, errors=0.5)
    with pytest.raises(AgentError, match=r"seconds=0.1 needs a TimedValueBot"):
        bot_of(Rules(2), seconds=0.1)
    assert isinstance(bots.make("value:2p,seconds=0.1"), TimedValueBot)
    assert not bots.is_compiled(bots.make("value:2p,seconds=0.1"))
    assert bots.is_compiled(bots.make("value:2p"))


# ------------------------------------------------------------------------------------ files


def test_what_was_saved_is_read_back(tmp_path):
    made = model.ValueModel(Size(3, 24, 8), weights_of(3), {"seed": 7})
    model.save(made, tmp_path / "v")
    again = model.load(tmp_path / "v.json")
    assert again.size == made.size
    assert again.about == {"seed": 7}
    for name, array in made.weights.items():
        np.testing.assert_array_equal(again.weights[name], array)
    assert bots.make(f"value:{tmp_path}/v,candidates=4").options.candidates == 4


def test_other_models_are_refused():
    size = Size(2, 24, 8)
    with pytest.raises(ModelError, match="rows must be float32"):
        model.ValueModel(size, {**weights_of(2), "rows": np.zeros((2, 2), np.float32)})
    with pytest.raises(ValueError, match="width must be from 16 to 1024, got 3"):
        Size(2, width=3)
    with pytest.raises(ModelError, match="got 'carolus-turns', a model that the bot ppo"):
        model.load(turns_model.SHIPPED / "2p")
    assert model_files.NAMES == ("2p", "3p", "4p")


# ------------------------------------------------------------------------------------ learning


def test_an_update_goes_down_the_cross_entropy():
    """One step of each weight against the slope of the plain network's loss, in differences."""
    size, huge = Size(3, 24, 8), 1e10
    arrays = weights_of(3)
    arrays["out"] *= 0.1
    state = positions(Rules(3))[7:8]
    target = np.array([0.2, 0.7, 0.1])
    weights = Weights.of(arrays)
    squares = Weights(*(np.full_like(array, huge) for array in weights))
    worker = new_worker(3, weights, squares, STOP, 4, all_weights()[3].copy())
    worker.gradients.target[:] = target
    rate = 1e3 * np.sqrt(huge)  # the step is then a thousand times the slope
    own = int(state["team"][0, state["player"][0]])
    net = worker.chooser.net
    inference.write_roles(state[0], net)
    loss = update(net.seen, own, 3, worker, np.float32(rate))
    seen = inputs.inputs(state)
    [stage] = seen.stages
    by_role = np.array([target[(own + role) % 3] for role in range(3)])

    def loss_with(name, index, change):
        changed = {key: array.astype(np.float64) for key, array in arrays.items()}
        changed[name][index] += change
        sums = changed["rows"][seen.rows[0][seen.rows[0] >= 0]].sum(axis=0)
        sums = sums + seen.numbers[0] @ changed["numbers"] + changed["bias"]
        leaky = lambda x: np.where(x > 0, x, LEAK * x)  # noqa: E731
        hidden, hidden_bias, out, out_bias = (
            changed[key][stage] for key in ("hidden", "hidden_bias", "out", "out_bias")
        )
        second = leaky(leaky(sums[:-LINEAR]) @ hidden + hidden_bias)
        scores = np.concatenate([second, sums[-LINEAR:]]) @ out + out_bias
        return np.log(np.exp(scores).sum()) - by_role @ scores

    assert loss == pytest.approx(loss_with("bias", 0, 0.0), abs=1e-5)
    random = np.random.default_rng(0)
    for name, shape in network.shapes(size).items():
        for _ in range(6):
            index = tuple(int(random.integers(n)) for n in shape)
            if name.startswith(("hidden", "out")) and random.random() < 0.8:
                index = (stage, *index[1:])
            if name == "rows":
                index = (int(random.choice(seen.rows[0][seen.rows[0] >= 0])), index[1])
            slope = (loss_with(name, index, 1e-5) - loss_with(name, index, -1e-5)) / 2e-5
            times = (seen.rows[0] == index[0]).sum() if name == "rows" else 1
            step = (arrays[name][index] - getattr(weights, name)[index]) / 1e3
            assert step == pytest.approx(slope if times else 0.0, abs=2e-3 * max(1, abs(slope)))


@every_number
def test_losses_fall_within_some_hundred_games(players):
    rules, size = Rules(players), Size(players, 24, 8)
    weights = Weights.of(network.random_weights(size, 1))
    squares = Weights(*(np.full_like(array, 0.1) for array in weights))
    worker = new_worker(players, weights, squares, STOP, 4, all_weights()[players].copy())
    losses = []
    for part in range(3):
        told = np.zeros(3)
        starts, streams = engine.new_games(rules, 150, seed=1000 * part), new_streams(part, 150)
        learn(starts, streams, worker, 0.03, 0.5, np.float32(0.05), told)
        losses.append(told[1] / told[0])
    assert losses[-1] < min(losses[0] - 0.01, np.log(TEAMS[players]) - 0.03)
    assert len(FEATURES) * TEAMS[players] == len(weights.numbers)
