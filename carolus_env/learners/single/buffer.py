"""The rollout buffer: every seat's decisions, and generalised advantages for every team."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples

from carolus_env.engine.rules import ACTIONS, TEAMS


class SeatBuffer(MaskableRolloutBuffer):
    """Decisions of all games, step by step, with values and rewards for every team.

    Attributes (``T`` steps, ``n`` games):
        observations: ``(T, n, length)`` uint8.
        masks: ``(T, n, 95)`` bool.
        actions: ``(T, n)`` int64.
        log_probs: ``(T, n)`` float32.
        acting: ``(T, n)`` int64, the team that decides.
        values: ``(T, n, teams)`` float32, expected payoffs, by team number.
        rewards: ``(T, n, teams)`` float32, payoffs where the decision ended the game, else 0.
        ends: ``(T, n)`` bool, whether it did.
        advantages: ``(T, n)`` float32, of the acting team; see `compute_advantages`.
        returns: ``(T, n, teams)`` float32, by team number.
    """

    def __init__(self, *args: Any, players: int, seed: int = 0, **kwargs: Any) -> None:
        self.teams = TEAMS[players]
        self.random = np.random.default_rng(seed)
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        """Empty the buffer; the first call allocates its arrays."""
        steps, n = self.buffer_size, self.n_envs
        if getattr(self, "masks", None) is None:
            length = int(np.prod(self.obs_shape))
            self.observations = np.zeros((steps, n, length), np.uint8)
            self.masks = np.zeros((steps, n, ACTIONS), np.bool_)
            self.actions = np.zeros((steps, n), np.int64)
            self.log_probs = np.zeros((steps, n), np.float32)
            self.acting = np.zeros((steps, n), np.int64)
            self.values = np.zeros((steps, n, self.teams), np.float32)
            self.rewards = np.zeros((steps, n, self.teams), np.float32)
            self.returns = np.zeros((steps, n, self.teams), np.float32)
            self.advantages = np.zeros((steps, n), np.float32)
            self.ends = np.zeros((steps, n), np.bool_)
        self.pos, self.full = 0, False

    def add_decisions(
        self,
        observations: npt.NDArray[Any],
        masks: npt.NDArray[Any],
        acting: npt.NDArray[np.int64],
        actions: npt.NDArray[np.int64],
        log_probs: npt.NDArray[np.float32],
        values: npt.NDArray[np.float32],
    ) -> None:
        """Add a step: one decision in each game. ``values`` are counted from the acting team."""
        t = self.pos
        self.observations[t], self.masks[t], self.actions[t] = observations, masks, actions
        self.log_probs[t], self.acting[t] = log_probs, acting
        self.values[t] = to_absolute(values, acting)
        self.rewards[t], self.ends[t] = 0.0, False
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def add_ends(self, rows: npt.NDArray[np.int64], payoffs: npt.NDArray[np.floating[Any]]) -> None:
        """The last step ended the games ``rows`` with ``payoffs``, ``(k, teams)``."""
        self.rewards[self.pos - 1, rows] = payoffs
        self.ends[self.pos - 1, rows] = True

    def compute_advantages(self, last_values: npt.NDArray[np.float32]) -> None:
        """Generalised advantages (arXiv:1506.02438) of every team; keep the acting team's.

        Args:
            last_values: ``(n, teams)`` by team number, of the positions after the last step.
        """
        advantages = np.zeros((self.n_envs, self.teams), np.float32)
        next_values = last_values
        games = np.arange(self.n_envs)
        for t in reversed(range(self.buffer_size)):
            goes_on = (~self.ends[t]).astype(np.float32)[:, None]
            error = self.rewards[t] + self.gamma * goes_on * next_values - self.values[t]
            advantages = error + self.gamma * self.gae_lambda * goes_on * advantages
            self.advantages[t] = advantages[games, self.acting[t]]
            self.returns[t] = advantages + self.values[t]
            next_values = self.values[t]

    def get(  # type: ignore[override]
        self, batch_size: int | None = None
    ) -> Generator[MaskableRolloutBufferSamples, None, None]:
        """All decisions in random order, ``batch_size`` at a time.

        ``old_values`` and ``returns`` hold ``teams`` numbers for each decision, counted from the
        acting team, as the policy's values are.
        """
        total = self.buffer_size * self.n_envs
        order = self.random.permutation(total)
        size = batch_size or total
        acting = self.acting.reshape(total)
        for start in range(0, total, size):
            chosen = order[start : start + size]
            yield MaskableRolloutBufferSamples(
                self._tensor(self.observations, chosen),
                self._tensor(self.actions, chosen),
                self._relative(self.values, chosen, acting[chosen]),
                self._tensor(self.log_probs, chosen),
                self._tensor(self.advantages, chosen),
                self._relative(self.returns, chosen, acting[chosen]),
                self._tensor(self.masks, chosen),
            )

    def _tensor(self, array: npt.NDArray[Any], chosen: npt.NDArray[np.int64]) -> torch.Tensor:
        flat = array.reshape(self.buffer_size * self.n_envs, *array.shape[2:])
        return torch.from_numpy(flat[chosen]).to(self.device)

    def _relative(
        self, array: npt.NDArray[Any], chosen: npt.NDArray[np.int64], acting: npt.NDArray[np.int64]
    ) -> torch.Tensor:
        flat = array.reshape(-1, self.teams)[chosen]
        return torch.from_numpy(to_relative(flat, acting).reshape(-1)).to(self.device)


def to_absolute(values: npt.NDArray[Any], acting: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """``(N, teams)`` counted from each row's acting team, as ``(N, teams)`` by team number."""
    teams = values.shape[1]
    return np.take_along_axis(values, (np.arange(teams) - acting[:, None]) % teams, 1)


def to_relative(values: npt.NDArray[Any], acting: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The inverse of `to_absolute`."""
    teams = values.shape[1]
    return np.take_along_axis(values, (np.arange(teams) + acting[:, None]) % teams, 1)
