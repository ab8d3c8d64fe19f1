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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.bots.agent import Remembered
from carolus_env.engine import observation
from carolus_env.engine.state import States
from carolus_env.envs import candidates
from carolus_env.envs.turns import MOST_ACTIONS, Turns, list_in_games


class DecisionAgent(Agent):
    """Plays single decisions.

    Args:
        players: 2, 3 or 4, for which the network was trained.
        dtype: dtype of the observations that `choose` takes, ``"float32"`` or ``"uint8"``.

    Raises:
        ValueError: for another dtype, or another number of players.
    """

    def __init__(self, players: int, dtype: str = "float32") -> None:
        observation.length(players)  # refuses other numbers
        if dtype not in ("float32", "uint8"):
            raise ValueError(f"dtype must be 'float32' or 'uint8', got {dtype!r}")
        self.players, self._dtype = players, np.dtype(dtype)

    @abstractmethod
    def choose(
        self, observations: npt.NDArray[Any], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.integer[Any]]:
        """Choose an action in each game; the same for the same arrays.

        Args:
            observations: ``(N, length)``, as the environments give them (docs/environments.md).
            masks: ``(N, 95)`` bool, the legal actions.

        Returns:
            ``(N,)`` actions.
        """

    def act(
        self, states: States, generators: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.integer[Any]]:
        """See `Agent.act`; games of another number of players are an `AgentError`."""
        _check_players(self, self.players, states)
        observations = observation.observe(states, dtype=self._dtype)
        return self.choose(observations, engine.legal_masks(states).astype(bool))


class TurnAgent(Agent):
    """Plays discs, crowns and whole turns, listed as in ``CarolusMagnusTurns-v0``.

    A turn is chosen at its first decision, and then carried out.

    Args:
        players: 2, 3 or 4, for which the network was trained.
        turns: options of the list of candidates; None: the environments' defaults.

    Raises:
        ValueError: for another number of players.
    """

    def __init__(self, players: int, turns: Turns | None = None) -> None:
        candidates.length(players)  # refuses other numbers
        self.players, self.turns = players, turns or Turns()
        self._remembered = Remembered()

    @abstractmethod
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.integer[Any]]:
        """Choose a candidate in each game; the same for the same arrays.

        Args:
            rows: ``(N, K, length)`` float32, a row for each candidate, then zeros.
            masks: ``(N, K)`` bool, which rows are candidates.

        Returns:
            ``(N,)`` indices of candidates.
        """

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`.

        Raises:
            AgentError: for games of another number of players, and when `choose` answers anything
                but an index of a candidate for each game.
        """
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
        return listed.actions[games, answer]


class Listed(NamedTuple):
    """The candidates of N games, at most K in each."""

    counts: npt.NDArray[np.int64]  # (N,)
    left_out: npt.NDArray[np.int64]  # (N,) candidates that are not listed
    actions: npt.NDArray[np.int8]  # (N, K, 5) the actions of each, then -1
    rows: npt.NDArray[np.float32]  # (N, K, length) then zeros

    @property
    def masks(self) -> npt.NDArray[np.bool_]:
        """``(N, K)``, which rows are candidates."""
        mask: npt.NDArray[np.bool_] = np.arange(self.rows.shape[1]) < self.counts[:, None]
        return mask


def candidates_of(states: States, turns: Turns) -> Listed:
    """List the candidates of games of one number of players, as the environments do."""
    n, k, players = len(states), turns.candidates, int(states["players"][0])
    listed = Listed(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, k, MOST_ACTIONS), np.int8),
        np.zeros((n, k, candidates.length(players)), np.float32),
    )
    view = candidates.View.new()
    list_in_games(states, np.arange(n), turns.candidate_list(players), view, *listed)
    return listed


def _check_players(agent: Agent, players: int, states: States) -> None:
    found = np.unique(states["players"]).tolist()
    if found not in ([], [players]):
        raise AgentError(agent.name, f"plays games of {players} players, got {found}")
