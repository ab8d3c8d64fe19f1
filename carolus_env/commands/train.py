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
import shlex
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import rich.progress as bars
from rich.console import Console
from rich.text import Text

from carolus_env.evaluation import ladder
from carolus_env.evaluation.ladder import Evaluation
from carolus_env.evaluation.ratings import rating_text
from carolus_env.learners import LEARNERS, config_of, learner, read_config
from carolus_env.learners.run import COMPILING, LEARNING, Progress, Run, RunConfig
from carolus_env.system import command, untrusted
from carolus_env.system.cancellation import Stopped
from carolus_env.system.files import locked, write_json
from carolus_env.system.machine import provenance
from carolus_env.system.options import UserError, as_dict, declared, make, option, replaced

CONFIG: Final = "config.json"
FIRST: Final = ("name", "runs", "seed", "workers", "start", "learning_rate")
"""Options at the head of --help, after the length of the run; the others follow by headings."""
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
        None, "a TOML file of options; the command line overrides it", kind=Path, metavar="FILE"
    )
    resume: Path | None = option(
        None,
        "the folder of a run to continue. Only its length may be given with it: see --resume "
        "FOLDER --help",
        kind=Path,
        metavar="FOLDER",
    )


@dataclass
class Job:
    """A run to start or to continue."""

    config: RunConfig
    folder: Path
    command: str  # the command line, and those that continued the run
    made_with: dict[str, Any]  # its provenance
    resumed: bool

    def write(self) -> None:
        """Write ``config.json``."""
        options = {"learner": self.config.learner_name, **as_dict(self.config)}
        content = {**self.made_with, "config": options, "command": self.command}
        write_json(self.folder / CONFIG, content)


@command.command("carolus train")
def main(arguments: Sequence[str], program: str) -> int:
    """Train, evaluate, and return the exit code."""
    console = command.plain_console()
    job = read_job(arguments, program)
    again = f"; continue: {program} --resume {shlex.quote(str(job.folder))}"
    try:
        result = _train(job, console)
    except KeyboardInterrupt:
        raise UserError(f"interrupted{again}", command.INTERRUPTED) from None
    if result is None:
        console.print(f"stopped and saved{again}")
        return command.INTERRUPTED
    _report(job, *result, console)
    return command.DONE


def _train(job: Job, console: Console) -> tuple[Evaluation, dict[str, float]] | None:
    """Train; return the evaluation, and the seconds of each phase, or None where it was stopped."""
    with locked(job.folder):
        display = _Display(console, job.config.unit)
        run = Run(job.config, job.folder, command=job.command, show=display.show)
        if job.resumed:
            run.resume()
            job.write()
        console.print(f"{job.folder}: {job.config.players} players, {job.config.budget}")
        if job.config.hint:
            console.print(job.config.hint, style="dim")
        with display, _stopping(run, console), contextlib.suppress(Stopped):
            if run.train():
                return run.finish(), run.seconds
        return None


def read_job(arguments: Sequence[str], program: str = "carolus train") -> Job:
    """Make the run that the command line asks for, and the folder of a new one."""
    # Read first, without --help: it decides which options there are, and their defaults.
    sources = command.parser_of(program, None, help=False)
    command.add_options(sources, TrainOptions)
    source = make(TrainOptions, vars(sources.parse_known_args(arguments)[0]))
    line = f"{program} {shlex.join(arguments)}".rstrip()
    if source.resume is not None:
        for name in ("learner", "config"):
            if getattr(source, name) is not None:
                raise UserError(f"--resume takes its options from the run; leave out --{name}")
        return _resumed(source.resume, arguments, line, program)
    file = source.config
    config = read_config(file, source.learner) if file else learner(source.learner).Config()
    known = declared(config)
    _check_learner(config, arguments)
    parser = command.parser_of(program, __doc__, "[options]")
    command.add_options(parser, TrainOptions, defaults={"learner": config.learner_name})
    first = [name for name in (*config.resumable, *FIRST) if name in known]
    command.add_options(parser, config, dict.fromkeys((*first, *known)), as_dict(config))
    values = vars(parser.parse_args(arguments))
    given = {name: value for name, value in values.items() if name in known}
    length = {name: given[name] for name in config.resumable if name in given}
    config = replaced(config, given).extended(length)
    config.check()
    job = Job(config, _claimed(config, program), line, provenance(), resumed=False)
    job.write()
    return job


def _check_learner(config: RunConfig, arguments: Sequence[str]) -> None:
    """Refuse an option of another learner, naming whose it is."""
    own = {"help", *declared(TrainOptions), *declared(config)}
    words = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        for owner in LEARNERS if name not in own else ():
            with contextlib.suppress(ModuleNotFoundError):
                if name in declared(learner(owner).Config):
                    raise ValueError(f"{word} is an option of --learner {owner}")


def _claimed(config: RunConfig, program: str) -> Path:
    """Make the folder of a new run, which no other process can have: mkdir is exclusive."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{config.learner_name}-{config.players}p-seed{config.seed}-{stamp}"
    config.runs.mkdir(parents=True, exist_ok=True)
    names = [config.name] if config.name else [name, *(f"{name}-{k}" for k in range(2, 1000))]
    for each in names:
        with contextlib.suppress(FileExistsError):
            (config.runs / each).mkdir()
            return config.runs / each
    folder = config.runs / names[0]
    text = f"{folder} exists already: choose another --name"
    if (folder / CONFIG).exists():
        text += f", or continue it: {program} --resume {shlex.quote(str(folder))}"
    raise UserError(text)


def _resumed(folder: Path, arguments: Sequence[str], line: str, program: str) -> Job:
    """Return the run in a folder; other words of the command line may change only its length."""
    try:
        first = untrusted.parse_json((folder / CONFIG).read_bytes())
        config = config_of(untrusted.get(untrusted.check(first, dict, "it"), "config", dict))
        original = untrusted.get(first, "command", str)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        reason = f"{CONFIG}: {reason}" if folder.is_dir() else "there is no such folder"
        raise ValueError(f"{folder}: no run to resume: {reason}") from None
    parser = command.parser_of(f"{program} --resume FOLDER", None)
    command.add_options(parser, TrainOptions, ["resume"])
    command.add_options(parser, config, config.resumable, as_dict(config))
    changes = vars(parser.parse_args(arguments))
    del changes["resume"]
    longer = config.extended(changes)
    line = original if longer == config else f"{original}; {line}"
    return Job(longer, folder, line, first, resumed=True)


def _stopping(run: Run, console: Console) -> contextlib.AbstractContextManager[None]:
    """Let Ctrl-C or SIGTERM end the run after the current update or game; a second one at once."""

    def stop(*_: Any) -> None:
        if run.stop.is_set():
            raise KeyboardInterrupt
        run.stop.set()
        console.print("stopping (Ctrl-C again: without a checkpoint) ...")

    return command.handling(stop, signal.SIGINT, signal.SIGTERM)


# ------------------------------------------------------------------------------------ output


def _rating(result: Evaluation) -> str:
    regret = "" if result.regret is None else f", regret a decision {result.regret[0]:.1%}"
    interval = f"{result.elo:.0f} ({result.low:.0f} to {result.high:.0f}; planner: 0)"
    return f"Elo on the ladder {rating_text(vars(result)) if result.bound else interval}{regret}"


def _report(job: Job, result: Evaluation, seconds: dict[str, float], console: Console) -> None:
    """Print the strength of the best network, what took how long, and commands that use it."""
    elos = {rung.spec: f"{rung.elo:.0f}" for rung in ladder.rungs(job.config.players)}
    rows = [("against", "win rate", "95 % interval", "games", "its Elo")]
    for spec, numbers in result.results.items():  # planner is the first
        low, high = numbers["ci95"]
        interval, games = f"{low:.1%} - {high:.1%}", f"{numbers['games']:,}"
        rows.append((spec, f"{numbers['win_rate']:.1%}", interval, games, elos.get(spec, "-")))
    console.print(f"{job.folder}/best")
    console.print("\n".join(command.aligned(rows, right=range(1, 5))))
    console.print(f"strength: {_rating(result)}")
    total = max(sum(seconds.values()), 1e-9)
    times = (f"{phase} {_time(each)} ({each / total:.0%})" for phase, each in seconds.items())
    console.print(f"time: {', '.join(times)}")
    console.print(f"its curve: tensorboard --logdir {shlex.quote(f'{job.folder}/tensorboard')}")
    spec = shlex.quote(f"{job.config.bot or job.config.learner_name}:{job.folder}/best")
    console.print(f"measure it: carolus evaluate {spec} planner --players {job.config.players}")
    console.print(f"play it: carolus play --bot {spec}")


def _time(seconds: float) -> str:
    hours, rest = divmod(max(round(seconds), 0), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


class _Left(bars.ProgressColumn):
    """The time that remains, counted down between two estimates."""

    def render(self, task: bars.Task) -> Text:
        end = task.fields["end"]
        return Text("" if end is None else f"{_time(end - time.monotonic())} left")


class _Display(bars.Progress):
    """The progress of a run: a bar on a terminal, elsewhere a line for each phase."""

    def __init__(self, console: Console, unit: str) -> None:
        super().__init__(
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(bar_width=12),
            bars.TaskProgressColumn(),
            bars.TextColumn("{task.fields[text]}", markup=False),
            bars.TimeElapsedColumn(),
            _Left(),
            console=console,
            disable=not console.is_terminal,
        )
        self._unit, self._phase = unit, ""
        self._task = self.add_task("starting", total=1.0, text="", end=None)

    def show(self, progress: Progress) -> None:
        """Show the progress of a run."""
        done = f"{progress.done:,} {self._unit}"
        if progress.phase != self._phase and not self.console.is_terminal:
            place = f"{'from' if progress.phase == LEARNING else 'after'} {done}"
            compiling = "compiling, or loading what was compiled before"
            text = compiling if progress.phase == COMPILING else f"{progress.phase} {place}"
            self.console.print(f"{text} ...")
        self._phase = progress.phase
        text = progress.detail or done
        if progress.phase == LEARNING and not progress.detail:
            text += f", {progress.per_s:,.0f}/s"
            text += "" if progress.loss is None else f"  loss {progress.loss:.4f}"
        self.update(
            self._task,
            description=progress.phase,
            completed=min(progress.fraction, 0.9999),  # rich would stop the clock at 1
            text=text,
            end=None if progress.left is None else time.monotonic() + progress.left,
        )
        if found := progress.evaluation:
            rates = (f"{each['win_rate']:.1%} against {s}" for s, each in found.results.items())
            self.console.print(f"  after {done}: {', '.join(rates)}, {_rating(found)}")
