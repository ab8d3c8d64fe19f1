"""Several training runs as one figure: the mean, its interval, and what the page says of them."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from carolus_env.analysis import runs
from carolus_env.analysis.runs import (
    interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
)

ROOT = Path(__file__).parent.parent
RUNS = np.random.default_rng(1).normal(0.6, 0.1, (10, 3))


def coverage(number, tasks, *, repeats, resamples):
    """How often the 95 % interval holds the true value, of normal scores."""
    random, holds = np.random.default_rng(7), 0
    for seed in range(repeats):
        found = stratified_bootstrap(
            random.normal(0.5, 0.1, (number, tasks)), resamples=resamples, seed=seed
        )
        holds += found.low <= 0.5 <= found.high
    return holds / repeats


def test_the_module_shows_what_it_does():
    assert doctest.testmod(runs).attempted == 2
    assert doctest.testmod(runs).failed == 0


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert interquartile_mean([100, 3, 1, 2, -50, 4, 5, 60]) == (2 + 3 + 4 + 5) / 4
    assert interquartile_mean([1, 2, 3]) == 2
    assert interquartile_mean([[1, 9], [5, 6]]) == 5.5
    assert interquartile_mean([7.0]) == 7


@pytest.mark.parametrize("shape", [(1,), (6,), (7, 3), (4, 5), (10, 2, 3)])
def test_the_interquartile_mean_is_scipys(shape):
    stats = pytest.importorskip("scipy.stats")
    scores = np.random.default_rng(len(shape)).normal(size=shape)
    expected = stats.trim_mean(scores, 0.25, axis=None)
    assert interquartile_mean(scores) == pytest.approx(expected)


def test_the_interval_is_about_the_bootstrap_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    one = RUNS[:, :1]
    expected = stats.bootstrap(
        (one[:, 0],), np.mean, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    found = stratified_bootstrap(one, np.mean, resamples=20_000)
    assert found.value == pytest.approx(one.mean())
    assert found[1:] == pytest.approx((expected.low, expected.high), abs=0.002)


def test_runs_are_resampled_within_each_task():
    seen = []

    def note(scores):
        seen.append(scores)
        return 0.0

    scores = np.arange(12.0).reshape(4, 3)  # task t has the scores t, t + 3, t + 6, t + 9
    stratified_bootstrap(scores, note, resamples=50)
    assert all((one % 3 == [0, 1, 2]).all() and one.shape == (4, 3) for one in seen)
    rows = [one // 3 for one in seen]
    assert any((one[:, 0] != one[:, 1]).any() for one in rows), "each task has its own runs"
    assert any(len(set(one[:, 0])) < 4 for one in rows), "with replacement"


def test_a_spread_between_tasks_alone_makes_no_interval():
    assert stratified_bootstrap([[0.1, 0.9]] * 4) == (0.5, 0.5, 0.5)


def test_the_seed_and_the_confidence_decide_the_interval():
    found = stratified_bootstrap(RUNS, seed=3)
    assert found == stratified_bootstrap(RUNS.tolist(), seed=3)
    assert found != stratified_bootstrap(RUNS, seed=4)
    narrow = stratified_bootstrap(RUNS, seed=3, confidence=0.5)
    assert found.low < narrow.low < found.value < narrow.high < found.high


def test_the_interval_holds_the_true_value_about_as_often_as_it_says():
    assert 0.85 <= coverage(20, 2, repeats=150, resamples=200) <= 0.99


def test_with_three_runs_the_interval_is_too_narrow():
    assert 0.6 <= coverage(3, 1, repeats=150, resamples=200) <= 0.85


@pytest.mark.slow
def test_the_page_has_the_coverage_as_simulated():
    page = (ROOT / "docs" / "training.md").read_text()
    rows = re.findall(r"^\| (\d+) runs \| (\d+) % \| (\d+) % \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for row in rows:
        number, *written = map(int, row)
        for tasks, percent in zip((1, 4), written, strict=True):
            found = coverage(number, tasks, repeats=300, resamples=500)
            assert round(100 * found) == percent, (number, tasks)


def test_the_page_says_what_its_example_prints(capsys):
    page = (ROOT / "docs" / "training.md").read_text()
    start = "from carolus_env.analysis.runs"
    code = start + page.partition(start)[2].partition("```")[0]
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert re.findall(r"  # (.*)$", code, re.MULTILINE)[-2:] == printed


# ------------------------------------------------------------------------------------ improvement


def test_improvement_counts_pairs_and_half_of_the_ties():
    a, b = [[1.0], [3.0]], [[0.0], [1.0], [2.0]]
    assert probability_of_improvement(a, b).value == pytest.approx((1 + 0.5 + 3) / 6)
    assert probability_of_improvement(b, a).value == pytest.approx(1 - 4.5 / 6)


def test_improvement_is_the_mean_over_tasks_of_mann_and_whitneys_u():
    stats = pytest.importorskip("scipy.stats")
    other = RUNS[:7] + np.random.default_rng(2).normal(0.03, 0.1, (7, 3))
    u = [stats.mannwhitneyu(RUNS[:, t], other[:, t]).statistic / 70 for t in range(3)]
    found = probability_of_improvement(RUNS, other)
    assert found.value == pytest.approx(np.mean(u))
    assert found.low < found.value < found.high


def test_improvement_of_runs_without_overlap_is_certain():
    assert probability_of_improvement(RUNS + 5, RUNS) == (1, 1, 1)
    equal = probability_of_improvement(RUNS, RUNS)
    assert equal.value == 0.5 and equal.low < 0.5 < equal.high


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ([0.1, 0.2], r"shape \(runs, tasks\), .* got shape \(2,\)"),
        ([[0.1, 0.2]], "2 or more runs to resample, got 1"),
        ([[0.1], [float("nan")]], r"finite, got nan at \[1, 0\]"),
        ([[0.1, 0.2], [0.3]], "rows of the same length, got"),
        ([["a"], ["b"]], r"numbers in rows .* got \[\["),
        (np.zeros((3, 0)), r"at least one number, got shape \(3, 0\)"),
    ],
)
def test_impossible_scores_are_refused(scores, text):
    with pytest.raises(ValueError, match=f"^scores must .*{text}"):
        stratified_bootstrap(scores)
    with pytest.raises(ValueError, match=f"^b must .*{text}"):
        probability_of_improvement(RUNS, scores)


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="at least one number"):
        interquartile_mean([])
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 95"):
        stratified_bootstrap(RUNS, confidence=95)
    with pytest.raises(ValueError, match="resamples must be 1 or more, got 0"):
        probability_of_improvement(RUNS, RUNS, resamples=0)
    with pytest.raises(ValueError, match="same tasks, got 3 and 2 tasks"):
        probability_of_improvement(RUNS, RUNS[:, :2])
