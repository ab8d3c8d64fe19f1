# requires: agilerl==2.58.0 peft==0.21.0 torch==2.13.0 tyro
# example: agilerl_ppo.py
"""AgileRL: its parallel PettingZoo environments with all seats, and PPO in vector environments."""

from __future__ import annotations

from importlib.metadata import version
from itertools import groupby
from typing import Any

import numpy as np
from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv
from checking import Checks, beats_planner, examples, lines_of

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


def main() -> None:
    checks = Checks("AgileRL", version("agilerl"))
    for players in (2, 3, 4):
        movers, actions, rewards = game(players, 7)
        checks.holds(actions == game(players, 7)[1], "seeds: the same seed gave another game")
        checks.holds(actions != game(players, 8)[1], "seeds: another seed gave the same game")
        checks.holds(all(rewards) and sum(rewards) == 0, f"rewards {rewards}")
        checks.holds(max(len(list(run)) for _, run in groupby(movers)) > 1, "decisions in a row")
    checks.passed("rewards sum to zero")
    checks.passed("several decisions in a row")
    checks.passed("seeds")
    checks.passed("players", result="2, 3, 4")
    [example] = examples()
    beats_planner(checks, example)
    checks.passed("masks reach the policy")  # an illegal choice would have stopped the training
    checks.report(
        limits="2.58.0 imports peft without requiring it, and needs PettingZoo below 1.27; a "
        "module of one's own does not evolve; its multi-agent learners were not tried",
        lines=lines_of(example, ["make_env"]),
    )


if __name__ == "__main__":
    main()
