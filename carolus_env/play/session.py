"""A game event by event, and with people and agents in its seats, for a page or a terminal.

The game is its record: saving writes the record, undoing takes its last event away, and any record
can be continued. Record and seed decide all that follows, dice and agents included.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine, records
from carolus_env.bots import Agent
from carolus_env.engine import chance
from carolus_env.engine.chance import branches, new_streams
from carolus_env.engine.rules import OVER, Rules, action_parts
from carolus_env.engine.state import States, single
from carolus_env.notation import descriptions
from carolus_env.records import Record
from carolus_env.system.options import seed_number
from carolus_env.system.untrusted import shown

_SMALL: Final = 0.005  # less probable actions are not listed in a hint

Agents = Sequence[Agent | None]
Names = Sequence[str | None] | None


class Replay:
    """A recorded game in all its positions; RecordError says where it breaks the rules."""

    def __init__(self, record: Record) -> None:
        # Before each event and after the last; records of dtype `STATE`.
        self.states: list[np.void] = [*_positions(record).copy()]
        self.rules = Rules.from_dict(record["rules"])
        self.names = records.names_of(record)
        self.events: list[dict[str, Any]] = [  # without legal actions and states
            {key: event[key] for key in ("roll", "action", "player") if key in event}
            for event in record["events"]
        ]

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

    def log(self, since: int = 0) -> list[descriptions.LogLine]:
        """Return the events from number ``since`` on, a line each."""
        teams, states, events = self.team_names(), self.states, self.events
        return [
            descriptions.log_line(states[index], states[index + 1], index, events[index], teams)
            for index in range(since, len(events))
        ]

    def team_names(self) -> list[str]:
        """Return a name for each team, made of its members' names."""
        return descriptions.team_names(self.rules, self.names)

    def outcome(self) -> str | None:
        """Return the ending of the game in a sentence; None before the end."""
        return descriptions.outcome(self.state, self.names) if self.over else None


_KNOWN: Final[list[tuple[list[Any], States]]] = []  # games replayed last: events, positions


def _positions(record: Record) -> States:
    """Return `records.positions`; what begins as a game replayed lately is not replayed."""
    records.check_record(record)
    events, passed = record["events"], records.start_of(record)
    for known, states in tuple(_KNOWN):  # a page asks for the same game again and again
        pairs = enumerate(zip(known, events, strict=False))
        same = next((at for at, (old, new) in pairs if old != new), min(len(known), len(events)))
        if same >= len(passed) and states[0].tobytes() == passed[0].tobytes():
            passed = states[: same + 1]
    try:
        rest = records.play_events(passed[-1:], events[len(passed) - 1 :])
        passed = np.concatenate([passed, rest[1:]])
    except records.RecordError:
        return records.positions(record)  # says where it breaks the rules
    _KNOWN[:] = [(events, passed), *_KNOWN[:3]]
    return passed


class Session(Replay):
    """A game that people and agents (None: a person) play, continued after the end of a record.

    Dice are rolled as soon as they are due. An agent decides only when `ask_agent` is called, and
    never sees the game's generator. With its first seed a game continues as if not interrupted.
    """

    def __init__(
        self, record: Record, agents: Agents, *, names: Names = None, seed: int | None = None
    ) -> None:
        super().__init__(record)
        self.seed = _checked_seed(seed)
        self.agents = tuple(agents)
        self.names = _seat_names(self.rules.players, self.agents, names)
        self._head = {key: record[key] for key in ("format", "version", "rules", "setup")}
        generator = engine.new_games(self.rules, 1, seed=self.seed, roll=False)["generator"]
        for state, event in zip(self.states, self.events, strict=False):
            if "roll" in event:
                game = single(state)
                game["generator"] = generator
                chance.draw_faces(game)
                generator = game["generator"]
        self.state["generator"] = generator[0]
        self._roll_on()
        self._streams = branches(new_streams(self.seed, 1), np.arange(self.rules.players))

    @classmethod
    def new(
        cls, rules: Rules, agents: Agents, *, names: Names = None, seed: int | None = None
    ) -> Session:
        """Return a new game, the same as ``engine.new_games(rules, 1, seed=seed)``."""
        seed = _checked_seed(seed)
        start = engine.new_games(rules, 1, seed=seed, roll=False)
        return cls(records.make_record(start, []), agents, names=names, seed=seed)

    @classmethod
    def resumed(cls, record: Record, make: Callable[[str], Agent | None]) -> Session:
        """Return a recorded game with its names, seed and agents, which ``make`` makes of specs."""
        records.check_record(record)
        names = records.names_of(record) if "names" in record else None
        agents = [make(spec) if spec else None for spec in agents_of(record)]
        return cls(record, agents, names=names, seed=record.get("seed"))

    # -------------------------------------------------------------------------------- the game now

    @property
    def player(self) -> int | None:
        """The seat to move; None when the game is over."""
        return None if self.over else int(self.state["player"])

    @property
    def agent(self) -> Agent | None:
        """The agent to move; None for a person, or when the game is over."""
        return None if self.over else self.agents[int(self.state["player"])]

    @property
    def news(self) -> list[int]:
        """Indices of the others' events since the last turn of the person to move.

        While an agent moves, or after the end, that is the person who decided last. It is empty
        where nobody plays in person.
        """
        people = [seat for seat, agent in enumerate(self.agents) if agent is None]
        if not people:
            return []
        decided = [self.events[index]["player"] for index in self.decisions]
        last = next((seat for seat in reversed(decided) if seat in people), people[0])
        seat = self.player if self.player in people else last
        own = [event["player"] == seat for event in self.events]
        first = 0
        for index, event in enumerate(self.events):
            moved = own[index] and "action" in event
            if self.states[index]["round"] == 0 or (
                moved and action_parts(event["action"]).kind == "move"
            ):
                first = index + 1
        return [index for index in range(first, len(own)) if not own[index]]

    def legal(self) -> list[int]:
        """Return the legal actions, ascending; none when the game is over."""
        actions: list[int] = engine.legal_actions(self.state).tolist()
        return actions

    def record(self) -> Record:
        """Return the record so far, with names, agents (specs; None: a person) and seed."""
        return {
            **self._head,
            "events": list(self.events),
            "result": records.result_of(self.state),
            "names": list(self.names),
            "agents": [agent and agent.name for agent in self.agents],
            "seed": self.seed,
        }

    # -------------------------------------------------------------------------------- decisions

    def play(self, action: int) -> None:
        """Play a person's decision; ValueError where it is none or illegal."""
        if self.over:
            raise ValueError("the game is over")
        if self.agent is not None:
            raise ValueError(f"it is {self.names[int(self.state['player'])]}'s turn")
        self._decide(operator.index(action))

    def ask_agent(self) -> None:
        """Play the decisions of the agent to move, up to a roll or another's turn.

        An agent has one random stream for each such run. When the game was continued in mid-run,
        the agent is asked for the whole run again, as it may have planned all of it at the first
        decision. Whatever it raises, the decisions before it are played.
        """
        agent, seat = self.agent, int(self.state["player"])
        if agent is None:
            raise ValueError("no agent is to move")
        index = now = len(self.events)
        while self.events[index - 1]["player"] == seat and "action" in self.events[index - 1]:
            index -= 1  # to the first event of the run
        stream = branches(self._streams[seat : seat + 1], [index])
        while index <= now or (self.player == seat and "roll" not in self.events[-1]):
            action = int(agent.act(_hidden(self.states[index], stream, index), stream)[0])
            if index >= now:
                if action not in self.legal():
                    raise ValueError(
                        f"agent {agent.name!r} chose action {action}, which is illegal"
                    )
                self._decide(action)
            index += 1

    @property
    def can_undo(self) -> bool:
        """True if the last event is a decision of a person who moves again, or ended the game."""
        last = self.events[-1]
        same_turn = self.over or last["player"] == self.player
        return "action" in last and same_turn and self.agents[last["player"]] is None

    def undone(self) -> Session:
        """Return the game before the last decision."""
        if not self.can_undo:
            raise ValueError(
                "you can undo only your own decisions of this turn, before dice are rolled"
            )
        record = {**self.record(), "events": self.events[:-1], "result": None}
        return Session(record, self.agents, names=self.names, seed=self.seed)

    def _decide(self, action: int) -> None:
        self._take(single(self.state), {"action": action})
        self._roll_on()

    def _roll_on(self) -> None:
        while chance.roll_due(game := single(self.state))[0]:
            self._take(game, {"roll": chance.draw_faces(game)[0].tolist()})

    def _take(self, game: States, event: dict[str, Any]) -> None:
        """Play an event in a game like the last, and note both."""
        event["player"] = int(game["player"][0])
        records.play_event(game, event)
        self.states.append(game[0])
        self.events.append(event)


def _hidden(state: np.void, stream: npt.NDArray[np.uint64], event: int) -> States:
    """Return the game with another generator, so that an agent cannot foresee the dice."""
    hidden = single(state)
    hidden["generator"] = branches(stream, [event])
    return hidden


def _checked_seed(seed: int | None) -> int:
    checked = seed_number(seed)
    return secrets.randbits(32) if checked is None else checked


# ------------------------------------------------------------------------------------ seats


def agents_of(record: Record) -> tuple[str | None, ...]:
    """Return the spec of each seat's agent, from the record; None: a person, or unknown."""
    players = Rules.from_dict(record["rules"]).players
    value = record.get("agents")
    if not isinstance(value, list) or len(value) != players:
        return (None,) * players
    return tuple(spec if isinstance(spec, str) else None for spec in value)


def _seat_names(players: int, agents: Agents, names: Names) -> tuple[str, ...]:
    """Return a name for each seat, no two the same."""
    chosen = [None] * players if names is None else names
    for what, those in (("agents", agents), ("names", chosen)):
        if len(those) != players:
            raise ValueError(f"{what} must be {players}, one for each seat, got {len(those)}")
    result = []
    for seat, (agent, name) in enumerate(zip(agents, chosen, strict=True)):
        if name is not None and (not isinstance(name, str) or not name.strip().isprintable()):
            raise ValueError(f"names[{seat}] must be printable text, got {shown(name)}")
        name = "" if name is None else name.strip()[: records.LONGEST_NAME]
        result.append(name or (f"Player {seat + 1}" if agent is None else agent.name))
    twice = {name for name in result if result.count(name) > 1}
    for seat, name in enumerate(result):
        if name in twice:
            numbers = range(seat + 1, seat + 2 + players)
            result[seat] = next(free for k in numbers if (free := f"{name} {k}") not in result)
    return tuple(result)


# ------------------------------------------------------------------------------------ hints


class Hint(NamedTuple):
    """An agent's opinion of a decision; the last two are None where it gives none."""

    agent: str  # its name
    choice: int  # its most probable action
    probabilities: npt.NDArray[np.float64] | None  # (95,) of the actions
    values: npt.NDArray[np.float64] | None  # (teams,) win probabilities

    def ranked(self, most: int) -> list[int]:
        """Return the most probable actions, the first first; none where it gives no probability."""
        if self.probabilities is None:
            return []
        order = np.argsort(-self.probabilities, kind="stable")[:most].tolist()
        return [action for action in order if self.probabilities[action] >= _SMALL]


def hint(adviser: Agent, state: np.void, seed: int = 0) -> Hint:
    """Return an agent's opinion of a game in which a decision is due; it stays as it is."""
    stream = new_streams(seed, 1)
    game = _hidden(state, stream, 0)
    opinion = bots.opinion(adviser, game, stream)
    probabilities, values = (None if rows is None else rows[0] for rows in opinion)
    choice = adviser.act(game, stream)[0] if probabilities is None else probabilities.argmax()
    return Hint(adviser.name, int(choice), probabilities, values)
