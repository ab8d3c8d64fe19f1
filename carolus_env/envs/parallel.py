"""PettingZoo's parallel interface, for libraries that know no other, by its own conversion.

The game is played in turn all the same. A step takes an action of every agent and carries out that
of the player to move; the others' are ignored, whatever they are. The mask of an agent that is not
to move is all zero, and ``infos[agent]["active_agent"]`` names the one that is. All agents are
rewarded, and leave, when the game ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from carolus_env.envs.aec import raw_env
from carolus_env.system.options import instance


class CarolusParallelEnv(turn_based_aec_to_parallel_wrapper):
    """`raw_env` as a PettingZoo parallel environment; takes its arguments."""

    metadata: dict[str, Any] = {**raw_env.metadata, "is_parallelizable": True}  # noqa: RUF012
    observation_spaces = property(lambda self: self.aec_env.observation_spaces)
    action_spaces = property(lambda self: self.aec_env.action_spaces)
    games = property(lambda self: self.aec_env.games)

    def __init__(self, **options: Any) -> None:
        super().__init__(raw_env(**options))
        self.metadata = type(self).metadata
        self.agents: list[str] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start a game; see `raw_env.reset`. Returns observations and infos."""
        observations, infos = super().reset(seed, options)
        active = {"active_agent": self.aec_env.agent_selection}
        return observations, {agent: {**info, **active} for agent, info in infos.items()}

    def step(self, actions: Mapping[str, int]) -> Any:
        """Carry out the action of the player to move, and return what PettingZoo says of all.

        Once the game is over that is five empty dicts.

        Raises:
            KeyError: when the player to move has no action.
            IllegalActionError, ResetNeeded, TypeError: see `raw_env.step`.
        """
        if not self.agents:
            self.state()  # refused before the first `reset`
            return {}, {}, {}, {}, {}
        mover = self.aec_env.agent_selection
        instance("actions", actions, Mapping, "a dict with an action of each agent")
        if mover not in actions:
            raise KeyError(f"actions lack {mover}, who is to move, got those of {[*actions]}")
        return super().step(actions)
