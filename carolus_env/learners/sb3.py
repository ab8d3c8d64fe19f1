"""Train sb3-contrib's MaskablePPO on single decisions.

    $ python train.py --learner sb3
    $ python train.py --learner sb3 --players 4 --opponents greedy

This file is meant to be copied. The bot ``decisions:PATH`` plays what was saved, with NumPy alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import LinearSchedule
from torch import Tensor, nn

from carolus_env.bots import Agent, make
from carolus_env.bots.agent import drawn
from carolus_env.bots.network import DecisionsBot
from carolus_env.engine import legal_masks
from carolus_env.engine.chance import derived_seed
from carolus_env.engine.observation import length, observe
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.state import States
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.learners.run import Arrays, Learner, RunConfig, algorithm, every, network, rate
from carolus_env.networks.decisions import LIMITS, DecisionModel, Size, forward, random_weights
from carolus_env.system.cancellation import Stop
from carolus_env.system.options import option

SELF: Final = "self"  # the policy that learns, as its own opponent
SAME: Final = (  # names of options, as those of MaskablePPO
    *("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range"),
    *("ent_coef", "vf_coef", "device"),
)


@dataclass
class Sb3Config(RunConfig):
    """The hyperparameters; those of PPO have Stable-Baselines3's names."""

    learner_name: ClassVar[str] = "sb3"
    bot: ClassVar[str] = "decisions"
    unit: ClassVar[str] = "decisions"
    length: ClassVar[str] = "steps"

    steps: int = option(4_000_000, "decisions to learn from, in all", among=(1, None))
    eval_every: int = every(500_000, "decisions")
    curve_every: int = every(50_000, "decisions", "points of the curve")
    opponents: str = algorithm(
        SELF, "who plays all other seats: self, the policy that learns, or a bot, by spec"
    )
    envs: int = algorithm(512, "games played side by side", among=(1, None))

    learning_rate: float = rate(1e-3, "learning rate of Adam at the start; it falls linearly to 0")
    n_steps: int = algorithm(64, "decisions in each game between two updates", among=(1, None))
    batch_size: int = algorithm(512, "decisions in a gradient step", among=(1, None))
    n_epochs: int = algorithm(2, "passes over the decisions of an update", among=(1, None))
    gamma: float = algorithm(1.0, "discount for each decision", among=(0, 1))
    gae_lambda: float = algorithm(0.97, "lambda of generalised advantage estimation", among=(0, 1))
    clip_range: float = algorithm(0.2, "PPO's clip range", above=0)
    ent_coef: float = algorithm(0.005, "weight of the entropy bonus", among=(0, 100))
    vf_coef: float = algorithm(0.5, "weight of the value's loss", among=(0, 100))
    region: int = network(32, "width of the network's vectors of regions and clans", among=LIMITS)
    whole: int = network(128, "width of its vector of the whole position", among=LIMITS)
    threads: int = algorithm(1, "threads of PyTorch", among=(1, None))
    device: str = algorithm("cpu", "device of the networks; the games stay on the CPU")

    @property
    def budget(self) -> str:
        return f"{super().budget} against {self.opponents}"

    @property
    def size(self) -> Size:
        return Size(self.players, self.region, self.whole)

    def round_size(self, done: int) -> int:
        return self.envs * self.n_steps

    def rate_at(self, progress: float) -> float:
        """Return the learning rate of the update after the next rollout: that of the last is 0."""
        done = round(progress * self.steps) + self.round_size(0)
        return LinearSchedule(self.learning_rate, 0.0, 1.0)(1 - done / self.steps)

    @property
    def memory(self) -> int:
        return self.round_size(0) * (length(self.players) + 4 * ACTIONS)  # and their masks

    def check(self) -> None:
        super().check()
        DecisionModel(self.size, random_weights(self.size, self.seed)).to_bytes()
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:  # CUDA where there is none, too
            raise ValueError(f"device {self.device!r}: {error}") from None
        if self.batch_size == 1 or self.round_size(0) % self.batch_size == 1:
            raise ValueError(
                f"envs times n_steps, {self.envs} x {self.n_steps}, leaves a batch of one decision "
                f"for a batch_size of {self.batch_size}, and advantages of one cannot be normalised"
            )
        if self.opponents != SELF:
            make(self.opponents)


class Network(BaseFeaturesExtractor):
    """`networks.decisions` as a network of PyTorch: logits and the viewer's value, side by side."""

    def __init__(self, observation_space: spaces.Box, size: Size, seed: int) -> None:
        super().__init__(observation_space, ACTIONS + 1)
        self.players = size.players
        first = random_weights(size, seed)
        self.weights: Any = nn.ParameterDict(
            {name: nn.Parameter(torch.from_numpy(weight)) for name, weight in first.items()}
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Return ``(N, 96)`` numbers."""
        logits, values = forward(self.weights, observations, self.players, torch)
        return torch.cat([logits, values[:, :1]], dim=1)


class DecisionPolicy(MaskableActorCriticPolicy):
    """A policy of MaskablePPO whose logits and value are those of `Network`."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        del self.action_net, self.value_net
        self.action_net: Any = lambda outputs: outputs[:, :ACTIONS]
        self.value_net: Any = lambda outputs: outputs[:, ACTIONS:]
        self.optimizer = self.optimizer_class(self.parameters(), **self.optimizer_kwargs)


class Itself(Agent):
    """The policy that learns, in the other seats: draws from it as it is now."""

    name = SELF
    policy: DecisionPolicy

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`."""
        observations = torch.from_numpy(observe(states)).to(self.policy.device)
        choice: Any = self.policy.get_distribution(observations, legal_masks(states))
        return drawn(choice.distribution.probs.cpu().numpy().astype(np.float64), generators)


class Sb3Learner(Learner):
    """MaskablePPO, a rollout and an update at a time; `Itself` or a bot plays the other seats."""

    Config = Sb3Config

    def __init__(self, config: Sb3Config) -> None:
        torch.set_num_threads(config.threads)
        self.config, self.itself = config, Itself()
        opponents = self.itself if config.opponents == SELF else config.opponents
        self.env = CarolusVecEnv(config.rules, config.envs, opponents, dtype=np.uint8)
        self.ppo = MaskablePPO(
            DecisionPolicy,
            self.env,
            policy_kwargs={
                "features_extractor_class": Network,
                "features_extractor_kwargs": {"size": config.size, "seed": config.seed},
                "net_arch": [],
                "optimizer_kwargs": {"eps": 1e-5, "fused": True},  # fused is faster
            },
            seed=config.seed % 2**32,  # NumPy's old generator takes no more
            **{name: getattr(config, name) for name in SAME},
        )
        self.ppo.set_logger(Logger(None, []))  # the run writes TensorBoard's files
        self.policy: Any = self.ppo.policy
        self.itself.policy = self.policy

    def warm_up(self) -> None:
        """Begin games that no process of this run has had."""
        self.env.seed(derived_seed(self.config.seed, self.ppo.num_timesteps))
        self.env.reset()

    def learn(self, first: int, count: int, rate: float, stop: Stop) -> int:
        """Play a rollout, and learn from it; ``stop`` breaks it off, and nothing is learnt."""
        self.ppo.lr_schedule, begun = lambda remaining: rate, time.process_time()
        self.ppo.learn(count, lambda *_: not stop.is_set(), reset_num_timesteps=False)
        self.cpu_seconds += time.process_time() - begun
        if not self.ppo.rollout_buffer.full:  # broken off
            self.ppo.num_timesteps = first
        return self.ppo.num_timesteps - first

    def metrics(self) -> dict[str, float]:
        """Return means of the last update, and the payoff of the last hundred games."""
        update = self.ppo.logger.name_to_value
        payoffs = [episode["r"] for episode in self.ppo.ep_info_buffer or ()] or [0.0]
        same = {name: update[f"train/{name}"] for name in ("loss", "clip_fraction", "approx_kl")}
        return {**same, "entropy": -update["train/entropy_loss"], "payoff": float(np.mean(payoffs))}

    def model(self, about: Mapping[str, Any]) -> DecisionModel:
        weights = self.policy.features_extractor.weights
        arrays = {name: weight.detach().cpu().numpy().copy() for name, weight in weights.items()}
        return DecisionModel(self.config.size, arrays, about)

    def agent(self, model: DecisionModel) -> DecisionsBot:
        return DecisionsBot(model)

    def arrays(self) -> Arrays:
        tensors = {f"weights/{name}": each for name, each in self.policy.state_dict().items()}
        for k, moments in self.policy.optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{k}/{name}": each for name, each in moments.items()}
        arrays = {name: each.detach().cpu().numpy() for name, each in tensors.items()}
        return {**arrays, "steps": np.array([self.ppo.num_timesteps])}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        weights, adam = {}, self.policy.optimizer.state_dict()
        for name, array in arrays.items():
            kind, *key = name.split("/")
            if kind == "adam":
                tensor = torch.from_numpy(array.reshape(()) if key[1] == "step" else array)
                adam["state"].setdefault(int(key[0]), {})[key[1]] = tensor
            elif kind == "weights":
                weights[key[0]] = torch.from_numpy(array)
        self.policy.load_state_dict(weights)
        self.policy.optimizer.load_state_dict(adam)
        self.ppo.num_timesteps = int(arrays["steps"][0])
