"""PPO: the bot that plays a policy over whole turns, rollouts, advantages, gradients, Adagrad."""

import numpy as np
import pytest
from strategies import every_number

pytest.importorskip("rich")  # of the extra `train`

from networks import (
    asked,
    encode_all,
    good_positions,
    log_odds,
    plain_choices,
    plain_scores,
    plain_values,
    random_model,
    role_values,
    scores_of,
    slope,
)

from carolus_env import engine
from carolus_env.bots import PpoBot, PpoOptions, ValueBot, ValueOptions
from carolus_env.bots.network import PLANS_AHEAD, Selector
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import DISC, OVER, TEAMS, Rules
from carolus_env.engine.state import STATE
from carolus_env.learners import ppo
from carolus_env.learners.ppo import PpoConfig, PpoLearner
from carolus_env.learners.selfplay import Task
from carolus_env.networks.inputs import InputArrays
from carolus_env.networks.network import Weights
from carolus_env.planning.plans import actions_of

STEPS = 150
"""More decisions than a game has."""


def policy_model(players, seed=3):
    """A small random model with a policy head."""
    return random_model(players, True, seed, width=16, hidden=4)


def softmax(logits):
    odds = np.exp(logits - logits.max())
    return odds / odds.sum()


@every_number
def test_candidates_are_evaluated_as_the_plain_network_says(players):
    weights, teams = policy_model(players).weights, TEAMS[players]
    policy = Selector.of(players, Weights.of(weights), 0, 8)
    phases, ends = set(), 0
    for state in good_positions(players):
        listed = plain_choices(state, 8)
        assert asked(PpoBot, state, policy)[0] == len(listed)
        phases.add(int(state["phase"]))
        for k, (_, after) in enumerate(listed):
            over = after[0]["phase"] == OVER
            residual = 0.0 if over else scores_of(weights, encode_all(after), 0)[teams]
            [values] = plain_values(weights, after)
            np.testing.assert_allclose(policy.values[k, :teams], values, atol=2e-5)
            odds = log_odds(values[state["team"][state["player"]]])
            expected = residual + weights["sharpness"][0] * odds
            assert policy.logits[k] == pytest.approx(expected, abs=3e-4)
            ends += over
    assert len(phases) == 4 and ends > 0


@every_number
def test_the_bot_plays_the_likeliest_candidate_and_tells_its_policy(players):
    bot, states = PpoBot(policy_model(players)), good_positions(players)
    streams = new_streams(1, len(states))
    opinion = bot.opinion(states, streams)
    np.testing.assert_allclose(opinion.probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(opinion.values.sum(axis=1), 1, atol=1e-5)
    assert not opinion.probabilities[~engine.legal_masks(states).astype(bool)].any()
    before, actions = streams.copy(), bot.act(states, streams)
    assert (streams == before).all(), "nothing is drawn"
    probability = opinion.probabilities[np.arange(len(states)), actions]
    assert (probability >= 1 / 64).all(), "the likeliest of at most 64 candidates begins so"


def test_at_temperature_one_choices_are_drawn_from_the_policy():
    bot = PpoBot(policy_model(2), PpoOptions(temperature=1.0))
    for state in good_positions(2)[::11]:
        many = np.repeat(state.reshape(1), 3000)
        drawn = np.bincount(bot.act(many, new_streams(5, 3000)), minlength=95) / 3000
        policy = bot.opinion(many[:1], new_streams(1, 1)).probabilities[0]
        np.testing.assert_allclose(drawn, policy, atol=0.05)
    hot = PpoBot(policy_model(2), PpoOptions(temperature=100.0))
    assert np.bincount(hot.act(many, new_streams(5, 3000))).max() < 2900


def test_a_drawn_turn_is_played_to_its_end():
    bot, states = PpoBot(policy_model(2), PpoOptions(temperature=1.0)), good_positions(2)
    states = states[states["placements_left"] > 1]
    streams = new_streams(1, len(states))
    engine.step(states, bot.act(states, streams), roll=False)
    before = streams.copy()
    assert len(states) > 5 and engine.are_legal(states, bot.act(states, streams)).all()
    assert (streams == before).all(), "nothing more is drawn"


@every_number
def test_looking_ahead_the_value_found_there_decides_on_discs(players):
    model, states = policy_model(players), good_positions(players)
    states = states[states["phase"] == DISC]
    options = ValueOptions(candidates=PLANS_AHEAD[TEAMS[players]], plans="stop")
    value = ValueBot(model, options)
    best = value.act(states, new_streams(1, len(states)))
    looks = (PpoBot(model, PpoOptions(discs=look)) for look in ("turn", "now"))
    turn, now = (bot.opinion(states, new_streams(1, len(states))) for bot in looks)
    rows = np.arange(len(states))
    likeliest = turn.probabilities.max(axis=1)  # equal up to rounding for equal discs
    np.testing.assert_allclose(turn.probabilities[rows, best], likeliest, atol=1e-5)
    assert len(states) > 5
    assert (now.probabilities.argmax(axis=1) != turn.probabilities.argmax(axis=1)).any()


def small_learner(players=2, **options):
    """A learner whose network has learnt something already."""
    sizes = {"width": 16, "hidden": 4, "candidates": 6, "workers": 1, "envs": 6, "rollout": 24}
    learner = PpoLearner(PpoConfig(**{"rules": Rules(players), **sizes, "batch": 36, **options}))
    set_weights(learner, policy_model(players).weights)
    return learner


def set_weights(learner, weights, share=1.0):
    """Move a learner's weights towards others."""
    for name, array in weights.items():
        own = getattr(learner.weights, name)
        own += np.float32(share) * (array - own)


def rollout_of(learner, own):
    """Play a rollout, and estimate what its decisions were worth."""
    config, stats = learner.config, np.zeros(len(learner.stats))
    sizes = config.envs, config.rollout, len(learner._policy.logits), config.players
    experience, states = ppo.Experience.new(*sizes), own["states"].view(STATE).reshape(-1)
    ppo.play_rollout(states, own["streams"], learner._blank, learner._policy, experience, stats)
    ppo.estimate(experience, np.float32(config.trace), np.float32(config.gae_lambda))
    return experience, stats


@every_number
def test_a_rollout_keeps_what_was_decided_and_estimates_what_it_was_worth(players):
    learner = small_learner(players, rollout=STEPS, gae_lambda=0.7, trace=0.4)
    teams = TEAMS[players]
    own = learner.own(0)
    before = own["states"].copy().view(STATE).reshape(-1)
    experience, stats = rollout_of(learner, own)
    assert stats[0] == experience.ends.sum() > 0
    policy = Selector.of(players, learner.weights, 0, 6)
    for g, state in enumerate(before):
        state, decisions = state.reshape(1).copy(), range(g * STEPS, g * STEPS + STEPS)
        for d in decisions:  # played again, with the same choices
            (count, _), team = asked(PpoBot, state[0], policy), state[0]["team"][state[0]["player"]]
            assert (count, team) == (experience.counts[d], experience.team[d])
            probabilities, chosen = softmax(policy.logits[:count]), experience.chosen[d]
            assert experience.log_probs[d] == pytest.approx(np.log(probabilities[chosen]), abs=1e-4)
            expected = probabilities @ policy.values[:count]
            np.testing.assert_allclose(experience.expected[d], expected, atol=1e-5)
            for action in actions_of(int(policy.candidates.plans[chosen])):
                engine.step(state, np.array([action]))
            assert experience.ends[d] == engine.is_over(state)[0]
            if experience.ends[d]:
                np.testing.assert_allclose(
                    experience.win_shares[d, :teams], plain_values({}, state)[0]
                )
                state = engine.next_games(state)
        assert state.tobytes() == own["states"][g].tobytes()
        for team in range(teams):
            for share, lam in (("target", 0.4), ("advantage", 0.7)):
                check_estimates(experience, g, decisions, team, share, lam)


def check_estimates(experience, g, decisions, team, share, lam):
    """Compare targets or advantages of a team with their definition, the last one first."""
    after = mixed = float(experience.last[g, team])
    for d in reversed(decisions):
        mixed = lam * mixed + (1 - lam) * after
        if experience.ends[d]:
            mixed = float(experience.win_shares[d, team])
        after = float(experience.expected[d, team])
        if share == "target":
            assert experience.targets[d, team] == pytest.approx(mixed, abs=1e-5)
        elif experience.team[d] == team:
            assert experience.advantages[d] == pytest.approx(mixed - after, abs=1e-5)


def kept(experience, d, k):
    """The inputs kept of a candidate, only the rows that count."""
    one = InputArrays(*(array[d * experience.result.shape[1] + k] for array in experience.inputs))
    return one._replace(rows=one.rows[: one.lengths])


def present_odds(learner, experience, decisions):
    """The log odds of the values after each candidate, by the present weights in plain NumPy."""
    odds, weights = np.zeros(experience.result.shape), learner.weights._asdict()
    for d in decisions:
        for k in range(experience.counts[d]):
            value = experience.result[d, k]
            if value < 0:
                at = d * experience.result.shape[1] + k
                by_role = role_values(weights, experience.inputs, at)
                value = by_role[
                    (experience.team[d] - experience.inputs.first_team[at]) % len(by_role)
                ]
            odds[d, k] = log_odds(value)
    return odds


def plain_loss(weights, experience, decisions, loss, odds):
    """PPO's loss of some decisions in float64; ``odds`` are taken as given where they steer."""
    total = 0.0
    for d in decisions:
        choice = experience.chosen[d]
        logits = weights["sharpness"][0] * odds[d, : experience.counts[d]]
        for k in np.flatnonzero(experience.result[d, : experience.counts[d]] < 0):
            one = kept(experience, d, k)
            scores = plain_scores(weights, one.rows, one.features, one.stages)
            logits[k] += scores[-1]
            if k == choice:
                teams = len(scores) - 1
                by_role = np.log(softmax(scores[:-1]))
                roles = (one.first_team + np.arange(teams)) % teams
                total -= experience.targets[d, roles] @ by_role
        policy = softmax(logits)
        ratio = np.exp(np.log(policy[choice]) - experience.log_probs[d])
        advantage = (experience.advantages[d] - loss.mean) * loss.scale
        clipped = np.clip(ratio, 1 - loss.clip, 1 + loss.clip)
        total -= loss.policy * min(ratio * advantage, clipped * advantage)
        total += loss.policy * loss.entropy * (policy @ np.log(policy))
    return total


@every_number
def test_gradients_are_the_slopes_of_the_plain_loss(players):
    learner = small_learner(players, clip=0.1, rollout=40, entropy=0.05)
    experience, stats = rollout_of(learner, learner.own(0))
    set_weights(learner, policy_model(players, 8).weights, 0.05)  # not those that played
    decisions = np.arange(0, 240, 3)
    loss = ppo.Loss(*map(np.float32, (0.1, 0.05, 0.25, 0.01, 5.0)))
    batch = learner._batch
    ppo.add_gradients(decisions, experience, learner._policy, batch, loss, stats)
    sums = dict(zip(learner.stats, stats, strict=True))
    assert 0 < sums["clipped"] < sums["decisions"] == len(decisions)
    odds = present_odds(learner, experience, decisions)
    weights = {name: a.astype(np.float64) for name, a in learner.weights._asdict().items()}

    def loss_of(arrays):
        return plain_loss(arrays, experience, decisions, loss, odds)

    random = np.random.default_rng(1)
    for name, gradient in batch.gradients._asdict().items():
        most = float(np.abs(gradient).max())
        assert most > 0, name
        for place in random.permutation(np.argwhere(gradient))[:6]:
            expected = slope(loss_of, weights, name, tuple(place))
            result = pytest.approx(gradient[tuple(place)], rel=0.02, abs=0.003 * most)
            assert expected == result, name
    touched = np.zeros_like(batch.touched)
    for d in decisions:
        for k in np.flatnonzero(experience.result[d, : experience.counts[d]] < 0):
            touched[kept(experience, d, k).rows] = True
    np.testing.assert_array_equal(batch.touched, touched)


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_steps_are_adagrads_and_leave_rows_alone_that_nothing_was_learnt_about(decay):
    learner = small_learner(first_square=0.2, policy_square=30.0)
    experience, stats = rollout_of(learner, learner.own(0))
    expected = {name: a.astype(float) for name, a in learner.weights._asdict().items()}
    squares = {name: np.full_like(a, 0.2) for name, a in expected.items()}
    squares["out"][:, -1], squares["out_bias"][:, -1] = 30, 30  # the policy head's
    first, batch, ever = learner.weights.rows.copy(), learner._batch, 0
    loss = learner._loss(experience.advantages)
    for step in range(1, 5):
        chosen = np.arange(30 * step - 30, 30 * step)
        ppo.add_gradients(chosen, experience, learner._policy, batch, loss, stats)
        gradients, touched = Weights(*map(np.copy, batch.gradients)), batch.touched.copy()
        ever = ever | touched
        ppo.step(learner.weights, learner._squares, batch, (np.float32(0.01), np.float32(decay)))
        for name, gradient in gradients._asdict().items():
            squares[name][gradient != 0] *= decay
            squares[name] += gradient.astype(float) ** 2
            expected[name] -= 0.01 * gradient / np.sqrt(squares[name])
            np.testing.assert_allclose(getattr(learner.weights, name), expected[name], atol=1e-5)
            assert not getattr(batch.gradients, name).any(), "they are used up"
        assert not batch.touched.any()
    assert 0 < ever.sum() < len(ever) / 2
    np.testing.assert_array_equal(learner.weights.rows[~ever], first[~ever])


def test_sums_that_forget_all_leave_steps_finite():
    learner = small_learner()
    before, batch = learner.weights.bias.copy(), learner._batch
    for _ in range(2):
        batch.gradients.bias[:] = 1e-30
        ppo.step(learner.weights, learner._squares, batch, (np.float32(0.1), np.float32(0)))
    np.testing.assert_allclose(learner.weights.bias, before, atol=1e-6)


def test_a_selector_of_a_policy_needs_weights_with_a_policy_head():
    weights = Weights.of(random_model(2).weights)
    with pytest.raises(ValueError, match="a policy needs weights that have a policy head"):
        Selector.of(2, weights, 0, 8, policy=True)


def test_every_decision_of_a_rollout_is_learnt_from_once_an_epoch_by_the_config(monkeypatch):
    given, estimate = [], ppo.estimate
    monkeypatch.setattr(ppo, "estimate", lambda *all_: given.append(all_[1:]) or estimate(*all_))
    config = {"envs": 7, "rollout": 11, "batch": 10, "epochs": 3, "clip": 0.3, "entropy": 0.5}
    learner = small_learner(**config, gae_lambda=0.75, trace=0.25, policy_weight=2.0)
    stats = np.zeros(len(learner.stats))
    learner.learn(learner.own(0), Task(0, 1, 0.01), stats)
    assert given == [(0.25, 0.75)]
    assert stats[learner.stats.index("decisions")] == 3 * 77
    loss = learner._loss(np.array([1, 3], np.float32))  # advantages are normalised
    assert loss == pytest.approx((0.3, 0.5, 2.0, 2.0, 1.0), rel=1e-5)


def test_a_step_is_taken_after_each_batch_of_decisions():
    learner, apart = (small_learner(batch=50) for _ in range(2))
    experience, stats = rollout_of(learner, learner.own(0))
    loss, rates = learner._loss(experience.advantages), (np.float32(0.01), np.float32(0.9))
    order = np.random.default_rng(1).permutation(120)
    context = learner._policy, learner._squares, learner._batch, loss, rates, stats
    ppo.learn(order, 50, experience, *context)
    for part in (order[:50], order[50:100], order[100:]):
        ppo.add_gradients(part, experience, apart._policy, apart._batch, loss, stats)
        ppo.step(apart.weights, apart._squares, apart._batch, rates)
    for name, array in learner.weights._asdict().items():
        np.testing.assert_array_equal(array, getattr(apart.weights, name))


def test_the_least_temperatures_play_the_likeliest_choice():
    states = good_positions(2)
    none, least = (
        PpoBot(policy_model(2), PpoOptions(temperature=each)).act(
            states, new_streams(1, len(states))
        )
        for each in (0.0, 1e-46)
    )
    assert none.tolist() == least.tolist()
