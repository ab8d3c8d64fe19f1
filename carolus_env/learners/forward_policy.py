"""What the policies of Stable-Baselines3 share here: all follows from one forward pass."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

Masks = npt.NDArray[Any] | torch.Tensor | None


class ForwardPolicy(MaskableActorCriticPolicy):
    """A policy of SB3 whose log probabilities and values come from `log_policy_and_values`."""

    @abstractmethod
    def log_policy_and_values(
        self, obs: torch.Tensor, masks: Masks
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the actions ``(N, actions)``, and expected payoffs ``(N, V)``."""

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Masks = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Choose: ``(N,)`` actions, ``(N, V)`` expected payoffs, ``(N,)`` log probabilities."""
        log_policy, payoffs = self.log_policy_and_values(obs, action_masks)
        if deterministic:
            actions = log_policy.argmax(dim=1)
        else:  # a race of exponential clocks draws from the policy
            noise = torch.empty_like(log_policy).exponential_()
            actions = (log_policy - noise.log()).argmax(dim=1)
        return actions, payoffs, log_policy.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Judge actions: ``(N, V)`` expected payoffs, ``(N,)`` log probabilities and entropies."""
        log_policy, payoffs = self.log_policy_and_values(obs, action_masks)
        entropy = -(log_policy.exp() * log_policy).sum(dim=1)
        return payoffs, log_policy.gather(1, actions.long()[:, None])[:, 0], entropy

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """Expected payoffs, ``(N, V)``."""
        return self.log_policy_and_values(obs, None)[1]

    def get_distribution(self, obs: Any, action_masks: Masks = None) -> Any:
        """The policy as Stable-Baselines3's distribution of actions."""
        log_policy, _ = self.log_policy_and_values(obs, action_masks)
        return self.action_dist.proba_distribution(action_logits=log_policy)
