"""The content of a drawing: a state, read once, and the options that concern it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import DISCS, NOBODY, TERRITORIES, action_parts, move_action
from carolus_env.notation.descriptions import team_names
from carolus_env.records import position

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scene:
    """A game to be drawn; arguments as for `board.board_svg`."""

    def __init__(
        self,
        state: np.void,
        names: Sequence[str] | None,
        legal: bool,
        last: tuple[np.void, int] | None,
        turn: Sequence[tuple[np.void, int]] | None,
    ) -> None:
        self.state, self.rules = state, engine.rules_of(state)
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
        self.last = None if last is None else MarkedMove(*last)
        self.marks = [MarkedMove(*decision) for decision in turn or []]
        if turn is None and self.last:
            self.marks = [self.last]
        before = _owners(position.to_dict(self.marks[0].before)) if self.marks else {}
        # Territories whose castle is another team's than before the marked decisions.
        self.new_castles = [
            territory
            for territory, owner in _owners(self.data).items()
            if owner != NOBODY and owner != before.get(territory, owner)
        ]

    def steps_to(self, region: int) -> list[int]:
        """Return the legal steps that lead the Emperor to ``region``; none if unreachable."""
        steps, count = range(1, DISCS + 1), len(self.data["regions"])
        return [n for n in steps if n % count == region and move_action(n) in self.legal]

    def group(
        self, kind: str, actions: list[int], attributes: str = "", *, numbered: bool = True
    ) -> str:
        """Return a group's start tag, selectable where one of ``actions`` is legal."""
        result = [action for action in actions if action in self.legal]
        number = f' data-action="{result[0]}"' if result and numbered else ""
        return f'<g class="{kind}{" open" if result else ""}"{attributes}{number}>'


class MarkedMove:
    """A decision, and what it touched."""

    def __init__(self, before: np.void, action: int) -> None:
        self.before, self.action, self.seat = before, action, int(before["player"])
        kind, number, clan, destination = action_parts(action)
        self.disc = (self.seat, number) if kind == "disc" else None
        self.court = (self.seat, clan) if kind == "place" and destination == 0 else None
        to_region = kind == "place" and destination > 0
        self.clan = clan if to_region else None  # of a paladin to a region
        self.walk = self._territories(0) if kind == "move" else []  # those that the Emperor left
        self.territories: list[int] = []  # of the region that it concerned
        if kind == "move" or self.clan is not None:
            self.territories = self._territories(number if kind == "move" else destination - 1)

    def _territories(self, region: int) -> list[int]:
        """Return the territories of a region, counted from the Emperor's, clockwise."""
        count, firsts = int(self.before["regions"]), self.before["region_first"]
        at = (int(self.before["emperor"]) + region) % count
        first, after = int(firsts[at]), int(firsts[(at + 1) % count])
        size = (after - first) % TERRITORIES
        return [(first + k) % TERRITORIES for k in range(size)]


def _owners(data: dict[str, Any]) -> dict[int, int]:
    """Return the team with a castle on each territory, `NOBODY` where there is none."""
    return {
        territory: region["owner"]
        for region in data["regions"]
        for territory in region["territories"]
    }
