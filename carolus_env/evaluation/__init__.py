"""Evaluation of agents: tournaments with ratings, rollouts of positions, a suite of decisions.

`play_games` plays games with given seats, `play_pairing` compares two agents, and a `Tournament`
plays a `Plan`: every pair of agents, or one agent against the others. It keeps its games in a file,
resumes after a crash, and stops when intervals are narrow enough or a test is decided.

Games of one *deal* share the set-up and the dice of each seat; every deal is played in all
seatings. The same seed gives the same games, on any number of processes and however many are
played at once. See docs/evaluation.md.

    >>> from carolus_env import bots, evaluation
    >>> from carolus_env.engine.rules import Rules
    >>> pair = bots.make("greedy"), bots.make("random")
    >>> result = evaluation.play_pairing(pair, Rules(players=3), 300, seed=1)
    >>> result.win_rate, result.ci95

A tournament: ``seating`` plans who meets whom; ``games`` plays; ``tournament`` plays a plan, in
blocks that workers play; ``journal`` is the results file; ``pairing`` has win rates,
``ratings`` Elo, ``sequential`` stop rules; ``summary`` is all that was found; ``tables`` and
``report`` (extra ``evaluation``) show it.
One agent: ``ladder`` has opponents with ratings; ``placing`` and ``bench`` (CarolusBench) rate by
them.
Positions: ``rollouts`` compares choices by ``sampling`` games; ``suite`` holds decisions that were
rolled out, ``regret`` measures agents by them.
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
from carolus_env.evaluation.seating import (
    MOST_GAMES,
    SCHEDULES,
    Fixtures,
    Meeting,
    Plan,
    meetings,
    pairing_tables,
)
from carolus_env.evaluation.sequential import SequentialTest
from carolus_env.evaluation.tournament import Tournament

__all__ = [
    "MOST_GAMES",
    "SCHEDULES",
    "ArenaError",
    "Fixtures",
    "Meeting",
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
    "meetings",
    "pairing_result",
    "pairing_tables",
    "play_and_record",
    "play_games",
    "play_pairing",
    "read_games",
]
