"""CarolusBench stays what it is: its content, and opponents that play as they always did."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from test_bots import middle_games

from carolus_env import bots
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.engine.streams import new_streams
from carolus_env.evaluation import bench, ladder


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_package_has_the_content_of_the_protocol(players):
    assert bench.suite(players).digest == bench.SUITES[players]
    plan = bench.plan("yours", players, ["planner", "greedy"])
    assert plan.rules == Rules(players)
    assert (plan.agents, plan.schedule) == (("yours", "planner", "greedy"), "field")
    assert (plan.deals, plan.seed) == ({2: 125, 3: 42, 4: 125}[players], 20_261_123)


def test_other_content_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"CarolusBench 1 has \[2, 3, 4\] players, got 5"):
        bench.suite(5)
    monkeypatch.setattr(ladder, "digest", lambda: "0" * 12)
    with pytest.raises(ValueError, match=f"has the ladder with hash {bench.LADDER}, got 000000"):
        bench.suite(2)


RUNGS = {
    "random": "12d5ea758ad61078",
    "greedy": "8dc5630234fdd59c",
    "planner": "e796345d88e4fde8",
    "mcts:sims=100": "5f08148be9253f2f",
}


@pytest.mark.parametrize(("spec", "wanted"), RUNGS.items())
def test_the_rungs_play_as_they_did(spec, wanted):
    """Where this fails on purpose, the protocol gets another version."""
    result = []
    for players in (2, 3, 4):
        states = middle_games(Rules(players), 12)
        turns = states[(states["phase"] != PLACE) | (states["placements_left"] >= 3)]
        chosen = turns[:: 3 if spec != "mcts:sims=100" else 9].copy()
        result.append(bots.make(spec).act(chosen, new_streams(1, len(chosen))))
    numbers = np.asarray(np.concatenate(result), "<i8")
    assert hashlib.sha256(numbers.tobytes()).hexdigest()[:16] == wanted


def test_an_agent_meets_the_rungs_near_it():
    lowest = tuple(rung.spec for rung in ladder.rungs(2)[:4])
    assert bench.opponents(bots.make("random"), 2) == lowest
    assert "planner" in bench.opponents(bots.make("planner"), 2)
