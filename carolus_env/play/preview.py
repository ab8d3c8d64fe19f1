"""What a decision would do: steps of the Emperor, paladins, and who is the strongest where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    CLAN_NAMES,
    DESTINATIONS,
    FIRST_MOVE,
    FIRST_PLACE,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    move_action,
)
from carolus_env.engine.state import STATE, States, winning_teams
from carolus_env.notation import region_text


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
        parts = [f"{self._settled(teams)} ({powers_text(self.strengths, teams)})"]
        if self.merged:
            parts.append(f"merges into {self.merged}")
        if self.over:
            parts.append(f"the game ends, {' and '.join(teams[team] for team in self.winners)} won")
        return "; ".join(parts)

    def _settled(self, teams: Sequence[str]) -> str:
        if self.owner == self.owner_before:
            return "nothing changes"
        heir = f"{teams[self.owner]}, {self.castles_after[self.owner]} in play"
        if self.owner_before == NOBODY:
            return f"a castle for {heir}"
        castles = "a castle" if self.castles == 1 else f"{self.castles} castles"
        return f"{castles} from {teams[self.owner_before]} to {heir}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a region stands: what a stop of the Emperor would come to.

    Attributes:
        territories: of the region, as the notation names it.
        strengths: of each team there.
        owner: team with castles there, -1: none.
        heir: team that would own it if the Emperor stopped there now, -1: none.
    """

    territories: str
    strengths: tuple[int, ...]
    owner: int
    heir: int

    def text(self, teams: Sequence[str]) -> str:
        """What a stop of the Emperor would do, with the names of the teams."""
        if self.heir != self.owner:
            does = "would build here" if self.owner == NOBODY else "would take it over"
            return f"{teams[self.heir]} {does}"
        if max(self.strengths) == 0:
            return "nobody controls a clan here"
        tie = "a tie: " if self.strengths.count(max(self.strengths)) > 1 else ""
        return tie + ("nobody builds" if self.owner == NOBODY else f"{teams[self.owner]} keeps it")


def standing(state: np.void, region: int) -> Standing:
    """Of the region that is counted so, clockwise from the Emperor."""
    index = (int(state["emperor"]) + region) % int(state["regions"])
    owner = int(state["region_owner"][index])
    powers, strongest = engine.strengths(state)
    heir = owner if strongest[region] == NOBODY else int(strongest[region])
    return Standing(region_text(state, region), tuple(powers[region].tolist()), owner, heir)


@dataclass(frozen=True, slots=True)
class Placement:
    """One legal place of a paladin and its result.

    Attributes:
        action: its action number.
        standing: of the region, with the paladin in it; None: it goes to the court.
        text: the result in a few words.
    """

    action: int
    standing: Standing | None
    text: str


def placements(state: np.void, names: Sequence[str], teams: Sequence[str]) -> dict[int, Placement]:
    """What each legal place of a paladin would do; none unless one is to be played.

    Args:
        state: the game.
        names: of the seats.
        teams: their names.
    """
    if state["phase"] != PLACE:
        return {}
    actions = engine.legal_actions(state)
    after = np.repeat(np.array(state, STATE).reshape(1), len(actions))
    engine.step(after, actions, roll=False)
    found = {}
    for action, then in zip(actions.tolist(), after, strict=True):
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        if destination:
            there = standing(then, destination - 1)
            found[action] = Placement(action, there, there.text(teams))
        else:
            found[action] = Placement(action, None, _control_text(state, then, clan, names))
    return found


def _control_text(before: np.void, after: np.void, clan: int, names: Sequence[str]) -> str:
    """Who has how many of a clan at court, and who controls it."""
    courts = ", ".join(
        f"{after['courts'][seat, clan]} of {name}" for seat, name in enumerate(names)
    )
    old, new = (int(state["control"][clan]) for state in (before, after))
    if new == NOBODY:
        who = "nobody controls it"
    else:
        who = f"{names[new]} {'takes control' if new != old else 'controls it'}"
    return f"{CLAN_NAMES[clan]} at court: {courts}; {who}"


def powers_text(strengths: Sequence[int], teams: Sequence[str]) -> str:
    """Strengths with names: ``3 for Ann, 1 for Bob``."""
    return ", ".join(f"{n} for {name}" for n, name in zip(strengths, teams, strict=True))


def emperor_steps(state: np.void) -> list[EmperorStep]:
    """Every legal step of the Emperor in a game (``states[i]``) in phase ``move``, ascending.

    In any other phase there are none.
    """
    if state["phase"] != MOVE:
        return []
    actions = map(move_action, range(1, int(state["discs_played"][state["player"]]) + 1))
    return [emperor_step(state, after_step(state, action)[0], action) for action in actions]


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


def emperor_step(state: np.void, after: np.void, action: int) -> EmperorStep:
    """A step of the Emperor and its result, from the game before it and after it."""
    steps = action - FIRST_MOVE + 1
    count = int(state["regions"])
    target = (int(state["emperor"]) + steps) % count
    return EmperorStep(
        action=action,
        steps=steps,
        region=steps % count,
        territories=region_text(state, steps % count),
        strengths=tuple(engine.strengths(state)[0][steps % count].tolist()),
        owner_before=int(state["region_owner"][target]),
        owner=int(after["region_owner"][after["emperor"]]),
        castles=int(state["region_castles"][target]),
        merged=region_text(after, 0) if after["regions"] < count else None,
        castles_after=tuple(after["castles"][: state["teams"]].tolist()),
        over=bool(after["phase"] == OVER),
        winners=tuple(winning_teams(after)),
    )
