"""The game in a terminal: the board as text, moves typed in the notation.

All input and output goes through two functions, so that it works with a person, a file or a pipe.
A line is one of the `COMMANDS`, or moves separated by commas:

    d3
    2 blue>7-9, red>court
    E+2
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from carolus_env.bots import Agent
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, PLACE, Rules
from carolus_env.engine.state import single
from carolus_env.notation import (
    NotationError,
    TurnText,
    legal_text,
    move_text,
    read_moves,
    turn_texts,
)
from carolus_env.notation.descriptions import emperor_steps, paladin_words
from carolus_env.notation.vocabulary import TEAM_LETTERS, counted
from carolus_env.play.library import agents_of
from carolus_env.play.roster import Roster, RosterError
from carolus_env.play.session import Session, TurnError
from carolus_env.play.session import hint as ask_hint
from carolus_env.records import (
    Record,
    RecordError,
    names_of,
    read_records,
    start_of,
    write_records,
)
from carolus_env.system import failures

WIDTH: Final = 80
ADVISER: Final = "planner"
_HINTED: Final = 3  # actions of a hint

Ask = Callable[[str], str]
"""Shows a prompt and returns the line that is typed; raises EOFError when there are no more."""


class TerminalError(ValueError):
    """A command that cannot be carried out."""


class Command(NamedTuple):
    """A command: how to type it, what it does, and the method of `Terminal` that does it."""

    usage: str
    about: str
    method: str


COMMANDS: Final = {
    "?": Command("?", "list the legal moves, and what each step of the Emperor would do", "_legal"),
    "hint": Command("hint [BOT]", f"show what a bot would play (default: {ADVISER})", "_hint"),
    "undo": Command(
        "undo", "take your last decision back, before dice are rolled or another plays", "_undo"
    ),
    "board": Command("board", "show the board again", "_show_board"),
    "log": Command("log [N]", "show the last N turns (default: all)", "_log"),
    "save": Command("save FILE", "save the game so far as a record", "_save"),
    "help": Command("help", "show this list", "_help"),
    "quit": Command("quit", "leave the game", "_quit"),
}


class Terminal:
    """A session, played by typing.

    Args:
        session: the game to play.
        roster: the agents that `hint` may use.
        ask: a function that reads a line.
        show: a function that writes text.
        colour: True: use a terminal's colours.
    """

    def __init__(
        self,
        session: Session,
        roster: Roster,
        ask: Ask,
        show: Callable[[str], None],
        *,
        colour: bool = False,
    ) -> None:
        self.session = session
        self._roster, self._ask, self._show, self._colour = roster, ask, show, colour
        self._reported = 0  # events
        self._position = start_of(session.record())  # after the reported events
        self._board_shown: tuple[int, ...] = ()  # round, phase and player of the last board
        self._own: set[Path] = set()  # files that may be overwritten
        self._saved = session.version
        self._warned = False  # whether a warning said that the game is not saved
        self._left = False

    def run(self) -> None:
        """Play until the player quits or the input ends."""
        while not self._left:
            if self.session.agent is not None:
                self._agents_play()
            else:
                self._report()
                self._show_new_board()
                self._prompt()

    # -------------------------------------------------------------------------------- output

    def _agents_play(self) -> None:
        agent = self.session.agent
        assert agent is not None
        try:
            self.session.ask_agent()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a user's agent may raise anything
            self._say(f"{agent.name} failed with {failures.message(error)}")
            self._say("Press Enter to ask it again; save FILE and quit still work.")
            self._prompt()

    def _report(self) -> None:
        """Show what has happened since the last report, a line for each turn."""
        for turn in turn_texts(self._position, self.session.events[self._reported :]):
            self._show_turn(turn)
        self._report_from_here()

    def _report_from_here(self) -> None:
        self._reported = len(self.session.events)
        self._position = single(self.session.state)

    def _show_turn(self, turn: TurnText) -> None:
        self._say(turn.text, first=f"{self._who(turn.seat)}  ", rest=" " * 4)

    def _who(self, seat: int) -> str:
        return f"{seat} {TEAM_LETTERS[self.session.rules.team(seat)]} {self.session.names[seat]}"

    def _show_new_board(self) -> None:
        """Show the board, unless it was shown for the same round, phase and player."""
        state = self.session.state
        now = tuple(int(state[name]) for name in ("round", "phase", "player"))
        if now != self._board_shown:
            self._board_shown = now
            self._show_board()

    def _show_board(self, _: str = "") -> None:
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
            if word.lower() in COMMANDS:
                getattr(self, COMMANDS[word.lower()].method)(rest.strip())
            else:
                self._play(line)
        except (TerminalError, NotationError, TurnError, RecordError, RosterError) as error:
            self._say(str(error))
        except OSError as error:
            self._say(f"{rest.strip()}: {error.strerror or error}")

    def _due(self) -> str:
        """Return the prompt."""
        if self.session.player is None:
            return "game over> "
        state, seat = self.session.state, self.session.player
        remaining = f" {state['placements_left']}" if state["phase"] == PLACE else ""
        what = {DISC: "disc", CROWN_CHOICE: "crown", PLACE: "place", MOVE: "move"}
        return f"{self._who(seat)}: {what[int(state['phase'])]}{remaining}> "

    def _say(self, text: str, first: str = "", rest: str = "") -> None:
        for line in text.splitlines() or [""]:
            wrapped = textwrap.wrap(
                line,
                WIDTH - 1,
                initial_indent=first,
                subsequent_indent=rest or first,
                break_long_words=False,
                break_on_hyphens=False,  # regions have some
            )
            self._show("\n".join(wrapped) + "\n")

    # -------------------------------------------------------------------------------- commands

    def _play(self, line: str) -> None:
        if self.session.over:
            raise TurnError(f"the game is over, {line[:40]!r} cannot be played")
        for action in read_moves(self.session.state, line):
            self.session.play(action)

    def _legal(self, _: str) -> None:
        state = self.session.state
        if self.session.over:
            return self._say(str(self.session.outcome()))
        if state["phase"] != MOVE:
            self._say(legal_text(state), first="  ")
        if state["phase"] == PLACE:
            held = state["reserves"][state["player"]]
            self._say(f"reserve: {paladin_words(held)}", first="  ")
            self._say("If the Emperor moved now:")
        if state["phase"] in (PLACE, MOVE):
            moving = state.copy()
            moving["phase"], moving["placements_left"] = MOVE, 0
            for step in emperor_steps(moving, self.session.team_names()):
                text = f"{move_text(moving, step.action)}: {step.text}"
                self._say(text, first="  ", rest=" " * 6)
        return None

    def _hint(self, spec: str) -> None:
        adviser = self._roster.make(spec or ADVISER)
        if self.session.over:
            raise TurnError("the game is over")
        try:
            hint = ask_hint(adviser, self.session.state)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a user's agent may raise anything
            raise TerminalError(f"{adviser.name} failed with {failures.message(error)}") from error
        state, teams = self.session.state, self.session.team_names()
        self._say(f"{hint.agent} would play {move_text(state, hint.choice)}")
        if hint.probabilities is not None:
            moves = [
                f"{move_text(state, action)} {hint.probabilities[action]:.0%}"
                for action in hint.ranked(_HINTED)
            ]
            self._say(f"probabilities: {', '.join(moves)}", first="  ")
        if hint.values is not None:
            shares = [f"{name} {share:.0%}" for name, share in zip(teams, hint.values, strict=True)]
            self._say(f"expected share of the win: {', '.join(shares)}", first="  ")

    def _undo(self, _: str) -> None:
        self.session.undo()
        self._report_from_here()
        self._board_shown = ()

    def _log(self, number: str) -> None:
        if number and not re.fullmatch("[0-9]{1,6}", number):
            raise TerminalError(f"log needs a number of turns, got {number[:40]!r}")
        record = self.session.record()
        turns = list(turn_texts(start_of(record), record["events"]))
        for turn in turns[max(len(turns) - int(number), 0) :] if number else turns:
            self._show_turn(turn)

    def _save(self, name: str) -> None:
        if not name or not name.isprintable():
            raise TerminalError("name a file: save FILE")
        path = Path(name)
        if path.exists() and path.resolve() not in self._own:
            raise TerminalError(f"{name} exists already; choose another name")
        write_records(path, [self.session.record()])
        self._own.add(path.resolve())
        self._saved = self.session.version
        self._say(f"saved as {name}")

    def _help(self, _: str) -> None:
        self._say("Moves: d3, crown=red, red>court, 2 blue>7-9, E+2; separate several by commas.")
        for command in COMMANDS.values():
            self._say(command.about, first=f"  {command.usage:12}", rest=" " * 14)

    def _quit(self, _: str) -> None:
        self._left = self.session.over or self._warned or self._saved == self.session.version
        if not self._left:
            self._warned = True
            self._say("The game is not saved: type save FILE first, or quit again.")


# ------------------------------------------------------------------------------------ games


def first_record(path: Path) -> Record:
    """Return the first game of a file of records.

    Raises:
        RecordError: when there is none.
        OSError: when the file cannot be read.
    """
    for _, record in read_records(path):
        return record
    raise RecordError(f"{path}: there is no game record in it")


def taken_up(record: Record, roster: Roster) -> Session:
    """Return a recorded game, with the agents, names and seed of the record.

    Raises:
        RecordError: when it does not replay, or has an impossible seed.
        RosterError: for an agent that the roster does not offer.
    """
    names = names_of(record) if "names" in record else None
    try:
        specs = [None if record["result"] else spec for spec in agents_of(record)]
        agents = [roster.make(spec) if spec else None for spec in specs]
        return Session(record, agents, names=names, seed=record.get("seed"))
    except (RecordError, RosterError):
        raise
    except ValueError as error:
        raise RecordError(str(error)) from None


def new_session(
    rules: Rules, roster: Roster, bots: Sequence[str], people: int, seed: int | None
) -> Session:
    """Return a new game: people in the first seats, then bots; the last bot fills the rest.

    Raises:
        RosterError: for a bot that cannot be made.
        ValueError: for too many people or bots, or an impossible seed.
    """
    seats = rules.players - people
    if not 0 <= people <= rules.players:
        raise ValueError(f"people must be from 0 to {rules.players}, got {people}")
    if len(bots) > seats:
        raise ValueError(
            f"there are {len(bots)} bots for {counted(seats, 'seat')}: {', '.join(bots)}"
        )
    specs = [*bots, *[bots[-1] if bots else ADVISER] * (seats - len(bots))]
    agents: list[Agent | None] = [None] * people
    agents += [roster.make(spec) for spec in specs]
    names = ["you"] if people == 1 else [f"player {seat}" for seat in range(people)]
    return Session.new(rules, agents, names=[*names, *[None] * seats], seed=seed)


def run(session: Session, roster: Roster) -> None:
    """Play on standard input and output."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no text are no move either
        sys.stdin.reconfigure(errors="surrogateescape")
    ask = _piped(sys.stdin, sys.stdout)
    if sys.stdin.isatty():
        ask = input
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # gives input() line editing
    Terminal(session, roster, ask, _write, colour=colour).run()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _piped(lines: TextIO, out: TextIO) -> Ask:
    """Yield the lines of a file or a pipe, echoed after the prompt."""
    waiting: Iterator[str] = iter(lines)

    def ask(prompt: str) -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        out.write(prompt + line.rstrip("\n") + "\n")
        return line

    return ask
