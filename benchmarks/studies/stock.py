"""What a stock learner makes of whole turns: sb3-contrib's MaskablePPO, against `planner`.

    python -m benchmarks.studies.stock --minutes 10 --seed 1
    python -m benchmarks.studies.stock --minutes 10 --policy CandidatePolicy

It learns with one thread against `--opponents`, in minutes of wall time without compiling, then
plays its likeliest candidate in paired games. MlpPolicy, the library's own, reads the list of
candidates as one long row; `CandidatePolicy` scores each candidate with the same weights. Needs the
extra ``train``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.machine import line
from carolus_env import Rules
from carolus_env.arena import play_pairing
from carolus_env.envs.sb3 import CarolusTurnsVecEnv
from carolus_env.integrations.agents import TurnAgent
from carolus_env.learners.candidate_policy import CandidatePolicy

RIVAL = "planner"
POLICIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "MlpPolicy": ("MlpPolicy", {"net_arch": [64, 64]}),
    "CandidatePolicy": (CandidatePolicy, {"hidden": (64, 64)}),
}
GAMES = 256
"""Side by side."""


class Deadline(BaseCallback):
    """Ends the training after so many seconds from its first step; the rate falls until then."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._started = float("inf")

    @property
    def left(self) -> float:
        """The share of the time that is left, from 1 down to 0."""
        return min(1.0, max(0.0, 1 - (time.perf_counter() - self._started) / self._seconds))

    def _on_training_start(self) -> None:
        self._started = time.perf_counter()

    def _on_step(self) -> bool:
        return self.left > 0


class Likeliest(TurnAgent):
    """The likeliest candidate of a model."""

    def __init__(self, model: MaskablePPO, players: int) -> None:
        super().__init__(players)
        self._model = model

    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        found, _ = self._model.predict(rows, deterministic=True, action_masks=masks)
        return np.asarray(found, np.int64)


def trained(options: argparse.Namespace) -> MaskablePPO:
    """A model that has learnt for the time."""
    env = CarolusTurnsVecEnv(Rules(options.players), GAMES, options.opponents, seed=options.seed)
    env.reset()  # compiles
    deadline = Deadline(60 * options.minutes)
    policy, network = POLICIES[options.policy]
    model = MaskablePPO(
        policy,
        env,
        n_steps=32,
        batch_size=1024,
        n_epochs=4,
        learning_rate=lambda _: max(1e-3 * deadline.left, 1e-5),
        gamma=0.999,
        ent_coef=0.01,
        policy_kwargs=network,
        seed=options.seed,
    )
    model.learn(10**9, callback=deadline)
    return model


def main(arguments: list[str]) -> None:
    """Learn, play, and print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, choices=(2, 3, 4), default=2)
    parser.add_argument("--policy", choices=list(POLICIES), default="MlpPolicy")
    parser.add_argument("--opponents", default="planner:errors=0.1")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=1000, help="against planner, %(default)s")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # small networks gain nothing from more
    model = trained(options)
    agent = Likeliest(model, options.players)
    found = play_pairing((agent, RIVAL), Rules(options.players), options.games, seed=770_001)
    low, high = found.ci95[0]
    print(
        f"{options.policy}, {options.players} players, {options.minutes:g} minutes, "
        f"seed {options.seed}: {model.num_timesteps:,} decisions, {found.win_rate[0]:.1%} "
        f"({low:.1%} - {high:.1%}) of {found.games:,} games against {RIVAL}"
    )
    print(line("torch", "stable-baselines3", "sb3-contrib"))


if __name__ == "__main__":
    main(sys.argv[1:])
