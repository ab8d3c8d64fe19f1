"""A policy of Stable-Baselines3 for environments of whole turns: every candidate has its score.

    >>> from sb3_contrib import MaskablePPO
    >>> from carolus_env import Rules
    >>> from carolus_env.envs.sb3 import CarolusTurnsVecEnv
    >>> env = CarolusTurnsVecEnv(Rules(players=2), 256, "planner", seed=1)
    >>> model = MaskablePPO(CandidatePolicy, env)

The same network looks at the row of each candidate. So what is learnt about one place of the list
holds for all, and the order of the list does not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

Masks = npt.NDArray[Any] | torch.Tensor | None

NO_CANDIDATE: Final = -1e9
"""Logit where there is no candidate: finite, so that its product with probability 0 is 0."""


class CandidatePolicy(MaskableActorCriticPolicy):
    """Scores each row of ``(N, K, F)`` observations by one network of shared weights.

    The network gives a logit and a value to each candidate. The value of a position is what its
    policy can expect: the mean of the candidates' values by their probability. Masks are read off
    the rows (their first entry), so ``action_masks`` may be left out.

    Args:
        observation_space, action_space, lr_schedule: see SB3.
        hidden: units of the hidden layers.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        hidden: Sequence[int] = (128, 64),
        **kwargs: Any,
    ) -> None:
        self._hidden = tuple(hidden)
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert self.observation_space.shape is not None
        sizes = [self.observation_space.shape[-1], *self._hidden]
        layers: list[nn.Module] = []
        for wide, narrow in itertools.pairwise(sizes):
            layers += [nn.Linear(wide, narrow), nn.ReLU()]
        self.scorer = nn.Sequential(*layers, nn.Linear(sizes[-1], 2))
        kwargs: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **kwargs)

    def log_policy_and_values(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the candidates ``(N, K)``, and expected payoffs ``(N, 1)``."""
        logits, values = self.scorer(obs).unbind(dim=-1)
        log_policy = torch.log_softmax(logits.masked_fill(obs[..., 0] == 0, NO_CANDIDATE), dim=1)
        return log_policy, (log_policy.exp() * values).sum(dim=1, keepdim=True)

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Masks = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_policy, values = self.log_policy_and_values(obs)
        if deterministic:
            actions = log_policy.argmax(dim=1)
        else:  # a race of exponential clocks draws from the policy
            noise = torch.empty_like(log_policy).exponential_()
            actions = (log_policy - noise.log()).argmax(dim=1)
        return actions, values, log_policy.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_policy, values = self.log_policy_and_values(obs)
        entropy = -(log_policy.exp() * log_policy).sum(dim=1)
        return values, log_policy.gather(1, actions.long()[:, None])[:, 0], entropy

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.log_policy_and_values(obs)[1]

    def get_distribution(self, obs: Any, action_masks: Masks = None) -> Any:
        return self.action_dist.proba_distribution(action_logits=self.log_policy_and_values(obs)[0])
