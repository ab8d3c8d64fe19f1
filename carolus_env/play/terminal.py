"""The game in a terminal: the board as text, moves typed in the notation.

All input and output goes through two functions, so that it works with a person, a file or a pipe.
A line is one of the `COMMANDS`, or moves separated by commas: ``2 blue>7-9, red>court``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from carolus_env import notation, records
from carolus_env.bots import Agent
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, PLACE, Rules
from carolus_env.engine.state import single
from carolus_env.notation import descriptions
from carolus_env.notation.moves import counted
from carolus_env.notation.positions import TEAM_LETTERS
from carolus_env.play.session import Roster, Session
from carolus_env.play.session import hint as ask_hint
from carolus_env.records import Record, RecordError
from carolus_env.system import untrusted
from carolus_env.system.files import expanded

WIDTH: Final = 80
ADVISER: Final = "planner"
_HINTED: Final = 3  # actions of a hint

Ask = Callable[[str], str]
"""Shows a prompt and returns the line that is typed; raises EOFError when there are no more."""
Show = Callable[[str], None]
T = TypeVar("T")

COMMANDS: Final = {  # how to type each, and what it does
    "?": "list the legal moves, and what each step of the Emperor would do",
    "hint [BOT]": f"show what a bot would play (default: {ADVISER})",
    "undo": "take your last decision back, before dice are rolled or another plays",
    "board": "show the board again",
    "log [N]": "show the last N turns (default: all)",
    "save FILE": "save the game so far as a record",
    "help": "show this list",
    "quit": "leave the game",
}
_WORDS: Final = {usage.split()[0]: f"_{usage.split()[0]}" for usage in COMMANDS} | {"?": "_legal"}


class Terminal:
    """A session, played by typing; the roster has the agents that `hint` may use."""

    def __init__(
        self, session: Session, roster: Roster, ask: Ask, show: Show, *, colour: bool = False
    ) -> None:
        self.session = session
        self._roster, self._ask, self._show, self._colour = roster, ask, show, colour
        self._reported = 0  # events
        self._board_shown: tuple[int, ...] = ()  # round, phase and player of the last board
        self._own: set[Path] = set()  # files that may be overwritten
        self._saved = [*session.events]
        self._warned = False  # whether a warning said that the game is not saved
        self._left = False

    def run(self) -> None:
        """Play until the player quits or the input ends."""
        while not self._left:
            if self.session.agent is not None:
                try:
                    _asked(self.session.agent, self.session.ask_agent)
                except ValueError as error:
                    self._say(str(error))
                    self._say("Press Enter to ask it again; save FILE and quit still work.")
                    self._prompt()
                continue
            self._show_turns(self._reported)
            self._reported = len(self.session.events)
            state = self.session.state
            now = tuple(int(state[name]) for name in ("round", "phase", "player"))
            if now != self._board_shown:
                self._board_shown = now
                self._board()
            self._prompt()

    # -------------------------------------------------------------------------------- output

    def _show_turns(self, first: int, most: int | None = None) -> None:
        """Show the events from number ``first`` on, a line for each turn, or the last of these."""
        start = single(self.session.states[first])
        turns = list(notation.turn_texts(start, self.session.events[first:]))
        for turn in turns if most is None else turns[max(len(turns) - most, 0) :]:
            self._say(turn.text, first=f"{self._who(turn.seat)}  ", rest=" " * 4)

    def _who(self, seat: int) -> str:
        return f"{seat} {TEAM_LETTERS[self.session.rules.team(seat)]} {self.session.names[seat]}"

    def _board(self, _: str = "") -> None:
        self._show("\n" + board_text(self.session.state, colour=self._colour))
        if self.session.over:
            self._say(str(self.session.outcome()))

    def _prompt(self) -> None:
        try:
            line = self._ask(self._due()).strip()
        except EOFError:
            self._left = True
            return
        word, _, rest = line.partition(" ")
        if not line:
            return
        self._warned = self._warned and word.lower() == "quit"
        try:
            if word.lower() in _WORDS:
                getattr(self, _WORDS[word.lower()])(rest.strip())
            else:
                self._play(line)
        except (ValueError, RuntimeError) as error:  # a user of ~user may have no home
            self._say(str(error))
        except OSError as error:
            self._say(f"{rest.strip()}: {error.strerror or error}")

    def _due(self) -> str:
        if self.session.player is None:
            return "game over> "
        state, seat = self.session.state, self.session.player
        remaining = f" {state['placements_left']}" if state["phase"] == PLACE else ""
        what = {DISC: "disc", CROWN_CHOICE: "crown", PLACE: "place", MOVE: "move"}
        return f"{self._who(seat)}: {what[int(state['phase'])]}{remaining}> "

    def _say(self, text: str, first: str = "", rest: str = "") -> None:
        wrapper = textwrap.TextWrapper(WIDTH - 1, first, rest or first)
        wrapper.break_long_words = wrapper.break_on_hyphens = False  # regions have hyphens
        for line in text.splitlines() or [""]:
            self._show("\n".join(wrapper.wrap(line)) + "\n")

    # -------------------------------------------------------------------------------- commands

    def _play(self, line: str) -> None:
        if self.session.over:
            raise ValueError(f"the game is over, {line[:40]!r} cannot be played")
        for action in notation.read_moves(self.session.state, line):
            self.session.play(action)

    def _legal(self, _: str) -> None:
        state = self.session.state
        if self.session.over:
            return self._say(str(self.session.outcome()))
        if state["phase"] != MOVE:
            self._say(notation.legal_text(state), first="  ")
        if state["phase"] == PLACE:
            held = state["reserves"][state["player"]]
            self._say(f"reserve: {descriptions.paladin_words(held)}", first="  ")
            self._say("If the Emperor moved now:")
        if state["phase"] in (PLACE, MOVE):
            moving = state.copy()
            moving["phase"], moving["placements_left"] = MOVE, 0
            for step in descriptions.emperor_steps(moving, self.session.team_names()):
                text = f"{notation.move_text(moving, step.action)}: {step.text}"
                self._say(text, first="  ", rest=" " * 6)
        return None

    def _hint(self, spec: str) -> None:
        adviser = self._roster.make(spec or ADVISER)
        if self.session.over:
            raise ValueError("the game is over")
        hint = _asked(adviser, lambda: ask_hint(adviser, self.session.state))
        state, teams = self.session.state, self.session.team_names()
        self._say(f"{hint.agent} would play {notation.move_text(state, hint.choice)}")
        if hint.probabilities is not None:
            moves = [
                f"{notation.move_text(state, action)} {hint.probabilities[action]:.0%}"
                for action in hint.ranked(_HINTED)
            ]
            self._say(f"probabilities: {', '.join(moves)}", first="  ")
        if hint.values is not None:
            shares = (f"{name} {share:.0%}" for name, share in zip(teams, hint.values, strict=True))
            self._say(f"expected share of the win: {', '.join(shares)}", first="  ")

    def _undo(self, _: str) -> None:
        self.session = self.session.undone()
        self._reported = len(self.session.events)
        self._board_shown = ()

    def _log(self, number: str) -> None:
        if number and not re.fullmatch("[0-9]{1,6}", number):
            raise ValueError(f"log needs a number of turns, got {number[:40]!r}")
        self._show_turns(0, int(number) if number else None)

    def _save(self, name: str) -> None:
        if not name or not name.isprintable():
            raise ValueError("name a file: save FILE")
        path = expanded(name)
        if path.exists() and path.resolve() not in self._own:
            raise ValueError(f"{name} exists already; choose another name")
        records.write_records(path, [self.session.record()])
        self._own.add(path.resolve())
        self._saved = [*self.session.events]
        self._say(f"saved as {name}")

    def _help(self, _: str) -> None:
        self._say("Moves: d3, crown=red, red>court, 2 blue>7-9, E+2; separate several by commas.")
        for usage, about in COMMANDS.items():
            self._say(about, first=f"  {usage:12}", rest=" " * 14)

    def _quit(self, _: str) -> None:
        self._left = self.session.over or self._warned or self._saved == self.session.events
        if not self._left:
            self._warned = True
            self._say("The game is not saved: type save FILE first, or quit again.")


def _asked(agent: Agent, work: Callable[[], T]) -> T:
    """Return the result of an agent's work; a user's agent may raise anything."""
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ValueError(f"{agent.name} failed with {untrusted.message(error)}") from error


def first_record(path: Path) -> Record:
    """Return the first game of a file of records."""
    for _, record in records.read_records(path):
        return record
    raise RecordError(f"{path}: there is no game record in it")


def taken_up(record: Record, roster: Roster) -> Session:
    """Return a recorded game; the agents of one that is over need not be on the roster."""
    return Session.resumed(record, lambda spec: None if record["result"] else roster.make(spec))


def new_session(
    rules: Rules, roster: Roster, bots: Sequence[str], people: int, seed: int | None
) -> Session:
    """Return a new game: people in the first seats, then bots; the last bot fills the rest."""
    seats = rules.players - people
    if not 0 <= people <= rules.players:
        raise ValueError(f"people must be from 0 to {rules.players}, got {people}")
    if len(bots) > seats:
        raise ValueError(
            f"there are {len(bots)} bots for {counted(seats, 'seat')}: {', '.join(bots)}"
        )
    specs = [*bots, *[bots[-1] if bots else ADVISER] * (seats - len(bots))]
    agents = [*[None] * people, *map(roster.make, specs)]
    names = ["you"] if people == 1 else [f"player {seat}" for seat in range(people)]
    return Session.new(rules, agents, names=[*names, *[None] * seats], seed=seed)


def run(session: Session, roster: Roster) -> None:
    """Play on standard input and output."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no text are no move either
        sys.stdin.reconfigure(errors="surrogateescape")
    ask: Ask = _piped
    if sys.stdin.isatty():
        ask = input
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # gives input() line editing
    show = partial(print, end="", flush=True)
    Terminal(session, roster, ask, show, colour=colour).run()


def _piped(prompt: str) -> str:
    """Return the next line of a file or a pipe, and write it after the prompt."""
    if not (line := sys.stdin.readline()):
        raise EOFError
    print(prompt + line.rstrip("\n"))
    return line
