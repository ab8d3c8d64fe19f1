# requires: tianshou==2.0.1 torch==2.13.0 tyro
# example: tianshou_dqn.py
"""Tianshou: PettingZoo with all seats and self-play, and DQN in Gymnasium's environment."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from checking import Checks, beats_planner, check_seats, examples, lines_of
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from carolus_env import carolus_magnus_v0


def make_env(players: int) -> PettingZooEnv:
    """A game of single decisions with all seats; an illegal action raises."""
    return PettingZooEnv(carolus_magnus_v0.env(players=players))


def game(players: int, seed: int) -> tuple[list[str], list[int], list[float]]:
    """Movers, actions and last rewards of a random game."""
    env, random = make_env(players), np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    movers, actions, over = [], [], False
    while not over:
        action = int(random.choice(np.flatnonzero(seen["mask"])))
        movers.append(seen["agent_id"])
        actions.append(action)
        seen, rewards, over, _, _ = env.step(action)
    return movers, actions, list(rewards)


def self_play(players: int, checks: Checks) -> None:
    """DQN of every seat, which share a network, plays and learns a little.

    A network that has learnt nothing plays long games: there are steps for some of them to end.
    """
    torch.manual_seed(players)
    env = make_env(players)
    seen = env.observation_space["observation"].shape
    network = Net(state_shape=seen, action_shape=env.action_space.n, hidden_sizes=[64])
    seats: list[Any] = [
        DQN(
            policy=DiscreteQLearningPolicy(
                model=network, action_space=env.action_space, eps_training=0.2
            ),
            optim=AdamOptimizerFactory(lr=1e-3),
        )
        for _ in range(players)
    ]
    learner = MultiAgentOffPolicyAlgorithm(algorithms=seats, env=env)
    envs = DummyVectorEnv([lambda: make_env(players)] * 4)
    buffer = VectorReplayBuffer(8000, 4)
    collector = Collector[Any](learner, envs, buffer, exploration_noise=True)
    before = torch.cat([weights.flatten() for weights in network.parameters()]).clone()
    learner.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=8000,
            collection_step_num_env_steps=400,
            update_step_num_gradient_steps_per_sample=1 / 400,
            test_in_training=False,
            show_progress=False,
            multi_agent_return_reduction=lambda returns: returns[:, 0],
        )
    )
    after = torch.cat([weights.flatten() for weights in network.parameters()])
    checks.holds(after.isfinite().all() and (after != before).any(), "self-play: no learning")
    rewards = buffer.rew[buffer.sample_indices(None)]
    ended = rewards[np.abs(rewards).sum(axis=1) > 0]
    checks.holds(len(ended) and ended.shape[1] == players, f"self-play: rewards {ended}")
    checks.holds(not ended.sum(axis=1).any() and ended.all(), f"self-play: rewards {ended}")


def main() -> None:
    checks = Checks("Tianshou", version("tianshou"))
    check_seats(checks, game)
    for players in (2, 3, 4):
        self_play(players, checks)
    checks.passed("self-play")
    [example] = examples()
    beats_planner(checks, example)
    checks.passed("masks reach the policy")  # an illegal choice would have stopped the training
    checks.report(
        limits="in self-play, DQN takes the next decision, whoever makes it, for the same seat's; "
        "with one-step returns only the seat of the last decision is paid directly",
        lines=lines_of(example, ["make_env"]),
    )


if __name__ == "__main__":
    main()
