"""Make a data set for offline learning: named agents play, and every decision is an array's row.

    carolus dataset planner ppo:2p --games 100000 --out data --workers 2
    carolus dataset value:3p --players 3 --games 20000 --out data --observation float32

One agent plays against itself; of several every pair plays, each deal in all seatings. The same
command continues where it was interrupted. The folder holds a README with what is in it, the games
in their compact form (games.safetensors), who sat where (tables.npy), the parameters (job.json)
and a file for each array. With --minari it becomes a data set of Minari too. See docs/data.md.
"""

from __future__ import annotations

import io
import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from carolus_env import evaluation
from carolus_env.bots import make
from carolus_env.bots.fingerprint import fingerprint
from carolus_env.engine.rules import Rules
from carolus_env.engine.setup import derived_seed
from carolus_env.evaluation.journal import changes
from carolus_env.evaluation.seating import ALONE, deals_for, meetings
from carolus_env.integrations import minari
from carolus_env.records.arrays import (
    Arrays,
    Packed,
    arrays_table,
    read_games,
    read_packed,
    to_arrays,
    write_packed,
)
from carolus_env.system.command import DONE, INTERRUPTED, command, counting, needs, parse
from carolus_env.system.executors import WorkerOptions, Workers, workers_of, workers_option
from carolus_env.system.failures import UserError
from carolus_env.system.files import locked, write_file, write_json
from carolus_env.system.machine import cores, versions
from carolus_env.system.options import REQUIRED, group, option, values_text

PART: Final = 2000
"""Approximate number of games that are played and written together."""


@dataclass(frozen=True)
class Job:
    """Parameters of a data set; the same job continues in the same folder."""

    rules: Rules
    agents: tuple[str, ...]
    games: int
    seed: int

    @property
    def schedule(self) -> str:
        """Schedule of the games."""
        return ALONE if len(self.agents) == 1 else "round_robin"

    @property
    def deal(self) -> int:
        """Games of a deal."""
        result = meetings(self.schedule, self.rules, len(self.agents))
        return sum(len(meeting.seatings) for meeting in result)

    def plans(self) -> list[evaluation.Plan]:
        """Return the parts, each a tournament of its own deals."""
        deals, size = deals_for(self.games, self.deal), max(1, PART // self.deal)
        return [
            evaluation.Plan(
                self.rules,
                self.agents,
                self.schedule,
                deals=min(size, deals - first),
                seed=derived_seed(self.seed, first),
            )
            for first in range(0, deals, size)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON, by which the same command is recognised when it continues."""
        return {
            "rules": self.rules.to_dict(),
            "agents": list(self.agents),
            "games": self.games,
            "seed": self.seed,
            **versions(),
            "sources": [fingerprint(make(agent), self.rules.players) for agent in self.agents],
        }


@dataclass(frozen=True)
class _Workers(WorkerOptions):
    workers: int | None = workers_option("one per core")


@dataclass(frozen=True)
class DatasetOptions:
    """The options of the command."""

    agents: tuple[str, ...] = option(
        REQUIRED,
        "one or more, as docs/bots.md names them",
        kind=tuple,
        positional=True,
        metavar="AGENT",
    )
    out: Path = option(REQUIRED, "the folder to make", kind=Path, metavar="FOLDER")
    games: int = option(1000, "number of games, rounded up to whole deals", among=(1, None))
    seed: int = option(0, "the same seed gives the same games", among=(0, 2**64 - 1), metavar="S")
    work: WorkerOptions = group(_Workers, "")
    observation: Literal["uint8", "float32"] = option(
        "uint8", "dtype of the observations", among=("uint8", "float32")
    )
    minari: str | None = option(
        None, "make it a Minari data set too, as carolus/2p-planner-v0", kind=str, metavar="ID"
    )
    rules: Rules = group(Rules, "rules")


@command("carolus dataset")
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options, given = parse(DatasetOptions, arguments, program, __doc__)
    needs(given, "partners", options.rules.players == 4, "--players 4")
    job = _job(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(options.out):
            _make(job, options, f"{program} {shlex.join(arguments)}")
    except KeyboardInterrupt:
        text = f"interrupted; the same command continues {options.out}"
        raise UserError(text, INTERRUPTED) from None
    return DONE


def _job(options: DatasetOptions) -> Job:
    if options.out.exists():
        raise UserError(f"--out {options.out} exists: name another folder")
    if len(set(options.agents)) < len(options.agents):
        raise UserError(f"the agents must be different, got {' '.join(options.agents)}")
    if options.minari is not None:
        try:
            minari.import_minari()
        except ImportError as error:
            raise UserError(str(error)) from error
        minari.check_id(options.minari)
    return Job(options.rules, options.agents, options.games, options.seed)


def _make(job: Job, options: DatasetOptions, command: str) -> None:
    """Play what is missing, then make the arrays; the folder appears when all is there."""
    out = options.out
    parts = _parts_folder(job, out)
    plans = job.plans()
    total = sum(plan.games for plan in plans)
    working = workers_of(options.work, job.agents, usual=cores())
    with working as workers, counting("games", total) as progress:
        done = 0
        for number, plan in enumerate(plans):
            if not (parts / f"{number:05}.safetensors").exists():
                _play(plan, parts, number, workers, lambda n, before=done: progress(before + n))
            done += plan.games
            progress(done)
    files = [parts / f"{number:05}.safetensors" for number in range(len(plans))]
    games = Packed.joined([read_packed(file) for file in files])
    tables = np.concatenate([plan.fixtures(0, plan.games).tables for plan in plans])
    with counting("games to arrays", total) as progress:
        data = to_arrays(
            games,
            observation=options.observation,
            out=parts / "complete",
            threads=min(options.work.workers or cores(), 256),
            progress=progress,
        )
    complete = parts / "complete"
    write_packed(complete / "games.safetensors", games)
    array = io.BytesIO()
    np.save(array, tables.astype(np.uint8))
    write_file(complete / "tables.npy", array.getvalue())
    write_file(complete / "README.md", _card(job, command, games, tables, data).encode())
    about = {**job.to_dict(), "command": command, "games_a_deal": job.deal}
    write_json(complete / minari.JOB, about)
    complete.rename(out)
    shutil.rmtree(parts)
    print(f"{out}: {total:,} games, {games.decisions:,} decisions; {out / 'README.md'} says more")
    if options.minari is not None:
        with counting("games to Minari", total) as progress:
            made = minari.to_minari(
                out, options.minari, observation=options.observation, progress=progress
            )
        print(f"Minari data set {made.id}: {made.total_episodes:,} episodes")


def _parts_folder(job: Job, out: Path) -> Path:
    """Return the folder of parts until all are complete; one of another job is refused."""
    parts = out.with_name(f".{out.name}.parts")
    about = parts / "job.json"
    if not any(parts.glob("*.safetensors")):  # an earlier command may have failed at once
        parts.mkdir(parents=True, exist_ok=True)
        write_json(about, job.to_dict())
    elif unlike := _differences(json.loads(about.read_text()), job.to_dict()):
        raise UserError(
            f"{parts} holds parts of another data set ({unlike}): remove it, or name another --out"
        )
    shutil.rmtree(parts / "complete", ignore_errors=True)
    return parts


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return what differs between two jobs, empty if nothing does."""
    unlike = [key for key in new if key != "sources" and old.get(key) != new[key]]
    if not unlike:
        unlike = changes(new["agents"], old["sources"], new["sources"])
    return "; ".join(unlike)


def _play(plan: evaluation.Plan, parts: Path, number: int, workers: Workers, progress: Any) -> None:
    """Play one part, and keep its games."""
    records = parts / "records.jsonl"
    records.unlink(missing_ok=True)
    cup = evaluation.Tournament(plan)
    cup.run(workers=workers, records=records, progress=progress)
    write_packed(parts / f"{number:05}.safetensors", read_games(records))
    records.unlink()


def _card(
    job: Job, command: str, games: Packed, tables: npt.NDArray[np.uint8], data: Arrays
) -> str:
    """Return a description of the folder, for people."""
    shared = (
        ""
        if job.deal == 1
        else f"""
The {job.deal} games of a deal, one after the other, have the same set-up and dice and differ in who
sits where: split games into training and test data by whole deals.
"""
    )
    return f"""# Games of Carolus Magnus

{len(games.starts):,} games, {games.decisions:,} decisions, made by

```
{command}
```

Rules: {values_text(job.rules.to_dict())}.
Versions: {values_text(versions())}.
{shared}
{_agents_table(job, tables, data)}

## Arrays

Each is a file, `NAME.npy`; `carolus_env.records.arrays.load_arrays` maps all into memory. A row
is a decision, in the order of play, of all seats.

{arrays_table()}
`tables.npy`, (games, players) uint8: the agent at each seat, by its place in the table above.
`games.safetensors`: the games in their compact form, from which the arrays were made and can be
made again with other observations (`read_packed`, `to_arrays`).
`job.json`: the rules, the agents, the seed and the command.
"""


def _agents_table(job: Job, tables: npt.NDArray[np.uint8], data: Arrays) -> str:
    """Return each agent's games and payoffs, as a Markdown table."""
    paid = np.zeros(tables.shape)
    paid[data.games, data.seats] = data.returns
    lines = ["| agent | games | decisions | mean payoff |", "| --- | --- | --- | --- |"]
    for k, name in enumerate(job.agents):
        own = tables == k
        games, decided = own.any(axis=1).sum(), own[data.games, data.seats].mean()
        lines.append(f"| `{name}` | {games:,} | {decided:.1%} | {paid[own].mean():+.3f} |")
    return "\n".join(lines)
