"""Games of a tournament replayed for viewing: they depend on its plan alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from carolus_env.arena.columns import Results
from carolus_env.arena.games import ArenaError, game_record, play_games
from carolus_env.arena.seating import Plan
from carolus_env.bots import Agent
from carolus_env.records import Record


def lost_games(plan: Plan, results: Results, agent: str) -> npt.NDArray[np.int64]:
    """Rows of the games that an agent lost: none of its seats has won or shares the win.

    Raises:
        ValueError: when the plan does not have the agent.
    """
    if agent not in plan.agents:
        raise ValueError(f"agent {agent!r} does not play; these do: {', '.join(plan.agents)}")
    mine = np.isin(results.tables, np.flatnonzero([name == agent for name in plan.agents]))
    lost = (results.returns < 0) | ~mine
    return np.flatnonzero(mine.any(axis=1) & lost.all(axis=1))


def records_of(
    plan: Plan, results: Results, rows: npt.NDArray[np.int64], agents: Sequence[Agent]
) -> list[Record]:
    """Play some of a tournament's games again, for their records.

    Args:
        plan: of the tournament.
        results: its games so far, in the plan's order.
        rows: which of them.
        agents: for each name in the plan.

    Raises:
        ArenaError: when a game ends otherwise than before, because an agent is limited by time
            or has changed.
    """
    wanted = results.rows(rows)
    actions: list[npt.NDArray[np.uint8]] = []
    again = play_games(
        wanted.tables,
        agents,
        plan.rules,
        seed=plan.seed,
        deals=wanted.deals,
        seatings=wanted.seatings,
        meetings=plan.fixtures(0, len(results)).meetings[rows],
        actions=actions,
    )
    same = (again.decisions == wanted.decisions) & (again.returns == wanted.returns)
    if not same.all():
        game = int(rows[int(np.argmin(same.all(axis=1)))])
        raise ArenaError(
            f"game {game} went differently when it was played again: an agent is limited by time, "
            "or has changed since; records written during the tournament show what was played"
        )
    found = []
    for row, played, table in zip(rows.tolist(), actions, wanted.tables, strict=True):
        deal, seating = int(results.deals[row]), int(results.seatings[row])
        about = {"game": row, "deal": deal, "seating": seating}
        names = [plan.agents[agent] for agent in table]
        found.append({**game_record(plan.rules, plan.seed, deal, played), **about, "agents": names})
    return found
