"""The arena: paired deals, games that do not depend on how they are batched, sound win rates."""

import json
import pickle
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from strategies import Watcher

from carolus_env import bots, engine, evaluation
from carolus_env.bots import lockstep
from carolus_env.engine import chance
from carolus_env.engine.chance import branches, seed_generators
from carolus_env.engine.rules import BY_CASTLES, BY_MAX_ROUNDS, REASON_NAMES, Rules
from carolus_env.engine.state import STATE
from carolus_env.evaluation import ArenaError, Plan, Results, games

GREEDY, RANDOM = bots.make("greedy"), bots.make("random")


class Spy(bots.RandomBot):
    """A random agent that does something on the side: before its answer, or to it."""

    name = "spy"

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self._before, self._after = before, after

    def act(self, states: Any, generators: Any) -> Any:
        if self._before:
            self._before(states, generators)
        answer = super().act(states, generators)
        return self._after(answer) if self._after else answer


def failing(error: BaseException) -> Spy:
    def fail(*_: Any) -> None:
        raise error

    return Spy(before=fail)


def games_won(tables: list[list[int]], winners: list[list[int]], players: int) -> Results:
    """Results where these teams have won; nobody: the game was cut off."""
    rules = Rules(players, max_rounds=1)
    team = [rules.team(seat) for seat in range(players)]
    parts = [[t in won for t in team] if won else [True] * players for won in winners]
    played, _ = evaluation.play_games(tables, [RANDOM] * 3, rules, seed=1)
    played["shares"] = np.array(parts) / np.sum(parts, axis=1, keepdims=True)
    played["castles"], played["rounds"] = team, 5
    played["reason"] = [BY_CASTLES if won else BY_MAX_ROUNDS for won in winners]
    played["decisions"], played["seconds"] = 10 * (np.array(tables) + 1), 0.5
    return played


class PlainGame:
    """A game of an arena, played one decision at a time: each seat's actions, and every state of
    the generators of the dice.
    """

    def __init__(self, rules: Rules, seed: int, deal: int, seating: int) -> None:
        root = branches(seed_generators(seed, 1), deal)
        self.game = engine.new_games(rules, 1, seed=root, roll=False)
        self.rolling = [branches(root, [seat]) for seat in range(rules.players)]
        self.streams = [branches(root, [4 * (1 + seating) + seat]) for seat in range(rules.players)]
        self.decisions: list[tuple[int, int]] = []
        self.dice: set[int] = set()

    def play(self, table: Any, agents: Any) -> Any:
        game = self.game
        while not engine.is_over(game)[0]:
            seat = int(game["player"][0])
            if chance.roll_due(game)[0]:
                game["generator"] = self.rolling[seat]
                faces = chance.draw_faces(game)
                self.dice |= {int(self.rolling[seat][0]), int(game["generator"][0])}
                self.rolling[seat] = game["generator"].copy()
                chance.apply_roll(game, faces)
                continue
            action = agents[table[seat]].act_one(game[0], self.streams[seat])
            engine.step(game, np.array([action]), roll=False)
            self.decisions.append((seat, action))
        return game


@pytest.mark.parametrize("rules", [Rules(2), Rules(3, "deferred"), Rules(4, partners="adjacent")])
def test_games_are_those_of_a_plain_loop_one_decision_at_a_time(rules, monkeypatch):
    plan = Plan(rules, ("a", "b"), deals=4)
    monkeypatch.setattr(games, "SIDE_BY_SIDE", 7)
    results, log = evaluation.play_games(
        plan.fixtures(0, plan.games), [GREEDY, RANDOM], rules, seed=40
    )
    for g, table in enumerate(results["table"]):
        plain = PlainGame(rules, 40, int(results["deal"][g]), int(results["seating"][g]))
        game = plain.play(table, (GREEDY, RANDOM))
        team = [rules.team(seat) for seat in range(rules.players)]
        assert results["shares"][g].tolist() == engine.win_shares(game)[0].tolist()
        assert results["castles"][g].tolist() == game["castles"][0][team].tolist()
        assert results["rounds"][g] == game["round"][0]
        assert results["reason"][g] == game["reason"][0]
        assert log[g].tolist() == [action for _, action in plain.decisions]
        for seat in range(rules.players):
            mine = [action for who, action in plain.decisions if who == seat]
            assert results["decisions"][g, seat] == len(mine)


def test_agents_cannot_look_at_the_dice_or_touch_the_games() -> None:
    """No generator that is shown rolls or leads to one that does; each decision shows another."""
    agent, rules = Watcher(), Rules(2, max_rounds=20)
    results, _ = evaluation.play_games(np.zeros((20, 2), int), [agent], rules, seed=0)
    shown = set(agent.shown("generator"))
    assert results["decisions"].sum() == len(shown) > 1000
    roots = branches(seed_generators(0, 1), np.arange(20))
    assert not shown & {0, *roots.tolist()}
    for g in range(20):
        plain = PlainGame(rules, 0, g, 0)
        plain.play([0, 0], [RANDOM])
        assert len(plain.dice) > 10
        assert not shown & plain.dice
    given: list[Any] = []

    def wipe(answer: Any) -> Any:
        given.pop()[...] = np.zeros((), STATE)
        return answer

    vandal = Spy(before=lambda states, _: given.append(states), after=wipe)
    tables = np.zeros((20, 2), int)
    [_, wanted], [_, played] = (
        evaluation.play_games(tables, [agent], Rules(), seed=3) for agent in (RANDOM, vandal)
    )
    assert [game.tolist() for game in played] == [game.tolist() for game in wanted]


@pytest.mark.parametrize(
    ("agent", "named"),
    [
        (failing(KeyError("lost")), "KeyError: 'lost'"),
        (failing(bots.AgentError("spy", "is for two players")), "is for two players$"),
        (Spy(after=lambda actions: actions[:-1]), r"\(20,\).*\(19,\)"),
        (Spy(after=lambda actions: actions * 1.0), "float64"),
        (Spy(after=lambda actions: actions * 0 + 94), r"94 .*\["),
        (Spy(after=lambda actions: actions - 99), "-9. "),
    ],
)
def test_an_agents_error_names_the_agent_and_the_reason(agent: bots.Agent, named: str) -> None:
    with pytest.raises(ArenaError, match=f"^agent 'spy'.*{named}") as caught:
        evaluation.play_games(np.zeros((20, 2), int), [agent], Rules(players=2), seed=0)
    assert str(caught.value).count("spy") == 1 and caught.value.agent == "spy"
    assert re.search(named, caught.value.reason)
    again = pickle.loads(pickle.dumps(caught.value))  # as a worker sends it
    assert (str(again), again.agent) == (str(caught.value), "spy")


def test_an_illegal_action_names_the_game_that_shows_it_again() -> None:
    calls = iter(range(10**9))
    late = Spy(after=lambda actions: np.r_[actions[:-1], 200] if next(calls) == 60 else actions)
    with pytest.raises(ArenaError) as caught:
        fixtures = evaluation.Fixtures.of(np.ones((8, 2), int))._replace(deals=np.arange(8) + 50)
        evaluation.play_games(fixtures, [RANDOM, late], Rules(), seed=0)
    text = str(caught.value)
    assert re.search(r"action 200 as player \d in phase \w+ of deal 5[0-7], seating 0;", text)


class Clock:
    """The time of the arena: it passes where a test says so."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def wait(self, *_: Any) -> None:
        self.now += 0.5


def test_time_is_shared_out_among_the_decisions_of_a_call(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(lockstep, "time", clock)
    slow = Spy(before=clock.wait)
    results, _ = evaluation.play_games([[0, 1]] * 3, [slow, RANDOM], Rules(max_rounds=1), seed=0)
    assert results["seconds"][:, 0].sum() == pytest.approx(clock.now)
    assert clock.now < 0.5 * results["decisions"][:, 0].sum()
    assert not results["seconds"][:, 1].any()
    clock.now, lazy = 0.0, Spy(before=lambda *_: lazy.__init__() or clock.wait())
    result = evaluation.play_pairing((lazy, RANDOM), Rules(), 2, seed=0)
    assert clock.now == 0.5 and result.seconds == (0, 0), "loading does not count"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tables": [[0, 1, 0]]}, r"\(1, 3\)"),
        ({"tables": [[0, 2]]}, "0 to 2"),
        *(
            ({"tables": evaluation.Fixtures.of([[0, 1], [1, 0]])._replace(**{name: bad})}, name)
            for name in ("deals", "seatings", "meetings")
            for bad in ([0], [0, -1], [0.0, 1.0])
        ),
        ({"seed": 2**64}, f"seed .*{2**64}"),
    ],
)
def test_impossible_games_are_refused(given: dict[str, Any], named: str) -> None:
    games_of_two = {"tables": [[0, 1], [1, 0]], "seed": 0, **given}
    with pytest.raises(ValueError, match=named):
        evaluation.play_games(agents=[GREEDY, RANDOM], rules=Rules(), **games_of_two)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (Rules(2), {(0, 1), (1, 0)}),
        (Rules(3), {(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}),
        (Rules(4), {(0, 1, 0, 1), (1, 0, 1, 0)}),
        (Rules(4, partners="adjacent"), {(0, 0, 1, 1), (1, 1, 0, 0)}),
    ],
)
def test_every_way_to_seat_two_agents_occurs_equally_often(rules: Rules, wanted: set[Any]) -> None:
    tables = evaluation.pairing_tables(rules, 100)
    seatings = Counter(map(tuple, tables.tolist()))
    assert set(seatings) == wanted
    assert len(set(seatings.values())) == 1
    assert 100 <= len(tables) < 100 + len(wanted)
    assert len(evaluation.pairing_tables(rules, 1)) == len(wanted)
    assert len(evaluation.pairing_tables(rules, 5 * len(wanted))) == 5 * len(wanted)


@pytest.mark.parametrize(
    ("schedule", "pairs"),
    [
        ("round_robin", [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ("field", [(0, 1), (0, 2), (0, 3)]),
    ],
)
def test_a_plan_plays_every_deal_in_all_seatings_of_all_meetings(schedule, pairs):
    plan = Plan(Rules(3), tuple("abcd"), schedule=schedule, deals=3)
    assert plan.pairs == pairs
    fixtures = plan.fixtures(0, plan.games)
    per_deal = plan.games_per_deal
    for deal in range(3):
        rows = slice(deal * per_deal, (deal + 1) * per_deal)
        assert (fixtures.deals[rows] == deal).all()
        assert np.array_equal(fixtures.tables[rows], fixtures.tables[:per_deal])
    for meeting, _, seating, table in zip(*fixtures, strict=True):
        assert table.tolist() == [pairs[meeting][who] for who in plan.seatings[seating]]
    part = plan.fixtures(5, 20)
    for full, selected in zip(fixtures, part, strict=True):
        assert np.array_equal(full[5:20], selected)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"agents": ("a",)}, "got 1"),
        ({"agents": ("a", 2)}, r"agents .*\('a', 2\)"),
        ({"schedule": "swiss"}, "'swiss'"),
        ({"deals": 0}, "deals .* 0"),
        ({"seed": -1}, "seed .*-1"),
        ({"until": float("nan")}, "until .*nan"),
        ({"until": 10, "test": evaluation.SequentialTest()}, "until .*test"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Plan(**{"rules": Rules(3), "agents": ("a", "b"), **given})


def test_rates_by_place_are_a_half_between_equals_and_count_who_begins():
    seatings = evaluation.pairing_tables(Rules(3), 1)
    played = games_won(seatings, [[0]] * 6, 3).reshape(1, 1, 6)  # whoever sits there
    for agent in (0, 1):
        for first, rates in ((0, [1, 0.25, 0.25]), (1, [0.25, 0.25, 1])):  # seat 0 begins, is last
            found = games.rates_by_place(played, agent, np.array([first]))
            assert found == pytest.approx(rates) and np.mean(found) == pytest.approx(0.5)


def test_a_plan_survives_json():
    plan = Plan(Rules(3, "deferred"), ("a", "b", "a"), "field", 77, 5, until=20)
    for one in (plan, Plan(Rules(2), ("a", "b"), test=evaluation.SequentialTest(-5, 5))):
        assert Plan.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    broken = {"agents": "ab"}, {"until": {"x": 1}}, {"test": {"x": 1}}
    for data in ({}, *({**plan.to_dict(), **change} for change in broken)):
        with pytest.raises(ValueError, match=r"missing|agents|until|not the plan"):
            Plan.from_dict(data)


@pytest.mark.parametrize(
    ("table", "winners", "part", "wins", "draws"),
    [
        ([0, 1], [0], 1, (1, 0), 0),
        ([0, 1], [0, 1], 1 / 2, (0, 0), 1),
        ([0, 1, 1], [1, 2], 0, (0, 1), 0),
        ([0, 1, 1], [0, 2], 1 / 2, (0, 0), 1),
        ([0, 1, 0], [0, 1, 2], 2 / 3, (0, 0), 1),
        ([0, 1, 1], [], 1 / 3, (0, 0), 1),
        ([1, 0, 1, 0], [0], 0, (0, 1), 0),
        ([1, 0, 1, 0], [], 1 / 2, (0, 0), 1),
    ],
)
def test_parts_of_the_win_make_the_win_rate(table, winners, part, wins, draws):
    result = evaluation.pairing_result(("a", "b"), games_won([table], [winners], len(table)))
    assert result.win_rate == pytest.approx((part, 1 - part))
    assert (result.wins, result.draws) == (wins, draws)
    (low, high), other = result.ci95
    assert low <= part <= high and other == (1 - high, 1 - low)


def test_a_pairing_counts_castles_rounds_ends_and_time() -> None:
    tables = [[0, 1, 1], [1, 0, 0]]
    results = games_won(tables, [[2], []], 3)  # seat k's team has k castles
    result = evaluation.pairing_result(("a", "b"), results)
    assert result.mean_castles == pytest.approx(((0 + 1.5) / 2, (1.5 + 0) / 2))
    assert result.mean_rounds == 5
    assert result.ends == {"castles": 1, "max_rounds": 1}
    assert set(result.ends) < set(REASON_NAMES)
    assert result.decisions == (30, 60)
    assert result.seconds == (1.5, 1.5)
    assert result.to_dict()["agents"] == ("a", "b")


@pytest.mark.parametrize(
    ("won", "n", "wanted"),  # binomtest(won, n).proportion_ci(method="wilson") of scipy.stats
    [
        (10, 10, (0.72247, 1)),
        (0, 10, (0, 0.27753)),
        (5, 10, (0.23659, 0.76341)),
        (81, 263, (0.2553, 0.3662)),
    ],
)
def test_the_interval_of_wins_and_losses_is_wilsons_in_any_order(won, n, wanted):
    values = np.random.default_rng(0).permutation(np.arange(n) < won).astype(float)
    assert evaluation.mean_interval(values) == pytest.approx(wanted, abs=5e-5)


@pytest.mark.parametrize("part", [0, 1 / 3, 1 / 2, 2 / 3, 1])
@pytest.mark.parametrize("n", [1, 2, 6, 1000])
def test_the_interval_holds_the_mean_and_stays_within_0_and_1(part: float, n: int) -> None:
    low, high = evaluation.mean_interval(np.full(n, part))
    assert 0 <= low <= part <= high <= 1
    assert high - low > 1 / (n + 10) / 4, "nothing is certain after so few games"
    assert evaluation.mean_interval(np.full(n, 1 - part)) == pytest.approx((1 - high, 1 - low))


DEALS = [(5, 2), (20, 6), (200, 2)]
PARTS = [(0.5, 0, 0, 0, 0.5), (0.1, 0, 0, 0, 0.9), (0.03, 0.5, 0, 0.4, 0.07)]


@pytest.mark.parametrize(
    ("deals", "seatings", "together"),
    [(60, 1, 0), (1000, 1, 0), *((*some, part) for some in DEALS for part in (-0.15, 0.0, 0.5))],
)
@pytest.mark.parametrize("chances", PARTS)  # of 0, 1/3, 1/2, 2/3 and 1
def test_intervals_cover_games_that_go_together(deals, seatings, together, chances):
    """Shares of the win rise with normal numbers; those of a deal have that correlation."""
    spread = np.full((seatings, seatings), together) + (1 - together) * np.eye(seatings)
    rng, runs = np.random.default_rng(4), 2000 if seatings == 1 else 400
    normal = rng.multivariate_normal(np.zeros(seatings), spread, (runs, deals)).reshape(runs, -1)
    ranks = np.searchsorted(np.cumsum(chances)[:-1], ndtr(normal))
    values, order = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1]), rng.permutation(deals * seatings)
    numbers = None if seatings == 1 else (7 * np.repeat(np.arange(deals), seatings) + 3)[order]
    samples, true = values[ranks][:, order], float(values @ chances)
    low, high = np.array([evaluation.mean_interval(one, numbers) for one in samples]).T
    covered = ((low <= true) & (true <= high)).mean()
    least, most = (0.93, 0.975) if seatings == 1 else (0.91, 0.99 if deals == 200 else 1)
    assert least <= covered <= most  # 5 deals are few


def test_only_games_of_both_agents_and_no_other_count() -> None:
    trio = games_won([[0, 1, 2]], [[0]], 3)
    with pytest.raises(ValueError, match="no game of 'a' and 'b'"):
        evaluation.pairing_result("abc", trio, (0, 1))
    pairs = games_won([[0, 1], [0, 2], [2, 1]], [[0], [0], [0]], 2)  # only those of both count
    assert evaluation.pairing_result("abc", pairs, (0, 1)).games == 1
    assert evaluation.pairing_result("abc", pairs, (1, 2)).win_rate == (0, 1)
    with pytest.raises(ValueError, match="'a' and 'd'"):
        evaluation.pairing_result("abcd", pairs, (0, 3))
