"""Train an agent by self-play.

  carolus train                              # 2 players, some minutes on two cores
  carolus train --players 4 --steps 5000000 --name four
  carolus train --learner value              # a value network; --help then lists its options
  carolus train --learner sb3                # MaskablePPO of sb3-contrib
  carolus train --config agents/ppo_2p.toml  # options from a file; the command line overrides
  carolus train --resume runs/four           # continue an interrupted run

docs/training.md explains how training works, and what a run leaves behind.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from carolus_env.evaluation import ladder
from carolus_env.evaluation.placing import Evaluation
from carolus_env.learners import LEARNERS, config_of, learner, read_config
from carolus_env.learners.options import RunConfig
from carolus_env.learners.provenance import provenance
from carolus_env.learners.run import COMPILING, LEARNING, Progress, Run
from carolus_env.system.cancellation import Stopped
from carolus_env.system.command import (
    DONE,
    INTERRUPTED,
    add_options,
    aligned,
    command,
    needs,
    parser_of,
    plain_console,
)
from carolus_env.system.failures import UserError
from carolus_env.system.files import locked, write_json
from carolus_env.system.options import as_dict, declared, make, option, replaced

CONFIG: Final = "config.json"
_ABOUT: Final = "; ".join(f"{name}, {known.about}" for name, known in LEARNERS.items())


@dataclass(frozen=True)
class TrainOptions:
    """Sources of options other than the command line."""

    learner: str | None = option(
        None,
        f"{_ABOUT}; by default the one that --config names, or the first",
        kind=str,
        metavar="NAME",
    )
    config: Path | None = option(
        None,
        "a TOML file of options; the command line overrides it",
        kind=Path,
        metavar="FILE",
    )
    resume: Path | None = option(
        None,
        "the folder of a run to continue, one of your own. Only its length may be given with it: "
        "see --resume FOLDER --help",
        kind=Path,
        metavar="FOLDER",
    )


FIRST: Final = ("name", "runs", "seed", "workers", "start", "learning_rate")
"""Options at the head of --help, after the length of the run; the others follow by headings."""


@dataclass
class Job:
    """A run to start or to continue: the content of its ``config.json``, and its folder."""

    config: RunConfig
    folder: Path
    command: str
    made_with: dict[str, Any]
    resumed: bool

    def write(self) -> None:
        """Write ``config.json``."""
        options = {"config": self.config.to_dict(), "command": self.command}
        write_json(self.folder / CONFIG, {**self.made_with, **options})


@command("carolus train")
def main(arguments: Sequence[str], program: str) -> int:
    """Train, evaluate, and return the exit code."""
    console = plain_console()
    job = read_job(arguments, program)
    try:
        result = _train(job, console)
    except KeyboardInterrupt:
        raise UserError(f"interrupted{_continue(job, program)}", INTERRUPTED) from None
    if result is None:
        console.print(f"stopped and saved{_continue(job, program)}")
        return INTERRUPTED
    _report(job, *result, console)
    return DONE


def _continue(job: Job, program: str) -> str:
    """Return the command that continues a run, after a colon; empty before anything is kept."""
    if not (job.folder / CONFIG).exists():
        return ""
    return f"; continue: {program} --resume {shlex.quote(str(job.folder))}"


def _train(job: Job, console: Console) -> tuple[Evaluation, dict[str, float]] | None:
    """Train, and evaluate the best network.

    Returns:
        The evaluation, and the seconds of each phase; None where the run was stopped.

    Raises:
        BusyError: when another process trains in that folder.
    """
    with locked(job.folder):
        return _train_alone(job, console)


def _train_alone(job: Job, console: Console) -> tuple[Evaluation, dict[str, float]] | None:
    display = _Display(console, job.config)
    options = {"command": job.command, "show": display.show}
    run = learner(job.config.learner_name).start(job.config, job.folder, **options)
    if job.resumed:
        run.resume()
    job.write()
    console.print(f"{job.folder}: {job.config.players} players, {job.config.budget}")
    if job.config.hint:
        console.print(job.config.hint, style="dim")
    with display, _stopping(run, console):
        try:
            return (run.finish(), run.seconds) if run.train() else None
        except Stopped:
            return None


def read_job(arguments: Sequence[str], program: str = "carolus train") -> Job:
    """Make the run that the command line asks for, and the folder of a new one.

    Raises:
        ValueError: for options, files or folders that cannot be used.
        UserError: for a command line that is not understood.
    """
    # Read first, without --help: it decides which options there are, and their defaults.
    sources = parser_of(program, None, help=False)
    add_options(sources, TrainOptions)
    source = make(TrainOptions, vars(sources.parse_known_args(arguments)[0]))
    line = f"{program} {shlex.join(arguments)}".rstrip()
    if source.resume is not None:
        return _resumed(source, arguments, line, program)
    if source.config is not None:
        config = read_config(source.config, source.learner)
    else:
        config = learner(source.learner).config_type()()
    known = declared(config)
    _check_learner(config, arguments)
    parser = parser_of(program, __doc__, "[options]")
    add_options(parser, TrainOptions, defaults={"learner": config.learner_name})
    first = [name for name in (*config.resumable, *FIRST) if name in known]
    names = [*first, *(name for name in known if name not in first)]
    add_options(parser, config, names, as_dict(config))
    values = vars(parser.parse_args(arguments))
    given = {name: value for name, value in values.items() if name in known}
    length = {name: given[name] for name in config.resumable if name in given}
    config = replaced(config, given).extended(length)
    for name, need in config.unused().items():
        needs(given, name, False, need)
    return Job(config, _new_folder(config, program), line, provenance(), resumed=False)


def _check_learner(config: RunConfig, arguments: Sequence[str]) -> None:
    """Refuse an option of another learner, naming whose it is."""
    own = {"help", *declared(TrainOptions), *declared(config)}
    for argument in arguments:
        option = argument.partition("=")[0]
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name in own:
            continue
        for owner, entry in LEARNERS.items():
            with contextlib.suppress(ModuleNotFoundError):
                if name in declared(entry.config_type()):
                    raise ValueError(f"{option} is an option of --learner {owner}")


def _new_folder(config: RunConfig, program: str) -> Path:
    config.check()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    parts = config.learner_name, f"{config.players}p", f"seed{config.seed}", stamp
    name = config.name or "-".join(parts)
    folder = config.runs / name
    if folder.exists() and any(path.name != ".lock" for path in folder.iterdir()):
        text = f"{folder} exists already: choose another --name"
        if (folder / CONFIG).exists():
            text += f", or continue it: {program} --resume {shlex.quote(str(folder))}"
        raise UserError(text)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _resumed(source: TrainOptions, arguments: Sequence[str], line: str, program: str) -> Job:
    """Return the run in a folder; other words of the command line may change only its length."""
    folder = source.resume
    assert folder is not None
    if not folder.is_dir():
        raise ValueError(f"{folder}: no run to resume: there is no such folder")
    path = folder / CONFIG
    try:
        first = json.loads(path.read_text())
        config = config_of(first.pop("config"))
        original = str(first.pop("command"))
    except OSError as error:
        raise ValueError(f"{folder}: no run to resume: {path.name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: no run to resume: {path.name}: {error}") from None
    parser = parser_of(f"{program} --resume FOLDER", None)
    add_options(parser, TrainOptions, ["resume"])
    add_options(parser, config, config.resumable, as_dict(config))
    given = vars(TrainOptions(source.learner, source.config))
    if other := [name for name, value in given.items() if value is not None]:
        raise UserError(f"--resume takes its options from the run; leave out --{other[0]}")
    changes = vars(parser.parse_args(arguments))
    del changes["resume"]
    longer = config.extended(changes) if changes else config
    if longer == config:
        return Job(config, folder, original, first, resumed=True)
    return Job(longer, folder, f"{original}; {line}", first, resumed=True)


@contextlib.contextmanager
def _stopping(run: Run, console: Console) -> Iterator[None]:
    """Let Ctrl-C or SIGTERM end the run after the current update or game; a second one at once."""

    def stop(*_: Any) -> None:
        if run.stop.is_set:
            raise KeyboardInterrupt
        run.stop.set()
        console.print("stopping (Ctrl-C again: without a checkpoint) ...")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interval(numbers: Mapping[str, Any]) -> str:
    low, high = numbers["ci95"]
    return f"{low:.1%} - {high:.1%}"


def _rating(result: Evaluation) -> str:
    """Return a rating in a line of text."""
    text = f"Elo {result.elo:.0f} ({result.low:.0f} to {result.high:.0f}; planner: 0)"
    return text if result.regret is None else f"{text}, regret a decision {result.regret[0]:.1%}"


def _report(job: Job, result: Evaluation, seconds: Mapping[str, float], console: Console) -> None:
    """Print the strength of the best network, what took how long, and commands that use it."""
    elos = {rung.spec: f"{rung.elo:.0f}" for rung in ladder.rungs(job.config.players)}
    rows = [("against", "win rate", "95 % interval", "games", "its Elo")]
    for spec, numbers in result.results.items():  # planner is the first
        row = f"{numbers['win_rate']:.1%}", _interval(numbers), f"{numbers['games']:,}"
        rows.append((spec, *row, elos.get(spec, "-")))
    lines = aligned(rows, right=range(1, len(rows[0])))
    console.print("\n".join([f"{job.folder}/best", *lines]))
    console.print(f"strength: {_rating(result)}")
    total = max(sum(seconds.values()), 1e-9)
    times = (f"{phase} {_time(each)} ({each / total:.0%})" for phase, each in seconds.items())
    console.print(f"time: {', '.join(times)}")
    if (job.folder / "curve.png").exists():
        console.print(f"its curve: {job.folder}/curve.png")
    spec = f"{job.config.bot or job.config.learner_name}:{job.folder}/best"
    spec = shlex.quote(spec)
    console.print(f"measure it: carolus evaluate {spec} planner --players {job.config.players}")
    console.print(f"play it: carolus play --bot {spec}")


def _time(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    hours, rest = divmod(max(round(seconds), 0), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


class _Left(ProgressColumn):
    """The time that remains, counted down between two estimates."""

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        return Text("" if end is None else f"{_time(end - time.monotonic())} left")


class _Display:
    """The progress of a run: a bar on a terminal, elsewhere a line for each phase."""

    def __init__(self, console: Console, config: RunConfig) -> None:
        self._console, self._config = console, config
        self._phase = ""
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
            _Left(),
            console=console,
        )
        self._task = self._bar.add_task("starting", total=1.0, text="", end=None)

    def __enter__(self) -> _Display:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def show(self, progress: Progress) -> None:
        """Show the progress of a run."""
        if progress.phase != self._phase and not self._console.is_terminal:
            self._console.print(f"{self._text(progress.phase, progress.done)} ...")
        self._phase = progress.phase
        numbers = [f"{progress.done:,} {self._config.unit}"]
        if progress.phase == LEARNING:
            numbers[0] += f", {progress.per_s:,.0f}/s"
            if progress.loss is not None:
                numbers.append(f"loss {progress.loss:.4f}")
        if progress.detail:
            numbers = [progress.detail]
        left = progress.left
        self._bar.update(
            self._task,
            description=progress.phase,
            completed=min(progress.fraction, 0.9999),  # rich would stop the clock at 1
            text="  ".join(numbers),
            end=None if left is None else time.monotonic() + left,
        )
        if progress.evaluation:
            evaluation = progress.evaluation
            rates = ", ".join(
                f"{result['win_rate']:.1%} against {spec}"
                for spec, result in evaluation.results.items()
            )
            unit = self._config.unit
            self._console.print(f"  after {progress.done:,} {unit}: {rates}, {_rating(evaluation)}")

    def _text(self, phase: str, done: int) -> str:
        """Return a phase in words, for a log."""
        if phase == COMPILING:
            return "compiling, or loading what was compiled before"
        return f"{phase} {'from' if phase == LEARNING else 'after'} {done:,} {self._config.unit}"
