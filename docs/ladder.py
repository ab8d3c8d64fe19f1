"""Play the ladder: ``python docs/ladder.py``, or ``make ladder``.

The rungs are in `carolus_env.arena.ladder`. Each plays the next one, and those that do not search
also the next but one, until the 95 % interval of every two neighbours' difference is narrow enough.
Search budgets are numbers of simulations, so the games are the same on every machine; only the
times differ.

The ratings go to carolus_env/arena/ladder.json, which `train.py` and others measure by, and all
results to benchmarks/results/, from which docs/tables.py makes the tables of docs/ladder.md.

Games are stored in --folder, block by block: the same command continues an interrupted run, with
any number of workers. Results are written after every look at the intervals.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from carolus_env import arena
from carolus_env.arena import ladder
from carolus_env.arena.journal import Journal, Saved
from carolus_env.arena.pairing import pairing
from carolus_env.arena.ratings import Ratings, rate
from carolus_env.engine.rules import Rules
from carolus_env.system import places
from carolus_env.system.files import write_json
from carolus_env.system.machine import machine, versions
from carolus_env.system.processes import Here, WorkerError, Workers, ready

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
COMMAND = "python docs/ladder.py"
SEED = 7
_DEALS = 100_000  # seeds that belong to one meeting

Pair = tuple[int, int]
"""Two rungs by number, the lower one first."""


@dataclass(frozen=True)
class Schedule:
    """How much is played."""

    width: float = 60.0
    """Widest 95 % interval of two neighbours' difference, in Elo points."""
    block: int = 120
    """Games of a block, which is played and stored together."""
    neighbours: int = 3
    """Blocks of neighbours before the first look at the intervals."""
    others: int = 1
    """Blocks of a rung that does not search and the next but one."""
    most: int = 20
    """Most blocks of a meeting."""


@dataclass(frozen=True)
class Block:
    """Games of two rungs: block ``number`` of their meeting."""

    players: int
    specs: tuple[str, str]
    number: int
    games: int
    folder: Path

    def plan(self) -> arena.Plan:
        """Its games; the meeting's blocks have consecutive deals, and no two meetings share any."""
        rules = Rules(self.players)
        deals = -(-self.games // len(pairing(rules).seatings))
        meeting = zlib.crc32(f"{self.players} {' '.join(self.specs)}".encode())
        return arena.Plan(
            rules, self.specs, deals=deals, seed=SEED + _DEALS * meeting + deals * self.number
        )

    @property
    def file(self) -> Path:
        name = "--".join(self.specs).replace(":", "_").replace(",", "_")
        return self.folder / str(self.players) / name / f"{self.number:03}.jsonl"

    def stored(self) -> Saved | None:
        """The file's games; None where some are missing."""
        if not self.file.exists():
            return None
        saved = arena.read_games(self.file)
        whole = len(saved.results) == self.plan().games and saved.plan == self.plan()
        return saved if whole else None

    def play(self) -> Saved:
        """Play what the file lacks, and read it."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        arena.Tournament(self.plan()).run(file=self.file, resume=self.file.exists())
        return arena.read_games(self.file)

    def store(self, results: arena.Results, seconds: float) -> Saved:
        """Write the games that a worker has played, and read them."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.unlink(missing_ok=True)  # a part of them
        with Journal.create(self.file, self.plan()) as journal:
            journal.append(self.plan(), 0, results, seconds)
        return arena.read_games(self.file)


@dataclass
class Ladder:
    """The games of a ladder, and the ratings so far."""

    players: int
    rungs: Sequence[str]
    folder: Path
    schedule: Schedule = field(default_factory=Schedule)
    workers: int | Workers = 1
    anchor: str = ladder.ANCHOR
    played: dict[Pair, list[Saved]] = field(default_factory=dict)

    def begin(self) -> None:
        """Play what is played in any case."""
        plan = self.schedule
        wanted = {(i, i + 1): plan.neighbours for i in range(len(self.rungs) - 1)}
        cheap = [i for i, spec in enumerate(self.rungs) if not ladder.searches(spec)]
        wanted |= dict.fromkeys(zip(cheap, cheap[2:], strict=False), plan.others)
        self._play(wanted)

    def go_on(self, ratings: Ratings) -> bool:
        """Play where differences are not known well enough yet; False where all are."""
        wanted = self._wanted(ratings)
        self._play(wanted)
        return bool(wanted)

    def _wanted(self, ratings: Ratings) -> dict[Pair, int]:
        """Neighbours whose difference is not known well enough, and how many blocks they need."""
        plan, wanted = self.schedule, {}
        for i, j in neighbours(ratings):
            _, low, high = ratings.difference(j, i)
            pair = min(i, j), max(i, j)
            had = len(self.played.get(pair, []))
            if high - low > plan.width and had < plan.most:
                needed = had * ((high - low) / plan.width) ** 2  # as if all came from this meeting
                wanted[pair] = min(plan.most, max(had + 1, math.floor(needed)))
        return wanted

    def _play(self, wanted: dict[Pair, int]) -> None:
        """Play, or read, the blocks of each meeting up to that number."""
        blocks = {
            (pair, number): Block(
                self.players,
                (self.rungs[pair[0]], self.rungs[pair[1]]),
                number,
                self.schedule.block,
                self.folder,
            )
            for pair, count in wanted.items()
            for number in range(len(self.played.get(pair, [])), count)
        }
        found, missing = {}, []
        alone = self.workers == 1 or isinstance(self.workers, Here)
        for key, block in blocks.items():
            saved = block.stored()
            if saved is None and alone:  # which writes game by game
                saved = block.play()
            if saved is None:
                missing.append(key)
            else:
                found[key] = saved
                self._tell(block, saved)
        if missing:
            with ready(self.workers) as workers:
                workers.begin(arena.tournament.whole_plans)
                tasks = ((blocks[key].plan(),) for key in missing)
                for number, (results, seconds) in workers.streamed(tasks):
                    key = missing[number]
                    found[key] = blocks[key].store(results, seconds)
                    self._tell(blocks[key], found[key])
        for pair, number in blocks:
            self.played.setdefault(pair, []).append(found[pair, number])

    @staticmethod
    def _tell(block: Block, saved: Saved) -> None:
        low, high = block.specs
        share = (saved.results.shares * (saved.results.tables == 1)).sum(axis=1).mean()
        print(
            f"{time.strftime('%H:%M:%S')}  {block.players}  {high:20} : {low:20} "
            f"block {block.number:2}  {100 * share:5.1f} %  {saved.wall:6.1f} s",
            flush=True,
        )

    def rate(self) -> Ratings:
        """The ratings from all games so far."""
        tables, shares, deals = [], [], []
        for number, (pair, blocks) in enumerate(sorted(self.played.items())):
            for place, saved in enumerate(blocks):
                results = saved.results
                tables.append(np.array(pair)[results.tables])
                shares.append(results.shares)
                deals.append(results.deals + saved.plan.deals * place + _DEALS * number)
        rules = Rules(self.players)
        return rate(
            np.concatenate(tables),
            np.concatenate(shares),
            [rules.team(seat) for seat in range(self.players)],
            np.concatenate(deals),
            len(self.rungs),
            anchor=list(self.rungs).index(self.anchor),
            seed=SEED,
        )

    def summary(self, ratings: Ratings) -> dict[str, Any]:
        """All results as plain values for JSON."""
        blocks = [(pair, saved) for pair, some in self.played.items() for saved in some]
        below = {j: i for i, j in neighbours(ratings)}
        rows = []
        for rung in np.argsort(ratings.elo).tolist():
            row = {"spec": self.rungs[rung], **ratings.of(rung), **self._cost(rung), "above": None}
            if rung in below:
                found = ratings.difference(rung, below[rung])
                row["above"] = dict(zip(("elo", "low", "high"), found, strict=True))
            rows.append(row)
        return {
            "format": "carolus-ladder-results",
            "version": ladder.VERSION,
            "players": self.players,
            "anchor": self.anchor,
            "seed": SEED,
            "games": sum(len(saved.results) for _, saved in blocks),
            "seconds": sum(saved.wall for _, saved in blocks),
            "widest": max(row["above"]["high"] - row["above"]["low"] for row in rows[1:]),
            "rungs": rows,
            "meetings": [self._meeting(pair, ratings) for pair in sorted(self.played)],
            "versions": versions("torch", "scipy"),
            "machine": machine(),
        }

    def _cost(self, rung: int) -> dict[str, Any]:
        games, decisions, seconds = 0, 0, 0.0
        for pair, blocks in self.played.items():
            if rung in pair:
                for saved in blocks:
                    seats = saved.results.tables == pair.index(rung)
                    timed = seats & ~np.isnan(saved.results.seconds)
                    games += len(seats)
                    decisions += int(saved.results.decisions[timed].sum())
                    seconds += float(saved.results.seconds[timed].sum())
        return {"games": games, "us_per_decision": 1e6 * seconds / max(decisions, 1)}

    def _meeting(self, pair: Pair, ratings: Ratings) -> dict[str, Any]:
        """The higher rung's win rate against the lower one, and what the ratings expect."""
        shares = [
            (saved.results.shares * (saved.results.tables == 1)).sum(axis=1)
            for saved in self.played[pair]
        ]
        difference = ratings.elo[pair[1]] - ratings.elo[pair[0]]
        return {
            "pair": [self.rungs[pair[1]], self.rungs[pair[0]]],
            "games": sum(map(len, shares)),
            "win_rate": float(np.concatenate(shares).mean()),
            "expected": float(ladder.win_rate(self.players, difference)),
        }


def neighbours(ratings: Ratings) -> list[Pair]:
    """Each rung and the next one by rating."""
    order = np.argsort(ratings.elo).tolist()
    return list(itertools.pairwise(order))


def write_ratings(players: int, summary: dict[str, Any], path: Path) -> None:
    """Put the ratings of a ladder into the package's file; those of other numbers stay."""
    found = json.loads(path.read_text())["players"] if path.exists() else {}
    found[str(players)] = [
        {"spec": row["spec"]} | {name: round(row[name], 1) for name in ("elo", "low", "high")}
        for row in summary["rungs"]
    ]
    write_json(path, ladder.to_json(dict(sorted(found.items())), COMMAND))


def publish(games: Ladder) -> Ratings:
    """Rate the rungs, write the results so far, and print them."""
    ratings = games.rate()
    summary = games.summary(ratings)
    write_json(RESULTS / f"ladder_{games.players}.json", summary)
    write_ratings(games.players, summary, ladder.FILE)
    for row in summary["rungs"]:
        above = row["above"] or {"elo": math.nan, "low": math.nan, "high": math.nan}
        print(
            f"{row['spec']:24} {row['elo']:7.0f} [{row['low']:.0f}, {row['high']:.0f}]   "
            f"above the last {above['elo']:4.0f}, interval {above['high'] - above['low']:.0f}"
        )
    print(f"{games.players} players: widest interval {summary['widest']:.0f}", flush=True)
    return ratings


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    places.add_options(parser)
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/ladder"), help="where the games are stored"
    )
    options = parser.parse_args()
    try:
        chosen = places.workers_of(options)
    except (WorkerError, ValueError) as error:
        parser.error(str(error))
    with chosen as workers:
        ladders = [
            Ladder(players, ladder.RUNGS[players], options.folder, workers=workers)
            for players in options.players
        ]
        rated = []
        for games in ladders:  # first a rough ladder for every number of players
            games.begin()
            rated.append(publish(games))
        for games, ratings in zip(ladders, rated, strict=True):
            while games.go_on(ratings):
                ratings = publish(games)
    return 0


if __name__ == "__main__":
    sys.exit(main())
