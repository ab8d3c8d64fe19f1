"""skrl: PPO over whole turns, with masks, against a bot. Needs skrl.

    python skrl_ppo.py                                       # learns for one to three minutes
    carolus evaluate skrl_ppo.py:Trained planner             # plays what it learnt

A step is a disc, a crown or a whole turn: one of at most 16 candidates, each encoded as a row of
numbers (docs/environments.md). Four things are specific to the game:

- Masks. skrl's agents know none, so the model masks its logits itself. It reads the mask off the
  observation: a row begins with 1 where there is a candidate, and is all 0 where there is none.
- Autoreset in the same step, so that every step is a decision. skrl's default is the next step, and
  learns from steps that only reset.
- One network scores the row of every candidate, so that no place of the list is learnt anew.
- Lost games are paid, too: when an opponent's move ends a game, the learner's last step has -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode
from scorer import ActorCritic, ScorerAgent, TurnArgs, run
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import Wrapper, wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed


@dataclass
class Args(TurnArgs):
    """PPO over whole turns with skrl."""


def make_env(players: int, opponents: str, games: int) -> Wrapper:
    """Make the games of a learner, as skrl has them."""
    envs = gymnasium.make_vec(
        "carolus_env:CarolusMagnusTurns-v0",
        num_envs=games,
        players=players,
        opponents=opponents,
        illegal="raise",  # no illegal choice goes unseen
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    return wrap_env(envs, wrapper="gymnasium")


class Shared(CategoricalMixin, DeterministicMixin, Model):
    """Policy and value, as skrl's PPO asks for them."""

    def __init__(self, env: Wrapper) -> None:
        spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
        Model.__init__(self, **spaces, device=env.device)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True, role="policy")
        DeterministicMixin.__init__(self, role="value")
        self.shape = env.observation_space.shape
        self.scorer = ActorCritic(self.shape[-1])

    def act(self, inputs: dict[str, Any], *, role: str) -> Any:
        mixin = CategoricalMixin if role == "policy" else DeterministicMixin
        return mixin.act(self, inputs, role=role)

    def compute(self, inputs: dict[str, Any], role: str) -> Any:
        rows = inputs["observations"].unflatten(1, self.shape)
        return self.scorer(rows)[0 if role == "policy" else 1], {}


def train(args: Args) -> ActorCritic:
    """Play and learn."""
    set_seed(args.seed)  # seeds the games, too
    env = make_env(args.players, args.opponents, args.envs)
    model = Shared(env)
    agent = PPO(
        models={"policy": model, "value": model},
        memory=RandomMemory(memory_size=32, num_envs=args.envs, device=env.device),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
        cfg={
            "rollouts": 32,
            "learning_epochs": 4,
            "mini_batches": 8,
            "learning_rate": 1e-3,
            "discount_factor": 0.999,
            "entropy_loss_scale": 0.01,
            "value_clip": 0,
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
        },
    )
    steps = -(-args.steps // (args.envs * 32)) * 32
    SequentialTrainer(env=env, agents=agent, cfg={"timesteps": steps, "headless": True}).train()
    return model.scorer


class Trained(ScorerAgent):
    """The trained network as an agent: it takes the likeliest candidate."""

    path = Path("skrl_ppo.safetensors")


if __name__ == "__main__":
    run(train, Args, Trained)
