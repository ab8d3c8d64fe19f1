"""PPO on every seat's decisions: payoffs, advantages, minibatches, and the policy."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

from carolus_env import engine  # noqa: E402
from carolus_env.bots.neural import network  # noqa: E402
from carolus_env.engine import observation  # noqa: E402
from carolus_env.engine.rules import Rules  # noqa: E402
from carolus_env.engine.streams import new_streams  # noqa: E402
from carolus_env.envs.learner import LEARNER  # noqa: E402
from carolus_env.envs.sb3 import CarolusVecEnv  # noqa: E402
from carolus_env.learners.single.buffer import to_absolute, to_relative  # noqa: E402
from carolus_env.learners.single.config import Config  # noqa: E402
from carolus_env.learners.single.player import TorchPlayer  # noqa: E402
from carolus_env.learners.single.ppo import SelfPlayPPO  # noqa: E402
from carolus_env.learners.single.run import Run  # noqa: E402
from carolus_env.records import make_record  # noqa: E402


class Everybody:
    """The learner in every seat."""

    agents = ()

    def seat(self, learner_seats, random):
        return np.full((len(learner_seats), self.players), LEARNER)


def learner(players, n=8, steps=32, *, seed=5, max_rounds=100, **options):
    everybody = Everybody()
    everybody.players = players
    rules = Rules(players, max_rounds=max_rounds)
    env = CarolusVecEnv(rules, n, everybody, seed=seed, dtype=np.uint8)
    size = network.Size(players, region=4, trunk=4)
    options = {"n_steps": steps, "batch_size": 16, "device": "cpu", **options}
    model = SelfPlayPPO(env, size=size, seed=seed, **options)
    model._setup_learn(10**9)
    return model


def collect(model):
    from stable_baselines3.common.callbacks import CallbackList

    callback = CallbackList([])
    callback.init_callback(model)
    buffer = model.rollout_buffer
    model.collect_rollouts(model.env, callback, buffer, model.n_steps)
    return buffer


def payoffs_of(game, rules):
    """Every team's payoff by a game's record."""
    result = game["result"]
    share = np.zeros(rules.teams)
    if result["winners"]:
        share[result["winners"]] = 1 / len(result["winners"])
    else:
        share[:] = 1 / rules.teams
    return (rules.teams * share - 1) / (rules.teams - 1)


def check_payoffs(players, games):
    """The rewards of the first game of each row are the payoffs of its record."""
    model = learner(players, games, 64, seed=11, max_rounds=25)
    rules = model.env.games.rules
    starts = engine.new_games(rules, games, seed=11, roll=False)
    moves = [[] for _ in range(games)]
    seen = np.zeros((games, rules.teams))
    playing = np.ones(games, bool)
    while playing.any():
        buffer = collect(model)
        for t in range(buffer.buffer_size):
            for row in np.flatnonzero(playing):
                moves[row].append(int(buffer.actions[t, row]))
            seen[playing] += buffer.rewards[t, playing]
            playing &= ~buffer.ends[t]
    recorded = np.array([
        payoffs_of(make_record(starts[row : row + 1], moves[row]), rules)
        for row in range(games)
    ])  # fmt: skip
    assert seen == pytest.approx(recorded)
    assert seen.sum() == pytest.approx(0, abs=1e-3), "what one wins another loses"
    assert (seen == -1).any() or players == 3
    assert (seen.max(axis=1) == 1).any()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_payoffs_learnt_from_are_those_of_the_games_records(players):
    check_payoffs(players, 40)


@pytest.mark.slow
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_payoffs_of_1000_training_games_are_those_of_their_records(players):
    check_payoffs(players, 1000)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_against_others_the_learner_is_paid_what_its_seat_is_paid(tmp_path, players):
    config = Config(players=players, games=32, rollout=64, region=4, trunk=4, max_rounds=25,
                    bots=("greedy", "random"), self_share=0.5)  # fmt: skip
    run = Run(config, tmp_path)
    paid = []
    step = run.env.step_wait

    def watched():
        found = step()
        ended = run.env.ended
        if len(ended.rows):
            payoffs = engine.returns(ended.states)
            first = [int(np.flatnonzero(ended.states[0]["team"] == t)[0]) for t in
                     range(run.rules.teams)]  # fmt: skip
            paid.extend(payoffs[:, first])
        return found

    run.env.step_wait = watched
    run.model._setup_learn(10**9)
    seen, ends = np.zeros(run.rules.teams), 0
    while ends < 150:
        buffer = collect(run.model)
        seen += buffer.rewards.sum(axis=(0, 1))
        ends += int(buffer.ends.sum())
    assert ends == len(paid)
    assert seen == pytest.approx(np.sum(paid, axis=0), abs=1e-3)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_each_decision_is_stored_with_what_its_player_saw(players):
    model = learner(players)
    states, steps = [], model.env.step_async
    model.env.step_async = lambda moves: (states.append(model.env.games.states.copy()),
                                          steps(moves))  # fmt: skip
    buffer = collect(model)
    for t, before in enumerate(states):
        assert (buffer.observations[t] == observation.observe(before)).all()
        assert (buffer.masks[t] == engine.legal_masks(before)).all()
        assert engine.are_legal(before, buffer.actions[t]).all()
        assert (buffer.acting[t] == [state["team"][state["player"]] for state in before]).all()


def brute_force(buffer, last, gamma, lam):
    """Advantages of every team by the definition: a sum over all that follows."""
    steps, n, teams = buffer.values.shape
    found = np.zeros((steps, n, teams))
    for g in range(n):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                after = last[g] if k + 1 == steps else buffer.values[k + 1, g]
                after = np.zeros(teams) if buffer.ends[k, g] else after
                found[t, g] += weight * (buffer.rewards[k, g] + gamma * after - buffer.values[k, g])
                weight *= gamma * lam
                if buffer.ends[k, g]:
                    break
    return found


@pytest.mark.parametrize("players", [2, 3, 4])
def test_advantages_are_those_of_the_team_that_decides(players):
    model = learner(players, gamma=0.97, gae_lambda=0.9)
    buffer = collect(model)
    random = np.random.default_rng(0)
    buffer.ends[:] = random.random(buffer.ends.shape) < 0.1
    buffer.rewards[:] = random.normal(size=buffer.rewards.shape) * buffer.ends[:, :, None]
    last = random.normal(size=(8, buffer.teams)).astype(np.float32)
    buffer.compute_advantages(last)
    wanted = brute_force(buffer, last, 0.97, 0.9)
    own = np.take_along_axis(wanted, buffer.acting[:, :, None], 2)[:, :, 0]
    assert buffer.advantages == pytest.approx(own, abs=1e-4)
    assert buffer.returns == pytest.approx(wanted + buffer.values, abs=1e-4)


@pytest.mark.parametrize("teams", [2, 3])
def test_relative_values_begin_with_the_acting_team_and_turn_back(teams):
    random = np.random.default_rng(1)
    values, acting = random.normal(size=(50, teams)), random.integers(teams, size=50)
    relative = to_relative(values, acting)
    assert (relative[:, 0] == values[np.arange(50), acting]).all()
    assert (to_absolute(relative, acting) == values).all()


def test_minibatches_hold_every_decision_once_from_its_teams_side():
    model = learner(3)
    buffer = collect(model)
    total = buffer.buffer_size * buffer.n_envs
    batches = list(buffer.get(50))
    assert [len(batch.actions) for batch in batches] == [50] * (total // 50) + [total % 50]
    logs = np.concatenate([batch.old_log_prob.numpy() for batch in batches])
    assert np.sort(logs) == pytest.approx(np.sort(buffer.log_probs.ravel()))
    own = np.concatenate([batch.returns.numpy().reshape(-1, 3)[:, 0] for batch in batches])
    wanted = np.take_along_axis(buffer.returns, buffer.acting[:, :, None], 2).ravel()
    assert np.sort(own) == pytest.approx(np.sort(wanted))


@pytest.mark.parametrize("players", [2, 3, 4])
def test_actions_are_drawn_by_the_policy(players):
    model = learner(players, 2)
    state = np.repeat(model.env.games.states[:1], 20_000)
    seen = torch.from_numpy(observation.observe(state))
    masks = torch.from_numpy(engine.legal_masks(state))
    with torch.no_grad():
        for weight in model.policy.weights.values():
            weight *= 3  # further from uniform
        actions, payoffs, logs = model.policy(seen, action_masks=masks)
        again, same, entropy = model.policy.evaluate_actions(seen, actions, masks)
    counts = np.bincount(actions.numpy(), minlength=95) / len(actions)
    policy = np.exp(model.policy.log_policy_and_values(seen[:1], masks[:1])[0].detach().numpy()[0])
    assert counts == pytest.approx(policy, abs=0.015)
    assert (again == payoffs).all() and (same == logs).all()
    assert entropy[0] == pytest.approx(
        -np.sum(policy * np.log(np.maximum(policy, 1e-30))), abs=1e-4
    )
    assert payoffs.sum(dim=1).numpy() == pytest.approx(0, abs=1e-5)


def test_the_torch_player_plays_like_the_policy_agent_of_the_package():
    from carolus_env.bots.neural.model import Model
    from carolus_env.bots.neural.policy import PolicyAgent, PolicyOptions

    size = network.Size(2, region=4, trunk=4)
    weights = network.initial(size, 3)
    states, streams = engine.new_games(Rules(2), 200, seed=1), new_streams(1, 200)
    for _ in range(30):
        for temperature in (0.0, 1.0):
            ours = TorchPlayer(weights, 2, temperature=temperature, device="cpu")
            theirs = PolicyAgent(Model(size, weights), PolicyOptions(temperature=temperature))
            one, other = streams.copy(), streams.copy()
            assert np.mean(ours.act(states, one) == theirs.act(states, other)) > 0.99
        engine.step(states, engine.random_actions(states, streams))


@pytest.mark.slow
def test_a_short_run_learns_to_beat_greedy(tmp_path):
    config = Config(steps=200_000, games=128, rollout=64, eval_games=100, eval_every=10**6,
                    eval_bots=("greedy",), region=16, trunk=64)  # fmt: skip
    run = Run(config, tmp_path)
    run.train()
    results = [point["results"]["greedy"]["win_rate"] for point in run.curve.evaluation]
    assert results[0] < 0.2
    assert results[-1] > 0.7
