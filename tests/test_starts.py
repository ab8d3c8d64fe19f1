"""Gymnasium's and SB3's `reset` take the start positions that PettingZoo's takes."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import carolus_env as ce
from carolus_env import carolus_magnus_v0, engine
from carolus_env.engine.state import States
from carolus_env.envs.gym import CarolusEnv, CarolusVectorEnv
from carolus_env.records import position

ALONE = ("CarolusMagnus-v0", "CarolusMagnusTurns-v0")
CLANS = [0, 1, 2, 3, 4] * 3


def played(decisions: int, players: int = 2, seed: int = 3) -> States:
    """A game after some random decisions."""
    game = engine.new_games(ce.Rules(players), seed=seed)
    stream = ce.new_streams(seed, 1)
    for _ in range(decisions):
        engine.step(game, engine.random_actions(game, stream))
    return game


def given(game: States) -> dict:
    return position.to_dict(game[0])


def learner_seat(env) -> int:
    return int(env.unwrapped._vector.games.seats[0])


def state(env) -> States:
    return env.unwrapped._vector.games.states


@pytest.mark.parametrize("name", ALONE)
def test_the_set_up_is_that_of_the_options(name):
    env = gymnasium.make(name, opponents="greedy", seat=1)
    env.reset(seed=5, options={"territories": CLANS, "first_player": 1})
    start = engine.new_games(ce.Rules(), seed=5, territories=CLANS, first_player=1)
    assert state(env).tobytes() == start.tobytes()


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("decisions", [0, 7, 24, 40, 41, 42, 43, 44])
def test_the_learner_goes_on_from_any_position(name, players, decisions):
    game = played(decisions, players)
    env = gymnasium.make(name, players=players)
    _, info = env.reset(options={"position": given(game)})
    assert state(env).tobytes() == game.tobytes()  # the position's own generator too
    assert learner_seat(env) == game["player"][0]
    assert info["action_mask"].any()
    random, over = np.random.default_rng(0), False
    while not over:
        _, _, terminated, truncated, info = env.step(
            random.choice(np.flatnonzero(info["action_mask"]))
        )
        over = terminated or truncated


def test_a_seed_replaces_the_positions_generator():
    game = played(20)
    env = CarolusEnv()
    generators = []
    for seed in (1, 2, 1):
        env.reset(seed=seed, options={"position": given(game)})
        generators.append(int(state(env)["generator"][0]))
    assert generators[0] == generators[2] != generators[1] != int(game["generator"][0])
    there = carolus_magnus_v0.env()
    there.reset(seed=1, options={"position": given(game)})
    assert there.games["generator"][0] == generators[0]


def test_without_a_seed_options_continue_the_games_generators():
    def dice() -> list[int]:
        env, result = CarolusVectorEnv(3), []
        env.reset(seed=9)
        for _ in range(3):
            env.reset(options={"first_player": 0})
            result += env.games.states["generator"].tolist()
        return result

    first = dice()
    assert dice() == first and len(set(first)) == 9


def test_a_vector_takes_one_for_all_games_or_one_each():
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


def test_a_mask_starts_only_its_rows_as_the_options_say():
    env = CarolusVectorEnv(4)
    env.reset(seed=1)
    before = engine.copy(env.games.states)
    mask = np.array([False, True, False, True])
    env.reset(seed=8, options={"reset_mask": mask, "position": given(played(30))})
    same = env.games.states["round"] == before["round"]
    assert same.tolist() == [True, False, True, False]
    assert env.games.states[~mask].tobytes() == before[~mask].tobytes()


def last_decision() -> tuple[States, States]:
    """A game whose last decision is due, by the player who is not seat 0, and that after it."""
    for seed in range(1000):
        game = played(0, seed=seed)
        stream, before = ce.new_streams(seed, 1), engine.copy(game)
        while not engine.is_over(game)[0]:
            before = engine.copy(game)
            engine.step(game, engine.random_actions(game, stream))
        if before["player"][0] == 1 and len(engine.legal_actions(before[0])) == 1:
            return before, game
    raise AssertionError("no such game")


NEARLY_OVER, OVER = last_decision()


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"nonsense": 1}, "unknown option 'nonsense', known are territories, first_player, pos"),
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
def test_what_no_game_can_start_from_is_refused_and_changes_nothing(options, expected, several):
    env = CarolusVectorEnv(2, seat=0) if several else CarolusEnv(seat=0)
    games = env.games if several else env._vector.games
    env.reset(seed=6)
    before, seats = games.states.tobytes(), games.seats.tolist()
    with pytest.raises(ValueError, match=expected):
        env.reset(seed=1, options=options)
    assert games.states.tobytes() == before and games.seats.tolist() == seats
    mask = env.action_masks()
    action = mask.argmax(axis=-1)
    env.step(action)
    if not several:
        with pytest.raises(ValueError, match="unknown option 'reset_mask'"):
            env.reset(options={"reset_mask": np.ones(1, np.bool_)})


def test_sb3_takes_the_options_of_set_options_once():
    sb3 = pytest.importorskip("carolus_env.envs.sb3")
    env = sb3.CarolusVecEnv(ce.Rules(), 2, "greedy")
    game = played(25)
    env.set_options({"position": given(game)})
    env.seed(3)
    env.reset()
    assert env.games.seats.tolist() == [int(game["player"][0])] * 2
    assert (env.games.states["round"] == game["round"][0]).all()
    assert [options for options in env._options if options] == []
    env.reset()
    assert (env.games.states["round"] < game["round"][0]).all()
    env.set_options([{"first_player": 0}, {"nonsense": 1}])
    with pytest.raises(ValueError, match="unknown option 'nonsense'"):
        env.reset()
