"""Agents whose choice is a kernel: they play on in thousands of games in one call.

Code that plays games asks `is_compiled`, and uses `CompiledAgent.play_on` for these agents,
`Agent.act` for all others; both take the same decisions from the same streams. The shortest example
is `RandomBot`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeGuard, TypeVar

import numpy as np

from carolus_env import engine
from carolus_env.bots.agent import CHANGED, Agent, AgentError, Checked
from carolus_env.engine.chance import check_streams
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.rules import MAX_PLAYERS
from carolus_env.engine.state import STATE, Ints, States, as_states, single
from carolus_env.engine.stepping import play_on, roll_own
from carolus_env.planning.plans import actions_of, plan_of
from carolus_env.system import cancellation
from carolus_env.system.arrays import F64, I64, U8, U64, Bits, Int, Records, int64
from carolus_env.system.compiler import entry, inlined, kernel
from carolus_env.system.options import option

_REMEMBERED: Final = 10_000  # rests of plans, see `Remembered`
T = TypeVar("T")


class Entries(NamedTuple):
    """The loops around a compiled bot's choice, over those of the games with so many players."""

    act: Callable[..., int]
    """``(states, generators, choices, first, end, players, context)``: one decision in each game
    from ``first`` to ``end``. ``choices`` is ``(2, N)``: actions, and the rests of plans. Returns 0
    where nothing is left of any plan."""
    play_on: Callable[..., int]
    """``(states, generators, seating, number, rows, players, context, check)``: plays games on, see
    `CompiledAgent.play_on`, and returns the number of decisions."""

    @classmethod
    def of(cls, choose: Callable[..., tuple[int, int, int]]) -> Entries:
        """Compile the loops around a choice.

        It is a kernel ``(s, rest, bits, context) -> (action, rest, bits)``: of a game that waits
        for a decision, its random stream, and what `CompiledAgent.context` returns. ``rest`` is
        what is left of the bot's plan for this turn (`planning.plans`), 0: nothing.
        """

        @entry
        def act(
            states: Records, generators: U64, choices: I64, first: Int, end: Int, players: Int,
            context: Any,
        ) -> Int:  # fmt: skip
            left = 0
            for g in range(first, end):
                if states[g]["players"] == players:
                    action, rest, bits = choose(states[g], choices[1, g], generators[g], context)
                    choices[0, g], choices[1, g], generators[g] = action, rest, bits
                    left |= choices[1, g]
            return left

        @entry
        def play_games_on(
            states: Records, generators: U64, seating: Any, number: Int, rows: Any, players: Int,
            context: Any, check: Any,
        ) -> Any:  # fmt: skip
            decisions = 0
            for i in range(rows.shape[0]):
                s = states[rows[i]]
                if s["players"] == players:
                    turn = _Turn(choose, generators, seating, number, rows[i], context, check)
                    decisions += play_on(_decide, roll_own, s, int64(0), turn)[0]
            return decisions

        return cls(act, play_games_on)


class Check(NamedTuple):
    """What the choices of an agent from a file are checked by."""

    memory: U8  # (N, B) the bytes of the games
    before: U8  # (B,) those of a game before the choice
    fault: I64  # (2,) the row and the action of a choice that fails, or -1


class _Turn(NamedTuple):
    """Context of an agent that plays a game on; see `Entries.play_on`."""

    choose: Callable[..., tuple[int, int, int]]
    generators: U64
    seating: I64
    number: int
    row: int
    context: Any
    check: Check | None


@inlined
def _decide(s: np.void, count: Any, rest: Any, turn: Any) -> Any:
    """Take the decision if it is the agent's, and passes: an ``act`` of `stepping.play_on`."""
    row, seat, streams = turn.row, int64(s["player"]), turn.generators
    if turn.seating[row, seat] != turn.number or not _keep(row, turn.check):
        return False, rest
    column = seat if streams.shape[1] > 1 else 0
    action, left, streams[row, column] = turn.choose(s, rest, streams[row, column], turn.context)
    if not _passes(s, int64(action), row, turn.check):
        return False, rest
    turns.play(s, action)
    return True, int64(left)


@kernel
def _keep(row: Int, check: Check | None) -> bool:
    """Keep the game as it is before a choice; returns False once a choice has failed."""
    if check is not None:
        if check.fault[0] >= 0:
            return False
        for i in range(check.before.shape[0]):
            check.before[i] = check.memory[row, i]
    return True


@kernel
def _passes(s: np.void, action: Int, row: Int, check: Check | None) -> bool:
    """Return whether a choice is legal and left the game as it was; if not, note it."""
    if check is not None:
        same = True
        for i in range(check.before.shape[0]):
            same &= check.before[i] == check.memory[row, i]
        if not same or not legal.is_legal(s, action):
            check.fault[0], check.fault[1] = row, action
            return False
    return True


class Remembered:
    """The rest of each plan, by the game's stream and position.

    Equal games, of one deal against different opponents, say, share a rest; so it stays.
    """

    def __init__(self) -> None:
        self._rests: dict[tuple[int, bytes], list[int]] = {}

    def __len__(self) -> int:
        return len(self._rests)

    def rests(self, states: States, streams: U64) -> list[list[int]]:
        """Return the actions that are left of each game's plan; none where there is no plan."""
        keys = zip(streams.tolist(), map(_position, states), strict=True)
        return [self._rests.get(key, []) for key in keys]

    def keep(self, states: States, streams: U64, plans: Sequence[Sequence[int]]) -> I64:
        """Keep what is left of each plan after its first action."""
        actions = np.array([plan[0] for plan in plans], np.int64)
        rows = np.array([row for row, plan in enumerate(plans) if len(plan) > 1], np.int64)
        if not len(rows):
            return actions
        after = states[rows]
        engine.step(after, actions[rows], roll=False)
        for row, state in zip(rows.tolist(), after, strict=True):
            key = int(streams[row]), _position(state)
            self._rests.pop(key, None)  # or it would stay among the oldest
            self._rests[key] = list(plans[row][1:])
        # The oldest are of past turns: a game asks for the rest of its plan at its next decision.
        surplus = max(len(self._rests) - max(_REMEMBERED, 2 * len(states)), 0)
        for key in list(islice(self._rests, surplus)):  # one step: other threads do it, too
            self._rests.pop(key, None)
        return actions


def _position(state: np.void) -> bytes:
    """Return a position as bytes, without its generator."""
    bare = single(state)
    bare["generator"] = 0
    return bare.tobytes()


class Pool:
    """Things by key that serve one call at a time, such as scratch: kernels run without a lock.

    So an agent whose scratch is lent may be called from several threads. A copy is empty.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[Any]] = defaultdict(list)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    @contextmanager
    def lent(self, key: Hashable, make: Callable[[], T]) -> Iterator[T]:
        """Lend what no other call has to the ``with`` block, made where nothing is idle."""
        idle = self._idle[key]
        try:
            lent = idle.pop()
        except IndexError:
            lent = make()
        try:
            yield lent
        finally:
            idle.append(lent)


class CompiledAgent(Agent):
    """An agent that can play on in many games in one call.

    A subclass sets `entries`, and overrides `context` where its choice needs one. Work for many
    games can be stopped (`system.cancellation`): it is done in portions then, with the same
    results.
    """

    entries: ClassVar[Entries]
    _remembered: Remembered
    _contexts: Pool  # by number of players

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        agent = super().__new__(cls)
        agent._remembered, agent._contexts = Remembered(), Pool()
        return agent

    def context(self, players: int) -> Any:
        """Return the choice's parameters and scratch, which one call at a time uses."""
        return None

    def act(self, states: States, generators: U64) -> I64:
        states = as_states(states)
        check_streams(generators, states)
        left, choices = 0, np.zeros((2, len(states)), np.int64)
        if len(self._remembered):
            choices[1] = [plan_of(rest) for rest in self._remembered.rests(states, generators)]
        for part, players, context in self._portions(states["players"]):
            first, end = part.start, part.stop
            left |= self.entries.act(states, generators, choices, first, end, players, context)
        if left == 0:
            return choices[0]
        if left < 0:
            rest = choices[1].min()
            raise AgentError(self.name, f"what is left of a plan must not be negative, got {rest}")
        pairs = zip(*choices.tolist(), strict=True)
        plans = [[action, *actions_of(rest)] for action, rest in pairs]
        return self._remembered.keep(states, generators, plans)

    def play_on(
        self, states: States, generators: U64, seating: I64, number: int, rows: I64 | None = None,
        check: Check | None = None,
    ) -> int:  # fmt: skip
        """Decide in each game, again and again, until another agent must decide or it is over.

        This is `act` and `engine.step` in turns, with the same draws; due dice are rolled. The
        caller must have checked the arguments. Returns the number of decisions taken.

        Args:
            states: ``(N,)`` games in which no roll is due, played on in place.
            generators: ``(N, 1)`` or ``(N, players)`` uint64, C-contiguous: a stream per game or
                per seat; advanced in place.
            seating: ``(N, players)`` int64, the agent at each seat; this one is ``number``.
            rows: ``(M,)`` int64, the games to play on; None: all.
        """
        decisions, chosen = 0, np.arange(len(states)) if rows is None else rows
        for part, players, context in self._portions(states["players"][chosen]):
            given = states, generators, seating, number, chosen[part], players, context, check
            decisions += self.entries.play_on(*given)
            if check is not None and check.fault[0] >= 0:
                break
        return decisions

    def _portions(self, players: Ints) -> Iterator[tuple[slice, int, Any]]:
        """Yield portions of games by number of players, each with a context for it alone."""
        present = players.tobytes()  # one byte each
        for number in range(2, MAX_PLAYERS + 1):
            if number not in present:
                continue
            with self._contexts.lent(number, partial(self.context, number)) as context:
                for part in cancellation.portions(len(players)):
                    yield part, number, context


class CheckedCompiled(Checked, CompiledAgent):
    """A compiled agent from a file: it plays on in compiled code, which checks its choices."""

    agent: CompiledAgent

    def play_on(
        self, states: States, generators: U64, seating: I64, number: int, rows: I64 | None = None,
        check: Check | None = None,
    ) -> int:  # fmt: skip
        memory = states.view(np.uint8).reshape(-1, STATE.itemsize)
        check = Check(memory, np.zeros(memory.shape[1], np.uint8), np.full(2, -1, np.int64))
        decisions = self.agent.play_on(states, generators, seating, number, rows, check)
        row, action = check.fault.tolist()
        if row < 0:
            return decisions
        if (memory[row] != check.before).any():
            raise AgentError(self.name, CHANGED)
        raise self.illegal(states[row], action)


def is_compiled(agent: Agent) -> TypeGuard[CompiledAgent]:
    """Return whether `play_on` takes the decisions of `act`: no subclass overrides that alone."""
    for owner in (agent, *type(agent).__mro__):
        if "play_on" in vars(owner):
            return True
        if "act" in vars(owner):
            return False
    return False


# ------------------------------------------------------------------------------------ errors
# Random moves with a given probability make weaker agents of a kind.


def errors_option() -> float:
    """Return the field ``errors`` of a bot's options."""
    return option(0.0, "probability of a random legal action instead", among=(0.0, 1.0))


@kernel
def error(s: np.void, bits: Bits, errors: float) -> tuple[Int, Bits]:
    """Return a random legal action with probability ``errors``, else -1; for 0 nothing is drawn."""
    if errors > 0.0:
        bits = generator.step(bits)
        if generator.fraction(generator.mix(bits)) < errors:
            bits = generator.step(bits)
            return legal.random_action(legal.legal_set(s), generator.mix(bits)), bits
    return -1, bits


def with_errors(probabilities: F64, states: States, errors: float) -> F64:
    """Return the probabilities of an agent's actions, ``(N, ACTIONS)``, when it makes errors."""
    if errors == 0:
        return probabilities
    masks = engine.legal_masks(states)
    return (1 - errors) * probabilities + errors * masks / masks.sum(axis=1, keepdims=True)
