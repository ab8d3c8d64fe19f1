"""Train an agent by self-play: ``python train.py --help``.

python train.py                          # 2 players, some minutes on two cores
python train.py --players 4 --steps 5000000 --name four
python train.py --config agents/2p.toml # options from a file; those after it count more
python train.py --resume runs/four       # go on where it stopped
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
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

try:
    import tyro
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Table

    from carolus_env.bots.neural.model import load, save
    from carolus_env.learners.config import Config, from_mapping, read
    from carolus_env.learners.run import Progress, Run, commit, versions
    from carolus_env.system.files import write_json
    from carolus_env.system.machine import machine
except ModuleNotFoundError as error:
    raise SystemExit(
        f"train: {error.name} is missing; training needs the extra: pip install -e '.[train]'"
    ) from None


def main(arguments: list[str] | None = None) -> int:
    """Train, evaluate, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console, folder = Console(), None
    try:
        command = shlex.join(["python", "train.py", *arguments])
        resume = "--resume" in arguments
        if resume:
            config, folder, first = _resumed(arguments)
            if config.steps != first["config"]["steps"]:
                command = f"{first['command']}; {command}"
            else:
                command = first["command"]
        else:
            config = _options(arguments)
            folder = _new_folder(config)
        with _Display(console, config.steps) as display:
            run = Run(config, folder, command=command, show=display.show)
            if resume:
                run.resume()
                made = first
            else:
                made = {"commit": commit(), "machine": machine(), "versions": versions()}
            about = {"config": dataclasses.asdict(config), "command": command}
            write_json(folder / "config.json", {**made, **about})
            console.print(f"{folder}: {config.players} players, {config.steps:,} decisions")
            with _stopping(run, console):
                done = run.train()
        if not done:
            console.print(f"stopped and saved; go on with: python train.py --resume {folder}")
            return 130
        return _finish(run, console)
    except KeyboardInterrupt:
        saved = folder is not None and (folder / "resume").exists()
        more = f"; python train.py --resume {folder} goes on from the last save" if saved else ""
        print(f"train: interrupted{more}")
        return 130
    except (ValueError, OSError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1


@contextlib.contextmanager
def _stopping(run: Run, console: Console) -> Iterator[None]:
    """Ctrl-C ends training after the update under way; a second one at once."""

    def stop(*_: Any) -> None:
        if run.stop:
            raise KeyboardInterrupt
        run.stop = True
        console.print("stopping after this update (Ctrl-C once more: at once) ...")

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _options(arguments: list[str]) -> Config:
    """The command line's options, on top of those of the file after ``--config``."""
    arguments, default = list(arguments), Config()
    if "--config" in arguments:
        place = arguments.index("--config")
        if len(arguments) < place + 2:
            raise ValueError("--config needs a file")
        default = read(Path(arguments[place + 1]))
        del arguments[place : place + 2]
    return tyro.cli(Config, args=arguments, default=default, description=__doc__, prog="train.py")


def _new_folder(config: Config) -> Path:
    config.check()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = config.name or f"{config.players}p-seed{config.seed}-{stamp}"
    folder = Path(config.runs) / name
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} exists already: choose another --name, or --resume {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _resumed(arguments: list[str]) -> tuple[Config, Path, dict[str, Any]]:
    """The run to go on with, its folder, and what its ``config.json`` says.

    Only the number of decisions may be changed.
    """

    @dataclasses.dataclass
    class Resume:
        """Go on with a run where it stopped."""

        resume: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
        """The run's folder."""
        steps: int | None = None
        """Train up to this many decisions in all; left out: as many as were asked for at first."""

    asked = tyro.cli(Resume, args=arguments, prog="train.py")
    path = asked.resume / "config.json"
    try:
        first = json.loads(path.read_text())
        config = from_mapping(first["config"])
        first["command"] = str(first["command"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: no run to resume ({error})") from None
    if asked.steps is not None:
        config.steps = asked.steps
    return config, asked.resume, first


def _finish(run: Run, console: Console) -> int:
    """Save the last policy, measure the best one, and say where everything is."""
    save(run.snapshot(), run.folder / "final")
    if not (run.folder / "best.json").exists():
        save(run.snapshot(), run.folder / "best")
    best = load(run.folder / "best").weights
    with console.status(f"evaluating {run.folder}/best ..."):
        results = run.evaluate(run.config.final_games, best)
    write_json(run.folder / "result.json", results)
    console.print(f"{run.folder}/best, playing its likeliest action:")
    table = Table()
    for heading in ("against", "games", "win rate", "95 % interval"):
        table.add_column(heading, justify="left" if heading == "against" else "right")
    for spec, result in results.items():
        low, high = result["ci95"]
        table.add_row(
            spec, f"{result['games']:,}", f"{result['win_rate']:.1%}", f"{low:.1%} - {high:.1%}"
        )
    console.print(table)
    console.print(
        f"play it:  python evaluate.py ppo:{run.folder}/best greedy --players {run.config.players}"
    )
    return 0


class _Display:
    """The progress bar: decisions, speed, and shares of the win against each kind of opponent."""

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
            rates = ", ".join(
                f"{result['win_rate']:.1%} against {spec}"
                for spec, result in progress.evaluation.items()
            )
            self._console.print(f"  after {progress.decisions:,} decisions: {rates}")


if __name__ == "__main__":
    sys.exit(main())
