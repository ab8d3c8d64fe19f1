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
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.bots.agent import Remembered
from carolus_env.engine import observation
from carolus_env.engine.state import States
from carolus_env.envs.candidates import View, length
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
            observations: ``(N, length)``, as the environments give them (docs/environments.md#the-observation).
            masks: ``(N, 95)`` bool, the legal actions.

        Returns:
            ``(N,)`` actions.
        """

    def act(
        self, states: States, generators: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.integer[Any]]:
        """See `Agent.act`.

        Raises:
            AgentError: for games of another number of players.
        """
        _check_players(self, states)
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
        self.turns = turns or Turns()
        self._length = length(players)
        self.players = players
        self._remembered = Remembered()

    @abstractmethod
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.integer[Any]]:
        """Choose a candidate in each game; the same for the same arrays.

        Args:
            rows: ``(N, K, length)`` float32, a row for each candidate, then zeros (docs/environments.md#whole-turns).
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
        _check_players(self, states)
        plans = self._remembered.rests(states, generators)
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            for row, plan in zip(new.tolist(), self._chosen(engine.pick(states, new)), strict=True):
                plans[row] = plan
        return self._remembered.keep(states, generators, plans)

    def _chosen(self, states: States) -> list[list[int]]:
        """Return the actions of the candidate that is chosen in each game."""
        n, most = len(states), self.turns.candidates
        counts, left_out = np.zeros((2, n), np.int64)
        actions = np.zeros((n, most, MOST_ACTIONS), np.int8)
        rows = np.zeros((n, most, self._length), np.float32)
        listed, view = self.turns.candidate_list(self.players), View.new()
        list_in_games(states, np.arange(n), listed, view, counts, left_out, actions, rows)
        answer = np.asarray(self.choose(rows, np.arange(most) < counts[:, None]))
        if answer.shape != (n,) or answer.dtype.kind not in "iu":
            raise AgentError(
                self.name,
                f"choose must answer {n} integers, one for each game, "
                f"got shape {answer.shape} and dtype {answer.dtype}",
            )
        wrong = (answer < 0) | (answer >= counts)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise AgentError(
                self.name,
                f"choose must answer an index from 0 to {counts[row] - 1}, got {answer[row]}",
            )
        chosen = actions[np.arange(n), answer].tolist()
        return [[number for number in plan if number >= 0] for plan in chosen]


def agent_of(
    choose: Callable[[npt.NDArray[Any], npt.NDArray[np.bool_]], npt.NDArray[np.integer[Any]]],
    players: int,
    turns: Turns | None = None,
) -> Agent:
    """Return the agent of a function that chooses.

    Args:
        choose: a function like `DecisionAgent.choose`, or with ``turns`` like `TurnAgent.choose`.
        players: 2, 3 or 4, for which the network was trained.
        turns: options of the list of candidates; None: single decisions.
    """

    kind: Any = DecisionAgent if turns is None else TurnAgent

    class Chosen(kind):
        def choose(self, *arguments: Any) -> npt.NDArray[np.integer[Any]]:
            return choose(*arguments)

    agent: Agent = Chosen(players) if turns is None else Chosen(players, turns)
    return agent


def _check_players(agent: DecisionAgent | TurnAgent, states: States) -> None:
    result = np.unique(states["players"]).tolist()
    if result not in ([], [agent.players]):
        raise AgentError(agent.name, f"plays games of {agent.players} players, got {result}")
