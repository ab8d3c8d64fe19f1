"""What each step of the Emperor would do: castles, mergers, the end of the game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carolus_env import engine
from carolus_env.notation import region_text
from carolus_env.rules import CLANS, MOVE, NOBODY, OVER, move_action
from carolus_env.state import STATE, States, winning_teams


@dataclass(frozen=True, slots=True)
class EmperorStep:
    """One legal number of steps and its result.

    Attributes:
        action: its action number.
        steps: 1 to 5.
        region: where he stops, counted clockwise from where he stands.
        territories: of that region, as the notation names it.
        strengths: of each team there, which decide who owns it.
        owner_before: team with castles there before, -1: none.
        owner: team with castles there afterwards, -1: none.
        castles: on that region before; a first castle is one.
        merged: territories of the region that it becomes part of; None: nothing merges.
        castles_after: castles in play of each team afterwards.
        over: whether the game ends at once.
        winners: teams that win then.
    """

    action: int
    steps: int
    region: int
    territories: str
    strengths: tuple[int, ...]
    owner_before: int
    owner: int
    castles: int
    merged: str | None
    castles_after: tuple[int, ...]
    over: bool
    winners: tuple[int, ...]

    def text(self, teams: Sequence[str]) -> str:
        """The result in a few words, with the names of the teams."""
        parts = [self._settled(teams)]
        if self.merged:
            parts.append(f"merges into {self.merged}")
        if self.over:
            parts.append(f"the game ends, {' and '.join(teams[team] for team in self.winners)} won")
        return "; ".join(parts)

    def _settled(self, teams: Sequence[str]) -> str:
        if self.owner == self.owner_before:
            powers = ", ".join(
                f"{name} {power}" for name, power in zip(teams, self.strengths, strict=True)
            )
            return f"nothing changes ({powers})"
        heir = f"{teams[self.owner]}, {self.castles_after[self.owner]} in play"
        if self.owner_before == NOBODY:
            return f"a castle for {heir}"
        castles = "a castle" if self.castles == 1 else f"{self.castles} castles"
        return f"{castles} from {teams[self.owner_before]} to {heir}"


def emperor_steps(state: np.void) -> list[EmperorStep]:
    """Every legal step of the Emperor in a game (``states[i]``) in phase ``move``, ascending.

    In any other phase there are none.
    """
    if state["phase"] != MOVE:
        return []
    return [
        _step(state, steps) for steps in range(1, int(state["discs_played"][state["player"]]) + 1)
    ]


def after_step(state: np.void, action: int) -> States:
    """The game (a batch of one) after a step of the Emperor, before any dice fall.

    Raises:
        ValueError: when the action is no legal step.
    """
    if state["phase"] != MOVE:
        raise ValueError("the Emperor does not move now")
    after = np.array(state, STATE).reshape(1)
    engine.step(after, np.array([action]), roll=False)
    return after


def _step(state: np.void, steps: int) -> EmperorStep:
    after = after_step(state, move_action(steps))[0]
    count = int(state["regions"])
    target = (int(state["emperor"]) + steps) % count
    before = int(state["region_owner"][target])
    return EmperorStep(
        action=move_action(steps),
        steps=steps,
        region=steps % count,
        territories=region_text(state, steps % count),
        strengths=_strengths(state, target),
        owner_before=before,
        owner=int(after["region_owner"][after["emperor"]]),
        castles=int(state["region_castles"][target]),
        merged=region_text(after, 0) if after["regions"] < count else None,
        castles_after=tuple(after["castles"][: state["teams"]].tolist()),
        over=bool(after["phase"] == OVER),
        winners=tuple(winning_teams(after)),
    )


def _strengths(state: np.void, region: int) -> tuple[int, ...]:
    """Paladins of the clans that each team controls, and its castles there."""
    powers = [0] * int(state["teams"])
    for clan in range(CLANS):
        if (seat := int(state["control"][clan])) != NOBODY:
            powers[state["team"][seat]] += int(state["region_paladins"][clan, region])
    if (owner := int(state["region_owner"][region])) != NOBODY:
        powers[owner] += int(state["region_castles"][region])
    return tuple(powers)
