"""What a decision would do: a step of the Emperor, a paladin placed, a region settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    action_parts,
    move_action,
)
from carolus_env.engine.state import States, single, winning_teams
from carolus_env.notation import region_text
from carolus_env.notation.words import castle_words, counted, does
from carolus_env.play.words import per_team, winners_text

CASTLE: Final = "castle"


class Part(NamedTuple):
    """What counts for a team's strength: a clan, or ``castle``, and how many."""

    what: str
    number: int

    def __str__(self) -> str:
        plural = "s" if self.what == CASTLE and self.number > 1 else ""
        return f"{self.what}{plural} {self.number}"


Reckoning = tuple[tuple[Part, ...], ...]
"""For each team the parts of its strength on a region."""


def reckoning_of(state: np.void, region: int) -> Reckoning:
    """The reckoning of a region, counted clockwise from the Emperor's; its sums are the strengths.

    A part is what the engine's strengths lose without it, so the rule stays the engine's.
    """
    without = np.repeat(single(state), CLANS + 1)
    for clan in range(CLANS):
        without["region_paladins"][clan, clan] = 0
    without["region_castles"][CLANS] = 0
    whole = engine.strengths(state)[0][region]
    lost = np.array([whole - engine.strengths(other)[0][region] for other in without])
    names = (*CLAN_NAMES, CASTLE)
    return tuple(
        tuple(Part(name, number) for name, number in zip(names, team, strict=True) if number)
        for team in lost.T.tolist()
    )


def sum_words(parts: Sequence[Part]) -> str:
    """The parts of a strength: ``red 2 + castle 1``, or ``0``."""
    return " + ".join(map(str, parts)) or "0"


def against(reckoning: Reckoning, first: int) -> str:
    """One team's reckoning against the strengths of the others: ``red 2 + castle 1 against 2``."""
    others = [sum(part.number for part in parts) for parts in _others(reckoning, first)]
    return f"{sum_words(reckoning[first])} against {' and '.join(map(str, others))}"


def _others(reckoning: Reckoning, first: int) -> list[tuple[Part, ...]]:
    return [parts for team, parts in enumerate(reckoning) if team != first]


@dataclass(frozen=True, slots=True)
class EmperorStep:
    """One legal number of steps and its result.

    Attributes:
        action: its action number.
        steps: 1 to 5.
        region: where the Emperor stops, counted clockwise from where he stands.
        territories: of that region, as the notation names it.
        strengths: of each team there; they decide who owns it.
        reckoning: how they come about.
        owner_before: the team with castles there before, -1: none.
        owner: the team with castles there afterwards, -1: none.
        castles: there before.
        merged: territories of the region that it becomes part of; None: nothing merges.
        castles_after: castles in play of each team afterwards.
        over: whether the game ends.
        winners: the teams that win then.
    """

    action: int
    steps: int
    region: int
    territories: str
    strengths: tuple[int, ...]
    reckoning: Reckoning
    owner_before: int
    owner: int
    castles: int
    merged: str | None
    castles_after: tuple[int, ...]
    over: bool
    winners: tuple[int, ...]

    def text(self, teams: Sequence[str]) -> str:
        """The result in a few words.

        Args:
            teams: their names.
        """
        parts = [self._settled(teams)]
        if self.owner != self.owner_before:
            parts.append(f"now {counted(self.castles_after[self.owner], 'castle')}")
        if self.merged:
            parts.append(f"the regions merge into {self.merged}")
        if self.over:
            parts.append(f"the game ends, {winners_text(self.winners, teams)}")
        return "; ".join(parts)

    def _settled(self, teams: Sequence[str]) -> str:
        most = max(self.strengths)
        if most == 0:
            return "nothing changes, nobody controls a clan there"
        if self.strengths.count(most) > 1:
            tied = [
                sum_words(parts)
                for parts, strength in zip(self.reckoning, self.strengths, strict=True)
                if strength == most
            ]
            return f"nothing changes, tied at {most}: {' against '.join(tied)}"
        sums = against(self.reckoning, self.owner)
        if self.owner == self.owner_before:
            return f"{does(teams[self.owner], 'keep')} the region, {sums}"
        return f"{self.change(teams)}, {sums}"

    def change(self, teams: Sequence[str]) -> str:
        """Whose castles change, without the reason."""
        return castle_words(self.owner_before, self.owner, self.castles, teams)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a region, and the result if the Emperor stopped there now.

    Attributes:
        territories: of the region, as the notation names it.
        strengths: of each team there.
        reckoning: how they come about.
        owner: the team with castles there, -1: none.
        heir: the team that would own it after a stop, -1: none.
    """

    territories: str
    strengths: tuple[int, ...]
    reckoning: Reckoning
    owner: int
    heir: int

    def text(self, teams: Sequence[str]) -> str:
        """What a stop of the Emperor would do.

        Args:
            teams: their names.
        """
        if self.heir != self.owner:
            gain = "build a castle" if self.owner == NOBODY else "take over"
            return f"{teams[self.heir]} would {gain}"
        if max(self.strengths) == 0:
            return "nobody controls a clan here"
        tie = "a tie: " if self.strengths.count(max(self.strengths)) > 1 else ""
        if self.owner == NOBODY:
            return f"{tie}nobody would build"
        return f"{tie}{teams[self.owner]} would keep it"


def standing(state: np.void, region: int) -> Standing:
    """The state of a region.

    Args:
        state: the game.
        region: counted clockwise from the Emperor's.
    """
    index = (int(state["emperor"]) + region) % int(state["regions"])
    owner = int(state["region_owner"][index])
    powers, strongest = engine.strengths(state)
    return Standing(
        territories=region_text(state, region),
        strengths=tuple(powers[region].tolist()),
        reckoning=reckoning_of(state, region),
        owner=owner,
        heir=owner if strongest[region] == NOBODY else int(strongest[region]),
    )


@dataclass(frozen=True, slots=True)
class Placement:
    """One legal placement of a paladin and its result.

    Attributes:
        action: its action number.
        standing: of the region, with the paladin in it; None: it goes to court.
        text: the result in a few words.
    """

    action: int
    standing: Standing | None
    text: str


def placements(state: np.void, names: Sequence[str], teams: Sequence[str]) -> dict[int, Placement]:
    """Every legal placement by its action number; none outside phase ``place``.

    Args:
        state: the game.
        names: of the seats.
        teams: their names.
    """
    if state["phase"] != PLACE:
        return {}
    actions = engine.legal_actions(state)
    after = np.repeat(single(state), len(actions))
    engine.step(after, actions, roll=False)
    found = {}
    for action, then in zip(actions.tolist(), after, strict=True):
        _, _, clan, destination = action_parts(action)
        if destination:
            there = standing(then, destination - 1)
            found[action] = Placement(action, there, there.text(teams))
        else:
            found[action] = Placement(action, None, _control_text(state, then, clan, names))
    return found


def _control_text(before: np.void, after: np.void, clan: int, names: Sequence[str]) -> str:
    """How many paladins of a clan each player has at court, and who controls it."""
    courts = per_team(after["courts"][: len(names), clan].tolist(), names)
    old, new = (int(state["control"][clan]) for state in (before, after))
    if new == NOBODY:
        who = "nobody controls it"
    else:
        who = f"{names[new]} {'takes' if new != old else 'keeps'} control"
    return f"{CLAN_NAMES[clan]} at court: {courts}; {who}"


def emperor_steps(state: np.void) -> list[EmperorStep]:
    """Every legal step of the Emperor and its result, ascending; none outside phase ``move``."""
    if state["phase"] != MOVE:
        return []
    actions = map(move_action, range(1, int(state["discs_played"][state["player"]]) + 1))
    return [emperor_step(state, after_step(state, action)[0], action) for action in actions]


def after_step(state: np.void, action: int) -> States:
    """The game (a batch of one) after a step of the Emperor, before dice are rolled.

    Raises:
        ValueError: when it is not legal.
    """
    if state["phase"] != MOVE:
        raise ValueError("the Emperor is not moved now")
    after = single(state)
    engine.step(after, np.array([action]), roll=False)
    return after


def emperor_step(state: np.void, after: np.void, action: int) -> EmperorStep:
    """A step of the Emperor and its result, given the game before and after it."""
    steps = action_parts(action).number
    count = int(state["regions"])
    target = (int(state["emperor"]) + steps) % count
    return EmperorStep(
        action=action,
        steps=steps,
        region=steps % count,
        territories=region_text(state, steps % count),
        strengths=tuple(engine.strengths(state)[0][steps % count].tolist()),
        reckoning=reckoning_of(state, steps % count),
        owner_before=int(state["region_owner"][target]),
        owner=int(after["region_owner"][after["emperor"]]),
        castles=int(state["region_castles"][target]),
        merged=region_text(after, 0) if after["regions"] < count else None,
        castles_after=tuple(after["castles"][: state["teams"]].tolist()),
        over=bool(after["phase"] == OVER),
        winners=tuple(winning_teams(after)),
    )
