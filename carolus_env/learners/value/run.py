"""A training run of a value network by TD(lambda); see `carolus_env.learners.training`.

Its models are value networks (`carolus_env.bots.value.model`), and in evaluations the bot ``value``
plays them. Neither PyTorch nor Stable-Baselines3 is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent
from carolus_env.bots.value.bot import ValueBot
from carolus_env.bots.value.model import ValueModel
from carolus_env.learners.compiled import CompiledRun
from carolus_env.learners.curve import Look
from carolus_env.learners.training import Arrays, prefixed, under
from carolus_env.learners.value.config import ValueConfig
from carolus_env.learners.value.crew import Actor, Crew


class ValueRun(CompiledRun[ValueConfig, ValueModel]):
    """One training run of a value network in its folder.

    Args:
        config: all options.
        folder: of the run; it exists.
        command: the command line, for the models' JSON.
        show: called after every round and every evaluation.

    Attributes:
        games: learnt from so far.

    Raises:
        ValueError: for options that cannot work.
    """

    look = Look(
        unit=ValueConfig.unit,
        scale=1e3,
        x="games learnt from (thousands)",
        plays="its best choice",
        below="training games",
        y="loss: cross-entropy to the targets",
        line="loss",
    )
    model = ValueModel
    crew_of = Crew
    actor_of = Actor
    crew: Crew
    games: int = 0

    @property
    def done(self) -> int:
        """The games learnt from so far."""
        return self.games

    @property
    def share(self) -> float:
        if self.config.minutes is not None:
            return self.crew.cpu_seconds / 60 / self.config.minutes
        return self.games / self.config.games

    # ------------------------------------------------------------------------ training

    def _update(self) -> bool:
        config = self.config
        count = config.workers * config.games_per_round
        if config.minutes is None:
            count = min(count, config.games - self.games)
        self.crew.learn(self.games, count, config.rate_at(self.share))
        self.games += count
        return True

    def _told(self) -> npt.NDArray[np.float64]:
        return self.crew.told

    def _numbers(self) -> dict[str, float]:
        games, told = self._noted
        positions, loss, rounds = self.crew.told - told
        return {
            "loss": loss / max(positions, 1),
            "rounds": rounds / max(self.games - games, 1),
            "positions": float(self.crew.told[0]),
        }

    def _scalars_of(self, numbers: Mapping[str, float]) -> dict[str, float]:
        return {
            "train/loss": numbers["loss"],
            "train/rate": self.config.rate_at(min(self.share, 1.0)),
            "games/rounds": numbers["rounds"],
            "time/games_per_s": self._clock.pace(self.games),
            "time/cpu_minutes": self.crew.cpu_seconds / 60,
        }

    # ------------------------------------------------------------------------ models

    def snapshot(self) -> ValueModel:
        """The current network as a model."""
        weights = {name: array.copy() for name, array in self.crew.weights._asdict().items()}
        return ValueModel(self.config.size, weights, self.about(workers=self.config.workers))

    def agent(self, model: ValueModel) -> Agent:
        """Return the bot ``value`` with its usual options."""
        return ValueBot(model)

    # ------------------------------------------------------------------------ resuming

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        noted, told = self._noted
        numbers = {"games": self.games, "noted": noted, "cpu_seconds": self.crew.cpu_seconds}
        arrays = {
            **prefixed("weights/", self.crew.weights._asdict()),
            **prefixed("squares/", self.crew.squares._asdict()),
            "told": self.crew.told,
            "noted": told,
        }
        return numbers, arrays

    def _restore(self, numbers: Mapping[str, Any], arrays: Arrays) -> None:
        crew = self.crew
        for prefix, restored in (("weights/", crew.weights), ("squares/", crew.squares)):
            found = under(prefix, arrays)
            for name, array in restored._asdict().items():
                if array.shape != found[name].shape:
                    raise ValueError(f"{name} must be {array.shape}, got {found[name].shape}")
                array[...] = found[name]
        crew.told[:], crew.cpu_seconds = arrays["told"], float(numbers["cpu_seconds"])
        self.games = int(numbers["games"])
        self._noted = int(numbers["noted"]), arrays["noted"]
