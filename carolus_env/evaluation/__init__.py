"""Evaluation of agents: tournaments with ratings, rollouts of positions, a suite of decisions.

    >>> plan = evaluation.Plan(Rules(players=3), ("greedy", "random"), deals=100, seed=1)
    >>> cup = evaluation.Tournament(plan)
    >>> cup.run(workers=2, file="games.jsonl")
    >>> cup.summary()["agents"]

Tournaments: ``schedules`` (plans and stop rules), ``games`` (with the result of two agents),
``tournament``, ``journal`` (its file), ``ratings``, ``report``. One agent: ``ladder`` (opponents
with ratings), ``bench``. Positions: ``rollouts``, ``suite`` (decisions that were rolled out, and an
agent's regret on them).
"""

from carolus_env.evaluation.games import (
    ArenaError,
    PairingResult,
    Progress,
    Results,
    game_record,
    mean_interval,
    pairing_result,
    play_games,
    play_pairing,
)
from carolus_env.evaluation.journal import ResultsFileError, Saved, read_games
from carolus_env.evaluation.schedules import Fixtures, Plan, SequentialTest, pairing_tables
from carolus_env.evaluation.tournament import Tournament

__all__ = [
    "ArenaError",
    "Fixtures",
    "PairingResult",
    "Plan",
    "Progress",
    "Results",
    "ResultsFileError",
    "Saved",
    "SequentialTest",
    "Tournament",
    "game_record",
    "mean_interval",
    "pairing_result",
    "pairing_tables",
    "play_games",
    "play_pairing",
    "read_games",
]
