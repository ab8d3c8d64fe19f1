"""How the page and the terminal describe actions, strengths and the end of a game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import CLAN_NAMES, action_parts
from carolus_env.engine.state import winning_teams
from carolus_env.notation import region_text
from carolus_env.notation.words import counted, team_names


def action_label(state: np.void, action: int) -> str:
    """A legal action as a button names it: ``disc 3``, ``red``, ``2 steps to 7-9``, ``court``."""
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
    """A legal action in words that begin with a verb: ``place a red paladin at court``."""
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
    """The same words after a name: ``places a red paladin at court``."""
    verb, _, rest = words.partition(" ")
    return f"{verb}s {rest}"


def per_team(numbers: Sequence[object], names: Sequence[str]) -> str:
    """A number for each name: ``3 for Ann, 1 for Bob``."""
    return ", ".join(f"{n} for {name}" for n, name in zip(numbers, names, strict=True))


def _others(numbers: Sequence[int], first: int) -> str:
    return " and ".join(str(number) for team, number in enumerate(numbers) if team != first)


def joined(words: Sequence[str]) -> str:
    """``red``, ``red and blue``, ``red, blue and green``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def winners_text(winners: Sequence[int], teams: Sequence[str]) -> str:
    """``Ann won``, ``Ann and Bob share the win``, or ``nobody won``."""
    names = [teams[team] for team in winners] or ["nobody"]
    return f"{' and '.join(names)} {'share the win' if len(names) > 1 else 'won'}"


def outcome(state: np.void, names: Sequence[str]) -> str:
    """How a game that is over ended, in a sentence.

    Args:
        state: the game.
        names: of the seats.
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
