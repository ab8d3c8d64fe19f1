"""CarolusBench: fixed games, deals and seeds, to compare results across papers.

Version 2 (`BENCH_V2`) rates an agent on the ladder and asks it for the decisions of the suite.
Version 1 (`BENCH_V1`) plays four fixed opponents. docs/bench.md says what to report.

A protocol never changes: other opponents, rules or deals get another version number. A test
pins the opponents' decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from carolus_env.analysis.suite.data import Suite, shipped
from carolus_env.arena import ladder
from carolus_env.arena.columns import Results
from carolus_env.arena.ladder import Place
from carolus_env.arena.pairing import play_pairing
from carolus_env.arena.seating import Plan, pairing
from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules


@dataclass(frozen=True)
class Protocol:
    """A fixed benchmark for agents: the same opponents for all of them.

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
        check_players(self.name, self.deals, players)
        return Plan(
            Rules(players), (agent, *self.opponents), "field", self.deals[players], self.seed
        )


BENCH_V1: Final = Protocol(
    "CarolusBench v1",
    ("random", "greedy", "planner", "mcts:sims=100"),
    {2: 250, 3: 50, 4: 150},
    20_261_121,
)


@dataclass(frozen=True)
class LadderProtocol:
    """A fixed benchmark for agents of any strength: the nearest rungs, and a suite of positions.

    Attributes:
        name: for papers.
        ladder: hash of the ladder (`ladder.version_hash`).
        suites: hash of the suite, by number of players.
        half: of the suite's decisions.
        rungs: met, the nearest to a guess of the agent's rating.
        few: games against each rung that is asked for that guess.
        deals: against each rung, by number of players; each is played in all seatings.
        seed: of the first deal.
        guess_seed: of the first deal of the games for the guess.
    """

    name: str
    ladder: str
    suites: Mapping[int, str]
    half: str
    rungs: int
    few: int
    deals: Mapping[int, int]
    seed: int
    guess_seed: int

    def suite(self, players: int) -> Suite:
        """The suite of positions.

        Raises:
            ValueError: for a number of players that the protocol does not have, and where the
                package's ladder or suite is not the protocol's.
        """
        check_players(self.name, self.deals, players)
        suite = shipped(players)
        for what, wanted, got in (
            ("ladder", self.ladder, ladder.version_hash()),
            (f"suite of {players} players", self.suites[players], suite.digest),
        ):
            if wanted != got:
                raise ValueError(f"{self.name} has the {what} with hash {wanted}, got {got}")
        return suite

    def opponents(self, agent: Agent, players: int) -> tuple[str, ...]:
        """The rungs that it meets, the weakest first; a few games say which are near."""
        rules = Rules(players)

        def wins(spec: str) -> bool:
            played = play_pairing((agent, make(spec)), rules, self.few, seed=self.guess_seed)
            return played.win_rate[0] > 0.5

        elo = ladder.guess(players, wins)
        met = ladder.nearest(players, elo, self.rungs, searchers=True)
        return tuple(rung.spec for rung in sorted(met, key=lambda rung: rung.elo))

    def plan(self, agent: str, players: int, opponents: Sequence[str]) -> Plan:
        """The tournament of ``agent``, a spec or another name, against the rungs that it meets."""
        return Plan(
            Rules(players),
            (agent, *opponents),
            "field",
            self.deals[players],
            self.seed,
        )

    def place(self, plan: Plan, results: Results) -> Place:
        """Return the agent's rating."""
        met = {
            spec: results.rows((results.tables == number).any(axis=1))
            for number, spec in enumerate(plan.agents[1:], 1)
        }
        players = plan.rules.players
        return ladder.place(players, met)


BENCH_V2: Final = LadderProtocol(
    "CarolusBench v2",
    ladder="669b5fcb8dc3",
    suites={2: "faced290071a", 3: "035da15d3e22", 4: "c62ecd47d096"},
    half="report",
    rungs=4,
    few=24,
    deals={2: 125, 3: 42, 4: 125},
    seed=20_261_123,
    guess_seed=21_261_123,
)


def check_players(name: str, known: Mapping[int, Any], players: int) -> None:
    """Raise a `ValueError` for a number of players that a protocol does not have."""
    if players not in known:
        raise ValueError(f"{name} has {sorted(known)} players, got {players!r}")


def score(summary: Mapping[str, Any]) -> float:
    """Mean win rate of the first agent against the others, from 0 to 1: that of version 1."""
    rates = [pairing["win_rate"][0] for pairing in summary["pairings"]]
    return sum(rates) / len(rates)


def protocol_table() -> str:
    """`BENCH_V2` as a Markdown table (docs/bench.md holds it; a test compares)."""
    found = BENCH_V2
    lines = [
        "| players | rungs met | deals, each | games, each | seed | suite |",
        "| --- " * 6 + "|",
    ]
    for players, deals in found.deals.items():
        games = deals * len(pairing(Rules(players)).seatings)
        decisions = len(found.suite(players).half(found.half))
        lines.append(
            f"| {players} | the {found.rungs} nearest | {deals} | {games} | {found.seed:,} | "
            f"`{found.suites[players]}`, {decisions} decisions |"
        )
    return "\n".join(lines) + "\n"


def first_protocol_table() -> str:
    """`BENCH_V1` as a Markdown table."""
    lines = ["| players | opponents | deals, each | games, each | seed |", "| --- " * 5 + "|"]
    for players, deals in BENCH_V1.deals.items():
        plan = BENCH_V1.plan("yours", players)
        games = plan.games // len(BENCH_V1.opponents)
        names = ", ".join(f"`{name}`" for name in BENCH_V1.opponents)
        lines.append(f"| {players} | {names} | {deals} | {games} | {BENCH_V1.seed:,} |")
    return "\n".join(lines) + "\n"
