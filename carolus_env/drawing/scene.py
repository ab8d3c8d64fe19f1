"""The content of a drawing: a state, read once, and the options that concern it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    DISCS,
    NOBODY,
    TERRITORIES,
    Rules,
    action_parts,
    move_action,
)
from carolus_env.notation.vocabulary import team_names
from carolus_env.records import position

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scene:
    """A game to be drawn or described; arguments as for `board.board_svg`.

    Attributes:
        state, rules: the game and its rules.
        data: the state as `position.to_dict` gives it.
        phase, player: those in ``data``.
        names, teams: names of the seats and of the teams.
        legal: legal actions to highlight; empty: none.
        last: the last decision, described in words; None where there is none.
        marks: the decisions that are marked.
        new_castles: territories whose castle is another team's than before the first of them.

    Raises:
        ValueError: for a wrong number of names.
    """

    def __init__(
        self,
        state: np.void,
        names: Sequence[str] | None = None,
        *,
        legal: bool = False,
        last: tuple[np.void, int] | None = None,
        turn: Sequence[tuple[np.void, int]] | None = None,
    ) -> None:
        self.state = state
        self.rules: Rules = engine.rules_of(state)
        self.data = position.to_dict(state)
        self.phase: str = self.data["phase"]
        self.player: int | None = self.data["player"]
        players = self.rules.players
        if names is not None and len(names) != players:
            raise ValueError(f"names must be of {players} players, got {len(names)}")
        if names is None:
            names = [f"player {seat}" for seat in range(players)]
        self.names = [_NOT_IN_XML.sub("\ufffd", str(name)) for name in names]
        self.teams = team_names(self.rules, self.names)
        self.legal: list[int] = engine.legal_actions(state).tolist() if legal else []
        self.last = None if last is None else Decision(*last)
        if turn is None:
            self.marks = [] if self.last is None else [self.last]
        else:
            self.marks = [Decision(*decision) for decision in turn]
        self.new_castles: list[int] = []
        if self.marks:
            before, now = owners(self.marks[0].before), owners(state)
            self.new_castles = [t for t in range(TERRITORIES) if before[t] != now[t] != NOBODY]

    def steps_to(self, region: int) -> list[int]:
        """Return the legal steps that lead the Emperor to ``region``; none if unreachable."""
        count = len(self.data["regions"])
        steps = range(1, DISCS + 1)
        return [n for n in steps if n % count == region and move_action(n) in self.legal]

    def group(
        self, kind: str, actions: list[int], attributes: str = "", *, numbered: bool = True
    ) -> str:
        """Return a group's start tag, selectable where one of ``actions`` is legal."""
        result = [action for action in actions if action in self.legal]
        if not result:
            return f'<g class="{kind}"{attributes}>'
        number = f' data-action="{result[0]}"' if numbered else ""
        return f'<g class="{kind} open"{attributes}{number}>'


class Decision:
    """A decision, and what it touched.

    Attributes:
        before, action: the state before it, and its action number.
        seat: the player's.
        territories: those of the region it concerned; empty: none.
        court: the seat and the clan of a paladin that was played to a court, or None.
        clan: the clan of a paladin that was played to a region, or None.
        disc: the seat and the number of a disc that was played, or None.
        walk: the territories of the region that the Emperor left; empty where he was not moved.
    """

    def __init__(self, before: np.void, action: int) -> None:
        self.before, self.action = before, action
        self.seat = int(before["player"])
        self.territories: Sequence[int] = ()
        self.walk: Sequence[int] = ()
        self.court: tuple[int, int] | None = None
        self.clan: int | None = None
        self.disc: tuple[int, int] | None = None
        kind, number, clan, destination = action_parts(action)
        if kind == "place" and destination == 0:
            self.court = (self.seat, clan)
        elif kind == "place":
            self.territories, self.clan = _territories(before, destination - 1), clan
        elif kind == "move":
            self.walk = _territories(before, 0)
            self.territories = _territories(before, number)
        elif kind == "disc":
            self.disc = (self.seat, number)


def _territories(state: np.void, region: int) -> Sequence[int]:
    """Return the territories of a region, clockwise; regions are counted from the Emperor's."""
    count = int(state["regions"])
    at = (int(state["emperor"]) + region) % count
    first, end = (int(state["region_first"][k % count]) for k in (at, at + 1))
    size = (end - first) % TERRITORIES or TERRITORIES
    return [(first + k) % TERRITORIES for k in range(size)]


def owners(state: np.void) -> list[int]:
    """Return the team with a castle on each territory, `NOBODY` where there is none."""
    result = [NOBODY] * TERRITORIES
    for region in range(int(state["regions"])):
        at = (int(state["emperor"]) + region) % int(state["regions"])
        for territory in _territories(state, region):
            result[territory] = int(state["region_owner"][at])
    return result
