"""Strength and speed of the shipped agents: matches on paired deals, and time a decision.

    python -m benchmarks.strength --save             # all matches that the results lack
    python -m benchmarks.strength --players 3 4 --save

Finished games are stored in --folder, so the same command continues an interrupted run. A match is
played again when the weights or the default options of its agents have changed. Then every agent
plays some games against itself, and its processor time is divided by its decisions.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.machine import line
from benchmarks.results import Row, by_players, interval, load, markdown, measuring_parser, save
from carolus_env import bots, evaluation
from carolus_env.bots import lockstep
from carolus_env.bots.network import TYPES
from carolus_env.bots.registry import OPTIONS
from carolus_env.engine.chance import Deals
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import report
from carolus_env.evaluation.games import PairingResult
from carolus_env.evaluation.schedules import deals_for, seatings_of
from carolus_env.networks.files import path_of

SEED: Final = 2_000_000_011
MATCHES: Final[dict[int, dict[tuple[str, str], int]]] = {
    2: {
        ("decisions:2p", "planner"): 1000,
        ("decisions:2p", "ppo:2p"): 400,
        ("ppo:2p", "planner"): 2000,
        ("ppo:2p", "mcts:sims=100"): 400,
        ("ppo:2p", "value:2p"): 400,
        ("value:2p", "planner"): 1000,
        ("value:2p", "mcts:sims=100"): 400,
        ("search:2p,sims=200", "planner"): 1000,
        ("search:2p,sims=200", "mcts:sims=100"): 400,
        ("search:2p,sims=200", "value:2p"): 400,
    },
    3: {
        ("decisions:3p", "planner"): 600,
        ("ppo:3p", "planner"): 600,
        ("ppo:3p", "mcts:sims=100"): 120,
        ("value:3p", "planner"): 1500,
        ("value:3p", "mcts:sims=100"): 240,
        ("search:3p,sims=200", "planner"): 1500,
        ("search:3p,sims=200", "mcts:sims=100"): 240,
        ("search:3p,sims=200", "value:3p"): 240,
    },
    4: {
        ("decisions:4p", "planner"): 600,
        ("ppo:4p", "planner"): 600,
        ("ppo:4p", "mcts:sims=100"): 120,
        ("value:4p", "planner"): 800,
        ("value:4p", "mcts:sims=100"): 240,
        ("search:4p,sims=200", "planner"): 800,
        ("search:4p,sims=200", "mcts:sims=100"): 240,
        ("search:4p,sims=200", "value:4p"): 240,
    },
}
"""Games of each pairing, by number of players; rounded up to whole deals. Fewer where an agent
takes milliseconds a decision."""
AGENTS: Final = {
    "planner": "an evaluation of its whole turn",
    "decisions": "a policy over single decisions",
    "ppo": "a policy over whole turns",
    "value": "the value of positions after its turn",
    "search:sims=200": "that value at the leaves of a tree",
}
"""The agents that are set beside `planner`, and what each plays by."""
TIMED: Final = {"": 200, "sims=100": 4, "sims=200": 4}
"""Games in which decisions are timed, by the end of a spec."""
MODELS: Final = {"decisions": "decisions", "ppo": "ppo", "value": "value", "search": "value"}
"""The kind of model that a bot plays by."""


def spec_of(agent: str, players: int) -> str:
    """Return the spec of one of `AGENTS` for a number of players."""
    name, _, options = agent.partition(":")
    model = f"{players}p" if name in MODELS else ""
    return ":".join(filter(None, (name, ",".join(filter(None, (model, options))))))


def digest(players: int, specs: Sequence[str]) -> str:
    """Return a digest of the shipped weights and the default options that agents play by."""
    names = {spec.partition(":")[0] for spec in specs}
    kinds = {MODELS[bot] for bot in names if bot in MODELS}
    paths = {kind: path_of(kind, f"{players}p") for kind in kinds}
    hashes = [TYPES[kind].load(path).digest() for kind, path in paths.items()]
    defaults = "".join(repr(OPTIONS[bot]()) for bot in sorted(names))
    hashes.append(hashlib.sha256(defaults.encode()).hexdigest())
    return "-".join(result[:12] for result in sorted(hashes))


def play(
    players: int, pair: tuple[str, str], games: int, seed: int, folder: Path, workers: int
) -> tuple[PairingResult, Row]:
    """Play what is missing of a match; return its result, and what every row says of a match."""
    rules = Rules(players)
    deals = deals_for(games, len(seatings_of(rules)))
    cup = evaluation.Tournament(evaluation.Plan(rules, pair, deals=deals, seed=seed))
    model = digest(players, pair)
    file = folder / f"{players}-{'-'.join(pair)}-{deals}-{model}.jsonl".replace(":", "_")
    with report.watching(cup) as progress:
        cup.run(workers=workers, file=file, resume=file.exists(), progress=progress)
    [result] = cup.pairings()
    return result, {
        "games": result.games,
        "win_rate": result.win_rate[0],
        "ci95": list(result.ci95[0]),
        "model": model,
        "machine": line(),
    }


def match(players: int, pair: tuple[str, str], folder: Path, workers: int) -> Row:
    """Play what is missing of a match, and return its row."""
    _, row = play(players, pair, MATCHES[players][pair], SEED, folder, workers)
    return {"players": players, "pair": list(pair), **row}


def timed(players: int, spec: str) -> Row:
    """Let an agent play against itself, and return its processor time a decision."""
    agent, milliseconds = bots.make(spec), 0.0
    for games in (1, TIMED[max((end for end in TIMED if spec.endswith(end)), key=len)]):
        deals, decisions = Deals.of(SEED, np.arange(games)), 0
        tables = np.zeros((games, players), np.int64)
        start = lockstep.Games(deals.games(Rules(players)), tables, deals.streams())
        before = time.process_time()
        for step in lockstep.play(start, [agent]):
            decisions += len(step.rows)
        milliseconds = 1e3 * (time.process_time() - before) / decisions  # the first game compiles
    return {
        "players": players,
        "agent": spec,
        "ms": milliseconds,
        "model": digest(players, [spec]),
        "machine": line(),
    }


def summary(matches: list[Row], times: list[Row]) -> str:
    """Return what each of `AGENTS` wins against `planner`, and its longest time a decision."""
    won = {tuple(row["pair"]): row for row in matches}
    spent = {(row["players"], row["agent"]): row["ms"] for row in times}
    lines = []
    for agent, about in AGENTS.items():
        specs = {players: spec_of(agent, players) for players in MATCHES}
        rows = [won.get((spec, "planner")) for spec in specs.values()]
        longest = max(spent[case] for case in specs.items())
        cells = [interval(row) if row else "-" for row in rows]
        lines.append([f"`{agent}`", about, *cells, f"{longest:.2f} ms"])
    head = ["agent", "plays by", *(f"{players} players" for players in MATCHES), "a decision"]
    return markdown(head, lines, times)


def table(rows: list[Row]) -> str:
    """Return the matches: win rates with their 95 % intervals, and numbers of games."""
    cells = (
        (
            [f"`{spec}`" for spec in row["pair"]],
            row["players"],
            f"{interval(row)}, {row['games']:,}",
        )
        for row in rows
    )
    return by_players(["agent", "against"], cells)


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
    measured = {(row["players"], row["agent"]): row for row in load("times")}
    times = []
    for players, matches in MATCHES.items():
        for spec in dict.fromkeys(spec for pair in matches for spec in pair):
            row = measured.get((players, spec))
            stale = row is None or row["model"] != digest(players, [spec])
            times.append(timed(players, spec) if row is None or stale else row)
    print(table(rows))
    print(summary(rows, times))
    if options.save:
        save("strength", rows)
        save("times", times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
