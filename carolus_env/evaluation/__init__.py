"""Evaluation of agents: tournaments with ratings, rollouts of positions, a suite of decisions.

    >>> from carolus_env import evaluation
    >>> from carolus_env.engine.rules import Rules
    >>> result = evaluation.play_pairing(("greedy", "random"), Rules(players=3), 300, seed=1)
    >>> result.win_rate, result.ci95
    >>> cup = evaluation.Tournament(evaluation.Plan(Rules(3), ("greedy", "random"), deals=100))
    >>> cup.run(workers=2, file="games.jsonl")
    >>> cup.summary()["agents"]

Tournaments: ``seating`` plans who meets whom; ``games`` plays; ``tournament`` plays a plan, in
blocks that workers play; ``journal`` is the results file; ``pairing`` has win rates, ``ratings``
Elo, ``sequential`` stop rules; ``summary`` is all of them; ``tables`` and ``report`` show it.
One agent: ``ladder`` has opponents with ratings; ``placing`` and ``bench`` rate by them.
Positions: ``rollouts`` compares choices by ``sampling`` games; ``suite`` holds decisions that were
rolled out, ``regret`` measures agents by them. See docs/evaluation.md and docs/bench.md.
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
