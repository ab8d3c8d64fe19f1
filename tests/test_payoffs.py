"""The table of all results in a summary, and four players whose partners are strangers."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from test_ratings import play
from test_report import Page, three

from carolus_env import arena
from carolus_env.analysis.payoff_table import alpha_rank
from carolus_env.arena import Plan, Results, pairing_result
from carolus_env.arena.payoffs import by_composition, cycle_text, partners, payoffs
from carolus_env.arena.ratings import rate
from carolus_env.arena.report import write_report
from carolus_env.arena.summary import pairings
from carolus_env.engine.rules import Rules

NAMES = tuple("abcdefghijkl")
FOUR = [Rules(4), Rules(4, partners="adjacent")]


def plan_of(schedule: str, players: int, agents: int, deals: int = 100) -> Plan:
    return Plan(Rules(players), NAMES[:agents], schedule, deals=deals, seed=3)


def results_of(plan: Plan, shares: Any) -> Results:
    """Games of a plan with these shares, ``(G, players)``; the rest is of no interest."""
    empty = arena.Tournament(plan).results
    fixtures = plan.fixtures(0, len(shares))
    given = {
        "deals": fixtures.deals,
        "seatings": fixtures.seatings,
        "tables": fixtures.tables,
        "shares": np.asarray(shares, dtype=float),
    }
    blank = {
        name: np.zeros((len(shares), *column.shape[1:]), column.dtype)
        for name, column in vars(empty).items()
        if name not in given
    }
    return Results(**given, **blank)


def simulated(plan: Plan, elo: Any, seed: int = 0, **how: Any) -> Results:
    """A tournament between agents of these ratings, won by the model of the ratings."""
    team = [plan.rules.team(seat) for seat in range(plan.rules.players)]
    fixtures = plan.fixtures(0, plan.games)
    rng = np.random.default_rng(seed)
    return results_of(plan, play(rng, elo, fixtures.tables, team, fixtures.deals, **how))


def rigged(plan: Plan, rates: Any, seed: int = 0) -> Results:
    """Two players, with these win rates of the row's agent."""
    tables = plan.fixtures(0, plan.games).tables
    first = np.random.default_rng(seed).random(len(tables)) < np.array(rates)[tuple(tables.T)]
    return results_of(plan, np.stack([first, ~first], axis=1))


# ------------------------------------------------------------------------------------ strangers


@pytest.mark.parametrize("rules", FOUR, ids=["opposite", "adjacent"])
@pytest.mark.parametrize("agents", [3, 4, 5, 6])
def test_strangers_have_each_seat_and_each_partner_equally_often(rules: Rules, agents: int) -> None:
    plan = Plan(rules, NAMES[:agents], "strangers", deals=1)
    tables = plan.fixtures(0, plan.games).tables
    seats = [np.bincount(tables[:, seat], minlength=agents) for seat in range(4)]
    assert len(set(np.concatenate(seats).tolist())) == 1, "each agent in each seat"
    partner: Counter[tuple[int, int]] = Counter()
    opponent: Counter[tuple[int, int]] = Counter()
    beside: Counter[tuple[int, int]] = Counter()
    helpers: Counter[tuple[int, int, int]] = Counter()
    for table in tables.tolist():
        for one, other in itertools.permutations(range(4), 2):
            pair = table[one], table[other]
            (partner if rules.team(one) == rules.team(other) else opponent)[pair] += 1
            if rules.team(one) != rules.team(other):
                [helper] = (s for s in range(4) if s != one and rules.team(s) == rules.team(one))
                helpers[*pair, table[helper]] += 1
            if other == (one + 1) % 4:
                beside[pair] += 1
    pairs = set(itertools.permutations(range(agents), 2))
    assert set(partner) == pairs, "never a copy of itself"
    assert len(set(partner.values())) == 1
    assert len({opponent[pair] for pair in pairs}) == 1
    assert all(beside[i, j] == beside[j, i] for i, j in pairs), "as often before as behind"
    for i, j, helper in itertools.permutations(range(agents), 3):
        assert helpers[i, j, helper] == helpers[j, i, helper], "the same partners for both"
    if agents > 3:
        assert all(len(set(table)) == 4 for table in tables.tolist())


@pytest.mark.parametrize(("agents", "games"), [(3, 12), (4, 12), (5, 60), (6, 180), (7, 420)])
def test_games_of_a_deal_of_strangers(agents: int, games: int) -> None:
    plan = plan_of("strangers", 4, agents, deals=2)
    assert plan.games_per_deal == games
    assert len(plan.pairs) == agents * (agents - 1) // 2


@pytest.mark.parametrize("agents", [3, 4])
def test_strangers_show_known_strengths(agents: int) -> None:
    elo = np.array([0, 250, 100, 400, 150])[:agents]
    plan = plan_of("strangers", 4, agents, deals=600)
    results = simulated(plan, elo)
    found = rate(results.tables, results.shares, [0, 1, 0, 1], results.deals, agents, anchor=0)
    assert found.elo == pytest.approx(elo, abs=45)


def test_partners_are_told_from_opponents() -> None:
    """Agent 0's team always wins, with any partner."""
    plan = plan_of("strangers", 4, 4, deals=20)
    tables = plan.fixtures(0, plan.games).tables
    best = (tables == 0) | (np.roll(tables, 2, axis=1) == 0)
    results = results_of(plan, best / 2)
    for pair, result in pairings(plan, results):
        assert result.games == 20 * 8, "two of three games are against each other"
        assert result.win_rate[0] == (1 if pair[0] == 0 else 0.5)
        assert result.wins[0] == (160 if pair[0] == 0 else 80)
    found = partners(plan, results, np.array([200.0, 0, 0, 0]))
    assert found is not None
    rates = {tuple(team["pair"]): team["win_rate"] for team in found["teams"]}
    assert rates == {pair: float(0 in pair) for pair in itertools.combinations(range(4), 2)}
    assert [agent["games"] for agent in found["agents"]] == [240] * 4
    assert [agent["win_rate"] for agent in found["agents"]] == pytest.approx([1, *[1 / 3] * 3])
    expected = 1 / (1 + 10 ** (-100 / 400))  # half of agent 0's lead is its team's
    assert found["teams"][0]["expected"] == pytest.approx(expected)
    assert found["agents"][0]["expected"] == pytest.approx(expected)


def test_a_member_of_both_teams_is_compared_with_nobody() -> None:
    plan = plan_of("strangers", 4, 3, deals=30)
    results = simulated(plan, [0, 300, 600])
    for (i, j), result in pairings(plan, results):
        rows = [sorted(table) for table in results.tables.tolist()]
        third = 3 - i - j
        assert result.games == sum(row.count(third) == 2 for row in rows) == 120
    found = partners(plan, results)
    assert found is not None
    assert [agent["games"] for agent in found["agents"]] == [240] * 3
    assert found["teams"][0]["expected"] is None
    rates = [agent["win_rate"] for agent in found["agents"]]
    assert rates == sorted(rates) and rates[0] < 0.4 < 0.6 < rates[2]


def test_teams_of_one_agent_are_counted_as_before() -> None:
    plan = plan_of("round_robin", 4, 3, deals=40)
    results = simulated(plan, [0, 100, 200], ties=0.2)
    for pair, result in pairings(plan, results):
        assert result == pairing_result(plan.agents, results, pair)
    assert partners(plan, results) is None
    assert partners(plan_of("round_robin", 2, 2), results) is None


# ------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize(
    ("schedule", "players", "agents"),
    [("round_robin", 2, 4), ("round_robin", 3, 3), ("mixed", 3, 4), ("strangers", 4, 5)],
)
def test_the_tables_win_rates_are_those_of_the_pairings(
    schedule: str, players: int, agents: int
) -> None:
    plan = plan_of(schedule, players, agents, deals=30)
    results = simulated(plan, 50 * np.arange(agents), ties=0.1)
    table = payoffs(plan, results, ranked=False)
    for (i, j), result in pairings(plan, results):
        assert table["win_rates"][i][j] == pytest.approx(result.win_rate[0])
        assert table["win_rates"][j][i] == pytest.approx(result.win_rate[1])
        assert table["games"][i][j] == table["games"][j][i] == result.games
    assert table["win_rates"][0][0] is None
    assert table["lottery"] is None and table["alpha_rank"] is None


def test_shares_by_composition_are_of_all_seats_of_an_agent() -> None:
    plan = plan_of("round_robin", 3, 3, deals=400)
    found = {tuple(each["seats"]): each for each in by_composition(simulated(plan, [0, 0, 400]))}
    assert set(found) == {(0, 0, 1), (0, 1, 1), (0, 0, 2), (0, 2, 2), (1, 1, 2), (1, 2, 2)}
    equal = found[0, 0, 1]
    assert equal["games"] == 1200
    assert [(part["agent"], part["seats"]) for part in equal["shares"]] == [(0, 2), (1, 1)]
    low, high = equal["shares"][0]["ci95"]
    share = equal["shares"][0]["share"]
    assert share == pytest.approx(2 / 3, abs=0.04) and low < share < high
    strong = found[0, 0, 2]["shares"][1]["share"]
    assert strong == pytest.approx(10 / 12, abs=0.04), "400 points are odds of 10 to 1"
    mixed = by_composition(simulated(plan_of("mixed", 3, 3, deals=50), [0, 0, 0]))
    assert [each["seats"] for each in mixed] == [[0, 1, 2]]
    assert sum(part["share"] for part in mixed[0]["shares"]) == pytest.approx(1)


ROUND = [[0.5, 0.8, 0.2, 0.6], [0.2, 0.5, 0.8, 0.6], [0.8, 0.2, 0.5, 0.6], [0.4, 0.4, 0.4, 0.5]]


def test_a_cycle_is_found_where_it_is_significant() -> None:
    plan = plan_of("round_robin", 2, 4, deals=150)
    table = payoffs(plan, rigged(plan, ROUND))
    [cycle] = table["cycles"]
    assert cycle["agents"] == [0, 1, 2]
    assert {tuple(pair) for pair in table["beats"]} >= {(0, 1), (1, 2), (2, 0)}
    weights = [each["weight"] for each in table["lottery"]]
    assert weights == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.06)
    for key in ("lottery", "alpha_rank"):
        assert sum(each["weight"] for each in table[key]) == pytest.approx(1)
        for each in table[key]:
            assert 0 <= each["low"] <= each["weight"] <= each["high"] <= 1
    assert table["lottery"][3]["high"] < 0.1
    assert table["lottery"][0]["low"] > 0.15
    assert cycle_text(cycle, plan.agents).startswith("a beats b (")
    few = plan_of("round_robin", 2, 4, deals=5)
    assert payoffs(few, rigged(few, ROUND))["cycles"] == []


def test_equal_agents_hardly_ever_beat_each_other() -> None:
    """95 % confidence in all claims of a tournament together, not in each of its 15."""
    plan = plan_of("round_robin", 2, 6, deals=30)
    wrong = [
        bool(payoffs(plan, rigged(plan, np.full((6, 6), 0.5), seed), ranked=False)["beats"])
        for seed in range(60)
    ]
    assert sum(wrong) <= 8  # 3 expected; more than 8 in one of 100 runs


def test_a_few_games_leave_the_lottery_open_also_at_perfect_scores() -> None:
    plan = plan_of("round_robin", 2, 3, deals=2)
    results = rigged(plan, [[0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]])
    table = payoffs(plan, results)
    assert table["lottery"][0]["weight"] == 1
    assert table["lottery"][0]["low"] < 1
    many = plan_of("round_robin", 2, 3, deals=100)
    won = rigged(many, [[0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]])
    assert payoffs(many, won)["lottery"][0]["low"] == 1


def test_three_players_are_ranked_by_what_each_seat_wins() -> None:
    """Agent 0 wins 34 % alone against two others, and 66.2 % with two seats."""
    plan = plan_of("round_robin", 3, 3, deals=20)
    tables = plan.fixtures(0, plan.games).tables
    mine, seats = tables == 0, (tables == 0).sum(axis=1, keepdims=True)
    shares = np.full(tables.shape, 1 / 3)
    shares = np.where(seats == 1, np.where(mine, 0.34, 0.33), shares)
    shares = np.where(seats == 2, np.where(mine, 0.331, 0.338), shares)
    table = payoffs(plan, results_of(plan, shares))
    assert table["win_rates"][0][1] == pytest.approx(0.501)
    of_seat = np.full((3, 3, 2), 1 / 3)
    of_seat[0, 1:] = [0.34, 0.331]
    of_seat[1:, 0] = [0.338, 0.33]
    weights = [each["weight"] for each in table["alpha_rank"]]
    assert weights == pytest.approx(alpha_rank(of_seat), abs=1e-9)


def test_agents_that_never_met_have_no_lottery() -> None:
    plan = plan_of("field", 2, 3, deals=20)
    table = payoffs(plan, simulated(plan, [0, 0, 0]))
    assert table["win_rates"][1][2] is None
    assert table["lottery"] is None and table["alpha_rank"] is None
    two = plan_of("round_robin", 2, 2, deals=20)
    assert payoffs(two, simulated(two, [0, 0]))["lottery"] is None


# ------------------------------------------------------------------------------------ the report


def test_the_page_has_cycles_lotteries_compositions_and_partners(tmp_path: Any) -> None:
    summary = three()
    weights = [{"weight": w, "low": 0.0, "high": 0.625} for w in (0.5, 0.25, 0.25)]
    summary["payoffs"] = {
        "win_rates": [],
        "games": [],
        "beats": [[0, 1], [1, 2], [2, 0]],
        "cycles": [{"agents": [0, 1, 2], "win_rates": [0.6, 0.7, 0.8]}],
        "compositions": [
            {
                "seats": [0, 0, 1],
                "games": 90,
                "shares": [
                    {"agent": 0, "seats": 2, "share": 0.5, "ci95": [0.45, 0.55]},
                    {"agent": 1, "seats": 1, "share": 0.5, "ci95": [0.45, 0.55]},
                ],
            }
        ],
        "lottery": weights,
        "alpha_rank": weights,
    }
    counted = {"games": 80, "win_rate": 0.71, "ci95": [0.6, 0.8], "expected": 0.64}
    none = {"games": 0, "win_rate": None, "ci95": None, "expected": None}
    summary["partners"] = {
        "teams": [{"pair": [0, 2], **counted}],
        "agents": [counted, none, {**counted, "expected": None}],
    }
    write_report(tmp_path, summary)
    text = " ".join(Page((tmp_path / "report.html").read_text()).text.split())
    for said in (
        "More than one number",
        "Cycle: random beats greedy (60 %), greedy beats mcts:sims=400 (70 %), "
        "mcts:sims=400 beats random (80 %).",
        "50 [0, 62]",
        "random, random, greedy 90 random 50.0 [45.0, 55.0] 66.7",
        "Partners",
        "mcts:sims=400 random 80 71.0 [60.0, 80.0] 64.0",
    ):
        assert said in text, said
    assert "None" not in text
    summary["payoffs"]["cycles"] = []
    write_report(tmp_path, summary)
    assert "No cycle of agents is significant." in Page((tmp_path / "report.html").read_text()).text


def test_the_page_of_an_older_summary_has_no_such_sections(tmp_path: Any) -> None:
    write_report(tmp_path, three())
    text = (tmp_path / "report.html").read_text()
    assert "More than one number" not in text
    assert "Partners" not in text


def test_a_tournament_of_strangers_is_played_and_told(tmp_path: Any) -> None:
    plan = Plan(Rules(4), ("random", "greedy", "random"), "strangers", deals=4, seed=1)
    cup = arena.Tournament(plan)
    cup.run(file=tmp_path / "games.jsonl")
    summary = cup.summary()
    assert summary["games"] == 48
    [with_random] = [t for t in summary["partners"]["teams"] if t["pair"] == [0, 2]]
    assert with_random["win_rate"] < 0.3
    assert summary["payoffs"]["lottery"][1]["weight"] == 1
    write_report(tmp_path, summary)
    assert "Partners" in (tmp_path / "report.html").read_text()
