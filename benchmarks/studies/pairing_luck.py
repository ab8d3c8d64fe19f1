"""How many games paired deals save: the variance of a win rate with and without them.

    python -m benchmarks.studies.pairing_luck greedy greedy
    python -m benchmarks.studies.pairing_luck planner greedy --players 2 3 4 --json luck.json

One pairing is played for each number of players, every deal in all S seatings. Let x be the first
agent's shares of the win in a deal's games. The variance of the win rate, times the number of
games, is

    paired        S var(mean of x)                  as the games were played
    independent   mean over seatings of var(x)      if each game had a separate deal, with the
                                                    seatings still equally frequent

Both come from the same games, because games of one seating on different deals are independent.
Their quotient says how many games on separate deals are worth one game on a paired deal: above
1, pairing saves games. The 95 % interval is a bootstrap over deals.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import arena
from carolus_env.engine.rules import Rules
from carolus_env.system.files import write_json

RESAMPLES = 2000


def win_shares(cup: arena.Tournament) -> npt.NDArray[np.float64]:
    """The first agent's share of the win in each game: ``(deals, seatings)``."""
    results = cup.results
    mine = (results.shares * (results.tables == 0)).sum(axis=1)
    return mine.reshape(cup.plan.deals, cup.plan.games_per_deal)


def variances(shares: npt.NDArray[np.float64]) -> tuple[Any, Any]:
    """Paired and independent variance of the mean, times the games; ``(..., deals, seatings)``."""
    paired = shares.shape[-1] * shares.mean(axis=-1).var(axis=-1, ddof=1)
    return paired, shares.var(axis=-2, ddof=1).mean(axis=-1)


def measure(agents: tuple[str, str], players: int, deals: int, seed: int, workers: int) -> Any:
    """Play one pairing, and print and return its row."""
    plan = arena.Plan(Rules(players), agents, deals=deals, seed=seed)
    cup = arena.Tournament(plan)
    cup.run(workers=workers)
    shares = win_shares(cup)
    paired, independent = variances(shares)
    rng = np.random.default_rng(0)
    again = [shares[rng.integers(0, deals, deals)] for _ in range(RESAMPLES)]
    quotients = [one / other if other else np.nan for other, one in map(variances, again)]
    low, high = np.nanquantile(quotients, [0.025, 0.975])
    row = {
        "agents": list(agents),
        "players": players,
        "deals": deals,
        "games": plan.games,
        "seed": seed,
        "win_rate": float(shares.mean()),
        "variance_paired": float(paired),
        "variance_independent": float(independent),
        "games_saved": float(independent / paired) if paired else None,
        "low": float(low),
        "high": float(high),
        "seconds": round(cup.seconds, 3),
    }
    saved = "-" if row["games_saved"] is None else f"{row['games_saved']:.2f}"
    print(
        f"{' : '.join(agents):30}{players:8}{plan.games:9,}{100 * row['win_rate']:10.1f}"
        f"{paired:9.4f}{independent:13.4f}{saved:>9} [{low:.2f}, {high:.2f}]",
        flush=True,
    )
    return row


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs=2, metavar="AGENT")
    parser.add_argument("--players", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--deals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    machine = line()
    print(machine)
    print(
        f"{'pairing':30}{'players':>8}{'games':>9}{'win rate':>10}"
        f"{'paired':>9}{'independent':>13}{'saved':>9}"
    )
    agents = (options.agents[0], options.agents[1])
    rows = [
        measure(agents, players, options.deals, options.seed, options.workers)
        for players in options.players
    ]
    if options.json:
        write_json(options.json, [{**row, "machine": machine} for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
