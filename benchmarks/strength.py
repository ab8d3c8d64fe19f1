"""Strength of the shipped agents: matches on paired deals.

    python -m benchmarks.strength --save             # all matches that the results lack
    python -m benchmarks.strength --players 3 4 --save

Finished games are stored in --folder, so the same command continues an interrupted run. A match is
played again when the weights of its agents have changed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from benchmarks.machine import line
from benchmarks.results import Row, load, markdown, measuring_parser, save
from carolus_env import evaluation
from carolus_env.bots.models import FOLDER
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import console
from carolus_env.evaluation.seating import deals_for, pairing

SEED: Final = 2_000_000_011
MATCHES: Final[dict[int, dict[tuple[str, str], int]]] = {
    2: {
        ("ppo:2p", "planner"): 2000,
        ("ppo:2p", "mcts:sims=100"): 400,
        ("ppo:2p", "value:2p"): 400,
        ("value:2p", "planner"): 1000,
        ("value:2p", "mcts:sims=100"): 1000,
        ("search:2p,sims=100", "value:2p"): 200,
    },
    3: {
        ("ppo:3p", "planner"): 600,
        ("ppo:3p", "mcts:sims=100"): 120,
        ("value:3p", "planner"): 1500,
        ("value:3p", "mcts:sims=100"): 600,
        ("search:3p,sims=100", "mcts:sims=100"): 120,
    },
    4: {
        ("ppo:4p", "planner"): 600,
        ("ppo:4p", "mcts:sims=100"): 120,
        ("value:4p", "planner"): 800,
        ("value:4p", "mcts:sims=100"): 240,
        ("search:4p,sims=100", "mcts:sims=100"): 120,
    },
}
"""Games of each pairing, by number of players; rounded up to whole deals."""
MODELS: Final = {"ppo": "ppo", "value": "value", "search": "value"}
"""The kind of model that a bot plays by."""


def digest(players: int, pair: tuple[str, str]) -> str:
    """Return a digest of the shipped weights that a pair plays by."""
    kinds = {MODELS[bot] for spec in pair if (bot := spec.partition(":")[0]) in MODELS}
    hashes = [json.loads((FOLDER / f"{k}_{players}p.json").read_text())["sha256"] for k in kinds]
    return "-".join(sorted(result[:12] for result in hashes))


def match(players: int, pair: tuple[str, str], folder: Path, workers: int) -> Row:
    """Play what is missing of a match, and return its row."""
    rules = Rules(players)
    deals = deals_for(MATCHES[players][pair], len(pairing(rules).seatings))
    cup = evaluation.Tournament(evaluation.Plan(rules, pair, deals=deals, seed=SEED))
    model = digest(players, pair)
    file = folder / f"{players}-{'-'.join(pair)}-{deals}-{model}.jsonl".replace(":", "_")
    with console.watching(cup) as progress:
        cup.run(workers=workers, file=file, resume=file.exists(), progress=progress)
    [result] = cup.pairings()
    return {
        "players": players,
        "pair": list(pair),
        "games": result.games,
        "win_rate": result.win_rate[0],
        "ci95": list(result.ci95[0]),
        "model": model,
        "machine": line(),
    }


def table(rows: list[Row]) -> str:
    """Return the matches with their 95 % intervals."""
    lines = [
        [
            *(f"`{row['pair'][0]}`", f"`{row['pair'][1]}`", str(row["players"])),
            *(f"{row['games']:,}", f"{100 * row['win_rate']:.1f} %"),
            f"{100 * row['ci95'][0]:.1f} - {100 * row['ci95'][1]:.1f}",
        ]
        for row in rows
    ]
    return markdown(["agent", "against", "players", "games", "win rate", "95 % interval"], lines)


def main() -> int:
    """Play what the results lack, print the table, and save the rows if asked."""
    parser = measuring_parser(__doc__, workers=1)
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--folder", type=Path, default=Path("runs/strength"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = {(row["players"], *row["pair"]): row for row in load("strength")}
    rows = []
    for players, matches in MATCHES.items():
        for pair in matches:
            row = known.get((players, *pair))
            stale = row is None or row["model"] != digest(players, pair)
            if stale and players in options.players:
                row = match(players, pair, options.folder, options.workers)
            if row is not None:
                rows.append(row)
                if options.save:
                    save("strength", [*rows, *(r for r in known.values() if r not in rows)])
    print(table(rows))
    if options.save:
        save("strength", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
