"""A training run of PPO over whole turns; see `carolus_env.learners.training`.

Its models are policies over whole turns (`carolus_env.bots.turns.model`). Neither PyTorch nor
Stable-Baselines3 is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from carolus_env.bots import Agent
from carolus_env.bots.turns.bot import TurnPolicy, TurnPolicyOptions
from carolus_env.bots.turns.model import TurnModel
from carolus_env.learners.compiled import CompiledRun
from carolus_env.learners.curve import Look
from carolus_env.learners.training import Arrays
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.crew import Actor, Crew


class TurnRun(CompiledRun[TurnConfig, TurnModel]):
    """One training run of PPO over whole turns in its folder.

    Args:
        config: all options.
        folder: of the run; it exists.
        command: the command line, for the models' JSON.
        show: called after every update and every evaluation.

    Attributes:
        decisions: learnt from so far.

    Raises:
        ValueError: for options that cannot work, or a start that does not fit them.
    """

    look = Look(
        unit=TurnConfig.unit,
        scale=1e6,
        x="decisions learnt from (millions)",
        plays="its likeliest choice",
        below="training games",
        y="loss of the value: cross-entropy to the targets",
        line="loss",
    )
    model = TurnModel
    crew_of = Crew
    actor_of = Actor
    crew: Crew
    decisions: int = 0

    @property
    def done(self) -> int:
        """The decisions learnt from so far."""
        return self.decisions

    @property
    def share(self) -> float:
        return self.decisions / self.config.steps

    # ------------------------------------------------------------------------ training

    def _update(self) -> bool:
        config = self.config
        self.crew.play()
        self.crew.learn(config.learning_rate_at(self.share), config.entropy)
        self.decisions += config.games * config.rollout
        return True

    def _told(self) -> Any:
        return np.concatenate([self.crew.told, self.crew.told_of_games])

    def _numbers(self) -> dict[str, float]:
        decisions, entropy, clipped, values, loss, games, rounds = self._told() - self._noted[1]
        return {
            "loss": loss / max(values, 1),
            "entropy": entropy / max(decisions, 1),
            "clipped": clipped / max(decisions, 1),
            "rounds": rounds / max(games, 1),
        }

    def _scalars_of(self, numbers: Mapping[str, float]) -> dict[str, float]:
        crew, rate = self.crew, self.config.learning_rate_at(self.share)
        rollouts, gradients, steps = crew.cpu_seconds / max(crew.cpu_seconds.sum(), 1e-9)
        return {
            "train/value_loss": numbers["loss"],
            "train/entropy": numbers["entropy"],
            "train/clip_fraction": numbers["clipped"],
            "train/sharpness": float(crew.weights["sharpness"][0]),
            "train/rate": rate,
            "games/rounds": numbers["rounds"],
            "games/games": crew.told_of_games[0],
            "time/decisions_per_s": self._clock.pace(self.decisions),
            "time/cpu_minutes": crew.cpu_seconds.sum() / 60,
            "time/share_of_rollouts": rollouts,
            "time/share_of_gradients": gradients,
            "time/share_of_steps": steps,
        }

    # ------------------------------------------------------------------------ models

    def snapshot(self) -> TurnModel:
        """The current network as a model."""
        weights = {name: array.copy() for name, array in self.crew.weights.items()}
        games = int(self.crew.told_of_games[0])
        about = self.about(games=games, workers=self.config.workers)
        return TurnModel(self.config.size, weights, about)

    def agent(self, model: TurnModel) -> Agent:
        """The bot ``ppo``: its likeliest choice among the candidates that it learnt with."""
        config = self.config
        options = TurnPolicyOptions(candidates=config.candidates, plans=config.plans)
        return TurnPolicy(model, options)

    # ------------------------------------------------------------------------ resuming

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        noted, told = self._noted
        numbers = {"decisions": self.decisions, "noted": noted, "crew": self.crew.numbers()}
        return numbers, {**self.crew.arrays(), "noted": told}

    def _restore(self, numbers: Mapping[str, Any], arrays: Arrays) -> None:
        self.crew.restore(numbers["crew"], arrays)
        self.decisions = int(numbers["decisions"])
        self._noted = int(numbers["noted"]), arrays["noted"]
