"""A game with people and agents in its seats: what a page or a terminal shows and asks.

Nothing here knows of pages. The game is its record: it is saved as one, undone by dropping events
and taken up again from one. Record and seed decide all that follows, dice and agents included:

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
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine import chance
from carolus_env.engine.rules import (
    CLAN_NAMES,
    DESTINATIONS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    OVER,
    Rules,
)
from carolus_env.engine.state import STATE, States, winning_teams
from carolus_env.engine.streams import branches, new_streams
from carolus_env.notation import move_text, region_text, roll_text
from carolus_env.notation.words import counted, team_names
from carolus_env.play.preview import EmperorStep, emperor_step, emperor_steps
from carolus_env.records import Record, RecordError, make_record, result_of, start_of
from carolus_env.replay import replay

MAX_SEED: Final = 2**53 - 1
"""Whole numbers up to here are the same in every reader of JSON."""
LONGEST_NAME: Final = 40


class TurnError(ValueError):
    """A decision by who is not to decide, or an undo of what cannot be undone."""


class Decision(NamedTuple):
    """A legal action, and in the notation, with what comes of it."""

    action: int
    text: str


class LogLine(NamedTuple):
    """What an event was.

    Attributes:
        event: its index in the record.
        seat: whose it was.
        round: in which, 0: the set-up.
        text: in the notation.
        words: in words that follow the name of the seat.
    """

    event: int
    seat: int
    round: int
    text: str
    words: str


class Hint(NamedTuple):
    """What an agent thinks of the decision that is due.

    Attributes:
        agent: its name.
        choice: the action for which it says most.
        probabilities: ``(95,)`` of each action; None: it only says its choice.
        values: ``(teams,)`` each team's expected share of the win; None: it does not say.
    """

    agent: str
    choice: int
    probabilities: npt.NDArray[np.float64] | None
    values: npt.NDArray[np.float64] | None


class Session:
    """A game that people and agents play.

    Dice are rolled as soon as they are due. An agent decides only when `ask_agent` is called, one
    decision a call, so that each can be shown. It never sees the game's generator.

    Args:
        record: a game to take up, at its end; one of `new`, or anybody's.
        agents: who sits in each seat; None: a person.
        names: of the seats; None, or None in it: the agent's, or ``Player 1``.
        seed: of the dice to come and of the agents, 0 to `MAX_SEED`; None: from the operating
            system. With the seed of the game's beginning it goes on as it would have gone on.

    Attributes:
        rules, agents, names, seed: as given, nothing missing.
        events: of the record so far.
        version: another number after each event and each undo, never the same again.

    Raises:
        RecordError: when the record cannot be replayed; the text says where and why.
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
        check_replays(record)
        self.rules = Rules.from_dict(record["rules"])
        self.seed = _checked_seed(seed)
        self.agents = tuple(agents)
        self.names = seat_names(self.rules.players, self.agents, names)
        self._head = {key: record[key] for key in ("format", "version", "rules", "setup")}
        self.events: list[dict[str, Any]] = []
        self.version = 0
        self._log: list[LogLine] = []
        game = start_of(record)
        dealt = engine.new_games(self.rules, 1, seed=self.seed, roll=False)
        game["generator"] = dealt["generator"]
        self._states = [game]
        for event in record["events"]:
            self._take(event)
        self._roll_on()
        self._streams = branches(new_streams(self.seed, 1), np.arange(self.rules.players))
        self._asked: tuple[int, int] = -1, 0  # where an agent's run began, and how far it was asked
        self._stream = self._streams[:1]  # of that run, as far as it was asked

    @classmethod
    def new(
        cls,
        rules: Rules,
        agents: Sequence[Agent | None],
        *,
        names: Sequence[str | None] | None = None,
        seed: int | None = None,
    ) -> Session:
        """A new game: the one of ``engine.new_games(rules, seed=seed)``."""
        seed = _checked_seed(seed)
        start = engine.new_games(rules, 1, seed=seed, roll=False)
        return cls(make_record(start, []), agents, names=names, seed=seed)

    # -------------------------------------------------------------------------------- looking

    @property
    def state(self) -> np.void:
        """The game now, one record of dtype `STATE`; not to be changed."""
        return self._states[-1][0]

    @property
    def last(self) -> tuple[np.void, int] | None:
        """The state before the last decision, and that decision; None before the first."""
        for event, state in zip(reversed(self.events), reversed(self._states[:-1]), strict=True):
            if "action" in event:
                return state[0], event["action"]
        return None

    @property
    def over(self) -> bool:
        return bool(self.state["phase"] == OVER)

    @property
    def player(self) -> int | None:
        """The seat that is to decide; None when the game is over."""
        return None if self.over else int(self.state["player"])

    @property
    def agent(self) -> Agent | None:
        """The agent that is to decide; None when a person is, or nobody."""
        return None if self.over else self.agents[int(self.state["player"])]

    def legal(self) -> list[Decision]:
        """The decisions that are allowed now, ascending; none when the game is over."""
        return [
            Decision(action, move_text(self.state, action))
            for action in engine.legal_actions(self.state).tolist()
        ]

    def steps(self) -> list[EmperorStep]:
        """What each step of the Emperor would do; none unless he is to be moved."""
        return emperor_steps(self.state)

    def log(self, since: int = 0) -> list[LogLine]:
        """What happened, from event number ``since`` on."""
        return self._log[since:]

    def team_names(self) -> list[str]:
        """A name for each team: its members'."""
        return team_names(self.rules, self.names)

    def outcome(self) -> str | None:
        """How the game ended, in a sentence; None before."""
        return outcome(self.state, self.names) if self.over else None

    def record(self) -> Record:
        """The game so far, with names, agents (specs, None: a person) and seed."""
        return {
            **self._head,
            "events": list(self.events),
            "result": result_of(self.state),
            "names": list(self.names),
            "agents": [agent and agent.name for agent in self.agents],
            "seed": self.seed,
        }

    # -------------------------------------------------------------------------------- deciding

    def play(self, action: int) -> None:
        """A person's decision.

        Raises:
            TurnError: when an agent is to decide, or the game is over.
            IllegalActionError: when the rules do not allow it; the game is as it was.
        """
        if self.over:
            raise TurnError("the game is over")
        if self.agent is not None:
            raise TurnError(f"it is the turn of {self.names[int(self.state['player'])]}")
        self._decide(operator.index(action))

    def ask_agent(self, decided: int | None = None) -> int:
        """One decision of the agent whose turn it is, which is played; may take its time.

        Args:
            decided: what `think` answered, where it was called before, in another thread say.

        Raises:
            TurnError: when no agent is to decide.
            Exception: whatever a stranger's agent raises; the game is as it was.
        """
        if self.agent is None:
            raise TurnError("no agent is to decide")
        action = self.think() if decided is None else decided
        self._decide(action)
        return action

    def think(self) -> int:
        """What the agent whose turn it is decides; nothing is played yet.

        Its random stream belongs to the run of decisions that it takes one after the other. Where
        the game was taken up in mid-run, the agent is asked the whole run again: it may have
        planned all of it at the first.
        """
        agent = self.agent
        if agent is None:
            raise TurnError("no agent is to decide")
        seat, now = int(self.state["player"]), len(self.events)
        begun = self._run_start(seat)
        if self._asked[0] != begun or self._asked[1] > now:
            self._asked = begun, begun
            self._stream = branches(self._streams[seat : seat + 1], [begun])
        action = -1
        stream = self._stream.copy()
        for index in range(self._asked[1], now + 1):
            action = int(agent.act(_hidden(self._states[index], stream, index), stream)[0])
        if not engine.are_legal(self._states[-1], np.array([action]))[0]:
            raise ValueError(f"agent {agent.name!r} answered action {action}, which is illegal")
        self._asked, self._stream = (begun, now + 1), stream
        return action

    def _run_start(self, seat: int) -> int:
        """Index of the first event of the decisions in a row that ``seat`` is taking."""
        index = len(self.events)
        while index and self.events[index - 1]["player"] == seat:
            if "roll" in self.events[index - 1]:
                break
            index -= 1
        return index

    @property
    def can_undo(self) -> bool:
        """Whether the last event is a person's decision, since which no dice fell and no one else
        decided or is to decide."""
        last = self.events[-1]
        same_turn = self.over or last["player"] == self.player
        return "action" in last and same_turn and self.agents[last["player"]] is None

    def undo(self) -> None:
        """Take the last decision back.

        Raises:
            TurnError: when that cannot be, see `can_undo`.
        """
        if not self.can_undo:
            raise TurnError("only the own decisions of this turn can be undone, before dice fall")
        self.events.pop()
        self._states.pop()
        self._log.pop()
        self.version += 1

    def hint(self, adviser: Agent) -> Hint:
        """What an agent thinks of the decision that is due.

        Raises:
            TurnError: when the game is over.
        """
        if self.over:
            raise TurnError("the game is over")
        return hint(adviser, self.state, self.seed + len(self.events))

    # -------------------------------------------------------------------------------- events

    def _decide(self, action: int) -> None:
        self._take({"action": action, "player": int(self.state["player"])})
        self._roll_on()

    def _take(self, event: dict[str, Any]) -> None:
        """Carry out an event and note it."""
        before, game = self._states[-1], self._states[-1].copy()
        if "roll" in event:
            chance.draw_faces(game)  # the generator moves on as if it had rolled these
            chance.apply_roll(game, event["roll"])
        else:
            engine.step(game, np.array([event["action"]]), roll=False)
        self._log.append(log_line(before[0], game[0], len(self.events), event, self.team_names()))
        self._states.append(game)
        self.version += 1
        kept = ("roll", "action", "player")
        self.events.append({key: event[key] for key in kept if key in event})

    def _roll_on(self) -> None:
        while chance.roll_due(self._states[-1])[0]:
            faces = chance.draw_faces(self._states[-1].copy())
            self._take({"roll": faces[0].tolist(), "player": int(self.state["player"])})


def _hidden(game: States, stream: npt.NDArray[np.uint64], event: int) -> States:
    """The game as an agent may see it: its generator says nothing about the dice."""
    shown = game.copy()
    shown["generator"] = branches(stream, [event])
    return shown


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(32)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed must be a whole number from 0 to {MAX_SEED}, got {seed!r}")
    return seed


# ------------------------------------------------------------------------------------ records


def check_replays(record: object) -> None:
    """Refuse what is no record, or one that the rules do not allow.

    Raises:
        RecordError: with the first thing that is wrong.
    """
    found = replay(record)  # type: ignore[arg-type]  # which checks that first of all
    if found:
        raise RecordError(str(found[0]))


def up_to(record: Record, events: int) -> Record:
    """The record of the same game when only so many events had happened."""
    if not 0 <= events <= len(record["events"]):
        raise ValueError(f"events must be from 0 to {len(record['events'])}, got {events!r}")
    if events == len(record["events"]):
        return record
    return {**record, "events": record["events"][:events], "result": None}


# ------------------------------------------------------------------------------------ words


def seat_names(
    players: int, agents: Sequence[Agent | None], names: Sequence[str | None] | None = None
) -> tuple[str, ...]:
    """A name for each seat, no two alike.

    Raises:
        ValueError: for another number of agents or names, or a name that cannot be shown.
    """
    given = [None] * players if names is None else names
    for what, those in (("agents", agents), ("names", given)):
        if len(those) != players:
            raise ValueError(f"{what} must be one a seat, {players}, got {len(those)}")
    found = []
    for seat, (agent, name) in enumerate(zip(agents, given, strict=True)):
        if name is not None and (not isinstance(name, str) or not name.strip().isprintable()):
            raise ValueError(f"names[{seat}] must be a text that can be shown, got {name!r:.100}")
        name = "" if name is None else name.strip()[:LONGEST_NAME]
        found.append(name or (f"Player {seat + 1}" if agent is None else agent.name))
    twice = {name for name in found if found.count(name) > 1}
    for seat, name in enumerate(found):
        if name in twice:
            numbers = range(seat + 1, seat + 2 + players)
            found[seat] = next(own for k in numbers if (own := f"{name} {k}") not in found)
    return tuple(found)


def outcome(state: np.void, names: Sequence[str]) -> str:
    """How a game that is over ended and why, in a sentence."""
    rules = engine.rules_of(state)
    teams = team_names(rules, names)
    winners = [teams[team] for team in winning_teams(state)]
    if not winners:
        return f"The game was cut off after {state['round']} rounds; nobody won."
    castles = sorted(state["castles"][: len(teams)].tolist(), reverse=True)
    if castles[0] >= rules.castles_to_win:
        return f"{winners[0]} won: {castles[0]} castles, and {rules.castles_to_win} are enough."
    few = "fewer than 4 regions are left"
    if len(winners) > 1:
        return f"{', '.join(winners)} share the win: {few}, and each has {castles[0]} castles."
    score = " to ".join(map(str, castles))
    return f"{winners[0]} won: {few}, and the castles are {score}."


def log_line(
    before: np.void, after: np.void, index: int, event: dict[str, Any], teams: Sequence[str]
) -> LogLine:
    """An event of a record as a line of the log.

    Args:
        before, after: the game without it and with it.
        index: of the event in the record.
        event: a roll or a decision.
        teams: their names.
    """
    number, seat = int(before["round"]), event["player"]
    if "roll" in event:
        text = roll_text(event["roll"])
        return LogLine(index, seat, number, text, text)
    action = event["action"]
    return LogLine(
        index, seat, number, move_text(before, action), _words(before, after, action, teams)
    )


def _words(before: np.void, after: np.void, action: int, teams: Sequence[str]) -> str:
    """A decision and what came of it."""
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        if destination:
            return f"{CLAN_NAMES[clan]} to {region_text(before, destination - 1)}"
        gains = after["control"][clan] != before["control"][clan]
        return f"{CLAN_NAMES[clan]} to the court" + (", and controls the clan now" if gains else "")
    if action >= FIRST_MOVE:
        step = emperor_step(before, after, action)
        steps = counted(step.steps, "step")
        return f"moves the Emperor {steps} to {step.territories}: {step.text(teams)}"
    if action >= FIRST_CROWN:
        return f"takes {CLAN_NAMES[action - FIRST_CROWN]} for the crown"
    return f"plays disc {action - FIRST_DISC + 1}"


def hint(adviser: Agent, state: np.void, seed: int) -> Hint:
    """What an agent thinks of a position in which somebody is to decide.

    Args:
        adviser: the agent.
        state: the game; it stays as it is.
        seed: of what the agent draws.
    """
    stream = new_streams(seed, 1)
    shown = _hidden(np.array(state, STATE).reshape(1), stream, 0)
    said = bots.opinion(adviser, shown, stream)
    probabilities, values = (None if shares is None else shares[0] for shares in said)
    choice = adviser.act(shown, stream)[0] if probabilities is None else probabilities.argmax()
    return Hint(adviser.name, int(choice), probabilities, values)
