"""Evaluation of agents: tournaments with ratings, rollouts of positions, a suite of decisions.

    >>> plan = evaluation.Plan(Rules(players=3), ("greedy", "random"), deals=100, seed=1)
    >>> cup = evaluation.Tournament(plan)
    >>> cup.run(workers=2, file="games.jsonl")
    >>> cup.summary()["agents"]

Tournaments: ``seating`` (plans), ``games``, ``tournament``, ``journal`` (their file), ``pairing``,
``ratings``, ``sequential`` (stop rules), ``summary``, ``report``. One agent: ``ladder`` (opponents
with ratings), ``placing``, ``bench``. Positions: ``rollouts``, ``suite`` (decisions that were
rolled out, and an agent's regret on them).
"""

from carolus_env.evaluation.games import (
    ArenaError,
    Progress,
    Results,
    game_record,
    play_and_record,
    play_games,
)
from carolus_env.evaluation.journal import ResultsFileError, Saved, read_games
from carolus_env.evaluation.pairing import (
    PairingResult,
    mean_interval,
    pairing_result,
    play_pairing,
)
from carolus_env.evaluation.seating import Fixtures, Plan, pairing_tables
from carolus_env.evaluation.sequential import SequentialTest
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
    "play_and_record",
    "play_games",
    "play_pairing",
    "read_games",
]
