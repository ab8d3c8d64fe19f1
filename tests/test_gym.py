"""Gymnasium: both checkers pass, and the native vector environment is N single ones."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import carolus_env as ce
from carolus_env.envs.gym import (
    CarolusEnv,
    CarolusTurnsEnv,
    CarolusTurnsVectorEnv,
    CarolusVectorEnv,
)

both_kinds = pytest.mark.parametrize(
    ("name", "one", "many"),
    [
        ("CarolusMagnus-v0", CarolusEnv, CarolusVectorEnv),
        ("CarolusMagnusTurns-v0", CarolusTurnsEnv, CarolusTurnsVectorEnv),
    ],
)


def choose(masks, random):
    """A legal action a row; 0 where a game is over."""
    return np.array(
        [random.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks], np.int64
    )


def equal(one, other):
    """Compare what two steps return, infos included."""
    if isinstance(other, dict):
        assert set(one) == set(other)
        one, other = ([each[key] for key in other] for each in (one, other))
    if isinstance(other, tuple | list) or getattr(other, "dtype", None) == np.dtype(object):
        for a, b in zip(one, other, strict=True):
            equal(a, b)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("observation", ["float32", "uint8"])
def test_gymnasiums_checker_has_nothing_to_say(players, observation, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it makes an environment of every render mode
    env = gymnasium.make(
        "CarolusMagnus-v0", players=players, observation=observation, render_mode="ansi"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_stable_baselines3s_checker_has_nothing_to_say():
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3.check_env(CarolusEnv())


@both_kinds
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("players", "opponents"), [(2, "greedy"), (3, "random"), (4, "random")])
def test_the_vector_environment_is_n_single_ones(mode, players, opponents, name, one, many):
    options = {"players": players, "opponents": opponents, "max_rounds": 12}
    native = gymnasium.make_vec(name, 5, autoreset_mode=mode, **options)
    assert isinstance(native.unwrapped, many)
    single = SyncVectorEnv([lambda: one(**options)] * 5, autoreset_mode=mode)
    ours, theirs = native.reset(seed=3), single.reset(seed=3)
    assert data_equivalence(ours, theirs)
    random, ended = np.random.default_rng(0), 0
    for step in range(600):
        actions = choose(ours[-1]["action_mask"], random)
        if step % 97 == 0:
            actions[step % 5] = 94  # hardly ever legal: a forfeit
        ours, theirs = native.step(actions), single.step(actions)
        equal(ours, theirs)
        over = ours[2] | ours[3]
        ended += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            ours = native.reset(options={"reset_mask": over})
            theirs = single.reset(options={"reset_mask": over})
            np.testing.assert_array_equal(ours[0], theirs[0])
    assert ended > 20


@both_kinds
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_masks_may_be_a_part_of_the_observation(name, one, many, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, masks="observation").unwrapped
        assert isinstance(env, one)
        check_env(env, skip_render_check=True)
    wrapped = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(name))
    _, info = wrapped.reset(seed=1)
    for masks in (wrapped.get_wrapper_attr("action_masks")(), wrapped.unwrapped.action_masks()):
        np.testing.assert_array_equal(masks, info["action_mask"])
    options = {"opponents": "random", "max_rounds": 6}
    plain = gymnasium.make_vec(name, 3, autoreset_mode=mode, **options)
    full = gymnasium.make_vec(name, 3, autoreset_mode=mode, masks="observation", **options)
    assert full.single_observation_space["observation"] == plain.single_observation_space
    seen, infos = full.reset(seed=2)
    wanted, _ = plain.reset(seed=2)
    random, finals = np.random.default_rng(1), 0
    for _ in range(120):
        np.testing.assert_array_equal(seen["observation"], wanted)
        np.testing.assert_array_equal(seen["action_mask"], full.action_masks())
        assert full.observation_space.contains(seen)
        actions = choose(seen["action_mask"], random)
        seen, _, ends, cuts, infos = full.step(actions)
        wanted, _, _, _, others = plain.step(actions)
        for row in np.flatnonzero(infos.get("_final_obs", [])):
            last = infos["final_obs"][row]
            np.testing.assert_array_equal(last["observation"], others["final_obs"][row])
            assert not last["action_mask"].any()
            finals += 1
        if mode is AutoresetMode.DISABLED and (ends | cuts).any():
            seen, _ = full.reset(options={"reset_mask": ends | cuts})
            wanted, _ = plain.reset(options={"reset_mask": ends | cuts})
    assert (finals > 0) == (mode is AutoresetMode.SAME_STEP)
    with pytest.raises(ValueError, match=r"masks must be one of .*, got 'both'"):
        many(masks="both")


@pytest.mark.parametrize(("players", "payoff"), [(2, -1.0), (3, -0.5), (4, -1.0)])
def test_an_illegal_action_forfeits(players, payoff):
    env = CarolusEnv(players)
    _, info = env.reset(seed=1)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, reward, terminated, truncated, info = env.step(illegal)
    assert (reward, terminated, truncated, info["illegal"]) == (payoff, True, False, True)
    assert not info["action_mask"].any()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    assert "illegal" not in env.step(int(env.action_masks().argmax()))[4]
    strict = CarolusEnv(players, illegal="raise")
    strict.reset(seed=1)
    with pytest.raises(ce.IllegalActionError, match=str(illegal)):
        strict.step(illegal)


def test_the_learner_is_paid_losses_as_well_as_wins():
    envs = CarolusVectorEnv(64, opponents="random")
    _, infos = envs.reset(seed=0)
    random, paid = np.random.default_rng(0), []
    while len(paid) < 300:
        _, rewards, terminations, _, infos = envs.step(choose(infos["action_mask"], random))
        assert not rewards[~terminations].any()
        paid += rewards[terminations].tolist()
    assert set(paid) <= {1.0, 0.0, -1.0}, "two teams can tie"
    assert min(paid.count(1.0), paid.count(-1.0)) > 100
    assert abs(np.mean(paid)) < 0.2
    short = CarolusVectorEnv(4, max_rounds=1, autoreset_mode="SameStep")
    _, infos = short.reset(seed=1)
    truncated = np.zeros(4, bool)
    while not truncated.any():
        actions = choose(infos["action_mask"], random)
        _, rewards, terminations, truncated, infos = short.step(actions)
    assert not terminations.any() and not rewards.any(), "a game cut off is worth nothing"


def test_seeds_may_be_given_one_a_row():
    envs = CarolusVectorEnv(3)
    whole, _ = envs.reset(seed=7)
    listed, _ = envs.reset(seed=[9, None, 7])
    np.testing.assert_array_equal(listed[[0, 2]], whole[[2, 0]])
    with pytest.raises(ValueError, match="seed must be one number or 3, got 2"):
        envs.reset(seed=[1, 2])


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("copy", [True, False])
def test_infos_of_ended_games_outlive_the_step(num_envs, copy):
    envs = CarolusVectorEnv(num_envs, autoreset_mode="SameStep", copy=copy, max_rounds=1)
    _, infos = envs.reset(seed=1)
    while "final_info" not in infos:
        infos = envs.step(envs.action_masks().argmax(axis=1))[4]
    for row in np.flatnonzero(infos["_final_info"]):
        assert not infos["final_info"]["action_mask"][row].any(), "the game is over"
        assert infos["action_mask"][row].any(), "the next has begun"


def test_views_are_given_where_copies_are_not_wanted():
    envs = CarolusVectorEnv(4, copy=False)
    first, infos = envs.reset(seed=1)
    second = envs.step(envs.action_masks().argmax(axis=1))[0]
    assert np.shares_memory(first, second)
    envs = CarolusVectorEnv(4)
    first, infos = envs.reset(seed=1)
    kept, actions = first.copy(), infos["action_mask"].argmax(axis=1)
    infos["action_mask"][:] = infos["_action_mask"][:] = 0
    assert envs.action_masks().any(axis=1).all()
    infos = envs.step(actions)[4]
    np.testing.assert_array_equal(first, kept)
    assert infos["_action_mask"].all() and infos["action_mask"].any(axis=1).all()


def test_nothing_is_played_before_the_first_reset_nor_actions_of_a_wrong_shape():
    envs = CarolusVectorEnv(2)
    for call in (envs.action_masks, lambda: envs.step(np.zeros(2, np.int64))):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            call()
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions .*\(3,\)"):
        envs.step(np.zeros(3, np.int64))
