"""CarolusBench: fixed opponents, deals and seeds, to compare results across papers.

Every agent plays each opponent on the same deals, with 2, 3 and 4 players. Report the win rate
against each opponent, with the 95 % interval, and their mean, the score (docs/bench.md).

A protocol never changes: other opponents, rules or deals get another version number. A test
pins the opponents' decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from carolus_env.arena.seating import Plan
from carolus_env.engine.rules import Rules


@dataclass(frozen=True)
class Protocol:
    """A fixed benchmark for agents.

    Attributes:
        name: for papers.
        opponents: spec strings, the weakest first.
        deals: against each opponent, by number of players; each is played in all seatings.
        seed: of the first deal.
    """

    name: str
    opponents: tuple[str, ...]
    deals: Mapping[int, int]
    seed: int

    def plan(self, agent: str, players: int) -> Plan:
        """The tournament of ``agent``, a spec or another name, for that number of players.

        Raises:
            ValueError: for a number of players that the protocol does not have.
        """
        if players not in self.deals:
            raise ValueError(f"{self.name} has {sorted(self.deals)} players, got {players!r}")
        return Plan(
            Rules(players), (agent, *self.opponents), "field", self.deals[players], self.seed
        )


BENCH_V1: Final = Protocol(
    "CarolusBench v1",
    ("random", "greedy", "planner", "mcts:sims=100"),
    {2: 250, 3: 50, 4: 150},
    20_261_121,
)


def score(summary: Mapping[str, Any]) -> float:
    """Mean win rate of the first agent against the others, from 0 to 1."""
    rates = [pairing["win_rate"][0] for pairing in summary["pairings"]]
    return sum(rates) / len(rates)


def protocol_table() -> str:
    """`BENCH_V1` as a Markdown table (docs/bench.md holds it; a test compares)."""
    lines = ["| players | opponents | deals, each | games, each | seed |", "| --- " * 5 + "|"]
    for players, deals in BENCH_V1.deals.items():
        plan = BENCH_V1.plan("yours", players)
        games = plan.games // len(BENCH_V1.opponents)
        names = ", ".join(f"`{name}`" for name in BENCH_V1.opponents)
        lines.append(f"| {players} | {names} | {deals} | {games} | {BENCH_V1.seed:,} |")
    return "\n".join(lines) + "\n"
