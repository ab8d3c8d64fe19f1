"""A PettingZoo environment that does nothing: the cost of PettingZoo's own interface.

Written like the environment of PettingZoo's tutorial (AgentSelector, reward dictionaries), with the
spaces of Carolus. Observations are made once and returned again and again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import AgentSelector
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from carolus_env import ACTIONS
from carolus_env.envs.aec import observation_box

TURNS = 180  # about as many as a random game of 2 players has decisions


def env(players: int = 2) -> OrderEnforcingWrapper:
    """The empty environment in the wrapper that `carolus_magnus_v0.env` has."""
    return OrderEnforcingWrapper(raw_env(players))


class raw_env(AECEnv):  # noqa: N801
    """Everything is legal, nothing happens, and after `TURNS` turns it is over."""

    metadata = {"name": "empty_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self, players: int = 2) -> None:
        super().__init__()
        self.render_mode = None
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        box = observation_box(players, np.dtype(np.float32))
        self._space = spaces.Dict(
            observation=box, action_mask=spaces.Box(0, 1, (ACTIONS,), np.int8)
        )
        self._actions = spaces.Discrete(ACTIONS)
        self._seen = {
            "observation": np.zeros(box.shape, np.float32),
            "action_mask": np.ones(ACTIONS, np.int8),
        }

    def observation_space(self, agent: str) -> spaces.Space:
        return self._space

    def action_space(self, agent: str) -> spaces.Space:
        return self._actions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._selector = AgentSelector(self.agents)
        self.agent_selection = self._selector.next()
        self._turns = 0

    def observe(self, agent: str) -> dict[str, Any]:
        return self._seen

    def step(self, action: int | None) -> None:
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[self.agent_selection] = 0
        self._turns += 1
        if self._turns == TURNS:
            self.terminations = dict.fromkeys(self.agents, True)
        self._clear_rewards()
        self.agent_selection = self._selector.next()
        self._accumulate_rewards()
