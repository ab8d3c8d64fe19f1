"""What an agent is: something that answers a batch of games."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.rules import ACTIONS, PHASE_NAMES, TEAMS
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.engine.streams import check_streams, new_streams, random_bits


class Opinion(NamedTuple):
    """What an agent thinks of games in which somebody is to decide; None where it cannot say.

    Attributes:
        probabilities: ``(N, 95)`` how much is to be said for each action; rows sum to 1.
        values: ``(N, teams)`` expected share of the win of each team; rows sum to 1.
    """

    probabilities: npt.NDArray[np.float64] | None = None
    values: npt.NDArray[np.float64] | None = None


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

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """What it thinks of games, for people to look at; no agent needs to have one.

        It must not change what `act` will answer. Callers use `opinion`, the function, which
        checks what is said here.

        Args:
            states: ``(N,)`` games of one number of players, as `act` gets them.
            generators: ``(N,)`` uint64 streams to draw from, not those of the games' seats.
        """
        return Opinion()


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

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        return self.agent.opinion(states, generators)


def opinion(
    agent: Agent, states: States, generators: npt.NDArray[np.uint64] | None = None
) -> Opinion:
    """What an agent thinks of each game. The games and what it will play stay as they are.

    Args:
        agent: any; a plain one has no opinion.
        states: ``(N,)`` games of one number of players in which somebody is to decide. The agent
            does not see their generators.
        generators: ``(N,)`` uint64 streams to draw from, for agents that search, moved on in
            place; None: the same ones at every call.

    Raises:
        ValueError: when nobody is to decide in a game, or the agent says what is no opinion.
    """
    shown = as_states(states).copy()
    players = common_players(shown, "opinions")
    mask = engine.legal_masks(shown)
    if not mask.any(axis=1).all():
        row = int(np.argmin(mask.any(axis=1)))
        phase = PHASE_NAMES[int(states["phase"][row])]
        raise ValueError(f"game {row}: nobody is to decide in phase {phase}")
    shown["generator"] = 0
    if generators is None:
        generators = new_streams(0, len(states))
    check_streams(generators, states)
    said = Opinion(*agent.opinion(shown, generators))
    probabilities = _shares(said.probabilities, (len(states), ACTIONS), "probabilities", agent)
    values = _shares(said.values, (len(states), TEAMS[players]), "values", agent)
    if probabilities is not None and probabilities[mask == 0].any():
        row, action = np.argwhere((probabilities > 0) & (mask == 0))[0]
        raise ValueError(
            f"agent {agent.name!r} gives action {action} a probability of "
            f"{probabilities[row, action]:.3g}, but it is illegal"
        )
    return Opinion(probabilities, values)


def _shares(
    given: npt.ArrayLike | None, shape: tuple[int, int], what: str, agent: Agent
) -> npt.NDArray[np.float64] | None:
    """What an agent gave, made sure that its rows are shares of 1."""
    if given is None:
        return None
    try:
        shares = np.array(given, np.float64)
    except (ValueError, TypeError):  # rows of different lengths, or no numbers
        shares = np.zeros(0)
    if shares.shape != shape:
        raise ValueError(
            f"agent {agent.name!r}: the {what} of its opinion must be numbers of shape {shape}, "
            f"got shape {np.shape(given) if shares.size else None}"
        )
    wrong = ~((shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        row = shares[int(np.argmax(wrong))]
        raise ValueError(
            f"agent {agent.name!r}: the {what} of its opinion must be shares of 1, "
            f"got a row from {row.min():.3g} to {row.max():.3g} with sum {row.sum():.6g}"
        )
    return shares


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
