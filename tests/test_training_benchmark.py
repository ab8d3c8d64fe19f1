"""benchmarks/training.py: the empty environment, and the rows."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")
pytest.importorskip("tyro")
ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import training  # noqa: E402

import carolus_env as ce  # noqa: E402
from carolus_env.engine import rules  # noqa: E402

TINY = {"games": 8, "size": 64, "batch": 32, "epochs": 1, "net": (4,)}


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_empty_environment_stays_at_positions_of_all_phases(players):
    env = training.EmptyVecEnv(ce.Rules(players), 128)
    phases = env.games.states["phase"]
    assert {rules.DISC, rules.PLACE, rules.MOVE} <= set(phases.tolist())
    assert rules.OVER not in phases
    first = env.reset().copy()
    wanted = ce.observe(env.games.states, dtype=np.float32)
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(env.action_masks(), ce.legal_masks(env.games.states))
    for _ in range(3):
        seen, rewards, dones, _ = env.step(env.action_masks().argmax(axis=1))
        np.testing.assert_array_equal(seen, first)
        assert not rewards.any()
        assert not dones.any()
    np.testing.assert_array_equal(env.env_method("action_masks"), env.action_masks())


def test_the_parts_of_each_row_sum_to_its_time():
    args = training.Args(opponents=("greedy", "random"), seconds=0, repeats=2, **TINY)
    rows = {row["opponents"]: row for row in training.measure(args, 2)}
    assert list(rows) == ["greedy", "random"]
    for row in rows.values():
        assert set(row["parts"]) == set(training.PARTS)
        assert sum(row["parts"].values()) == pytest.approx(1, abs=1e-3)
        assert min(row["parts"].values()) >= 0
        assert 0 < row["share_min"] <= row["share"] <= row["share_max"] < 1
        assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]
    training.show(list(rows.values()))


def test_tables_in_docs_know_every_part():
    results = runpy.run_path(str(ROOT / "docs" / "results.py"))
    assert set(results["PARTS"]) == set(training.PARTS)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"games": 1000}, "size 16384 must be a multiple of games 1000"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
    ],
)
def test_impossible_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        training.Args(**options)
