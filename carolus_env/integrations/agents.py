"""Agents trained by other libraries, which play in the arena: ``evaluate.py file.py:Mine``.

A subclass says what its network chooses; everything else is here. `DecisionAgent` is for networks
of the environments of single decisions, `TurnAgent` for those of ``CarolusMagnusTurns-v0``:

    class Mine(TurnAgent):
        def __init__(self):
            super().__init__(players=2)
            self.network = load("mine.safetensors")

        def choose(self, rows, masks):
            logits = self.network(torch.from_numpy(rows)).numpy()
            return np.where(masks, logits, -np.inf).argmax(axis=1)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.bots.compiled import Remembered
from carolus_env.engine import observation
from carolus_env.engine.state import Ints, States
from carolus_env.envs.turns import Turns, candidates_of


class DecisionAgent(Agent):
    """Plays single decisions in games of ``players`` players.

    ``dtype`` is that of the observations that `choose` takes, ``"float32"`` or ``"uint8"``.
    """

    def __init__(self, players: int, dtype: str = "float32") -> None:
        observation.length(players)  # refuses other numbers
        self.players, self._dtype = players, observation.observation_dtype("dtype", dtype)

    @abstractmethod
    def choose(self, observations: npt.NDArray[Any], masks: npt.NDArray[np.bool_]) -> Ints:
        """Return an action for each of N games, ``(N,)``; the same for the same arrays.

        Args:
            observations: ``(N, length)``, as the environments give them (docs/environments.md).
            masks: ``(N, 95)`` bool, the legal actions.
        """

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
        """See `Agent.act`; games of another number of players are an `AgentError`."""
        _check_players(self, self.players, states)
        observations = observation.observe(states, dtype=self._dtype)
        return self.choose(observations, engine.legal_masks(states).astype(bool))


class TurnAgent(Agent):
    """Plays discs, crowns and whole turns, listed as in ``CarolusMagnusTurns-v0``.

    A turn is chosen at its first decision, and then carried out. ``turns`` are the options of the
    list of candidates; None: the environments' defaults.
    """

    def __init__(self, players: int, turns: Turns | None = None) -> None:
        observation.length(players)  # refuses other numbers
        self.players, self.turns = players, turns or Turns()
        self._remembered = Remembered()

    @abstractmethod
    def choose(self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> Ints:
        """Return a candidate's index for each of N games, ``(N,)``; the same for the same arrays.

        Args:
            rows: ``(N, K, length)`` float32, a row for each candidate, then zeros.
            masks: ``(N, K)`` bool, which rows are candidates.
        """

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`; other games, and an index of no candidate, are an `AgentError`."""
        _check_players(self, self.players, states)
        plans = self._remembered.rests(states, generators)
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            for row, plan in zip(new.tolist(), self._chosen(engine.pick(states, new)), strict=True):
                plans[row] = plan[plan >= 0].tolist()
        return self._remembered.keep(states, generators, plans)

    def _chosen(self, states: States) -> npt.NDArray[np.int8]:
        """Return the actions of the candidate that is chosen in each game, then -1."""
        listed, games = candidates_of(states, self.turns), np.arange(len(states))
        answer = np.asarray(self.choose(listed.rows, listed.masks))
        if answer.shape != games.shape or answer.dtype.kind not in "iu":
            reason = f"{len(games)} integers, one for each game, got shape {answer.shape} and dtype"
            raise AgentError(self.name, f"choose must answer {reason} {answer.dtype}")
        wrong = (answer < 0) | (answer >= listed.counts)
        if wrong.any():
            row = int(np.argmax(wrong))
            reason = f"an index from 0 to {listed.counts[row] - 1}, got {answer[row]}"
            raise AgentError(self.name, f"choose must answer {reason}")
        return listed.choices[games, answer]


def _check_players(agent: Agent, players: int, states: States) -> None:
    found = np.unique(states["players"]).tolist()
    if found not in ([], [players]):
        raise AgentError(agent.name, f"plays games of {players} players, got {found}")
