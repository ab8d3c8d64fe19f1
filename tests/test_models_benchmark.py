"""benchmarks/models.py: the rating on the ladder, and the matches."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import models  # noqa: E402


def test_the_ladder_rating_grows_with_the_results():
    def rating(rate):
        return models.ladder_rating(2, {"planner": {"win_rate": rate, "games": 100}})

    assert rating(0.2) < rating(0.5) < rating(0.8)
    assert rating(0.5) == pytest.approx(0, abs=0.1), "planner is the anchor"
    assert models.ladder_rating(2, {"mine.py:Bot": {"win_rate": 0.5, "games": 100}}) is None


@pytest.mark.parametrize(("spec", "folder"), models.RATED.items())
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_shipped_models_hold_the_rating_of_their_matches(players, spec, folder):
    rows = json.loads(models.RESULTS.read_text())
    met = {row["pair"][1]: row for row in rows if row["pair"][0] == spec.format(players)}
    about = json.loads((folder / f"{players}p.json").read_text())["about"]
    assert about["ladder"]["elo"] == models.ladder_rating(players, met)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_results_are_those_of_the_shipped_models(players):
    rows = [row for row in json.loads(models.RESULTS.read_text()) if row["players"] == players]
    assert [models.which(row)[1] for row in rows] == list(models.MATCHES[players])
    for row in rows:
        assert row["model"] == models.digest(players, models.which(row)[1]), row["pair"]
