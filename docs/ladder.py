"""Play the ladder, the table of all bots: ``python docs/ladder.py``, or ``make ladder``.

Round robins with 2, 3 and 4 players and fixed seeds. The summaries go to benchmarks/results/, from
which docs/tables.py makes the tables of docs/ladder.md. Search budgets are numbers of simulations,
so the games are the same on every machine; only the times differ.

Games are stored in --folder: the same command resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from carolus_env import arena
from carolus_env.arena import console
from carolus_env.engine.rules import Rules
from carolus_env.system.files import write_json

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
SEED = 7
AGENTS = {
    2: ("random", "greedy", "planner", "mcts:sims=25", "mcts:sims=100", "mcts:sims=400"),
    3: ("random", "greedy", "planner", "mcts:sims=25", "mcts:sims=100"),
    4: ("random", "greedy", "planner", "mcts:sims=25", "mcts:sims=100"),
}
DEALS = {2: 60, 3: 12, 4: 40}


def plan(players: int) -> arena.Plan:
    """The round robin for that number of players."""
    return arena.Plan(Rules(players), AGENTS[players], deals=DEALS[players], seed=SEED)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/ladder"), help="where the games are stored"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for players in options.players:
        cup = arena.Tournament(plan(players))
        file = options.folder / f"{players}.jsonl"
        with console.watching(cup) as progress:
            cup.run(workers=options.workers, file=file, resume=file.exists(), progress=progress)
        summary = cup.summary()
        write_json(RESULTS / f"ladder_{players}.json", summary)
        console.print_tables(f"{players} players, seed {SEED}", cup, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
