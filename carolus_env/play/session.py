"""What a page plays: games, people and agents in their seats, files of games.

A game is its record: saving writes the record, undoing takes its last event away, and any record
can be continued. Record and seed decide all that follows, dice and agents included.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine, records
from carolus_env.bots import Agent, registry
from carolus_env.engine import chance
from carolus_env.engine.chance import branches, new_streams
from carolus_env.engine.rules import ACTIONS, OVER, Rules, action_parts
from carolus_env.engine.state import States, single
from carolus_env.networks.files import NAMES, ModelError
from carolus_env.notation import descriptions
from carolus_env.records import Record, RecordError, names_of
from carolus_env.system.options import seed_number, whole_number
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
        self.names = names_of(record)
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
        return bool(self.state["phase"] == OVER)

    @property
    def decisions(self) -> list[int]:
        return [index for index, event in enumerate(self.events) if "action" in event]

    def decided(self, events: Iterable[int]) -> list[tuple[np.void, int]]:
        """Return the decisions among the events at these indices: state before, and action."""
        pairs = ((self.states[index], self.events[index]) for index in events)
        return [(state, event["action"]) for state, event in pairs if "action" in event]

    def log(self, since: int = 0) -> list[descriptions.LogLine]:
        """Return the events from number ``since`` on, a line each."""
        teams, states, events = self.team_names(), self.states, self.events
        lines, line = range(since, len(events)), descriptions.log_line
        return [line(states[k], states[k + 1], k, events[k], teams) for k in lines]

    def team_names(self) -> list[str]:
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
        names = names_of(record) if "names" in record else None
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
        self._decide(whole_number("action", action, 0, ACTIONS - 1))

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


# ------------------------------------------------------------------------------------ files

# Of a file, besides games that are left out as an agent did not lose them:
MAX_LINES: Final = 2000  # maximum number of lines read, with or without a game
MAX_BYTES: Final = 32 * 2**20  # maximum number of bytes read, after unpacking


class GameFile:
    """The games of one file, plain or gzip; with ``lost_by`` only those that this agent lost.

    RecordError says why it holds none.
    """

    def __init__(self, path: str | Path, lost_by: str | None = None) -> None:
        self.name = os.fspath(path) + (f": lost by {lost_by}" if lost_by else "")
        self.problems: list[str] = []  # a sentence for each error in the file
        self.games: list[dict[str, Any]] = []  # ``rounds`` is None before the end
        self.lines: list[bytes] = []  # each game's record
        self.more = False  # whether the file goes on after them
        size = others = 0
        for line, entry in records.scan_records(path):
            if len(self.games) + len(self.problems) == MAX_LINES or size >= MAX_BYTES:
                self.more = True
                break
            try:
                if isinstance(entry, RecordError):
                    raise entry
                if lost_by is not None and not was_lost(entry, lost_by):
                    others += 1
                    continue
                self.lines.append(records.record_line(entry))
            except RecordError as error:
                self.problems.append(f"line {line}: {error.reason}")
                continue
            size += len(self.lines[-1])
            number, rounds = entry.get("game"), (entry["result"] or {}).get("rounds")
            title = f"game {number}" if type(number) is int and number >= 0 else f"line {line}"
            self.games.append({"title": title, "names": names_of(entry), "rounds": rounds})
        if not self.games:
            lost = others and f"none of its {others} games was lost by {lost_by}"
            raise RecordError([*self.problems, lost or "there is no game record in it"][0])


def was_lost(record: Record, agent: str) -> bool:
    """Return whether ``agent`` played the game and lost in all its seats."""
    returns = (record["result"] or {"returns": []})["returns"]
    pairs = zip(agents_of(record), returns, strict=False)
    lost = [value < 0 for spec, value in pairs if spec == agent]
    return bool(lost) and all(lost)


# ------------------------------------------------------------------------------------ agents

OFFERED: Final = {
    "random": "any legal action",
    "greedy": "the best immediate gain",
    "planner": "plans its whole turn",
    "ppo": "a trained policy",
    "mcts:sims=100": "searches a little ahead",
    "mcts:sims=1000": "searches further",
    "value": "judges the position after its turn",
    "search:sims=100": "searches with that judgement",
}
"""The package's agents on the menu; a page may also ask for other options of them."""
ADVISERS: Final = ("value", "planner", "ppo", "mcts:sims=100", "search:sims=100", "greedy")
"""Agents that a page can ask for hints and values."""

_MODELS: Final = ("decisions", "ppo", "search", "value")  # whose spec may name a file
_MOST_IDLE: Final = 16


class Level(NamedTuple):
    """A level of strength."""

    name: str
    about: str  # a description in a few words
    agents: dict[int, str]  # the spec of the agent that plays so, by number of players


LEVELS: Final = (
    Level(
        "easy",
        "plans its turns, but plays many of them at random",
        {2: "planner:errors=0.33", 3: "planner:errors=0.52", 4: "planner:errors=0.56"},
    ),
    Level(
        "medium",
        "plans its turns, and occasionally blunders",
        {2: "planner:errors=0.09", 3: "planner:errors=0.15", 4: "planner:errors=0.14"},
    ),
    Level(
        "hard",
        "searches ahead with a trained network",
        {2: "search:2p,sims=100", 3: "search:3p,sims=100", 4: "search:4p,sims=100"},
    ),
)
"""Levels from weakest to strongest: about -1,000, about -300, above the ladder."""


class RosterError(ValueError):
    """A spec that is wrong, or that a page may not name."""


class Roster:
    """The agents that a page may use.

    A page names agents by spec. It may not name files, neither Python nor models: those are
    named on the command line by the user who starts the server, and offered under that spec.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._named = tuple(named)
        self._idle = [(spec, _made(spec)) for spec in self._named]
        self._lock = threading.Lock()

    def menu(self) -> dict[str, str]:
        """Return the agents on offer and a description of each, those of the command line first."""
        return {**dict.fromkeys(self._named, "named on the command line"), **OFFERED}

    def advisers(self) -> list[str]:
        """Return the agents that give hints, those of the command line first."""
        return [*self._named, *ADVISERS]

    def allows(self, spec: str) -> bool:
        """Return whether a page may name this agent; its options are not checked."""
        if spec in self._named:
            return True
        name, _, argument = spec.partition(":")
        if name not in registry.OPTIONS:
            return False
        first = argument.partition(",")[0]  # a model, or the first option
        if name not in _MODELS or not first or first in NAMES:
            return True
        key, equals, _ = first.partition("=")
        return bool(equals) and key.strip().isidentifier()

    def make(self, spec: str) -> Agent:
        """Make a new agent; RosterError where a page may not name it, or an option is wrong."""
        if not self.allows(spec):
            raise RosterError(
                f"{spec[:100]!r} is not offered here; offered are {', '.join(self.menu())}. To use "
                "an agent from a file, name it on the command line with --bot"
            )
        return _made(spec)

    @contextmanager
    def lending(self) -> Iterator[Callable[[str], Agent]]:
        """Yield a function that lends agents to the ``with`` block, for it alone.

        To make one can take long: it may load a network or start a program. After an error what
        was lent is not lent again.
        """
        lent: list[tuple[str, Agent]] = []

        def lend(spec: str) -> Agent:
            with self._lock:
                found = next((pair for pair in self._idle if pair[0] == spec), None)
                if found is not None:
                    self._idle.remove(found)
            lent.append(found or (spec, self.make(spec)))
            return lent[-1][1]

        yield lend
        with self._lock:
            self._idle = [*self._idle, *lent][-_MOST_IDLE:]


def _made(spec: str) -> Agent:
    try:
        return bots.make(spec)
    except (ValueError, ModelError) as error:
        raise RosterError(str(error)) from error
