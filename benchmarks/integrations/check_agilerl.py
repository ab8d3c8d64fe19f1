# requires: agilerl==2.58.0 peft==0.21.0 torch==2.13.0 tyro
# example: agilerl_ppo.py
"""AgileRL: its parallel PettingZoo environments with all seats, and PPO in vector environments."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
from agilerl.components.rollout_buffer import RolloutBuffer
from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv
from checking import Checks, beats_planner, check_seats, examples, lines_of

from carolus_env import carolus_magnus_v0


def game(players: int, seed: int) -> tuple[list[int], list[int], list[float]]:
    """Movers, actions and last rewards of a random game, the first of a vector of one."""
    envs = AsyncPettingZooVecEnv([lambda: carolus_magnus_v0.parallel_env(players=players)])
    try:
        return played(envs, players, seed)
    finally:
        envs.close()


def played(envs: Any, players: int, seed: int) -> tuple[list[int], list[int], list[float]]:
    """See `game`."""
    random = np.random.default_rng(seed)
    seen, _ = envs.reset(seed=seed)
    names = [f"player_{seat}" for seat in range(players)]
    movers, actions = [], []
    while True:
        masks = np.array([seen[name]["action_mask"][0] for name in names])
        [mover] = np.flatnonzero(masks.any(axis=1))  # only one agent has legal actions
        action = int(random.choice(np.flatnonzero(masks[mover])))
        movers.append(int(mover))
        actions.append(action)
        seen, rewards, ended, _, _ = envs.step({name: np.array([action]) for name in names})
        if ended[names[0]][0]:
            return movers, actions, [float(rewards[name][0]) for name in names]


def first_advantage(use_gae: bool) -> float:
    """Of the first of three steps, where the second ends a game with 1 and all values are 0.

    It is above 0 where advantages are right.
    """
    spaces = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)
    buffer = RolloutBuffer(3, *spaces, num_envs=1, use_gae=use_gae)
    seen, nothing = np.zeros((1, 1), np.float32), np.zeros(1)
    for reward in (0.0, 1.0, 0.0):
        buffer.add(
            obs=seen,
            action=nothing,
            reward=np.array([reward]),
            done=np.array([reward > 0]),  # of this step, as collect_rollouts gives it
            value=nothing,
            log_prob=nothing,
            next_obs=seen,
        )
    buffer.compute_returns_and_advantages(last_value=nothing, last_done=nothing)
    return float(buffer.buffer["advantages"][0, 0])


def main() -> None:
    checks = Checks("AgileRL", version("agilerl"))
    check_seats(checks, game)
    checks.holds(first_advantage(use_gae=False) > 0, "no advantage without GAE")
    right = first_advantage(use_gae=True) > 0
    checks.passed("GAE", result="ok" if right else "the end of a game is taken a step early")
    [example] = examples()
    beats_planner(checks, example)
    checks.passed("masks reach the policy")  # an illegal choice would have stopped the training
    checks.report(
        limits="2.58.0 imports peft without requiring it, and needs PettingZoo below 1.27; its GAE "
        "takes the end of a game for that of the step before (use_gae=False helps); a module of "
        "one's own does not evolve; its multi-agent learners were not tried",
        lines=lines_of(example, ["make_env"]),
    )


if __name__ == "__main__":
    main()
