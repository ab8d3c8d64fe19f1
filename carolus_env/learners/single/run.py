"""A training run of self-play PPO over single decisions; see `carolus_env.learners.training`.

Its models are policies (`carolus_env.bots.neural.model`).
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from carolus_env.arena.placing import Evaluation
from carolus_env.bots import Agent
from carolus_env.bots.neural.model import Model, find, load, save
from carolus_env.envs.learner import Ended
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.learners.curve import Look
from carolus_env.learners.measures import game_statistics
from carolus_env.learners.single.config import Config
from carolus_env.learners.single.opponents import SelfOrBots
from carolus_env.learners.single.player import TorchPlayer
from carolus_env.learners.single.ppo import SelfPlayPPO
from carolus_env.learners.training import Arrays, Progress, TrainingRun, prefixed, under

_RECENT: Final = 1000
"""Games against each bot that the progress tells of, the last ones."""


class Run(TrainingRun[Config, Model]):
    """One training run of self-play PPO in its folder.

    Args:
        config: all options.
        folder: of the run; it exists.
        command: the command line, for the models' JSON.
        show: called after every update and every evaluation.
        callbacks: SB3's, for users; the run itself needs none.

    Raises:
        ValueError: for options that cannot work, or a start that does not fit them.
    """

    look = Look(
        unit=Config.unit,
        scale=1e6,
        x="decisions of the learner (millions)",
        plays="its likeliest action",
        below="training games: actions drawn from the policy",
        y="share of the win",
        lines=lambda point: point["shares"],
        limits=(-0.03, 1.03),
        legend="against",
    )

    def __init__(
        self,
        config: Config,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
        callbacks: Sequence[BaseCallback] = (),
    ) -> None:
        super().__init__(config, folder, command=command, show=show)
        torch.set_num_threads(config.threads)
        self.callbacks = callbacks
        self.opponents = SelfOrBots(self.rules, config.bots, config.self_share)
        self.env = CarolusVecEnv(
            self.rules, config.games, self.opponents, seed=config.seed, dtype=np.uint8
        )
        self.model = SelfPlayPPO(
            self.env,
            size=config.size,
            seed=config.seed,
            on_end=self._note_games,
            learning_rate=config.learning_rate_at,
            n_steps=config.rollout,
            batch_size=min(config.batch, config.games * config.rollout),
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip,
            ent_coef=config.entropy,
            vf_coef=config.value_weight,
            device=_device(config.device),
        )
        self._start: Mapping[str, Any] | None = None
        if config.start is not None:
            self._start_from(config.start)
        self._shares: dict[str, deque[float]] = {}
        self._ended: list[Ended] = []

    def _start_from(self, name: str) -> None:
        start = find(name)
        if start.size != self.config.size:
            raise ValueError(f"start {name!r} is a model of {start.size}, not {self.config.size}")
        self.model.set_weights(start.weights)
        self._start = start.about

    @property
    def decisions(self) -> int:
        """Decisions learnt from so far."""
        return int(self.model.num_timesteps)

    @property
    def done(self) -> int:
        """The same."""
        return self.decisions

    @property
    def share(self) -> float:
        return self.decisions / self.config.steps

    # ------------------------------------------------------------------------ training

    @contextlib.contextmanager
    def _learning(self) -> Iterator[None]:
        logger = configure(str(self.folder / "tensorboard"), ["tensorboard"])
        self.model.set_logger(logger)
        try:
            self.model.begin(self.config.steps, self.callbacks)
            yield
            self.model.end()
        finally:
            logger.close()

    def _update(self) -> bool:
        self.model.ent_coef = self.config.entropy_at(1 - self.share)
        return self.model.update()

    def _note_games(self, ended: Ended) -> None:
        """Games have ended: keep what the progress tells of them."""
        self._ended.append(ended)
        for bot, shares in self.opponents.shares(ended).items():
            self._shares.setdefault(bot, deque(maxlen=_RECENT)).extend(shares)

    def _note_update(self) -> None:
        """Log the rollout and its update, and add a point to the curve."""
        progress = self._progress()
        values = {f"share_of_win/{kind}": share for kind, share in progress.shares.items()}
        values |= {f"games/{name}": v for name, v in game_statistics(self._ended).items()}
        values["train/entropy_weight"] = self.model.ent_coef
        values["time/decisions_per_s"] = progress.per_s
        self._log(values)
        self._ended.clear()
        shares = {kind: round(share, 4) for kind, share in progress.shares.items()}
        self.curve.training.append({**self.point(), "shares": shares})
        self.show(progress)

    def _log(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.model.logger.record(name, value)
        self.model.logger.dump(self.decisions)

    def _progress(self, evaluation: Evaluation | None = None) -> Progress:
        shares = {kind: float(np.mean(s)) for kind, s in sorted(self._shares.items())}
        pace = self._clock.pace(self.decisions)
        return Progress(self.decisions, pace, self.share, shares, evaluation=evaluation)

    # ------------------------------------------------------------------------ models

    def snapshot(self) -> Model:
        """The current network as a model."""
        about = self.about(device=str(self.model.device))
        if self._start is not None:
            about["start"] = dict(self._start)
        return Model(self.config.size, self.model.weights(), about)

    def agent(self, model: Model) -> Agent:
        """Its likeliest action."""
        return TorchPlayer(model.weights, self.config.players, temperature=0.0, device="cpu")

    def save(self, model: Model, name: str) -> None:
        save(model, self.folder / name)

    def load(self, name: str) -> Model:
        return load(self.folder / name)

    # ------------------------------------------------------------------------ resuming

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        numbers = {
            "decisions": self.decisions,
            "updates": int(self.model._n_updates),
            "learner": self.model.numbers(),
            "games": self.env.games.numbers(),
            "shares": {bot: list(shares) for bot, shares in self._shares.items()},
        }
        arrays = {
            **prefixed("learner/", self.model.arrays()),
            **prefixed("games/", self.env.games.arrays()),
            "lengths": self.env.lengths,
        }
        return numbers, arrays

    def _restore(self, numbers: Mapping[str, Any], arrays: Arrays) -> None:
        self.model.restore(numbers["learner"], under("learner/", arrays))
        self.env.games.restore(numbers["games"], under("games/", arrays))
        self.env.lengths[:] = arrays["lengths"]
        self.model.num_timesteps = numbers["decisions"]
        self.model._n_updates = numbers["updates"]
        told = numbers["shares"].items()
        self._shares = {bot: deque(shares, maxlen=_RECENT) for bot, shares in told}
        self.model.observe_again()


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
