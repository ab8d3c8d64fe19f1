"""A training run in its folder: rounds of learning, evaluations, the curve, checkpoints, the clock.

The folder holds ``config.json`` (options, seed, versions), the models ``best`` and ``final``,
``result.json``, ``curve.json`` and ``curve.png``, ``tensorboard/``, and ``resume/``
(`learners.checkpoint`), from which the run continues bit for bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent
from carolus_env.evaluation import ladder
from carolus_env.evaluation.placing import Evaluation, prepare
from carolus_env.learners import checkpoint
from carolus_env.learners.curve import Curve
from carolus_env.learners.options import RunConfig, SelfPlayConfig
from carolus_env.learners.pool import SelfPlayLearner, WorkerPool
from carolus_env.learners.provenance import provenance
from carolus_env.learners.scalars import Scalars
from carolus_env.networks.files import file_of
from carolus_env.networks.network import NetworkModel
from carolus_env.system.cancellation import Stop, Stopped
from carolus_env.system.command import FAILED
from carolus_env.system.compiler import notice
from carolus_env.system.failures import UserError
from carolus_env.system.files import write_json

COMPILING: Final = "compiling"
LEARNING: Final = "learning"
EVALUATING: Final = "evaluating"
PHASES: Final = (COMPILING, LEARNING, EVALUATING)
"""The phases of a run, each with its seconds in ``result.json``."""

_BEFORE_ANY: Final = 0.15  # assumed time of evaluations in that of learning, before the first one
_FINAL: Final = 3  # the final evaluation takes about this many times as long as another one


@dataclass(frozen=True)
class Progress:
    """The progress of a run, for a display.

    Attributes:
        phase: one of `PHASES`.
        done: decisions or games learnt from so far, by this process and those it resumed.
        per_s: decisions or games in a second of learning, by this process.
        fraction: fraction of the learning that is done.
        left: seconds that remain, evaluations included, roughly; None: not known.
        detail: what is compiled, or how many games against whom; else empty.
        loss: recent mean loss; None: not known.
        evaluation: the evaluation that has just ended; else None.
    """

    phase: str
    done: int
    per_s: float
    fraction: float
    left: float | None = None
    detail: str = ""
    loss: float | None = None
    evaluation: Evaluation | None = None


Show = Callable[[Progress], None]


class Clock:
    """The seconds of a run's phases.

    Args:
        before: seconds of each phase in the processes that this one resumes.

    Attributes:
        phase: the phase under way; None between them.
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self._before = {phase: float((before or {}).get(phase, 0)) for phase in PHASES}
        self._here = dict.fromkeys(PHASES, 0.0)
        self.phase: str | None = None
        self._since = time.monotonic()

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Count the time in the ``with`` block for a phase, and not for the one around it."""
        around = self.phase
        self._switch(phase)
        try:
            yield
        finally:
            self._switch(around)

    def _switch(self, phase: str | None) -> None:
        self._here, self.phase, self._since = self.here(), phase, time.monotonic()

    def here(self) -> dict[str, float]:
        """Return the seconds of each phase in this process."""
        seconds = dict(self._here)
        if self.phase is not None:
            seconds[self.phase] += time.monotonic() - self._since
        return seconds

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase in all processes of the run."""
        here = self.here()
        return {phase: self._before[phase] + here[phase] for phase in PHASES}

    def total(self) -> float:
        """Return the seconds of the whole run."""
        return sum(self._before.values()) + sum(self.here().values())


class Run(ABC):
    """A training run, as the command ``train`` uses it.

    Args:
        config: the hyperparameters.
        folder: the run's folder; it exists.
        command: the command line, for the models' files.
        show: a function to call with the progress; other threads call it, too.

    Attributes:
        stop: set it, and the run ends after the update under way, or within an evaluation, with a
            checkpoint.
        clock: the seconds of each of `PHASES`.

    Raises:
        ValueError: for options that cannot work.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        *,
        command: str = "",
        show: Show = lambda progress: None,
    ) -> None:
        config.check()
        self.config, self.folder, self.command, self.show = config, folder, command, show
        self.stop, self.clock = Stop(), Clock()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each of `PHASES` so far, in all processes of the run."""
        return {phase: round(seconds, 1) for phase, seconds in self.clock.seconds().items()}

    def check_weights(self, arrays: Mapping[str, npt.NDArray[Any]], done: int) -> None:
        """Refuse weights that are not numbers, before any file has them.

        Args:
            arrays: the weights, and the state of the optimiser, by name.
            done: decisions or games learnt from.

        Raises:
            UserError: for NaN and infinities.
        """
        if wrong := [name for name, array in arrays.items() if not np.isfinite(array).all()]:
            raise UserError(
                f"{self.folder}: after {done:,} {self.config.unit} {wrong[0]} holds NaN or "
                "infinity, which is not saved: choose a lower learning_rate",
                code=FAILED,
            )

    @abstractmethod
    def resume(self) -> None:
        """Continue from the last checkpoint; without one begin anew.

        Raises:
            ValueError: when it cannot be read.
        """

    @abstractmethod
    def train(self) -> bool:
        """Train to the end of the run; returns False when it was stopped before."""

    @abstractmethod
    def finish(self) -> Evaluation:
        """Save the last network, evaluate the best one, and write ``result.json``.

        Raises:
            Stopped: when it was stopped.
        """

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Count the time of the ``with`` block as an evaluation's, which `stop` ends."""
        with self.stop.watched(), self.clock.during(EVALUATING):
            yield


class _Background:
    """A function that runs beside its caller, in a thread that does not keep the process alive."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def wait(self, stop: Stop) -> None:
        """Return when it has ended.

        Raises:
            Stopped: when ``stop`` is set before.
            BaseException: what it raised.
        """
        while self._thread.is_alive():
            self._thread.join(0.1)
            stop.check()
        if self._error is not None:
            raise self._error


class SelfPlayRun(Run):
    """A training run of a learner by self-play.

    Args:
        learner: the algorithm.
        config, folder, keywords: as for `Run`; ``show`` is called after every round, and as
            evaluations and compiling go on.

    Attributes:
        done: decisions or games learnt from so far.
        pool: the workers that learn.
    """

    config: SelfPlayConfig

    def __init__(
        self,
        learner: type[SelfPlayLearner[Any]],
        config: SelfPlayConfig,
        folder: Path,
        **keywords: Any,
    ) -> None:
        super().__init__(config, folder, **keywords)
        self.learner, self.rules = learner, config.rules
        self.curve = Curve()
        self.done = 0
        self.pool = WorkerPool(learner, config)
        self._begun = 0, 0.0  # done and progress, when this process began
        self._before = 0  # decisions or games before the last round
        self._learning = 0.0  # seconds of learning, when the last round ended
        self._due = False  # an evaluation, which comes before the next round
        self._noted = 0, self.pool.stats.copy()  # done, and statistics, at the curve's last point
        self._prepared: _Background | None = None
        self._scalars: Scalars | None = None

    @property
    def progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1 or more; it changes with rounds."""
        return self.config.progress(self.done, self._learning)

    # ------------------------------------------------------------------------ training

    def train(self) -> bool:
        """Train to the end of the run.

        The checkpoint comes last in a pass of the loop, so that a resumed run enters the loop
        exactly where the interrupted one would have continued. What is learnt does not depend on
        evaluations.

        Returns:
            True when all is done; False after `stop`.
        """
        if self.progress >= 1:
            return True
        if self.done == 0:
            with self._surviving():
                self.checkpoint()
        with contextlib.suppress(Stopped), self._logging(), self._compiling():
            with self.clock.during(COMPILING):
                self._tell(COMPILING)
                _Background(self.pool.warm_up).wait(self.stop)
            with self.clock.during(LEARNING):
                self._prepare()
                self._begun = self.done, self.progress
                self._tell(LEARNING)
                while self.progress < 1 and not self.stop.is_set:
                    self._pass()
        return self.progress >= 1

    def _pass(self) -> None:
        """Do a round, with the evaluation and the checkpoint that are due after it."""
        config = self.config
        checkpoint_every = config.checkpoint_every or config.eval_every
        resumed = self._due
        if not resumed:
            self._before = self.done
            count = config.round_size(self.done)
            self.pool.learn(self.done, count, config.rate_at(self.progress))
            self.done += count
            self._learning = self.clock.seconds()[LEARNING]
            self.check_weights(self.pool.shared, self.done)
            self._note()
            self._due = self.progress < 1 and self._passed(config.eval_every)
        try:
            if self._due and not self.stop.is_set:
                self._evaluate(self.snapshot(), config.eval_games)
                self._due = False
                self._tell(LEARNING)
        finally:  # an evaluation that is stopped is due when the run is resumed
            ends = self.progress >= 1 or self.stop.is_set
            if ends or resumed or self._passed(checkpoint_every):
                try:
                    self.checkpoint()
                except OSError as error:
                    if self.stop.is_set:  # it would be lost
                        raise
                    self._warn(error)

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        """Write TensorBoard's files in the ``with`` block."""
        try:
            with self._surviving():
                self._scalars = Scalars(self.folder / "tensorboard", self.done)
        except ModuleNotFoundError as error:
            print(f"train: no tensorboard/ is written: {error.name} is missing", file=sys.stderr)
        try:
            yield
        finally:
            if self._scalars is not None:
                self._scalars.close()
            self._scalars = None

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """Show what is compiled in the ``with`` block."""

        def tell(entry: str) -> None:
            self._tell(self.clock.phase or COMPILING, f"compiling {entry}")

        with notice.told(tell):
            yield

    def _prepare(self) -> _Background:
        """Compile what evaluations need, while the workers learn; return the thread that does."""
        if self._prepared is None:
            agent, rules = self.agent(self.snapshot()), self.rules
            self._prepared = _Background(lambda: prepare(agent, rules))
        return self._prepared

    def _passed(self, every: int) -> bool:
        """Return whether the last round passed a multiple of ``every`` decisions or games."""
        return self.done // every > self._before // every

    def _note(self) -> None:
        """Log the last round, and add a point to the curve."""
        if self._passed(self.config.curve_every) or self.progress >= 1:
            metrics, pool = self._metrics(), self.pool
            scalars = {
                **{f"train/{name}": value for name, value in metrics.items()},
                "train/learning_rate": self.config.rate_at(self.progress),
                f"time/{self.config.unit}_per_s": self._pace(),
                "time/cpu_minutes": pool.cpu_seconds / 60,
            }
            self._log(scalars)
            rounded = {name: round(float(value), 5) for name, value in metrics.items()}
            self.curve.training.append({**self._point(), **rounded})
            self._noted = self.done, pool.stats.copy()
        self._tell(LEARNING)

    def _metrics(self) -> dict[str, float]:
        """Return the learner's metrics since the curve's last point."""
        sums = (self.pool.stats - self._noted[1]).tolist()
        return self.learner.metrics(dict(zip(self.learner.stats, sums, strict=True)))

    def _log(self, values: Mapping[str, float]) -> None:
        if self._scalars is not None:
            try:
                self._scalars.write(values, self.done)
            except OSError as error:
                self._warn(error)

    def _pace(self) -> float:
        """Return the decisions or games in a second of learning, by this process."""
        return (self.done - self._begun[0]) / max(self.clock.here()[LEARNING], 1e-9)

    def _left(self) -> float | None:
        """Return the seconds that remain, roughly; None before the first round."""
        learnt, gained = self.clock.here()[LEARNING], self.progress - self._begun[1]
        if gained <= 0:
            return None
        learning = learnt * max(1 - self.progress, 0) / gained
        evaluations, seconds = len(self.curve.evaluation), self.clock.seconds()
        if not evaluations or not seconds[LEARNING]:
            return learning * (1 + _BEFORE_ANY) + _BEFORE_ANY * learnt
        each = seconds[EVALUATING] / evaluations
        return learning * (1 + seconds[EVALUATING] / seconds[LEARNING]) + _FINAL * each

    def _tell(self, phase: str, detail: str = "", evaluation: Evaluation | None = None) -> None:
        """Show the progress."""
        loss = self._metrics()["loss"] if self.done > self._noted[0] else None
        if loss is None and self.curve.training:
            loss = self.curve.training[-1]["loss"]
        self.show(
            Progress(
                phase,
                self.done,
                self._pace(),
                self.progress,
                self._left(),
                detail,
                loss,
                evaluation,
            )
        )

    def _point(self) -> dict[str, Any]:
        """Return the place of a point of the curve."""
        return {
            self.config.unit: self.done,
            "seconds": round(self.clock.total(), 1),
            "cpu_seconds": round(self.pool.cpu_seconds, 1),
        }

    # ------------------------------------------------------------------------ evaluation

    def snapshot(self) -> NetworkModel:
        """Return the current network as a model."""
        about = {
            "rules": self.rules.to_dict(),
            "command": self.command,
            "seed": self.config.seed,
            "games": int(self.pool.stats[self.learner.stats.index("games")]),
            **self._point(),
            "workers": self.config.workers,
            **provenance(),
        }
        return NetworkModel(self.config.size, self.pool.weights(), about)

    def agent(self, model: NetworkModel) -> Agent:
        """Return the bot that plays a model in evaluations."""
        return self.learner.agent(self.config, model)

    def evaluate(self, games: int, model: NetworkModel) -> Evaluation:
        """Measure a model against `planner` and on the ladder; see `placing.evaluate`."""
        agent, elo = self.agent(model), self.curve.elo()
        return self.config.evaluate(agent, games, elo, advance=self._advance)

    def _advance(self, spec: str, games: int) -> None:
        self._tell(EVALUATING, f"{games:,} games against {spec}")

    def _evaluate(self, model: NetworkModel, games: int) -> Evaluation:
        """Evaluate the network, keep it if no Elo was higher, and add a point to the curve.

        Args:
            model: the network.
            games: maximum number of games against each opponent.

        Returns:
            The evaluation of the best network so far, by so many games.

        Raises:
            Stopped: when the run was stopped.
        """
        best, config = self.folder / "best", self.config
        with self._compiling():
            with self.clock.during(COMPILING):
                self._prepare().wait(self.stop)
            with self.evaluating():
                self._tell(EVALUATING)
                elos = [p["elo"] for p in self.curve.evaluation if p[config.unit] != self.done]
                result = self.evaluate(config.eval_games, model)
                keeps = not self._has("best") or result.elo >= max(elos, default=-math.inf)
                final = games > config.eval_games
                if keeps:
                    with self._surviving():
                        model.save(best)
                    if final:
                        result = self.evaluate(games, model)
                self._add_point(result)
                if final and not keeps:
                    return self.evaluate(games, NetworkModel.load(best))
                return result

    def _add_point(self, result: Evaluation) -> None:
        """Add an evaluation to the curve, in the place of another one of the same network."""
        points = self.curve.evaluation
        if points and points[-1][self.config.unit] == self.done:
            points.pop()
        points.append({**self._point(), **result.to_dict()})
        with self._surviving():
            self.curve.save(self.folder, self.rules.players, self.learner.style)
        values = {"elo": result.elo, "elo_low": result.low, "elo_high": result.high}
        values[ladder.ANCHOR] = result.results[ladder.ANCHOR]["win_rate"]
        if result.regret is not None:
            values["suite_regret"] = result.regret[0]
        values |= {spec: result.results[spec]["win_rate"] for spec in self.config.eval_bots}
        self._log({f"evaluation/{name}": value for name, value in values.items()})
        self._tell(EVALUATING, evaluation=result)

    def finish(self) -> Evaluation:
        """See `Run.finish`."""
        model = self.snapshot()
        model.save(self.folder / "final")
        with self._logging():
            result = self._evaluate(model, self.config.final_games)
        write_json(self.folder / "result.json", {**result.to_dict(), "seconds": self.seconds})
        self.checkpoint()
        return result

    def _has(self, name: str) -> bool:
        return file_of(self.folder / name).exists()

    # ------------------------------------------------------------------------ resuming

    @contextlib.contextmanager
    def _surviving(self) -> Iterator[None]:
        """Let training continue where the ``with`` block cannot write a file.

        Raises:
            OSError: when there is nothing left to train.
        """
        try:
            yield
        except OSError as error:
            if self.progress >= 1:
                raise
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        print(f"train: not written: {error}; training continues", file=sys.stderr)

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is complete.

        Raises:
            OSError: when it cannot be written.
        """
        noted, stats = self._noted
        numbers = {
            "done": self.done,
            "noted": noted,
            "due": self._due,
            "cpu_seconds": self.pool.cpu_seconds,
            "learning": self._learning,
            "seconds": self.clock.seconds(),
            "curve": dataclasses.asdict(self.curve),
        }
        arrays = {**self.pool.arrays(), "noted": stats}
        checkpoint.write(self.folder, numbers, arrays)

    def resume(self) -> None:
        """Continue from the last checkpoint, bit for bit like an uninterrupted run.

        A run that ended before its first one begins anew.

        Raises:
            ValueError: when the checkpoint cannot be read, or is missing beside what was learnt.
        """
        try:
            numbers, arrays = checkpoint.read(self.folder)
        except FileNotFoundError as error:
            if self._has("best") or self._has("final"):
                raise ValueError(f"{self.folder}: no readable checkpoint ({error})") from None
            return
        try:
            self.pool.restore(arrays)
            self.pool.cpu_seconds = float(numbers["cpu_seconds"])
            self.done = int(numbers["done"])
            self._noted = int(numbers["noted"]), np.array(arrays["noted"])
            self._learning = float(numbers["learning"])
            self._due = bool(numbers["due"])
            self.clock = Clock(numbers["seconds"])
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None
