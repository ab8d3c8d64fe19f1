"""Games as the page sees them: JSON-ready dicts, the board as SVG among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg, board_words
from carolus_env.drawing.shapes import CLAN_LOOKS, TEAM_LOOKS, castle_shape, clan_shape
from carolus_env.engine.rules import (
    CLAN_NAMES,
    DESTINATIONS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    OVER,
    PHASE_NAMES,
    Rules,
)
from carolus_env.notation import region_text
from carolus_env.notation.words import counted, team_names
from carolus_env.play.library import Book, Replay
from carolus_env.play.preview import EmperorStep, Standing, placements, powers_text, standing
from carolus_env.play.session import Hint, LogLine, Session, outcome

View = dict[str, Any]


class Look(TypedDict):
    """How the page wants boards drawn."""

    layout: Literal["tall", "wide"]
    theme: Literal["auto", "light", "dark"]


_LIKELY: Final = 8  # actions of an opinion that are shown
_SMALL: Final = 0.005  # and those that are less likely are not


def game_view(session: Session, look: Look, since: int = 0) -> View:
    """A game in play, for who is to decide; of the log the lines from event ``since`` on."""
    state = session.state
    return {
        "at": len(session.events),
        "version": session.version,
        **_table(session.rules, session.names),
        **_situation(state, session.rules, session.names),
        "agents": [agent and agent.name for agent in session.agents],
        "turn": "over" if session.over else "person" if session.agent is None else "agent",
        "svg": board_svg(
            state,
            **look,
            names=session.names,
            legal=not session.over and session.agent is None,
            last=session.last,
        ),
        "legal": _decisions(session),
        "steps": [step_view(step, session.team_names()) for step in session.steps()],
        "log": log_view(session.log(since)),
        "undo": session.can_undo,
        "seed": session.seed,
        "record": session.record(),
    }


def replay_view(replay: Replay) -> View:
    """A game of a record: all but its positions."""
    return {
        **_table(replay.rules, replay.names),
        "agents": list(replay.agents),
        "events": replay.events,
        "decisions": replay.decisions,
        "played": [event.get("action") for event in replay.record["events"]],
        "rounds": _round_starts(replay),
        "log": log_view(replay.log),
    }


def position_view(
    replay: Replay, position: int, look: Look, values: list[float] | None = None
) -> View:
    """A position of a record, before event number ``position``, with ``values`` drawn."""
    state = replay.states[position]
    return {
        "at": position,
        **_situation(state, replay.rules, replay.names),
        "svg": board_svg(
            state,
            **look,
            names=replay.names,
            legal=True,
            last=replay.last(position),
            values=values,
        ),
    }


def book_view(book: Book) -> View:
    """The list of a file's games."""
    return {
        "name": book.name,
        "problems": book.problems[:20],
        "all_problems": len(book.problems),
        "games": [summary._asdict() for summary in book.games],
    }


def looks_view() -> View:
    """Colours and shapes of clans and teams, about the origin, for the page's buttons."""
    clans = [
        {"name": name, **CLAN_LOOKS[clan]._asdict(), "path": clan_shape(clan, 10.0)}
        for clan, name in enumerate(CLAN_NAMES)
    ]
    teams = [{**look._asdict(), "path": castle_shape(10.0)} for look in TEAM_LOOKS]
    return {"clans": clans, "teams": teams}


def _table(rules: Rules, names: tuple[str, ...]) -> View:
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
        "round": int(state["round"]),
        "phase": PHASE_NAMES[int(state["phase"])],
        "seat": None if over else int(state["player"]),
        "left": int(state["placements_left"]),
        "crowns": int(state["crowns"][state["player"]]),
        "outcome": outcome(state, names) if over else None,
    }


def _round_starts(replay: Replay) -> list[int]:
    """The position at which each round begins, the set-up first."""
    rounds = replay.states["round"]
    return np.flatnonzero(np.diff(rounds, prepend=-1)).tolist()


# ------------------------------------------------------------------------------------ decisions


def standing_view(standing: Standing, teams: Sequence[str]) -> View:
    """How a region stands: each team's strength, and what a stop of the Emperor would do."""
    return {
        "territories": standing.territories,
        "strengths": list(standing.strengths),
        "powers": powers_text(standing.strengths, teams),
        "result": standing.text(teams),
    }


def _decisions(session: Session) -> list[View]:
    """The legal decisions, those of paladins with their results."""
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
    """What the page must know of a legal action: what it is called, and what to click for it."""
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        return {
            "action": action,
            "kind": "place",
            "clan": CLAN_NAMES[clan],
            "held": int(state["reserves"][state["player"], clan]),
            "to": destination,
            "text": "court" if destination == 0 else region_text(state, destination - 1),
        }
    if action >= FIRST_MOVE:
        steps = action - FIRST_MOVE + 1
        where = region_text(state, steps % int(state["regions"]))
        return {"action": action, "kind": "move", "text": f"{counted(steps, 'step')} to {where}"}
    if action >= FIRST_CROWN:
        clan = action - FIRST_CROWN
        return {"action": action, "kind": "crown", "clan": CLAN_NAMES[clan], "text": "a crown"}
    return {"action": action, "kind": "disc", "text": f"disc {action - FIRST_DISC + 1}"}


def step_view(step: EmperorStep, teams: list[str]) -> View:
    """A step of the Emperor and its result."""
    return {
        "action": step.action,
        "region": step.region,
        "territories": step.territories,
        "text": f"{counted(step.steps, 'step')} to {step.territories}",
        "result": step.text(teams),
        "changes": step.owner != step.owner_before,
        "team": step.owner,
        "over": step.over,
    }


def log_view(lines: list[LogLine]) -> list[View]:
    return [line._asdict() for line in lines]


# ------------------------------------------------------------------------------------ opinions


def hint_view(state: np.void, hint: Hint, played: int | None = None) -> View:
    """What an agent thinks of a position: its choice, likely actions, each team's share.

    The action that was ``played`` is among the likely ones in any case.
    """
    return {
        "agent": hint.agent,
        "choice": {"action": hint.choice, "text": action_words(state, hint.choice)},
        "moves": likely(state, hint.probabilities, played),
        "more": 0 if hint.probabilities is None else _unshown(hint.probabilities),
        "values": None if hint.values is None else shares(hint.values),
    }


def likely(
    state: np.void, probabilities: npt.NDArray[np.float64] | None, played: int | None
) -> list[View] | None:
    """The likeliest actions, the first first, and the one played; None where nothing is known."""
    if probabilities is None:
        return None
    order = np.argsort(-probabilities, kind="stable").tolist()
    shown = [action for action in order[:_LIKELY] if probabilities[action] >= _SMALL]
    if played is not None and played not in shown:
        shown.append(played)
    return [
        {
            "action": action,
            "text": action_words(state, action),
            "share": round(float(probabilities[action]), 4),
        }
        for action in shown
    ]


def _unshown(probabilities: npt.NDArray[np.float64]) -> int:
    """How many actions that are likely enough are not in the list."""
    return max(0, int((probabilities >= _SMALL).sum()) - _LIKELY)


def action_words(state: np.void, action: int) -> str:
    """A legal action in words that name the region."""
    decision = decision_view(state, action)
    if decision["kind"] == "place":
        where = "the court" if decision["to"] == 0 else decision["text"]
        return f"{decision['clan']} to {where}"
    if decision["kind"] == "crown":
        return f"crown to {decision['clan']}"
    return str(decision["text"])


def shares(values: npt.NDArray[np.float64]) -> list[float]:
    return [round(float(value), 4) for value in values]
