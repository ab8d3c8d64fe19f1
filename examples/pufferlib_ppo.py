"""PufferLib: PPO by self-play on single decisions, with masks. Needs pufferlib-core.

    python pufferlib_ppo.py                                  # learns for two to four minutes
    carolus evaluate pufferlib_ppo.py:Trained planner        # plays what it learnt

`SelfPlay` is a native environment: the games of a `GameBatch`, written into PufferLib's buffers.
Network and evaluation are those of ppo_torch.py. Three things are specific to the game:

- A row for each seat. PuffeRL learns one value a row, and a row must not change sides. So every
  seat sees every position, from its own side, and learns what it is worth to it; only the seat to
  move chooses. The others have one action, of probability 1, which moves no policy.
- Masks. PuffeRL knows none. They are the end of an observation, where the network reads them.
- Ends. A game that is cut off pays 0, and the observation counts its rounds down. So it is a
  terminal, too: PuffeRL ignores truncations, and would take the next game's value for this one's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import ppo_torch
import pufferlib
import torch
from pufferlib.pufferl import PuffeRL
from torch import Tensor

import carolus_env as ce
from carolus_env.bots.network import DecisionsBot
from carolus_env.engine.observation import length
from carolus_env.networks.decisions import DecisionModel, Size
from carolus_env.system.command import script_options
from carolus_env.system.options import option


@dataclass
class Args:
    """PPO by self-play on single decisions with PufferLib."""

    players: int = option(2, "2, 3 or 4 (two teams of two)", among=(2, 4))
    steps: int = option(600_000, "decisions to learn from", among=(1, None))
    envs: int = option(256, "games played side by side", among=(1, None))
    seed: int = option(1, "seed of games, network and sampling", among=(0, None))


class SelfPlay(pufferlib.PufferEnv):
    """All seats of many games: row ``game * players + seat`` has an observation, then the mask."""

    def __init__(self, players: int, games: int, buf: Any = None, seed: int = 0) -> None:
        self.width = length(players)
        shape = (self.width + ce.ACTIONS,)
        self.single_observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(ce.ACTIONS)
        self.num_agents = games * players
        super().__init__(buf)
        self.batch = ce.GameBatch(ce.Rules(players), games, seed=seed)
        self.first_rows = players * np.arange(games)

    def reset(self, seed: int | None = None) -> tuple[npt.NDArray[np.uint8], list[Any]]:
        self.batch.reset(seed)
        self.rewards[:], self.terminals[:] = 0, False
        return self.look(), []

    def step(self, actions: npt.NDArray[Any]) -> tuple[Any, ...]:
        turn = self.batch.step(actions[self.movers])
        self.rewards[:] = turn.rewards.ravel()
        self.terminals[:] = np.repeat(turn.terminated | turn.truncated, self.batch.rules.players)
        return self.look(), self.rewards, self.terminals, self.truncations, []

    def look(self) -> npt.NDArray[np.uint8]:
        """Write observations and masks."""
        batch, players = self.batch, self.batch.rules.players
        self.movers = self.first_rows + batch.states["player"]
        for seat in range(players):
            views = ce.observe(batch.states, np.full(batch.n, seat))
            self.observations[seat::players, : self.width] = views
        self.observations[:, self.width :] = np.arange(ce.ACTIONS) == 0  # for who waits
        self.observations[self.movers, self.width :] = batch.masks
        return self.observations

    def close(self) -> None:
        pass


class Policy(ppo_torch.Network):
    """The network of ppo_torch.py, with the value of the row's own seat."""

    def forward(self, rows: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        obs, masks = rows.split([rows.shape[1] - ce.ACTIONS, ce.ACTIONS], dim=1)
        log_probs, values = super().forward(obs, masks)
        return log_probs, values[:, 0]

    forward_eval = forward


class Trainer(PuffeRL):
    """PuffeRL with a line of progress in place of its dashboard, and no checkpoints."""

    def print_dashboard(self, *_: Any, **__: Any) -> None:
        players = self.vecenv.batch.rules.players
        if self.losses:
            print(
                f"{self.global_step // players:>12,} decisions  "
                f"entropy {players * self.losses['entropy']:.2f}",  # that of the others is 0
                flush=True,
            )

    def save_checkpoint(self) -> None:
        pass


def train(args: Args, policy: Policy) -> None:
    """Play and learn, with a line of progress for each update."""
    steps = args.steps * args.players  # PuffeRL counts rows
    config = {
        "env": "carolus",
        "seed": args.seed,
        "device": "cpu",
        "total_timesteps": steps,
        "batch_size": "auto",
        "bptt_horizon": 64,
        "minibatch_size": 1024,
        "max_minibatch_size": 1024,
        "update_epochs": 2,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "anneal_lr": True,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_eps": 1e-5,
        "max_grad_norm": 0.5,
        "gamma": 1,
        "gae_lambda": 0.97,
        "vtrace_rho_clip": 1,
        "vtrace_c_clip": 1,
        "clip_coef": 0.2,
        "vf_clip_coef": 0.2,
        "vf_coef": 0.5,
        "ent_coef": 0.005,
        "prio_alpha": 0,  # all segments are equally likely
        "prio_beta0": 1,
        "precision": "float32",
        "torch_deterministic": True,
        "compile": False,
        "cpu_offload": False,
        "use_rnn": False,
        "checkpoint_interval": steps,
    }
    trainer = Trainer(config, SelfPlay(args.players, args.envs, seed=args.seed), policy)
    try:
        while trainer.global_step < steps:
            trainer.evaluate()
            trainer.train()
    finally:
        trainer.utilization.stop()  # a thread that would keep the process alive


class Trained(DecisionsBot):
    """The trained network as an agent: it takes the likeliest action."""

    path = Path("pufferlib_ppo.safetensors")

    def __init__(self) -> None:
        super().__init__(DecisionModel.load(self.path))


if __name__ == "__main__":
    args = script_options(Args, __doc__)
    torch.set_num_threads(1)  # small networks gain little from more
    torch.manual_seed(args.seed)
    policy = Policy(Size(args.players, 32, 128), args.seed)
    bot = "planner:errors=0.3"
    matches = ppo_torch.Args(players=args.players, seed=args.seed, opponents=(bot,))
    ppo_torch.evaluate(policy, matches)
    train(args, policy)
    ppo_torch.evaluate(policy, matches)
    policy.model({"seed": args.seed, "decisions": args.steps}).save(Trained.path)
