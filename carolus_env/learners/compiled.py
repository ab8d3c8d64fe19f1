"""What runs share whose learner is compiled and needs no PyTorch: TensorBoard, points, models."""

from __future__ import annotations

import contextlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.arena.placing import Evaluation
from carolus_env.learners.options import CompiledOptions
from carolus_env.learners.scalars import Scalars
from carolus_env.learners.training import Progress, TrainingRun
from carolus_env.networks.files import Trained

C = TypeVar("C", bound=CompiledOptions)
M = TypeVar("M", bound=Trained[Any])


class CompiledRun(TrainingRun[C, M]):
    """A training run whose learner is compiled; see `TrainingRun`.

    A subclass sets `model` and `crew_of`.
    """

    model: ClassVar[type[Any]]
    """What its models are."""
    crew_of: ClassVar[type[Any]]
    """Makes ``crew`` from the options: what learns. It has ``cpu_seconds``, and ``warm_up``
    compiles; its ``actors`` play in place of its threads."""
    actor_of: ClassVar[type[Any]]
    """Makes the job of actors from the options."""
    crew: Any
    _noted: tuple[int, npt.NDArray[np.float64]]
    """What was done, and told (`_told`), at the curve's last point."""
    _scalars: Scalars | None = None

    def __init__(
        self,
        config: C,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        super().__init__(config, folder, command=command, show=show)
        self.crew = self.crew_of(config)
        self._noted = 0, self._told().copy()

    @abstractmethod
    def _told(self) -> npt.NDArray[np.float64]:
        """What the learner has told so far, sums."""

    @abstractmethod
    def _numbers(self) -> dict[str, float]:
        """What was told since the curve's last point, as means: ``loss`` and more."""

    @abstractmethod
    def _scalars_of(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Those numbers and others for TensorBoard, by name."""

    # ------------------------------------------------------------------------ training

    def point(self) -> dict[str, Any]:
        return {**super().point(), "cpu_seconds": round(float(np.sum(self.crew.cpu_seconds)), 1)}

    @contextlib.contextmanager
    def _learning(self) -> Iterator[None]:
        try:
            self._scalars = Scalars(self.folder / "tensorboard")
        except ModuleNotFoundError as error:
            print(f"train: no tensorboard/ is written: {error.name} is missing", file=sys.stderr)
        try:
            self.crew.warm_up()
            with self.config.actors() or contextlib.nullcontext() as actors:
                if actors is not None:
                    actors.begin(self.actor_of(self.config))
                self.crew.actors, self.crew.waited = actors, 0.0
                yield
        finally:
            self.crew.actors = None
            if self._scalars is not None:
                self._scalars.close()
            self._scalars = None

    def _note_update(self) -> None:
        if self._passed(self.config.curve_every) or self.share >= 1:
            numbers = self._numbers()
            waiting = self._waiting()
            more = {} if waiting is None else {"time/share_of_waiting": waiting}
            self._log({**self._scalars_of(numbers), **more})
            rounded = {name: round(float(number), 5) for name, number in numbers.items()}
            self.curve.training.append({**self.point(), **rounded})
            self._noted = self.done, self._told().copy()
        self.show(self._progress())

    def _log(self, values: Mapping[str, float]) -> None:
        if self._scalars is not None:
            self._scalars.write(values, self.done)

    def _progress(self, evaluation: Evaluation | None = None) -> Progress:
        loss = self._numbers()["loss"] if self.done > self._noted[0] else None
        if loss is None and self.curve.training:
            loss = self.curve.training[-1]["loss"]
        pace = self._clock.pace(self.done)
        return Progress(
            self.done, pace, self.share, loss=loss, waiting=self._waiting(), evaluation=evaluation
        )

    def _waiting(self) -> float | None:
        """The share of this process's time in which it waited for actors; None: there are none."""
        if self.crew.actors is None:
            return None
        return float(self.crew.waited / max(self._clock.since(), 1e-9))

    # ------------------------------------------------------------------------ models

    def save(self, model: M, name: str) -> None:
        model.save(self.folder / name)

    def load(self, name: str) -> M:
        loaded: M = self.model.load(self.folder / name)
        return loaded
