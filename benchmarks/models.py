"""How strong the shipped models are: matches against the bots, alone and with search.

    python benchmarks/models.py                     # all matches that the results lack
    python benchmarks/models.py --players 3 4
    python benchmarks/models.py --again --players 2 # play all again

Paired deals, the likeliest action. Finished games are stored in --folder, so the same command
resumes an interrupted run: the match at one second a search takes some hours on one core. Each
model's rating on the ladder is also written into its JSON. Results of matches by simulations do not
depend on the machine; those by seconds do.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from machine import line

from carolus_env import arena
from carolus_env.arena import console, ladder
from carolus_env.arena.seating import deals_for, pairing
from carolus_env.bots.neural.model import SHIPPED as SINGLE
from carolus_env.bots.turns.model import SHIPPED as TURNS
from carolus_env.bots.value.model import SHIPPED as VALUES
from carolus_env.engine.rules import Rules
from carolus_env.system.files import write_json

FOLDER = Path(__file__).parent / "results"
RESULTS = FOLDER / "models.json"
SEED = 2_000_000_011

MATCHES: dict[int, dict[tuple[str, str], int]] = {
    2: {
        ("ppo:2p", "planner"): 2000,
        ("ppo:2p,discs=now", "planner"): 2000,
        ("ppo:2p", "mcts:sims=100"): 400,
        ("ppo:2p", "ppo:v1"): 2000,
        ("ppo:2p", "value:2p"): 400,
        ("ppo:v1", "random"): 2000,
        ("ppo:v1", "greedy"): 2000,
        ("ppo:v1", "planner"): 2000,
        ("ppo:v1", "mcts:sims=100"): 100,
        ("search:v1,sims=100", "mcts:sims=100"): 400,
        ("search:v1,sims=100", "ppo:v1"): 100,
        ("search:v1,seconds=1", "mcts:seconds=1"): 400,
        ("value:2p", "planner"): 1000,
        ("value:2p,candidates=1", "planner"): 400,
        ("value:2p", "ppo:v1"): 2000,
        ("value:2p", "mcts:sims=100"): 1000,
        ("value:2p", "search:v1,sims=100"): 400,
        ("search:2p,sims=100", "search:v1,sims=100"): 200,
        ("search:2p,sims=100", "value:2p"): 200,
    },
    3: {
        ("ppo:3p", "planner"): 600,
        ("ppo:3p,discs=now", "planner"): 600,
        ("ppo:3p", "mcts:sims=100"): 120,
        ("ppo:3p", "ppo:v1"): 600,
        ("ppo:v1", "random"): 600,
        ("ppo:v1", "greedy"): 600,
        ("ppo:v1", "planner"): 600,
        ("ppo:v1", "mcts:sims=100"): 60,
        ("search:v1,sims=100", "mcts:sims=100"): 120,
        ("value:3p", "planner"): 1500,
        ("value:3p", "ppo:v1"): 600,
        ("value:3p", "mcts:sims=100"): 600,
        ("search:3p,sims=100", "mcts:sims=100"): 120,
    },
    4: {
        ("ppo:4p", "planner"): 600,
        ("ppo:4p,discs=now", "planner"): 600,
        ("ppo:4p", "mcts:sims=100"): 120,
        ("ppo:4p", "ppo:v1"): 600,
        ("ppo:v1", "random"): 600,
        ("ppo:v1", "greedy"): 600,
        ("ppo:v1", "planner"): 600,
        ("ppo:v1", "mcts:sims=100"): 100,
        ("search:v1,sims=100", "mcts:sims=100"): 120,
        ("value:4p", "planner"): 800,
        ("value:4p", "ppo:v1"): 400,
        ("value:4p", "mcts:sims=100"): 240,
        ("search:4p,sims=100", "mcts:sims=100"): 120,
    },
}
"""Games of each pairing, by number of players; rounded up to whole deals."""

FOLDERS = {
    "ppo:v1": SINGLE,
    "search:v1": SINGLE,
    "ppo": TURNS,
    "value": VALUES,
    "search": VALUES,
}
"""Where the shipped models lie of agents whose spec begins so; the first that fits."""

RATED = {"ppo:{}p": TURNS, "ppo:v1": SINGLE, "value:{}p": VALUES}
"""The agents whose rating is written into their models' JSON, by the number of players."""


def digest(players: int, pair: tuple[str, str]) -> str:
    """Identifies the shipped weights of a match: matches of other weights are played again."""
    folders = {folder for spec in pair if (folder := models_of(spec)) is not None}
    hashes = [json.loads((f / f"{players}p.json").read_text())["sha256"] for f in folders]
    return "-".join(sorted(found[:12] for found in hashes))


def models_of(spec: str) -> Path | None:
    """Where the shipped models lie that an agent plays by; None: it has none."""
    for start, folder in FOLDERS.items():
        if spec.startswith(start):
            return folder
    return None


def journal(players: int, pair: tuple[str, str], folder: Path) -> Path:
    """The file of a match's games."""
    games = plan(players, pair).games
    name = f"{players}-{'-'.join(pair)}-{games}-{digest(players, pair)}.jsonl"
    return folder / name.replace(":", "_")


def plan(players: int, pair: tuple[str, str]) -> arena.Plan:
    """The games of a match."""
    rules = Rules(players)
    deals = deals_for(MATCHES[players][pair], len(pairing(rules).seatings))
    return arena.Plan(rules, pair, deals=deals, seed=SEED)


def match(players: int, pair: tuple[str, str], file: Path, workers: int) -> dict[str, Any]:
    """Play what is missing of a match, and return its row."""
    cup = arena.Tournament(plan(players, pair))
    with console.watching(cup) as progress:
        cup.run(workers=workers, file=file, resume=file.exists(), progress=progress)
    [result] = cup.pairings()
    row = {
        "players": players,
        "pair": list(pair),
        "games": result.games,
        "wins": list(result.wins),
        "win_rate": result.win_rate[0],
        "ci95": list(result.ci95[0]),
        "rounds": result.mean_rounds,
        "seed": SEED,
        "workers": workers,
        "model": digest(players, pair),
        "machine": line(),
    }
    low, high = row["ci95"]
    print(
        f"{players}  {pair[0]:24} : {pair[1]:18} {row['games']:5} games  "
        f"{100 * row['win_rate']:5.1f} % ({100 * low:.1f} - {100 * high:.1f})",
        flush=True,
    )
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--again", action="store_true", help="play all matches again")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("runs/models"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    order = [(players, pair) for players, matches in MATCHES.items() for pair in matches]
    rows = [row for row in rows if which(row) in order]
    if options.again:
        rows = [row for row in rows if row["players"] not in options.players]
        write_json(RESULTS, rows)
    for players in options.players:
        for pair in MATCHES[players]:
            file = journal(players, pair, options.folder)
            if options.again:
                file.unlink(missing_ok=True)
            known = [row for row in rows if which(row) == (players, pair)]
            asked = digest(players, pair), plan(players, pair).games
            if known and (known[0]["model"], known[0]["games"]) == asked:
                continue
            rows = [row for row in rows if row not in known]
            rows.append(match(players, pair, file, options.workers))
            rows.sort(key=lambda row: order.index(which(row)))
            write_json(RESULTS, rows)
        for spec, folder in RATED.items():
            path = folder / f"{players}p.json"
            note_rating(spec.format(players), path, players, rows)
    return 0


def which(row: Mapping[str, Any]) -> tuple[int, tuple[str, str]]:
    """The match of a row: the number of players and the pair."""
    one, other = row["pair"]
    return row["players"], (one, other)


def note_rating(spec: str, path: Path, players: int, rows: list[dict[str, Any]]) -> None:
    """Write a model's rating on the ladder into its JSON."""
    met = {row["pair"][1]: row for row in rows if row["pair"][0] == spec}
    about = json.loads(path.read_text())
    about["about"]["ladder"] = {
        "elo": ladder_rating(players, met),
        "win_rates": {spec: round(row["win_rate"], 4) for spec, row in met.items()},
        "games": {spec: row["games"] for spec, row in met.items()},
    }
    write_json(path, about)


def ladder_rating(players: int, results: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Elo on the ladder (docs/ladder.md), from results against its rungs; None without any."""
    known = {rung.spec for rung in ladder.rungs(players)}
    met = {k: (row["win_rate"], row["games"]) for k, row in results.items() if k in known}
    return round(ladder.elo_of(players, met), 1) if met else None


if __name__ == "__main__":
    sys.exit(main())
