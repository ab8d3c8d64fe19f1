"""What an agent is: something that answers a batch of games."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.rules import PHASE_NAMES
from carolus_env.state import STATE, States
from carolus_env.streams import new_streams, random_bits


class Agent(ABC):
    """Chooses actions for whole batches of games, so that thousands can be played at once.

    A subclass writes `act`. It must not keep anything between calls that changes its choices,
    nor draw random numbers from elsewhere than ``generators``: then results do not depend on how
    games are grouped into batches. (What it planned for a turn it may keep under the position and
    the stream that it left, which are of one game alone.)
    """

    name: str = "agent"
    """How results call it; `registry.make` sets the spec string."""

    @abstractmethod
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.integer]:
        """One legal action for each game.

        Args:
            states: ``(N,)`` games in which somebody is to decide, seats and numbers of players
                possibly mixed. Not to be changed.
            generators: ``(N,)`` uint64, the random stream of the deciding seat in each game, to
                be moved on in place (`engine.random_actions` does; see also `uniforms`).

        Returns:
            ``(N,)`` integers.
        """

    def act_one(self, state: np.void, generator: npt.NDArray[np.uint64] | None = None) -> int:
        """The action for one game ``states[i]``; ``generator`` is ``(1,)``, None: a fresh one."""
        if generator is None:
            generator = new_streams(None, 1)
        return int(self.act(np.array(state, STATE).reshape(1), generator)[0])


class Checked(Agent):
    """An agent whose answers are checked, so that errors name the agent: for strangers' code."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.name = agent.name

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """What the agent answers.

        Raises:
            TypeError: when it is no array of integers.
            ValueError: when its shape is wrong, or an action is illegal.
        """
        before = states.tobytes()
        given = self.agent.act(states, generators)
        try:
            answer = np.asarray(given)
        except ValueError:  # rows of different lengths
            answer = np.asarray(None)
        if states.tobytes() != before:
            raise ValueError(f"agent {self.name!r} changed the states that it was shown")
        if answer.dtype.kind not in "iu":
            raise TypeError(f"agent {self.name!r} must answer integers, got dtype {answer.dtype}")
        if answer.shape != states.shape:
            raise ValueError(
                f"agent {self.name!r} must answer one action a game, shape {states.shape}, "
                f"got shape {answer.shape}"
            )
        legal = engine.are_legal(states, answer)
        if not legal.all():
            row = int(np.argmin(legal))
            allowed = engine.legal_actions(states[row]).tolist()
            raise ValueError(
                f"agent {self.name!r} answered action {answer[row]} "
                f"in phase {PHASE_NAMES[int(states['phase'][row])]}; legal are {allowed}"
            )
        return answer.astype(np.int64)


def uniforms(generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """One random number in [0, 1) from each stream, moved on in place: ``(N,)`` float64."""
    bits = random_bits(generators)
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53, np.float64)


def drawn(
    chances: npt.NDArray[np.float64], generators: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """One column of each row, drawn in proportion to its chance by one number of each stream.

    Args:
        chances: ``(N, K)``, 0 and more; rows need not sum to 1.
        generators: ``(N,)`` uint64 streams, moved on in place.

    Returns:
        ``(N,)`` columns.
    """
    heights = chances.cumsum(axis=1)
    height = uniforms(generators) * heights[:, -1]
    return (heights <= height[:, None]).sum(axis=1)
