"""How strong the models of the package are: matches against the bots, and with search.

    python benchmarks/models.py                     # all matches that are not in the results yet
    python benchmarks/models.py --players 3 4
    python benchmarks/models.py --again --players 2 # play them once more

Paired deals, the likeliest action. Each match is written down when it is over, so the same command
goes on where it was stopped. Where a model stands on the ladder is written into its JSON, too. The
machine does not matter to the matches by simulations; it does to
those by seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from machine import line

from agents.training import ladder_rating
from carolus_env import arena, bots
from carolus_env.bots.model import SHIPPED
from carolus_env.files import write_json
from carolus_env.rules import Rules

RESULTS = Path(__file__).parent / "results" / "models.json"
SEED = 2_000_000_011

MATCHES: dict[int, dict[tuple[str, str], int]] = {
    2: {
        ("ppo:2p", "random"): 2000,
        ("ppo:2p", "greedy"): 2000,
        ("ppo:2p", "planner"): 2000,
        ("ppo:2p", "mcts:sims=100"): 100,
        ("search:2p,sims=100", "mcts:sims=100"): 100,
        ("search:2p,sims=100", "ppo:2p"): 100,
        ("search:2p,seconds=0.1", "mcts:seconds=0.1"): 40,
    },
    3: {
        ("ppo:3p", "random"): 600,
        ("ppo:3p", "greedy"): 600,
        ("ppo:3p", "planner"): 600,
        ("ppo:3p", "mcts:sims=100"): 60,
    },
    4: {
        ("ppo:4p", "random"): 600,
        ("ppo:4p", "greedy"): 600,
        ("ppo:4p", "planner"): 600,
        ("ppo:4p", "mcts:sims=100"): 100,
    },
}
"""Games of each pairing, by number of players."""


def digest(players: int) -> str:
    """Which weights are shipped, so that matches of others are played again."""
    about = json.loads((SHIPPED / f"{players}p.json").read_text())
    return str(about["sha256"][:12])


def match(players: int, pair: tuple[str, str], games: int) -> dict[str, Any]:
    """Play one, and what there is to say of it."""
    started = time.perf_counter()
    made = bots.make(pair[0]), bots.make(pair[1])
    result = arena.play_pairing(made, Rules(players), games, seed=SEED)
    row = {
        "players": players,
        "pair": list(pair),
        "games": result.games,
        "wins": list(result.wins),
        "win_rate": result.win_rate[0],
        "ci95": list(result.ci95[0]),
        "rounds": result.mean_rounds,
        "seed": SEED,
        "seconds": round(time.perf_counter() - started, 1),
        "model": digest(players),
        "machine": line(),
    }
    low, high = row["ci95"]
    print(
        f"{players}  {pair[0]:24} : {pair[1]:18} {row['games']:5} games  "
        f"{100 * row['win_rate']:5.1f} % ({100 * low:.1f} - {100 * high:.1f})  "
        f"{row['seconds']:.0f} s",
        flush=True,
    )
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--again", action="store_true", help="play what was played already")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for players in options.players:
        for pair, games in MATCHES[players].items():
            known = [row for row in rows if row["pair"] == list(pair)]
            current = known and known[0]["model"] == digest(players)
            if current and not options.again:
                continue
            rows = [row for row in rows if row not in known]
            rows.append(match(players, pair, games))
            order = [list(pair) for matches in MATCHES.values() for pair in matches]
            rows.sort(key=lambda row: order.index(row["pair"]))
            write_json(RESULTS, rows)
        note_rating(players, rows)
    return 0


def note_rating(players: int, rows: list[dict[str, Any]]) -> None:
    """Write the rating on the ladder into the shipped model's JSON."""
    path = SHIPPED / f"{players}p.json"
    met = {row["pair"][1]: row for row in rows if row["pair"][0] == f"ppo:{players}p"}
    about = json.loads(path.read_text())
    about["about"]["ladder"] = {
        "elo": ladder_rating(players, met),
        "win_rates": {spec: round(row["win_rate"], 4) for spec, row in met.items()},
        "games": {spec: row["games"] for spec, row in met.items()},
    }
    write_json(path, about)


if __name__ == "__main__":
    sys.exit(main())
