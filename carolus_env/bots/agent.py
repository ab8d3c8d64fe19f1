"""Agents: objects that choose an action for each game of a batch; and options in their specs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.chance import check_streams, new_streams, random_bits
from carolus_env.engine.rules import ACTIONS, PHASE_NAMES, TEAMS
from carolus_env.engine.state import Ints, States, as_states, common_players, copy, single
from carolus_env.system import cancellation, untrusted
from carolus_env.system.arrays import F64, I64, U64
from carolus_env.system.options import check_fields, declared
from carolus_env.system.untrusted import unknown

Options = TypeVar("Options")
CHANGED: Final = "changed the states that it was given"


class AgentError(ValueError):
    """An agent that cannot be made, or whose answer is invalid.

    Its text is ``agent 'NAME': reason``; both are attributes, ``agent`` and ``reason``.
    """

    def __init__(self, agent: str | AgentError, reason: str = "") -> None:
        if isinstance(agent, AgentError):  # as Gymnasium's AsyncVectorEnv raises it again
            agent, reason = agent.args
        super().__init__(agent, reason)
        self.agent, self.reason = agent, reason

    def __str__(self) -> str:
        return f"agent {self.agent!r}: {self.reason}" if self.reason else str(self.agent)


class Opinion(NamedTuple):
    """An agent's opinion of games that wait for a decision; None where it has no opinion."""

    probabilities: F64 | None = None
    """``(N, 95)`` the probability of each action; rows sum to 1."""
    values: F64 | None = None
    """``(N, teams)`` each team's win probability; rows sum to 1."""


class Agent(ABC):
    """Chooses actions for whole batches of games, so that thousands can be played at once.

    A subclass implements `act`. Results must not depend on how games are grouped into batches: it
    keeps no state between calls that changes its choices, but for the plan of a turn under the
    position and the stream that come next, and draws random numbers from ``generators`` only.
    """

    name: str = "agent"
    """The agent's name in results: by default its class's; `registry.make` sets the spec string."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    @abstractmethod
    def act(self, states: States, generators: U64) -> Ints:
        """Choose one legal action for each game: ``(N,)`` integers.

        Args:
            states: ``(N,)`` games that wait for a decision; seats and numbers of players may be
                mixed. Must not be changed.
            generators: ``(N,)`` uint64, the random stream of the player to move in each game. The
                agent advances them in place (see `engine.random_actions` and `uniforms`).
        """

    def act_one(self, state: np.void, generator: U64 | None = None) -> int:
        """Choose an action for a game ``states[i]``; stream: ``(1,)`` uint64, None: a fresh one."""
        stream = new_streams(None, 1) if generator is None else generator
        return int(self.act(single(state), stream)[0])

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return the agent's opinion of games of one number of players; by default it has none.

        It must not affect what `act` will answer, and draws from other streams than the games'
        seats. The function `opinion` asks for it and checks it.
        """
        return Opinion()


class Checked(Agent):
    """Wraps an agent from a file; AgentError for changed states or answers that are not legal."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name = agent, agent.name

    def act(self, states: States, generators: U64) -> I64:
        before = states.tobytes()
        try:
            result = self.agent.act(states, generators)
        except SystemExit as error:  # it would end the command silently
            raise AgentError(self.name, f"fails with {untrusted.message(error)}") from error
        try:
            answer = np.asarray(result)
        except ValueError:  # rows of different lengths
            answer = np.asarray(None)
        if states.tobytes() != before:
            raise AgentError(self.name, CHANGED)
        if answer.dtype.kind not in "iu":
            raise AgentError(self.name, f"must answer integers, got dtype {answer.dtype}")
        if answer.shape != states.shape:
            raise AgentError(
                self.name,
                f"must answer one action per game, shape {states.shape}, got shape {answer.shape}",
            )
        legal = engine.are_legal(states, np.minimum(answer, ACTIONS))  # uint64 can be too large
        if not legal.all():
            row = int(np.argmin(legal))
            raise self.illegal(states[row], int(answer[row]))
        return answer.astype(np.int64)

    def illegal(self, state: np.void, action: int) -> AgentError:
        """Return the error of an illegal answer."""
        allowed, phase = engine.legal_actions(state).tolist(), PHASE_NAMES[int(state["phase"])]
        return AgentError(
            self.name, f"answered action {action} in phase {phase}; legal are {allowed}"
        )

    def opinion(self, states: States, generators: U64) -> Opinion:
        return self.agent.opinion(states, generators)


def decision_masks(states: States) -> npt.NDArray[np.int8]:
    """Return the legal actions of games, ``(N, 95)``; all must wait for a decision."""
    mask = engine.legal_masks(states)
    if not mask.any(axis=1).all():
        row = int(np.argmin(mask.any(axis=1)))
        phase = PHASE_NAMES[int(states["phase"][row])]
        raise ValueError(f"game {row} does not wait for a decision: its phase is {phase}")
    return mask


def opinion(agent: Agent, states: States, generators: U64 | None = None) -> Opinion:
    """Return the agent's opinion of each game, affecting neither the games nor the agent's play.

    Args:
        agent: any agent; one that does not implement `Agent.opinion` has none.
        states: ``(N,)`` games of one number of players that wait for a decision; their generators
            are hidden from the agent.
        generators: ``(N,)`` uint64 streams, advanced in place; None: the same at every call.
    """
    shown = copy(as_states(states))
    players = common_players(shown, "opinions")
    mask = decision_masks(shown)
    shown["generator"] = 0
    if generators is None:
        generators = new_streams(0, len(states))
    check_streams(generators, states)
    answer, n = _in_portions(agent, shown, generators), len(states)
    probabilities = _shares(answer.probabilities, (n, ACTIONS), "probabilities", agent)
    values = _shares(answer.values, (n, TEAMS[players]), "values", agent)
    if probabilities is not None and probabilities[mask == 0].any():
        row, action = np.argwhere((probabilities > 0) & (mask == 0))[0]
        raise AgentError(
            agent.name,
            f"gives action {action} a probability of {probabilities[row, action]:.3g}, "
            "but it is illegal",
        )
    return Opinion(probabilities, values)


def _in_portions(agent: Agent, states: States, generators: U64) -> Opinion:
    """Return an agent's opinion; of many games bit by bit, where the work may be stopped."""
    portions = cancellation.portions(len(states)) if len(states) else [slice(0)]
    parts = [Opinion(*agent.opinion(states[part], generators[part])) for part in portions]
    if len(parts) == 1:
        return parts[0]
    columns = zip(*parts, strict=True)
    return Opinion(*(None if column[0] is None else np.concatenate(column) for column in columns))


def _shares(
    value: npt.ArrayLike | None, shape: tuple[int, int], what: str, agent: Agent
) -> F64 | None:
    """Check one array of an agent's opinion: rows must be non-negative and sum to 1."""
    if value is None:
        return None
    try:
        shares = np.array(value, np.float64)
    except (ValueError, TypeError):  # rows of different lengths, or no numbers
        shares = np.zeros(0)
    if shares.shape != shape:
        raise AgentError(
            agent.name,
            f"the {what} of its opinion must be numbers of shape {shape}, "
            f"got shape {np.shape(value) if shares.size else None}",
        )
    wrong = ~((shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        row = shares[int(np.argmax(wrong))]
        raise AgentError(
            agent.name,
            f"the {what} of its opinion must be non-negative and sum to 1, "
            f"got a row from {row.min():.3g} to {row.max():.3g} with sum {row.sum():.6g}",
        )
    return shares


def uniforms(generators: U64) -> F64:
    """Draw one random number in [0, 1) from each stream, in place: ``(N,)`` float64."""
    return np.asarray((random_bits(generators) >> np.uint64(11)) * 2.0**-53, np.float64)


def drawn(chances: F64, generators: U64) -> I64:
    """Draw one column per row of ``(N, K)`` chances, in proportion to its entry: ``(N,)``.

    Chances are not negative, and rows need not sum to 1. Each stream gives one number, in place.
    A row without a sum above 0 is a ValueError.
    """
    heights = chances.cumsum(axis=1)
    if not (fits := (heights[:, -1] > 0) & np.isfinite(heights[:, -1])).all():
        row = int(np.argmin(fits))
        raise ValueError(f"chances must have a sum above 0, row {row} has {heights[row, -1]}")
    height = uniforms(generators) * heights[:, -1]
    return (heights <= height[:, None]).sum(axis=1)


# ------------------------------------------------------------------------------------ options
# A bot's options are a frozen dataclass whose fields are made by `system.options.option`.


@dataclass(frozen=True)
class BotOptions:
    """Base of the options of a bot."""

    bot: ClassVar[str] = ""  # the bot's name, for errors

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except ValueError as error:
            raise AgentError(self.bot, f"option {error}") from None


@dataclass(frozen=True)
class NoOptions(BotOptions):
    """The options of a bot that has none."""


def parse(name: str, kind: type[Options], argument: str) -> Options:
    """Parse the options ``key=value,key=value``; those not named have their defaults."""
    known = declared(kind)
    values: dict[str, Any] = {}
    for part in filter(None, argument.split(",")):
        key, equals, text = (word.strip() for word in part.partition("="))
        if not known:
            raise AgentError(name, f"takes no options, got {argument!r}")
        if not equals or key not in known:
            listed = "; ".join(f"{each}: {entry.describe()}" for each, entry in known.items())
            head = "has no option" if equals else "options are key=value, got"
            raise AgentError(name, unknown(head, key, known, listed))
        if key in values:
            raise AgentError(name, f"option {key} is given twice")
        values[key] = known[key].parse(text)
    return kind(**values)
