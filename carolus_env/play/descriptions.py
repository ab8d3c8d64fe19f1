"""Actions, their results, regions and the end of a game in words, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    CLAN_NAMES,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    action_parts,
)
from carolus_env.engine.state import single, winning_teams
from carolus_env.notation import event_text, region_text
from carolus_env.notation.vocabulary import castle_words, counted, does, team_names

# ------------------------------------------------------------------------------------ actions


def action_label(state: np.void, action: int) -> str:
    """Name a legal action as a button does: ``disc 3``, ``red``, ``2 steps to 7-9``, ``court``."""
    kind, number, clan, destination = action_parts(action)
    if kind == "disc":
        return f"disc {number}"
    if kind == "crown":
        return CLAN_NAMES[clan]
    if kind == "move":
        where = region_text(state, number % int(state["regions"]))
        return f"{counted(number, 'step')} to {where}"
    return "court" if destination == 0 else region_text(state, destination - 1)


def action_words(state: np.void, action: int) -> str:
    """Describe a legal action, beginning with a verb: ``place a red paladin at court``."""
    kind, _, clan, destination = action_parts(action)
    label = action_label(state, action)
    if kind == "disc":
        return f"play {label}"
    if kind == "crown":
        return f"choose {label} for the crown"
    if kind == "move":
        return f"move the Emperor {label}"
    where = "at court" if destination == 0 else f"in region {label}"
    return f"place a {CLAN_NAMES[clan]} paladin {where}"


def third_person(words: str) -> str:
    """Return the same words as they follow a name: ``places a red paladin at court``."""
    verb, _, rest = words.partition(" ")
    return f"{verb}s {rest}"


def per_team(numbers: Sequence[object], names: Sequence[str]) -> str:
    """Return a number for each name: ``3 for Ann, 1 for Bob``."""
    return ", ".join(f"{n} for {name}" for n, name in zip(numbers, names, strict=True))


# ------------------------------------------------------------------------------------ results


class EmperorStep(NamedTuple):
    """A legal move of the Emperor and its result.

    Attributes:
        action: the step's action number.
        region: the region where he stops, counted clockwise from where he stands.
        owner: the team with castles there afterwards; `NOBODY`: none.
        changes: True: another team than before.
        text: the result in words.
    """

    action: int
    region: int
    owner: int
    changes: bool
    text: str


def emperor_steps(state: np.void, teams: Sequence[str]) -> list[EmperorStep]:
    """List the legal moves of the Emperor, ascending; none outside phase ``move``.

    Args:
        state: the game.
        teams: the teams' names.
    """
    if state["phase"] != MOVE:
        return []
    actions = engine.legal_actions(state)
    after = np.repeat(single(state), len(actions))
    engine.step(after, actions, roll=False)
    return [
        emperor_step(state, then, action, teams)
        for action, then in zip(actions.tolist(), after, strict=True)
    ]


def emperor_step(before: np.void, after: np.void, action: int, teams: Sequence[str]) -> EmperorStep:
    """Describe a move of the Emperor, given the game before and after it."""
    count = int(before["regions"])
    region = action_parts(action).number % count
    target = (int(before["emperor"]) + region) % count
    owner_before = int(before["region_owner"][target])
    owner = int(after["region_owner"][after["emperor"]])
    strengths = engine.strengths(before)[0][region].tolist()
    changes = owner != owner_before
    most = max(strengths)
    if most == 0:
        parts = ["nothing changes, nobody controls a clan there"]
    elif strengths.count(most) > 1:
        parts = [f"nothing changes, tied at {most}"]
    elif not changes:
        parts = [f"{does(teams[owner], 'keep')} the region, {_against(strengths, owner)}"]
    else:
        taken = castle_words(owner_before, owner, int(before["region_castles"][target]), teams)
        parts = [f"{taken}, {_against(strengths, owner)}"]
        parts.append(f"now {counted(int(after['castles'][owner]), 'castle')}")
    if after["regions"] < count:
        parts.append(f"the regions merge into {region_text(after, 0)}")
    if after["phase"] == OVER:
        parts.append(f"the game ends, {winners_text(winning_teams(after), teams)}")
    return EmperorStep(action, region, owner, changes, "; ".join(parts))


def _against(numbers: Sequence[int], first: int) -> str:
    """Compare one team's number with those of the others: ``3 against 1 and 2``."""
    return f"{numbers[first]} against {_others(numbers, first)}"


def _others(numbers: Sequence[int], first: int) -> str:
    return " and ".join(str(number) for team, number in enumerate(numbers) if team != first)


class Region(NamedTuple):
    """A region, and what would happen if the Emperor stopped there now.

    Attributes:
        territories: territories of the region, as the notation names it.
        strengths: strength of each team.
        result: result of a stop, in words.
    """

    territories: str
    strengths: list[int]
    result: str


def regions_of(state: np.void, teams: Sequence[str]) -> list[Region]:
    """List the regions clockwise from the Emperor's.

    Args:
        state: the game.
        teams: the teams' names.
    """
    powers, strongest = engine.strengths(state)
    count = int(state["regions"])
    regions = []
    for region in range(count):
        owner = int(state["region_owner"][(int(state["emperor"]) + region) % count])
        strengths, heir = powers[region].tolist(), int(strongest[region])
        tie = "a tie: " if strengths.count(max(strengths)) > 1 else ""
        if heir not in (NOBODY, owner):
            result = f"{teams[heir]} would {'build a castle' if owner == NOBODY else 'take over'}"
        elif max(strengths) == 0:
            result = "nobody controls a clan here"
        elif owner == NOBODY:
            result = f"{tie}nobody would build"
        else:
            result = f"{tie}{teams[owner]} would keep it"
        regions.append(Region(region_text(state, region), strengths, result))
    return regions


def placements(
    state: np.void, names: Sequence[str], teams: Sequence[str]
) -> dict[int, Region | str]:
    """Return the result of every legal placement of a paladin; none outside phase ``place``.

    Args:
        state: the game.
        names: the seats' names.
        teams: the teams' names.

    Returns:
        By action number the region with the paladin in it, or the control of a clan in words.
    """
    if state["phase"] != PLACE:
        return {}
    actions = engine.legal_actions(state)
    after = np.repeat(single(state), len(actions))
    engine.step(after, actions, roll=False)
    result: dict[int, Region | str] = {}
    for action, then in zip(actions.tolist(), after, strict=True):
        _, _, clan, destination = action_parts(action)
        if destination:
            result[action] = regions_of(then, teams)[destination - 1]
        else:
            result[action] = _control_text(state, then, clan, names)
    return result


def _control_text(before: np.void, after: np.void, clan: int, names: Sequence[str]) -> str:
    """Say how many paladins of a clan each player has at court, and who controls it."""
    courts = per_team(after["courts"][: len(names), clan].tolist(), names)
    old, new = (int(state["control"][clan]) for state in (before, after))
    if new == NOBODY:
        who = "nobody controls it"
    else:
        who = f"{names[new]} {'takes' if new != old else 'keeps'} control"
    return f"{CLAN_NAMES[clan]} at court: {courts}; {who}"


# ------------------------------------------------------------------------------------ the log


class LogLine(NamedTuple):
    """An event of a game.

    Attributes:
        event: the event's index in the record.
        seat: the player's.
        round: 0 is the set-up.
        text: the event in the notation.
        words: the event in words that follow the player's name.
    """

    event: int
    seat: int
    round: int
    text: str
    words: str


def log_line(
    before: np.void, after: np.void, index: int, event: Mapping[str, Any], teams: Sequence[str]
) -> LogLine:
    """Describe an event of a record.

    Args:
        before, after: the game without it and with it.
        index: the event's index in the record.
        event: a roll or a decision.
        teams: the teams' names.
    """
    text = event_text(before, event, after)
    if "roll" in event:
        verb, *faces = text.split()
        words = f"{verb} {', '.join(faces)}"
    else:
        action = event["action"]
        words = third_person(action_words(before, action))
        kind, _, clan, _ = action_parts(action)
        if kind == "place" and after["control"][clan] != before["control"][clan]:
            words += f", gaining control of {CLAN_NAMES[clan]}"
        elif kind == "move":
            words += f": {emperor_step(before, after, action, teams).text}"
    return LogLine(index, event["player"], int(before["round"]), text, words)


# ------------------------------------------------------------------------------------ the end


def winners_text(winners: Sequence[int], teams: Sequence[str]) -> str:
    """Return ``Ann won``, ``Ann and Bob share the win``, or ``nobody won``."""
    names = [teams[team] for team in winners] or ["nobody"]
    return f"{' and '.join(names)} {'share the win' if len(names) > 1 else 'won'}"


def outcome(state: np.void, names: Sequence[str]) -> str:
    """Say in a sentence how a game that is over ended.

    Args:
        state: the game.
        names: the seats' names.
    """
    rules, winners = engine.rules_of(state), winning_teams(state)
    teams = team_names(rules, names)
    who = winners_text(winners, teams)
    if not winners:
        return f"The game reached its limit of {counted(int(state['round']), 'round')}; {who}."
    castles = state["castles"][: len(teams)].tolist()
    most = castles[winners[0]]
    if most >= rules.castles_to_win:
        return f"{who} with {most} castles."
    score = "each" if len(winners) > 1 else f"to {_others(castles, winners[0])}"
    return f"{who} with {most} castles {score}; fewer than 4 regions are left."
