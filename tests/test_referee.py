"""OpenSpiel's search is an agent, which the referee's matches are played with."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")

from benchmarks.studies import openspiel_bot, referee  # noqa: E402, F401  registers the agent
from carolus_env import bots, engine  # noqa: E402
from carolus_env.engine import rules, streams  # noqa: E402
from carolus_env.engine.rules import Rules  # noqa: E402
from carolus_env.integrations.openspiel import game_of  # noqa: E402


def some_position(phase: int, seed: int = 3) -> Any:
    """``(1,)`` a decision of two players in that phase, some rounds on."""
    game, stream = engine.new_games(Rules(), 1, seed=seed), streams.new_streams(seed, 1)
    while game["round"][0] < 4 or game["phase"][0] != phase:
        engine.step(game, engine.random_actions(game, stream))
    return game


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
    state = game_of(Rules(2)).state_of(position[0])
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
    monkeypatch.setitem(sys.modules, "benchmarks.studies.openspiel_bot", None)
    with pytest.raises(SystemExit):
        referee.main([])
    assert referee.INSTALL in capsys.readouterr().err
