"""Our game behind OpenSpiel's interface is the same game; OpenSpiel's search is an agent."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")

from benchmarks.studies import openspiel_game, referee  # noqa: E402
from carolus_env import bots, engine  # noqa: E402
from carolus_env.engine import chance, rules, streams  # noqa: E402
from carolus_env.engine.rules import Rules  # noqa: E402
from carolus_env.games.game import Game  # noqa: E402


def load(players: int, seed: int = 0) -> Any:
    return pyspiel.load_game(f"python_carolus_magnus(players={players},seed={seed})")


def roll_as_the_generator(state: Any) -> None:
    """Choose the outcome that the game's own generator rolls, and move it on."""
    faces = np.sort(chance.draw_faces(state.states)[0])
    every = chance.chance_outcomes(len(faces)).faces
    state.apply_action(int(np.flatnonzero((every == faces).all(axis=1))[0]))


def some_position(phase: int, seed: int = 3) -> Any:
    """``(1,)`` a decision of two players in that phase, some rounds on."""
    game, stream = engine.new_games(Rules(), 1, seed=seed), streams.new_streams(seed, 1)
    while game["round"][0] < 4 or game["phase"][0] != phase:
        engine.step(game, engine.random_actions(game, stream))
    return game


# ------------------------------------------------------------------------------------ the game


@pytest.mark.parametrize("wanted", [Rules(2), Rules(3, "deferred"), Rules(4)])
def test_a_game_through_openspiel_is_that_game(wanted: Rules) -> None:
    random = np.random.default_rng(1)
    for seed in range(4):
        start = engine.new_games(wanted, 1, seed=seed, roll=False)
        game, state = Game(state=start), load(wanted.players).resumed_from(start[0])
        while not state.is_terminal():
            if state.is_chance_node():
                roll_as_the_generator(state)
                continue
            assert state.states.tobytes() == game.states.tobytes()
            assert state.current_player() == game.player
            assert state.legal_actions() == list(game.legal_actions)
            action = int(random.choice(game.legal_actions))
            state.apply_action(action)
            game.play(action)
        assert game.over
        assert state.returns() == game.returns.tolist()
        assert any(state.returns()), "somebody has won"


@pytest.mark.parametrize("players", [2, 3, 4])
def test_openspiels_own_check_of_a_game_finds_nothing(players: int) -> None:
    pyspiel.random_sim_test(load(players, seed=5), num_sims=2, serialize=False, verbose=False)


def test_a_game_has_its_seeds_set_up_and_as_many_players_as_asked() -> None:
    game = load(3, seed=8)
    start = engine.new_games(Rules(3), 1, seed=8, roll=False)
    assert game.new_initial_state().states.tobytes() == start.tobytes()
    assert (game.num_players(), game.min_utility(), game.max_utility()) == (3, -0.5, 1)
    with pytest.raises(ValueError, match="players must be a whole number from 2 to 4, got 5"):
        openspiel_game.CarolusGame({"players": 5})


@pytest.mark.parametrize(("players", "set_up", "turn"), [(2, 792, 56), (3, 2002, 126)])
def test_a_roll_is_a_chance_node_with_every_multiset(players: int, set_up: int, turn: int) -> None:
    state = load(players).new_initial_state()
    seen = []
    while turn not in seen:
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert [outcome for outcome, _ in outcomes] == list(range(len(outcomes)))
            assert sum(probability for _, probability in outcomes) == pytest.approx(1, abs=1e-12)
            seen.append(len(outcomes))
            roll_as_the_generator(state)
        else:
            state.apply_action(state.legal_actions()[0])
    assert seen == [set_up] * players + [turn]


def test_an_outcome_brings_what_it_says() -> None:
    state = load(2).new_initial_state()
    player = int(state.states["player"][0])
    for outcome in (0, 7, 791):
        after = state.clone()
        text = state.action_to_string(pyspiel.PlayerId.CHANCE, outcome)
        after.apply_action(outcome)
        faces = text.removeprefix("roll ").split(", ")
        assert len(faces) == 7
        held = after.states["reserves"][0, player].tolist()
        assert held == [faces.count(name) for name in rules.CLAN_NAMES]
        assert after.states["crowns"][0, player] == faces.count("crown")


def test_a_clone_is_independent() -> None:
    state = load(2).new_initial_state()
    while state.move_number() < 30:
        roll_as_the_generator(state) if state.is_chance_node() else state.apply_action(
            state.legal_actions()[-1]
        )
    before, history = state.states.tobytes(), state.history()
    other = state.clone()
    assert (other.states.tobytes(), other.history()) == (before, history)
    assert other.current_player() == state.current_player()
    other.apply_action(other.legal_actions()[0])
    assert (state.states.tobytes(), state.history()) == (before, history)
    assert other.states.tobytes() != before


# ------------------------------------------------------------------------------------ the agent


@pytest.mark.parametrize("rollouts", ["theirs", "ours"])
def test_a_search_leaves_the_position_and_the_outcomes_as_they_were(rollouts: str) -> None:
    position = some_position(rules.MOVE)
    before = position.tobytes()
    bot = bots.make(f"openspiel:sims=30,rollouts={rollouts}")
    root = bot.search(position[0], np.uint64(1))
    assert root.explore_count == bot.simulations == 30
    rolled = [child for child in root.children if child.children]
    assert any(child.children[0].player == pyspiel.PlayerId.CHANCE for child in rolled)
    assert position.tobytes() == before
    state = load(2).resumed_from(position[0])
    state.apply_action(root.best_child().action)
    assert [outcome for outcome, _ in state.chance_outcomes()] == list(range(56))


def test_decisions_do_not_depend_on_the_batch() -> None:
    bot = bots.make("openspiel:sims=20,rollouts=ours")
    games = np.concatenate([some_position(phase) for phase in (rules.DISC, rules.PLACE)])
    whole = bot.act(games, streams.new_streams(4, 2))
    alone = [int(bot.act(games[g : g + 1], streams.new_streams(4 + g, 1))[0]) for g in range(2)]
    assert whole.tolist() == alone
    assert engine.are_legal(games, whole).all()
    others = {tuple(bot.act(games, streams.new_streams(k, 2))) for k in range(8)}
    assert len(others) > 1, "other streams, other decisions"


def test_choices_are_in_the_order_of_their_numbers_where_ties_go_to_the_first() -> None:
    game = some_position(rules.PLACE)
    for ties, wanted in (("first", True), ("shuffled", False)):
        root = bots.make(f"openspiel:sims=5,ties={ties}").search(game[0], np.uint64(1))
        actions = [child.action for child in root.children]
        assert sorted(actions) == engine.legal_actions(game).tolist()
        assert (actions == sorted(actions)) == wanted


def test_a_forced_decision_takes_no_simulation() -> None:
    game, stream = engine.new_games(Rules(), 1, seed=0), streams.new_streams(0, 1)
    while len(engine.legal_actions(game)) > 1:
        engine.step(game, engine.random_actions(game, stream))
    bot = bots.make("openspiel:sims=20")
    assert bot.act(game, stream).tolist() == engine.legal_actions(game).tolist()
    assert bot.simulations == 0


def test_our_rollouts_come_to_what_theirs_do() -> None:
    """In a position that one player mostly wins, so that seats cannot be exchanged."""
    game, stream = engine.new_games(Rules(), 1, seed=1), streams.new_streams(1, 1)
    ours = np.zeros(2)
    while abs(ours[0]) < 0.6:
        engine.step(game, engine.random_actions(game, stream))
        evaluate = openspiel_game.OurRollouts(np.uint64(2)).evaluate
        state = load(2).resumed_from(game[0])
        ours = np.mean([evaluate(state) for _ in range(400)], axis=0)
    random_state = np.random.RandomState(3)
    theirs = openspiel_game.RandomRolloutEvaluator(150, random_state).evaluate(state)
    assert theirs == pytest.approx(ours, abs=0.25)


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(ValueError, match="option rollouts must be theirs or ours, got 'mine'"):
        bots.make("openspiel:rollouts=mine")


# ------------------------------------------------------------------------------------ the referee


def test_a_row_is_played_in_whole_deals_and_stops_when_its_time_is_up() -> None:
    pair = "mcts:sims=2", "openspiel:sims=2,rollouts=ours"
    row = referee.play(pair, 2, games=4, seed=1, limit=600)
    assert (row["games"], row["deals"], sum(row["wins"]) + row["draws"]) == (4, 2, 4)
    assert 0 < row["simulations_a_decision"][0] <= 2
    assert 0 < row["simulations_a_decision"][1] <= 2
    assert referee.play(pair, 2, games=4, seed=1, limit=0)["games"] == 2
    assert "mcts:sims=2 : openspiel:sims=2" in referee.table_line({"row": "default", **row})


def test_spread_is_1_where_all_choices_are_visited_alike() -> None:
    assert referee.spread([7, 7, 7]) == pytest.approx(1)
    assert referee.spread([9, 0, 0, 0]) == pytest.approx(1 / 4)
    assert referee.spread([5, 5, 0, 0]) == pytest.approx(1 / 2)


@pytest.mark.parametrize("spec", ["mcts:sims=20", "openspiel:sims=20,rollouts=ours"])
def test_both_searches_are_looked_at_from_who_decides(spec: str) -> None:
    """At a move that wins at once the value is near 1, whoever moves."""
    look = referee.look_of(spec)
    sides = set()
    for seed in range(200):
        game, stream = engine.new_games(Rules(), 1, seed=seed), streams.new_streams(seed, 1)
        while not engine.is_over(game)[0]:
            before = game.copy()
            engine.step(game, engine.random_actions(game, stream))
        player = int(before["player"][0])
        if player in sides or engine.returns(game)[0, player] < 1:
            continue
        if len(engine.legal_actions(before)) > 1:
            sides.add(player)
            assert look(before, 1)[1] > 0.6
        if len(sides) == 2:
            return
    raise AssertionError("both players win some game by their last move")


def test_without_openspiel_it_is_said_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "benchmarks.studies.openspiel_game", None)
    with pytest.raises(SystemExit):
        referee.main([])
    assert referee.INSTALL in capsys.readouterr().err
