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

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from carolus_env.learners.forward_policy import ForwardPolicy, Masks

NO_CANDIDATE: Final = -1e9
"""Logit where there is no candidate: finite, so that its product with probability 0 is 0."""


class CandidatePolicy(ForwardPolicy):
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

    def log_policy_and_values(
        self, obs: torch.Tensor, masks: Masks = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the candidates ``(N, K)``, and expected payoffs ``(N, 1)``."""
        logits, values = self.scorer(obs).unbind(dim=-1)
        log_policy = torch.log_softmax(logits.masked_fill(obs[..., 0] == 0, NO_CANDIDATE), dim=1)
        return log_policy, (log_policy.exp() * values).sum(dim=1, keepdim=True)
