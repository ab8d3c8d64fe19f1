"""The three functions of Kaggle's game harness: legal moves, a prompt, and reading the answer.

    >>> observation = observe(game.states[0])
    >>> prompt = generate_prompt(observation, history)
    >>> parsed = parse_response(model(prompt), observation)
    >>> parsed.actions or parsed.error  # action numbers of a legal move, or what is wrong

One answer is a whole turn (see `turns`) or a single decision, as the observation says. Nothing is
kept between calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import OVER, ROLL
from carolus_env.integrations.language import turns
from carolus_env.integrations.language.prompts import position_text, request_text, rules_text
from carolus_env.notation import NotationError, from_text, move_text, to_line, turn_text
from carolus_env.system.untrusted import cut, shown

ANSWERS: Final = ("turn", "decision")
"""Scopes of one answer; the first is the default of `observe`."""

LONGEST_PROMPT: Final = 12_000
"""Characters of any prompt; the history is cut to what is left."""
LONGEST_HISTORY: Final = 3_000
_LONGEST_RESPONSE: Final = 50_000  # characters, the last ones, in which an answer is looked for
_SHOWN_RESPONSE: Final = 500


class Parsed(NamedTuple):
    """Result of parsing a response.

    Attributes:
        actions: the action numbers of the move; none of a failure.
        legal_action: the move in the notation, with its outcome; None: a failure.
        raw_action: the move as the response gives it; None: none.
        error: a description of the error, for the next prompt; empty: none.
    """

    actions: tuple[int, ...] = ()
    legal_action: str | None = None
    raw_action: str | None = None
    error: str = ""


# ------------------------------------------------------------------------------------ functions


def observe(state: np.void, answers: str = "turn") -> dict[str, Any]:
    """Return a player's observation, for the three functions; the dice to come are left out.

    Args:
        state: one game.
        answers: one of `ANSWERS`: a whole turn or a single decision.

    Returns:
        ``observationString`` (the position as a line of the notation), ``playerId`` and
        ``currentPlayer`` (seats), ``isTerminal``, and ``answers``.

    Raises:
        ValueError: for other ``answers``.
    """
    over = bool(state["phase"] == OVER)
    return {
        "observationString": to_line(state, generator=False),
        "playerId": int(state["player"]),
        "currentPlayer": int(state["player"]),
        "isTerminal": over,
        "answers": checked_answers(answers),
    }


def get_legal_moves(observation: Mapping[str, Any]) -> dict[int, str]:
    """Return the legal decisions of the player to move in the notation, by action number.

    Whole turns are too many for a list, up to millions with three players.

    Args:
        observation: an observation of `observe`. Only ``observationString`` is needed.

    Raises:
        KeyError: without an ``observationString``.
        PositionError: when that is not a position.
    """
    state = _state(observation)
    return {action: move_text(state, action) for action in engine.legal_actions(state).tolist()}


def generate_prompt(
    observation: Mapping[str, Any],
    history: Sequence[str] = (),
    previous_response: str | None = None,
    previous_action: str | None = None,
) -> str:
    """Return the prompt for the player to move: rules, position, history, and what is asked.

    Args:
        observation: an observation of `observe`; without ``answers`` a move is a single decision.
        history: texts of earlier turns, oldest first, such as those of `notation.turn_texts`; the
            last ones that fit are shown.
        previous_response: the model's last answer, when that was no legal move.
        previous_action: the move of that response, `Parsed.raw_action`; None: none.

    Returns:
        At most `LONGEST_PROMPT` characters.

    Raises:
        ValueError: when no decision is due, for other ``answers`` than `ANSWERS`, and as
            `get_legal_moves`.
    """
    state = _state(observation)
    parts = [
        rules_text(engine.rules_of(state)),
        "THE POSITION\n\n" + position_text(state),
        request_text(state, turns=_in_turns(observation)),
    ]
    if previous_response is not None:
        parts.append(_again(previous_response, previous_action, observation))
    room = LONGEST_PROMPT - sum(len(part) + 2 for part in parts)
    if lines := last_lines(history, min(room, LONGEST_HISTORY) - 100):
        history = "THE LAST TURNS, oldest first\n\n" + "\n".join(lines)
        parts.insert(1, history)
    return "\n\n".join(parts)


def parse_response(response: str, observation: Mapping[str, Any]) -> Parsed:
    """Read the move of a response: that of the last JSON object in it that has one.

    Prose, thoughts and code fences around it do not matter.

    Args:
        response: the model's answer, any text.
        observation: as for `generate_prompt`.
    """
    state = _state(observation)
    if state["phase"] in (OVER, ROLL):
        return Parsed(error="no decision is due")
    move, error = move_of(response)
    if move is None:
        return Parsed(error=error)
    read = turns.read_turn if _in_turns(observation) else turns.read_one
    try:
        actions = read(state, move)
    except NotationError as refused:
        return Parsed(raw_action=move, error=str(refused))
    if len(actions) > 1 and not _in_turns(observation):
        return Parsed(raw_action=move, error=f"move {shown(move.strip())}: one decision at a time")
    return Parsed(tuple(actions), turn_text(state, actions), move)


# ------------------------------------------------------------------------------------ parts


def move_of(response: str) -> tuple[str | None, str]:
    """Return the text under ``move`` of the last JSON object that has it, or None and the error.

    A list of texts is taken as one text, its parts separated by commas.
    """
    text, start, result = response[-_LONGEST_RESPONSE:], 0, list[Any]()
    broken = ""
    while (start := text.find("{", start)) >= 0:
        try:
            value, start = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            broken = broken or (error.msg if isinstance(error, json.JSONDecodeError) else "")
            start += 1
            continue
        if "move" in value:
            result.append(value["move"])
    if not result:
        why = f" ({broken} in what comes after a '{{')" if broken else ""
        return None, f'there is no JSON object with the key "move" in the answer{why}'
    move = result[-1]
    if isinstance(move, list) and move and all(isinstance(part, str) for part in move):
        move = ", ".join(move)
    if not isinstance(move, str) or not move.strip():
        return None, f'the value of "move" must be a text such as "E+1", got {shown(move)}'
    return move, ""


_DECODER: Final = json.JSONDecoder()


def last_lines(history: Sequence[str], room: int) -> list[str]:
    """Return the last texts of ``history``, as many as ``room`` characters hold, oldest first."""
    lines: list[str] = []
    for line in reversed(history):
        room -= len(line) + 1
        if room < 0:
            break
        lines.insert(0, line)
    return lines


def _state(observation: Mapping[str, Any]) -> np.void:
    state: np.void = from_text(observation["observationString"])[0]
    return state


def _in_turns(observation: Mapping[str, Any]) -> bool:
    return checked_answers(observation.get("answers", "decision")) == "turn"


def _again(response: str, action: str | None, observation: Mapping[str, Any]) -> str:
    """Return the error in the answer before, so that the model can think again."""
    parsed = parse_response(response, observation)
    error = cut(parsed.error or "it was refused", 1_000)
    if action is not None:
        return (
            f'Your last answer was the move "{cut(action)}". It is not legal: {error}.\n'
            "Think again, and answer with a legal move in the same form."
        )
    end = cut(response.strip()[-_SHOWN_RESPONSE:], _SHOWN_RESPONSE)
    return (
        f"Your last answer could not be read: {error}. It ended with\n{end}\n"
        "Answer again, and end with JSON in the form above."
    )


def checked_answers(answers: str) -> str:
    """Return one of `ANSWERS`, checked.

    Raises:
        ValueError: for anything else.
    """
    if answers not in ANSWERS:
        raise ValueError(f"answers must be one of {ANSWERS}, got {answers!r}")
    return answers
