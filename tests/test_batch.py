"""`GameBatch`: everything in one call, whatever the number of games and threads."""

import itertools
import pickle

import numpy as np
import pytest
from strategies import ALL_KINDS

from carolus_env import (
    Game,
    GameBatch,
    IllegalActionError,
    Rules,
    engine,
    new_games,
    new_streams,
    observe,
)
from carolus_env.engine import is_over, legal_masks, next_games, random_actions, returns
from carolus_env.engine.rules import ACTIONS, BY_MAX_ROUNDS
from carolus_env.envs.gym import CarolusVectorEnv
from carolus_env.records.position import check_positions

SHORT = Rules(players=2, paladins_per_clan=6, max_rounds=4)  # ends by castles and by the cut-off


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_step_is_what_the_engine_does_and_ended_games_start_anew(rules, dtype):
    batch = GameBatch(rules, 7, seed=5, observation=dtype)
    games, streams = engine.new_games(rules, 7, seed=5), new_streams(5, 7)
    ended = 0
    for _ in range(400):
        actions = batch.sample().copy()
        np.testing.assert_array_equal(actions, random_actions(games, streams))
        turn = batch.step(actions)
        engine.step(games, actions)
        over = is_over(games)
        cut_off = games["reason"] == BY_MAX_ROUNDS
        np.testing.assert_array_equal(turn.rewards, returns(games))
        np.testing.assert_array_equal(turn.terminated, over & ~cut_off)
        np.testing.assert_array_equal(turn.truncated, cut_off)
        if over.any():
            games[over] = next_games(games[over])
            ended += over.sum()
        assert batch.states.tobytes() == games.tobytes()
        np.testing.assert_array_equal(turn.masks, legal_masks(games))
        np.testing.assert_array_equal(turn.observations, observe(games, dtype=dtype))
    assert ended


def contents(batch):
    turn = batch.turn()
    return [batch.states.tobytes()] + [None if part is None else part.tobytes() for part in turn]


@pytest.mark.parametrize("observation", [None, "uint8", "float32"])
def test_the_number_of_threads_changes_nothing(observation):
    one = GameBatch(SHORT, 10, seed=1, observation=observation)
    for threads in (2, 3, 16):
        other = GameBatch(SHORT, 10, seed=1, observation=observation, threads=threads)
        one.reset(1)
        for _ in range(60):
            for batch in (one, other):
                batch.step(batch.sample())
            assert contents(one) == contents(other)
        counted = [batch.rollout(100) for batch in (one, other)]
        assert counted[0].games == counted[1].games > 0
        assert counted[0].returns.tolist() == counted[1].returns.tolist()
        assert contents(one) == contents(other)


def test_no_two_threads_write_into_the_same_memory():
    """A race is seldom seen in results."""
    batch = GameBatch(SHORT, 5, seed=1, observation="float32", threads=3)
    for games in (batch, batch.clone()):
        workers = games._workers
        assert np.concatenate([own.rows for own in workers]).tolist() == [*range(5)]
        for own, other in itertools.combinations(workers, 2):
            assert own.observed[1] is other.observed[1], "scales are only read"
            assert own.observed[2] is other.observed[2] is games.observations
            assert not np.shares_memory(own.observed[0], other.observed[0])
            assert not np.shares_memory(own.totals, other.totals)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_rollout_is_as_many_steps_with_sampled_actions(players):
    rules = Rules(players=players, max_rounds=5)
    stepped = GameBatch(rules, 6, seed=3, observation="float32")
    rolled = stepped.clone()
    games, payoffs = 0, np.zeros(players)
    for _ in range(200):
        turn = stepped.step(stepped.sample())
        games += int((turn.terminated | turn.truncated).sum())
        payoffs += turn.rewards.sum(axis=0)
    done = rolled.rollout(200)
    assert (done.decisions, done.games) == (1200, games)
    np.testing.assert_allclose(done.returns, payoffs)
    for array in (stepped.rewards, stepped.terminated, stepped.truncated):
        array[:] = 0  # a rollout leaves none of the last step
    assert contents(rolled) == contents(stepped)


def test_buffers_stay_copies_are_made_on_request_and_refresh_shows_changes_by_hand():
    batch = GameBatch(SHORT, 3, seed=0, observation="uint8")
    turn = batch.turn()
    copies = batch.turn(copy=True)
    later = batch.step(batch.sample())
    for before, after, copied in zip(turn, later, copies, strict=True):
        assert before is after
        assert not np.shares_memory(before, copied)
    assert copies.observations.tobytes() != later.observations.tobytes()
    assert batch.step(batch.sample(), copy=True).masks is not batch.masks
    batch = GameBatch(Rules(), 2, seed=0, observation="uint8")
    batch.states[0] = GameBatch(Rules(), 1, seed=9).states[0]
    engine.step(batch.states, legal_masks(batch.states).argmax(axis=1))
    batch.refresh()
    np.testing.assert_array_equal(batch.masks, legal_masks(batch.states))
    np.testing.assert_array_equal(batch.observations, observe(batch.states))


@pytest.mark.parametrize("observation", [None, "uint8", "float32"])
def test_games_of_other_numbers_of_players_than_the_buffers_are_for_are_refused(observation):
    batch = GameBatch(Rules(), 3, seed=0, observation=observation)
    actions = batch.sample().copy()
    batch.states[2] = new_games(Rules(4), 1, seed=0)[0]
    before = batch.states.tobytes()
    for call in (batch.refresh, lambda: batch.step(actions), lambda: batch.rollout(5)):
        with pytest.raises(ValueError, match="states must be games of 2 players"):
            call()
    assert batch.states.tobytes() == before
    batch.reset(0)  # starts anew, whatever was there
    batch.step(actions)


def handed_over(value):
    """What joblib's and Ray's workers get: a copy whose arrays are read-only."""
    buffers = []
    data = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(each) for each in buffers])


def test_batches_and_environments_go_on_in_workers_that_get_their_arrays_read_only():
    batch = GameBatch(Rules(), 3, seed=0, observation="float32")
    other = handed_over(batch)
    for each in (batch, other):
        each.rollout(20)
        each.step(each.sample())
    assert contents(batch) == contents(other)
    envs = CarolusVectorEnv(2)
    envs.reset(seed=1)
    other = handed_over(envs)
    for _ in range(20):
        actions = envs.action_masks().argmax(axis=1)
        np.testing.assert_array_equal(other.step(actions)[0], envs.step(actions)[0])


@pytest.mark.parametrize("threads", [1, 2])
def test_refresh_leaves_each_game_with_a_decision_to_take(threads):
    """Dice are rolled as by a `Game`; what is over is followed by its next game, as in a step."""
    start = new_games(Rules(), 3, seed=3, roll=False)
    batch = GameBatch(Rules(), 3, seed=0, threads=threads)
    batch.states[:] = start
    engine.forfeit(batch.states, rows=[1])
    over = engine.copy(batch.states)
    batch.refresh()
    for row in (0, 2):
        assert batch.states[row] == Game(state=start[row : row + 1]).states[0]
    assert batch.states[1] == engine.next_games(over)[1]
    assert batch.masks.any(axis=1).all()
    batch.rollout(30)
    check_positions(batch.states)


def test_an_illegal_action_changes_no_game_and_impossible_numbers_are_refused():
    batch = GameBatch(Rules(), 8, seed=0, threads=2)
    actions = batch.sample().astype(np.uint8)  # actions may be of any type, and read-only
    actions[5] = np.flatnonzero(batch.masks[5] == 0)[0]
    actions[7] = ACTIONS
    actions.flags.writeable = False
    before = contents(batch)
    with pytest.raises(IllegalActionError, match="game 5") as caught:
        batch.step(actions)
    assert caught.value.game == 5
    assert contents(batch) == before
    batch.step(batch.sample().tolist())
    for n in (0, 10_000_001):
        with pytest.raises(ValueError, match="n, the number of games"):
            GameBatch(Rules(), n)
    with pytest.raises(ValueError, match=r"threads .* 0"):
        GameBatch(Rules(), 2, threads=0)


def test_all_legal_actions_are_equally_likely():
    batch = GameBatch(Rules(), 12, seed=4)
    batch.rollout(30)
    drawn = np.zeros(batch.masks.shape)
    for _ in range(4000):
        drawn[np.arange(12), batch.sample()] += 1
    expected = 4000.0 * batch.masks / batch.masks.sum(axis=1, keepdims=True)
    assert not drawn[expected == 0].any()
    assert (np.abs(drawn - expected) <= 5.5 * np.sqrt(expected)).all()


def test_buffers_and_games_of_a_batch_cannot_be_replaced():
    batch = GameBatch(Rules(), 20, seed=1)
    for name, other in (("states", new_games(Rules(), 3, seed=1)), ("masks", batch.masks[:1])):
        with pytest.raises(AttributeError, match=f"{name} cannot be replaced: write into it"):
            setattr(batch, name, other)
    assert len(batch.states) == len(batch.masks) == len(batch.clone().states) == 20
