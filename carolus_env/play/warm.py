"""Compiling what the page needs, in the background, as the server starts.

Numba compiles each bot when it first decides, which takes seconds to half a minute, once on each
machine. Here a few decisions of every bot on offer are played beforehand, the engine first, then
the named levels. Where the machine code is kept from an earlier start, that takes a moment.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any, Final

from carolus_env.engine.rules import Rules
from carolus_env.play import views
from carolus_env.play.levels import LEVELS
from carolus_env.play.library import Replay
from carolus_env.play.preview import after_step
from carolus_env.play.review import review
from carolus_env.play.roster import OFFERED, Roster
from carolus_env.play.session import Session, hint
from carolus_env.system.stopping import Stop, Stopped

_ROUNDS: Final = 2
_LOOK: Final[views.Look] = {"layout": "tall", "theme": "auto"}


class Warmth:
    """How far the server is with compiling.

    Args:
        roster: whose agents are to be compiled; None: nothing is compiled beforehand.

    Attributes:
        stop: ends it, after what is being compiled.
    """

    def __init__(self, roster: Roster | None = None) -> None:
        self.stop = Stop()
        self._steps = [] if roster is None else _steps(roster)
        self._needed = min(len(self._steps), 1 + len({kind_of(spec) for spec in _level_specs()}))
        self._done = 0

    def start(self) -> None:
        """Begin, in a thread that does not keep the process alive."""
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Compile everything; returns when it is done, or stopped."""
        for _, _, work in self._steps:
            try:
                with self.stop.watched():
                    work()
            except Stopped:
                return
            except Exception:  # the page works without; who plays this bot is told
                traceback.print_exc()
            self._done += 1

    def view(self) -> dict[str, Any]:
        """For the page: how far it is.

        ``ready``: a game against any of the levels begins at once. ``done`` steps of ``all`` lead
        there, and ``text`` is a line about it. ``cold`` are bots that still have to be compiled, by
        the first word of their spec.
        """
        done, needed = min(self._done, self._needed), self._needed
        left = self._steps[self._done :]
        text = "" if done == needed else f"Preparing the engine, once on this machine: {left[0][1]}"
        return {
            "ready": done == needed,
            "done": done,
            "all": needed,
            "text": text,
            "cold": [kind for kind, _, _ in left if kind],
        }


def _steps(roster: Roster) -> list[tuple[str, str, Callable[[], None]]]:
    """What there is to do, first what the levels need.

    Each step is the kind of bot that can play then, what it is called, and the work.
    """
    specs: dict[str, str] = {}
    for spec in [*_level_specs(), *OFFERED]:
        specs.setdefault(kind_of(spec), spec)
    plays = [
        (kind, f"the bot {kind}", lambda spec=spec: _play(roster, spec))
        for kind, spec in specs.items()
    ]
    advises = [
        ("", f"the hints of {spec}", lambda spec=spec: _advise(roster, spec))
        for spec in {kind_of(spec): spec for spec in roster.advisers()}.values()
        if not roster.is_named(spec)
    ]
    back = ("", "looking back at a game", _look_back)
    return [("", "the game", _play_and_show), *plays, back, *advises]


def _level_specs() -> list[str]:
    return [level.agents[Rules().players] for level in LEVELS]


def kind_of(spec: str) -> str:
    """The first word of a spec: bots of one kind are compiled together."""
    return spec.partition(":")[0]


def _play_and_show() -> None:
    """A game of people, as the page shows it."""
    session = Session.new(Rules(max_rounds=_ROUNDS), [None, None], seed=1)
    while not session.over:
        views.game_view(session, _LOOK)
        for step in session.steps()[:1]:
            after_step(session.state, step.action)
        session.play(session.legal()[0].action)


def _look_back() -> None:
    """A review of a short game of people."""
    session = Session.new(Rules(max_rounds=_ROUNDS), [None, None], seed=1)
    while not session.over:
        session.play(session.legal()[0].action)
    review(Replay(session.record()), seats=[0])


def _play(roster: Roster, spec: str) -> None:
    agents = [roster.make(spec), roster.make(spec)]
    session = Session.new(Rules(max_rounds=_ROUNDS), agents, seed=1)
    while not session.over:
        session.ask_agent()


def _advise(roster: Roster, spec: str) -> None:
    """A hint for each kind of decision."""
    session, seen = Session.new(Rules(max_rounds=_ROUNDS), [None, None], seed=1), set[int]()
    adviser = roster.make(spec)
    while not session.over:
        if (phase := int(session.state["phase"])) not in seen:
            seen.add(phase)
            hint(adviser, session.state, 1)
        session.play(session.legal()[0].action)
