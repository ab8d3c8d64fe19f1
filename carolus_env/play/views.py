"""Games as the page gets them: dicts ready for JSON, with the board as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import CLAN_STYLES, TEAM_STYLES, castle_shape, clan_shape
from carolus_env.engine.rules import CLAN_NAMES, NOBODY, OVER, PHASE_NAMES, Rules, action_parts
from carolus_env.notation import to_line
from carolus_env.notation.descriptions import (
    Region,
    action_label,
    action_words,
    board_words,
    outcome,
    per_team,
    placements,
    regions_of,
)
from carolus_env.notation.vocabulary import team_names
from carolus_env.play.library import GameFile, agents_of
from carolus_env.play.session import Hint, Replay, Session

View = dict[str, Any]

_LISTED: Final = 8  # actions of a hint, at most


def game_view(session: Session, layout: Any, since: int = 0) -> View:
    """Return a game in play, for the player to move, with the log from event ``since`` on."""
    state, news = session.state, session.news
    is_person = not session.over and session.agent is None
    svg = board_svg(
        state,
        layout=layout,
        names=session.names,
        legal=is_person,
        last=session.last_before(len(session.events)),
        turn=session.decided(news) or None,
    )
    return {
        "at": len(session.events),
        "version": session.version,
        **_situation(state, session.rules, session.names),
        "svg": svg,
        "agents": [agent and agent.name for agent in session.agents],
        "turn": "over" if session.over else "person" if is_person else "agent",
        "legal": _decisions(session),
        "log": [line._asdict() for line in session.log(since)],
        "news": news,
        "undo": session.can_undo,
        "record": session.record(),
    }


def file_view(file: GameFile) -> View:
    """Return the list of a file's games."""
    return {
        "name": file.name,
        "problems": file.problems[:20],
        "all_problems": len(file.problems),
        "games": [summary._asdict() for summary in file.games],
    }


def replay_view(replay: Replay) -> View:
    """Return a recorded game without its positions."""
    rounds, record = [int(state["round"]) for state in replay.states], replay.record()
    return {
        **_seating(replay.rules, replay.names),
        "agents": list(agents_of(record)),
        "events": len(replay.events),
        "decisions": replay.decisions,
        "played": [event.get("action") for event in replay.events],
        "rounds": np.flatnonzero(np.diff(rounds, prepend=-1)).tolist(),
        "outcome": replay.outcome(),
        "log": [line._asdict() for line in replay.log()],
    }


def position_view(replay: Replay, position: int, layout: Any) -> View:
    """Return a position of a recorded game, before event number ``position``."""
    last = replay.last_before(position)
    return {
        "at": position,
        **state_view(replay.states[position], replay.rules, replay.names, layout, last),
    }


def state_view(
    state: np.void,
    rules: Rules,
    names: tuple[str, ...],
    layout: Any,
    last: tuple[np.void, int] | None = None,
) -> View:
    """Return a position without its game; arguments as for `board_svg`."""
    return {
        **_situation(state, rules, names),
        "svg": board_svg(state, layout=layout, names=names, legal=True, last=last),
    }


def icons_view() -> View:
    """Return the colours and shapes of clans and teams for the page's icons, about the origin."""
    clans = [
        {"name": name, **CLAN_STYLES[clan]._asdict(), "path": clan_shape(clan, 10.0)}
        for clan, name in enumerate(CLAN_NAMES)
    ]
    teams = [{**look._asdict(), "path": castle_shape(10.0)} for look in TEAM_STYLES]
    return {"clans": clans, "teams": teams}


def _seating(rules: Rules, names: tuple[str, ...]) -> View:
    return {
        "names": list(names),
        "teams": [rules.team(seat) for seat in range(rules.players)],
        "team_names": team_names(rules, names),
        "rules": rules.to_dict(),
    }


def _situation(state: np.void, rules: Rules, names: tuple[str, ...]) -> View:
    over = bool(state["phase"] == OVER)
    teams = team_names(rules, names)
    return {
        **_seating(rules, names),
        "regions": [_region_view(region, teams) for region in regions_of(state, teams)],
        "words": board_words(state, names),
        "line": to_line(state, generator=False),
        "round": int(state["round"]),
        "phase": PHASE_NAMES[int(state["phase"])],
        "seat": None if over else int(state["player"]),
        "left": int(state["placements_left"]),
        "crowns": int(state["crowns"][state["player"]]),
        "outcome": outcome(state, names) if over else None,
    }


def _region_view(region: Region, teams: Sequence[str]) -> View:
    return {**region._asdict(), "powers": per_team(region.strengths, teams)}


# ------------------------------------------------------------------------------------ decisions


def _decisions(session: Session) -> list[View]:
    """Return the legal actions: what to click on the board for each, and its result."""
    state, teams = session.state, session.team_names()
    places = placements(state, session.names, teams)
    steps = {step.action: step for step in session.steps()}
    views = []
    for decision in session.legal():
        kind, _, clan, destination = action_parts(decision.action)
        view: View = {
            "action": decision.action,
            "kind": kind,
            "text": action_label(state, decision.action),
        }
        if clan != NOBODY:
            view["clan"] = CLAN_NAMES[clan]
        if target := places.get(decision.action):
            view |= {"held": int(state["reserves"][state["player"], clan]), "to": destination}
            view |= {"result": target} if isinstance(target, str) else _region_view(target, teams)
        if step := steps.get(decision.action):
            view |= {"region": step.region, "result": step.text}
            view |= {"changes": step.changes, "team": step.owner}
        views.append(view)
    return views


def hint_view(state: np.void, hint: Hint, played: int | None = None) -> View:
    """Return an agent's opinion: its choice, its most probable actions, win probabilities.

    Args:
        state: the position.
        hint: the opinion.
        played: the action of the record, which is always listed; None: there is none.
    """
    moves = None
    if hint.probabilities is not None:
        listed = hint.ranked(_LISTED)
        if played is not None and played not in listed:
            listed.append(played)
        moves = [
            {
                "action": action,
                "text": action_words(state, action),
                "share": round(float(hint.probabilities[action]), 4),
            }
            for action in listed
        ]
    return {
        "agent": hint.agent,
        "choice": {"action": hint.choice, "text": action_words(state, hint.choice)},
        "moves": moves,
        "values": None if hint.values is None else shares(hint.values),
    }


def shares(values: npt.NDArray[np.float64]) -> list[float]:
    """Round ``(teams,)`` win probabilities."""
    return [round(float(value), 4) for value in values]
