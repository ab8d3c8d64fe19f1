"""TorchRL: PPO over whole turns, with masks, against a bot. Needs torchrl.

    python torchrl_ppo.py                                    # learns for one to three minutes
    carolus evaluate torchrl_ppo.py:Trained planner          # plays what it learnt

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each encoded as a row of
numbers (docs/environments.md). Four things are specific to the game:

- Masks are in the observation (``masks="observation"``), where TorchRL looks for them: the
  transform ActionMask keeps random actions legal, and MaskedCategorical the policy's.
- The vector environment resets nothing by itself (``AutoresetMode.DISABLED``), as TorchRL prefers:
  its collector resets the games that are over.
- One network scores the row of every candidate, so that no place of the list is learnt anew.
- Lost games are paid, too: when an opponent's move ends a game, the learner's last step has -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from scorer import ActorCritic, ScorerAgent, TurnArgs, run
from tensordict.nn import ProbabilisticTensorDictModule as Drawn
from tensordict.nn import ProbabilisticTensorDictSequential as Actor
from tensordict.nn import TensorDictModule as Module
from torch import Tensor, nn
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, GymWrapper, TransformedEnv
from torchrl.modules import MaskedCategorical
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


@dataclass
class Args(TurnArgs):
    """PPO over whole turns with TorchRL."""


def make_env(players: int, opponents: str, games: int) -> TransformedEnv:
    """Make the games of a learner, as TorchRL has them."""
    envs = gymnasium.make_vec(
        "carolus_env:CarolusMagnusTurns-v0",
        num_envs=games,
        players=players,
        opponents=opponents,
        illegal="raise",  # no illegal choice goes unseen
        masks="observation",
        autoreset_mode=AutoresetMode.DISABLED,
    )
    return TransformedEnv(GymWrapper(envs, categorical_action_encoding=True), ActionMask())


class LegalCategorical(MaskedCategorical):
    """MaskedCategorical with the observation's int8 masks."""

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        super().__init__(logits=logits, mask=mask.bool(), neg_inf=torch.finfo(logits.dtype).min)


def train(args: Args) -> ActorCritic:
    """Play and learn, with a line of progress for each update."""
    env = make_env(args.players, args.opponents, args.envs)
    env.set_seed(args.seed)
    network = ActorCritic(env.observation_spec["observation"].shape[-1])
    actor = Actor(
        Module(network, in_keys=["observation"], out_keys=["logits", "_"]),
        Drawn(
            in_keys={"logits": "logits", "mask": "action_mask"},
            out_keys=["action"],
            distribution_class=LegalCategorical,
            return_log_prob=True,
        ),
    )
    critic = Module(network, in_keys=["observation"], out_keys=["_", "state_value"])
    advantage = GAE(gamma=0.999, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01, normalize_advantage=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    batch = args.envs * 32
    updates = -(-args.steps // batch)
    collector = Collector(env, actor, frames_per_batch=batch, total_frames=updates * batch)
    for update, data in enumerate(collector, 1):
        with torch.no_grad():
            advantage(data)
        flat = data.reshape(-1)
        for _ in range(4):
            for chosen in torch.randperm(batch).split(1024):
                losses = loss(flat[chosen])
                total = sum(losses[f"loss_{part}"] for part in ("objective", "critic", "entropy"))
                optimizer.zero_grad()
                total.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - update / updates)
        ended = data["next", "reward"][data["next", "done"]]
        print(
            f"{update * batch:>9,} steps  payoff {ended.mean():+.2f} in {len(ended)} games",
            flush=True,
        )
    collector.shutdown()
    return network


class Trained(ScorerAgent):
    """The trained network as an agent: it takes the likeliest candidate."""

    path = Path("torchrl_ppo.safetensors")


if __name__ == "__main__":
    run(train, Args, Trained)
