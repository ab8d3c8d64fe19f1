"""TD(lambda): the targets of a game's positions, the step for one of them, games, minutes."""

import numpy as np
import pytest
from strategies import every_number

pytest.importorskip("rich")  # of the extra `train`

from networks import (
    encode_all,
    evaluate_position,
    plain_choices,
    plain_scores,
    positions,
    random_model,
    slope,
)

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.chance import Deals
from carolus_env.engine.rules import OVER, TEAMS, Rules
from carolus_env.learners import td
from carolus_env.learners.run import Run
from carolus_env.learners.selfplay import WorkerPool
from carolus_env.learners.td import TdConfig, TdLearner
from carolus_env.networks.network import Weights, values
from carolus_env.system.compiler import entry


def small_learner(players=2, **options):
    """A learner whose network has learnt something already."""
    sizes = {"width": 16, "hidden": 4, "candidates": 5, "workers": 1}
    learner = TdLearner(TdConfig(rules=Rules(players), **sizes, **options))
    for name, array in random_model(players, width=16, hidden=4).weights.items():
        getattr(learner.weights, name)[...] = array
    return learner


def play(learner, start, exploration, trace, seed):
    """Play a game and learn nothing; return the number of positions kept, and the loss."""
    memory, stats = learner._memory, np.zeros(len(learner.stats))
    memory.inputs.lengths[:] = -1
    streams = np.array([seed], np.uint64)
    td.learn(start, streams, memory, exploration, trace, np.float32(0), stats)
    learnt = int(stats[2])
    return learnt + int(memory.inputs.lengths[learnt] == 0), stats[3]


def best_after(state, weights, rows):
    """The position after the best choice, by plain Python, and each team's value there.

    Of choices that are equal but for rounding it is the one that leads to these inputs.
    """
    result = [(after, values(after, weights)[0]) for _, after in plain_choices(state, 5)]
    team = int(state["team"][state["player"]])
    best = max(value[team] for _, value in result)
    equal = [one for one in result if one[1][team] > best - 1e-5]
    for after, value in equal:
        if after[0]["phase"] != OVER:
            encoded = encode_all(after).rows[0]
            if np.array_equal(encoded[encoded >= 0], rows):
                return after, value
    return equal[0]


@every_number
def test_a_game_follows_the_best_choices_and_keeps_the_positions_after_them(players):
    learner = small_learner(players)
    memory, start = learner._memory, engine.new_games(Rules(players), 1, seed=3)
    count, _ = play(learner, start, 0.0, 0.5, seed=1)
    state = start.copy()
    assert memory.state[0]["phase"] == OVER
    assert memory.followed[:count].all()
    for t in range(count):
        rows = memory.inputs.rows[t, : memory.inputs.lengths[t]]
        after, value = best_after(state[0], learner.weights, rows)
        np.testing.assert_allclose(memory.values[t, : TEAMS[players]], value, atol=1e-5)
        if after[0]["phase"] == OVER:
            assert (t, memory.inputs.lengths[t]) == (count - 1, 0)
            continue
        inputs = encode_all(after)
        np.testing.assert_array_equal(rows, inputs.rows[0][inputs.rows[0] >= 0])
        np.testing.assert_array_equal(memory.inputs.features[t], inputs.features[0])
        assert memory.inputs.stages[t] == inputs.stages[0]
        assert memory.inputs.first_team[t] == after[0]["team"][after[0]["player"]]
        state = after
        chance.roll(state)


@pytest.mark.parametrize("trace", [0.0, 0.4, 1.0])
@every_number
def test_targets_mix_the_result_and_the_values_after_the_best_decisions(players, trace):
    """By the definition: with a rate of 0 the loss tells what the targets were."""
    learner, teams = small_learner(players), TEAMS[players]
    memory, explored = learner._memory, 0
    for seed in range(3):
        start, expected = engine.new_games(Rules(players), 1, seed=seed), 0.0
        count, loss = play(learner, start, 0.2, trace, seed)
        seats = [list(memory.state[0]["team"]).index(team) for team in range(teams)]
        target = engine.win_shares(memory.state)[0][seats] * (players // teams)
        for t in reversed(range(count)):
            if memory.inputs.lengths[t]:
                rows = memory.inputs.rows[t, : memory.inputs.lengths[t]]
                features = memory.inputs.features[t, : len(learner.weights.features)]
                scores = plain_scores(
                    learner.weights._asdict(), rows, features, memory.inputs.stages[t]
                )
                logs = scores - np.log(np.exp(scores).sum())
                roles = (memory.inputs.first_team[t] + np.arange(teams)) % teams
                expected -= target[roles] @ logs
            decay = trace if memory.followed[t] else 0.0
            target = decay * target + (1 - decay) * memory.values[t, :teams]
        explored += count - memory.followed[:count].sum()
        assert loss == pytest.approx(expected, rel=1e-4)
    assert explored > 5


def test_an_update_is_a_step_of_adagrad_down_the_cross_entropy():
    learner = small_learner(3)
    memory, target = learner._memory, np.array([0.2, 0.7, 0.1])
    weights = {name: array.astype(float) for name, array in learner.weights._asdict().items()}
    state = positions(Rules(3))[7:8]
    inputs, own = encode_all(state), int(state["team"][0, state["player"][0]])
    rows, by_role = inputs.rows[0][inputs.rows[0] >= 0], np.roll(target, -own)

    def loss_of(arrays):
        scores = plain_scores(arrays, rows, inputs.features[0], inputs.stages[0])
        return np.log(np.exp(scores).sum()) - by_role @ scores

    evaluate_position(state, memory.selector.net, False)
    memory.target[:] = target
    assert _update(memory, own, np.float32(0.1)) == pytest.approx(loss_of(weights), abs=1e-5)
    random = np.random.default_rng(0)
    for name in Weights._fields[:-1]:
        moved = getattr(learner.weights, name) - weights[name]
        squares = getattr(memory.squares, name) - 0.1
        for place in random.permutation(np.argwhere(squares > 1e-4))[:6]:
            at = tuple(place)
            times = (rows == at[0]).sum() if name == "rows" else 1  # a step for each
            g = slope(loss_of, weights, name, at) / times
            sums = np.arange(1, times + 1) * g * g
            assert squares[at] == pytest.approx(sums[-1], rel=0.02, abs=1e-5), name
            expected = (-0.1 * g / np.sqrt(0.1 + sums)).sum()
            assert moved[at] == pytest.approx(expected, rel=0.02), name
        assert not moved[squares == 0].any()


@entry
def _update(memory, first_team, rate):
    return td.update(memory, first_team, rate)


def test_one_worker_learns_game_by_game():
    config = TdConfig(workers=1, width=16, hidden=4, candidates=5)
    pool, one = WorkerPool(TdLearner, config), TdLearner(config)
    for first, count in ((0, 3), (3, 4)):
        pool.learn(first, count, 0.03)
    stats = np.zeros(len(one.stats))
    deals = Deals.of(config.seed, np.arange(7))
    games, streams = deals.games(Rules(2)), deals.streams()[:, 0].copy()
    options = config.exploration, config.trace, np.float32(0.03)
    td.learn(games, streams, one._memory, *options, stats)
    for name, array in one.shared.items():
        np.testing.assert_array_equal(pool.shared[name], array)
    np.testing.assert_allclose(pool.stats, stats, rtol=1e-12)  # added up in another order


def test_a_run_by_minutes_ends_after_that_much_time_of_learning(tmp_path):
    sizes = {"width": 16, "hidden": 4, "candidates": 5, "games_per_round": 4, "eval_games": 2}
    config = TdConfig(workers=1, minutes=0.01, **sizes)
    run, shares = Run(config, tmp_path), []
    run.show = lambda progress: shares.append(progress.fraction)
    assert run.train()
    assert run.clock.seconds()["learning"] >= 0.6
    assert shares == sorted(shares)
    assert shares[-1] >= 1 > shares[-2]
    longer = config.extended({"games": 9})
    assert (longer.games, longer.minutes, longer.progress(3, 90.0)) == (
        9,
        None,
        pytest.approx(1 / 3),
    )
