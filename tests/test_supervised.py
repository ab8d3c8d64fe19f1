"""benchmarks/studies/supervised.py: what is deep, and that a fit comes closer to its targets."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies import supervised
from carolus_env.bots.value import model
from carolus_env.bots.value.inference import ValueWeights, values
from carolus_env.engine.rules import ROLL


@pytest.mark.slow
def test_a_fit_comes_closer_to_what_it_is_fitted_to() -> None:
    start = model.find("2p")
    weights = ValueWeights.of(start.weights)
    found = supervised.after_turns(2, games=6, seed=1)
    assert (found["phase"] == ROLL).all()
    quick, deep = values(found, weights), supervised.deep_values(found, weights)
    np.testing.assert_allclose(deep.sum(axis=1), 1, atol=1e-5)
    assert 0.005 < np.abs(deep - quick).mean() < 0.1
    known, best = supervised.fitted(start, found, deep, (found, deep), rate=0.03, passes=8)
    assert min(known[1:]) < 0.8 * known[0]
    assert supervised.distance(found, deep, ValueWeights.of(best)) == min(known[1:])


@pytest.mark.slow
def test_the_study_runs() -> None:
    found = supervised.study(
        "2p", selfplay=8, positions=20, rollouts=2, rates=[0.01], passes=1, games=2
    )
    assert [row["set"] for row in found["rows"]] == list(supervised.SETS)
    assert found["differ"][supervised.SETS[0]] > found["differ"][supervised.SETS[1]]
