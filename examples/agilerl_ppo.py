"""AgileRL: PPO over whole turns, with masks, against a bot. Needs agilerl.

    python agilerl_ppo.py                                    # learns for one to three minutes
    carolus evaluate agilerl_ppo.py:Trained planner          # plays what it learnt

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each encoded as a row of
numbers (docs/environments.md). Four things are specific to the game:

- Masks. AgileRL reads ``info["action_mask"]`` of the vector environment, in play and in the update.
- Autoreset in the same step, so that every step is a decision. In next-step mode some steps only
  reset, have no legal action, and would be learnt from.
- One network scores the row of every candidate, so that no place of the list is learnt anew. It is
  a module of our own, so its architecture does not evolve; hyperparameters may.
- Lost games are paid, too: when an opponent's move ends a game, the learner's last step has -1.

Advantages are returns less values, not generalised ones: AgileRL 2.58.0 takes the end of a game for
that of the step before, so with GAE a payoff reaches only the last step, and the next game's value
is added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from agilerl.algorithms import PPO
from agilerl.modules.dummy import DummyEvolvable
from agilerl.networks import StochasticActor
from agilerl.networks.distributions import EvolvableDistribution
from agilerl.networks.value_networks import ValueNetwork
from agilerl.rollouts.on_policy import collect_rollouts
from gymnasium.vector import AutoresetMode, VectorEnv
from scorer import LOWEST, Scorer, ScorerAgent, TurnArgs, run
from torch import Tensor, nn


@dataclass
class Args(TurnArgs):
    """PPO over whole turns with AgileRL."""


def make_env(players: int, opponents: str, games: int) -> VectorEnv:
    """Make the games of a learner."""
    return gymnasium.make_vec(
        "carolus_env:CarolusMagnusTurns-v0",
        num_envs=games,
        players=players,
        opponents=opponents,
        illegal="raise",  # no illegal choice goes unseen
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


class Rows(Scorer):
    """A number for each candidate, ``(N, K, F)`` to ``(N, K)``; or the highest, ``(N, 1)``."""

    def __init__(self, entries: int, outputs: int) -> None:
        super().__init__(entries, 1)
        self.num_outputs = outputs

    def forward(self, rows: Tensor) -> Tensor:
        scores: Tensor = self.layers(rows)[..., 0]
        if self.num_outputs > 1:
            return scores
        return scores.masked_fill(rows[..., 0] == 0, LOWEST).amax(dim=1, keepdim=True)


class Actor(StochasticActor):
    """The numbers of `Rows` are the logits: no head on top, which would mix them."""

    def build_network_head(self, net_config: Any) -> None:
        nothing = DummyEvolvable("cpu", nn.Identity())
        self.head_net = EvolvableDistribution(self.action_space, nothing)


class Critic(ValueNetwork):
    """The same for the value."""

    def build_network_head(self, net_config: Any) -> None:
        self.head_net = DummyEvolvable("cpu", nn.Identity())


def make_agent(env: VectorEnv) -> PPO:
    """Make PPO with `Rows` as policy and value."""
    space: Any = env.single_observation_space
    actions: Any = env.single_action_space
    logits = DummyEvolvable("cpu", Rows(space.shape[-1], actions.n))
    values = DummyEvolvable("cpu", Rows(space.shape[-1], 1))
    return PPO(
        space,
        actions,
        actor_network=Actor(space, actions, encoder=logits),
        critic_network=Critic(space, encoder=values),
        share_encoders=False,
        num_envs=env.num_envs,
        learn_step=32 * env.num_envs,
        batch_size=1024,
        update_epochs=4,
        lr=1e-3,
        gamma=0.999,
        rollout_buffer_config={"use_gae": False},  # see above
        ent_coef=0.01,
    )


def train(args: Args) -> Rows:
    """Play and learn, with a line of progress for each update."""
    env = make_env(args.players, args.opponents, args.envs)
    env.reset(seed=args.seed)  # later resets go on from this seed
    agent = make_agent(env)
    names = ("last_obs", "last_done", "last_scores", "last_info")
    last: dict[str, Any] = {}
    batch = args.envs * 32
    for update in range(1, -(-args.steps // batch) + 1):
        payoffs, *where = collect_rollouts(agent, env, 32, **last)
        last = dict(zip(names, where, strict=True))
        agent.learn()
        print(
            f"{update * batch:>9,} steps  payoff {np.mean(payoffs):+.2f} in {len(payoffs)} games",
            flush=True,
        )
    result: Rows = agent.actor.encoder.module
    return result


class Trained(ScorerAgent):
    """The trained network as an agent: it takes the likeliest candidate."""

    path = Path("agilerl_ppo.safetensors")


if __name__ == "__main__":
    run(train, Args, Trained)
