"""Make a data set for offline learning: named agents play, and every decision is an array's row.

    carolus dataset planner ppo:2p --games 100000 --out data --workers 2
    carolus dataset value:3p --players 3 --games 20000 --out data --observation float32

One agent plays against itself; of several every pair plays, each deal in all seatings. The same
command continues where it was interrupted. See docs/formats.md.
"""

from __future__ import annotations

import io
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from carolus_env import bots, evaluation
from carolus_env.bots.registry import fingerprint
from carolus_env.engine.chance import Deals, derived_seed
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import journal, schedules
from carolus_env.records import arrays
from carolus_env.system import executors, files, untrusted
from carolus_env.system.command import DONE, INTERRUPTED, command, counting, needs, parse
from carolus_env.system.machine import cores, versions
from carolus_env.system.options import REQUIRED, UserError, argument, group, option, values_text

OF_A_SEED: Final = 2000  # games, about, whose deals have a seed of their own
AT_ONCE: Final = 250  # games, at most, that a worker plays, and that are kept, together


@dataclass(frozen=True)
class _Workers(executors.WorkerOptions):
    workers: int | None = executors.workers_option("one per core")


@dataclass(frozen=True)
class DatasetOptions:
    """The options of the command."""

    agents: tuple[str, ...] = argument("one or more, as docs/bots.md names them", "AGENT")
    out: Path = option(REQUIRED, "the folder to make", kind=Path, metavar="FOLDER")
    games: int = option(1000, "number of games, rounded up to whole deals", among=(1, None))
    seed: int = option(0, "the same seed gives the same games", among=(0, 2**64 - 1), metavar="S")
    work: executors.WorkerOptions = group(_Workers, "")
    observation: Literal["uint8", "float32"] = option(
        "uint8", "dtype of the observations", among=("uint8", "float32")
    )
    rules: Rules = group(Rules, "rules")

    def plans(self) -> list[evaluation.Plan]:
        """Return the games, as tournaments of different deals."""
        schedule = schedules.ALONE if len(self.agents) == 1 else "round_robin"
        plan = partial(evaluation.Plan, self.rules, self.agents, schedule)
        deal = plan().games_per_deal
        deals, size = schedules.deals_for(self.games, deal), max(1, OF_A_SEED // deal)
        return [
            plan(deals=min(size, deals - first), seed=derived_seed(self.seed, first))
            for first in range(0, deals, size)
        ]

    def about(self) -> dict[str, Any]:
        """Return what decides the games as JSON, by which the same command is recognised."""
        sources = [fingerprint(bots.make(agent), self.rules.players) for agent in self.agents]
        return {
            "rules": self.rules.to_dict(),
            "agents": list(self.agents),
            "games": self.games,
            "seed": self.seed,
            **versions(),
            "sources": sources,
        }


@command("carolus dataset")
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options, given = parse(DatasetOptions, arguments, program, __doc__)
    needs(given, "partners", options.rules.players == 4, "--players 4")
    if options.out.exists():
        raise UserError(f"--out {options.out} exists: name another folder")
    if len(set(options.agents)) < len(options.agents):
        raise UserError(f"the agents must be different, got {' '.join(options.agents)}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with files.locked(options.out):
            _make(options, f"{program} {shlex.join(arguments)}")
    except KeyboardInterrupt:
        text = f"interrupted; the same command continues {options.out}"
        raise UserError(text, INTERRUPTED) from None
    return DONE


def _make(options: DatasetOptions, command: str) -> None:
    """Play what is missing, then make the arrays; the folder appears when all is there."""
    out, about, plans = options.out, options.about(), options.plans()
    parts = _parts_folder(out, about)
    total = sum(plan.games for plan in plans)
    size = max(1, min(AT_ONCE, total // 16))
    tasks = [
        (plan, start, min(start + size, plan.games))
        for plan in plans
        for start in range(0, plan.games, size)
    ]
    pieces = {parts / f"{number:06}.safetensors": task for number, task in enumerate(tasks)}
    missing = {file: task for file, task in pieces.items() if not file.exists()}
    done = total - sum(stop - start for _, start, stop in missing.values())
    working = executors.workers_of(options.work, options.agents, usual=cores())
    with working as workers, counting("games", total) as progress:
        job = partial(_player, options.agents)
        played = executors.results(workers, job, missing.values())
        for file, (_, games) in zip(missing, played, strict=True):
            arrays.write_packed(file, games)
            done += len(games.starts)
            progress(done)
    games = arrays.Packed.joined([*map(arrays.read_packed, pieces)])
    complete = parts / "complete"
    with counting("games to arrays", total) as progress:
        data = arrays.to_arrays(
            games,
            observation=options.observation,
            out=complete,
            threads=min(options.work.workers or cores(), 256),
            progress=progress,
        )
    arrays.write_packed(complete / "games.safetensors", games)
    seated = np.concatenate([plan.fixtures(0, plan.games).tables for plan in plans])
    tables, deal = io.BytesIO(), plans[0].games_per_deal
    np.save(tables, seated.astype(np.uint8))
    files.write_file(complete / "tables.npy", tables.getvalue())
    rows = ["| agent | games | decisions | mean payoff |", "| --- | --- | --- | --- |"]
    paid = np.zeros(seated.shape)
    paid[data.games, data.seats] = data.returns
    for k, name in enumerate(options.agents):
        own = seated == k
        played, decided = own.any(axis=1).sum(), own[data.games, data.seats].mean()
        rows.append(f"| `{name}` | {played:,} | {decided:.1%} | {paid[own].mean():+.3f} |")
    rules, made_with = values_text(options.rules.to_dict()), values_text(versions())
    deals = _DEALS.format(deal) if deal > 1 else ""
    card = _CARD.format(total, games.decisions, command, rules, made_with, deals, "\n".join(rows))
    files.write_file(complete / "README.md", f"{card}{arrays.arrays_table()}{_FILES}".encode())
    files.write_json(complete / "job.json", {**about, "command": command, "games_a_deal": deal})
    complete.rename(out)
    shutil.rmtree(parts)
    print(f"{out}: {total:,} games, {games.decisions:,} decisions; {out / 'README.md'} says more")


def _player(specs: Sequence[str]) -> Callable[[evaluation.Plan, int, int], arrays.Packed]:
    """Return the job of workers: to play some games of a plan."""
    agents = [bots.make(spec) for spec in specs]

    def play(plan: evaluation.Plan, start: int, stop: int) -> arrays.Packed:
        fixtures = plan.fixtures(start, stop)
        _, actions = evaluation.play_games(fixtures, agents, plan.rules, seed=plan.seed)
        deals = Deals.of(plan.seed, fixtures.deals)
        return arrays.pack_played(deals.games(plan.rules, roll=False), deals.dice(), actions)

    return play


def _parts_folder(out: Path, new: dict[str, Any]) -> Path:
    """Return the folder of parts until all are complete; one of another data set is refused."""
    parts = out.with_name(f".{out.name}.parts")
    about = parts / "job.json"
    if not any(parts.glob("*.safetensors")):  # an earlier command may have failed at once
        parts.mkdir(parents=True, exist_ok=True)
        files.write_json(about, new)
    try:
        old = untrusted.check(untrusted.parse_json(about.read_bytes()), dict, "it")
        unlike = [key for key in new if key != "sources" and old.get(key) != new[key]]
        sources = [untrusted.check(each, dict, "sources") for each in old.get("sources", ())]
        unlike = unlike or journal.changes(new["agents"], sources, new["sources"])
    except (ValueError, TypeError) as error:
        raise UserError(f"{about}: {error}; remove {parts}") from None
    if unlike:
        raise UserError(
            f"{parts} holds parts of another data set ({'; '.join(unlike)}): remove it, "
            "or name another --out"
        )
    shutil.rmtree(parts / "complete", ignore_errors=True)
    return parts


_CARD: Final = """# Games of Carolus Magnus

{:,} games, {:,} decisions, made by

```
{}
```

Rules: {}.
Versions: {}.
{}
{}

## Arrays

Each is a file, `NAME.npy`; `carolus_env.records.arrays.load_arrays` maps all into memory. A row
is a decision, in the order of play, of all seats.

"""
_FILES: Final = """
`tables.npy`, (games, players) uint8: the agent at each seat, by its place in the table above.
`games.safetensors`: the games in their compact form, from which the arrays were made and can be
made again with other observations (`read_packed`, `to_arrays`).
`job.json`: the rules, the agents, the seed and the command.
"""
_DEALS: Final = """
The {} games of a deal, one after the other, have the same set-up and dice and differ in who
sits where: split games into training and test data by whole deals.
"""
