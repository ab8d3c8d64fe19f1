"""Games as the page gets them: dicts ready for JSON, with the board as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg, board_words
from carolus_env.drawing.shapes import (
    CLAN_LOOKS,
    GOLD,
    TEAM_LOOKS,
    castle_shape,
    clan_shape,
    crown_shape,
)
from carolus_env.engine.rules import (
    CLAN_NAMES,
    NOBODY,
    OVER,
    PHASE_NAMES,
    Rules,
    action_parts,
)
from carolus_env.notation import from_text, to_line
from carolus_env.notation.words import team_names
from carolus_env.play.library import GameFile, Replay
from carolus_env.play.log import LogLine
from carolus_env.play.preview import (
    EmperorStep,
    Part,
    Reckoning,
    Standing,
    placements,
    standing,
    sum_words,
)
from carolus_env.play.review import Review
from carolus_env.play.session import Hint, Session
from carolus_env.play.words import action_label, action_words, outcome, per_team

View = dict[str, Any]


class Look(TypedDict):
    """How boards are drawn."""

    layout: Literal["tall", "wide", "narrow"]
    theme: Literal["auto", "light", "dark"]


_LISTED: Final = 8  # actions of a hint, at most
_EXAMPLE: Final = (
    "2 | 5 | 0 move | 4 | A3r1p1b1 B1g1 b1 A1r1 y1 r1 p1 B1y1 p1 B2y1g1 b1 g1 | "
    "R3P5b2y2G3 r2p3B3Y2g2 | p1b1y1g1 r1p2b1g3 | 0:3/- 1:4/-"
)
_SMALL: Final = 0.005  # less probable actions are not listed


def game_view(session: Session, look: Look, since: int = 0) -> View:
    """A game in play, for the player to move, with the log from event ``since`` on."""
    state = session.state
    return {
        "at": len(session.events),
        "version": session.version,
        **_seating(session.rules, session.names),
        **_situation(state, session.rules, session.names),
        "agents": [agent and agent.name for agent in session.agents],
        "turn": "over" if session.over else "person" if session.agent is None else "agent",
        "svg": board_svg(
            state,
            **look,
            names=session.names,
            legal=not session.over and session.agent is None,
            last=session.last,
            turn=session.marked(session.news),
        ),
        "legal": _decisions(session),
        "steps": [step_view(state, step, session.team_names()) for step in session.steps()],
        "log": log_view(session.log(since)),
        "news": {
            "events": session.news,
            "shown": session.last_turn,
            "turns": [turn._asdict() for turn in session.last_turn_told()],
        },
        "undo": session.can_undo,
        "seed": session.seed,
        "record": session.record(),
    }


def past_view(session: Session, position: int, look: Look) -> View:
    """The board of a game in play as it was before event number ``position``."""
    svg = board_svg(
        session.at(position),
        **look,
        names=session.names,
        last=session.last_before(position),
        turn=session.marked(index for index in session.last_turn if index < position),
    )
    return {"at": position, "svg": svg}


def example_view(look: Look) -> View:
    """A board that shows what the help explains: a position in which the Emperor is to be moved."""
    state = from_text(_EXAMPLE)[0]
    return {"svg": board_svg(state, **look, names=("Ada", "Bob"), legal=True)}


def replay_view(replay: Replay) -> View:
    """A recorded game without its positions."""
    return {
        **_seating(replay.rules, replay.names),
        "agents": list(replay.agents),
        "events": replay.events,
        "decisions": replay.decisions,
        "played": [event.get("action") for event in replay.record["events"]],
        "rounds": _round_starts(replay),
        "outcome": replay.outcome(),
        "log": log_view(replay.log),
    }


def position_view(
    replay: Replay, position: int, look: Look, values: list[float] | None = None
) -> View:
    """A position of a recorded game, before event number ``position``.

    Args:
        replay: the game.
        position: 0 to ``replay.events``.
        look: of the board.
        values: ``(teams,)`` expected shares of the win, drawn on the board; None: not drawn.
    """
    state, last = replay.states[position], replay.last(position)
    drawn = state_view(state, replay.rules, replay.names, look, last=last, values=values)
    return {"at": position, **drawn}


def state_view(
    state: np.void, rules: Rules, names: tuple[str, ...], look: Look, **options: Any
) -> View:
    """A position without its game.

    Args:
        state: the position.
        rules, names: of the game.
        look: of the board.
        options: further ones of `board_svg`.
    """
    return {
        **_seating(rules, names),
        **_situation(state, rules, names),
        "svg": board_svg(state, **look, names=names, legal=True, **options),
    }


def file_view(file: GameFile) -> View:
    """The list of a file's games."""
    return {
        "name": file.name,
        "problems": file.problems[:20],
        "all_problems": len(file.problems),
        "games": [summary._asdict() for summary in file.games],
    }


def looks_view() -> View:
    """Colours and shapes of clans and teams for the page's icons, centred on the origin."""
    clans = [
        {"name": name, **CLAN_LOOKS[clan]._asdict(), "path": clan_shape(clan, 10.0)}
        for clan, name in enumerate(CLAN_NAMES)
    ]
    teams = [{**look._asdict(), "path": castle_shape(10.0)} for look in TEAM_LOOKS]
    crown = {**GOLD._asdict(), "path": crown_shape(10.0)}
    return {"clans": clans, "teams": teams, "crown": crown}


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
    regions = [standing(state, k) for k in range(int(state["regions"]))]
    return {
        "regions": [standing_view(region, teams) for region in regions],
        "words": board_words(state, names),
        "line": to_line(state, generator=False),
        "round": int(state["round"]),
        "phase": PHASE_NAMES[int(state["phase"])],
        "seat": None if over else int(state["player"]),
        "left": int(state["placements_left"]),
        "crowns": int(state["crowns"][state["player"]]),
        "outcome": outcome(state, names) if over else None,
    }


def _round_starts(replay: Replay) -> list[int]:
    """The position where each round begins, the set-up first."""
    rounds = replay.states["round"]
    return np.flatnonzero(np.diff(rounds, prepend=-1)).tolist()


def review_view(replay: Replay, review: Review) -> View:
    """A look back at a game, with what its graph needs."""
    return {
        **_seating(replay.rules, replay.names),
        "agent": review.agent,
        "values": [shares(row) for row in review.values],
        "decisions": replay.decisions,
        "rounds": _round_starts(replay),
        "events": replay.events,
        "swings": [swing._asdict() for swing in review.swings],
        "best": [one._asdict() for one in review.best],
        "worst": [one._asdict() for one in review.worst],
    }


# ------------------------------------------------------------------------------------ decisions


def standing_view(standing: Standing, teams: Sequence[str]) -> View:
    """A region: each team's strength, and what a stop of the Emperor would do there."""
    return {
        "territories": standing.territories,
        "strengths": list(standing.strengths),
        "reckoning": reckoning_view(standing.reckoning),
        "powers": per_team([_power(parts) for parts in standing.reckoning], teams),
        "result": standing.text(teams),
    }


def reckoning_view(reckoning: Reckoning) -> list[list[View]]:
    """For each team what counts for it on a region."""
    return [[part._asdict() for part in parts] for parts in reckoning]


def _power(parts: Sequence[Part]) -> str:
    """A strength and how it comes about: ``3 (red 2 + castle 1)``, ``0``."""
    whole = str(sum(part.number for part in parts))
    return f"{whole} ({sum_words(parts)})" if parts else whole


def _decisions(session: Session) -> list[View]:
    """The legal actions; placements with their results."""
    state, teams = session.state, session.team_names()
    places = placements(state, session.names, teams)
    views = []
    for decision in session.legal():
        view = decision_view(state, decision.action)
        if place := places.get(decision.action):
            there = place.standing
            view |= {"result": place.text} if there is None else standing_view(there, teams)
        views.append(view)
    return views


def decision_view(state: np.void, action: int) -> View:
    """A legal action: its name, and what to click on the board for it."""
    kind, _, clan, destination = action_parts(action)
    view: View = {"action": action, "kind": kind, "text": action_label(state, action)}
    if clan != NOBODY:
        view["clan"] = CLAN_NAMES[clan]
    if kind == "place":
        view["held"] = int(state["reserves"][state["player"], clan])
        view["to"] = destination
    return view


def step_view(state: np.void, step: EmperorStep, teams: Sequence[str]) -> View:
    """A step of the Emperor and its result."""
    return {
        "action": step.action,
        "region": step.region,
        "territories": step.territories,
        "text": action_label(state, step.action),
        "result": step.text(teams),
        "reckoning": reckoning_view(step.reckoning),
        "changes": step.owner != step.owner_before,
        "team": step.owner,
        "over": step.over,
    }


def log_view(lines: Sequence[LogLine]) -> list[View]:
    """Lines of the log."""
    return [line._asdict() for line in lines]


# ------------------------------------------------------------------------------------ hints


def hint_view(state: np.void, hint: Hint, played: int | None = None) -> View:
    """An agent's opinion: its choice, its most probable actions, each team's expected share.

    Args:
        state: the position.
        hint: the opinion.
        played: the action of the record, which is always listed; None: there is none.
    """
    return {
        "agent": hint.agent,
        "choice": {"action": hint.choice, "text": action_words(state, hint.choice)},
        "moves": _listed(state, hint.probabilities, played),
        "more": 0 if hint.probabilities is None else _unlisted(hint.probabilities),
        "values": None if hint.values is None else shares(hint.values),
    }


def _listed(
    state: np.void, probabilities: npt.NDArray[np.float64] | None, played: int | None
) -> list[View] | None:
    """The most probable actions, the first first, and the one played; None: no probabilities."""
    if probabilities is None:
        return None
    order = np.argsort(-probabilities, kind="stable").tolist()
    listed = [action for action in order[:_LISTED] if probabilities[action] >= _SMALL]
    if played is not None and played not in listed:
        listed.append(played)
    return [
        {
            "action": action,
            "text": action_words(state, action),
            "share": round(float(probabilities[action]), 4),
        }
        for action in listed
    ]


def _unlisted(probabilities: npt.NDArray[np.float64]) -> int:
    """How many actions are probable enough but not listed."""
    return max(0, int((probabilities >= _SMALL).sum()) - _LISTED)


def shares(values: npt.NDArray[np.float64]) -> list[float]:
    """``(teams,)`` shares of the win, rounded."""
    return [round(float(value), 4) for value in values]
