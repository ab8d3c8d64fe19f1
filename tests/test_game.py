"""`Game`, one game as a board to play on, and `playout`, games played on to their ends."""

import copy
import pickle
import random
import re

import numpy as np
import pytest
from strategies import ALL_KINDS, history

import carolus_env as ce
from carolus_env import Game, IllegalActionError, PositionError, Rules, engine, new_streams, playout
from carolus_env.drawing.text import board_text
from carolus_env.engine import legal_actions, legal_masks, new_games, returns
from carolus_env.engine.rules import ACTIONS, MOVE
from carolus_env.games import Outcome
from carolus_env.notation import NotationError, to_line


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
@pytest.mark.parametrize("dtype", [None, "uint8", "float32"])
def test_a_game_is_what_the_engine_plays_by_numbers_and_by_text(rules, dtype):
    game, games = Game(rules, seed=3, observe=dtype), new_games(rules, 1, seed=3)
    draw = random.Random(0)
    for decision in range(500):
        assert game.states.tobytes() == games.tobytes()
        assert game.over == engine.is_over(games)[0]
        assert (game.player, game.phase) == (games["player"][0], games["phase"][0])
        legal = legal_actions(games[0]).tolist()
        assert list(game.legal_actions) == legal
        np.testing.assert_array_equal(game.mask, legal_masks(games)[0])
        if dtype:
            np.testing.assert_array_equal(game.observation, ce.observe(games, dtype=dtype)[0])
        if game.over:
            assert game.legal_moves == ()
            break
        action = draw.choice(legal)
        if decision % 7:
            game.play(action)
        else:
            moves = game.legal_moves
            assert len(set(moves)) == len(moves) == len(legal)
            game.play(moves[legal.index(action)])
        engine.step(games, [action])
    np.testing.assert_array_equal(game.returns, returns(games)[0])


@pytest.mark.parametrize("action", [-1, ACTIONS, 10**30, 94])
def test_an_illegal_action_is_refused_and_changes_nothing(action):
    game = Game(seed=0, history=True)
    before = game.copy(), game.legal_actions
    with pytest.raises(IllegalActionError, match="legal are 0-4") as caught:
        game.play(action)
    assert caught.value.action == action
    assert (game, game.legal_actions) == before and game.history == ()


def test_every_kind_of_whole_number_is_an_action():
    games = [Game(seed=0) for _ in range(5)]
    for game, kind in zip(games, (int, np.int8, np.uint64, np.array, bool), strict=True):
        game.play(kind(1))
        assert game == games[0]
    with pytest.raises(ValueError, match="read-only"):
        games[0].mask[0] = 0


def pickled(game):
    return pickle.loads(pickle.dumps(game))


@pytest.mark.parametrize("duplicate", [Game.copy, Game.clone, copy.copy, copy.deepcopy, pickled])
def test_a_copy_goes_on_alike_and_alone(duplicate):
    game = Game(Rules(players=3), seed=5, observe="uint8", history=True)
    for _ in range(50):
        game.play(game.legal_actions[-1])
    other, before = duplicate(game), game.to_bytes()
    assert other == game and other.history == game.history
    other.play(other.legal_actions[0])
    assert game.to_bytes() == before != other.to_bytes()
    assert len(other.history) == len(game.history) + 1
    game.play(game.legal_actions[0])
    assert game.to_bytes() == other.to_bytes()
    assert game.observation.tolist() == other.observation.tolist()


def test_a_game_can_be_taken_up_from_a_state_where_a_roll_is_due():
    states = new_games(Rules(), 1, seed=1, roll=False)
    game = Game(state=states)
    assert game.states.tobytes() == new_games(Rules(), 1, seed=1).tobytes() != states.tobytes()
    with pytest.raises(ValueError, match=r"one game.* 2"):
        Game(state=new_games(Rules(), 2, seed=1))
    with pytest.raises(ValueError, match="rules and generator"):
        Game(Rules(), state=states)


def until(phase, seed=1, **options):
    """A game played at random up to a phase."""
    game, draw = Game(seed=seed, **options), random.Random(seed)
    while game.phase != phase:
        game.play(draw.choice(game.legal_actions))
    return game


def test_several_moves_may_be_played_at_once_with_rolls_between_them():
    game, other, draw = Game(seed=5, history=True), Game(seed=5), random.Random(5)
    moves = []
    while len(moves) < 40:
        moves.append(draw.choice(other.legal_moves))
        other.play(moves[-1])
    assert other.states["round"][0] > 2
    game.play(", ".join(moves))
    assert game == other and len(game.history) == 40
    games = [Game(seed=296), Game(seed=296)]
    for game, reds in zip(games, ("2 red>court", "red>court, red>court"), strict=True):
        game.play(f"d2, d3, {reds}")
    assert games[0] == games[1]


@pytest.mark.parametrize("text", ["d6", "", "red>court", "d2, d2", "d2, d3, E+1"])
def test_text_that_is_no_legal_move_is_refused_and_changes_nothing(text):
    game = Game(seed=296, history=True)
    before = game.copy()
    with pytest.raises(NotationError, match=re.escape(repr(text.split(", ")[-1]))):
        game.play(text)
    assert game == before and game.history == ()


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
def test_undo_takes_decisions_back_to_the_start_of_the_game(rules):
    game, draw = Game(rules, seed=2, observe="float32", history=True), random.Random(2)
    before, played = [], []

    def shown():
        arrays = (game.observation.tolist(), game.mask.tolist())
        return game.to_bytes(), game.player, game.phase, game.over, game.legal_actions, *arrays

    while not game.over and len(played) < 400:
        before.append(shown())
        played.append(draw.choice(game.legal_actions))
        game.play(played[-1])
    while played:
        assert game.history == tuple(played)
        assert game.undo() == played.pop()
        assert shown() == before.pop()
    assert game.history == ()
    with pytest.raises(IndexError, match="no decision to take back"):
        game.undo()
    with pytest.raises(ValueError, match="history=True"):
        Game(rules).undo()


@pytest.mark.parametrize("rules", [kind for kind in ALL_KINDS if kind.max_rounds], ids=str)
def test_the_outcome_names_the_winners_the_reason_and_the_payoffs(rules):
    game, draw = Game(rules, seed=7), random.Random(7)
    assert game.rules == rules
    while not game.over:
        assert game.outcome is None
        game.play(draw.choice(game.legal_actions))
    winners = tuple(t for t in range(rules.teams) if game.states["winners"][0] >> t & 1)
    reason = engine.rules.REASON_NAMES[game.states["reason"][0]]
    assert game.outcome == Outcome(winners, reason, tuple(returns(game.states)[0].tolist()))
    assert bool(winners) == (reason != "max_rounds")
    assert game.legal_actions == () and not game.mask.any()
    for action, error, named in ((0, ValueError, "is over"), ("d1", NotationError, "no decision")):
        with pytest.raises(error, match=named):
            game.play(action)
    game = Game(rules, seed=7)
    loser = rules.team(game.player)
    engine.forfeit(game.states)
    game.refresh()
    rest = tuple(team for team in range(rules.teams) if team != loser)
    assert game.outcome[:2] == (rest, "forfeit")


@pytest.mark.parametrize("observe", ["uint8", "float32"])
def test_a_game_of_other_players_than_its_observation_is_for_is_refused(observe):
    game = Game(Rules(), seed=1, observe=observe)
    game.states[:] = engine.new_games(Rules(4), 1, seed=1)
    before = game.to_bytes()
    for call in (game.refresh, lambda: game.play(game.legal_actions[0])):
        with pytest.raises(ValueError, match="observation is not one of 4 players"):
            call()
    assert game.to_bytes() == before
    game = Game(Rules(), seed=1)  # without an observation there is nothing to fit
    game.states[:] = engine.new_games(Rules(4), 1, seed=1)
    game.refresh()
    assert game.rules.players == 4 and len(game.returns) == 4


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
def test_a_game_comes_back_from_text_bytes_and_its_repr(rules):
    game, draw, decisions = Game(rules, seed=3), random.Random(3), 0
    while True:
        formats = {
            Game.from_text: game.to_text(),
            Game.from_bytes: game.to_bytes(),
        }
        assert all(make(data) == game for make, data in formats.items())
        assert eval(repr(game)) == game
        if game.over or decisions == 420:
            break
        for _ in range(7):
            if not game.over:
                game.play(draw.choice(game.legal_actions))
                decisions += 1
    for make, data in formats.items():
        other = make(data, observe="uint8", history=True)
        assert other.observation.dtype == np.uint8 and other.history == ()
    text = game.to_text()
    assert Game.from_text(text, seed=5) == Game.from_text(text, seed=5) != game
    assert "\n" not in text
    assert repr(game) == f"Game.from_text({to_line(game.states[0])!r})"
    assert f"{game}\n" == board_text(game.states[0])


def test_what_is_no_position_is_refused():
    unreachable = Game(seed=1)
    unreachable.states["supply"][0, 0] += 1
    for make, data, error, named in (
        (Game.from_text, "2 | 7", PositionError, "turn"),
        (Game.from_bytes, b"1234", ValueError, "whole number of games"),
        (Game.from_bytes, bytes(ce.STATE.itemsize), ValueError, "'players' .*0"),
        (Game.from_bytes, b"", ValueError, "got 0"),
        (Game.from_bytes, unreachable.to_bytes(), PositionError, "red"),
    ):
        with pytest.raises(error, match=named):
            make(data)


def test_games_are_equal_and_hashed_by_their_positions():
    game, same = until(MOVE, observe="uint8"), until(MOVE, history=True)
    assert game == same and hash(game) == hash(same) and len({game, same}) == 1
    assert game != until(MOVE, seed=2) and game != "a game"
    same.play(same.legal_actions[0])
    assert game != same and hash(game) != hash(same)
    same.undo()
    assert game == same
    same.states["generator"] += 1
    assert game != same, "other dice to come"


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


def test_playouts_are_the_same_with_any_threads_and_games_and_repeats_are_averaged():
    states, streams = new_games(Rules(players=3), 9, seed=0), new_streams(1, 9)
    one = playout(states, streams.copy(), repeats=3)
    for part, threads in ((slice(9), 2), (slice(9), 4), (slice(4, 5), 1)):
        other = playout(states[part], streams[part].copy(), repeats=3, threads=threads)
        np.testing.assert_array_equal(one.returns[part], other.returns)
        np.testing.assert_array_equal(one.decisions[part], other.decisions)
    states, streams = new_games(Rules(), 5, seed=0), new_streams(1, 5)
    single = [playout(states, streams) for _ in range(8)]
    mean = playout(states, new_streams(1, 5), repeats=8)
    np.testing.assert_allclose(mean.returns, np.mean([one.returns for one in single], axis=0))
    assert mean.decisions.tolist() == sum(one.decisions for one in single).tolist()
    assert len({int(one.decisions[0]) for one in single}) > 4


def test_a_playout_is_left_at_the_limit_and_impossible_ones_are_refused():
    states, mixed = new_games(Rules(max_rounds=None), 3, seed=0), new_games(Rules(), 3, seed=0)
    result = playout(states, new_streams(0, 3), most_decisions=10)
    assert result.decisions.tolist() == [10] * 3 and not result.returns.any()
    mixed[1:2] = new_games(Rules(players=3), 1, seed=0)
    for given, options, named in (
        (states, {"repeats": 0}, "repeats .*0"),
        (states, {"most_decisions": 0}, "most_decisions .*0"),
        (mixed, {}, "numbers of players"),
    ):
        with pytest.raises(ValueError, match=named):
            playout(given, **{"generators": new_streams(0, 3), **options})


def test_more_repeats_of_a_playout_than_are_summed_exactly_are_refused():
    with pytest.raises(ValueError, match="repeats must be a whole number from 1 to 4,194,304"):
        playout(engine.new_games(Rules(), 1, seed=1), new_streams(1, 1), repeats=2**22 + 1)
