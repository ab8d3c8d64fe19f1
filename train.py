"""Train an agent by self-play.

$ python train.py                          # 2 players, some minutes on two cores
$ python train.py --players 4 --steps 5000000 --name four
$ python train.py --config agents/2p.toml  # options from a file; the command line overrides it
$ python train.py --resume runs/four       # continue an interrupted run

docs/training.md explains how training works, and what a run leaves behind.
"""

from __future__ import annotations

import os

# Threads that spin while they wait slow everything else down; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import contextlib
import dataclasses
import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tyro
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Table

    from carolus_env.arena import ladder
    from carolus_env.bots.neural.model import load, save
    from carolus_env.learners.config import Config, from_run, read
    from carolus_env.learners.measures import Evaluation
    from carolus_env.learners.provenance import provenance
    from carolus_env.learners.run import Progress, Run
    from carolus_env.system.files import write_json
except ModuleNotFoundError as error:
    raise SystemExit(
        f"train: {error.name} is missing; training needs the extra: pip install -e '.[train]'"
    ) from None


@dataclass
class Source:
    """Where options come from other than the command line."""

    config: Path | None = None
    """A TOML file of options; the command line overrides it."""
    resume: Path | None = None
    """The folder of a run to continue; only --steps may be given with it."""


@dataclass
class Options(Config, Source):
    """Train an agent by self-play."""


@dataclass
class Extension:
    """Continue a run."""

    steps: int | None = None
    """Train up to this many decisions in all; by default as many as the run was started with."""


@dataclass
class Job:
    """A run to start or to continue: what its ``config.json`` says, and where it lies."""

    config: Config
    folder: Path
    command: str
    made_with: dict[str, Any]
    resumed: bool

    def write(self) -> None:
        """Write ``config.json``."""
        options = {"config": dataclasses.asdict(self.config), "command": self.command}
        write_json(self.folder / "config.json", {**self.made_with, **options})


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, evaluate, and return the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    console, job = Console(), None
    try:
        job = read_job(arguments)
        with _Display(console, job.config.steps) as display:
            run = Run(job.config, job.folder, command=job.command, show=display.show)
            if job.resumed:
                run.resume()
            job.write()
            console.print(
                f"{job.folder}: {job.config.players} players, {job.config.steps:,} decisions"
            )
            with _stopping(run, console):
                done = run.train()
        if not done:
            console.print(f"stopped and saved; continue: python train.py --resume {job.folder}")
            return 130
        return _finish(run, console)
    except KeyboardInterrupt:
        print("train: interrupted")
        if job is not None and (job.folder / "resume").exists():
            print(f"continue from the last checkpoint: python train.py --resume {job.folder}")
        return 130
    except (ValueError, OSError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1


def read_job(arguments: Sequence[str]) -> Job:
    """The run that the command line asks for; the folder of a new one is made.

    Raises:
        ValueError: for options, files or folders that cannot be used.
        SystemExit: after --help, and for a command line that is not understood.
    """
    # Read first, without --help: it decides which options there are, and their defaults.
    source, others = tyro.cli(
        Source, args=arguments, prog="train.py", return_unknown_args=True, add_help=False
    )
    command = shlex.join(["python", "train.py", *arguments])
    if source.resume is not None:
        if source.config is not None:
            raise ValueError("--resume takes its options from the run; leave out --config")
        extension = tyro.cli(Extension, args=others, prog="train.py --resume FOLDER")
        return _resumed(source.resume, extension.steps, command)
    given = read(source.config) if source.config is not None else Config()
    options = tyro.cli(
        Options,
        args=others,
        default=Options(**dataclasses.asdict(given)),
        description=__doc__,
        prog="train.py",
    )
    names = [field.name for field in dataclasses.fields(Config)]
    config = Config(**{name: getattr(options, name) for name in names})
    return Job(config, _new_folder(config), command, provenance(), resumed=False)


def _new_folder(config: Config) -> Path:
    config.check()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = config.name or f"{config.players}p-seed{config.seed}-{stamp}"
    folder = Path(config.runs) / name
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} exists already: choose another --name, or --resume {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _resumed(folder: Path, steps: int | None, command: str) -> Job:
    """The run in a folder; only its number of decisions may change."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no run to resume: there is no such folder")
    path = folder / "config.json"
    try:
        first = json.loads(path.read_text())
        config = from_run(first.pop("config"))
        original = str(first.pop("command"))
    except OSError as error:
        raise ValueError(f"{folder}: no run to resume: {path.name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: no run to resume: {path.name}: {error}") from None
    if steps is None or steps == config.steps:
        return Job(config, folder, original, first, resumed=True)
    config.steps = steps
    return Job(config, folder, f"{original}; {command}", first, resumed=True)


@contextlib.contextmanager
def _stopping(run: Run, console: Console) -> Iterator[None]:
    """Ctrl-C ends training after the current update; a second Ctrl-C at once."""

    def stop(*_: Any) -> None:
        if run.stop:
            raise KeyboardInterrupt
        run.stop = True
        console.print("stopping after this update (Ctrl-C again: at once) ...")

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _rating(found: Evaluation) -> str:
    """A rating in a line of text."""
    return f"Elo {found.elo:.0f} ({found.low:.0f} to {found.high:.0f}; planner: 0)"


def _finish(run: Run, console: Console) -> int:
    """Save the final policy, evaluate the best one, and print the results."""
    save(run.snapshot(), run.folder / "final")
    if not (run.folder / "best.json").exists():
        save(run.snapshot(), run.folder / "best")
    best = load(run.folder / "best").weights
    with console.status(f"evaluating {run.folder}/best ..."):
        found = run.evaluate(run.config.final_games, best)
    write_json(run.folder / "result.json", found.to_dict())
    console.print(f"{run.folder}/best, playing its likeliest action: {_rating(found)}")
    table = Table()
    table.add_column("against")
    for heading in ("its Elo", "games", "win rate", "95 % interval"):
        table.add_column(heading, justify="right")
    elos = {rung.spec: f"{rung.elo:.0f}" for rung in ladder.rungs(run.config.players)}
    for spec, result in found.results.items():
        low, high = result["ci95"]
        interval = f"{low:.1%} - {high:.1%}"
        row = f"{result['games']:,}", f"{result['win_rate']:.1%}", interval
        table.add_row(spec, elos.get(spec, "-"), *row)
    console.print(table)
    console.print(
        f"next: python evaluate.py ppo:{run.folder}/best greedy --players {run.config.players}"
    )
    return 0


class _Display:
    """A progress bar: decisions, pace, and the share of the win against each kind of opponent."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._bar = Bar(
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[shares]}"),
            console=console,
        )
        self._task = self._bar.add_task("training", total=steps, done="", shares="")

    def __enter__(self) -> _Display:
        self._bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        shares = "  ".join(f"{kind} {share:.0%}" for kind, share in progress.shares.items())
        self._bar.update(
            self._task,
            completed=progress.decisions,
            done=f"{progress.decisions / 1e6:.2f} M, {progress.decisions_per_s:,.0f}/s",
            shares=shares,
        )
        if progress.evaluation:
            found = progress.evaluation
            rates = ", ".join(
                f"{result['win_rate']:.1%} against {spec}" for spec, result in found.results.items()
            )
            self._console.print(
                f"  after {progress.decisions:,} decisions: {_rating(found)}, {rates}"
            )


if __name__ == "__main__":
    sys.exit(main())
