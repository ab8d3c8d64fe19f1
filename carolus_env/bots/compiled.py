"""Agents whose choice is a kernel: they can play many decisions in one call.

Such an agent plays on in thousands of games until another agent must decide, without returning to
Python in between. Code that plays games asks `is_compiled` and uses `CompiledAgent.play_on` for
these agents, `Agent.act` for all others. Both ways take the same decisions from the same streams.

A bot writes its choice as a kernel, ``choose(s, bits, context) -> (action, bits)``: ``s`` is a
game that waits for a decision, ``bits`` is its random stream, and ``context`` holds all else that
the bot needs (`CompiledAgent.context`). `Entries.of` compiles the loops around it. The shortest
example is `carolus_env.bots.random`. A bot that thinks once a turn is a `CompiledByTurns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import CHANGED, Agent, AgentError, Checked, Remembered
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.state import Ints, States, as_states
from carolus_env.engine.stepping import play_on, roll_own
from carolus_env.engine.streams import check_streams
from carolus_env.planning.plans import actions_of, first_of, plan_of, rest_of
from carolus_env.system import cancellation
from carolus_env.system.arrays import I64, U64, Bits, Int, Records, int64
from carolus_env.system.compiler import entry, inlined, kernel
from carolus_env.system.options import option


class Entries(NamedTuple):
    """The loops around a compiled bot's choice."""

    act: Callable[..., None]
    """``(states, generators, actions, rows, context)``: one decision in each game of ``rows``."""
    play_on: Callable[..., int]
    """``(states, generators, seating, number, rows, context)``: plays games on, see
    `CompiledAgent.play_on`, and returns the number of decisions."""
    choose: Callable[..., tuple[int, int]]
    """The choice."""
    plans: bool
    """True: the choice is of plans."""

    @classmethod
    def of(cls, choose: Callable[..., tuple[int, int]]) -> Entries:
        """Compile the loops around ``choose``, a kernel."""

        @entry
        def act(states: Records, generators: U64, actions: I64, rows: Any, context: Any) -> None:
            for g in rows:
                actions[g], generators[g] = choose(states[g], generators[g], context)

        return cls(act, _playing_on(_decide, choose), choose, False)

    @classmethod
    def of_plans(cls, choose: Callable[..., tuple[int, int]]) -> Entries:
        """Compile the loops around a kernel that chooses plans, for a `CompiledByTurns`.

        Args:
            choose: ``(s, rest, bits, context) -> (plan, bits)``: ``rest`` is what is left of the
                plan chosen before, 0: nothing. In ``act`` the actions are these plans.
        """

        @entry
        def act(states: Records, generators: U64, plans: I64, rows: Any, context: Any) -> None:
            for g in rows:
                plans[g], generators[g] = choose(states[g], plans[g], generators[g], context)

        return cls(act, _playing_on(_decide_plan, choose), choose, True)


def _playing_on(act: Any, choose: Callable[..., tuple[int, int]]) -> Callable[..., int]:
    """Compile the loop of `Entries.play_on`; ``act`` is that of `engine.stepping.play_on`."""

    @entry
    def play_games_on(
        states: Records, generators: U64, seating: Any, number: Int, rows: Any, context: Any
    ) -> Any:
        decisions = 0
        for i in range(rows.shape[0]):
            turn = PlayOnContext(choose, generators, seating, number, rows[i], context)
            decisions += play_on(act, roll_own, states[rows[i]], int64(0), turn)[0]
        return decisions

    return play_games_on


class CompiledAgent(Agent):
    """An agent that can play on in many games in one call.

    A subclass sets `entries`, and overrides `context` where its choice needs one. Work for many
    games can be stopped (`system.cancellation`): it is done in portions then, with the same
    results.
    """

    entries: ClassVar[Entries]

    def context(self) -> Any:
        """Return the choice's parameters and scratch, besides the game and its stream."""
        return None

    def contexts(self, states: States, rows: Ints) -> Iterable[tuple[Ints, Any]]:
        """Return groups of the rows, each with the context for its games."""
        return [(rows, self.context())]

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        actions = np.empty(len(states), np.int64)
        for rows, context in self.contexts(states, np.arange(len(states))):
            for portion in cancellation.portions(len(rows)):
                self.entries.act(states, generators, actions, rows[portion], context)
        return actions

    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        seating: npt.NDArray[np.int64],
        number: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        """Decide in each game, again and again, until another agent must decide or it is over.

        This is `act` and `engine.step` in turns, with the same draws; due dice are rolled. The
        arguments are not checked: the caller must have checked them.

        Args:
            states: ``(N,)`` games in which no roll is due, played on in place.
            generators: ``(N, 1)`` or ``(N, players)`` uint64, C-contiguous: one stream per game or
                one per seat; advanced in place.
            seating: ``(N, players)`` int64, the number of the agent at each seat.
            number: this agent's number in ``seating``.
            rows: ``(M,)`` int64, the games to play on; None: all.

        Returns:
            The number of decisions taken.
        """
        decisions, chosen = 0, np.arange(len(states)) if rows is None else rows
        for group, context in self.contexts(states, chosen):
            for portion in cancellation.portions(len(group)):
                decisions += self.entries.play_on(
                    states, generators, seating, number, group[portion], context
                )
        return decisions


class CompiledByPlayers(CompiledAgent):
    """A compiled agent whose choice needs another context for each number of players.

    A subclass sets `entries` and overrides `context_of`.
    """

    def context_of(self, players: int) -> Any:
        """Return the choice's parameters and scratch for games of ``players`` players."""
        raise NotImplementedError

    def contexts(self, states: States, rows: Ints) -> Iterator[tuple[Ints, Any]]:
        players = states["players"][rows]
        for count in np.unique(players).tolist():
            yield rows[players == count], self.context_of(count)


class CompiledByTurns(CompiledByPlayers):
    """A compiled agent that chooses a plan for its whole turn, and remembers what is left of it.

    Its `entries` are those of `Entries.of_plans`.
    """

    def __init__(self) -> None:
        self._remembered = Remembered()

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        rests = self._remembered.rests(states, generators)
        plans = np.array([plan_of(rest) for rest in rests], np.int64)
        for rows, context in self.contexts(states, np.arange(len(states))):
            for portion in cancellation.portions(len(rows)):
                self.entries.act(states, generators, plans, rows[portion], context)
        return self._remembered.keep(states, generators, list(map(actions_of, plans.tolist())))

    play_on = CompiledByPlayers.play_on  # takes the decisions of this `act`, see `is_compiled`


def is_compiled(agent: Agent) -> TypeGuard[CompiledAgent]:
    """Return whether `CompiledAgent.play_on` takes the decisions of the agent's `act`.

    It does not where a subclass overrides `act` alone.
    """
    for owner in (agent, *type(agent).__mro__):
        if "play_on" in vars(owner):
            return True
        if "act" in vars(owner):
            return False
    return False


class PlayOnContext(NamedTuple):
    """Context of an agent that plays a game on; the fields are those of `Entries.play_on`."""

    choose: Callable[..., tuple[int, int]]
    generators: npt.NDArray[np.uint64]
    seating: npt.NDArray[np.int64]
    number: int
    row: int
    context: Any


@kernel
def _column(s: np.void, turn: PlayOnContext) -> Int:
    """Return the column of the agent's stream; -1: another agent is to move."""
    seat = int64(s["player"])
    if turn.seating[turn.row, seat] != turn.number:
        return -1
    return seat if turn.generators.shape[1] > 1 else 0


@inlined
def _decide(s: np.void, count: Any, carried: Any, turn: Any) -> Any:
    """Take the decision if it is the agent's: an ``act`` of `engine.stepping.play_on`."""
    column = _column(s, turn)
    if column < 0:
        return False, carried
    bits = turn.generators[turn.row, column]
    action, turn.generators[turn.row, column] = turn.choose(s, bits, turn.context)
    turns.play(s, action)
    return True, carried


@inlined
def _decide_plan(s: np.void, count: Any, rest: Any, turn: Any) -> Any:
    """Take the decision if it is the agent's, and carry the rest of the plan: as `_decide`."""
    column = _column(s, turn)
    if column < 0:
        return False, rest
    bits = turn.generators[turn.row, column]
    plan, turn.generators[turn.row, column] = turn.choose(s, rest, bits, turn.context)
    turns.play(s, first_of(plan))
    return True, rest_of(plan)


# ------------------------------------------------------------------------------------ errors
# Random moves with a given probability make weaker agents of a kind.


def errors_option() -> float:
    """Return the field ``errors`` of a bot's options."""
    return option(0.0, "probability of a random legal action instead", among=(0.0, 1.0))


@kernel
def error(s: np.void, bits: Bits, errors: float) -> tuple[Int, Bits]:
    """Return a random legal action with probability ``errors``, else -1; and the advanced stream.

    Without errors nothing is drawn, so that the agent plays as one that knows no errors.
    """
    if errors > 0.0:
        bits = generator.step(bits)
        if generator.fraction(generator.mix(bits)) < errors:
            bits = generator.step(bits)
            return legal.random_action(legal.legal_set(s), generator.mix(bits)), bits
    return -1, bits


def with_errors(
    probabilities: npt.NDArray[np.float64], states: States, errors: float
) -> npt.NDArray[np.float64]:
    """Return the probabilities of an agent's actions, ``(N, ACTIONS)``, when it makes errors."""
    if errors == 0:
        return probabilities
    masks = engine.legal_masks(states)
    return (1 - errors) * probabilities + errors * masks / masks.sum(axis=1, keepdims=True)


# ------------------------------------------------------------------------------------ checked


class CheckedCompiled(Checked, CompiledAgent):
    """A compiled agent from a file: it plays on in compiled code, which checks its choices."""

    def __init__(self, agent: CompiledAgent) -> None:
        super().__init__(agent)
        self._compiled = agent

    def play_on(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        seating: npt.NDArray[np.int64],
        number: int,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> int:
        """Play on as `CompiledAgent.play_on`."""
        agent, decisions = self._compiled, 0
        play = _playing_on_checked(agent.entries.choose, agent.entries.plans)
        memory = states.view(np.uint8).reshape(len(states), -1)
        before, fault = np.zeros(memory.shape[1], np.uint8), np.full(2, -1, np.int64)
        chosen = np.arange(len(states)) if rows is None else rows
        for group, context in agent.contexts(states, chosen):
            for portion in cancellation.portions(len(group)):
                given = states, generators, seating, number, group[portion], context
                decisions += play(*given, memory, before, fault)
                if fault[0] >= 0:
                    row, action = fault.tolist()
                    if (memory[row] != before).any():
                        raise AgentError(self.name, CHANGED)
                    raise self.illegal(states[row], action)
        return decisions


class CheckedContext(NamedTuple):
    """Context of an agent that plays a game on, and whose choices are checked."""

    turn: PlayOnContext  # The context without checks
    memory: npt.NDArray[np.uint8]  # ``(N, B)``: the bytes of the games
    before: npt.NDArray[np.uint8]  # ``(B,)``: those of the game before the choice
    fault: npt.NDArray[np.int64]  # ``(2,)``: the row and the action of a choice that fails, or -1


@cache
def _playing_on_checked(choose: Callable[..., tuple[int, int]], plans: bool) -> Callable[..., int]:
    """Compile the loop of `CheckedCompiled.play_on`."""
    act = _decide_plan_checked if plans else _decide_checked

    @entry
    def play_games_on(
        states: Records,
        generators: U64,
        seating: Any,
        number: Int,
        rows: Any,
        context: Any,
        memory: Any,
        before: Any,
        fault: I64,
    ) -> Any:
        decisions = 0
        for i in range(rows.shape[0]):
            turn = PlayOnContext(choose, generators, seating, number, rows[i], context)
            checked = CheckedContext(turn, memory, before, fault)
            decisions += play_on(act, roll_own, states[rows[i]], int64(0), checked)[0]
            if fault[0] >= 0:
                break
        return decisions

    return play_games_on


@inlined
def _decide_checked(s: np.void, count: Any, carried: Any, checked: Any) -> Any:
    """Take the decision as `_decide`, if it passes."""
    turn = checked.turn
    column = _column(s, turn)
    if column < 0:
        return False, carried
    _keep(checked)
    bits = turn.generators[turn.row, column]
    action, turn.generators[turn.row, column] = turn.choose(s, bits, turn.context)
    if not _passes(s, int64(action), checked):
        return False, carried
    turns.play(s, action)
    return True, carried


@inlined
def _decide_plan_checked(s: np.void, count: Any, rest: Any, checked: Any) -> Any:
    """Take the decision as `_decide_plan`, if it passes."""
    turn = checked.turn
    column = _column(s, turn)
    if column < 0:
        return False, rest
    _keep(checked)
    bits = turn.generators[turn.row, column]
    plan, turn.generators[turn.row, column] = turn.choose(s, rest, bits, turn.context)
    if not _passes(s, int64(first_of(plan)), checked):
        return False, rest
    turns.play(s, first_of(plan))
    return True, rest_of(plan)


@kernel
def _keep(checked: CheckedContext) -> None:
    """Keep the game as it is before a choice."""
    for i in range(checked.before.shape[0]):
        checked.before[i] = checked.memory[checked.turn.row, i]


@kernel
def _passes(s: np.void, action: Int, checked: CheckedContext) -> bool:
    """Return whether a choice is legal and left the game as it was; if not, note it."""
    same = True
    for i in range(checked.before.shape[0]):
        same &= checked.before[i] == checked.memory[checked.turn.row, i]
    if same and legal.is_legal(s, action):
        return True
    checked.fault[0], checked.fault[1] = checked.turn.row, action
    return False
