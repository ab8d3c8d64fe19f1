"""Ratings, and tests that stop by themselves: strengths come back, error rates hold."""

import itertools
import math
import re
import tracemalloc
from typing import Any

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import ndtr
from scipy.stats import beta, norm
from test_tournament import played, saved_games

from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, schedules, tournament
from carolus_env.evaluation.games import deal_scores, pairing_result
from carolus_env.evaluation.ratings import ELO, RatingsError, rate
from carolus_env.evaluation.schedules import SequentialTest, normalised_elo, widening

TEAM = {2: [0, 1], 3: [0, 1, 2], 4: [0, 1, 0, 1]}
SEATINGS = {
    2: [[0, 1], [1, 0]],
    3: [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    4: [[0, 1, 0, 1], [1, 0, 1, 0]],
}
"""Of a pairing."""


def pairings(players: int, agents: int, deals: int) -> tuple[Any, Any]:
    """All pairings of a round robin, in all seatings, on the same deals."""
    seatings, pairs = SEATINGS[players], list(itertools.combinations(range(agents), 2))
    tables = np.concatenate([np.array(pair)[np.tile(seatings, (deals, 1))] for pair in pairs])
    return tables, np.tile(np.repeat(np.arange(deals), len(seatings)), len(pairs))


def play(rng: Any, elo: Any, tables: Any, team: Any, deals: Any, shared=0.0, ties=0.0) -> Any:
    """Shares of the win of games between agents of these ratings.

    A game is won by the team whose strength plus Gumbel noise is the highest, which is Luce's
    choice. ``shared`` is the part of each seat's luck that games of a deal have in common (of the
    variance of the normal numbers behind it). Of the games, ``ties`` are means of two outcomes.
    """
    team = np.array(team)
    strength = np.array(elo)[tables] / ELO
    strength = np.stack([strength[:, team == t].mean(axis=1) for t in np.unique(team)], axis=1)

    def outcome() -> Any:
        of_deal = rng.standard_normal((deals.max() + 1, strength.shape[1]))[deals]
        of_game = rng.standard_normal(strength.shape)
        luck = ndtr(np.sqrt(shared) * of_deal + np.sqrt(1 - shared) * of_game)
        value = strength - np.log(-np.log(luck))
        return (value == value.max(axis=1, keepdims=True)).astype(float)

    won = outcome()
    if ties:
        won = np.where(rng.random((len(won), 1)) < ties, (won + outcome()) / 2, won)
    return won[:, team] / np.bincount(team)[team]


def test_two_agents_differ_by_the_log_odds_of_their_wins_and_half_a_virtual_deal():
    """Shared wins and games that were cut off count by their parts."""
    shares = np.array([[1, 0]] * 5 + [[0.5, 0.5]] * 4 + [[0, 1]])
    ratings = rate([[0, 1]] * 10, shares, np.arange(10), 2)
    assert ratings.difference(0, 1)[0] == pytest.approx(ELO * np.log(7.5 / 3.5), abs=1e-6)
    paired = rate([[0, 1]] * 10, shares, np.arange(10) // 2, 2)  # deals of two games
    assert paired.difference(0, 1)[0] == pytest.approx(ELO * np.log(8 / 4), abs=1e-6)


@pytest.mark.parametrize("partners", ["opposite", "adjacent"])
def test_ratings_of_teams_follow_from_the_games_that_each_won_wherever_partners_sit(partners):
    cup = played(Plan(Rules(4, partners=partners), ("greedy", "random"), deals=20, seed=1))
    [pairing], [greedy, random] = cup.pairings(), cup.summary()["agents"]
    won = pairing.win_rate[0] * cup.games
    wanted = ELO * np.log((won + 1) / (cup.games - won + 1))  # half a virtual deal of two games
    difference = greedy["rating"]["elo"] - random["rating"]["elo"]
    assert difference == pytest.approx(wanted, abs=1e-3) and difference > 200


@given(st.integers(0, 2**32), st.sampled_from([2, 3, 4]))
@settings(max_examples=30, deadline=None)
def test_the_likeliest_ratings_expect_what_each_agent_has_won(seed, players):
    """Each seat is as strong as its agent."""
    rng, team = np.random.default_rng(seed), np.array(TEAM[players])
    tables, _ = pairings(players, 3, 500)
    shares = play(rng, [0, 100, 300], tables, team, np.arange(len(tables)), ties=0.1)
    cut_off = rng.random(len(tables)) < 0.1
    shares[cut_off] = 1 / players
    ratings = rate(tables, shares, np.arange(len(tables)), 3, bootstraps=100)
    power = np.exp(ratings.elo[tables] / ELO)
    expected = power / power.sum(axis=1, keepdims=True)
    for agent in range(3):
        surplus = ((shares - expected) * (tables == agent)).sum()
        assert abs(surplus) < 1.5, "no more than the prior's virtual deals"


def test_ratings_are_those_of_choix():
    tables, _ = pairings(2, 5, 40)
    rng, elo, deals = np.random.default_rng(3), [-200, -100, 0, 0, 300], np.arange(len(tables))
    shares = play(rng, elo, tables, [0, 1], deals, ties=0.2)
    wins = np.full((5, 5), 1 / 8)  # each pairing has a quarter of a virtual deal, drawn
    np.add.at(wins, (tables[:, 0], tables[:, 1]), shares[:, 0])
    np.add.at(wins, (tables[:, 1], tables[:, 0]), shares[:, 1])
    np.fill_diagonal(wins, 0)
    wanted = ELO * choix.ilsr_pairwise_dense(wins)
    assert rate(tables, shares, deals, 5).elo == pytest.approx(wanted, abs=0.01)


WINS = {  # who takes points from whom; and what the games say of each of five agents
    ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)): ("", "", "", "", ""),
    # Two that lose everything to the other three, and a chain of three.
    ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 4), (4, 3)): ("", "", "", "below", "below"),
    ((0, 1), (1, 2), (2, 3), (3, 4)): ("above", "above", "", "below", "below"),
    # Both 3 and 4 lose to 0 alone: neither says anything about the other.
    ((0, 1), (1, 2), (2, 0), (0, 3), (0, 4)): ("", "", "", "below", "below"),
    ((2, 0), (2, 1), (2, 3), (3, 2), (2, 4), (4, 2)): ("below", "below", "", "", ""),
}


@pytest.mark.parametrize(("wins", "wanted"), WINS.items())
def test_a_group_that_always_wins_or_loses_is_bounded_on_one_side(wins, wanted):
    tables, shares = np.array(wins), [[1, 0]] * len(wins)
    games = np.tile(tables, (20, 1)), np.tile(shares, (20, 1)), np.repeat(np.arange(20), len(wins))
    for anchor in (2, None):
        ratings = rate(*games, 5, anchor=anchor)
        if wanted != ("above", "above", "", "below", "below") or anchor == 2:
            assert ratings.bounds == wanted
    assert ratings.of(4)["bound"] == wanted[4]
    seen_from_4 = rate(*games, 5, anchor=4).bounds
    assert (seen_from_4[2] == "above") == (wanted[4] == "below")
    assert seen_from_4[4] == ""


def test_agents_that_met_only_a_stronger_one_say_nothing_of_each_other():
    ratings = rate([[0, 1], [0, 2]] * 5, [[1, 0]] * 10, np.arange(10), 3, anchor=1)
    assert ratings.bounds == ("above", "", "unknown")
    placed = rate([[0, 1], [0, 2]] * 5, [[0, 1]] * 10, np.arange(10), 3, fixed={1: 0, 2: 50})
    assert placed.bounds == ("below", "", ""), "given ratings are tied together"


@pytest.fixture(scope="module")
def rated() -> tuple[Any, Any, Any, Any]:
    """Tables, shares and deals of 300 games of four agents, and their ratings."""
    tables, deals = pairings(2, 4, 25)
    shares = play(np.random.default_rng(5), [0, 50, 100, 200], tables, [0, 1], deals)
    return tables, shares, deals, rate(tables, shares, deals, 4)


def test_names_and_order_make_no_difference_and_the_seed_one_to_the_intervals_alone(rated):
    tables, shares, deals, ratings = rated
    new = np.array([2, 0, 3, 1])
    renamed = rate(new[tables], shares, deals, 4)
    assert renamed.elo[new] == pytest.approx(ratings.elo, abs=1e-6)
    assert renamed.low[new] == pytest.approx(ratings.low, abs=15)  # other random numbers
    order = np.random.default_rng(0).permutation(len(tables))
    mixed = rate(tables[order, ::-1], shares[order, ::-1], 10 * deals[order] - 3, 4)
    assert mixed.elo == pytest.approx(ratings.elo, abs=1e-6)
    assert mixed.low == pytest.approx(ratings.low, abs=1e-6)
    again, other = (rate(tables, shares, deals, 4, seed=k) for k in (0, 2))
    assert np.array_equal(ratings.samples, again.samples)
    assert not np.array_equal(ratings.samples, other.samples)
    assert np.array_equal(ratings.elo, other.elo)


def test_given_ratings_stay_and_the_others_are_on_their_scale(rated):
    tables, shares, deals, ratings = rated
    given = {k: 1000 + float(ratings.elo[k]) for k in (0, 1, 2)}
    placed = rate(tables, shares, deals, 4, fixed=given)
    assert placed.elo[:3] == pytest.approx(list(given.values()))
    assert (placed.low[:3] == placed.high[:3]).all()
    assert placed.elo[3] == pytest.approx(1000 + ratings.elo[3], abs=10)  # another prior
    assert placed.low[3] < placed.elo[3] < placed.high[3]
    few = tables[:, 0] + tables[:, 1] == 1  # 0 and 1 alone
    with pytest.raises(RatingsError, match=r"\[0, 1, 2\] and \[3\]"):
        rate(tables[few], shares[few], deals[few], 4, fixed=given)
    for wrong in ({**given, 3: 0.0}, {4: 0.0}):
        with pytest.raises(ValueError, match="fixed"):
            rate(tables, shares, deals, 4, fixed=wrong)


def test_memory_does_not_grow_with_the_fourth_power_of_agents():
    tables, deals = pairings(2, 60, 1)
    shares = play(np.random.default_rng(1), np.linspace(0, 300, 60), tables, [0, 1], deals)
    tracemalloc.start()
    ratings = rate(tables, shares, deals, 60, bootstraps=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20, "60^4 numbers are 104 MB"
    assert np.corrcoef(ratings.elo, np.arange(60))[0, 1] > 0.8


def test_twice_the_deals_narrow_the_intervals_and_twice_the_games_of_a_deal_do_not(rated):
    tables, shares, deals, ratings = rated
    twice = np.tile(tables, (2, 1)), np.tile(shares, (2, 1))
    same_luck = rate(*twice, np.tile(deals, 2), 4)
    assert same_luck.elo == pytest.approx(ratings.elo, abs=1e-6)
    assert same_luck.high == pytest.approx(ratings.high, abs=1e-6)
    new_luck = rate(*twice, np.concatenate([deals, deals + 1000]), 4)
    assert new_luck.elo == pytest.approx(ratings.elo, abs=5)  # the prior weighs less
    narrower = (new_luck.high - new_luck.low) / (ratings.high - ratings.low)
    assert narrower == pytest.approx(np.full(4, 0.5**0.5), abs=0.12)


def test_the_anchor_moves_no_difference_and_one_is_the_same_from_both_sides(rated):
    tables, shares, deals, free = rated
    assert free.elo.mean() == pytest.approx(0, abs=1e-9)
    held = rate(tables, shares, deals, 4, anchor=2)
    assert held.of(2) == {"elo": 0, "low": 0, "high": 0, "bound": ""}
    assert np.diff(held.elo) == pytest.approx(np.diff(free.elo))
    assert held.difference(1, 2) == pytest.approx((held.elo[1], held.low[1], held.high[1]))
    elo, low, high = free.difference(3, 0)
    assert low < elo < high
    for ratings in (held, free):
        assert ratings.difference(0, 3) == pytest.approx((-elo, -high, -low))
    assert free.stronger(3, 0) == 1 - free.stronger(0, 3) > 0.9
    assert free.stronger(2, 2) == 0.5


@pytest.mark.parametrize("wins", [0, 1, 12, 30])
def test_two_agents_and_independent_games_give_jeffreys_interval(wins):
    shares = np.array([[1, 0]] * wins + [[0, 1]] * (30 - wins))
    ratings = rate([[0, 1]] * 30, shares, np.arange(30), 2, bootstraps=20_000)
    ends = np.array(ratings.difference(0, 1)[1:])
    win_rate = 1 / (1 + np.exp(-ends / ELO))
    wanted = beta.ppf([0.025, 0.975], wins + 0.5, 30 - wins + 0.5)
    assert win_rate == pytest.approx(wanted, abs=0.005)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_perfect_scores_have_finite_ratings_and_intervals_with_a_width(players):
    tables, deals = pairings(players, 3, 50)
    team = np.array(TEAM[players])
    best = np.stack([tables[:, team == t].max(axis=1) for t in np.unique(team)], axis=1)
    won = best == best.max(axis=1, keepdims=True)
    shares = (won / won.sum(axis=1, keepdims=True))[:, team] / np.bincount(team)[team]
    ratings = rate(tables, shares, deals, 3)
    assert (np.diff(ratings.elo) > 300).all()
    assert np.isfinite(ratings.samples).all()
    for i in (0, 1):
        elo, low, high = ratings.difference(i + 1, i)
        assert 100 < low < elo - 50 < elo + 50 < high


def test_games_of_one_deal_are_no_independent_evidence():
    """The same seating twice tells nothing new; seats changed, the luck of a deal cancels out."""
    deals = np.repeat(np.arange(200), 2)

    def width(seatings: list[list[int]], numbers: Any) -> float:
        tables = np.tile(seatings, (200, 1))
        shares = play(np.random.default_rng(0), [0, 0], tables, [0, 1], deals, shared=1)
        ratings = rate(tables, shares, numbers, 2)
        return float(ratings.high[0] - ratings.low[0])

    independent = width([[0, 1], [0, 1]], np.arange(400))
    assert width([[0, 1], [0, 1]], deals) / independent == pytest.approx(2**0.5, abs=0.1)
    assert width([[0, 1], [1, 0]], deals) < 0.2 * independent


@pytest.mark.parametrize("players", [2, 3, 4])
def test_intervals_hold_the_truth(players):
    elo, held = np.array([-150.0, 0, 150]), []
    tables, luck = pairings(players, 3, 60)
    for k in range(100):
        rng = np.random.default_rng(k)
        shares = play(rng, elo, tables, TEAM[players], luck, shared=0.5, ties=0.1)
        ratings = rate(tables, shares, luck, 3, seed=k, bootstraps=300)
        held.append((ratings.low <= elo) & (elo <= ratings.high))
        assert ratings.deals == 60
    assert 0.89 < np.mean(held) < 0.99


def test_agents_that_no_games_compare_are_refused():
    with pytest.raises(
        RatingsError, match=r"groups of agents .*: \[0, 1\] and \[2, 3\] and \[4\]$"
    ):
        rate([[0, 1], [2, 3]], [[1, 0]] * 2, [0, 1], 5)


GOOD: dict[str, Any] = {
    "tables": [[0, 1], [1, 0]],
    "shares": [[1, 0], [0.5, 0.5]],
    "deals": [0, 0],
    "agents": 2,
}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tables": [0, 1]}, r"tables must be .* shape \(games, players\), got shape \(2,\)"),
        ({"tables": [[0.0, 1.0]]}, "tables must be whole numbers .* dtype float64"),
        ({"tables": np.zeros((0, 2), int)}, "no game to rate by: tables are empty"),
        ({"tables": [[0, 2], [1, 0]]}, "tables must name agents 0 to 1, got 0 to 2"),
        ({"tables": [[0, -1], [1, 0]]}, "tables must name agents 0 to 1, got -1 to 1"),
        ({"shares": [[1, 0]]}, r"shares must be .* shape \(2, 2\), got shape \(1, 2\)"),
        ({"shares": [["a", "b"]] * 2}, "shares must be numbers .* dtype <U1"),
        ({"shares": [[1, 0], [1, 1]]}, r"sum to 1, got \[1, 1\] in game 1"),
        ({"shares": [[1.5, -0.5], [1, 0]]}, r"0 or more .* got \[1.5, -0.5\] in game 0"),
        ({"shares": [[1, 0], [np.nan, 1]]}, r"got \[nan, 1.0\] in game 1"),
        ({"tables": [[0, 0], [1, 0]]}, r"two agents, got \[0, 0\] in game 0"),
        (
            {"tables": [[0, 1, 2]], "shares": [[1, 0, 0]], "deals": [0], "agents": 3},
            r"two agents, got \[0, 1, 2\] in game 0",
        ),
        *(
            ({"fixed": {0: wrong}}, rf"fixed\[0\] must be .* got {re.escape(repr(wrong))}")
            for wrong in (np.nan, np.inf, "7", None, True, 1e300)
        ),
        ({"fixed": {"0": 1.0}}, "fixed must be a whole number from 0 to 1, got '0'"),
        *(
            ({"prior": wrong}, f"prior must be .* got {re.escape(repr(wrong))}")
            for wrong in (np.nan, np.inf, "1", None, True, 0, 0.01, -1, 1e300)
        ),
        ({"deals": [0]}, r"deals must be whole numbers of shape \(2,\), got shape \(1,\)"),
        ({"deals": [0.5, 1]}, "deals must be whole numbers .* dtype float64"),
        ({"agents": 1}, "agents must be a whole number from 2 to 1,000, got 1"),
        ({"anchor": 2}, "anchor must be a whole number from 0 to 1, got 2"),
        ({"anchor": "random"}, "anchor must be .* got 'random'"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2\\^64 - 1, got -1"),
        ({"bootstraps": 10}, "bootstraps must be a whole number from 100 to 100,000, got 10"),
    ],
)
def test_impossible_input_is_refused(wrong, said):
    rate(**GOOD)
    with pytest.raises(ValueError, match=said):
        rate(**{**GOOD, **wrong})


PAIRS = np.array([0, 0.25, 0.5, 0.75, 1])


def drawn(seed: int, shape: Any, shares: Any = (0.1, 0.2, 0.4, 0.2, 0.1)) -> Any:
    return np.random.default_rng(seed).choice(PAIRS, shape, p=shares)


def test_normalised_elo_is_the_one_of_fishtest():
    scores = np.repeat(PAIRS, [1, 4, 10, 6, 2])
    a_game = math.sqrt(2) * scores.std()
    assert normalised_elo(scores, 2) == pytest.approx(
        800 / math.log(10) * (scores.mean() - 0.5) / a_game
    )
    assert normalised_elo([0.5, 0.5], 2) is None
    assert normalised_elo([], 2) is None


def test_a_path_is_the_opposite_for_the_other_agent_and_the_likelihood_of_normal_scores():
    scores = drawn(1, 400, (0.05, 0.2, 0.4, 0.22, 0.13))
    there, back = SequentialTest(-5, 25), SequentialTest(-25, 5)
    assert there.path(scores, 2) == pytest.approx(-back.path(1 - scores, 2), abs=1e-9)
    assert there.bounds == pytest.approx([-bound for bound in back.bounds[::-1]])

    def likelihood(t: float, scores: np.ndarray) -> float:
        """Of normal scores whose mean is t deviations above 1/2; the deviation is the likeliest."""

        def cost(log: float) -> float:
            return -float(norm.logpdf(scores, 0.5 + t * np.exp(log), np.exp(log)).sum())

        return -float(optimize.minimize_scalar(cost, bounds=(-4, 1), method="bounded").fun)

    one_sided = drawn(1, 400, (0, 0.1, 0.2, 0.3, 0.4))
    for test, some in (there, scores), (SequentialTest(100, 400), one_sided):
        t0, t1 = (elo * math.sqrt(2) / schedules.NELO for elo in (test.elo0, test.elo1))
        wanted = likelihood(t1, some) - likelihood(t0, some)
        assert test.path(some, 2)[-1] == pytest.approx(wanted, abs=1e-3)


def test_certain_results_decide_equal_ones_do_not_and_later_deals_change_nothing():
    test = SequentialTest(0, 50)
    assert test.outcome(np.ones(60), 2).verdict == schedules.STRONGER
    assert test.outcome(np.zeros(60), 2).verdict == schedules.NOT_STRONGER
    assert test.outcome(np.full(400, 0.5), 2).verdict == schedules.NOT_STRONGER
    for scores in ([], [1.0], [0.5], [0.0, 1.0]):
        assert test.outcome(scores, 2).verdict == schedules.UNDECIDED
    assert test.outcome(np.ones(60), 2).elo is None
    test, scores = SequentialTest(0, 60), drawn(3, 500, (0.05, 0.15, 0.4, 0.25, 0.15))
    result = test.outcome(scores, 2)
    assert result.verdict == schedules.STRONGER
    assert 5 < result.deals < 400
    assert result.ratio >= test.bounds[1] > test.path(scores, 2)[result.deals - 2]
    for more in (np.zeros(300), np.full(300, 1 / 3)):
        again = test.outcome(np.concatenate([scores[: result.deals], more]), 2)
        assert (again.verdict, again.deals) == (result.verdict, result.deals)
        assert again.ratio == pytest.approx(result.ratio)
    assert test.outcome(scores[: result.deals - 1], 2).verdict == schedules.UNDECIDED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"elo0": 5, "elo1": 5}, "elo0 must be below elo1, got 5.0 and 5.0"),
        ({"elo1": math.inf}, "elo1 must be a number from -2,000 to 2,000, got inf"),
        ({"elo0": "0"}, "elo0 must be a number .* got '0'"),
        *(({"scores": scores}, "from 0 to 1") for scores in ([0.5, 1.5], [-1.0], [math.nan])),
    ],
)
def test_an_impossible_test_and_scores_that_are_none_are_refused(given, said):
    scores = given.pop("scores", [])
    with pytest.raises(ValueError, match=said):
        SequentialTest(**given).outcome(scores, 2)


@pytest.mark.parametrize("shares", [(0.25, 0, 0.5, 0, 0.25), (0.05, 0.2, 0.5, 0.2, 0.05)])
def test_error_rates_are_about_those_stated(shares):
    """300 tournaments each side."""
    test, rates = SequentialTest(0, 100), []
    lower, upper = test.bounds
    for elo in (0, 100):
        t, low, high = elo * math.sqrt(2) / schedules.NELO, 0.0, 20.0
        for _ in range(60):  # tilt the shares until the truth is a hypothesis
            tilt = (low + high) / 2
            p = np.array(shares) * np.exp(tilt * PAIRS)
            p /= p.sum()
            result = (p @ PAIRS - 0.5) / math.sqrt(p @ np.square(PAIRS - p @ PAIRS))
            low, high = (tilt, high) if result < t else (low, tilt)
        path = test.path(drawn(elo, (300, 250), p), 2)
        ended = (path <= lower) | (path >= upper)
        assert ended.any(axis=1).mean() > 0.99
        rates.append((path[np.arange(300), ended.argmax(axis=1)] >= upper).mean())
    slack = 3 * math.sqrt(0.05 * 0.95 / 300)
    assert 0.01 < rates[0] < 0.05 + slack
    assert 0.95 - slack < rates[1] < 0.99


@pytest.mark.parametrize("games", [2, 6])
def test_a_test_of_large_differences_errs_no_more_often_than_stated(games):
    p = 0.8775  # the chance of a game, all of them independent, at which nElo is 400
    assert schedules.NELO * (p - 0.5) / math.sqrt(p * (1 - p)) == pytest.approx(400, abs=0.1)
    test, rng = SequentialTest(0, 400), np.random.default_rng(0)
    for chance, right in ((0.5, schedules.NOT_STRONGER), (p, schedules.STRONGER)):
        scores = rng.binomial(games, chance, (1000, 40)) / games
        verdicts = [test.outcome(row, games).verdict for row in scores]
        assert verdicts.count(right) > 0.95 * len(verdicts)


def test_widening_is_the_published_boundary():
    rho = math.sqrt((-2 * math.log(0.05) + math.log(-2 * math.log(0.05)) + 1) / 500)
    for deals in (1, 50, 500, 20_000):
        n = deals * rho**2
        half = math.sqrt(2 * (n + 1) / (deals**2 * rho**2) * math.log(math.sqrt(n + 1) / 0.05))
        assert widening(deals) == pytest.approx(half * math.sqrt(deals) / 1.959964, rel=1e-6)
    assert min(widening(deals) for deals in (50, 200, 2000, 20_000)) > 1.5


def test_it_stops_where_the_seed_says_on_any_workers_and_when_resumed(tmp_path, monkeypatch):
    agents = ("greedy", "greedy", "random")
    plan = Plan(Rules(2), agents, deals=400, seed=5, test=SequentialTest(-40, 0))

    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 50)
    full = played(plan, tmp_path / "whole")
    rule, games = full.standing(), saved_games(tmp_path / "whole")
    assert rule is not None and rule["reached"] and full.complete
    deals = full.games // plan.games_per_deal
    assert 40 < rule["deals"] <= deals < 400
    assert deals in list(plan.checkpoints()), "it is asked after certain deals only"
    before = [look for look in plan.checkpoints() if look < deals][-1]
    assert before < rule["deals"], "it stops at the first look that knows"
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for cut in (3, len(lines) - 1, len(lines)):
        path = tmp_path / str(cut)
        path.write_bytes(b"".join(lines[:cut]))
        assert played(plan, path, resume=True).standing() == rule
        assert saved_games(path) == games
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 7)
    assert played(plan, tmp_path / "two", workers=2).standing() == rule
    assert saved_games(tmp_path / "two") == games


@pytest.mark.parametrize(("players", "games"), [(2, 2), (3, 6), (4, 2)])
def test_a_deals_score_is_the_mean_over_its_games(players, games):
    cup = Tournament(Plan(Rules(players), ("greedy", "random", "greedy"), deals=5, seed=2))
    cup.run()
    cup._parts = [cup.results[:-1]]
    deals = cup.counted
    assert deals.shape == (4, 3, games), "the last deal lacks a game"
    for number, (i, j) in enumerate(cup.plan.pairs):
        scores, other = (deal_scores(deals[:, number], agent) for agent in (i, j))
        assert scores.shape == (4,) and scores == pytest.approx(1 - other)
        won = pairing_result(cup.plan.agents, deals[:, number].ravel(), (i, j)).win_rate[0]
        assert scores.mean() == pytest.approx(won)
