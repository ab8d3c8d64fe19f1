"""CarolusBench stays what it is: rules, deals and opponents that play as they always did."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from test_bots import middle_games

from carolus_env import bots, engine
from carolus_env.arena.protocol import BENCH_V1, BENCH_V2, LadderProtocol, Protocol, score
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.engine.streams import new_streams


def test_version_1_never_changes():
    assert (
        Protocol(
            "CarolusBench v1",
            ("random", "greedy", "planner", "mcts:sims=100"),
            {2: 250, 3: 50, 4: 150},
            20_261_121,
        )
        == BENCH_V1
    )
    for players, deals in BENCH_V1.deals.items():
        plan = BENCH_V1.plan("yours", players)
        assert plan.rules == Rules(players)
        assert (plan.schedule, plan.deals, plan.seed) == ("field", deals, 20_261_121)
        assert plan.agents == ("yours", *BENCH_V1.opponents)
    with pytest.raises(ValueError, match=r"CarolusBench v1 has \[2, 3, 4\] players, got 5"):
        BENCH_V1.plan("yours", 5)


def digest(numbers: np.ndarray) -> str:
    return hashlib.sha256(np.asarray(numbers, "<i8").tobytes()).hexdigest()[:16]


def test_the_deals_of_version_1_are_what_they_were():
    games = engine.new_games(Rules(3), 4, seed=BENCH_V1.seed)
    assert digest(games["region_paladins"].argmax(axis=1)) == "1c816d94c8387202"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("random", "12d5ea758ad61078"),
        ("greedy", "8dc5630234fdd59c"),
        ("planner", "e796345d88e4fde8"),
        ("mcts:sims=100", "5f08148be9253f2f"),
    ],
)
def test_the_opponents_of_version_1_play_as_they_did(spec, wanted):
    """Where this fails on purpose, the protocol becomes version 2."""
    assert spec in BENCH_V1.opponents
    found = []
    for players in (2, 3, 4):
        states = middle_games(Rules(players), 12)
        turns = states[(states["phase"] != PLACE) | (states["placements_left"] >= 3)]
        chosen = turns[:: 3 if spec != "mcts:sims=100" else 9].copy()
        found.append(bots.make(spec).act(chosen, new_streams(1, len(chosen))))
    assert digest(np.concatenate(found)) == wanted


def test_the_score_is_the_mean_win_rate():
    pairings = [{"win_rate": [rate, 1 - rate]} for rate in (1.0, 0.75, 0.5, 0.25)]
    assert score({"pairings": pairings}) == pytest.approx(0.625)


def test_version_2_never_changes():
    """Where this fails on purpose, the protocol becomes version 3."""
    assert (
        LadderProtocol(
            "CarolusBench v2",
            "669b5fcb8dc3",
            {2: "faced290071a", 3: "035da15d3e22", 4: "c62ecd47d096"},
            "report",
            4,
            24,
            {2: 125, 3: 42, 4: 125},
            20_261_123,
            21_261_123,
        )
        == BENCH_V2
    )
    for players in BENCH_V2.deals:
        plan = BENCH_V2.plan("yours", players, ["planner", "greedy"])
        assert plan.rules == Rules(players)
        assert (plan.agents, plan.schedule) == (("yours", "planner", "greedy"), "field")
        assert (plan.deals, plan.seed) == (BENCH_V2.deals[players], BENCH_V2.seed)
        # What the package has is the protocol's: ladder, suite.
        assert BENCH_V2.suite(players).digest == BENCH_V2.suites[players]
    with pytest.raises(ValueError, match=r"CarolusBench v2 has \[2, 3, 4\] players, got 5"):
        BENCH_V2.suite(5)


@pytest.mark.parametrize(
    ("agent", "players", "wanted"),
    [
        ("random", 2, ("random", "greedy:errors=0.95", "greedy:errors=0.88", "greedy:errors=0.75")),
        pytest.param(
            "planner",
            4,
            ("planner:errors=0.09", "planner:errors=0.04", "planner", "value:4p,errors=0.1"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_version_2_meets_the_rungs_near_an_agent(agent, players, wanted):
    assert BENCH_V2.opponents(bots.make(agent), players) == wanted
