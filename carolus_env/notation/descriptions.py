"""Positions, actions, their results and endings in words: for pictures, the page, the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.rules import (
    BY_FORFEIT,
    CLAN_NAMES,
    CROWN_CHOICE,
    DISC,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    ROLL,
    action_parts,
)
from carolus_env.engine.state import States, single, winning_teams
from carolus_env.notation.moves import event_text, region_text
from carolus_env.notation.vocabulary import counted, team_names

# ------------------------------------------------------------------------------------ positions


def due(state: np.void) -> str:
    """Return what is due as it follows the name of the player to move: ``plays 3 paladins``."""
    return {
        DISC: "plays a disc",
        CROWN_CHOICE: "decides a crown",
        PLACE: f"plays {counted(int(state['placements_left']), 'paladin')}",
        MOVE: "moves the Emperor",
        ROLL: f"rolls {counted(int(state['dice_due']), 'die')}",
    }[int(state["phase"])]


def paladin_words(counts: Iterable[int]) -> str:
    """Return ``2 red, 1 blue``; ``none`` where there are none."""
    return ", ".join(f"{n} {CLAN_NAMES[clan]}" for clan, n in enumerate(counts) if n) or "none"


def board_words(state: np.void, names: Sequence[str]) -> list[str]:
    """Describe one game for screen readers: a sentence for each region, then for each seat."""
    teams = team_names(engine.rules_of(state), names)
    regions = [region_words(state, region, teams) for region in range(int(state["regions"]))]
    return regions + [_seat_words(state, seat, name) for seat, name in enumerate(names)]


def region_words(state: np.void, region: int, teams: Sequence[str]) -> str:
    """Return a region's territories, paladins, castles, and the Emperor, in words."""
    at = (int(state["emperor"]) + region) % int(state["regions"])
    territories = region_text(state, region)
    word = "territories" if "-" in territories else "territory"
    words = f"{word} {territories}: {paladin_words(state['region_paladins'][:, at])}"
    owner = int(state["region_owner"][at])
    if owner != NOBODY:
        words += f", {counted(int(state['region_castles'][at]), 'castle')} of {teams[owner]}"
    return words + (", the Emperor" if region == 0 else "")


def _seat_words(state: np.void, seat: int, name: str) -> str:
    rules = engine.rules_of(state)
    clans = [CLAN_NAMES[clan] for clan in np.flatnonzero(state["control"] == seat)]
    castles = counted(int(state["castles"][rules.team(seat)]), "castle")
    return (
        f"{name}, {castles} of {rules.castles_to_win}: controls {', '.join(clans) or 'no clan'}; "
        f"court {paladin_words(state['courts'][seat])}; "
        f"reserve {paladin_words(state['reserves'][seat])}"
    )


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
    """A legal move of the Emperor and its result."""

    action: int  # the step's action number
    region: int  # the region where he stops, counted clockwise from where he stands
    owner: int  # the team with castles there afterwards; `NOBODY`: none
    changes: bool  # True: another team than before
    effect: str  # the result in a few words: ``Ann builds a castle``
    text: str  # the effect, its reason, and what else follows


def _after(state: np.void, actions: Sequence[int] | npt.NDArray[np.int64]) -> States:
    """Return the game after each of several actions, before dice are rolled."""
    after = np.repeat(single(state), len(actions))
    engine.step(after, np.array(actions), roll=False)
    return after


def emperor_steps(state: np.void, teams: Sequence[str]) -> list[EmperorStep]:
    """List the legal moves of the Emperor, ascending; none outside phase ``move``."""
    if state["phase"] != MOVE:
        return []
    actions = engine.legal_actions(state)
    after = _after(state, actions)
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
    effect, reason = "nothing changes", f"{strengths[owner]} against {_others(strengths, owner)}"
    if most == 0:
        reason = "nobody controls a clan there"
    elif strengths.count(most) > 1:
        reason = f"tied at {most}"
    elif not changes:
        effect = f"{_does(teams[owner], 'keep')} the region"
    else:
        effect = f"{_does(teams[owner], 'build')} a castle"
        if owner_before != NOBODY:
            castles = int(before["region_castles"][target])
            taken = "a castle" if castles == 1 else f"{castles} castles"
            effect = f"{_does(teams[owner], 'take')} {taken} from {teams[owner_before]}"
        reason += f"; now {counted(int(after['castles'][owner]), 'castle')}"
    parts = [f"{effect}, {reason}"]
    if after["regions"] < count:
        parts.append(f"the regions merge into {region_text(after, 0)}")
    if after["phase"] == OVER:
        parts.append(f"the game ends, {ending(after, teams).who}")
    return EmperorStep(action, region, owner, changes, effect, "; ".join(parts))


def _does(team: str, verb: str) -> str:
    """Return a team and its verb: ``Ann builds``, and of partners ``Ann and Bob build``."""
    return f"{team} {verb}" if " and " in team else f"{team} {verb}s"


def _others(numbers: Sequence[int], first: int) -> str:
    return " and ".join(str(number) for team, number in enumerate(numbers) if team != first)


class Region(NamedTuple):
    """A region, and what would happen if the Emperor stopped there now."""

    territories: str  # territories of the region, as the notation names it
    strengths: list[int]  # strength of each team
    result: str  # result of a stop, in words


def regions_of(state: np.void, teams: Sequence[str]) -> list[Region]:
    """List the regions clockwise from the Emperor's."""
    powers, heirs = engine.strengths(state)
    regions = range(int(state["regions"]))
    return [_region(state, region, teams, powers, heirs) for region in regions]


def _region(state: np.void, region: int, teams: Sequence[str], powers: Any, heirs: Any) -> Region:
    owner = int(state["region_owner"][(int(state["emperor"]) + region) % int(state["regions"])])
    strengths, heir = powers[region].tolist(), int(heirs[region])
    tie = "a tie: " if strengths.count(max(strengths)) > 1 else ""
    if heir not in (NOBODY, owner):
        result = f"{teams[heir]} would {'build a castle' if owner == NOBODY else 'take over'}"
    elif max(strengths) == 0:
        result = "nobody controls a clan here"
    elif owner == NOBODY:
        result = f"{tie}nobody would build"
    else:
        result = f"{tie}{teams[owner]} would keep it"
    return Region(region_text(state, region), strengths, result)


def placements(
    state: np.void, names: Sequence[str], teams: Sequence[str]
) -> dict[int, Region | str]:
    """Return the result of every legal placement of a paladin; none outside phase ``place``."""
    if state["phase"] != PLACE:
        return {}
    actions = engine.legal_actions(state)
    after = _after(state, actions)
    result: dict[int, Region | str] = {}
    for action, then in zip(actions.tolist(), after, strict=True):
        _, _, clan, destination = action_parts(action)
        if destination:
            result[action] = _region(then, destination - 1, teams, *engine.strengths(then))
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


def decision_words(state: np.void, action: int, name: str, teams: Sequence[str]) -> list[str]:
    """Describe a decision for a picture: in one short line, and its effects, if any, in another."""
    kind, _, clan, _ = action_parts(action)
    label = action_label(state, action)
    if kind == "disc":
        return [f"{name} plays {label}"]
    if kind == "crown":
        return [f"{name} takes {label} for a crown"]
    after = _after(state, [action])[0]
    if kind == "place":
        said = f"{name} places {CLAN_NAMES[clan]} {'at' if label == 'court' else 'in'} {label}"
        gains = after["control"][clan] != state["control"][clan]
        return [said, f"and gains control of {CLAN_NAMES[clan]}"][: 1 + gains]
    where = label.rpartition(" ")[2]
    step = emperor_step(state, after, action, teams)
    return [f"{name} moves the Emperor to {where}", step.effect]


class LogLine(NamedTuple):
    """An event of a game."""

    event: int  # the event's index in the record
    seat: int  # the player's
    round: int  # 0 is the set-up
    text: str  # the event in the notation
    words: str  # the event in words that follow the player's name


def log_line(
    before: np.void, after: np.void, index: int, event: Mapping[str, Any], teams: Sequence[str]
) -> LogLine:
    """Describe an event of a record."""
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


class Ending(NamedTuple):
    """An ending: who won, how, and the reason; the last two can be empty."""

    who: str
    how: str
    why: str


def ending(state: np.void, teams: Sequence[str]) -> Ending:
    """Return the ending of a game that is over, given the teams' names."""
    winners, rules = winning_teams(state), engine.rules_of(state)
    names = [teams[team] for team in winners] or ["nobody"]
    who = f"{' and '.join(names)} {'share the win' if len(names) > 1 else 'won'}"
    if state["reason"] == BY_FORFEIT:
        return Ending(who, "", "an illegal action was played")
    if not winners:
        return Ending(who, "", f"the limit of {counted(int(state['round']), 'round')} is reached")
    castles = state["castles"][: len(teams)].tolist()
    most = castles[winners[0]]
    if most >= rules.castles_to_win:
        return Ending(who, f"with {most} castles", "")
    score = "each" if len(winners) > 1 else f"to {_others(castles, winners[0])}"
    return Ending(who, f"with {most} castles {score}", "fewer than 4 regions are left")


def outcome(state: np.void, names: Sequence[str]) -> str:
    """Say in a sentence how a game that is over ended."""
    who, how, why = ending(state, team_names(engine.rules_of(state), names))
    who = who if winning_teams(state) else who.capitalize()  # a name stays as it is
    said = f"{who} {how}" if how else who
    return f"{said}; {why}." if why else f"{said}."
