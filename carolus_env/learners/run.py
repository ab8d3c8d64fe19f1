"""A training run in its folder: rounds of learning, evaluations, the curve, checkpoints, the clock.

The folder holds ``config.json`` (options, seed, versions), the models ``best`` and ``final``,
``result.json``, ``curve.json``, ``tensorboard/``, and the checkpoint, from which the run continues.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from carolus_env import learners
from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.ratings import ANCHOR
from carolus_env.networks.files import Model, file_of
from carolus_env.system import machine, untrusted
from carolus_env.system.arrays import from_bytes, to_bytes
from carolus_env.system.cancellation import Stop, Stopped
from carolus_env.system.command import FAILED, note
from carolus_env.system.compiler import notice
from carolus_env.system.files import Log, write_file, write_json
from carolus_env.system.options import UserError, check_fields, group, option

COMPILING, LEARNING, EVALUATING = PHASES = "compiling", "learning", "evaluating"  # of a run
CHECKPOINT: Final = "resume/checkpoint.safetensors"  # the file, in a run's folder

Arrays = dict[str, npt.NDArray[Any]]
_FORMAT: Final[dict[str, Any]] = {"format": "carolus-checkpoint", "version": 1}
_BEFORE_ANY: Final = 0.15  # assumed time of evaluations in that of learning, before the first one
_FINAL: Final = 3  # the final evaluation takes about this many times as long as another one


# ------------------------------------------------------------------------------------ options

SLOWEST: Final = 1e-9  # the lowest learning rate: float32 weights of 0.01 do not feel a lower one
FLAT: Final = "share of the run in which the learning rate stays; then it decays geometrically"

algorithm: Final = partial(option, heading="algorithm")
network: Final = partial(option, heading="network")
evaluation: Final = partial(option, heading="evaluation")


def every(default: int, unit: str, what: str = "evaluations, each with a checkpoint") -> Any:
    """Return an option of decisions or games between two evaluations, or other events."""
    return evaluation(default, f"{unit} between two {what}", among=(1, None))


def rate(default: float, about: str, heading: str = "") -> Any:
    """Return an option of a learning rate."""
    return option(default, about, among=(SLOWEST, None), below=1, heading=heading)


@dataclass
class RunConfig(ABC):
    """Rules, names and evaluations of a training run."""

    learner_name: ClassVar[str]  # as files and the command line give it
    unit: ClassVar[str]  # of the run: decisions or games learnt from
    length: ClassVar[str]  # name of the option that says how many of them
    bot: ClassVar[str] = ""  # name of the bot that plays the models; empty: that of the learner
    hint: ClassVar[str] = ""  # advice that is printed when a run starts

    rules: Rules = group(Rules, "rules")

    minutes: float | None = option(
        None,
        "minutes of learning by the clock, instead of a number of decisions or games; compiling "
        "and evaluating come on top. Such a run is not reproducible: it learns as much as it can",
        kind=float,
        above=0,
    )
    seed: int = option(1, "seed of games, network and sampling", among=(0, 2**64 - 1))
    name: str | None = option(
        None, "the run's folder is RUNS/NAME; by default learner, players, seed and time", kind=str
    )
    runs: Path = option(Path("runs"), "the folder of all runs", metavar="FOLDER")

    eval_every: int = every(250_000, "decisions or games")
    curve_every: int = every(1, "decisions or games", "points of the curve")
    eval_games: int = evaluation(
        100,
        "most games against each agent in an evaluation; fewer where the interval is narrow",
        among=(1, None),
    )
    final_games: int = evaluation(
        600, "most games against each agent in the final evaluation", among=(1, None)
    )
    eval_bots: tuple[str, ...] = evaluation(
        (),
        "bots that are met in evaluations besides planner and rungs of the ladder, by spec",
        metavar="BOT",
    )
    eval_suite: str | None = evaluation(
        None,
        "half of the suite to measure mean regret on, too; the other half is for publication",
        kind=str,
        among=("learn",),
    )
    checkpoint_every: int | None = evaluation(
        None,
        "decisions or games between two checkpoints; by default one at each evaluation",
        kind=int,
        among=(1, None),
    )

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def players(self) -> int:
        return self.rules.players

    @property
    def resumable(self) -> tuple[str, ...]:
        """The options that may change when a run is resumed: its length."""
        return self.length, "minutes"

    @property
    def budget(self) -> str:
        large = f", {self.memory / 2**30:.1f} GiB of memory" if self.memory > 2**30 else ""
        if self.minutes is not None:
            return f"{self.minutes:g} minutes of learning, evaluations not counted{large}"
        return f"{getattr(self, self.length):,} {self.unit}{large}"

    @property
    def memory(self) -> int:
        """Bytes of what is learnt from between two updates, where they may be many."""
        return 0

    def progress(self, done: int, seconds: float) -> float:
        """Return the fraction of the run, 0 to 1 or more, after decisions or games and seconds."""
        if self.minutes is not None:
            return seconds / 60 / self.minutes
        return done / int(getattr(self, self.length))

    @abstractmethod
    def round_size(self, done: int) -> int:
        """Return the decisions or games of the next round, after so many."""

    @abstractmethod
    def rate_at(self, progress: float) -> float:
        """Return the learning rate of the next round, after this fraction of the run."""

    def extended(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy of another length, to continue a run."""
        if self.length in changes and changes.get("minutes") is not None:
            raise ValueError(f"a run ends after {self.length} or after minutes: name one of them")
        instead = {"minutes": None} if self.length in changes else {}
        return dataclasses.replace(self, **{**instead, **changes})

    def check(self) -> None:
        """Refuse options that cannot work, before anything starts."""
        if self.name in ("", "..") or (self.name and self.name != Path(self.name).name):
            raise ValueError(f"name must be that of a folder in {self.runs}, got {self.name!r}")
        for spec in self.eval_bots:
            make(spec)
        partners = self.rules.partners
        if partners != Rules().partners and self.players != 4:
            raise ValueError(f"partners {partners!r} needs players=4, got {self.players}")
        needed, here = self.memory, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > here:
            has = f"this machine has {here / 2**30:,.1f}"
            raise ValueError(f"a rollout needs {needed / 2**30:,.1f} GiB of memory, {has}")


# ------------------------------------------------------------------------------------ the run


class Learner(ABC):
    """An algorithm, as a run uses it; that of learners by self-play is `selfplay.WorkerPool`."""

    Config: ClassVar[type[RunConfig]]  # its hyperparameters
    cpu_seconds = 0.0  # CPU time of learning so far

    @classmethod
    def begin(cls, config: Any) -> Learner:
        """Return the learner before anything is learnt."""
        return cls(config)  # type: ignore[call-arg]

    @abstractmethod
    def warm_up(self) -> None:
        """Compile, or load, what `learn` needs; nothing is learnt."""

    @abstractmethod
    def learn(self, first: int, count: int, rate: float, stop: Stop) -> int:
        """Do a round of about ``count`` decisions or games, after the ``first`` ones.

        Return how many were learnt from. ``stop`` ends it early, where it takes long.
        """

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Return means since the last `note`, ``loss`` among them; none before anything."""

    def note(self) -> None:  # noqa: B027 - not all have any
        """Begin new means for `metrics`."""

    @abstractmethod
    def model(self, about: Mapping[str, Any]) -> Model[Any]:
        """Return the network as it is now, described by ``about`` and by what is known here."""

    @abstractmethod
    def agent(self, model: Any) -> Agent:
        """Return the bot that plays a model in evaluations."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return all that the next round depends on."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what `arrays` returned; those of other options are an error."""


class Progress(NamedTuple):
    """The progress of a run, for a display."""

    phase: str  # one of PHASES
    done: int  # decisions or games learnt from so far, by this process and those it resumed
    per_s: float  # decisions or games in a second of learning, by this process
    fraction: float  # of the learning that is done
    left: float | None  # seconds that remain, evaluations included, roughly; None: not known
    detail: str  # what is compiled, or how many games against whom; else empty
    loss: float | None  # recent mean loss; None: not known
    evaluation: ladder.Evaluation | None  # that has just ended


@dataclass
class Curve:
    """Measurements of a run so far, the content of ``curve.json``.

    A point has ``decisions`` or ``games``, ``seconds``, ``cpu_seconds``, and the learner's metrics,
    or what `ladder.Evaluation` has and whether ``best`` was ``saved``.
    """

    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: list[dict[str, Any]] = field(default_factory=list)


class Clock:
    """The seconds of a run's phases, from ``before`` on: those of processes that it resumes."""

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self._sums = {phase: float((before or {}).get(phase, 0)) for phase in PHASES}
        self._since, self.phase = 0.0, ""  # the phase under way; empty: none

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Count the time in the ``with`` block for a phase, and not for the one around it."""
        around = self.phase
        self._sums, self.phase, self._since = self.seconds(), phase, time.monotonic()
        try:
            yield
        finally:
            self._sums, self.phase, self._since = self.seconds(), around, time.monotonic()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase in all processes of the run."""
        seconds = dict(self._sums)
        if self.phase:
            seconds[self.phase] += time.monotonic() - self._since
        return seconds


def _begin(work: Callable[[], None]) -> Future[None]:
    """Begin to call a function, in a thread that does not keep the process alive."""
    result: Future[None] = Future()

    def run() -> None:
        try:
            work()
            result.set_result(None)
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


class Run:
    """A training run in a folder that exists.

    Set ``stop``, and it ends after the round under way, or within an evaluation, with a checkpoint.

    Args:
        config: the hyperparameters; they say which learner of `LEARNERS` learns.
        folder: the run's folder.
        command: the command line, for the models' files.
        show: called with the progress, after every round and as evaluations and compiling go on;
            by other threads, too.
        log: called with what TensorBoard shows, numbers by name, and the decisions or games so far.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
        log: Callable[[Mapping[str, float], int], object] = lambda values, step: None,
    ) -> None:
        config.check()
        self.config, self.folder, self.command = config, folder, command
        self.show, self.log = show, log
        self.learner: Learner = learners.learner(config.learner_name).begin(config)
        self.stop, self.clock, self.curve, self.done = Stop(), Clock(), Curve(), 0
        self._learning = 0.0  # seconds of learning, when the last round ended
        self._begun = 0, 0.0, 0.0  # done, progress and those seconds, when this process began
        self._before = self._noted = 0  # done before the last round, and at the curve's last point
        self._due = False  # an evaluation, which comes before the next round
        self._prepared: Future[None] | None = None
        self._scalars: Scalars | None = None

    @property
    def progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1 or more; it changes with rounds."""
        return self.config.progress(self.done, self._learning)

    def _ended(self) -> bool:
        return self.progress >= 1

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each of `PHASES` so far, in all processes of the run."""
        return {phase: round(seconds, 1) for phase, seconds in self.clock.seconds().items()}

    # ------------------------------------------------------------------------ training

    def train(self) -> bool:
        """Train; return True at the end of the run, False after `stop`.

        The checkpoint comes last in a pass of the loop, so that a resumed run enters the loop
        exactly where the interrupted one would have continued. What is learnt does not depend on
        evaluations.
        """
        if self._ended():
            return True
        if self.done == 0:
            with self._surviving(unless=self._ended):
                self.checkpoint()
        with contextlib.suppress(Stopped), self._logging(), self._compiling():
            with self._phase(COMPILING):
                self._wait(_begin(self.learner.warm_up))
            self._begun = self.done, self.progress, self._learning
            with self._phase(LEARNING):
                self._prepare()
                while not (self._ended() or self.stop.is_set()):
                    self._pass()
        return self._ended()

    def _pass(self) -> None:
        """Do a round, with the evaluation and the checkpoint that are due after it."""
        config, resumed = self.config, self._due
        if not resumed:
            self._learn()
            self._due = not self._ended() and self._passed(config.eval_every)
        try:
            if self._due and not self.stop.is_set():
                self._evaluate(self.snapshot())
                self._due = False
        finally:  # an evaluation that is stopped is due when the run is resumed
            ends = self._ended() or self.stop.is_set()
            if ends or resumed or self._passed(config.checkpoint_every or config.eval_every):
                with self._surviving(unless=lambda: self.stop.is_set()):
                    self.checkpoint()

    def _learn(self) -> None:
        """Do a round, and add a point to the curve."""
        config, learner, before = self.config, self.learner, self.done
        count, rate = config.round_size(before), config.rate_at(self.progress)
        self._before, self.done = before, before + learner.learn(before, count, rate, self.stop)
        self._learning = self.clock.seconds()[LEARNING]
        for name, array in learner.arrays().items():
            if not np.isfinite(array).all():
                raise UserError(
                    f"{self.folder}: after {self.done:,} {config.unit} {name} holds NaN or "
                    "infinity, which is not saved: choose a lower learning_rate",
                    FAILED,
                )
        metrics = learner.metrics()
        if (distance := metrics.get("approx_kl", 0.0)) > 1:  # PPO expects hundredths
            far = f"the policy moved by a Kullback-Leibler distance of {distance:.3g}"
            note(f"train: after {self.done:,} {config.unit} {far}: lower the learning_rate")
        if self._passed(config.curve_every) or self._ended():
            values = {f"train/{name}": value for name, value in metrics.items()}
            values["train/learning_rate"] = config.rate_at(self.progress)
            values[f"time/{config.unit}_per_s"] = self._pace()
            self._log({**values, "time/cpu_minutes": learner.cpu_seconds / 60})
            rounded = {name: round(float(value), 5) for name, value in metrics.items()}
            self.curve.training.append({**self._point(), **rounded})
            self._noted = self.done
            learner.note()
        self._tell()

    def _passed(self, every: int) -> bool:
        """Return whether the last round passed a multiple of ``every`` decisions or games."""
        return self.done // every > self._before // every

    def _prepare(self) -> Future[None]:
        """Compile what evaluations need, while the learner learns."""
        if self._prepared is None:
            agent, rules = self.agent(self.snapshot()), self.config.rules
            self._prepared = _begin(lambda: ladder.prepare(agent, rules))
        return self._prepared

    def _wait(self, work: Future[None]) -> None:
        """Return when it has ended, or raise what it raised; `Stopped` when the run is stopped."""
        while not wait([work], 0.1).done:
            self.stop.check()
        work.result()

    def _point(self) -> dict[str, Any]:
        return {
            self.config.unit: self.done,
            "seconds": round(sum(self.clock.seconds().values()), 1),
            "cpu_seconds": round(self.learner.cpu_seconds, 1),
        }

    # ------------------------------------------------------------------------ progress

    @contextlib.contextmanager
    def _phase(self, phase: str) -> Iterator[None]:
        """Count the ``with`` block's time for a phase; show when it begins and ends."""
        with self.clock.during(phase):
            self._tell()
            yield
        if self.clock.phase:
            self._tell()

    def _tell(self, detail: str = "", evaluation: ladder.Evaluation | None = None) -> None:
        loss = self.learner.metrics().get("loss") if self.done > self._noted else None
        if loss is None and self.curve.training:
            loss = self.curve.training[-1]["loss"]
        now = self.clock.phase or COMPILING, self.done, self._pace(), self.progress, self._left()
        self.show(Progress(*now, detail, loss, evaluation))

    def _pace(self) -> float:
        """Return the decisions or games in a second of learning, by this process."""
        return (self.done - self._begun[0]) / max(self._learning - self._begun[2], 1e-9)

    def _left(self) -> float | None:
        """Return the seconds that remain, roughly; None before the first round."""
        learnt, gained = self._learning - self._begun[2], self.progress - self._begun[1]
        if gained <= 0:
            return None
        learning = learnt * max(1 - self.progress, 0) / gained
        evaluations, seconds = len(self.curve.evaluation), self.clock.seconds()
        if not evaluations or not seconds[LEARNING]:
            return learning * (1 + _BEFORE_ANY) + _BEFORE_ANY * learnt
        each = seconds[EVALUATING] / evaluations
        return learning * (1 + seconds[EVALUATING] / seconds[LEARNING]) + _FINAL * each

    def _compiling(self) -> contextlib.AbstractContextManager[None]:
        return notice.told(lambda entry: self._tell(f"compiling {entry}"))

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        try:
            with self._surviving(unless=self._ended):
                self._scalars = Scalars(self.folder / "tensorboard", self.done)
        except ModuleNotFoundError as error:
            note(f"train: no tensorboard/ is written: {error.name} is missing")
        try:
            yield
        finally:
            if self._scalars is not None:
                self._scalars.close()
            self._scalars = None

    def _log(self, values: Mapping[str, float]) -> None:
        self.log(values, self.done)
        if self._scalars is not None:
            with self._surviving(unless=lambda: False):
                self._scalars.write(values, self.done)

    # ------------------------------------------------------------------------ evaluation

    def snapshot(self) -> Model[Any]:
        """Return the current network as a model."""
        config = self.config
        about = {"rules": config.rules.to_dict(), "command": self.command, "seed": config.seed}
        return self.learner.model({**about, **self._point(), **machine.provenance()})

    def agent(self, model: Model[Any]) -> Agent:
        return self.learner.agent(model)

    def _measure(self, games: int, model: Model[Any]) -> ladder.Evaluation:
        config, points = self.config, self.curve.evaluation
        return ladder.evaluate(
            self.agent(model),
            config.rules,
            games,
            near=points[-1]["elo"] if points else None,
            bots=config.eval_bots,
            half=config.eval_suite,
            threads=min(getattr(config, "workers", 1), machine.cores()),
            advance=lambda spec, games: self._tell(f"{games:,} games against {spec}"),
        )

    def _evaluate(self, model: Model[Any], final: bool = False) -> ladder.Evaluation:
        """Evaluate the network, keep it unless the Elo of one kept before lies above; add a point.

        Return the evaluation, a ``final`` one that of the best network, by `final_games`.
        """
        best, config = self.folder / "best", self.config
        with self._compiling(), self.clock.during(COMPILING):
            self._wait(self._prepare())
        with self._compiling(), self._phase(EVALUATING), self.stop.watched():
            others = (p for p in self.curve.evaluation if p[config.unit] != self.done)
            highest = max((p["elo"] for p in others if p["saved"]), default=-math.inf)
            games = config.final_games if final else config.eval_games
            result, saved = self._measure(games, model), False
            if result.high >= highest or not file_of(best).exists():
                with self._surviving(unless=self._ended):
                    model.save(best)
                    saved = True
            self._add_point(result, saved)
            return result if saved or not final else self._measure(games, type(model).load(best))

    def _add_point(self, result: ladder.Evaluation, saved: bool) -> None:
        """Add an evaluation to the curve, in the place of another one of the same network."""
        points = self.curve.evaluation
        if points and points[-1][self.config.unit] == self.done:
            points.pop()
        points.append({**self._point(), **result.to_dict(), "saved": saved})
        with self._surviving(unless=self._ended):
            write_json(self.folder / "curve.json", dataclasses.asdict(self.curve))
        values = {"elo": result.elo, "elo_low": result.low, "elo_high": result.high}
        if result.regret is not None:
            values["suite_regret"] = result.regret[0]
        for spec in (ANCHOR, *self.config.eval_bots):
            values[spec] = result.results[spec]["win_rate"]
        self._log({f"evaluation/{name}": value for name, value in values.items()})
        self._tell(evaluation=result)

    def finish(self) -> ladder.Evaluation:
        """Save the last network, evaluate the best one, and write ``result.json``."""
        model = self.snapshot()
        model.save(self.folder / "final")
        with self._logging():
            result = self._evaluate(model, final=True)
        write_json(self.folder / "result.json", {**result.to_dict(), "seconds": self.seconds})
        self.checkpoint()
        return result

    # ------------------------------------------------------------------------ resuming

    @contextlib.contextmanager
    def _surviving(self, unless: Callable[[], bool]) -> Iterator[None]:
        """Warn of what the ``with`` block cannot write, and go on, unless it would be lost."""
        try:
            yield
        except OSError as error:
            if unless():
                raise
            note(f"train: not written: {error}; training continues")

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is complete."""
        numbers = {
            "done": self.done,
            "noted": self._noted,
            "due": self._due,
            "learning": self._learning,
            "cpu_seconds": self.learner.cpu_seconds,
            "seconds": self.clock.seconds(),
            "curve": dataclasses.asdict(self.curve),
        }
        about = {**_FORMAT, "numbers": json.dumps(numbers)}  # a metric may be NaN
        (self.folder / CHECKPOINT).parent.mkdir(exist_ok=True)
        write_file(self.folder / CHECKPOINT, to_bytes(self.learner.arrays(), about))

    def resume(self) -> None:
        """Continue from the last checkpoint.

        `ppo` and `value` continue bit for bit like an uninterrupted run; `sb3` begins new games. A
        run that ended before its first checkpoint begins anew.
        """
        try:
            numbers, arrays = read_checkpoint(self.folder)
        except (OSError, ValueError) as error:
            learnt = any(file_of(self.folder / name).exists() for name in ("best", "final"))
            if isinstance(error, FileNotFoundError) and not learnt:
                return
            raise ValueError(f"{self.folder}: no readable checkpoint ({error})") from None
        try:
            self.learner.restore(arrays)
            self.learner.cpu_seconds = float(numbers["cpu_seconds"])
            self.done, self._noted = int(numbers["done"]), int(numbers["noted"])
            self._learning, self._due = float(numbers["learning"]), bool(numbers["due"])
            self.clock = Clock(numbers["seconds"])
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], Arrays]:
    """Read the numbers and arrays of a run's checkpoint, without running code."""
    arrays, about = from_bytes((folder / CHECKPOINT).read_bytes())
    untrusted.expect(about, **_FORMAT)
    return json.loads(untrusted.get(about, "numbers", str)), arrays


class Scalars:
    """A file of numbers in a folder of TensorBoard, which ends with a whole point.

    ``step`` is the last one that counts of those in the folder's other files: a run that is resumed
    repeats the later ones.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()  # TensorBoard reads files in the order of their names
        path = folder / f"events.out.tfevents.{now // 10**9:010}.{now:019}"
        self._log = Log.create(path)
        self._records = RecordWriter(SimpleNamespace(write=self._log.append))
        self._add(file_version="brain.Event:2")
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._add(session_log=start, step=step + 1)

    def write(self, values: Mapping[str, float], step: int) -> None:
        numbers = [self._summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
        self._add(step=step, summary=self._summary(value=numbers))

    def _add(self, **content: Any) -> None:
        event = self._event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())

    def close(self) -> None:
        self._log.close()
