"""An idea of one's own in PPO over whole turns: features, a network, a reward, an opponent.

    python examples/own_ideas.py                          # as it is: examples/ppo_torch.py --turns
    python examples/own_ideas.py --idea reward
    python examples/own_ideas.py --idea network --steps 500000 --seed 2

Each idea is one class below, put into the training loop of ppo_torch.py in `main`. The evaluation
is the same for all of them: the usual payoffs, against the usual opponent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
import ppo_torch
import torch
import tyro
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from ppo_torch import mlp
from torch import Tensor, nn
from torch.distributions import Categorical

from carolus_env.arena import mean_interval
from carolus_env.bots import Agent, make
from carolus_env.engine.state import States

Floats = npt.NDArray[np.floating[Any]]


@dataclass
class Args(ppo_torch.Args):
    """An idea of one's own, tried with PPO over whole turns."""

    idea: Literal["none", "features", "network", "reward", "opponent"] = "none"
    """What is tried."""
    turns: bool = True
    """Whole turns as actions."""
    steps: int = 250_000
    """Decisions to learn from."""


def shape_of(env: VectorEnv) -> tuple[int, int]:
    """Rows and entries of what is seen of one game."""
    space = env.single_observation_space
    assert isinstance(space, spaces.Box)
    rows, length = space.shape
    return rows, length


def states_of(env: Any) -> States:
    """The games; each waits for a decision of its learner."""
    return env.unwrapped.games.states


# ------------------------------------------------------------------------------------ features


class WithCourts(VectorWrapper):
    """Every row also has the courts of the other players, clan by clan.

    The environment's own rows tell the lead over the strongest of them only.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        rows, length = shape_of(env)
        self.single_observation_space = spaces.Box(-8, 8, (rows, length + 15), np.float32)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )

    def reset(self, **kwargs: Any) -> tuple[Floats, dict[str, Any]]:
        seen, info = self.env.reset(**kwargs)
        return self._more(seen), info

    def step(self, actions: Any) -> tuple[Any, ...]:
        seen, *rest = self.env.step(actions)
        return self._more(seen), *rest

    def _more(self, seen: Floats) -> Floats:
        states = states_of(self.env)
        clockwise = (states["player"][:, None] + [1, 2, 3]) % states["players"][:, None]
        courts = np.take_along_axis(states["courts"], clockwise[..., None].astype(int), axis=1)
        there = np.arange(1, 4) < states["players"][:, None]
        numbers = (courts * there[..., None] * 0.25).reshape(len(seen), 1, 15)
        candidates = seen[..., :1]  # 1 where a row is a candidate: the others stay 0
        return np.concatenate([seen, (numbers * candidates).astype(np.float32)], axis=2)


# ------------------------------------------------------------------------------------ network


class Compared(nn.Module):
    """Each candidate is scored beside the mean of them all, rather than alone."""

    def __init__(self, length: int, hidden: int) -> None:
        super().__init__()
        self.policy = mlp(2 * length, hidden, 1, gain=0.01)
        self.value = mlp(2 * length, hidden, 1, gain=1.0)

    def forward(self, seen: Tensor, masks: Tensor) -> tuple[Categorical, Tensor]:
        """Distributions over the candidates, and expected payoffs, ``(N,)`` each."""
        mean = seen.sum(dim=1, keepdim=True) / masks.sum(dim=1).clamp(min=1)[:, None, None]
        both = torch.cat([seen, seen - mean], dim=2)
        logits = self.policy(both)[..., 0].masked_fill(~masks, -1e9)
        choice = Categorical(logits=logits, validate_args=False)
        return choice, (choice.probs * self.value(both)[..., 0]).sum(dim=1)


# ------------------------------------------------------------------------------------ reward


class CastlesPay(VectorWrapper):
    """Castles ahead of the strongest opponent are rewarded at once, and paid back at the end.

    That is shaping by a potential (Ng, Harada and Russell, ICML 1999): what is best stays best.
    """

    def __init__(self, env: VectorEnv, scale: float = 0.05, gamma: float = 0.999) -> None:
        super().__init__(env)
        self.scale, self.gamma = scale, gamma

    def reset(self, **kwargs: Any) -> tuple[Floats, dict[str, Any]]:
        seen, info = self.env.reset(**kwargs)
        self.potential = self._potential()
        return seen, info

    def step(self, actions: Any) -> tuple[Any, ...]:
        seen, payoffs, terminated, truncated, info = self.env.step(actions)
        now = self._potential()  # where a game ended, already that of the next one
        later = np.where(terminated | truncated, 0.0, self.gamma * now)
        rewards, self.potential = payoffs + later - self.potential, now
        return seen, rewards, terminated, truncated, info

    def _potential(self) -> Floats:
        states = states_of(self.env)
        games = np.arange(len(states))
        team = states["team"][games, states["player"]]
        castles = states["castles"].astype(float)
        own = castles[games, team]
        castles[games, team] = -np.inf
        return self.scale * (own - castles.max(axis=1))


# ------------------------------------------------------------------------------------ opponent


class Unsteady(Agent):
    """`planner`, but every third decision, on average, is any legal action."""

    name = "unsteady"

    def __init__(self) -> None:
        self.planner, self.random = make("planner"), make("random")

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
        any_legal = self.random.act(states, generators)  # advances the streams
        planned = self.planner.act(states, generators)
        return np.where(generators % np.uint64(3) == 0, any_legal, planned)


# ------------------------------------------------------------------------------------ training


def games(args: Args, count: int, *, learning: bool) -> VectorEnv:
    """The environment; with what is tried, where that changes it."""
    against: Any = Unsteady() if args.idea == "opponent" and learning else args.opponents
    envs = ppo_torch.make(replace(args, opponents=against), count)
    if args.idea == "features":
        return WithCourts(envs)
    return CastlesPay(envs) if args.idea == "reward" and learning else envs


def main(args: Args) -> None:
    """Train with what is tried, and evaluate without it."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    envs = games(args, args.envs, learning=True)
    made = Compared if args.idea == "network" else ppo_torch.Scorer
    network = made(shape_of(envs)[1], args.hidden)
    ppo_torch.train(args, envs, network)
    shares = ppo_torch.evaluate(network, args, games(args, args.eval_games, learning=False))
    low, high = mean_interval(shares)
    print(
        f"{args.idea}, seed {args.seed}: win rate {shares.mean():.1%} (95 %: {low:.1%} to "
        f"{high:.1%}) against {args.opponents}, {args.eval_games:,} games of {args.players} players"
    )


if __name__ == "__main__":
    main(tyro.cli(Args))
