"""`Game` and `playout`: one game from Python, and games played on to their ends."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest
from strategies import ALL_KINDS, history

from carolus_env import Game, IllegalActionError, Rules, engine, new_streams, observe
from carolus_env.engine import legal_actions, legal_masks, new_games, returns
from carolus_env.engine.playout import playout
from carolus_env.engine.rules import ACTIONS


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
@pytest.mark.parametrize("dtype", [None, "uint8", "float32"])
def test_a_game_is_what_the_engine_plays(rules, dtype):
    game, games = Game(rules, seed=3, observe=dtype), new_games(rules, 1, seed=3)
    draw = random.Random(0)
    for _ in range(500):
        assert game.states.tobytes() == games.tobytes()
        assert game.over == engine.is_over(games)[0]
        assert (game.player, game.phase) == (games["player"][0], games["phase"][0])
        assert list(game.legal_actions) == legal_actions(games[0]).tolist()
        np.testing.assert_array_equal(game.mask, legal_masks(games)[0])
        if dtype:
            np.testing.assert_array_equal(game.observation, observe(games, dtype=dtype)[0])
        if game.over:
            break
        action = draw.choice(game.legal_actions)
        game.play(action)
        engine.step(games, [action])
    np.testing.assert_array_equal(game.returns, returns(games)[0])


@pytest.mark.parametrize("action", [-1, ACTIONS, 10**30, 94])
def test_an_illegal_action_is_refused_and_changes_nothing(action):
    game = Game(seed=0)
    before = game.states.tobytes(), game.legal_actions
    with pytest.raises(IllegalActionError, match="legal are 0-4") as caught:
        game.play(action)
    assert caught.value.action == action
    assert (game.states.tobytes(), game.legal_actions) == before


def test_a_game_that_is_over_takes_no_action():
    game = Game(Rules(max_rounds=1), seed=0)
    while not game.over:
        game.play(game.legal_actions[0])
    assert game.legal_actions == () and not game.mask.any()
    with pytest.raises(ValueError, match="game 0 is over"):
        game.play(0)


def test_what_is_no_whole_number_is_no_action():
    with pytest.raises(TypeError):
        Game(seed=0).play(1.0)


@pytest.mark.parametrize(
    "duplicate",
    [Game.clone, copy.copy, copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))],
)
def test_a_copy_goes_on_alike_and_alone(duplicate):
    game = Game(Rules(players=3), seed=5, observe="uint8")
    for _ in range(50):
        game.play(game.legal_actions[-1])
    other = duplicate(game)
    before = game.states.tobytes()
    other.play(other.legal_actions[0])
    assert game.states.tobytes() == before != other.states.tobytes()
    game.play(game.legal_actions[0])
    assert game.states.tobytes() == other.states.tobytes()
    assert game.observation.tolist() == other.observation.tolist()


def test_a_game_can_be_taken_up_from_a_state_where_a_roll_is_due():
    states = new_games(Rules(), 1, seed=1, roll=False)
    game = Game(state=states)
    assert game.states.tobytes() == new_games(Rules(), 1, seed=1).tobytes() != states.tobytes()
    with pytest.raises(ValueError, match="batch of one game, got 2"):
        Game(state=new_games(Rules(), 2, seed=1))
    with pytest.raises(ValueError, match="rules and generator from there"):
        Game(Rules(), state=states)


def test_the_mask_cannot_be_written_into():
    with pytest.raises(ValueError, match="read-only"):
        Game(seed=0).mask[0] = 0


# ------------------------------------------------------------------------------------ playouts


@pytest.mark.parametrize("players", [2, 3, 4])
def test_playouts_end_the_games_and_leave_them_as_they_were(players):
    states = history(Rules(players=players, max_rounds=20), 1, games=4, limit=200)[::40].reshape(-1)
    before = states.tobytes()
    result = playout(states, new_streams(1, len(states)))
    assert states.tobytes() == before
    np.testing.assert_allclose(result.returns.sum(axis=1), 0, atol=1e-6)
    over = engine.is_over(states)
    np.testing.assert_array_equal(result.returns[over], returns(states)[over])
    assert (result.decisions[over] == 0).all() and (result.decisions[~over] > 0).all()


def test_playouts_are_the_same_with_any_number_of_threads_and_games():
    states, streams = new_games(Rules(players=3), 9, seed=0), new_streams(1, 9)
    one = playout(states, streams.copy(), repeats=3)
    for threads in (2, 4):
        other = playout(states, streams.copy(), repeats=3, threads=threads)
        np.testing.assert_array_equal(one.returns, other.returns)
        np.testing.assert_array_equal(one.decisions, other.decisions)
    alone = playout(states[4:5], streams[4:5].copy(), repeats=3)
    assert alone.returns.tolist() == one.returns[4:5].tolist()


def test_repeats_are_averaged_and_go_on_differently():
    states, streams = new_games(Rules(), 5, seed=0), new_streams(1, 5)
    single = [playout(states, streams) for _ in range(8)]
    mean = playout(states, new_streams(1, 5), repeats=8)
    np.testing.assert_allclose(mean.returns, np.mean([one.returns for one in single], axis=0))
    assert mean.decisions.tolist() == sum(one.decisions for one in single).tolist()
    assert len({int(one.decisions[0]) for one in single}) > 4


def test_the_first_seat_of_two_wins_about_half_of_the_playouts():
    states = new_games(Rules(), 3000, seed=0, first_player=0)
    wins = (playout(states, new_streams(0, 3000)).returns[:, 0] > 0).mean()
    assert 0.42 < wins < 0.58


def test_a_playout_without_end_is_left_at_the_limit():
    states = new_games(Rules(max_rounds=None), 3, seed=0)
    result = playout(states, new_streams(0, 3), most_decisions=10)
    assert result.decisions.tolist() == [10] * 3 and not result.returns.any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"most_decisions": 0}, "most_decisions must be at least 1, got 0"),
        ({"threads": -1}, "threads must be a whole number"),
        ({"generators": np.zeros(2, np.uint64)}, r"generators must be uint64 of shape \(3,\)"),
    ],
)
def test_impossible_playouts_are_refused(options, text):
    given = {"generators": new_streams(0, 3), **options}
    with pytest.raises(ValueError, match=text):
        playout(new_games(Rules(), 3, seed=0), **given)


def test_playouts_of_different_numbers_of_players_are_refused():
    mixed = np.concatenate([new_games(Rules(players=n), 1, seed=0) for n in (2, 3)])
    with pytest.raises(ValueError, match="different numbers of players"):
        playout(mixed, new_streams(0, 2))
