"""Networks: what they see, plain NumPy against the kernels, gradients, optimisers."""

import numpy as np
import pytest
from networks import (
    encode_all,
    evaluate_position,
    plain_scores,
    plain_values,
    positions,
    random_model,
    role_values,
    scores_of,
)
from numpy import float32
from strategies import ALL_KINDS, every_number, history, renamed

from carolus_env import engine
from carolus_env.engine.rules import NOBODY, OVER, PLACE, TEAMS, Rules
from carolus_env.networks import inputs, network
from carolus_env.networks.network import Deltas, Network, Weights
from carolus_env.records import position
from carolus_env.system.compiler import entry

every_kind = pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)
with_and_without_head = pytest.mark.parametrize("policy", [False, True])


def table_of(rows, players, name):
    """The rows that belong to a table, counted from its first."""
    layout = inputs.layout(players)
    first = getattr(layout, name)
    after = layout[layout._fields.index(name) + 1]
    return rows[(rows >= first) & (rows < after)] - first


@every_kind
def test_a_position_has_its_rows_of_each_table_and_they_say_what_it_says(rules):
    states = positions(rules)
    for number, (state, rows) in enumerate(zip(states, encode_all(states).rows, strict=True)):
        for table in inputs.TABLES:
            there = table_of(rows[rows >= 0], rules.players, table.name)
            expected = inputs.lookups(table, rules.players)
            if table.per.startswith("region"):
                expected = expected // 15 * int(state["regions"])
            assert len(there) == expected, table.name
        if number % 7:
            continue
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
        np.testing.assert_array_equal(first_view // inputs.OWNERS % inputs.MARGINS, margins)
        owners = np.roll(state["region_owner"][: state["regions"]], -int(state["emperor"]) - 1)
        sizes = np.roll(state["region_castles"][: state["regions"]], -int(state["emperor"]) - 1)
        size = np.minimum(sizes, 8 if teams == 2 else 4)
        expected = np.where((owners == NOBODY) | (owners == team), size, size + 8)
        np.testing.assert_array_equal(first_view % inputs.OWNERS, expected)
        # hands: the player's first
        hands = table_of(rows, rules.players, "hand")
        assert hands[0] // 2 == state["discs_in_hand"][player]
        assert hands[0] % 2 == (state["discs_played"][player] > 0)
        # castles against each rival
        castles = table_of(rows, rules.players, "castles")
        for rival in range(1, teams):
            other = (team + rival) % teams
            pair = divmod(castles[rival - 1] % inputs.MOST_CASTLES**2, inputs.MOST_CASTLES)
            assert pair == (min(state["castles"][team], 10), min(state["castles"][other], 10))
        # clans: the lead in court over all others
        leads = table_of(rows, rules.players, "clan")[:: rules.players] // 48 % inputs.LEADS
        courts = state["courts"][: rules.players].astype(int)
        lead = courts[player] - np.delete(courts, player, axis=0).max(axis=0)
        limit = 4 if teams == 2 else 3
        np.testing.assert_array_equal(leads, np.clip(lead, -limit, limit) + 4)


@pytest.mark.parametrize(
    "rules", [Rules(2), Rules(3), Rules(4), Rules(3, crown_choice="deferred")], ids=repr
)
def test_seats_do_not_matter(rules):
    """The same positions with everyone one seat further on."""
    states, weights = positions(rules), Weights.of(random_model(rules.players).weights)
    seats = [(seat + 1) % rules.players for seat in range(rules.players)]
    turned = [position.from_dict(renamed(position.to_dict(state), seats)) for state in states]
    turned, becomes = np.concatenate(turned), {}
    for old, new in enumerate(seats):
        becomes[rules.team(old)] = rules.team(new)
    owners = [becomes[team] for team in range(rules.teams)]
    before, after = encode_all(states), encode_all(turned)
    np.testing.assert_array_equal(before.rows, after.rows)
    np.testing.assert_array_equal(before.features, after.features)
    values = network.values(states, weights)
    np.testing.assert_array_equal(network.values(turned, weights)[:, owners], values)


def test_reach_says_what_a_turn_can_win():
    """A paladin of an own clan in the reserve makes a tie a win, where the disc gets there."""
    states = engine.new_games(Rules(2), 1, seed=3)
    state = states[0]
    for name, value in {
        "phase": PLACE,
        "round": 1,
        "order": [0, 1, 0, 0],
        "discs_played": [2, 3, 0, 0],
        "player": 0,
        "turn": 0,
        "placements_left": 3,
        "control": [0, *[NOBODY] * 4],
        "courts": 0,
        "reserves": 0,
        "region_paladins": 0,
    }.items():
        state[name] = value
    state["courts"][0, 0] = 1
    state["reserves"][0] = [1, 0, 0, 0, 6]
    reach = table_of(encode_all(states).rows[0], 2, "reach")[::2]  # of the player to move
    # green: one to the court takes the clan, two more come to the region; red alone: one
    np.testing.assert_array_equal(reach // inputs.OWNERS % inputs.AFTERS + inputs.LOST, [2] * 15)
    classes = reach // (inputs.OWNERS * inputs.AFTERS)
    np.testing.assert_array_equal(classes, [inputs.NOW] * 2 + [inputs.NOT] * 13)


@with_and_without_head
@every_kind
def test_the_kernels_are_the_network(rules, policy):
    states, weights = positions(rules), random_model(rules.players, policy).weights
    inputs, each = encode_all(states), range(len(states))
    scores = np.array([scores_of(weights, inputs, row) for row in each])
    values = np.array([role_values(weights, inputs, row) for row in each])
    net, updated = (Network.of(rules.players, Weights.of(weights)) for _ in range(2))
    for row in each:
        evaluate_position(states[row : row + 1], net, False)
        evaluate_position(states[row : row + 1], updated, True)
        for result in (net.activations, updated.activations):
            np.testing.assert_allclose(result.scores, scores[row], atol=1e-4)
            np.testing.assert_allclose(result.values, values[row], atol=2e-5)
    assert scores.shape[1] == rules.teams + policy
    assert scores.std(axis=0).min() > 0.05, "it has opinions"


@with_and_without_head
@every_number
def test_values_belong_to_teams_and_that_of_the_end_is_the_result(players, policy):
    weights, states = random_model(players, policy).weights, history(Rules(players), 5, 6).ravel()
    over = np.flatnonzero(states["phase"] == OVER)[:5]
    for some in (states[over], states[states["phase"] != OVER][::9].copy()):
        wanted = plain_values(weights, some)
        np.testing.assert_allclose(network.values(some, Weights.of(weights)), wanted, atol=2e-5)


def test_an_untrained_policy_follows_the_value():
    weights = network.random_weights(network.Size(2, policy=True), 1)
    assert not weights["out"][:, -1].any() and weights["out"][:, :-1].any()
    assert weights["sharpness"].tolist() == [network.SHARPNESS]
    without = network.random_weights(network.Size(2), 1)
    assert without["sharpness"].shape == (0,)
    np.testing.assert_array_equal(without["out"], weights["out"][:, :-1])


@entry
def _add_gradients(net, deltas, hidden, gradients):
    """Do what learners do with a position: forward, back, and down to each weight."""
    weights, inputs, activations = net.weights, net.inputs, net.activations
    stage = inputs.stage[0]
    network.add_up(weights, inputs, activations.sums)
    network.apply_layers(weights, stage, activations)
    network.transpose(weights.hidden[stage], hidden)
    network.backpropagate(weights, stage, hidden, activations, deltas)
    add = network.accumulate
    network.learn_layers(add, gradients, gradients, stage, activations, deltas, float32(0))
    network.learn_inputs(add, gradients, gradients, inputs, deltas, float32(0))


@with_and_without_head
@every_number
def test_gradients_are_those_of_pytorch(players, policy):
    """The loss is the sum of the scores of some positions, each times a number of its own."""
    torch = pytest.importorskip("torch")
    states, weights = positions(Rules(players), most=12), random_model(players, policy).weights
    net = Network.of(players, Weights.of(weights))
    gradients, deltas = Weights(*map(np.zeros_like, net.weights)), Deltas.new(net.activations)
    hidden = np.zeros(net.weights.hidden.shape[:0:-1], np.float32)
    inputs, loss = encode_all(states), 0.0
    factors = np.random.default_rng(1).normal(size=(len(states), TEAMS[players] + policy))
    leaves = {
        name: torch.tensor(weights[name].astype(np.float64), requires_grad=True)
        for name in Weights._fields
    }
    for row, stage in enumerate(inputs.stages):
        evaluate_position(states[row : row + 1], net, False)
        deltas.scores[:] = factors[row]
        _add_gradients(net, deltas, hidden, gradients)
        rows = inputs.rows[row][inputs.rows[row] >= 0].astype(np.int64)
        features = torch.tensor(inputs.features[row].astype(np.float64))
        scores = plain_scores(leaves, rows, features, stage)
        loss = loss + (scores * torch.tensor(factors[row])).sum()
    loss.backward()
    gradients = gradients._asdict()
    assert not gradients.pop("sharpness").any(), "it is no part of the scores"
    for name, gradient in gradients.items():
        expected = leaves[name].grad.numpy()
        np.testing.assert_allclose(gradient, expected, atol=1e-4 * np.abs(expected).max())
        assert gradient.any(), name
