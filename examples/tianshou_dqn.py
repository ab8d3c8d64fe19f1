"""Tianshou: double DQN over whole turns, with masks, against a bot. Needs tianshou.

    python tianshou_dqn.py                                   # learns for one to three minutes
    carolus evaluate tianshou_dqn.py:Trained planner         # plays what it learnt

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each encoded as a row of
numbers (docs/environments.md). Three things are specific to the game:

- Masks. Tianshou looks for them in an observation of ``obs`` and ``mask``; a Gymnasium wrapper
  names them so. Then exploration, play and the targets' maxima are over legal candidates.
- One network scores the row of every candidate, so that no place of the list is learnt anew.
- Rewards come with the end of a game only, so returns look ten steps ahead. Lost games are paid,
  too: when an opponent's move ends a game, the learner's last step has -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TransformObservation
from scorer import Scorer, ScorerAgent, TurnArgs, run
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams

from carolus_env.envs.turns import length
from carolus_env.system.options import option


@dataclass
class Args(TurnArgs):
    """Double DQN over whole turns with Tianshou."""

    steps: int = option(60_000, "discs, crowns and turns to learn from", among=(1, None))
    envs: int = option(64, "games played side by side", among=(1, None))


def make_env(players: int, opponents: str) -> gymnasium.Env:
    """Make a game of a learner, as Tianshou has it."""
    env = gymnasium.make(
        "carolus_env:CarolusMagnusTurns-v0",
        players=players,
        opponents=opponents,
        illegal="raise",  # no illegal choice goes unseen
        masks="observation",
        disable_env_checker=True,  # it plays random candidates, legal or not
    )
    spaces: Any = env.observation_space
    space = gymnasium.spaces.Dict(obs=spaces["observation"], mask=spaces["action_mask"])
    return TransformObservation(
        env, lambda obs: {"obs": obs["observation"], "mask": obs["action_mask"]}, space
    )


class Values(Scorer):
    """A value for each candidate: ``(N, K, F)`` to ``(N, K)``, as Tianshou's DQN asks for it."""

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[torch.Tensor, Any]:
        return self.layers(torch.as_tensor(obs))[..., 0], state


def train(args: Args) -> Values:
    """Play and learn."""
    np.random.seed(args.seed)  # noqa: NPY002 (Tianshou explores by NumPy's global generator)
    envs = DummyVectorEnv([lambda: make_env(args.players, args.opponents)] * args.envs)
    envs.seed(args.seed)
    network = Values(length(args.players), 1)
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


class Trained(ScorerAgent):
    """The trained network as an agent: it takes the candidate of the highest value."""

    path = Path("tianshou_dqn.safetensors")


if __name__ == "__main__":
    run(train, Args, Trained)
