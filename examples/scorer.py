"""What the examples of whole turns with PyTorch share: a network over candidates, and its agent.

A step of ``CarolusMagnusTurns-v0`` is a choice among candidates, each a row of numbers
(docs/environments.md). A `Scorer` applies the same weights to every row, so that no place of the
list is learnt anew. Needs ``torch`` and ``safetensors``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.vector import AutoresetMode
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from carolus_env.envs.turns import length
from carolus_env.integrations.agents import TurnAgent
from carolus_env.system.command import script_options
from carolus_env.system.options import option

LOWEST: Final = torch.finfo(torch.float32).min  # logit of no candidate: 0 times it is 0


@dataclass
class TurnArgs:
    """The options of a script that learns to play whole turns against a bot."""

    players: int = option(2, "2, 3 or 4 (two teams of two)", among=(2, 4))
    opponents: str = option(
        "planner:errors=0.1",
        "the agent in all other seats; an untrained network beats `greedy`, and loses to this one",
    )
    steps: int = option(200_000, "discs, crowns and turns to learn from", among=(1, None))
    envs: int = option(256, "games played side by side", among=(1, None))
    seed: int = option(1, "seed of games, network and sampling", among=(0, None))


Args = TypeVar("Args", bound=TurnArgs)


class Scorer(nn.Module):
    """Numbers for each candidate, ``(..., K, F)`` to ``(..., K, outputs)``."""

    def __init__(self, entries: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(entries, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()),
            nn.Linear(64, outputs),
        )

    def forward(self, rows: Tensor) -> Any:
        """Return the numbers of each candidate."""
        return self.layers(rows)


class ActorCritic(Scorer):
    """A policy over the candidates, and the value that it expects."""

    def __init__(self, entries: int) -> None:
        super().__init__(entries, 2)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(..., K)`` and the expected value ``(..., 1)``.

        A row begins with 1 where there is a candidate; elsewhere the logit is `LOWEST`.
        """
        logits, values = self.layers(rows).unbind(dim=-1)
        logits = logits.masked_fill(rows[..., 0] == 0, LOWEST)
        return logits, (logits.detach().softmax(dim=-1) * values).sum(dim=-1, keepdim=True)


class ScorerAgent(TurnAgent):
    """Plays the candidate with the highest first number of a `Scorer`."""

    path: ClassVar[Path]
    """The file of its weights, as `run` saves them; a subclass names it."""

    def __init__(self) -> None:
        weights = load_file(self.path)
        entries = weights["layers.0.weight"].shape[1]
        super().__init__(next(n for n in (2, 3, 4) if length(n) == entries))
        self.network = Scorer(entries, len(weights["layers.4.bias"]))
        self.network.load_state_dict(weights)

    @torch.no_grad()
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """See `TurnAgent.choose`."""
        scores = self.network(torch.from_numpy(rows))[..., 0].numpy()
        chosen: npt.NDArray[Any] = np.where(masks, scores, -np.inf).argmax(axis=1)
        return chosen


def run(train: Callable[[Args], Scorer], kind: type[Args], agent: type[ScorerAgent]) -> None:
    """Train by the options of the command line, save the weights, and score before and after.

    Args:
        train: a function that returns a `Scorer`.
        kind: the dataclass of the options.
        agent: the agent that plays by the trained scorer.
    """
    args = script_options(kind, kind.__doc__)
    torch.set_num_threads(1)  # small networks gain nothing from more
    torch.manual_seed(args.seed)
    print(score_line("before training", Scorer(length(args.players), 1), args), flush=True)
    torch.manual_seed(args.seed)
    trained = train(args)
    save_file(trained.state_dict(), agent.path)
    print(score_line("after training", trained, args))
    print(f"saved: {agent.path}")


@torch.no_grad()
def score_line(when: str, network: Scorer, args: TurnArgs, games: int = 200) -> str:
    """Play games with the best candidate of a `Scorer`; return a line with its mean payoff."""
    envs = gymnasium.make_vec(
        "carolus_env:CarolusMagnusTurns-v0",
        num_envs=games,
        players=args.players,
        opponents=args.opponents,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    rows, infos = envs.reset(seed=args.seed + 1_000_000)  # other games than those of training
    payoffs = np.full(games, np.nan)  # of the first game of each environment
    while np.isnan(payoffs).any():
        scores = network.layers(torch.from_numpy(rows))[..., 0].numpy()
        actions = np.where(infos["action_mask"] == 1, scores, -np.inf).argmax(axis=1)
        rows, rewards, terminated, truncated, infos = envs.step(actions)
        ended = (terminated | truncated) & np.isnan(payoffs)
        payoffs[ended] = rewards[ended]
    return f"{when}: payoff {payoffs.mean():+.2f} in {games} games against {args.opponents}"
