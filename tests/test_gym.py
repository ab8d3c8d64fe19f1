"""Gymnasium: checkers pass, a native vector environment is N single ones, games start anywhere."""

import copy
import pickle
import warnings
from functools import partial

import gymnasium
import numpy as np
import positions
import pytest
import strategies
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import carolus_env as ce
from carolus_env import carolus_magnus_v0, engine
from carolus_env.engine.rules import move_action
from carolus_env.engine.state import States
from carolus_env.envs.gym import CarolusEnv, CarolusVectorEnv
from carolus_env.envs.learner import LearnerGames
from carolus_env.records import position

both_kinds = pytest.mark.parametrize(
    ("name", "one", "many"),
    [
        ("CarolusMagnus-v0", CarolusEnv, CarolusVectorEnv),
        (
            "CarolusMagnusTurns-v0",
            partial(CarolusEnv, turns=True),
            partial(CarolusVectorEnv, turns=True),
        ),
    ],
)


def choose(masks, random):
    """A legal action a row; 0 where a game is over."""
    return np.array(
        [random.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks], np.int64
    )


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("observation", ["float32", "uint8"])
def test_gymnasiums_checker_has_nothing_to_say(players, observation, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it makes an environment of every render mode
    options = {"players": players, "observation": observation, "render_mode": "ansi"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("CarolusMagnus-v0", **options).unwrapped)


@pytest.mark.parametrize("turns", [False, True])
def test_stable_baselines3s_checker_only_finds_a_matrix_unusual(turns):
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if turns:
            warnings.filterwarnings("ignore", "Your observation  has an unconventional shape")
        sb3.check_env(CarolusEnv(turns=turns))


@both_kinds
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("players", "opponents"), [(2, "greedy"), (3, "random"), (4, "random")])
def test_the_vector_environment_is_n_single_ones(mode, players, opponents, name, one, many):
    """And with masks in the observation it is the same."""
    options = {"players": players, "opponents": opponents, "max_rounds": 12}
    native = gymnasium.make_vec(name, 5, autoreset_mode=mode, **options)
    assert isinstance(native.unwrapped, CarolusVectorEnv)
    masked = gymnasium.make_vec(name, 5, autoreset_mode=mode, masks="observation", **options)
    assert masked.single_observation_space["observation"] == native.single_observation_space
    single = SyncVectorEnv([lambda: one(**options)] * 5, autoreset_mode=mode)
    ours, theirs, other = (envs.reset(seed=3) for envs in (native, single, masked))
    assert data_equivalence(ours, theirs)
    random, ended = np.random.default_rng(0), 0
    for step in range(350):
        both = {"observation": ours[0], "action_mask": native.unwrapped.action_masks()}
        assert data_equivalence(other[0], both, exact=True)
        assert masked.observation_space.contains(other[0])
        actions = choose(ours[-1]["action_mask"], random)
        if step % 97 == 0:
            actions[step % 5] = 94  # hardly ever legal: a forfeit
        ours, theirs, other = (envs.step(actions) for envs in (native, single, masked))
        assert data_equivalence(ours, theirs, exact=True)
        assert data_equivalence(other[1:4], ours[1:4], exact=True)
        over = ours[2] | ours[3]
        ended += int(over.sum())
        if mode is AutoresetMode.SAME_STEP:
            for row in np.flatnonzero(over):
                obs, last = ours[-1]["final_obs"][row], other[-1]["final_obs"][row]
                np.testing.assert_array_equal(last["observation"], obs)
                assert not last["action_mask"].any()
        if mode is AutoresetMode.DISABLED and over.any():
            envs = native, single, masked
            ours, theirs, other = (e.reset(options={"reset_mask": over}) for e in envs)
            np.testing.assert_array_equal(ours[0], theirs[0])
    assert ended > 12


@both_kinds
def test_masks_may_be_a_part_of_the_observation_and_are_found_through_wrappers(name, one, many):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, masks="observation").unwrapped
        assert isinstance(env, CarolusEnv)
        check_env(env, skip_render_check=True)
    wrapped = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(name))
    _, info = wrapped.reset(seed=1)
    for masks in (wrapped.get_wrapper_attr("action_masks")(), wrapped.unwrapped.action_masks()):
        np.testing.assert_array_equal(masks, info["action_mask"])
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


def test_seeds_may_be_given_one_a_row_and_without_one_options_continue_the_generators():
    envs = CarolusVectorEnv(3)
    consecutive, _ = envs.reset(seed=7)
    listed, _ = envs.reset(seed=[9, None, 7])
    np.testing.assert_array_equal(listed[[0, 2]], consecutive[[2, 0]])
    for seed in (7, [7, 8, 9]):
        envs.reset(seed=1)
        masked, _ = envs.reset(seed=seed, options={"reset_mask": np.array([False, True, True])})
        np.testing.assert_array_equal(masked[1:], consecutive[1:])
    with pytest.raises(ValueError, match="seed must be one number or 3, got 2"):
        envs.reset(seed=[1, 2])

    def dice() -> list[int]:
        env, result = CarolusVectorEnv(3), []
        env.reset(seed=9)
        for _ in range(3):
            env.reset(options={"first_player": 0})
            result += env.games.states["generator"].tolist()
        return result

    first = dice()
    assert dice() == first and len(set(first)) == 9


@pytest.mark.parametrize("seed", [5, np.int64(5), [5, 6], [np.uint8(5), 2**64 - 1]], ids=str)
def test_a_seed_of_a_vector_environment_seeds_its_np_random_too(seed):
    """As Gymnasium's own do; without one, the generator goes on, and one for each row counts."""
    envs, others = CarolusVectorEnv(2), CarolusVectorEnv(2)
    for env in (envs, others):
        env.reset(seed=seed)
    drawn = envs.np_random.integers(2**62, size=9).tolist()
    assert drawn == others.np_random.integers(2**62, size=9).tolist()
    if isinstance(seed, list):
        assert envs.np_random_seed == -1  # none, for Gymnasium
    else:
        assert envs.np_random_seed == 5
        assert drawn == seeding.np_random(5)[0].integers(2**62, size=9).tolist()
    envs.reset()
    assert envs.np_random.random() == others.np_random.random()
    with pytest.raises(ValueError, match="position"):
        envs.reset(seed=7, options={"position": {}})
    assert envs.np_random.random() == others.np_random.random()


def failing_game():
    return CarolusEnv(illegal="raise")


@pytest.mark.filterwarnings("ignore")  # Gymnasium's own, of the error, and Python's, of the fork
def test_an_illegal_action_in_a_worker_of_gymnasium_is_told_as_here():
    envs = AsyncVectorEnv([failing_game], context="fork")
    try:
        envs.reset(seed=1)
        with pytest.raises(engine.IllegalActionError, match="may not play action 94") as error:
            envs.step(np.array([94]))
        assert error.value.action == 94 and 94 not in error.value.legal
    finally:
        envs.close()


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
    first, _ = envs.reset(seed=1)
    assert np.shares_memory(first, envs.step(envs.action_masks().argmax(axis=1))[0])
    envs = CarolusVectorEnv(4)
    first, infos = envs.reset(seed=1)
    before, actions = first.copy(), infos["action_mask"].argmax(axis=1)
    infos["action_mask"][:] = infos["_action_mask"][:] = 0
    assert envs.action_masks().any(axis=1).all()
    infos = envs.step(actions)[4]
    np.testing.assert_array_equal(first, before)
    assert infos["_action_mask"].all() and infos["action_mask"].any(axis=1).all()


@pytest.mark.parametrize("kind", ["gym.CarolusVectorEnv", "sb3.CarolusVecEnv"])
def test_nothing_is_played_before_the_first_reset_nor_actions_of_a_wrong_shape(kind):
    module = pytest.importorskip(f"carolus_env.envs.{kind.partition('.')[0]}")
    envs = CarolusVectorEnv(2) if "gym" in kind else module.CarolusVecEnv(ce.Rules(), 2)
    for call in (envs.action_masks, lambda: envs.step(np.zeros(2, np.int64))):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            call()
    envs.reset()
    with pytest.raises(ValueError, match=r"actions .*\(3,\)"):
        envs.step(np.zeros(3, np.int64))
    if "sb3" in kind:
        with pytest.raises(RuntimeError, match="step_async"):
            envs.step_wait()


@both_kinds
def test_opponents_decide_in_the_games_that_are_played_only(name, one, many):
    decided = []

    class Noting(ce.Agent):
        def act(self, states, generators):
            decided.append(len(states))
            return ce.legal_masks(states).argmax(axis=1)

    kinds = {"players": 3, "opponents": Noting()}
    for make in (lambda: many(8, **kinds), lambda: one(**kinds)):
        decided.clear()
        env = make()
        assert not decided, "no game has started"
        env.reset(seed=1)
        assert 0 < sum(decided) <= 8 * 2 * 9


@both_kinds
def test_copies_of_a_single_game_go_on_as_it_does(name, one, many):
    env = one(opponents="greedy")
    env.reset(seed=3)
    env.step(int(env.action_masks().argmax()))
    copies, is_over = [env, copy.deepcopy(env), pickle.loads(pickle.dumps(env))], False
    while not is_over:
        action = int(env.action_masks().argmax())
        same, *others = [one.step(action) for one in copies]
        assert all(data_equivalence(same, other, exact=True) for other in others)
        assert len({one.games.tobytes() for one in copies}) == 1
        is_over = same[2] or same[3]


@both_kinds
def test_a_single_game_that_is_over_asks_for_a_plain_reset(name, one, many):
    env = one(illegal="forfeit")
    env.reset(seed=1)
    assert env.step(int(env.action_masks().argmin()))[2]
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"^the game is over: call reset$"):
        env.step(0)
    env.reset()
    assert env.action_masks().any()
    envs = many(2, autoreset_mode=AutoresetMode.DISABLED, render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.render()
    envs.reset(seed=1)
    envs.step(envs.action_masks().argmin(axis=1))
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset_mask"):
        envs.step(np.zeros(2, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"games \[1\]"):
        envs.step(np.zeros(2, np.int64))


ALONE = ("CarolusMagnus-v0", "CarolusMagnusTurns-v0")
CLANS = [0, 1, 2, 3, 4] * 3


def played(decisions: int, players: int = 2, seed: int = 3) -> States:
    """A game after some random decisions."""
    return strategies.played(ce.Rules(players), seed, decisions)[2]


def given(game: States) -> dict:
    return position.to_dict(game[0])


def games_of(env) -> LearnerGames:
    return env.unwrapped._vector.games


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("decisions", [0, 7, 24, 40, 41, 42, 43, 44])
def test_the_learner_goes_on_from_any_position(name, players, decisions):
    game = played(decisions, players)
    env = gymnasium.make(name, players=players)
    _, info = env.reset(options={"position": given(game)})
    assert games_of(env).states.tobytes() == game.tobytes()  # the position's own generator too
    assert games_of(env).seats[0] == game["player"][0]
    over = False
    while not over:
        action = info["action_mask"].nonzero()[0][-1]
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated


@pytest.mark.parametrize("name", ALONE)
def test_a_seed_replaces_the_positions_generator_and_a_set_up_is_that_of_the_options(name):
    game, env, generators = played(20), gymnasium.make(name), []
    for seed in (1, 2, 1):
        env.reset(seed=seed, options={"position": given(game)})
        generators.append(int(games_of(env).states["generator"][0]))
    assert generators[0] == generators[2] != generators[1] != int(game["generator"][0])
    there = carolus_magnus_v0.env()
    there.reset(seed=1, options={"position": given(game)})
    assert there.games["generator"][0] == generators[0]
    env = gymnasium.make(name, opponents="greedy", seat=1)
    env.reset(seed=5, options={"territories": CLANS, "first_player": 1})
    start = engine.new_games(ce.Rules(), seed=5, territories=CLANS, first_player=1)
    assert games_of(env).states.tobytes() == start.tobytes()


def test_a_vector_takes_a_start_for_all_games_one_each_or_one_for_masked_rows():
    env = CarolusVectorEnv(3, opponents="greedy")
    env.reset(seed=1, options={"position": given(played(20))})
    assert (env.games.states["round"] == played(20)["round"]).all()
    assert env.games.seats.tolist() == [int(played(20)["player"][0])] * 3
    starts = [given(played(20, seed=seed)) for seed in range(3)]
    env.reset(options={"position": starts})
    for row, seed in enumerate(range(3)):
        assert env.games.states[row : row + 1].tobytes() == played(20, seed=seed).tobytes()
    env = CarolusVectorEnv(3, opponents="greedy", seat=0)
    several = [CLANS, CLANS[::-1], CLANS[5:] + CLANS[:5]]
    env.reset(seed=4, options={"territories": several, "first_player": [0, 0, 0]})
    start = engine.new_games(ce.Rules(), 3, seed=4, territories=several, first_player=[0, 0, 0])
    assert env.games.states["player"].tolist() == [0, 0, 0]
    for field in ("region_paladins", "order"):  # the opponent may have taken a crown's paladin
        np.testing.assert_array_equal(env.games.states[field], start[field])
    with pytest.raises(ValueError, match=r"^reset: territories must be an array"):
        env.reset(options={"territories": [CLANS, CLANS[:3], CLANS]})
    env = CarolusVectorEnv(4)
    env.reset(seed=1)
    before = engine.copy(env.games.states)
    mask = np.array([False, True, False, True])
    env.reset(seed=8, options={"reset_mask": mask, "position": given(played(30))})
    same = env.games.states["round"] == before["round"]
    assert same.tolist() == [True, False, True, False]
    assert env.games.states[~mask].tobytes() == before[~mask].tobytes()


NEARLY_OVER = positions.position(player=1, round=100, discs=[1, 1], order=[0, 1])
OVER = positions.after(NEARLY_OVER[0], [move_action(1)])  # it was the only one left


@pytest.mark.parametrize(
    "make",
    [
        lambda: CarolusEnv(seat=0),
        lambda: CarolusVectorEnv(2, seat=0),
        lambda: CarolusVectorEnv(2, seat=0, turns=True, masks="observation"),
    ],
)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"nonsense": 1}, "unknown option 'nonsense'; known are territories, first_player, pos"),
        ({"position": {}}, "position: rules is missing"),
        ({"position": given(played(9, players=3))}, r"the position has Rules\(players=3"),
        ({"position": given(played(9)), "first_player": 0}, "position excludes"),
        ({"territories": [0] * 15}, "territories must hold each clan"),
        ({"first_player": 2}, "first_player must be from 0 to 1"),
        ({"position": given(NEARLY_OVER)}, "game 0 ends before its learner, seat 0, decides"),
        ({"position": given(OVER)}, "the position's game is over"),
        ({"first_player": [0, 1, 0]}, "first_player must be .*one"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "+".join(value),
)
def test_what_no_game_can_start_from_is_refused_and_changes_nothing(options, expected, make):
    env, other = make(), make()
    games = env._vector.games if isinstance(env, CarolusEnv) else env.games
    for each in (env, other):
        each.reset(seed=6)
    before, seats = games.states.tobytes(), games.seats.tolist()
    with pytest.raises(ValueError, match=expected):
        env.reset(seed=1, options=options)
    assert games.states.tobytes() == before and games.seats.tolist() == seats
    for _ in range(9):
        actions = env.action_masks().argmax(axis=-1)
        assert data_equivalence(env.step(actions), other.step(actions), exact=True)
    assert data_equivalence(env.reset(), other.reset(), exact=True)
    if isinstance(env, CarolusEnv):
        assert env.np_random.integers(2**60) == other.np_random.integers(2**60)
        with pytest.raises(ValueError, match="unknown option 'reset_mask'"):
            env.reset(options={"reset_mask": np.ones(1, np.bool_)})


def test_sb3_takes_the_options_of_set_options_once():
    sb3 = pytest.importorskip("carolus_env.envs.sb3")
    env = sb3.CarolusVecEnv(ce.Rules(), 2, "greedy", seed=3)
    game = played(25)
    env.set_options({"position": given(game)})
    env.reset()
    assert env.games.seats.tolist() == [int(game["player"][0])] * 2
    assert (env.games.states["round"] == game["round"][0]).all()
    env.reset()
    assert (env.games.states["round"] < game["round"][0]).all()
    env.set_options([{"first_player": 0}, {"nonsense": 1}])
    with pytest.raises(ValueError, match="unknown option 'nonsense'"):
        env.reset()
