"""A training run in its folder, whatever learns: evaluations, the curve, checkpoints, the clock.

The folder holds ``config.json`` (options, seed, versions), the models ``best`` and ``final``,
``result.json``, ``curve.json`` and ``curve.png``, ``tensorboard/``, and ``resume/``
(`carolus_env.learners.checkpoint`), from which the run continues bit for bit. What learns is a
subclass: `learners.turns.run`, `learners.value.run`. Stable-Baselines3 has a loop of its own
(`learners.sb3`).
"""

from __future__ import annotations

import dataclasses
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt

from carolus_env.arena.placing import Evaluation, evaluate, holds
from carolus_env.bots import Agent
from carolus_env.learners import checkpoint
from carolus_env.learners.curve import Curve, Look
from carolus_env.learners.options import RunOptions
from carolus_env.learners.provenance import provenance
from carolus_env.system.files import write_json

C = TypeVar("C", bound=RunOptions)
M = TypeVar("M")
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Progress:
    """The progress of a run, for a display.

    Attributes:
        done: decisions or games learnt from so far, by this process and those it resumed.
        per_s: of this process, evaluations included.
        share: of the whole run.
        loss: recent mean loss; None before the first update.
        waiting: share of this process's time in which it waited for actors; None without any.
        evaluation: right after an evaluation; else None.
    """

    done: int
    per_s: float
    share: float
    loss: float | None = None
    waiting: float | None = None
    evaluation: Evaluation | None = None


class TrainingRun(ABC, Generic[C, M]):
    """One training run in its folder.

    Args:
        config: all options.
        folder: of the run; it exists.
        command: the command line, for the models' JSON.
        show: called after every update and every evaluation.

    Attributes:
        stop: set it, and training ends after the update under way, with a checkpoint.

    Raises:
        ValueError: for options that cannot work.
    """

    look: ClassVar[Look]
    """How the curve is drawn."""

    def __init__(
        self,
        config: C,
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
        self._clock = _Clock()
        self._before = 0  # what was done before the last update

    # ------------------------------------------------------------------------ what learns

    @property
    @abstractmethod
    def done(self) -> int:
        """Decisions or games learnt from so far."""

    @property
    @abstractmethod
    def share(self) -> float:
        """The share of the run that is done, from 0 to 1 or more."""

    @abstractmethod
    def snapshot(self) -> M:
        """The current network as a model."""

    @abstractmethod
    def agent(self, model: M) -> Agent:
        """What plays a model in evaluations."""

    @abstractmethod
    def save(self, model: M, name: str) -> None:
        """Write a model of the run."""

    @abstractmethod
    def load(self, name: str) -> M:
        """Read a model of the run."""

    @abstractmethod
    def _learning(self) -> AbstractContextManager[None]:
        """What is prepared before learning, and ended after it."""

    @abstractmethod
    def _update(self) -> bool:
        """Learn from some games; returns False when training is to end early."""

    @abstractmethod
    def _note_update(self) -> None:
        """Log the last update, and add a point to the curve."""

    @abstractmethod
    def _log(self, values: Mapping[str, float]) -> None:
        """Log numbers by name, as of now."""

    @abstractmethod
    def _progress(self, evaluation: Evaluation | None = None) -> Progress:
        """The progress so far."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], Arrays]:
        """What `_restore` needs: plain numbers, and arrays."""

    @abstractmethod
    def _restore(self, numbers: Mapping[str, Any], arrays: Arrays) -> None:
        """Restore what `_state` returned."""

    # ------------------------------------------------------------------------ training

    @property
    def seconds(self) -> float:
        """Time of the whole run so far, evaluations included."""
        return self._clock.seconds()

    def train(self) -> bool:
        """Train to the end of the run.

        The checkpoint comes last in a pass of the loop, so that a resumed run enters the loop
        exactly where the interrupted one would have continued.

        Returns:
            True when all is done; False after `stop`.
        """
        if self.share >= 1:
            return True
        eval_every = self.config.eval_every
        checkpoint_every = self.config.checkpoint_every or eval_every
        with self._learning():
            self._clock.begin(self.done)
            if not self.curve.evaluation:  # the curve begins with the untrained network
                self.note_evaluation()
                self._save()
            going = True
            while going and not self.stop:
                self._before = self.done
                going = self._update() and self.share < 1
                self._note_update()
                if not going or self._passed(eval_every):
                    self.note_evaluation()
                if not going or self.stop or self._passed(checkpoint_every):
                    self._save()
        return self.share >= 1

    def _passed(self, every: int) -> bool:
        """Whether the last update passed a multiple of ``every`` decisions or games."""
        return self.done // every > self._before // every

    def point(self) -> dict[str, Any]:
        """The place of a point of the curve."""
        return {self.config.unit: self.done, "seconds": round(self.seconds, 1)}

    def about(self, **more: Any) -> dict[str, Any]:
        """The origin of the current network, for its model; ``more`` is what the learner adds."""
        return {
            "rules": self.rules.to_dict(),
            "command": self.command,
            "seed": self.config.seed,
            **self.point(),
            **more,
            **provenance(),
        }

    # ------------------------------------------------------------------------ evaluation

    def evaluate(self, games: int, model: M | None = None) -> Evaluation:
        """Place a model on the ladder; see `placing.evaluate`.

        Args:
            games: against each agent.
            model: of the run; None: the current one.
        """
        return evaluate(
            self.agent(self.snapshot() if model is None else model),
            self.rules,
            games,
            near=self.curve.elo(),
            others=self.config.eval_bots,
            half=self.config.eval_suite,
        )

    def note_evaluation(self) -> None:
        """Evaluate, keep the network unless it is clearly weaker, and add a point to the curve."""
        model, games = self.snapshot(), self.config.eval_games
        found = self.evaluate(games, model)
        if not self._has("best") or holds(
            self.agent(model), self.agent(self.load("best")), self.rules, games
        ):
            self.save(model, "best")
        self.curve.evaluation.append({**self.point(), **found.to_dict()})
        self.curve.save(self.folder, self.rules.players, self.look)
        values = {"elo": found.elo, "elo_low": found.low, "elo_high": found.high}
        if found.loss is not None:
            values["suite_loss"] = found.loss[0]
        values |= {spec: found.results[spec]["win_rate"] for spec in self.config.eval_bots}
        self._log({f"evaluation/{name}": value for name, value in values.items()})
        self.show(self._progress(found))

    def finish(self) -> Evaluation:
        """Save the last network, evaluate the best one, and write ``result.json``."""
        self.save(self.snapshot(), "final")
        if not self._has("best"):
            self.save(self.snapshot(), "best")
        found = self.evaluate(self.config.final_games, self.load("best"))
        write_json(self.folder / "result.json", found.to_dict())
        return found

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
        numbers, arrays = self._state()
        common = {"seconds": self.seconds, "curve": dataclasses.asdict(self.curve)}
        checkpoint.write(self.folder / "resume", {**numbers, **common}, arrays)

    def resume(self) -> None:
        """Continue from the last checkpoint, bit for bit like an uninterrupted run.

        Raises:
            ValueError: when the folder holds no checkpoint, or one that cannot be read.
        """
        numbers, arrays = checkpoint.read(self.folder / "resume")
        try:
            self._restore(numbers, arrays)
            self._clock = _Clock(numbers["seconds"])
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None


def prefixed(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Arrays under longer names."""
    return {prefix + name: array for name, array in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it."""
    cut = len(prefix)
    return {name[cut:]: array for name, array in arrays.items() if name.startswith(prefix)}


class _Clock:
    """The time of a run over all its processes, and the pace of this one."""

    def __init__(self, before: float = 0.0) -> None:
        self._before, self._made = float(before), time.monotonic()
        self.begin(0)

    def begin(self, done: int) -> None:
        """Training begins in this process, after this many decisions or games."""
        self._done, self._begun = done, time.monotonic()

    def seconds(self) -> float:
        """Of the whole run."""
        return self._before + time.monotonic() - self._made

    def pace(self, done: int) -> float:
        """Decisions or games a second since `begin`."""
        return (done - self._done) / max(self.since(), 1e-9)

    def since(self) -> float:
        """Seconds since `begin`."""
        return time.monotonic() - self._begun
