"""benchmarks/studies/ablations.py: its cases can be run, and differ in what they say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies import ablations
from carolus_env import make

CASES = [(name, case) for name, study in ablations.STUDIES.items() for case in study.cases]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_case_can_be_run_and_differs_from_the_base(name: str, case: str, tmp_path: Path) -> None:
    study = ablations.STUDIES[name]

    def options(of: str) -> dict[str, Any]:
        given = {**study.base, **study.cases[of], "seed": 1}
        return asdict(ablations.begun(study.learner, given, tmp_path).config)

    base, changed = options(ablations.BASE), options(case)
    different = {option for option in base if base[option] != changed[option]}
    assert different == set(study.cases[case])
    if study.learner != "single":  # the bots that play can be made
        spec = "value:2p" if study.learner == "value" else "ppo:2p"
        for look in study.looks:
            for agent in ablations.players(spec, look, study, changed["candidates"]):
                make(agent)


def test_networks_play_with_as_many_candidates_as_they_learnt_with_or_alike() -> None:
    def agents(name: str) -> tuple[str, str]:
        study = ablations.STUDIES[name]
        return ablations.players("value:x", study.looks[0], study, 8)

    assert agents("value") == ("value:x,candidates=8,discs=now,next=0", "planner")
    assert agents("value long") == (
        "value:x,candidates=32,plans=stop,next=0",
        "value:2p,candidates=32,plans=stop,next=0",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppo", "value", "value long"])
def test_a_run_is_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    little: dict[str, Any] = {"ppo": {"steps": 8192}, "value": {"games": 200}}
    study = ablations.STUDIES[name]
    short = study._replace(base=little[study.learner])
    monkeypatch.setitem(ablations.STUDIES, name, short)
    row = ablations.measure(name, ablations.BASE, seed=1, games=2)
    assert row["done"] >= next(iter(short.base.values()))
    assert row["seconds"] > 0
    assert {*study.looks} <= {*row}
