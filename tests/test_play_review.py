"""A look back at a game says what changed the odds, and which decisions were good and bad."""

from __future__ import annotations

import numpy as np
import pytest

from carolus_env import bots, engine
from carolus_env.bots.value.ahead import disc_values, values_ahead
from carolus_env.bots.value.inference import ValueWeights
from carolus_env.bots.value.model import ValueModel
from carolus_env.engine.rules import DISC, Rules, action_parts
from carolus_env.engine.state import single
from carolus_env.play.library import Replay
from carolus_env.play.review import (
    CLOSE,
    LARGE,
    SWINGS,
    Review,
    _stretches,
    choice_words,
    review,
)
from carolus_env.play.session import Session


def replayed(players: int = 2, agent: str = "random", rounds: int = 3, seed: int = 3) -> Replay:
    session = Session.new(
        Rules(players=players, max_rounds=rounds), [bots.make(agent)] * players, seed=seed
    )
    while not session.over:
        session.ask_agent()
    return Replay(session.record())


@pytest.fixture(scope="module")
def game() -> Replay:
    return replayed()


@pytest.fixture(scope="module")
def found(game: Replay) -> Review:
    return review(game, [0, 1])


@pytest.fixture(scope="module")
def weights() -> ValueWeights:
    return ValueWeights.of(ValueModel.shipped(2).weights)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_stretches_are_discs_crowns_and_turns_of_one_seat_and_hold_every_decision(players):
    game = replayed(players)
    events, stretches = game.record["events"], _stretches(game)
    assert sum(len(one.actions) for one in stretches) == len(game.decisions)
    for one in stretches:
        assert {event["player"] for event in events[one.first : one.end]} == {one.seat}
        kinds = [action_parts(action).kind for action in one.actions]
        if "disc" in kinds:
            assert kinds == ["disc"]
        if "move" in kinds:
            placed = kinds.index("move")
            assert set(kinds[:placed]) <= {"place"}
            assert set(kinds[placed + 1 :]) <= {"crown"}, "the crowns of its own dice"


def test_the_graph_has_a_value_at_every_decision_and_the_outcome_at_the_end(game, found, weights):
    assert found.values.shape == (len(game.decisions) + 1, 2)
    at = len(game.decisions) // 2
    own = values_ahead(single(game.states[game.decisions[at]]), weights)[0]
    np.testing.assert_allclose(found.values[at], own)
    np.testing.assert_allclose(found.values[-1], [0.5, 0.5])  # the limit of rounds: nobody won


def test_the_largest_swings_come_in_the_order_of_the_game(game, found):
    assert 1 <= len(found.swings) <= SWINGS
    positions = [swing.position for swing in found.swings]
    assert positions == sorted(positions)
    known = dict(zip([*game.decisions, game.events], found.values, strict=True))
    steps = [
        max(abs(known[after] - known[first]))
        for one in _stretches(game)
        for first in [next(k for k in game.decisions if k >= one.first)]
        for after in [min(k for k in known if k >= one.end)]
    ]
    told = sorted((abs(swing.after - swing.before) for swing in found.swings), reverse=True)
    np.testing.assert_allclose(told, sorted(steps, reverse=True)[: len(told)])
    for swing in found.swings:
        assert game.log[swing.position - 1].words == swing.text
        assert game.log[swing.position - 1].seat == swing.seat


def test_the_worst_decision_of_a_random_player_gives_much_away_and_what_was_better_is_told(
    game, found, weights
):
    assert {one.seat for one in found.worst} == {0, 1}
    for one in found.worst:
        state = game.states[one.position]
        assert one.loss >= LARGE and one.better and one.better != one.text
        assert state["player"] == one.seat
        if state["phase"] == DISC:
            worth = disc_values(single(state), weights)[0, :, one.seat]
            np.testing.assert_allclose(one.loss, np.nanmax(worth) - one.value)
        else:
            best = values_ahead(single(state), weights)[0, one.seat]
            assert one.value + one.loss >= best - 0.02, "at least the best next choice"


def test_good_decisions_are_as_good_as_the_best_and_stand_out():
    game = replayed(agent="value:candidates=8,next=0,discs=now", rounds=6)
    found = review(game, [0, 1])
    assert found.best
    for one in found.best:
        assert one.loss < CLOSE and one.lead >= LARGE
    assert review(game, []).best == []


def test_choices_are_told_in_words_and_change_nothing(game):
    at = next(k for k in game.decisions if game.states["phase"][k] not in (DISC,))
    state = game.states[at]
    before = state.tobytes()
    actions = []
    after = single(state).copy()
    while (
        after["player"][0] == state["player"] and len(actions) < 4 and not engine.is_over(after)[0]
    ):
        if not engine.legal_actions(after[0]).size:
            break
        actions.append(int(engine.legal_actions(after[0])[0]))
        engine.step(after, np.array(actions[-1:]), roll=False)
    words = choice_words(state, actions)
    assert len(words.split(", ")) == len(actions)
    assert state.tobytes() == before


def test_a_game_that_is_not_over_and_games_of_three_and_four_can_be_looked_back_at():
    for players in (3, 4):
        whole = replayed(players, rounds=2)
        cut = {**whole.record, "events": whole.record["events"][:30], "result": None}
        found = review(Replay(cut), range(players))
        assert np.isfinite(found.values).all()
        assert found.values.shape[1] == whole.rules.teams
