"""PettingZoo's parallel interface, for libraries that know no other.

The game is played in turn all the same. A step takes an action of every agent and carries out that
of the player to move; the others' are ignored, whatever they are. The mask of an agent that is not
to move is all zero, and ``infos[agent]["active_agent"]`` names the one that is. All agents are
rewarded, and leave, when the game ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from carolus_env.engine.state import States
from carolus_env.envs.aec import raw_env
from carolus_env.system.options import instance

Observations = dict[str, dict[str, npt.NDArray[Any]]]


class CarolusParallelEnv(ParallelEnv):
    """`raw_env` as a PettingZoo parallel environment; takes its arguments."""

    metadata: dict[str, Any] = {**raw_env.metadata, "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        self.aec_env = raw_env(**options)
        self.possible_agents = self.aec_env.possible_agents
        self.observation_spaces = self.aec_env.observation_spaces
        self.action_spaces = self.aec_env.action_spaces
        self.agents: list[str] = []
        self.state_space = self.aec_env.state_space
        self.render_mode = self.aec_env.render_mode

    def observation_space(self, agent: str) -> spaces.Space:
        """Return the observation space of `raw_env`."""
        return self.aec_env.observation_space(agent)

    def action_space(self, agent: str) -> spaces.Space:
        """Return the action space of `raw_env`."""
        return self.aec_env.action_space(agent)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Start a game; see `raw_env.reset`."""
        self.aec_env.reset(seed, options)
        self.agents = self.possible_agents[:]
        return self._observe(), self._infos()

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[
        Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Carry out the action of the player to move.

        Args:
            actions: an action of each agent; only that of the player to move matters.

        Returns:
            observations, rewards, terminations, truncations and infos of all agents; empty ones
            once the game is over.

        Raises:
            ResetNeeded: before the first `reset`.
            KeyError: when the player to move has no action.
            IllegalActionError, TypeError: see `raw_env.step`.
        """
        env = self.aec_env
        if not self.agents:
            env.state()  # refused before the first `reset`
            return {}, {}, {}, {}, {}
        mover = env.agent_selection
        instance("actions", actions, Mapping, "a dict with an action of each agent")
        if mover not in actions:
            raise KeyError(f"actions lack {mover}, who is to move, got those of {[*actions]}")
        env.step(actions[mover])
        result = (
            self._observe(),
            dict(env.rewards),
            dict(env.terminations),
            dict(env.truncations),
            self._infos(),
        )
        if env.terminations[mover] or env.truncations[mover]:
            self.agents = []
        return result

    @property
    def games(self) -> States:
        """See `raw_env.games`."""
        return self.aec_env.games

    def render(self) -> Any:
        """See `raw_env.render`."""
        return self.aec_env.render()

    def state(self) -> npt.NDArray[np.generic]:
        """See `raw_env.state`."""
        return self.aec_env.state()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.aec_env.close()

    def _observe(self) -> Observations:
        return {agent: self.aec_env.observe(agent) for agent in self.agents}

    def _infos(self) -> dict[str, dict[str, Any]]:
        env = self.aec_env
        active = {"active_agent": env.agent_selection}
        return {agent: {**env.infos[agent], **active} for agent in self.agents}
