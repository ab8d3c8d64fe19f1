# requires: skrl==2.1.1 torch==2.13.0 tyro
# example: skrl_ppo.py
"""skrl: PettingZoo's parallel interface with all seats, and PPO in the vector environment."""

from __future__ import annotations

from typing import Any

import skrl
import torch
from checking import Checks, beats_planner, check_seats, examples, lines_of
from skrl.envs.wrappers.torch import wrap_env
from skrl.utils import set_seed
from skrl.utils.spaces.torch import unflatten_tensorized_space

from carolus_env import carolus_magnus_v0


def game(players: int, seed: int) -> tuple[list[int], list[int], list[float]]:
    """Movers, actions and last rewards of a random game, through skrl's wrapper."""
    set_seed(seed)
    env = wrap_env(carolus_magnus_v0.parallel_env(players=players), wrapper="pettingzoo")
    seen, infos = env.reset()
    movers, actions = [], []
    while env.agents:
        mover = infos[env.agents[0]]["active_agent"]
        action = int(torch.multinomial(mask_of(env, seen, mover).float(), 1))
        movers.append(env.possible_agents.index(mover))
        actions.append(action)
        given = {name: torch.tensor([[action]]) for name in env.agents}
        seen, rewards, _, _, infos = env.step(given)
    return movers, actions, [float(reward) for reward in rewards.values()]


def mask_of(env: Any, seen: dict[str, torch.Tensor], agent: str) -> torch.Tensor:
    """An agent's mask in what skrl shows."""
    found = unflatten_tensorized_space(env.observation_space(agent), seen[agent])
    mask: torch.Tensor = found["action_mask"].flatten()
    return mask


def main() -> None:
    checks = Checks("skrl", skrl.__version__)
    check_seats(checks, game)
    [example] = examples()
    beats_planner(checks, example)
    checks.passed("masks reach the policy")  # an illegal choice would have stopped the training
    checks.report(
        limits="agents know no masks: the model must apply them; a game that is cut off after 100 "
        "rounds is bootstrapped from the next game unless time_limit_bootstrap is set",
        lines=lines_of(example, ["make_env"]),
    )


if __name__ == "__main__":
    main()
