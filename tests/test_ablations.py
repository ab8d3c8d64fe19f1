"""benchmarks/studies/ablations.py: its cases can be run, and differ in what they say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies import ablations
from carolus_env import make
from carolus_env.learners.options import Learner

CASES = [(learner, case) for learner, cases in ablations.CASES.items() for case in cases]


@pytest.mark.parametrize(("learner", "case"), CASES)
def test_a_case_can_be_run_and_differs_from_the_base(
    learner: Learner, case: str, tmp_path: Path
) -> None:
    def options(of: str) -> dict[str, Any]:
        given = {**ablations.BASES[learner], **ablations.CASES[learner][of], "seed": 1}
        return asdict(ablations.begun(learner, given, tmp_path).config)

    base, changed = options(ablations.BASE), options(case)
    different = {name for name in base if base[name] != changed[name]}
    assert different == set(ablations.CASES[learner][case])
    if learner != "single":  # the bot that plays the result takes as many candidates
        name = "value" if learner == "value" else "ppo"
        make(f"{name}:candidates={changed['candidates']}")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ppo", "value"])
def test_a_run_is_measured(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    little: dict[str, Any] = {"ppo": {"steps": 8192}, "value": {"games": 200}}
    monkeypatch.setitem(ablations.BASES, learner, little[learner])
    row = ablations.measure(learner, ablations.BASE, seed=1, games=2)
    assert row["done"] >= next(iter(little[learner].values()))
    assert row["seconds"] > 0
    assert {*ablations.LOOKS[learner]} <= {*row}
