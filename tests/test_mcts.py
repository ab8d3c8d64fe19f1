"""The search: reproducible, legal, blind to the dice to come, right where all can be counted."""

from __future__ import annotations

import pickle
import time
from functools import cache

import numpy as np
import pytest
from positions import BLACK, WHITE, after, paladins, play, position, region
from test_bots import middle_games

from carolus_env import bots, engine
from carolus_env.bots import Choice, MctsBot, MctsOptions
from carolus_env.bots.search.forest import Forest
from carolus_env.bots.search.tree import best_edge
from carolus_env.engine import chance
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PLACE, Rules, move_action
from carolus_env.engine.state import STATE
from carolus_env.engine.streams import new_streams
from carolus_env.planning import heuristic

every_number = pytest.mark.parametrize("players", [2, 3, 4])
KINDS = [
    "mcts:sims=30",
    "mcts:sims=30,chance=explicit",
    "mcts:sims=30,chance=explicit,leaf=playout",
    "mcts:sims=30,leaf=playout,width=5",
    "search:sims=30,crowns=value",
    "search:sims=30,chance=explicit,width=4",
]
every_kind = pytest.mark.parametrize("spec", KINDS)


def some_games(players=2, step=9, **rules):
    return middle_games(Rules(players, **rules), 25)[::step].copy()


def searched(spec, states, seed=1) -> list[list[Choice]]:
    return bots.make(spec).consider(states, new_streams(seed, len(states)))


def same(found, other):
    for ours, theirs in zip(found, other, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            if (a.actions, a.visits) != (b.actions, b.visits) or (a.chances != b.chances).any():
                return False
    return True


@every_number
@every_kind
def test_a_search_counts_every_simulation_and_offers_legal_choices_once(spec, players):
    states = some_games(players)
    for state, choices in zip(states, searched(spec, states), strict=True):
        legal = engine.legal_actions(state).tolist()
        firsts = [choice.actions[0] for choice in choices]
        assert set(firsts) <= set(legal)
        assert len({tuple(choice.actions) for choice in choices}) == len(choices)
        visits = [choice.visits for choice in choices]
        assert visits == sorted(visits, reverse=True)
        assert sum(visits) == (30 if len(legal) > 1 else 0)
        assert sum(choice.prior for choice in choices) == pytest.approx(1)
        for choice in choices:
            sums = choice.chances.sum()
            assert sums == (pytest.approx(1, abs=1e-5) if choice.visits else 0)
            assert len(choice.chances) == Rules(players).teams
        if int(state["phase"]) in (DISC, CROWN_CHOICE):
            assert sorted(firsts) == legal


@every_kind
def test_a_search_depends_on_its_streams_and_not_on_the_dice_to_come(spec):
    states = some_games()
    other = states.copy()
    other["generator"] = new_streams(5, len(states))
    result = searched(spec, states)
    assert same(result, searched(spec, other))
    assert not same(result, searched(spec, states, seed=2))


def test_a_bot_searches_once_a_turn_and_plays_what_it_found():
    states = some_games()
    states = states[states["phase"] == PLACE]
    bot, streams = bots.make("mcts:sims=50"), new_streams(3, len(states))
    wanted = [list(c[0].actions) for c in bot.consider(states, streams.copy())]
    done = bot.simulations
    played = [[] for _ in states]
    rows = np.arange(len(states))
    games = states.copy()
    while len(rows):
        actions = bot.act(games[rows], new := streams[rows])
        streams[rows] = new
        for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
            play(games[row : row + 1], action)
            played[row].append(action)
        rows = rows[np.isin(games["phase"][rows], (PLACE, MOVE)) & (games["dice_due"][rows] == 0)]
        rows = rows[games["player"][rows] == states["player"][rows]]
    assert played == wanted
    assert done < bot.simulations <= 2 * done


def test_a_turn_that_went_another_way_is_searched_anew():
    game = some_games(step=1)
    game = game[(game["phase"] == PLACE) & (game["placements_left"] > 1)][:1]
    bot, stream = bots.make("mcts:sims=20"), new_streams(1, 1)
    planned = int(bot.act(game, stream)[0])
    other = next(a for a in engine.legal_actions(game).tolist() if a != planned)
    play(game, other)
    before = bot.simulations
    assert int(bot.act(game, stream)[0]) in engine.legal_actions(game)
    assert before < bot.simulations <= before + 20


@pytest.mark.parametrize("spec", ["mcts:sims=200", "search:sims=200"])
def test_a_search_stops_when_no_other_choice_can_be_visited_more_often(spec):
    bot, streams = bots.make(spec), new_streams(4, 1)
    asked = saved = 0
    for g in range(len(states := some_games())):
        game = states[g : g + 1]
        [choices] = bot.consider(game, streams.copy())
        before = bot.simulations
        assert int(bot.act(game, streams.copy())[0]) == choices[0].actions[0]
        asked += sum(choice.visits for choice in choices)
        saved += sum(choice.visits for choice in choices) - (bot.simulations - before)
    assert 0.1 * asked < saved < 0.9 * asked


@pytest.mark.parametrize("options", [{}, {"leaf": "playout"}], ids=str)
def test_what_a_search_saves_changes_nothing_of_the_next_one(options):
    games, bot = some_games(), MctsBot(MctsOptions(sims=100, **options))
    streams = new_streams(4, len(games))
    acted, considered = streams.copy(), streams.copy()
    bot.act(games, acted)
    done = bot.simulations
    bot.consider(games, considered)
    assert bot.simulations > 2 * done, "it saved some"
    assert (acted == considered).all()


def test_a_width_of_one_leaves_nothing_to_search():
    states = some_games()
    states = states[states["phase"] == PLACE]
    bot = bots.make("mcts:sims=50,width=1")
    result = bot.consider(states, new_streams(1, len(states)))
    before = bot.simulations
    actions = bot.act(states, new_streams(1, len(states)))
    assert actions.tolist() == [choices[0].actions[0] for choices in result]
    assert bot.simulations == before


def test_time_is_a_budget_too():
    bot = MctsBot(MctsOptions(sims=1, seconds=0.2))
    states = some_games()[:2]
    bot.consider(states, new_streams(1, 2))  # compiles, perhaps
    bot.simulations, start = 0, time.perf_counter()
    bot.consider(states, new_streams(1, 2))
    assert time.perf_counter() - start >= 0.4
    assert bot.simulations >= 2 * 32
    done = bot.simulations
    bot.act(states, new_streams(1, 2))
    assert bot.simulations > done


def test_a_search_with_a_full_tree_goes_on_without_adding_to_it(monkeypatch):
    monkeypatch.setattr(bots.search.mcts, "_LARGEST", 10)
    states = some_games()
    for choices in searched("mcts:sims=100", states):
        assert sum(choice.visits for choice in choices) == 100 or len(choices) == 1


@every_number
@pytest.mark.parametrize("crowns", ["on_roll", "deferred"])
@pytest.mark.parametrize("ways", ["", ",chance=explicit", ",leaf=playout"])
def test_games_are_played_to_their_end_when_the_supply_runs_dry(players, crowns, ways):
    rules = Rules(players, crowns, paladins_per_clan=4, max_rounds=4)
    states = engine.new_games(rules, 2, seed=5)
    bot, streams = bots.make(f"mcts:sims=8{ways}"), new_streams(1, 2)
    while not engine.is_over(states).all():
        rows = np.flatnonzero(~engine.is_over(states))
        own = streams[rows]
        engine.step(states, bot.act(states[rows], own), rows=rows)
        streams[rows] = own


def test_a_copy_plays_alike():
    states = some_games()
    bot = bots.make("mcts:sims=20")
    bot.consider(states, new_streams(1, len(states)))
    again = pickle.loads(pickle.dumps(bot))
    streams = new_streams(2, len(states))
    assert same(bot.consider(states, streams.copy()), again.consider(states, streams.copy()))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("mcts:simulations=5", "has no option 'simulations=5'; options are key=value of sims: a"),
        ("mcts:sims=many", "option sims must be a whole number from 1 to 10,000,000, got 'many'"),
        ("mcts:sims=0", "option sims must be a whole number from 1 to 10,000,000, got 0"),
        ("mcts:seconds=-1", r"option seconds must be a number from 0.0 to 3,600.0, got -1.0"),
        ("mcts:leaf=luck", "option leaf must be planner or playout, got 'luck'"),
        ("mcts:sims=5,sims=6", "option sims is given twice"),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_ones(spec, reason):
    with pytest.raises(ValueError, match=f"^agent 'mcts'.*{reason}"):
        bots.make(spec)


def expectimax(game):
    """White's part of the win when both play their best: every decision, every roll.

    Crowns are the planner's choice, as inside the tree.
    In the last round nobody plays what is rolled then, so one outcome stands for all.
    """
    if int(game["phase"][0]) == OVER:
        return float(heuristic.chances(game)[0, 0])
    if game["dice_due"][0]:
        faces, _, probabilities = chance.chance_outcomes(int(game["dice_due"][0]))
        if game["round"][0] == game["max_rounds"][0]:
            faces, probabilities = faces[:1], np.ones(1)
        after = game.repeat(len(faces))
        chance.apply_roll(after, faces)
        after["generator"] = 0
        values = [value_of(one.tobytes()) for one in after]
        return float(probabilities @ values)
    actions = engine.legal_actions(game)
    if game["phase"][0] == CROWN_CHOICE:
        actions = bots.make("planner").act(game, new_streams(0, 1))
    after = game.repeat(len(actions))
    engine.step(after, actions, roll=False)
    after["generator"] = 0
    best = max if game["player"][0] == WHITE else min
    return best(value_of(key) for key in {one.tobytes() for one in after})


@cache
def value_of(key):
    return expectimax(np.frombuffer(key, STATE).copy())


def last_hope():
    """White needs two red paladins of three dice or crowns, and has to go one step.

    Then, in the last round, white takes red from black and with it the region one step on. That
    leaves two regions and nine castles to six. Else the game is cut off: a draw.
    """
    return position(
        region(BLACK, 6, blue=8),
        region(WHITE, 4, pink=6),
        region(BLACK, 1, red=4),
        region(WHITE, 4, pink=6),
        courts=[paladins(red=3, pink=9), paladins(red=4, blue=9)],
        reserves=[paladins(), paladins()],
        phase="move",
        discs=[2, 1],
        order=[1, 0],
        player=0,
        round=4,
        spent=[3, 4, 5],
        max_rounds=5,
    )


@pytest.mark.parametrize("ways", ["chance=explicit", "chance=open"])
def test_the_search_finds_the_exact_chance_of_a_roll(ways):
    """Its mean counts what was tried and found bad too, so it comes from below."""
    game = last_hope()
    [choices] = searched(f"mcts:sims=100000,leaf=playout,{ways}", game)
    best, other = choices
    assert best.actions == [move_action(1)]
    exact = expectimax(after(game, [move_action(1)]))
    error = 3 * 0.5 * (7 / 27 * 20 / 27 / best.visits) ** 0.5
    assert exact - 0.01 - error < best.chances[0] < exact + error
    assert other.chances[0] == pytest.approx(expectimax(after(game, [move_action(2)])), abs=0.01)
    assert best.visits > 100 * other.visits


@pytest.mark.parametrize("team", [0, 1, 2])
def test_each_node_maximises_the_value_of_the_team_that_decides(team):
    forest = Forest.new(1, 4, 8)
    nodes, edges = forest.nodes[0], forest.edges[0]
    nodes[0]["edges"], nodes[0]["visits"], nodes[0]["team"] = 3, 30, team
    for k in range(3):  # after choice k team k has won all games
        edges[k]["prior"], edges[k]["visits"], edges[k]["first_value"] = 1 / 3, 10, 0.5
        edges[k]["value"][k] = 10.0
    assert best_edge(nodes, edges, 0, 0.2) == team
