"""The arena: agents play many games side by side, and what they win is counted.

`play_games` plays any tables, `play_pairing` compares two agents, and a `Tournament` plays a whole
`Plan`: every pairing, one agent against a field, or mixed tables of three. It keeps its games in a
file, goes on after a crash, and stops when intervals are narrow enough.

Games of one *deal* share their set-up and, seat by seat, their dice; every deal is played in all
seatings. The same seed gives the same games, however many are played at once, on however many
processes. docs/evaluation.md tells more.

    >>> from carolus_env import arena, bots
    >>> from carolus_env.engine.rules import Rules
    >>> pair = bots.make("greedy"), bots.make("random")
    >>> result = arena.play_pairing(pair, Rules(players=3), 300, seed=1)
    >>> result.win_rate, result.ci95

``seating`` who meets whom, the plan; ``games`` and ``lockstep`` playing them; ``pairing`` win
rates and intervals; ``journal`` the results file; ``again``
games to look at; ``summary`` what it came to; ``tournament``
workers, resuming, stop rules; ``console`` what a terminal shows. ``ratings`` and ``report`` need
the extra ``arena``.
"""

from carolus_env.arena.again import lost_games, records_of
from carolus_env.arena.games import (
    ArenaError,
    Progress,
    Results,
    game_record,
    play_games,
)
from carolus_env.arena.journal import ResultsFileError, Saved, read_games
from carolus_env.arena.pairing import (
    PairingResult,
    mean_interval,
    pairing_result,
    play_pairing,
)
from carolus_env.arena.seating import (
    MOST_GAMES,
    SCHEDULES,
    Fixtures,
    Meeting,
    Plan,
    Until,
    meetings,
    pairing_tables,
)
from carolus_env.arena.tournament import Tournament

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
    "Tournament",
    "Until",
    "game_record",
    "lost_games",
    "mean_interval",
    "meetings",
    "pairing_result",
    "pairing_tables",
    "play_games",
    "play_pairing",
    "read_games",
    "records_of",
]
