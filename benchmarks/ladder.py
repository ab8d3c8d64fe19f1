"""Play the ladder: ``python -m benchmarks.ladder``, or ``make ladder``.

Each rung plays the next one below, and a few games against the one below that. All games are rated
together, and the ratings go to carolus_env/evaluation/ladder.json. No rung takes more than half a
millisecond a decision with two players, or a millisecond with more, so that every evaluation on the
ladder is quick. The games are the same on every machine and with any number of workers. They are
stored in --folder: the same command continues an interrupted run.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env import evaluation
from carolus_env.engine.chance import derived_seed
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.ratings import ANCHOR, rate
from carolus_env.evaluation.schedules import deals_for, seatings_of
from carolus_env.system.command import DONE, command, parse
from carolus_env.system.executors import WorkerOptions, Workers, workers_of
from carolus_env.system.files import write_file
from carolus_env.system.options import group, option

COMMAND: Final = "python -m benchmarks.ladder"
GAMES: Final = {1: 600, 2: 120}
"""Games against the rung so many places below."""
SEED: Final = 7
_DEALS: Final = 100_000  # numbers of deals that belong to one pair of rungs


def _low(*errors: float) -> tuple[str, ...]:
    """Return the lowest rungs, with probabilities of a random move."""
    return ("random", *(f"greedy:errors={error}" for error in errors), "greedy")


_ERRORS: Final = (0.64, 0.56, 0.48, 0.4, 0.33, 0.26, 0.2, 0.14, 0.09, 0.04)
_FEWER: Final = (0.62, 0.52, 0.42, 0.33, 0.24, 0.15, 0.06)
RUNGS: Final = {
    2: (
        *_low(0.96, 0.89, 0.75, 0.5),
        *(f"planner:errors={errors}" for errors in _ERRORS),
        ANCHOR,
        "value:2p,errors=0.04",
        "value:2p",
    ),
    3: (
        *_low(0.95, 0.89, 0.75, 0.5),
        *(f"planner:errors={errors}" for errors in _FEWER),
        ANCHOR,
        "value:3p",
    ),
    4: (
        *_low(0.95, 0.88, 0.75, 0.5),
        *(f"planner:errors={errors}" for errors in _ERRORS),
        ANCHOR,
        "value:4p,errors=0.06",
        "value:4p",
    ),
}
"""The rungs by number of players, the weakest first. With three players, where nobody wins more
than a third of its games against two equals, errors cost less, and fewer steps do."""

Pair = tuple[int, int]
"""Two rungs by their places, the lower one first."""


def plan(rules: Rules, specs: tuple[str, str], games: int) -> evaluation.Plan:
    """Return the games of two rungs; no two pairs share a deal."""
    deals = deals_for(games, len(seatings_of(rules)))
    number = zlib.crc32(f"{rules.players} {' '.join(specs)}".encode())
    return evaluation.Plan(rules, specs, deals=deals, seed=derived_seed(SEED, number))


def play(
    rules: Rules,
    rungs: Sequence[str],
    folder: Path,
    workers: int | Workers = 1,
    games: Mapping[int, int] = GAMES,
) -> dict[Pair, evaluation.Results]:
    """Play what the files in ``folder`` lack, and return all games."""
    played = {}
    for apart, count in games.items():
        for low in range(len(rungs) - apart):
            specs = rungs[low], rungs[low + apart]
            cup = evaluation.Tournament(plan(rules, specs, count))
            name = "--".join(specs).replace(":", "_").replace(",", "_")
            file = folder / str(rules.players) / f"{name}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            cup.run(workers=workers, file=file, resume=file.exists())
            played[low, low + apart] = cup.results
            print(f"{rules.players} players: {specs[1]} against {specs[0]}", flush=True)
    return played


def rows(
    rules: Rules, rungs: Sequence[str], played: Mapping[Pair, evaluation.Results], anchor: str
) -> list[dict[str, Any]]:
    """Rate the rungs by all games: the rows of `ladder.FILE`, the weakest rung first."""
    ratings = rate(
        np.concatenate([np.array(pair)[games["table"]] for pair, games in played.items()]),
        np.concatenate([games["shares"] for games in played.values()]),
        np.concatenate(
            [games["deal"] + _DEALS * number for number, games in enumerate(played.values())]
        ),
        len(rungs),
        anchor=list(rungs).index(anchor),
        seed=SEED,
    )
    result = []
    for rung, spec in enumerate(rungs):
        below = [low for low in (rung - 1, rung - 2) if low >= 0]
        wins = [
            (played[low, rung]["shares"] * (played[low, rung]["table"] == 1)).sum(axis=1).mean()
            for low in below
        ]
        row = {name: round(ratings.of(rung)[name], 1) for name in ("elo", "low", "high")}
        gap = [round(elo, 1) for elo in ratings.difference(rung, rung - 1)] if rung else []
        result.append({"spec": spec, **row, "gap": gap, "wins": [round(w, 4) for w in wins]})
    return result


def write(rungs: Mapping[int, list[dict[str, Any]]], path: Path) -> None:
    """Write the ladder, a rung a line; numbers of players that were not played stay."""
    result = json.loads(path.read_text())["players"] if path.exists() else {}
    result |= {str(players): entries for players, entries in rungs.items()}
    tables = [
        f'  "{players}": [\n' + ",\n".join(f"   {json.dumps(row)}" for row in result[players])
        for players in sorted(result)
    ]
    head = json.dumps({"hash": ladder.digest(result), "command": COMMAND}, indent=1)
    text = f'{head[:-2]},\n "players": {{\n' + "\n  ],\n".join(tables) + "\n  ]\n }\n}\n"
    write_file(path, text.encode())


@dataclass(frozen=True)
class LadderOptions:
    """The options of the command."""

    players: int | None = option(
        None, "players of a game; by default 2, 3 and 4 in turn", kind=int, among=(2, 4)
    )
    work: WorkerOptions = group(WorkerOptions, "")
    folder: Path = option(Path("runs/ladder"), "folder of the games")


@command(COMMAND)
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    options = parse(LadderOptions, arguments, program, __doc__).options
    with workers_of(options.work) as workers:
        for players in [options.players] if options.players else RUNGS:
            rules, rungs = Rules(players), RUNGS[players]
            played = play(rules, rungs, options.folder, workers)
            write({players: rows(rules, rungs, played, ANCHOR)}, ladder.FILE)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
