"""Language models as players: rules and positions in words, answers in the notation.

    >>> observation = observe(game.states[0])
    >>> prompt = generate_prompt(observation, history)
    >>> parsed = parse_response(model(prompt), observation)
    >>> parsed.actions or parsed.error  # action numbers of a legal move, or what is wrong

These are the functions of Kaggle's game harness. One answer is a single decision or a whole *turn*,
as the observation says: what a player decides in a row, which is a disc; or the crowns after a
roll; or (deferred crowns,) the paladins and the Emperor. No dice are rolled in between, so one text
can hold it. Nothing is kept between calls. `integrations.llm` is the agent that asks an endpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    CROWN_CHOICE,
    DISC,
    DISCS,
    MIN_REGIONS,
    MOVE,
    NOBODY,
    OPTIONS,
    OVER,
    PLACE,
    ROLL,
    TERRITORIES,
    Rules,
    action_parts,
)
from carolus_env.engine.state import States, single
from carolus_env.notation import (
    NotationError,
    from_text,
    legal_text,
    move_text,
    read_move,
    region_text,
    to_line,
    turn_text,
)
from carolus_env.notation.vocabulary import TEAM_LETTERS, counted
from carolus_env.system.options import one_of, value_text
from carolus_env.system.untrusted import cut, shown

ANSWERS: Final = ("turn", "decision")
"""Scopes of one answer; the first is the default of `observe`."""

LONGEST_PROMPT: Final = 12_000
"""Characters of any prompt; the history is cut to what is left."""
LONGEST_HISTORY: Final = 3_000
_LONGEST_RESPONSE: Final = 50_000  # characters, the last ones, in which an answer is looked for
_SHOWN_RESPONSE: Final = 500
LONGEST_TURN: Final = 400
"""Characters of a turn's text; the longest that the notation writes has less than 200."""


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


# ------------------------------------------------------------------------------------ the harness


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
        "answers": one_of("answers", answers, ANSWERS),
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
    read = read_turn if _in_turns(observation) else read_move
    try:
        actions = read(state, move)
    except NotationError as refused:
        return Parsed(raw_action=move, error=str(refused))
    if len(actions) > 1 and not _in_turns(observation):
        return Parsed(raw_action=move, error=f"move {shown(move.strip())}: one decision at a time")
    return Parsed(tuple(actions), turn_text(state, actions), move)


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
    return bool(one_of("answers", observation.get("answers", "decision"), ANSWERS) == "turn")


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


# ------------------------------------------------------------------------------------ reading turns


def goes_on(game: States, start: np.void) -> bool:
    """Return whether the turn that began in ``start`` continues in ``game``, ``(1,)``."""
    state = game[0]
    return bool(
        start["phase"] != DISC
        and state["phase"] in (CROWN_CHOICE, PLACE, MOVE)
        and state["player"] == start["player"]
        and state["round"] == start["round"]
    )


def read_turn(state: np.void, text: str) -> list[int]:
    """Parse the actions of a whole turn.

    Outcomes (``!``, ``A takes 4-6``) may be left out, but a wrong one is refused.

    Args:
        state: the game in which the turn begins; it does not change.
        text: moves in the notation, separated by commas, in the order in which they are played.

    Raises:
        NotationError: for a turn that is not complete, too long, or against the rules; the text
            says which move it is, and what is legal or missing.
    """
    if len(text) > LONGEST_TURN:
        raise NotationError(
            f"a turn is a few moves such as 'red>court, E+1', got {len(text)} characters"
        )
    game, actions = single(state), list[int]()
    for move in filter(str.strip, re.split(r"[,;\n]", text)):
        if actions and not goes_on(game, state):
            raise NotationError(f"{shown(move.strip())} is one move too many for this turn")
        for action in read_move(game[0], move):
            engine.step(game, np.array([action]), roll=False)
            actions.append(action)
    if not actions:
        raise NotationError(f"there is no move in the answer: {_whole_turn(state)}")
    if goes_on(game, state):
        raise NotationError(f"the turn is not complete: then {_next_step(game[0])}")
    return actions


# ------------------------------------------------------------------------------------ in words

_ON_ROLL: Final = "you choose its clan at once"
_DEFERRED: Final = (
    "it waits in your reserve, and you choose its clan at the start of your next turn, before you "
    "play paladins"
)


def rules_text(rules: Rules) -> str:
    """Return the rules of the game for that number of players and those options.

    One text, so that it can be read as a player reads it: it is longer than a function should be.
    """
    who, partners = _teams(rules)
    ally, members = (
        (" (your partner's too)", "'s players control") if partners else ("", " controls")
    )
    last = ""
    if rules.max_rounds is not None:
        last = f" After round {rules.max_rounds} the game is cut off and nobody wins."
    return f"""\
CAROLUS MAGNUS, a board game, here for {rules.players} players: {who}.{partners}

The board. {TERRITORIES} territories, numbered 0 to {TERRITORIES - 1} clockwise, lie in a circle. \
A region is one territory, or several that have merged for good, and is named by its first and \
last territory clockwise: 7, 4-6, 14-0. Paladins of five clans ({", ".join(CLAN_NAMES)}) stand on \
the regions, and the Emperor stands on one of them. Each player has a court, a reserve of \
paladins, and discs numbered 1 to {DISCS}. Everything is open; only the dice are left to chance.

The goal. A team with {rules.castles_to_win} castles in play (or more) wins at once. Otherwise, \
with fewer than {MIN_REGIONS} regions left, the game ends at once and the team with the most \
castles in play wins; teams that tie for the most share the win.{last}

A round.
1. Opening: in opening order, each player plays one disc of those in hand. A number that was \
already played this round is not allowed, unless all discs in hand have such numbers. Lower \
numbers act first; of two equal numbers, the one played earlier. A higher number lets you move \
the Emperor farther. The action order is the next round's opening order. After every fifth round \
all players take their discs back.
2. Action: in action order, each player takes a turn of three steps.
   a. Play {rules.dice} paladins from your reserve (all, if there are fewer), each to your court \
or to any region. A paladin that was played stays where it is.
   b. Move the Emperor clockwise, at least one step and at most as many as the number on your \
disc of this round. A region, merged or not, is one step. Then settle the region where he stops.
   c. Roll {rules.dice} dice and take the paladins they show into your reserve. The faces of a die \
are the five clans and a crown. A crown becomes a paladin of a clan of your choice: \
{_ON_ROLL if rules.crown_choice == "on_roll" else _DEFERRED}.

Control. You take control of a clan when your court holds more of its paladins than every other \
court{ally}. You keep it, in a tie too, until another player's court holds more than every other \
court. A clan that nobody has led yet is controlled by nobody.

Settling a region. A team's strength there is the number of paladins on it of the clans that the \
team{members}, plus the team's castles on it. \
A team that is stronger than every other team becomes the owner: on a region without castles it \
builds one castle, otherwise it replaces every castle there by its own. If it is the owner \
already, or on a tie for the highest strength, or if nobody has strength, nothing changes. When \
the owner has changed, and only then, the region merges with each of its two neighbours that has \
castles of the same team: one region, with all their paladins and castles. A merged region is not \
settled again. Regions change hands only where the Emperor stops.

The supply. If it holds none of a clan that is to be taken, every player first returns the same \
number of that clan from court, as many as the court with the fewest holds. If that is none, a die \
showing the clan counts as a crown, and no crown can become that clan.{_other_options(rules)}"""


def _teams(rules: Rules) -> tuple[str, str]:
    """Return the members of each team, and a paragraph on partners, where there are any."""
    teams = [
        [seat for seat in range(rules.players) if rules.team(seat) == team]
        for team in range(rules.teams)
    ]
    if rules.players == rules.teams:
        return ", ".join(f"player {seat} is team {TEAM_LETTERS[seat]}" for [seat] in teams), ""
    who = ", ".join(
        f"players {a} and {b} are team {TEAM_LETTERS[team]}" for team, (a, b) in enumerate(teams)
    )
    return who, (
        " Partners win and lose together and share their castles, but each has an own court, "
        "reserve and discs, and controls clans alone: their courts are not added up."
    )


def _other_options(rules: Rules) -> str:
    """Return a paragraph on the options that are not the default; without any, nothing."""
    printed, lines = Rules(rules.players).to_dict(), []
    for name, value in rules.to_dict().items():
        if value != printed[name]:
            about = OPTIONS[name].metadata["about"]
            lines.append(f"- {name} = {value_text(value)}: {about}")
    return "\n".join(["\n\nOptions of this game:", *lines]) if lines else ""


def position_text(state: np.void) -> str:
    """Return a position that waits for a decision, as the player to move needs it.

    Raises:
        ValueError: when no decision is due.
    """
    rules, seat = engine.rules_of(state), int(state["player"])
    _check_due(state)
    castles = ", ".join(f"{TEAM_LETTERS[t]} {state['castles'][t]}" for t in range(rules.teams))
    lines = [
        f"You are player {seat}, {_team(state, seat)}. {_round(state)}.",
        f"Castles in play: {castles}; {rules.castles_to_win} win.",
        "",
        "Regions clockwise from the Emperor, with the steps to each, its paladins, its castles, "
        "and what each team's strength would be if he stopped there now:",
        *_regions(state),
        "",
        "Courts (* controls the clan):",
    ]
    for player in range(rules.players):
        held = [clan for clan in range(CLANS) if state["control"][clan] == player]
        lines.append(f"player {player}: {_paladins(state['courts'][player], held)}")
    nobody = [CLAN_NAMES[clan] for clan in range(CLANS) if state["control"][clan] == NOBODY]
    if nobody:
        lines.append(f"controlled by nobody: {', '.join(nobody)}")
    lines += ["", "Reserves:"]
    for player in range(rules.players):
        crowns = int(state["crowns"][player])
        more = f" and {counted(crowns, 'crown')} to decide" if crowns else ""
        lines.append(f"player {player}: {_paladins(state['reserves'][player])}{more}")
    lines += [f"supply: {_paladins(state['supply'])}", "", *_discs(state)]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------ what is asked

_SAMPLES: Final = {DISC: "d3", CROWN_CHOICE: "crown=red", MOVE: "E+1", PLACE: "blue>7"}
"""A move of each phase, the same in every position, to show the form of an answer."""


def request_text(state: np.void, *, turns: bool) -> str:
    """Return the decision that the player to move must take, and how to write the answer.

    Args:
        state: one game.
        turns: True: one answer is a whole turn; False: a single decision.

    Raises:
        ValueError: when no decision is due.
    """
    _check_due(state)
    phase, forms, example = int(state["phase"]), list[str](), list[str]()
    if not turns:
        actions = engine.legal_actions(state).tolist()
        listed = ", ".join(move_text(state, action) for action in actions)
        return (
            f"Now {_next_step(state)}. The legal moves, with what each of them changes (! takes "
            f"control of the clan, # ends the game), are:\n{listed}\n\n"
            + _json_text("One of these moves; what it changes may be left out", _SAMPLES[phase])
        )
    if phase == DISC:
        return "Now play a disc.\n\n" + _json_text(f"One of {legal_text(state)}", _SAMPLES[DISC])
    if phase == CROWN_CHOICE:
        forms.append("crown=CLAN for each crown")
        example.append(_SAMPLES[CROWN_CHOICE])
    then = _after_crowns(state)[1]
    if then["phase"] == PLACE:
        forms.append(
            "for each paladin CLAN>court or CLAN>REGION (for two equal ones 2 CLAN>REGION)"
        )
        example.append(f"2 red>court, {_SAMPLES[PLACE]}")
    if then["phase"] in (PLACE, MOVE):
        forms.append("E+STEPS for the Emperor")
        example.append(_SAMPLES[MOVE])
    what = ", then ".join(forms) + "; on one line, separated by commas"
    now = f"Now {_whole_turn(state)}."
    if phase == CROWN_CHOICE:
        clans = [action_parts(action).clan for action in engine.legal_actions(state).tolist()]
        now += f" A crown can become {', '.join(CLAN_NAMES[clan] for clan in clans)}."
    return f"{now}\n\n" + _json_text(what[0].upper() + what[1:], ", ".join(example))


def _json_text(what: str, example: str) -> str:
    return (
        "Think, then end your answer with JSON that gives your move as a text under the key "
        '"move".\n'
        f"{what}. In this form, which shows other moves than yours:\n"
        f'```json\n{{"move": "{example}"}}\n```'
    )


def _check_due(state: np.void) -> None:
    if state["phase"] not in (CROWN_CHOICE, DISC, PLACE, MOVE):
        raise ValueError("no decision is due in this position: it is over, or waits for a roll")


def _after_crowns(state: np.void) -> tuple[int, np.void]:
    """Return the number of crowns due, and the game after them, whatever they become.

    A crown that can become no clan is lost, so there may be fewer than the player has.
    """
    game, crowns = single(state), 0
    while game["phase"][0] == CROWN_CHOICE and goes_on(game, state):
        engine.step(game, engine.legal_actions(game[0])[:1], roll=False)
        crowns += 1
    return crowns, game[0] if goes_on(game, state) else state


def _next_step(state: np.void) -> str:
    """Return the description of a single decision."""
    phase = int(state["phase"])
    if phase == DISC:
        return "play a disc"
    if phase == CROWN_CHOICE:
        return "choose the clan of a crown"
    if phase == MOVE:
        return "move the Emperor"
    return f"play a paladin ({state['placements_left']} left in this turn, then the Emperor)"


def _whole_turn(state: np.void) -> str:
    """Return the description of a whole turn, unless it is a disc."""
    (crowns, then), parts = _after_crowns(state), list[str]()
    if crowns:
        many = "crown" if crowns == 1 else f"{crowns} crowns"
        parts.append(f"choose the clan of your {many}")
    if then["phase"] == PLACE:
        parts.append(f"play {counted(int(then['placements_left']), 'paladin')} from your reserve")
    if then["phase"] in (PLACE, MOVE):
        most = int(state["discs_played"][state["player"]])
        parts.append(f"move the Emperor {'1 step' if most == 1 else f'1 to {most} steps'}")
    return ", then ".join(parts)


# ------------------------------------------------------------------------------------ the board


def _team(state: np.void, seat: int) -> str:
    return f"team {TEAM_LETTERS[int(state['team'][seat])]}"


def _paladins(counts: Iterable[int], held: Iterable[int] = ()) -> str:
    """Return ``2 red, 1 blue*``, a star for each clan that is held; ``none`` for none."""
    stars = set(held)
    words = [
        f"{n} {CLAN_NAMES[clan]}{'*' if clan in stars else ''}"
        for clan, n in enumerate(counts)
        if n or clan in stars
    ]
    return ", ".join(words) or "none"


def _round(state: np.void) -> str:
    return f"Round {state['round']}" if state["round"] else "The set-up, before round 1"


def _regions(state: np.void) -> list[str]:
    """Return a line for each region, clockwise from the Emperor's."""
    count, first = int(state["regions"]), int(state["emperor"])
    powers, _ = engine.play.strengths(state)
    lines = []
    for k in range(count):
        i = (first + k) % count
        words = f"+{k}" if k else "Emperor"
        words += f" region {region_text(state, k)}: {_paladins(state['region_paladins'][:, i])}"
        if (owner := int(state["region_owner"][i])) != NOBODY:
            words += (
                f"; {counted(int(state['region_castles'][i]), 'castle')} of {TEAM_LETTERS[owner]}"
            )
        strength = " ".join(f"{TEAM_LETTERS[t]}{n}" for t, n in enumerate(powers[k].tolist()))
        lines.append(f"{words}; strength {strength}")
    return lines


def _discs(state: np.void) -> list[str]:
    """Return a line for each seat in order: its disc, whether it has acted, its hand."""
    players, turn, phase = int(state["players"]), int(state["turn"]), int(state["phase"])
    opening = phase == DISC or state["round"] == 0
    lines = ["Discs, in opening order:" if opening else "Discs, in action order:"]
    for place, seat in enumerate(state["order"][:players].tolist()):
        hand = int(state["discs_in_hand"][seat])
        held = " ".join(str(d) for d in range(1, DISCS + 1) if hand >> d - 1 & 1) or "none"
        played = int(state["discs_played"][seat])
        words = f"played {played}" if played else "none played yet"
        if not opening:
            words += ", to act now" if place == turn else ", acted" if place < turn else ""
        lines.append(f"player {seat} ({_team(state, seat)}): {words}; in hand {held}")
    return lines
