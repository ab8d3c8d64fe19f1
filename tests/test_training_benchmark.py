"""benchmarks/training.py: the empty environment, the frozen copy, and the rows."""

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
from carolus_env.bots.neural import network  # noqa: E402
from carolus_env.engine import rules  # noqa: E402
from carolus_env.envs.learner import LearnerGames  # noqa: E402

TINY = {"games": 8, "size": 64, "batch": 32, "epochs": 1, "net": (4,), "region": 2, "trunk": 4}


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_empty_environment_stays_at_positions_of_all_phases(players):
    env = training.EmptyVecEnv(ce.Rules(players), 128, dtype=np.uint8)
    phases = env.games.states["phase"]
    assert {rules.DISC, rules.PLACE, rules.MOVE} <= set(phases.tolist())
    assert rules.OVER not in phases
    first = env.reset().copy()
    np.testing.assert_array_equal(first, ce.observe(env.games.states))
    np.testing.assert_array_equal(env.action_masks(), ce.legal_masks(env.games.states))
    for _ in range(3):
        seen, rewards, dones, _ = env.step(env.action_masks().argmax(axis=1))
        np.testing.assert_array_equal(seen, first)
        assert not rewards.any()
        assert not dones.any()
    np.testing.assert_array_equal(env.env_method("action_masks"), env.action_masks())


def test_in_self_play_the_learner_decides_for_every_seat():
    games = LearnerGames(ce.Rules(3), 4, training.Itself(ce.Rules(3)), seed=1)
    before = games.states.copy()
    games.step(games.masks().argmax(axis=1))
    ce.step(before, ce.legal_masks(before).argmax(axis=1))
    assert games.states.tobytes() == before.tobytes()


def test_the_frozen_copy_draws_legal_actions_from_the_streams():
    frozen = training.frozen(network.Size(2, 2, 4))
    games, streams = ce.new_games(ce.Rules(), 200, seed=1), ce.new_streams(1, 200)
    kept = streams.copy()
    actions = frozen.act(games, streams)
    assert (streams != kept).all()
    np.testing.assert_array_equal(frozen.act(games, kept), actions)
    assert len(set(actions.tolist())) >= rules.DISCS, "untrained weights prefer nothing"
    for _ in range(40):
        ce.step(games, frozen.act(games, streams))  # illegal ones raise


def test_the_parts_of_each_row_sum_to_its_time():
    cases = ("stock:greedy", "selfplay:itself", "selfplay:frozen")
    args = training.Args(cases=cases, seconds=0, repeats=2, **TINY)
    rows = {(row["learner"], row["opponents"]): row for row in training.measure(args, 2)}
    assert list(rows) == [tuple(case.split(":")) for case in cases]
    for row in rows.values():
        assert set(row["parts"]) == set(training.PARTS)
        assert sum(row["parts"].values()) == pytest.approx(1, abs=1e-3)
        assert min(row["parts"].values()) >= 0
        assert 0 < row["share_min"] <= row["share"] <= row["share_max"] < 1
        assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]
    assert rows["selfplay", "itself"]["parts"]["opponents"] == 0
    assert rows["selfplay", "frozen"]["parts"]["opponents"] > 0
    training.show(list(rows.values()))


def test_tables_in_docs_know_every_learner_and_part():
    results = runpy.run_path(str(ROOT / "docs" / "results.py"))
    assert set(results["LEARNERS"]) == set(training.DTYPES)
    assert set(results["PARTS"]) == set(training.PARTS)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"games": 1000}, "size 16384 must be a multiple of games 1000"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"cases": ("other:random",)}, "LEARNER:OPPONENTS, learners stock and selfplay, got 'oth"),
        ({"cases": ("stock",)}, "got 'stock'"),
        ({"cases": ("stock:itself",)}, "itself and frozen are for selfplay, got 'stock:itself'"),
    ],
)
def test_impossible_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        training.Args(**options)
