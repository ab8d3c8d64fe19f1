"""Games as the page gets them: dicts ready for JSON, with the board as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import CASTLE, CLAN_STYLES, TEAM_STYLES, clan_shape, polygon
from carolus_env.engine.rules import CLAN_NAMES, NOBODY, OVER, PHASE_NAMES, action_parts
from carolus_env.notation import descriptions, to_line
from carolus_env.play.session import Hint, Replay, Session

View = dict[str, Any]

_LISTED: Final = 8  # actions of a hint, at most


def session_view(session: Session, *, layout: Any, since: int) -> View:
    """Return a game in play, for the player to move, with the log from event ``since`` on."""
    news, is_person = session.news, session.agent is None and not session.over
    drawn = {"legal": is_person, "turn": session.decided(news) or None}
    return {
        **_position(session, len(session.events), layout, **drawn),
        "agents": [agent and agent.name for agent in session.agents],
        "turn": "over" if session.over else "person" if is_person else "agent",
        "legal": _decisions(session) if is_person else [],
        "log": [line._asdict() for line in session.log(since)],
        "news": news,
        "undo": session.can_undo,
        "record": session.record(),
    }


def replay_view(replay: Replay, at: int, *, layout: Any, since: int) -> View:
    """Return a position of a recorded game, with the log from event ``since`` on."""
    return {
        **_position(replay, at, layout, legal=True),
        "result": replay.outcome(),
        "log": [line._asdict() for line in replay.log(since)],
    }


def icons_view() -> View:
    """Return the colours and shapes of clans and teams for the page's icons, about the origin."""
    clans = [
        {"name": name, **CLAN_STYLES[clan]._asdict(), "path": clan_shape(clan, 10.0)}
        for clan, name in enumerate(CLAN_NAMES)
    ]
    teams = [{**look._asdict(), "path": polygon(CASTLE, 10.0)} for look in TEAM_STYLES]
    return {"clans": clans, "teams": teams}


def hint_view(state: np.void, hint: Hint, played: int | None) -> View:
    """Return an agent's opinion; the action that was played (None: none yet) is always listed."""

    def named(action: int) -> View:
        return {"action": action, "text": descriptions.action_words(state, action)}

    moves = None
    if hint.probabilities is not None:
        listed = dict.fromkeys([*hint.ranked(_LISTED), *([] if played is None else [played])])
        shares_of = shares(hint.probabilities)
        moves = [{**named(action), "share": shares_of[action]} for action in listed]
    return {
        "agent": hint.agent,
        "choice": named(hint.choice),
        "played": played,
        "moves": moves,
        "values": None if hint.values is None else shares(hint.values),
    }


def shares(values: npt.NDArray[np.float64]) -> list[float]:
    """Round probabilities for JSON."""
    return [round(float(value), 4) for value in values]


def _position(game: Replay, at: int, layout: Any, **drawn: Any) -> View:
    """Return the game before event ``at``; ``drawn``: further arguments of `board_svg`."""
    state, names, teams = game.states[at], game.names, game.team_names()
    over = bool(state["phase"] == OVER)
    last = next(iter(game.decided(range(at))[::-1]), None)
    return {
        "at": at,
        "names": names,
        "teams": [game.rules.team(seat) for seat in range(game.rules.players)],
        "team_names": teams,
        "rules": game.rules.to_dict(),
        "regions": [_region(region, teams) for region in descriptions.regions_of(state, teams)],
        "words": descriptions.board_words(state, names),
        "line": to_line(state, generator=False),
        "round": int(state["round"]),
        "phase": PHASE_NAMES[int(state["phase"])],
        "seat": None if over else int(state["player"]),
        "left": int(state["placements_left"]),
        "crowns": int(state["crowns"][state["player"]]),
        "outcome": descriptions.outcome(state, names) if over else None,
        "svg": board_svg(state, layout=layout, names=names, last=last, **drawn),
    }


def _region(region: descriptions.Region, teams: Sequence[str]) -> View:
    return {**region._asdict(), "powers": descriptions.per_team(region.strengths, teams)}


def _decisions(session: Session) -> list[View]:
    """Return the legal actions: what to click on the board for each, and its result."""
    state, teams = session.state, session.team_names()
    places = descriptions.placements(state, session.names, teams)
    steps = {step.action: step for step in descriptions.emperor_steps(state, teams)}
    views = []
    for action in session.legal():
        kind, _, clan, destination = action_parts(action)
        text = descriptions.action_label(state, action)
        view: View = {"action": action, "kind": kind, "text": text}
        if clan != NOBODY:
            view["clan"] = CLAN_NAMES[clan]
        if target := places.get(action):
            view |= {"held": int(state["reserves"][state["player"], clan]), "to": destination}
            view |= {"result": target} if isinstance(target, str) else _region(target, teams)
        if step := steps.get(action):
            view |= {"region": step.region, "result": step.text}
            view |= {"changes": step.changes, "team": step.owner}
        views.append(view)
    return views
