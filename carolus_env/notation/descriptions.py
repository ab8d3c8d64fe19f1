"""Positions, actions, their results and endings in words: for pictures and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    BY_FORFEIT,
    CLAN_NAMES,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    Rules,
    action_parts,
)
from carolus_env.engine.state import States, single, winning_teams
from carolus_env.notation.moves import counted, event_text, region_text

# ------------------------------------------------------------------------------------ positions


def team_names(rules: Rules, names: Sequence[str]) -> list[str]:
    """Return a name for each team: its members', given those of the seats."""
    return [
        " and ".join(names[seat] for seat in range(rules.players) if rules.team(seat) == team)
        for team in range(rules.teams)
    ]


def paladin_words(counts: Iterable[int]) -> str:
    """Return ``2 red, 1 blue``; ``none`` where there are none."""
    return ", ".join(f"{n} {CLAN_NAMES[clan]}" for clan, n in enumerate(counts) if n) or "none"


def board_words(state: np.void, names: Sequence[str]) -> list[str]:
    """Describe one game for screen readers: a sentence for each region, then for each seat."""
    rules = engine.rules_of(state)
    teams = team_names(rules, names)
    words = [region_words(state, region, teams) for region in range(int(state["regions"]))]
    for seat, name in enumerate(names):
        clans = [CLAN_NAMES[clan] for clan in np.flatnonzero(state["control"] == seat)]
        castles = counted(int(state["castles"][rules.team(seat)]), "castle")
        words.append(
            f"{name}, {castles} of {rules.castles_to_win}: controls "
            f"{', '.join(clans) or 'no clan'}; court {paladin_words(state['courts'][seat])}; "
            f"reserve {paladin_words(state['reserves'][seat])}"
        )
    return words


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


def action_words(state: np.void, action: int, *, short: bool = False) -> str:
    """Describe a legal action, beginning with a verb: ``place a red paladin at court``.

    With ``short``, as pictures have room for: ``place red at court``, ``move the Emperor to 7``.
    """
    kind, _, clan, destination = action_parts(action)
    label = action_label(state, action)
    if kind == "disc":
        return f"play {label}"
    if kind == "crown":
        return f"take {label} for a crown"
    if kind == "move":
        return f"move the Emperor {label[label.index('to ') :] if short else label}"
    paladin = CLAN_NAMES[clan] if short else f"a {CLAN_NAMES[clan]} paladin"
    return f"place {paladin} {'at' if destination == 0 else 'in'} {label}"


def decision_words(
    state: np.void, action: int, teams: Sequence[str], *, short: bool = False
) -> tuple[str, str]:
    """Describe a legal action as it follows the player's name, and its effect, which may be empty.

    ``short`` as in `action_words`; the effect of a move is then without reason and consequences.
    """
    kind, _, clan, _ = action_parts(action)
    verb, _, rest = action_words(state, action, short=short).partition(" ")
    words, effect, after = f"{verb}s {rest}", "", _after(state, [action])[0]
    if kind == "move":
        step = emperor_step(state, after, action, teams)
        effect = step.effect if short else step.text
    elif kind == "place" and after["control"][clan] != state["control"][clan]:
        effect = f"and gains control of {CLAN_NAMES[clan]}"
    return words, effect


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


def _after(state: np.void, actions: Sequence[int]) -> States:
    """Return the game after each of several actions, before dice are rolled."""
    after = np.repeat(single(state), len(actions))
    engine.step(after, np.array(actions), roll=False)
    return after


def emperor_steps(state: np.void, teams: Sequence[str]) -> list[EmperorStep]:
    """List the legal moves of the Emperor, ascending; none outside phase ``move``."""
    if state["phase"] != MOVE:
        return []
    actions = engine.legal_actions(state).tolist()
    games = zip(actions, _after(state, actions), strict=True)
    return [emperor_step(state, after, action, teams) for action, after in games]


def emperor_step(before: np.void, after: np.void, action: int, teams: Sequence[str]) -> EmperorStep:
    """Describe a move of the Emperor, given the game before and after it."""
    region = action_parts(action).number % int(before["regions"])
    circle = engine.strengths(before)
    owner, changes, effect, reason = _stop(before, region, circle, teams, would=False)
    text = f"{effect}, {reason}"
    if changes:
        text += f"; now {counted(int(after['castles'][owner]), 'castle')}"
    if after["regions"] < before["regions"]:
        text += f"; the regions merge into {region_text(after, 0)}"
    if after["phase"] == OVER:
        text += f"; the game ends, {ending(after, teams).who}"
    return EmperorStep(action, region, owner, changes, effect, text)


def _stop(
    state: np.void, region: int, circle: Iterable[Any], teams: Sequence[str], *, would: bool
) -> tuple[int, bool, str, str]:
    """Describe a stop of the Emperor: the owner then, whether that is new, the effect, the reason.

    ``circle`` is of `engine.strengths`.
    """

    def does(subject: str, verb: str) -> str:
        if would:
            return f"{subject} would {verb}"
        return f"{subject} {verb}" if " and " in subject else f"{subject} {verb}s"  # partners

    powers, strongest = (of[region].tolist() for of in circle)
    at = (int(state["emperor"]) + region) % int(state["regions"])
    owner = int(state["region_owner"][at])
    if strongest == NOBODY:
        reason = f"tied at {max(powers)}" if max(powers) else "nobody controls a clan there"
        return owner, False, does("nothing", "change"), reason
    team, reason = teams[strongest], f"{powers[strongest]} against {_others(powers, strongest)}"
    if strongest == owner:
        return owner, False, f"{does(team, 'keep')} the region", reason
    if owner == NOBODY:
        return strongest, True, f"{does(team, 'build')} a castle", reason
    castles = int(state["region_castles"][at])
    taken = "a castle" if castles == 1 else f"{castles} castles"
    return strongest, True, f"{does(team, 'take')} {taken} from {teams[owner]}", reason


def _others(numbers: Sequence[int], first: int) -> str:
    return " and ".join(str(number) for team, number in enumerate(numbers) if team != first)


class Region(NamedTuple):
    """A region, and what would happen if the Emperor stopped there now."""

    territories: str  # territories of the region, as the notation names it
    strengths: list[int]  # strength of each team
    result: str  # result of a stop, in words


def regions_of(state: np.void, teams: Sequence[str]) -> list[Region]:
    """List the regions clockwise from the Emperor's."""
    circle = engine.strengths(state)
    return [_region(state, region, circle, teams) for region in range(int(state["regions"]))]


def _region(state: np.void, region: int, circle: Any, teams: Sequence[str]) -> Region:
    _, _, effect, reason = _stop(state, region, circle, teams, would=True)
    strengths = circle[0][region].tolist()
    return Region(region_text(state, region), strengths, f"{effect}, {reason}")


def placements(
    state: np.void, names: Sequence[str], teams: Sequence[str]
) -> dict[int, Region | str]:
    """Return the result of every legal placement of a paladin; none outside phase ``place``."""
    if state["phase"] != PLACE:
        return {}
    actions = engine.legal_actions(state).tolist()
    result: dict[int, Region | str] = {}
    for action, after in zip(actions, _after(state, actions), strict=True):
        _, _, clan, destination = action_parts(action)
        if destination:
            result[action] = _region(after, destination - 1, engine.strengths(after), teams)
        else:
            result[action] = _control_text(state, after, clan, names)
    return result


def _control_text(before: np.void, after: np.void, clan: int, names: Sequence[str]) -> str:
    """Say how many paladins of a clan each player has at court, and who controls it."""
    courts = per_team(after["courts"][: len(names), clan].tolist(), names)
    old, new = (int(state["control"][clan]) for state in (before, after))
    who = f"{names[new]} {'takes' if new != old else 'keeps'} control"
    who = "nobody controls it" if new == NOBODY else who
    return f"{CLAN_NAMES[clan]} at court: {courts}; {who}"


# ------------------------------------------------------------------------------------ the log


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
        words, effect = decision_words(before, event["action"], teams)
        words += f": {effect}" if before["phase"] == MOVE else f" {effect}".rstrip()
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
