"""Stable-Baselines3: MaskablePPO over whole turns, against a bot. Needs the extra `train`.

    python sb3_ppo.py                                        # learns for about two minutes
    carolus evaluate sb3_ppo.py:Trained planner              # plays what it learnt
    python sb3_ppo.py --players 3 --opponents greedy

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each seen by a row of
numbers (docs/turns.md). CarolusTurnsVecEnv plays all games in one batch, and MaskablePPO asks it
for the masks. CandidatePolicy scores the row of every candidate with the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sb3_contrib import MaskablePPO

from carolus_env import Rules
from carolus_env.envs.sb3 import CarolusTurnsVecEnv
from carolus_env.integrations.agents import TurnAgent
from carolus_env.learners.candidate_policy import CandidatePolicy

WEIGHTS = Path("sb3_ppo.safetensors")


@dataclass
class Args:
    """MaskablePPO over whole turns."""

    players: Literal[2, 3, 4] = 2
    """2, 3 or 4 (two teams of two)."""
    opponents: str = "planner:errors=0.1"
    """The agent in all other seats."""
    steps: int = 200_000
    """Discs, crowns and turns to learn from."""
    envs: int = 256
    """Games played side by side."""
    seed: int = 1
    """Of games, network and sampling."""


def make_model(players: int, opponents: str, games: int, seed: int) -> MaskablePPO:
    """A learner and its games."""
    env = CarolusTurnsVecEnv(Rules(players), games, opponents, seed=seed)
    return MaskablePPO(
        CandidatePolicy,
        env,
        n_steps=32,
        batch_size=1024,
        n_epochs=4,
        learning_rate=lambda left: 1e-3 * left,
        gamma=0.999,
        ent_coef=0.01,
        policy_kwargs={"hidden": (64, 64)},
        seed=seed,
        verbose=1,
    )


class Trained(TurnAgent):
    """What was learnt, as an agent: it takes the likeliest candidate."""

    def __init__(self) -> None:
        with safe_open(WEIGHTS, "pt") as file:
            super().__init__(int(file.metadata()["players"]))
        self.policy: Any = make_model(self.players, "random", 1, 0).policy
        self.policy.load_state_dict(load_file(WEIGHTS))

    @torch.no_grad()
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        log_policy, _ = self.policy.log_policy_and_values(torch.from_numpy(rows))
        chosen: npt.NDArray[Any] = log_policy.argmax(dim=1).numpy()
        return chosen


def main(args: Args) -> None:
    """Learn, and save the weights."""
    torch.set_num_threads(1)  # small networks gain nothing from more
    model = make_model(args.players, args.opponents, args.envs, args.seed)
    model.learn(args.steps)
    save_file(model.policy.state_dict(), WEIGHTS, {"players": str(args.players)})
    print(f"saved: {WEIGHTS}")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Args))
