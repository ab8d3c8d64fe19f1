"""A game event by event, and with people and agents in its seats, for a page or a terminal.

The game is its record: saving writes the record, undoing drops its last event, and any record can
be continued. Record and seed decide all that follows, dice and agents included:

    >>> session = Session.new(Rules(), [None, bots.make("greedy")], seed=7)
    >>> while not session.over:
    ...     if session.agent is None:
    ...         session.play(ask(session.legal()))
    ...     else:
    ...         session.ask_agent()
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine import chance
from carolus_env.engine.rules import OVER, Rules, action_parts
from carolus_env.engine.state import States, single
from carolus_env.engine.streams import branches, new_streams
from carolus_env.notation import move_text
from carolus_env.notation.descriptions import EmperorStep, LogLine, emperor_steps, log_line, outcome
from carolus_env.notation.vocabulary import team_names
from carolus_env.records import (
    LONGEST_NAME,
    Record,
    RecordError,
    make_record,
    names_of,
    replayed,
    result_of,
)
from carolus_env.records.record import play_event
from carolus_env.system.untrusted import shown

MAX_SEED: Final = 2**53 - 1
"""JSON readers keep whole numbers exact up to here."""
_SMALL: Final = 0.005  # less probable actions are not listed in a hint
_NO_RUN: Final = (-1, 0)


class TurnError(ValueError):
    """A decision out of turn, or an undo that is not possible."""


class Decision(NamedTuple):
    """A legal action: its number, and in the notation with its result."""

    action: int
    text: str


class PendingDecision(NamedTuple):
    """Decision of the agent to move, before it is played.

    Attributes:
        action: the agent's action.
        run: the events where the agent's run began, and up to which it has decided.
        stream: ``(1,)`` uint64, the random stream of that run, as far as it was used.
    """

    action: int
    run: tuple[int, int]
    stream: npt.NDArray[np.uint64]


class Hint(NamedTuple):
    """An agent's opinion of a decision.

    Attributes:
        agent: the agent's name.
        choice: the agent's most probable action.
        probabilities: ``(95,)`` of the actions; None: the agent gives none.
        values: ``(teams,)`` win probabilities; None: the agent gives none.
    """

    agent: str
    choice: int
    probabilities: npt.NDArray[np.float64] | None
    values: npt.NDArray[np.float64] | None

    def ranked(self, most: int) -> list[int]:
        """Return the most probable actions, the first first; none where it gives no probability."""
        if self.probabilities is None:
            return []
        order = np.argsort(-self.probabilities, kind="stable")[:most].tolist()
        return [action for action in order if self.probabilities[action] >= _SMALL]


class Replay:
    """A recorded game event by event, in all its positions.

    Args:
        record: the game's record.

    Attributes:
        rules, names: the game's rules and names, without control characters.
        events: the record's events.
        states: the game before each event and after the last, records of dtype `STATE`.

    Raises:
        RecordError: when the record does not replay; the text says where and why.
    """

    def __init__(self, record: Record) -> None:
        self.states: list[np.void] = [*positions_of(record).copy()]
        self._record = record
        self.rules = Rules.from_dict(record["rules"])
        self.names = names_of(record)
        self.events: list[dict[str, Any]] = [*map(_bare, record["events"])]
        self._log: list[LogLine] = []

    def record(self) -> Record:
        """Return the game's record."""
        return self._record

    @property
    def state(self) -> np.void:
        """The last position, of a game in play that now; not to be changed."""
        return self.states[-1]

    @property
    def over(self) -> bool:
        """True if the game has ended."""
        return bool(self.state["phase"] == OVER)

    @property
    def decisions(self) -> list[int]:
        """Indices of the events that are decisions."""
        return [index for index, event in enumerate(self.events) if "action" in event]

    def decided(self, events: Iterable[int]) -> list[tuple[np.void, int]]:
        """Return the decisions among the events at these indices: state before, and action."""
        return [
            (self.states[index], self.events[index]["action"])
            for index in events
            if "action" in self.events[index]
        ]

    def last_before(self, position: int) -> tuple[np.void, int] | None:
        """Return the last decision among the first ``position`` events; None before the first."""
        decided = self.decided(range(position))
        return decided[-1] if decided else None

    def log(self, since: int = 0) -> list[LogLine]:
        """Return the events from number ``since`` on, a line each."""
        for index in range(len(self._log), len(self.events)):
            before, after = self.states[index : index + 2]
            line = log_line(before, after, index, self.events[index], self.team_names())
            self._log.append(line)
        return self._log[since:]

    def team_names(self) -> list[str]:
        """Return a name for each team, made of its members' names."""
        return team_names(self.rules, self.names)

    def outcome(self) -> str | None:
        """Return the ending of the game in a sentence; None before the end."""
        return outcome(self.state, self.names) if self.over else None


def _bare(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the legal actions and the state before it."""
    return {key: event[key] for key in ("roll", "action", "player") if key in event}


class Session(Replay):
    """A game that people and agents play.

    Dice are rolled as soon as they are due. An agent decides only when `ask_agent` is called, one
    decision a call, so that each can be shown. It never sees the game's generator.

    Args:
        record: the game to continue after its last event.
        agents: the agent in each seat; None: a person.
        names: the seats' names; None, or None for a seat: the agent's name, or ``Player 1``.
        seed: seed of the dice to come and of the agents, 0 to `MAX_SEED`; None: drawn from the
            operating system. With its first seed a game continues as if never interrupted.

    Attributes:
        agents, names, seed: the arguments, with defaults filled in.
        version: a new number after each event and each undo, never used twice.

    Raises:
        RecordError: when the record does not replay; the text says where and why.
        ValueError: for a wrong number of agents or names, or an impossible seed or name.
    """

    def __init__(
        self,
        record: Record,
        agents: Sequence[Agent | None],
        *,
        names: Sequence[str | None] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(record)
        self.seed = _checked_seed(seed)
        self.agents = tuple(agents)
        self.names = seat_names(self.rules.players, self.agents, names)
        self._head = {key: record[key] for key in ("format", "version", "rules", "setup")}
        self.version = len(self.events)
        generator = engine.new_games(self.rules, 1, seed=self.seed, roll=False)["generator"]
        for state, event in zip(self.states, [*self.events, {}], strict=True):
            state["generator"] = generator[0]
            if "roll" in event:
                generator = _rolled(state)["generator"]
        self._roll_on()
        self._streams = branches(new_streams(self.seed, 1), np.arange(self.rules.players))
        self._run = _NO_RUN  # this and the stream: see `PendingDecision`
        self._stream = self._streams[:1]

    @classmethod
    def new(
        cls,
        rules: Rules,
        agents: Sequence[Agent | None],
        *,
        names: Sequence[str | None] | None = None,
        seed: int | None = None,
    ) -> Session:
        """Return a new game, the same as ``engine.new_games(rules, 1, seed=seed)``."""
        seed = _checked_seed(seed)
        start = engine.new_games(rules, 1, seed=seed, roll=False)
        return cls(make_record(start, []), agents, names=names, seed=seed)

    # -------------------------------------------------------------------------------- the game now

    @property
    def news(self) -> list[int]:
        """Indices of the others' events since the last turn of the person to move.

        While an agent moves, or after the end, that is the person who decided last. It is empty
        where nobody plays in person.
        """
        people = [seat for seat, agent in enumerate(self.agents) if agent is None]
        if not people:
            return []
        decided = [event["player"] for event in self.events if "action" in event]
        last = next((seat for seat in reversed(decided) if seat in people), people[0])
        seat = self.player if self.player in people else last
        first = next((k for k, game in enumerate(self.states) if game["round"]), None)
        if first is None:
            return []
        for index in range(first, len(self.events)):
            event = self.events[index]
            is_move = "action" in event and action_parts(event["action"]).kind == "move"
            if is_move and event["player"] == seat:
                first = index
        return [k for k in range(first, len(self.events)) if self.events[k]["player"] != seat]

    @property
    def player(self) -> int | None:
        """The seat to move; None when the game is over."""
        return None if self.over else int(self.state["player"])

    @property
    def agent(self) -> Agent | None:
        """The agent to move; None for a person, or when the game is over."""
        return None if self.over else self.agents[int(self.state["player"])]

    def legal(self) -> list[Decision]:
        """Return the legal actions, ascending; none when the game is over."""
        return [
            Decision(action, move_text(self.state, action))
            for action in engine.legal_actions(self.state).tolist()
        ]

    def steps(self) -> list[EmperorStep]:
        """Return the Emperor's legal steps with their results; none unless he is to move."""
        return emperor_steps(self.state, self.team_names())

    def record(self) -> Record:
        """Return the record so far, with names, agents (specs; None: a person) and seed."""
        return {
            **self._head,
            "events": list(self.events),
            "result": result_of(self.state),
            "names": list(self.names),
            "agents": [agent and agent.name for agent in self.agents],
            "seed": self.seed,
        }

    # -------------------------------------------------------------------------------- decisions

    def play(self, action: int) -> None:
        """Play a person's decision.

        Raises:
            TurnError: when an agent is to move, or the game is over.
            IllegalActionError: when the action is illegal; the game stays as it was.
        """
        if self.over:
            raise TurnError("the game is over")
        if self.agent is not None:
            raise TurnError(f"it is {self.names[int(self.state['player'])]}'s turn")
        self._decide(operator.index(action))

    def ask_agent(self, decided: PendingDecision | None = None) -> int:
        """Play one decision of the agent to move, and return it; may take long.

        Args:
            decided: the answer of `think`, when that was called before, say in another thread.

        Raises:
            TurnError: when no agent is to move.
            Exception: whatever the agent raises; the game stays as it was.
        """
        if self.agent is None:
            raise TurnError("no agent is to move")
        thought = self.think() if decided is None else decided
        self._run, self._stream = thought.run, thought.stream
        self._decide(thought.action)
        return thought.action

    def think(self) -> PendingDecision:
        """Return the decision of the agent to move, without playing it or changing the session.

        An agent has one random stream for each run of consecutive decisions. When the game was
        continued in mid-run, the agent is asked for the whole run again, as it may have planned
        all of it at the first decision.

        Raises:
            TurnError: when no agent is to move.
            ValueError: when its decision is illegal.
            Exception: whatever the agent raises.
        """
        agent = self.agent
        if agent is None:
            raise TurnError("no agent is to move")
        seat, now = int(self.state["player"]), len(self.events)
        begun, run, stream = self._run_start(seat), self._run, self._stream.copy()
        if run[0] != begun or run[1] > now:
            run = begun, begun
            stream = branches(self._streams[seat : seat + 1], [begun])
        action = -1
        for index in range(run[1], now + 1):
            action = int(agent.act(_hidden(self.states[index], stream, index), stream)[0])
        if not engine.are_legal(single(self.state), np.array([action]))[0]:
            raise ValueError(f"agent {agent.name!r} chose action {action}, which is illegal")
        return PendingDecision(action, (begun, now + 1), stream)

    def _run_start(self, seat: int) -> int:
        """Return the index of the first event of the decisions that ``seat`` is taking."""
        index = len(self.events)
        while index and self.events[index - 1]["player"] == seat:
            if "roll" in self.events[index - 1]:
                break
            index -= 1
        return index

    @property
    def can_undo(self) -> bool:
        """True if the last event is a decision of a person who moves again, or ended the game."""
        last = self.events[-1]
        same_turn = self.over or last["player"] == self.player
        return "action" in last and same_turn and self.agents[last["player"]] is None

    def undo(self) -> None:
        """Take the last decision back.

        Raises:
            TurnError: when `can_undo` is false.
        """
        if not self.can_undo:
            raise TurnError(
                "you can undo only your own decisions of this turn, before dice are rolled"
            )
        self.events.pop()
        self.states.pop()
        del self._log[len(self.events) :]
        self.version += 1

    # -------------------------------------------------------------------------------- events

    def _decide(self, action: int) -> None:
        self._take({"action": action, "player": int(self.state["player"])})
        self._roll_on()

    def _take(self, event: dict[str, Any]) -> None:
        """Play an event and note it."""
        game = _rolled(self.state) if "roll" in event else single(self.state)
        play_event(game, event)
        self.states.append(game[0])
        self.events.append(event)
        self.version += 1

    def _roll_on(self) -> None:
        while chance.roll_due(game := single(self.state))[0]:
            faces = chance.draw_faces(game)
            self._take({"roll": faces[0].tolist(), "player": int(self.state["player"])})


def _rolled(state: np.void) -> States:
    """Return the game with its generator moved on as if it had rolled the dice that are due."""
    game = single(state)
    chance.draw_faces(game)
    return game


def _hidden(state: np.void, stream: npt.NDArray[np.uint64], event: int) -> States:
    """Return the game with another generator, so that an agent cannot foresee the dice."""
    hidden = single(state)
    hidden["generator"] = branches(stream, [event])
    return hidden


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(32)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed must be a whole number from 0 to {MAX_SEED}, got {shown(seed)}")
    return seed


# ------------------------------------------------------------------------------------ records


def positions_of(record: object) -> States:
    """Return all positions of a record: ``(events + 1,)``, before each event and after the last.

    Raises:
        RecordError: when it is not a record, or does not replay; with the first difference.
    """
    differences, positions = replayed(record)  # type: ignore[arg-type]  # which checks it
    if differences:
        raise RecordError(str(differences[0]))
    return positions


def up_to(record: Record, events: int) -> Record:
    """Return the record of a game after its first ``events`` events.

    Raises:
        ValueError: when it has fewer.
    """
    if not 0 <= events <= len(record["events"]):
        raise ValueError(f"events must be from 0 to {len(record['events'])}, got {events!r}")
    if events == len(record["events"]):
        return record
    return {**record, "events": record["events"][:events], "result": None}


# ------------------------------------------------------------------------------------ names


def seat_names(
    players: int, agents: Sequence[Agent | None], names: Sequence[str | None] | None = None
) -> tuple[str, ...]:
    """Return a name for each seat, no two the same.

    Raises:
        ValueError: for a wrong number of agents or names, or a name with control characters.
    """
    chosen = [None] * players if names is None else names
    for what, those in (("agents", agents), ("names", chosen)):
        if len(those) != players:
            raise ValueError(f"{what} must be {players}, one for each seat, got {len(those)}")
    result = []
    for seat, (agent, name) in enumerate(zip(agents, chosen, strict=True)):
        if name is not None and (not isinstance(name, str) or not name.strip().isprintable()):
            raise ValueError(f"names[{seat}] must be printable text, got {shown(name)}")
        name = "" if name is None else name.strip()[:LONGEST_NAME]
        result.append(name or (f"Player {seat + 1}" if agent is None else agent.name))
    twice = {name for name in result if result.count(name) > 1}
    for seat, name in enumerate(result):
        if name in twice:
            numbers = range(seat + 1, seat + 2 + players)
            result[seat] = next(free for k in numbers if (free := f"{name} {k}") not in result)
    return tuple(result)


# ------------------------------------------------------------------------------------ hints


def hint(adviser: Agent, state: np.void, seed: int = 0) -> Hint:
    """Return an agent's opinion of a position.

    Args:
        adviser: the agent.
        state: a game in which a decision is due; it stays as it is.
        seed: seed of the agent's random choices.
    """
    stream = new_streams(seed, 1)
    game = _hidden(state, stream, 0)
    opinion = bots.opinion(adviser, game, stream)
    probabilities, values = (None if rows is None else rows[0] for rows in opinion)
    choice = adviser.act(game, stream)[0] if probabilities is None else probabilities.argmax()
    return Hint(adviser.name, int(choice), probabilities, values)
