"""What the environment of whole turns gives away: choices that learnt nothing, against `planner`.

    python -m benchmarks.studies.turns --games 2000

``first`` always takes the first candidate: the planner's own turn, but the lowest disc and crown.
``any`` takes any candidate.
"""

from __future__ import annotations

import argparse
import sys

import gymnasium
import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env.arena import mean_interval
from carolus_env.engine.rules import TEAMS

CHOICES = ("first", "any")


def shares(choice: str, players: int, games: int, seed: int) -> npt.NDArray[np.float64]:
    """The learner's share of the win in the first game of each of ``games`` rows."""
    envs = gymnasium.make_vec(
        "carolus_env:CarolusMagnusTurns-v0",
        num_envs=games,
        players=players,
        opponents="planner",
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    random = np.random.default_rng(seed)
    _, info = envs.reset(seed=seed)
    found = np.full(games, np.nan)
    while np.isnan(found).any():
        counts = info["action_mask"].sum(axis=1)
        actions = random.integers(counts) if choice == "any" else np.zeros(games, np.int64)
        _, payoffs, terminated, truncated, info = envs.step(actions)
        first = (terminated | truncated) & np.isnan(found)
        found[first] = ((TEAMS[players] - 1) * payoffs[first] + 1) / TEAMS[players]
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=991)
    options = parser.parse_args(arguments)
    for players in (2, 3, 4):
        for choice in CHOICES:
            found = shares(choice, players, options.games, options.seed)
            low, high = mean_interval(found)
            print(
                f"{players} players, {choice}: {100 * found.mean():.1f} % "
                f"({100 * low:.1f} - {100 * high:.1f}) of {options.games:,} games"
            )
    print(line())


if __name__ == "__main__":
    main(sys.argv[1:])
