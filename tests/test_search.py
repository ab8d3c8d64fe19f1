"""Searches: reproducible, legal, blind to the dice to come, right where all can be counted."""

import pickle
import time

import numpy as np
import pytest
from networks import plain_values, random_model
from positions import BLACK, WHITE, after, exact_value, paladins, play, position, region
from strategies import every_number
from test_bots import middle_games

from carolus_env import bots, engine
from carolus_env.bots import (
    Choice,
    Evaluator,
    MctsBot,
    MctsOptions,
    NetworkModel,
    SearchBot,
    SearchOptions,
)
from carolus_env.bots.tree import (
    CONSIDERED,
    Forest,
    best_edge,
    key_of,
    next_choice,
    tree_of,
)
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, PLACE, Rules, move_action
from carolus_env.networks.network import Weights, values
from carolus_env.planning.plans import actions_of
from carolus_env.system.compiler import entry

KINDS = [
    "mcts:sims=30",
    "mcts:sims=30,candidates=5",
    "search:sims=30",
    "search:candidates=4,sims=30",
]
every_kind = pytest.mark.parametrize("spec", KINDS)


def sample_games(players=2, step=9, **rules):
    return middle_games(Rules(players, **rules), 25)[::step].copy()


def searched(spec, states, seed=1) -> list[list[Choice]]:
    return bots.make(spec).consider(states, new_streams(seed, len(states)))


def same(found, other):
    """Whether searches found the same choices, to the last bit."""
    return all(
        (a.actions, a.visits, a.prior) == (b.actions, b.visits, b.prior)
        and (a.chances == b.chances).all()
        for ours, theirs in zip(found, other, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )


@every_number
@every_kind
def test_a_search_counts_every_simulation_and_offers_legal_choices_once(spec, players):
    states = sample_games(players)
    for state, choices in zip(states, searched(spec, states), strict=True):
        legal = engine.legal_actions(state).tolist()
        firsts = [choice.actions[0] for choice in choices]
        assert set(firsts) <= set(legal)
        assert len({tuple(choice.actions) for choice in choices}) == len(choices)
        visits = [choice.visits for choice in choices]
        assert sum(visits) == (30 if len(legal) > 1 else 0)
        team, last = int(state["team"][state["player"]]), max(visits) - 1
        compared = [choice.chances[team] for choice in choices if choice.visits >= last]
        assert visits[0] >= last
        assert choices[0].chances[team] == pytest.approx(max(compared), abs=1e-8)
        assert sum(choice.prior for choice in choices) == pytest.approx(1)
        for choice in choices:
            sums = choice.chances.sum()
            assert sums == (pytest.approx(1, abs=1e-5) if choice.visits else 0)
            assert len(choice.chances) == Rules(players).teams
        if int(state["phase"]) in (DISC, CROWN_CHOICE):
            assert sorted(firsts) == legal


@every_kind
def test_a_search_depends_on_its_streams_and_not_on_the_dice_to_come(spec):
    states = sample_games()
    other = states.copy()
    other["generator"] = new_streams(5, len(states))
    bot = bots.make(spec)
    result = bot.consider(states, new_streams(1, len(states)))
    assert same(result, searched(spec, other))
    assert not same(result, searched(spec, states, seed=2))
    again = pickle.loads(pickle.dumps(bot))
    assert same(result, again.consider(states, new_streams(1, len(states)))), "a copy plays alike"


def test_a_bot_searches_once_a_turn_unless_it_goes_another_way_and_plays_what_it_found():
    games = sample_games()
    games = games[games["phase"] == PLACE]
    bot, streams, players = bots.make("mcts:sims=50"), new_streams(3, len(games)), games["player"]
    wanted = [list(c[0].actions) for c in bot.consider(games, streams.copy())]
    done, played, players = bot.simulations, [[] for _ in games], players.copy()
    rows = np.arange(len(games))
    while len(rows):
        drawn = streams[rows]
        actions = bot.act(games[rows], drawn)
        streams[rows] = drawn
        for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
            play(games[row : row + 1], action)
            played[row].append(action)
        rows = rows[np.isin(games["phase"][rows], (PLACE, MOVE)) & (games["dice_due"][rows] == 0)]
        rows = rows[games["player"][rows] == players[rows]]
    assert played == wanted
    assert bot.simulations == 2 * done
    game = sample_games(step=1)
    game = game[(game["phase"] == PLACE) & (game["placements_left"] > 1)][:1]
    bot, stream = bots.make("mcts:sims=20"), new_streams(1, 1)
    planned = int(bot.act(game, stream)[0])
    other = next(a for a in engine.legal_actions(game).tolist() if a != planned)
    play(game, other)
    before = bot.simulations
    assert int(bot.act(game, stream)[0]) in engine.legal_actions(game)
    assert before < bot.simulations <= before + 20


@entry
def _try_choices(forest, rates, tried):
    """Write which choices are tried at the root of a tree whose choice k wins ``rates[k]``."""
    tree = tree_of(forest, 0)
    for k in range(tried.shape[0]):
        edge = next_choice(tree, k / tried.shape[0])
        tree.edges[edge]["visits"] += 1
        tree.edges[edge]["value"][0] += rates[edge]
        tried[k] = edge


def tried(rates, sims):
    """Choices in the order in which they are tried; at first sight the last is the best."""
    forest, result = Forest.new(1, 2, len(rates)), np.zeros(sims, np.int64)
    forest.nodes["edges"][0, 0] = len(rates)
    forest.edges["first_value"][0, : len(rates)] = np.linspace(0.1, 0.9, len(rates))
    _try_choices(forest, np.array(rates), result)
    return result.tolist()


def test_the_worse_half_of_the_choices_is_dropped_when_a_round_has_had_its_part():
    rates = np.linspace(0.9, 0.1, 40)  # the best at first sight are the worst
    result = tried(rates, 400)
    assert result[:CONSIDERED] == list(range(39, 39 - CONSIDERED, -1))
    best = sorted(range(40 - CONSIDERED, 40), key=lambda k: -rates[k])
    for kept, begin, end in ((16, 0, 112), (8, 112, 200), (4, 200, 300), (2, 300, 400)):
        counts = np.bincount(result[begin:end], minlength=40)
        assert np.flatnonzero(counts).tolist() == best[:kept]
        assert np.ptp(counts[best[:kept]]) == 0, "in turn"
    assert tried(rates, 3) == [39, 38, 37]
    assert tried([0.6, 0.3], 10) == [1, 0] + [0, 1] * 4, "the best so far comes first"
    assert tried([0.5], 2) == [0, 0]


def test_where_all_that_were_tried_lose_others_are():
    rates = np.zeros(40)
    assert tried(rates, 400)[:40] == list(reversed(range(40)))
    rates[20] = 1.0
    result = tried(rates, 400)
    assert result[:32] == list(range(39, 7, -1)) and max(result[32:]) == 23
    assert 20 in result[-4:], "it is compared to the end"


def test_a_choice_that_was_refuted_is_not_played_where_fresh_ones_are_better():
    """Fresh choices are tried late, so they have fewer visits."""
    [state] = engine.new_games(Rules(2), 1, seed=1)
    forest = Forest.new(1, 2, 40)
    forest.nodes["edges"][0, 0], edges = 20, forest.edges[0]
    edges["plan"] = np.arange(1, 1 + len(edges))
    edges["visits"][:16], edges["value"][:16] = 11, 11 * 0.009
    edges["visits"][16:18], edges["value"][16] = 1, 0.3
    forest.order[0, :4], forest.halving["compared"] = [16, 17, 18, 19], 4
    best, *others = bots.search._choices(forest, 0, state, None)
    assert best.actions == [16] and best.chances == pytest.approx([0.3, 0.3])
    assert [choice.visits for choice in others[:16]] == [11] * 16


def test_time_is_a_budget_too_and_a_full_tree_is_searched_on(monkeypatch):
    bot, states = MctsBot(MctsOptions(sims=1, seconds=0.2)), sample_games()
    bot.consider(states[:1], new_streams(1, 1))  # compiles, perhaps
    bot.simulations, start = 0, time.perf_counter()
    bot.consider(states[:2], new_streams(1, 2))
    assert time.perf_counter() - start >= 0.4
    assert bot.simulations >= 2 * 32
    done = bot.simulations
    bot.act(states[:2], new_streams(1, 2))
    assert bot.simulations > done
    monkeypatch.setattr(bots.search, "_LARGEST", 10)
    for choices in searched("mcts:sims=100", states):
        assert sum(choice.visits for choice in choices) == 100 or len(choices) == 1


@every_number
@pytest.mark.parametrize("crowns", ["on_roll", "deferred"])
@pytest.mark.parametrize("bot", ["mcts", "search"])
def test_games_are_played_to_their_end_when_the_supply_runs_dry(players, crowns, bot):
    rules = Rules(players, crowns, paladins_per_clan=4, max_rounds=4)
    states = engine.new_games(rules, 2, seed=5)
    bot, streams = bots.make(f"{bot}:sims=8"), new_streams(1, 2)
    while len(states):
        engine.step(states, bot.act(states, streams))
        going = ~engine.is_over(states)
        states, streams = states[going].copy(), streams[going].copy()


HOPE = 259 / 432, 1 / 2
"""White's part of the win after one step and after two, both playing their best from there."""


def last_hope():
    """White needs two red paladins of three dice or crowns, and has to go one step.

    Then, in the last round, white takes red from black and with it the region one step on. That
    leaves two regions and nine castles to six. Else the game is cut off: a draw.
    """
    return position(
        *(region(BLACK, 6, blue=8), region(WHITE, 4, pink=6)),
        *(region(BLACK, 1, red=4), region(WHITE, 4, pink=6)),
        courts=[paladins(red=3, pink=9), paladins(red=4, blue=9)],
        discs=[2, 1],
        order=[1, 0],
        round=34,
        spent=[3, 4, 5],
        max_rounds=35,
    )


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
def test_the_last_hope_is_exact(steps):
    """Crowns are the planner's choice, as in a search."""
    game = after(last_hope(), [move_action(steps)])
    white, _ = exact_value(game, {}, every_roll=False, crowns=bots.make("planner"))
    assert (white + 1) / 2 == pytest.approx(HOPE[steps - 1])


def test_the_search_finds_the_exact_chance_of_a_roll():
    """Its mean counts what was tried and found bad too, so it comes from below."""
    game = last_hope()
    [choices] = searched("mcts:sims=12000", game)
    best, other = choices
    assert best.actions == [move_action(1)]
    exact, drawn = HOPE
    error = 3 * 0.5 * (7 / 27 * 20 / 27 / best.visits) ** 0.5
    assert exact - 0.01 - error < best.chances[0] < exact + error
    assert other.chances[0] == pytest.approx(drawn, abs=0.01)


def test_positions_that_differ_in_what_others_rolled_share_a_node():
    game = after(last_hope(), [move_action(1)])
    rolled = np.repeat(game, 4)
    chance.apply_roll(rolled, [[0, 0, 0], [1, 1, 1], [0, 1, 2], [2, 1, 0]])
    assert (rolled["player"] == BLACK).all() and game["player"] == WHITE, "white has rolled"
    assert len({int(key_of(state)) for state in rolled}) == 1
    rolled["player"] = WHITE
    rolled["phase"] = PLACE
    assert len({int(key_of(state)) for state in rolled}) == 3


@pytest.mark.parametrize("team", [0, 1, 2])
def test_each_node_maximises_the_value_of_the_team_that_decides(team):
    forest = Forest.new(1, 4, 8)
    nodes, edges = forest.nodes[0], forest.edges[0]
    nodes[0]["edges"], nodes[0]["visits"], nodes[0]["team"] = 3, 30, team
    for k in range(3):  # after choice k team k has won all games
        edges[k]["prior"], edges[k]["visits"], edges[k]["first_value"] = 1 / 3, 10, 0.5
        edges[k]["value"][k] = 10.0
    assert best_edge(nodes, edges, 0) == team


def shares(states):
    return plain_values(random_model(int(states["players"][0])).weights, states)


def root_of(bot, players):
    """The plans, first values and priors of the last search's root."""
    [(forest, _)] = bot._scratch._idle[players, 1]
    edges = forest.edges[0, : forest.nodes["edges"][0, 0]]
    return [actions_of(int(plan)) for plan in edges["plan"]], edges["first_value"], edges["prior"]


def search(players=2, sims=1, **options):
    return SearchBot(random_model(players), SearchOptions(sims=sims, **options))


@every_number
def test_every_choice_begins_at_the_networks_value_of_the_position_after_it(players):
    states = middle_games(Rules(players, "deferred"), 25)[::9].copy()
    phases, ended = set(), 0
    for state in states:
        if engine.legal_masks(state.reshape(1)).sum() == 1:
            continue
        bot = search(players)
        bot.consider(state.reshape(1), new_streams(1, 1))
        choices, first, prior = root_of(bot, players)
        positions = [after(state, actions) for actions in choices]
        team = int(state["team"][state["player"]])
        wanted = np.concatenate([shares(game)[:, team] for game in positions])
        np.testing.assert_allclose(first, wanted, atol=3e-5)
        odds = wanted.clip(1e-6, 1 - 1e-6) / (1 - wanted).clip(1e-6, 1 - 1e-6)
        np.testing.assert_allclose(prior, odds / odds.sum(), rtol=2e-3, atol=1e-5)
        phases.add(int(state["phase"]))
        ended += sum(engine.is_over(game)[0] for game in positions)
    assert len(phases) >= 3
    assert ended, "a choice that ends the game is among them"


@every_number
def test_what_is_backed_up_is_the_best_choice_for_whoever_decides(players):
    """No dice lie between two discs, so the position after one is known; teams are not swapped."""
    states = middle_games(Rules(players), 25)
    states = states[(states["phase"] == DISC) & (states["turn"] == 0)][:12]
    assert len(states) > 3
    for state in states:
        if engine.legal_masks(state.reshape(1)).sum() == 1:
            continue
        [choices] = search(players).consider(state.reshape(1), new_streams(1, 1))
        first = after(state, choices[0].actions)
        assert first["phase"][0] == DISC
        second = [after(first[0], [action])[0] for action in engine.legal_actions(first).tolist()]
        values = shares(np.array(second))
        team = int(first["team"][0, first["player"][0]])
        np.testing.assert_allclose(choices[0].chances, values[values[:, team].argmax()], atol=3e-5)


def test_a_spec_names_a_network_and_options(tmp_path):
    random_model(2).save(tmp_path / "v")
    states = middle_games(Rules(2))[::20][:4].copy()
    result = search(sims=9).consider(states, new_streams(1, 4))
    for suffix in ("", ".safetensors"):
        bot = bots.make(f"search:{tmp_path}/v{suffix},sims=9")
        assert bot.options.sims == 9
        assert same(bot.consider(states, new_streams(1, 4)), result)


class ByNetwork(Evaluator):
    """The values of a network, by way of Python."""

    def __init__(self, value: NetworkModel):
        self.weights, self.asked = Weights.of(value.weights), []

    def evaluate(self, states):
        assert not engine.is_over(states).any()
        self.asked.append(states.copy())
        return values(states, self.weights)


@every_number
@pytest.mark.parametrize("options", [{}, {"candidates": 4}], ids=str)
def test_an_evaluator_gives_the_tree_that_the_same_network_gives_built_in(players, options):
    value = exact_model(players)
    states, options = middle_games(Rules(players))[:24], SearchOptions(sims=40, **options)
    own, built_in = SearchBot(ByNetwork(value), options), SearchBot(value, options)
    streams, theirs = new_streams(1, 24), new_streams(1, 24)
    assert same(own.consider(states, streams), built_in.consider(states, theirs))
    assert (streams == theirs).all()
    assert (own.act(states, streams) == built_in.act(states, theirs)).all()
    assert (bots.opinion(own, states).values == bots.opinion(built_in, states).values).all()


def exact_model(players):
    """A network whose sums are exact, in whatever order and by differences they are added up."""
    result = random_model(players)
    weights = dict(result.weights)
    weights["rows"] = (np.round(weights["rows"] * 256) / 256).astype(np.float32)
    for name in ("features", "bias"):
        weights[name] = np.zeros_like(weights[name])
    return NetworkModel(result.size, weights)


def test_an_evaluator_is_asked_once_a_simulation_about_all_games():
    value, states = ByNetwork(random_model(2)), middle_games(Rules(2))[::9][:12].copy()
    bot = SearchBot(value, SearchOptions(sims=5))
    result = bot.consider(states, new_streams(1, 12))
    assert len(value.asked) == 6, "the roots first"
    listed = [(s, o) for s, o in zip(states, result, strict=True) if len(o) > 1]
    ended = [engine.is_over(after(s, c.actions))[0] for s, o in listed for c in o]
    assert len(value.asked[0]) >= len(ended) - sum(ended)
    before, other = value.asked.copy(), states.copy()
    other["generator"] += np.uint64(12345)
    value.asked.clear()
    bot.consider(other, new_streams(1, 12))
    for asked in (*before, *value.asked):
        asked["generator"] = 0
    as_bytes = [[asked.tobytes() for asked in one] for one in (before, value.asked)]
    assert as_bytes[0] == as_bytes[1], "the dice to come are not known"


def test_each_game_of_an_evaluator_has_its_seconds_and_a_part_of_the_memory():
    class Even(Evaluator):
        def evaluate(self, states):
            return np.full((len(states), 2), 0.5)

    games = np.repeat(middle_games(Rules(2))[5:6], 1000)
    bot, start = SearchBot(Even(), SearchOptions(seconds=0.0005)), time.perf_counter()
    bot.consider(games, new_streams(1, 1000))  # 100,000 positions for each would be 60 GB
    assert time.perf_counter() - start >= 0.5 and bot.simulations >= 1000


def test_games_searched_in_several_groups_have_the_same_trees(monkeypatch):
    states = sample_games()
    bots_ = [SearchBot(ByNetwork(random_model(2)), SearchOptions(sims=9)) for _ in range(2)]
    wanted = bots_[0].consider(states, new_streams(1, len(states)))
    monkeypatch.setattr(bots.search, "_MOST_NODES", 3 * 10)
    assert same(bots_[1].consider(states, new_streams(1, len(states))), wanted)
    [[(_, many)], [(_, few)]] = [[*bot._scratch._idle] for bot in bots_]
    assert few == 3 < len(states) <= many


@pytest.mark.parametrize("wrong", [np.zeros((3, 2)), np.full((1, 2), np.nan), np.zeros(0)])
def test_wrong_values_by_an_evaluator_are_refused(wrong):
    class Wrong(Evaluator):
        def evaluate(self, states):
            return wrong if np.shape(wrong) != (1, 2) else np.full((len(states), 2), np.nan)

    with pytest.raises(ValueError, match=r"Wrong.evaluate of \d+ positions must return finite"):
        SearchBot(Wrong()).consider(middle_games(Rules(2))[5:6], new_streams(1, 1))


def test_only_games_that_wait_for_a_decision_are_considered():
    """A search of another would name an action that nobody can play."""
    over = engine.new_games(Rules(), 3, seed=1)
    engine.forfeit(over, rows=[1])
    rolling = engine.new_games(Rules(), 2, seed=1, roll=False)
    for states, named in (
        (over, "game 1 does not wait .* phase is over"),
        (rolling, "game 0 does not wait .* phase is roll"),
    ):
        for call in (bots.make("mcts:sims=5").consider, bots.make("mcts:sims=5").act):
            with pytest.raises(ValueError, match=named):
                call(states, new_streams(1, len(states)))
