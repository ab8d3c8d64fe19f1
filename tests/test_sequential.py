"""Tests that stop by themselves: their statistics, their error rates, where tournaments stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, pool, sequential
from carolus_env.evaluation.sequential import SequentialTest, normalised_elo, widening
from carolus_env.evaluation.stopping import deal_scores

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


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (PAIRS, [5, 20, 50, 25, 8]),
        ([0.5], [300]),
        ([1.0], [30]),
        ([0, 0.5, 1], [10, 900, 22]),
        ([1 / 6, 1 / 3, 0.5, 0.7, 0.9], [3, 5, 8, 9, 4]),
    ],
)
@pytest.mark.parametrize("elo", [-50, 0, 20, 100])
def test_the_fit_is_the_likeliest_that_fulfils_its_hypothesis(values, counts, elo):
    optimize = pytest.importorskip("scipy.optimize")
    t = elo * math.sqrt(2) / sequential.NELO
    scores, seen = sequential._regular(np.array(values, float), np.array([counts], float))
    shares = (seen / seen.sum())[0]
    fitted = shares * np.exp(sequential._log_fit(scores, shares[None], t)[0])
    kept = shares > 0

    def off(p: Any) -> float:
        mean = p @ scores[kept]
        return float(mean - 0.5 - t * math.sqrt(max(p @ np.square(scores[kept] - mean), 0)))

    def loss(p: Any) -> float:
        return -float(shares[kept] @ np.log(p))

    assert fitted[kept].sum() == pytest.approx(1)
    assert off(fitted[kept]) == pytest.approx(0, abs=1e-9)
    start = np.full(kept.sum(), 1 / kept.sum())
    given = {"method": "SLSQP", "options": {"maxiter": 1000, "ftol": 1e-14}}
    given["constraints"] = [{"type": "eq", "fun": f} for f in (lambda p: p.sum() - 1, off)]
    best = optimize.minimize(loss, start, bounds=[(1e-12, 1)] * len(start), **given)
    assert best.success
    assert loss(fitted[kept]) <= best.fun + 1e-6


def test_the_other_agents_test_says_the_opposite():
    scores = drawn(1, 400, (0.05, 0.2, 0.4, 0.22, 0.13))
    there, back = SequentialTest(-5, 25), SequentialTest(-25, 5)
    assert there.path(scores, 2) == pytest.approx(-back.path(1 - scores, 2), abs=1e-6)
    assert there.bounds == pytest.approx([-bound for bound in back.bounds[::-1]])


def test_for_many_deals_it_is_the_normal_approximation():
    counts = np.array([[500, 2000, 4000, 2100, 520]])
    test = SequentialTest(0, 10)
    share = counts[0] / counts.sum()
    mean = share @ PAIRS
    t = (mean - 0.5) / math.sqrt(share @ np.square(PAIRS - mean))
    t0, t1 = (elo * math.sqrt(2) / sequential.NELO for elo in (0, 10))
    wanted = counts.sum() / 2 * math.log((1 + (t - t0) ** 2) / (1 + (t - t1) ** 2))
    assert test.ratios(PAIRS, counts, 2) == pytest.approx([wanted], rel=0.02)


def test_certain_results_decide_and_equal_ones_do_not_count_as_strength():
    test = SequentialTest(0, 50)
    assert test.outcome(np.ones(60), 2).verdict == sequential.STRONGER
    assert test.outcome(np.zeros(60), 2).verdict == sequential.NOT_STRONGER
    assert test.outcome(np.full(400, 0.5), 2).verdict == sequential.NOT_STRONGER
    for scores in ([], [1.0], [0.5], [0.0, 1.0]):
        assert test.outcome(scores, 2).verdict == sequential.UNDECIDED
    assert test.outcome(np.ones(60), 2).elo is None


def test_the_first_deal_at_a_bound_decides_and_later_ones_change_nothing():
    test, scores = SequentialTest(0, 60), drawn(3, 500, (0.05, 0.15, 0.4, 0.25, 0.15))
    result = test.outcome(scores, 2)
    assert result.verdict == sequential.STRONGER
    assert 5 < result.deals < 400
    assert result.ratio >= test.bounds[1] > test.path(scores, 2)[result.deals - 2]
    for more in (np.zeros(300), np.full(300, 1 / 3)):
        again = test.outcome(np.concatenate([scores[: result.deals], more]), 2)
        assert (again.verdict, again.deals) == (result.verdict, result.deals)
        assert again.ratio == pytest.approx(result.ratio)
    assert test.outcome(scores[: result.deals - 1], 2).verdict == sequential.UNDECIDED


def test_a_path_does_not_depend_on_how_many_deals_are_computed_at_once(monkeypatch):
    test, scores = SequentialTest(), drawn(4, 100)
    whole = test.path(scores, 2)
    monkeypatch.setattr(sequential, "_CHUNK", 7)
    assert test.path(scores, 2) == pytest.approx(whole, abs=1e-7)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"elo0": 5, "elo1": 5}, "elo0 must be below elo1, got 5 and 5"),
        ({"elo1": math.inf}, "elo1 must be from -2000 to 2000, got inf"),
        ({"elo0": "0"}, "elo0 must be a number, got '0'"),
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
        t, low, high = elo * math.sqrt(2) / sequential.NELO, 0.0, 20.0
        for _ in range(60):  # tilt the shares until the truth is a hypothesis
            tilt = (low + high) / 2
            p = np.array(shares) * np.exp(tilt * PAIRS)
            p /= p.sum()
            result = (p @ PAIRS - 0.5) / math.sqrt(p @ np.square(PAIRS - p @ PAIRS))
            low, high = (tilt, high) if result < t else (low, tilt)
        scores = drawn(elo, (300, 250), p)
        counts = (scores[..., None] == PAIRS).cumsum(axis=1).reshape(-1, 5)
        path = test.ratios(PAIRS, counts, 2).reshape(300, 250)  # all at once, which is faster
        assert path[7] == pytest.approx(test.path(scores[7], 2), abs=1e-7)
        ended = (path <= lower) | (path >= upper)
        assert ended.any(axis=1).mean() > 0.99
        rates.append((path[np.arange(300), ended.argmax(axis=1)] >= upper).mean())
    slack = 3 * math.sqrt(0.05 * 0.95 / 300)
    assert 0.01 < rates[0] < 0.05 + slack
    assert 0.95 - slack < rates[1] < 0.99


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

    def game_lines(name: Any) -> list[str]:
        lines = (tmp_path / str(name)).read_text().splitlines()
        return [line for line in lines if line.startswith('{"game"')]

    def stopped(name: Any, **options: Any) -> Any:
        cup = Tournament(plan)
        cup.run(file=tmp_path / str(name), **options)
        return cup

    monkeypatch.setattr(pool, "SIDE_BY_SIDE", 50)
    whole = stopped("whole")
    rule = whole.standing()
    assert rule is not None and rule["reached"] and whole.complete
    deals = whole.games // plan.games_per_deal
    assert 40 < rule["deals"] <= deals < 400
    assert deals in list(plan.checkpoints()), "it is asked after certain deals only"
    before = [look for look in plan.checkpoints() if look < deals][-1]
    assert before < rule["deals"], "it stops at the first look that knows"
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for cut in (30, len(lines) - 1, len(lines)):
        (tmp_path / str(cut)).write_bytes(b"".join(lines[:cut]))
        assert stopped(cut, resume=True).standing() == rule
        assert game_lines(cut) == game_lines("whole")
    monkeypatch.setattr(pool, "SIDE_BY_SIDE", 7)
    assert stopped("two", workers=2).standing() == rule
    assert game_lines("two") == game_lines("whole")


@pytest.mark.parametrize(("players", "games"), [(2, 2), (3, 6), (4, 2)])
def test_a_deals_score_is_the_mean_over_its_games(players, games):
    cup = Tournament(Plan(Rules(players), ("greedy", "random", "greedy"), deals=5, seed=2))
    cup.run()
    for pair, result in zip([(0, 1), (0, 2), (1, 2)], cup.pairings(), strict=True):
        scores, each = deal_scores(cup.results, pair)
        assert (scores.shape, each) == ((5,), games)
        assert scores.mean() == pytest.approx(result.win_rate[0])
    assert deal_scores(cup.results, (1, 0))[0] == pytest.approx(
        1 - deal_scores(cup.results, (0, 1))[0]
    )
