"""Tianshou: double DQN over whole turns, with masks, against a bot. Needs tianshou and tyro.

    python tianshou_dqn.py                                   # learns for about two minutes
    carolus evaluate tianshou_dqn.py:Trained planner         # plays what it learnt

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each seen by a row of
numbers (docs/turns.md). Three things are specific to the game:

- Masks. Tianshou looks for them in an observation of ``obs`` and ``mask``; a Gymnasium wrapper
  names them so. Then exploration, play and the targets' maxima are over legal candidates.
- One network scores the row of every candidate, so that no place of the list is learnt anew.
- Rewards come with the end of a game only, so returns look ten steps ahead. Lost games are paid,
  too: when an opponent's move ends a game, the learner's last step has -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.wrappers import TransformObservation
from safetensors.torch import load_file, save_file
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from torch import nn

from carolus_env.envs.candidates import length
from carolus_env.integrations.agents import TurnAgent

WEIGHTS = Path("tianshou_dqn.safetensors")


@dataclass
class Args:
    """Double DQN over whole turns with Tianshou."""

    players: Literal[2, 3, 4] = 2
    """2, 3 or 4 (two teams of two)."""
    opponents: str = "planner:errors=0.1"
    """The agent in all other seats."""
    steps: int = 60_000
    """Discs, crowns and turns to learn from."""
    envs: int = 64
    """Games played side by side."""
    seed: int = 1
    """Of games, network and exploration."""


def make_env(players: int, opponents: str) -> gymnasium.Env:
    """A game of a learner, as Tianshou has it."""
    env = gymnasium.make(
        "carolus_env:CarolusMagnusTurns-v0",
        players=players,
        opponents=opponents,
        illegal="raise",  # no illegal choice goes unseen
        masks="observation",
        disable_env_checker=True,  # which plays random candidates, legal or not
    )
    seen: Any = env.observation_space
    space = gymnasium.spaces.Dict(obs=seen["observation"], mask=seen["action_mask"])
    return TransformObservation(
        env, lambda seen: {"obs": seen["observation"], "mask": seen["action_mask"]}, space
    )


class Scorer(nn.Module):
    """A value for each candidate: ``(N, K, F)`` to ``(N, K)``, as Tianshou's DQN asks for it."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(entries, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        )

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[torch.Tensor, Any]:
        return self.layers(torch.as_tensor(obs))[..., 0], state


def train(args: Args) -> Scorer:
    """Play and learn."""
    envs = DummyVectorEnv([lambda: make_env(args.players, args.opponents)] * args.envs)
    envs.seed(args.seed)
    network = Scorer(length(args.players))
    policy = DiscreteQLearningPolicy(
        model=network, action_space=envs.action_space[0], eps_training=0.1
    )
    dqn: DQN = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.99,
        n_step_return_horizon=10,
        target_update_freq=200,
    )
    buffer = VectorReplayBuffer(20_000, args.envs, ignore_obs_next=True)
    collector = Collector[Any](dqn, envs, buffer, exploration_noise=True)
    dqn.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=-(-args.steps // 10_000),
            epoch_num_steps=10_000,
            collection_step_num_env_steps=8 * args.envs,
            update_step_num_gradient_steps_per_sample=1 / 32,
            batch_size=256,
            test_in_training=False,
        )
    )
    return network


class Trained(TurnAgent):
    """What was learnt, as an agent: it takes the candidate of the highest value."""

    def __init__(self) -> None:
        weights = load_file(WEIGHTS)
        entries = weights["layers.0.weight"].shape[1]
        super().__init__(next(n for n in (2, 3, 4) if length(n) == entries))
        self.network = Scorer(entries)
        self.network.load_state_dict(weights)

    @torch.no_grad()
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        values = self.network(rows)[0].numpy()
        chosen: npt.NDArray[Any] = np.where(masks, values, -np.inf).argmax(axis=1)
        return chosen


def main(args: Args) -> None:
    """Learn, and save the weights."""
    torch.set_num_threads(1)  # small networks gain nothing from more
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002 (Tianshou explores by NumPy's global generator)
    save_file(train(args).state_dict(), WEIGHTS)
    print(f"saved: {WEIGHTS}")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Args))
