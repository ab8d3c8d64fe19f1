# requires: stable-baselines3==2.9.2 sb3-contrib==2.9.2 torch==2.13.0 tyro
# example: sb3_ppo.py
"""Stable-Baselines3: the batched environments, and MaskablePPO of sb3-contrib."""

from __future__ import annotations

import numpy as np
import stable_baselines3
from checking import Checks, beats_planner, examples, lines_of, pass_seats

from carolus_env import Rules
from carolus_env.engine.rules import MOVE, PLACE
from carolus_env.envs.sb3 import CarolusTurnsVecEnv, CarolusVecEnv


def played(env: CarolusVecEnv | CarolusTurnsVecEnv, checks: Checks) -> list[int]:
    """Random steps; returns all actions."""
    random = np.random.default_rng(1)
    env.seed(7)
    env.reset()
    actions, games, in_a_row, lost = [], 0, 0, 0
    for _ in range(250):
        masks = np.array(env.env_method("action_masks"))
        chosen = (random.random(masks.shape) * masks).argmax(axis=1)
        before = env.games.states["phase"].copy()
        _, rewards, dones, _ = env.step(chosen)
        assert env.ended is not None
        payoffs = env.ended.payoffs
        checks.holds(not payoffs.sum(axis=1).any(), f"payoffs {payoffs}")
        own = payoffs[np.arange(len(payoffs)), env.ended.seats]
        checks.holds((rewards[dones] == own.astype(np.float32)).all(), f"rewards {rewards}")
        checks.holds(not rewards[~dones].any(), "rewards before the end")
        goes_on = (before == PLACE) & ~dones
        in_a_row += int(np.isin(env.games.states["phase"][goes_on], (PLACE, MOVE)).sum())
        actions += chosen.tolist()
        games += int(dones.sum())
        lost += int((rewards < 0).sum())
    checks.holds(games > 10, f"only {games} games ended")
    if isinstance(env, CarolusVecEnv):
        checks.holds(in_a_row > 100 and lost > 0, f"{in_a_row} decisions in a row, {lost} lost")
    return actions


def main() -> None:
    checks = Checks("Stable-Baselines3", stable_baselines3.__version__)
    for players in (2, 3, 4):
        for kind in (CarolusVecEnv, CarolusTurnsVecEnv):
            env = kind(Rules(players), 16, "greedy")
            checks.holds(played(env, checks) == played(env, checks), "seeds: another game")
    pass_seats(checks)
    [example] = examples()
    beats_planner(checks, example)
    checks.passed("masks reach the policy")  # an illegal choice would have stopped the training
    checks.report(
        limits="one learner a game; self-play is `train.py --learner single`",
        lines=lines_of(example, ["make_model"]),
    )


if __name__ == "__main__":
    main()
