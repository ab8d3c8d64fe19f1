"""What agents think of a game: rows sum to 1, on legal actions, and nothing else is disturbed."""

from __future__ import annotations

import numpy as np
import positions
import pytest
import strategies
from positions import paladins, position, region

from carolus_env import bots, engine
from carolus_env.bots import Agent, Opinion, opinion
from carolus_env.engine.rules import ACTIONS, OVER, ROLL, TEAMS, Rules, move_action
from carolus_env.engine.streams import new_streams

AGENTS = ("random", "greedy", "planner", "mcts:sims=12", "ppo", "search:sims=6")
VALUED = AGENTS[2:]


def some_games(players, count=10, **options):
    states = strategies.history(Rules(players, **options), 3, games=6, limit=300).reshape(-1)
    states = states[~np.isin(states["phase"], (ROLL, OVER))]
    return strategies.sample(states, 3, count)


@pytest.mark.parametrize("spec", AGENTS)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_opinions_are_shares_of_1_on_legal_actions_and_change_nothing(spec, players):
    states = some_games(players, crown_choice="deferred" if players == 3 else "on_roll")
    before, streams = states.tobytes(), new_streams(5, len(states))
    given = opinion(bots.make(spec), states, streams)
    assert given.probabilities.shape == (len(states), ACTIONS)
    assert given.probabilities.sum(axis=1) == pytest.approx(1)
    assert not given.probabilities[engine.legal_masks(states) == 0].any()
    if spec in VALUED:
        assert given.values.shape == (len(states), TEAMS[players])
        assert given.values.sum(axis=1) == pytest.approx(1)
    else:
        assert given.values is None
    assert states.tobytes() == before
    again = opinion(bots.make(spec), states, new_streams(5, len(states)))
    assert np.array_equal(again.probabilities, given.probabilities)


@pytest.mark.parametrize("spec", AGENTS)
def test_an_agent_plays_the_same_whether_or_not_it_was_asked(spec):
    played = []
    for asked in (False, True):
        agent, game, streams = bots.make(spec), engine.new_games(Rules(), seed=4), new_streams(9, 1)
        actions = []
        for _ in range(25):
            if asked:
                opinion(agent, game)
            actions += agent.act(game, streams).tolist()
            engine.step(game, np.array(actions[-1:]))
        played.append((actions, streams.tolist()))
    assert played[0] == played[1]


@pytest.mark.parametrize("name", ["random", "greedy"])
def test_what_is_played_at_random_is_held_as_often_as_it_is_played(name):
    states, agent = some_games(3, count=6), bots.make(name)
    given = opinion(agent, states).probabilities
    for state, chances in zip(states, given, strict=True):
        many = np.repeat(state.reshape(1), 3000)
        chosen = np.bincount(agent.act(many, new_streams(1, 3000)), minlength=ACTIONS) / 3000
        assert np.array_equal(chosen > 0, chances > 0)
        assert chosen == pytest.approx(chances, abs=0.05)


@pytest.mark.parametrize("name", ["greedy", "planner"])
def test_errors_are_part_of_an_opinion_and_not_of_its_values(name):
    states = some_games(2)
    legal = engine.legal_masks(states)
    sure = opinion(bots.make(name), states)
    given = opinion(bots.make(f"{name}:errors=0.4"), states)
    anything = legal / legal.sum(axis=1)[:, None]
    assert given.probabilities == pytest.approx(0.6 * sure.probabilities + 0.4 * anything)
    assert opinion(Silent(), a_game()) == Opinion(None, None), "an agent need not have one"
    if name == "planner":
        assert np.array_equal(given.values, sure.values)
        played = bots.make(name).act(states, new_streams(0, len(states)))
        assert np.array_equal(sure.probabilities.argmax(axis=1), played)
        assert (sure.probabilities.max(axis=1) == 1).all()


@pytest.mark.parametrize("spec", VALUED)
def test_who_wins_at_once_is_expected_to(spec):
    """White's Emperor can reach the tenth castle, two steps on."""
    regions = region(0, 9, red=9), region(), region(red=1)
    given = opinion(bots.make(spec), position(*regions, courts=[paladins(red=1)], discs=[2, 3]))
    assert given.probabilities[0].argmax() == move_action(2)
    assert given.values[0, 0] > 0.8


def test_a_searchs_opinion_is_its_visits_and_mean_values():
    states, agent = some_games(2, count=4), bots.make("mcts:sims=40")
    streams = new_streams(8, 4)
    given = opinion(agent, states, streams)
    shown = states.copy()
    shown["generator"] = 0
    for row, choices in enumerate(agent.consider(shown, new_streams(8, 4))):
        if len(choices) == 1:
            continue
        visits = np.zeros(ACTIONS)
        for choice in choices:
            visits[choice.actions[0]] += choice.visits
        assert given.probabilities[row] == pytest.approx(visits / 40)
        total = sum(choice.visits * choice.chances for choice in choices)
        assert given.values[row] == pytest.approx(total / 40)
    assert not np.array_equal(streams, new_streams(8, 4))
    first, second = opinion(agent, states), opinion(agent, states)  # always the same streams
    assert all(map(np.array_equal, first, second))


class Opinionated(bots.RandomBot):
    """An agent whose opinion is what it was made with."""

    name = "given"

    def __init__(self, *given):
        self.given, self.seen = given, []

    def opinion(self, states, generators):
        self.seen.append(states.copy())
        states["round"] += 1  # forbidden, but harmless
        return self.given


class Silent(Agent):
    name = "silent"
    act = bots.RandomBot.act


def a_game():
    return position(discs=[2, 3])  # moves of 1 and 2 steps are legal


@pytest.mark.parametrize(("name", "values"), [("act", None), ("Mine", [[0.25, 0.75]])])
def test_an_agent_from_a_file_may_have_an_opinion(tmp_path, name, values):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from carolus_env.bots import Opinion, RandomBot\n"
        "from carolus_env.engine import random_actions as act\n"
        "class Mine(RandomBot):\n"
        "    def opinion(self, states, generators):\n"
        "        return Opinion(values=np.array([[0.25, 0.75]]))\n"
    )
    given = opinion(bots.make(f"{file}:{name}"), a_game())
    assert given.probabilities is None
    assert (None if given.values is None else given.values.tolist()) == values


def moves(*shares):
    row = np.zeros((1, ACTIONS))
    row[0, move_action(1) :][: len(shares)] = shares
    return row


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ((moves(0.5, 0.4), None), "probabilities .* sum to 1, .* with sum 0.9"),
        ((moves(1.5, -0.5), None), "sum to 1, got a row from -0.5 to 1.5"),
        ((moves(np.nan, 1), None), "sum to 1, got a row from nan"),
        ((moves(0.5, 0.3, 0.2), None), "gives action 12 a probability of 0.2, but it is illegal"),
        ((moves(1)[0], None), r"must be numbers of shape \(1, 95\), got shape \(95,\)"),
        ((None, [[0.2, 0.3, 0.5]]), r"values .* of shape \(1, 2\), got shape \(1, 3\)"),
        ((None, "high"), r"values .* must be numbers of shape \(1, 2\)"),
    ],
)
def test_an_invalid_opinion_is_refused_with_the_agents_name(given, wrong):
    agent, game = Opinionated(moves(0.5, 0.5), None), a_game()
    game["generator"] = 12345
    before = game.tobytes()
    opinion(agent, game)
    assert agent.seen[0]["generator"] == 0, "it does not see the dice to come"
    assert game.tobytes() == before
    with pytest.raises(bots.AgentError, match=f"^agent 'given'.*{wrong}"):
        opinion(Opinionated(*given), a_game())


def test_there_is_no_opinion_where_nobody_decides_or_players_are_mixed():
    with pytest.raises(ValueError, match="game 0 does not wait for a decision: its phase is roll"):
        opinion(Silent(), positions.new_game())
    mixed = np.concatenate([a_game(), position(players=3)])
    with pytest.raises(ValueError, match="different numbers of players have different opinions"):
        opinion(Silent(), mixed)
