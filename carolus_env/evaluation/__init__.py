"""Evaluation of agents: tournaments with ratings, rollouts of positions, a suite of decisions.

`play_games` plays games with given seats, `play_pairing` compares two agents, and a `Tournament`
plays a `Plan`: every pair of agents, one agent against the others, three different agents at a
time, or teams of two different agents. It keeps its games in a file, resumes after a crash, and
stops when intervals are narrow enough or a test is decided.

Games of one *deal* share the set-up and the dice of each seat; every deal is played in all
seatings. The same seed gives the same games, on any number of processes and however many are
played at once. See docs/evaluation.md.

    >>> from carolus_env import bots, evaluation
    >>> from carolus_env.engine.rules import Rules
    >>> pair = bots.make("greedy"), bots.make("random")
    >>> result = evaluation.play_pairing(pair, Rules(players=3), 300, seed=1)
    >>> result.win_rate, result.ci95

``seating`` plans: who meets whom; ``columns`` the statistics of games and agents; ``games``
playing them; ``pairing`` win rates and intervals; ``journal`` the results file; ``summary`` the
statistics of a tournament; ``blocks`` games on workers; ``tournament`` resuming; ``stopping`` and
``sequential`` stop rules; ``console`` output to a terminal; ``bench`` CarolusBench; ``ladder`` the
agents with ratings; ``placing`` how strong one agent is; ``rollouts`` positions judged by play;
``suite`` positions with known regrets.
``ratings`` and ``report`` need the extra ``evaluation``.
"""

from carolus_env.evaluation.columns import Results
from carolus_env.evaluation.games import (
    ArenaError,
    Progress,
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
