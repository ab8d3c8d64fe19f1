"""The game in OpenSpiel is this game: its chance, positions, observations, options and text.

A stand-in has the classes that ours inherit; `make integrations` runs OpenSpiel's own check.
"""

import importlib
import itertools
import math
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stand_in
from positions import exact_value
from stand_in import LATE, PLACING

from carolus_env import bots, engine
from carolus_env.engine import chance, observation, rules
from carolus_env.engine.rules import Rules
from carolus_env.games.game import Game
from carolus_env.notation import from_text, read_move, to_line
from carolus_env.records.position import from_bytes

adapter = stand_in.load("carolus_env.integrations.openspiel", stand_in.OPEN_SPIEL)

OPTIONS = [
    {},
    {"players": 3, "crown_choice": "deferred"},
    {"players": 4, "partners": "adjacent", "paladins_per_clan": 20},
    {"players": 2, "max_rounds": 3},
]


def load(**options: Any) -> Any:
    return adapter.CarolusMagnusGame(options)


def some_state(game: Any, moves: int, seed: int = 1) -> Any:
    """A state after that many events, all drawn at random."""
    random, state = np.random.default_rng(seed), game.new_initial_state()
    for _ in range(moves):
        happen(state, random)
    return state


def happen(state: Any, random: Any) -> None:
    """An event at random: of chance as likely as it is, of the decisions all alike."""
    chances = None
    if state.is_chance_node():
        chances = [probability for _, probability in state.chance_outcomes()]
    state.apply_action(int(random.choice(state.legal_actions(), p=chances)))


@pytest.mark.parametrize("options", OPTIONS)
def test_a_game_in_openspiel_is_that_game_and_refuses_what_it_does(options):
    wanted, random = Rules(**options), np.random.default_rng(1)
    for seed in range(3):
        start = engine.new_games(wanted, 1, seed=seed, roll=False)
        game, state, dice = Game(state=start), load(**options).new_initial_state(), start.copy()
        territories = start["region_paladins"][0].argmax(axis=0)[: rules.TERRITORIES]
        for outcome in (*territories, start["order"][0, 0]):
            state.apply_action(int(outcome))
        while not state.is_terminal():
            if state.is_chance_node():
                dice["phase"], dice["dice_due"] = rules.ROLL, state.states["dice_due"]
                faces = np.sort(chance.draw_faces(dice)[0])
                every = chance.chance_outcomes(len(faces)).faces
                state.apply_action(int(np.flatnonzero((every == faces).all(axis=1))[0]))
                continue
            same = game.states.copy()
            same["generator"] = 0
            assert state.states.tobytes() == same.tobytes()
            assert state.current_player() == game.player
            assert state.legal_actions() == list(game.legal_actions)
            assert state.legal_actions((game.player + 1) % wanted.players) == []
            assert state.returns() == [0.0] * wanted.players
            for wrong in {0, 5, 10, 15, 94, 95} - set(game.legal_actions):
                with pytest.raises(ValueError, match=str(wrong)):
                    state.apply_action(wrong)
            assert state.states.tobytes() == same.tobytes()
            action = int(random.choice(game.legal_actions))
            state.apply_action(action)
            game.play(action)
        assert game.over
        assert state.legal_actions() == []
        assert state.returns() == game.returns.tolist()
        assert any(state.returns()) == (wanted.max_rounds != 3)


def test_the_set_up_draws_every_layout_and_first_player_alike():
    state, likelihood = load(players=3).new_initial_state(), 1.0
    with pytest.raises(ValueError, match="there is no game yet, the set-up is being drawn"):
        _ = state.states
    layout = np.random.default_rng(3).permutation(np.repeat(np.arange(5), 3))
    for clan in layout:
        outcomes = dict(state.chance_outcomes())
        assert sum(outcomes.values()) == pytest.approx(1, abs=1e-15)
        likelihood *= outcomes[clan]
        state.apply_action(int(clan))
        drawn = layout[: state.move_number()].tolist()
        if drawn.count(clan) == 3 and len(drawn) < 15:
            with pytest.raises(ValueError, match=rf"a chance outcome must be one of .* got {clan}"):
                state.apply_action(int(clan))
    layouts = math.factorial(15) // math.factorial(3) ** 5
    assert likelihood == pytest.approx(1 / layouts, rel=1e-12)
    assert state.chance_outcomes() == [(seat, 1 / 3) for seat in range(3)]
    state.apply_action(2)
    wanted = engine.new_games(Rules(3), 1, seed=0, territories=layout, first_player=2, roll=False)
    wanted["generator"] = 0
    assert state.states.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("players", "set_up", "turn"), [(2, 792, 56), (3, 2002, 126)])
def test_a_roll_has_every_multiset_as_outcome(players, set_up, turn):
    state, outcomes_of_rolls = some_state(load(players=players), 16), []
    player, last = int(state.states["player"][0]), set_up - 1
    for outcome in (0, 7, last):
        after, text = state.clone(), state.action_to_string(adapter.CHANCE, outcome)
        after.apply_action(outcome)
        faces = text.removeprefix("rolls ").split()
        held = after.states["reserves"][0, player].tolist()
        assert held == [faces.count(name) for name in rules.CLAN_NAMES]
        assert len(faces) == sum(held) + after.states["crowns"][0, player] == 3 + 2 * players
    with pytest.raises(ValueError, match=f"from 0 to {last} here, got {set_up}"):
        state.apply_action(set_up)
    while turn not in outcomes_of_rolls:
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            assert [outcome for outcome, _ in outcomes] == list(range(len(outcomes)))
            assert sum(probability for _, probability in outcomes) == pytest.approx(1, abs=1e-12)
            outcomes.clear()  # a copy, which OpenSpiel's search shuffles
            outcomes_of_rolls.append(len(state.chance_outcomes()))
        state.apply_action(state.legal_actions()[0])
    assert outcomes_of_rolls == [set_up] * players + [turn]
    assert state.get_game().info.max_chance_outcomes == set_up


def test_a_clone_is_independent_and_a_position_survives_pickling(monkeypatch):
    monkeypatch.setitem(sys.modules, adapter.__name__, adapter)
    state = load().new_initial_state()
    assert state.action_to_string(0, 0) == "disc 1", "not playable yet"
    assert state.action_to_string(adapter.CHANCE, 3) == "territory 0 yellow"
    first = some_state(load(), 15)
    assert first.action_to_string(adapter.CHANCE, 1) == "first player 1"
    for action in (3, 0):
        state.apply_action(action)
    assert str(state) == "set-up | y r"
    for moves in (0, 7, 15, 16, 40):
        game = load()
        state = some_state(game, moves)
        before, history = str(state), state.history()
        copied = game.new_initial_state()
        kept = {name: value for name, value in vars(state).items() if name != "_game"}
        vars(copied).update(pickle.loads(pickle.dumps(kept)))
        assert str(copied) == before
        assert copied.legal_actions() == state.legal_actions()
        other = state.clone()
        assert (str(other), other.history()) == (before, history)
        assert other.current_player() == state.current_player()
        assert other.legal_actions() == state.legal_actions()
        other.apply_action(other.legal_actions()[0])
        assert (str(state), state.history()) == (before, history)
        assert str(other) != before
    handed_out = state.states
    handed_out["round"] = 9
    assert str(state) == before


def test_every_option_of_the_rules_is_a_parameter_and_impossible_ones_are_named():
    assert set(adapter.PARAMETERS) == {*Rules().to_dict(), "position"}
    game = load(players=4, partners="adjacent", crown_choice="deferred", paladins_per_clan=9)
    assert game.rules == Rules(4, "deferred", "adjacent", 9)
    assert "partners=adjacent" in str(game)
    assert load(max_rounds=0).rules.max_rounds is None
    assert adapter.game_of(Rules(3, max_rounds=None)).rules == Rules(3, max_rounds=None)
    for options, text in (
        ({"players": 5}, "players must be a whole number from 2 to 4, got 5"),
        ({"dice": 2}, "unknown key 'dice'"),
        ({"position": LATE, "max_rounds": 50}, "max_rounds is 50, but the position has 5"),
        ({"position": "2 | 7"}, "turn is missing"),
    ):
        with pytest.raises(ValueError, match=text):
            load(**options)


def test_a_game_can_start_from_a_position_and_actions_are_in_the_notation():
    wanted = from_text(LATE)
    wanted["generator"] = 0
    game = load(position=LATE.replace("=", ":"))
    assert game.rules.paladins_per_clan == 6
    assert game.new_initial_state().states.tobytes() == wanted.tobytes()
    again = load(position=LATE)
    assert str(again) == str(game)
    assert "paladins_per_clan:6" in str(game), "an equals sign would end the parameter"
    started = adapter.game_of(Rules(paladins_per_clan=6, max_rounds=5))
    assert str(started.new_initial_state(LATE)) == str(game.new_initial_state())
    with pytest.raises(ValueError, match="the position has Rules"):
        load().new_initial_state(LATE)
    state = load(position=PLACING).new_initial_state()
    for action in state.legal_actions():
        text = state.action_to_string(1, action)
        assert read_move(state.states[0], text) == [action]
    assert state.action_to_string(0, 17) == rules.action_text(17), "not that player's decision"
    assert state.action_to_string(1, 0) == "disc 1", "illegal now"
    orders = [state.clone(), state.clone()]
    for one, moves in zip(orders, itertools.permutations(("p>court", "r>13")), strict=True):
        for move in moves:
            one.apply_action(read_move(one.states[0], move)[0])
    assert orders[0].history() != orders[1].history()
    assert str(orders[0]) == str(orders[1])
    assert orders[0].states.tobytes() == orders[1].states.tobytes()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_seat_sees_the_packages_observation(players):
    observer = load(players=players).make_py_observer()
    for moves in (30, 60):
        state = some_state(load(players=players), moves)
        for seat in range(players):
            obs = observation.observe(state.states, np.array([seat]), dtype=np.float32)[0]
            observer.set_from(state, seat)
            who = [float(seat == k) for k in range(players)]
            assert observer.tensor.tolist() == [*who, *obs.tolist()]
            assert state.observation_tensor(seat) == observer.tensor.tolist()
            blocks = {"player": np.array(who), **observation.unpack(obs, players)}
            np.testing.assert_equal(observer.dict, blocks)
        assert observer.string_from(state, 0) == to_line(state.states[0], generator=False)
        with pytest.raises(ValueError, match=f"from 0 to {players - 1}, got {players}"):
            observer.set_from(state, players)
    with pytest.raises(ValueError, match="no parameters"):
        adapter.CarolusMagnusObserver(players, {"a": 1})


def test_in_the_set_up_a_seat_sees_what_is_laid_out():
    state = load(players=3).new_initial_state()
    for clan in (4, 4, 0):
        state.apply_action(clan)
    assert state.observation_tensor(1)[:3] == [0, 1, 0]
    obs = observation.unpack(np.array(state.observation_tensor(1)[3:]), 3)
    laid = obs["region_paladins"]
    highest = observation.unpack(np.array(observation.highs(3) * observation.scales(3)), 3)
    assert np.argwhere(laid).tolist() == [[0, 2], [4, 0], [4, 1]]
    assert laid.max() == pytest.approx(highest["region_paladins"].max() / 200)
    assert sum(np.count_nonzero(block) for block in obs.values()) == 3


def test_an_agent_plays_as_a_bot_and_a_bot_as_an_agent():
    state = load(position=PLACING).new_initial_state()
    bot = adapter.AgentBot("planner", 1, seed=3)
    wanted = bots.make("planner").act(state.states, chance.new_streams(3, 1))
    assert bot.step(state) == wanted[0]
    assert bot.player_id() == 1
    asked = []

    def make(game: Any, seat: int, seed: int) -> Any:
        asked.append((game.rules, seat, seed))
        return SimpleNamespace(step=lambda state: int(state.legal_actions()[-1]))

    agent = adapter.BotAgent(make)
    games, stream = engine.new_games(Rules(3, "deferred"), 4, seed=1), chance.new_streams(1, 4)
    for _ in range(6):
        actions = agent.act(games, stream)
        assert actions.tolist() == [engine.legal_actions(game)[-1] for game in games]
        engine.step(games, actions)
    assert {given for given, _, _ in asked} == {Rules(3, "deferred")}
    assert {seat for _, seat, _ in asked} == {0, 1, 2}
    assert len({seed for *_, seed in asked}) == len(asked)
    assert all(0 <= seed < 2**32 for *_, seed in asked)


def test_playouts_value_a_position_for_every_seat_and_are_no_longer_than_said():
    state = load(position=LATE).new_initial_state()
    result = adapter.PlayoutEvaluator(200, seed=1).evaluate(state)
    again = adapter.PlayoutEvaluator(200, seed=1).evaluate(state)
    assert result.tolist() == again.tolist()
    assert result.sum() == pytest.approx(0, abs=1e-6) and -1 < result[0] < 1
    ours, decisions, random = np.zeros(2), [0] * 200, np.random.default_rng(1)
    for k in range(200):
        end = state.clone()
        while not end.is_terminal():
            decisions[k] += not end.is_chance_node()
            happen(end, random)
        ours += np.array(end.returns()) / 200
    assert result == pytest.approx(ours, abs=0.3)
    game = state.get_game()
    assert game.max_chance_nodes_in_history() == 6, "rounds 4 and 5, and rolls of the set-up"
    assert 6 <= max(decisions) <= 2 * (7 + 2 * 8)
    assert game.info.max_game_length == 2 * (7 + 2 * 8)


def test_a_late_position_is_worth_what_its_note_says():
    """And through the adapter's chance nodes and actions it is the same tree."""
    known: dict[bytes, Any] = {}
    state = load(position=PLACING).new_initial_state()
    assert exact_value(state.states, known) == pytest.approx([-1, 1])
    before = [data for data in known if from_bytes(data)["phase"] != rules.OVER]
    assert len(before) > 100
    for data in before[::7]:
        at = state.get_game().state_of(from_bytes(data)[0])
        children = []
        for action in at.legal_actions():
            child = at.clone()
            child.apply_action(action)
            children.append(known[child.states.tobytes()])
        if at.is_chance_node():
            chances = [probability for _, probability in at.chance_outcomes()]
            wanted = np.average(children, axis=0, weights=chances)
        else:
            player = at.current_player()
            wanted = max(children, key=lambda payoffs: payoffs[player])
        assert known[data] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("adapter", "missing", "said"),
    [
        ("openspiel", "pyspiel", r"needs OpenSpiel .*: pip install open_spiel==2\.0\.2"),
        ("rllib", "ray", r"pip install 'ray\[rllib\]' torch"),
    ],
)
def test_without_the_library_it_is_said_what_to_install(monkeypatch, adapter, missing, said):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=said):
        importlib.import_module(f"carolus_env.integrations.{adapter}")
