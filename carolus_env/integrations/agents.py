"""What another library trained as an agent, which plays in the arena: ``evaluate.py file.py:Mine``.

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
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.engine import observation
from carolus_env.engine.state import States
from carolus_env.envs.candidates import View, length
from carolus_env.envs.turns import MOST_ACTIONS, Turns, list_candidates

KEPT: Final = 10_000
"""So many begun turns are kept, and more where more games are played side by side."""


class DecisionAgent(Agent):
    """Plays single decisions.

    Args:
        players: 2, 3 or 4, for which the network was trained.
        dtype: of the observations that `choose` is given, ``"float32"`` or ``"uint8"``.

    Raises:
        ValueError: for another dtype, or another number of players.
    """

    def __init__(self, players: int, dtype: str = "float32") -> None:
        observation.length(players)  # which refuses other numbers
        if dtype not in ("float32", "uint8"):
            raise ValueError(f"dtype must be 'float32' or 'uint8', got {dtype!r}")
        self.players, self._dtype = players, np.dtype(dtype)

    @abstractmethod
    def choose(
        self, observations: npt.NDArray[Any], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.integer[Any]]:
        """Choose an action in each game; the same for the same arrays.

        Args:
            observations: ``(N, length)``, as the environments give them (docs/observation.md).
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
        seen = observation.observe(states, dtype=self._dtype)
        return self.choose(seen, engine.legal_masks(states).astype(bool))


class TurnAgent(Agent):
    """Plays discs, crowns and whole turns, listed as in ``CarolusMagnusTurns-v0``.

    A turn is chosen at its first decision, and then carried out.

    Args:
        players: 2, 3 or 4, for which the network was trained.
        turns: how candidates are listed; None: the environments' defaults.

    Raises:
        ValueError: for another number of players.
    """

    def __init__(self, players: int, turns: Turns | None = None) -> None:
        self.turns = turns or Turns()
        self._length = length(players)
        self.players = players
        self._plans: dict[bytes, tuple[int, ...]] = {}

    @abstractmethod
    def choose(
        self, rows: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.integer[Any]]:
        """Choose a candidate in each game; the same for the same arrays.

        Args:
            rows: ``(N, K, length)`` float32, a row for each candidate, then zeros (docs/turns.md).
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
        plans = [self._plans.get(key, ()) for key in _keys(states)]
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            for row, plan in zip(new.tolist(), self._chosen(engine.pick(states, new)), strict=True):
                plans[row] = plan
        self._remember(states, plans)
        return np.array([plan[0] for plan in plans], np.int64)

    def _chosen(self, states: States) -> list[tuple[int, ...]]:
        """The actions of the candidate that is chosen in each game."""
        n, most = len(states), self.turns.candidates
        counts, left_out = np.zeros((2, n), np.int64)
        actions = np.zeros((n, most, MOST_ACTIONS), np.int8)
        rows = np.zeros((n, most, self._length), np.float32)
        lister, view = self.turns.lister(self.players), View.new()
        list_candidates(states, np.arange(n), lister, view, counts, left_out, actions, rows)
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
        return [tuple(number for number in plan if number >= 0) for plan in chosen]

    def _remember(self, states: States, plans: list[tuple[int, ...]]) -> None:
        """Keep the rest of each turn under the position that comes next.

        Equal positions share it: the choice there is the same.
        """
        going = np.array([row for row, plan in enumerate(plans) if len(plan) > 1], np.int64)
        if not len(going):
            return
        after = engine.pick(states, going)
        engine.step(after, np.array([plans[row][0] for row in going.tolist()]), roll=False)
        for key, row in zip(_keys(after), going.tolist(), strict=True):
            self._plans[key] = plans[row][1:]
        # A game asks for the rest of its turn at its next decision: the oldest are of past turns.
        for _ in range(len(self._plans) - max(KEPT, 2 * len(states))):
            del self._plans[next(iter(self._plans))]


def _keys(states: States) -> list[bytes]:
    """The bytes of each position, without its generator."""
    bare = engine.copy(states)
    bare["generator"] = 0
    return [state.tobytes() for state in bare]


def _check_players(agent: DecisionAgent | TurnAgent, states: States) -> None:
    found = np.unique(states["players"]).tolist()
    if found not in ([], [agent.players]):
        raise AgentError(agent.name, f"plays games of {agent.players} players, got {found}")
