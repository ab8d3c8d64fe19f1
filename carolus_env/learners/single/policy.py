"""The network as a policy of Stable-Baselines3, with a value for every team."""

from __future__ import annotations

from typing import Any, Final

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from carolus_env.bots.neural import network
from carolus_env.engine.rules import TEAMS
from carolus_env.learners.forward_policy import ForwardPolicy, Masks

ILLEGAL_LOGIT: Final = -1e9
"""Logit of an illegal action: finite, so that its product with probability 0 is 0."""


class NetworkPolicy(ForwardPolicy):
    """`carolus_env.bots.neural.network` as a policy of SB3; its values are ``(N, teams)`` payoffs.

    Values are counted from the acting team: its own payoff first, then the next teams clockwise.

    Args:
        observation_space, action_space, lr_schedule: see SB3; observations are whole numbers.
        size: of the network.
        seed: of its first weights.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        size: network.Size,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        self._size, self._seed = size, seed
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        first = network.initial(self._size, self._seed)
        self.weights = nn.ParameterDict({k: torch.from_numpy(v) for k, v in first.items()})
        kwargs: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **kwargs)

    def log_policy_and_values(
        self, obs: torch.Tensor, masks: Masks
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the actions ``(N, 95)``, and expected payoffs ``(N, teams)``."""
        teams = TEAMS[self._size.players]
        logits, scores = network.forward(
            dict(self.weights.items()), obs.float(), self._size.players, torch
        )
        if masks is not None:
            legal = torch.as_tensor(masks, device=logits.device).bool()
            logits = logits.masked_fill(~legal, ILLEGAL_LOGIT)
        payoffs = (teams * torch.softmax(scores, dim=1) - 1) / (teams - 1)
        return torch.log_softmax(logits, dim=1), payoffs
