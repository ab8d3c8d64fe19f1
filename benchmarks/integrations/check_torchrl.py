# requires: torchrl==0.14.1 torch==2.13.0 tyro
# example: torchrl_ppo.py
"""TorchRL: PettingZoo with all seats, vector environments, Serial and Parallel, and PPO."""

from __future__ import annotations

from itertools import groupby

import gymnasium
import torch
import torchrl
from checking import Checks, beats_planner, examples, lines_of
from gymnasium.vector import AutoresetMode
from torchrl.envs import (
    ActionMask,
    GymEnv,
    GymWrapper,
    ParallelEnv,
    PettingZooWrapper,
    SerialEnv,
    TransformedEnv,
    check_env_specs,
)
from torchrl.envs.utils import MarlGroupMapType

from carolus_env import carolus_magnus_v0


def of_all_seats(players: int) -> PettingZooWrapper:
    """A game of single decisions; a group for each seat."""
    return PettingZooWrapper(
        carolus_magnus_v0.env(players=players),
        use_mask=True,
        group_map=MarlGroupMapType.ONE_GROUP_PER_AGENT,
    )


def of_a_learner(name: str, players: int, games: int) -> TransformedEnv:
    """Games of one learner, in one batch."""
    envs = gymnasium.make_vec(
        f"carolus_env:{name}",
        num_envs=games,
        players=players,
        opponents="greedy",
        illegal="raise",
        masks="observation",
        autoreset_mode=AutoresetMode.DISABLED,
    )
    return TransformedEnv(GymWrapper(envs, categorical_action_encoding=True), ActionMask())


def single() -> GymEnv:
    """One game of one learner."""
    return GymEnv(
        "CarolusMagnusTurns-v0",
        opponents="greedy",
        masks="observation",
        categorical_action_encoding=True,
    )


def main() -> None:
    checks = Checks("TorchRL", torchrl.__version__)
    for players in (2, 3, 4):
        env = of_all_seats(players)
        check_env_specs(env)
        played = []
        for _ in range(2):
            env.set_seed(7)
            torch.manual_seed(7)
            played.append(env.rollout(2000))
        game, again = played
        checks.holds((game == again).all(), "seeds: the same seed gave another game")
        groups = [f"player_{seat}" for seat in range(players)]
        rewards = torch.stack([game["next", name, "reward"].flatten() for name in groups])
        last = rewards[:, -1]
        checks.holds(last.abs().min() > 0 and last.sum() == 0, f"rewards {last.tolist()}")
        checks.holds(not rewards[:, :-1].any(), "rewards before the end")
        moves = torch.stack([game[name, "mask"].flatten(1).any(dim=1) for name in groups])
        runs = [len(list(run)) for _, run in groupby(moves.int().argmax(dim=0).tolist())]
        checks.holds(max(runs) > 1 and (moves.sum(dim=0) == 1).all(), "one agent moves at a time")
        for name in ("CarolusMagnus-v0", "CarolusMagnusTurns-v0"):
            env = of_a_learner(name, players, 16)
            check_env_specs(env)
            seen = env.rollout(200, break_when_any_done=False)
            legal = seen["action_mask"].gather(-1, seen["action"][..., None])
            checks.holds(legal.all() and seen["next", "done"].sum() > 20, f"{name}: masks")
    checks.passed("rewards sum to zero")
    checks.passed("several decisions in a row")
    checks.passed("masks reach the policy")
    checks.passed("seeds")
    checks.passed("players", result="2, 3, 4")
    for kind in (SerialEnv, ParallelEnv):
        env = TransformedEnv(kind(2, single), ActionMask())
        check_env_specs(env)
        env.rollout(100, break_when_any_done=False)
        env.close()
    checks.passed("Serial and Parallel")
    [example] = examples()
    beats_planner(checks, example)
    checks.report(
        limits="SerialEnv and ParallelEnv need ActionMask outside them, and their random actions "
        "may be illegal after a reset of some games; PettingZooWrapper shows all seats each step",
        lines=lines_of(example, ["make_env"]),
    )


if __name__ == "__main__":
    main()
