"""A training run in its folder: rounds of learning, evaluations, the curve, checkpoints, the clock.

The folder holds ``config.json`` (options, seed, versions), the models ``best`` and ``final``,
``result.json``, ``curve.json`` and ``curve.png``, ``tensorboard/``, and ``resume/``
(`learners.checkpoint`), from which the run continues bit for bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from carolus_env.bots import Agent
from carolus_env.evaluation.placing import Evaluation, holds
from carolus_env.learners import checkpoint
from carolus_env.learners.curve import Curve
from carolus_env.learners.options import SelfPlayConfig
from carolus_env.learners.pool import SelfPlayLearner, WorkerJob, WorkerPool
from carolus_env.learners.provenance import provenance
from carolus_env.learners.scalars import Scalars
from carolus_env.networks.network import NetworkModel
from carolus_env.system.files import write_json


@dataclass(frozen=True)
class Progress:
    """The progress of a run, for a display.

    Attributes:
        done: decisions or games learnt from so far, by this process and those it resumed.
        per_s: decisions or games a second of this process, evaluations included.
        share: finished share of the whole run.
        loss: recent mean loss; None before the first update.
        waiting: share of this process's time in which it waited for workers; None: threads.
        evaluation: the evaluation that has just ended; else None.
        evaluating: whether an evaluation begins.
    """

    done: int
    per_s: float
    share: float
    loss: float | None = None
    waiting: float | None = None
    evaluation: Evaluation | None = None
    evaluating: bool = False


class Run(Protocol):
    """A training run, as the command ``train`` uses it."""

    folder: Path
    shows_progress: bool
    """True if the run shows its progress itself, and handles Ctrl-C."""
    stop: bool
    """Set it, and training ends after the update under way, with a checkpoint."""

    def resume(self) -> None:
        """Continue from the last checkpoint.

        Raises:
            ValueError: when the folder holds no checkpoint, or one that cannot be read.
        """

    def train(self) -> bool:
        """Train to the end of the run; returns False when it was stopped before."""

    def finish(self) -> Evaluation:
        """Save the last network, evaluate the best one, and write ``result.json``."""


class SelfPlayRun:
    """A training run of a learner by self-play.

    A subclass names the learner.

    Args:
        config: the hyperparameters.
        folder: the run's folder; it exists.
        command: the command line, for the models' JSON.
        show: a function to call after every round and every evaluation.

    Attributes:
        stop: the flag of `Run`.
        done: decisions or games learnt from so far.
        pool: the workers that learn.

    Raises:
        ValueError: for options that cannot work.
    """

    learner: ClassVar[type[SelfPlayLearner[Any]]]
    shows_progress: bool = False

    def __init__(
        self,
        config: SelfPlayConfig,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        config.check()
        self.config, self.folder, self.show, self.command = config, folder, show, command
        self.rules = config.rules
        self.curve = Curve()
        self.stop = False
        self.done = 0
        self.pool = WorkerPool(self.learner, config)
        self._clock = _Clock()
        self._before = 0  # decisions or games before the last round
        self._noted = 0, self.pool.stats.copy()  # done, and statistics, at the curve's last point
        self._scalars: Scalars | None = None

    @property
    def share(self) -> float:
        """The share of the run that is done, from 0 to 1 or more."""
        return self.config.share(self.done, self.pool.cpu_seconds)

    # ------------------------------------------------------------------------ training

    def train(self) -> bool:
        """Train to the end of the run.

        The checkpoint comes last in a pass of the loop, so that a resumed run enters the loop
        exactly where the interrupted one would have continued.

        Returns:
            True when all is done; False after `stop`.
        """
        config = self.config
        checkpoint_every = config.checkpoint_every or config.eval_every
        if self.share >= 1:
            return True
        with self._workers():
            self._clock.begin(self.done)
            if not self.curve.evaluation:  # the curve begins with the untrained network
                self._evaluate()
                self._save()
            while self.share < 1 and not self.stop:
                self._before = self.done
                count = config.round_size(self.done)
                self.pool.learn(self.done, count, config.rate_at(self.share))
                self.done += count
                self._note()
                if self.share >= 1 or self._passed(config.eval_every):
                    self._evaluate()
                if self.share >= 1 or self.stop or self._passed(checkpoint_every):
                    self._save()
        return self.share >= 1

    @contextlib.contextmanager
    def _workers(self) -> Iterator[None]:
        """Prepare the workers, and TensorBoard."""
        try:
            self._scalars = Scalars(self.folder / "tensorboard")
        except ModuleNotFoundError as error:
            print(f"train: no tensorboard/ is written: {error.name} is missing", file=sys.stderr)
        try:
            self.pool.warm_up()
            with self.config.remote_workers() or contextlib.nullcontext() as remote:
                if remote is not None:
                    remote.begin(WorkerJob(self.learner, replace(self.config, start=None)))
                self.pool.remote, self.pool.waited = remote, 0.0
                yield
        finally:
            self.pool.remote = None
            if self._scalars is not None:
                self._scalars.close()
            self._scalars = None

    def _passed(self, every: int) -> bool:
        """Return whether the last round passed a multiple of ``every`` decisions or games."""
        return self.done // every > self._before // every

    def _note(self) -> None:
        """Log the last round, and add a point to the curve."""
        if self._passed(self.config.curve_every) or self.share >= 1:
            metrics, pool = self._metrics(), self.pool
            scalars = {
                **{f"train/{name}": value for name, value in metrics.items()},
                "train/learning_rate": self.config.rate_at(self.share),
                f"time/{self.config.unit}_per_s": self._clock.pace(self.done),
                "time/cpu_minutes": pool.cpu_seconds / 60,
            }
            if (waiting := self._waiting()) is not None:
                scalars["time/share_of_waiting"] = waiting
            self._log(scalars)
            rounded = {name: round(float(value), 5) for name, value in metrics.items()}
            self.curve.training.append({**self._point(), **rounded})
            self._noted = self.done, pool.stats.copy()
        self.show(self._progress())

    def _metrics(self) -> dict[str, float]:
        """Return the learner's metrics since the curve's last point."""
        sums = (self.pool.stats - self._noted[1]).tolist()
        return self.learner.metrics(dict(zip(self.learner.stats, sums, strict=True)))

    def _log(self, values: Mapping[str, float]) -> None:
        if self._scalars is not None:
            self._scalars.write(values, self.done)

    def _progress(
        self, evaluation: Evaluation | None = None, *, evaluating: bool = False
    ) -> Progress:
        loss = self._metrics()["loss"] if self.done > self._noted[0] else None
        if loss is None and self.curve.training:
            loss = self.curve.training[-1]["loss"]
        pace, waiting = self._clock.pace(self.done), self._waiting()
        return Progress(self.done, pace, self.share, loss, waiting, evaluation, evaluating)

    def _waiting(self) -> float | None:
        """Return the share of this process's time in which it waited for workers; None: threads."""
        if self.pool.remote is None:
            return None
        return float(self.pool.waited / max(self._clock.since(), 1e-9))

    def _point(self) -> dict[str, Any]:
        """Return the place of a point of the curve."""
        seconds, cpu = self._clock.seconds(), self.pool.cpu_seconds
        return {
            self.config.unit: self.done,
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
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
        """Place a model on the ladder; see `placing.evaluate`."""
        return self.config.evaluate(self.agent(model), games, self.curve.elo())

    def _evaluate(self) -> None:
        """Evaluate, keep the network unless it is clearly weaker, and add a point to the curve."""
        self.show(self._progress(evaluating=True))
        model, games = self.snapshot(), self.config.eval_games
        result = self.evaluate(games, model)
        best = self.folder / "best"
        if not self._has("best") or holds(
            self.agent(model), self.agent(NetworkModel.load(best)), self.rules, games
        ):
            model.save(best)
        self.curve.evaluation.append({**self._point(), **result.to_dict()})
        self.curve.save(self.folder, self.rules.players, self.learner.style)
        values = {"elo": result.elo, "elo_low": result.low, "elo_high": result.high}
        if result.loss is not None:
            values["suite_loss"] = result.loss[0]
        values |= {spec: result.results[spec]["win_rate"] for spec in self.config.eval_bots}
        self._log({f"evaluation/{name}": value for name, value in values.items()})
        self.show(self._progress(result))

    def finish(self) -> Evaluation:
        """See `Run.finish`."""
        model = self.snapshot()
        model.save(self.folder / "final")
        if not self._has("best"):
            model.save(self.folder / "best")
        result = self.evaluate(self.config.final_games, NetworkModel.load(self.folder / "best"))
        write_json(self.folder / "result.json", result.to_dict())
        return result

    def _has(self, name: str) -> bool:
        return (self.folder / f"{name}.json").exists()

    # ------------------------------------------------------------------------ resuming

    def _save(self) -> None:
        """Write a checkpoint; training survives a full disk."""
        try:
            self.checkpoint()
        except OSError as error:
            print(f"train: no checkpoint written ({error}); training continues", file=sys.stderr)

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is complete.

        Raises:
            OSError: when it cannot be written.
        """
        noted, stats = self._noted
        numbers = {
            "done": self.done,
            "noted": noted,
            "cpu_seconds": self.pool.cpu_seconds,
            "seconds": self._clock.seconds(),
            "curve": dataclasses.asdict(self.curve),
        }
        arrays = {**self.pool.arrays(), "noted": stats}
        checkpoint.write(self.folder / "resume", numbers, arrays)

    def resume(self) -> None:
        """Continue from the last checkpoint, bit for bit like an uninterrupted run.

        Raises:
            ValueError: when the folder holds no checkpoint, or one that cannot be read.
        """
        numbers, arrays = checkpoint.read(self.folder / "resume")
        try:
            self.pool.restore(arrays)
            self.pool.cpu_seconds = float(numbers["cpu_seconds"])
            self.done = int(numbers["done"])
            self._noted = int(numbers["noted"]), np.array(arrays["noted"])
            self._clock = _Clock(numbers["seconds"])
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None


class _Clock:
    """The time of a run over all its processes, and the pace of this one."""

    def __init__(self, before: float = 0.0) -> None:
        self._before, self._made = float(before), time.monotonic()
        self.begin(0)

    def begin(self, done: int) -> None:
        """Note that training begins in this process, after this many decisions or games."""
        self._done, self._begun = done, time.monotonic()

    def seconds(self) -> float:
        """Return the seconds of the whole run."""
        return self._before + time.monotonic() - self._made

    def pace(self, done: int) -> float:
        """Return the decisions or games a second since `begin`."""
        return (done - self._done) / max(self.since(), 1e-9)

    def since(self) -> float:
        """Return the seconds since `begin`."""
        return time.monotonic() - self._begun
