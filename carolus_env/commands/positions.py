"""Commands about positions: ``carolus analyse`` rolls one out, ``carolus engine`` answers them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from carolus_env import bots
from carolus_env.engine.chance import branches, new_streams
from carolus_env.engine.play import legal_masks
from carolus_env.engine.rules import PHASE_NAMES, Rules
from carolus_env.engine.state import States
from carolus_env.evaluation import rollouts
from carolus_env.evaluation.games import ArenaError, warm_up
from carolus_env.integrations import external as protocol
from carolus_env.notation import from_text, read_moves, turn_texts
from carolus_env.notation.moves import situation
from carolus_env.notation.positions import TEAM_LETTERS
from carolus_env.system import untrusted
from carolus_env.system.command import DONE, aligned, command, counting, needs, parse
from carolus_env.system.options import UserError, argument, group, option

_ANALYSE: Final = """\
Roll a position out: what is each choice worth, when everyone plays on as BASE does?

    carolus analyse "2 | 3 | 1 place 2 | 11 | A1y1 g1 ..."
    carolus analyse position.txt --base planner --games 5000 --threads 2
    carolus analyse position.txt --move "r>court, E+2" --move "b>8, E+1"

POSITION is a line or a page of text (docs/notation.md), a file of it, or - for standard input. The
games stop when one choice is surely the best, or at --games; with --error when the errors are small
enough. See docs/bench.md.
"""


@dataclass(frozen=True)
class AnalyseOptions:
    """The options of ``carolus analyse``."""

    position: str = argument("a line, a file, or - for standard input", "POSITION", kind=str)
    move: tuple[str, ...] = option(
        (),
        "a choice to compare, in notation; may be repeated; by default discs, crowns, or the best "
        "turns",
        repeated=True,
    )
    most: int = option(8, "turns to compare", among=(1, rollouts.MOST))
    rollout: rollouts.Options = group(rollouts.Options, "")
    seed: int = option(0, "the same seed gives the same games", among=(0, 2**64 - 1), metavar="S")
    json: bool = option(False, "print JSON")


@command("carolus analyse")
def analyse(arguments: Sequence[str], program: str) -> int:
    """Roll a position out, and print what its choices are worth; returns the exit code."""
    options, given = parse(AnalyseOptions, arguments, program, _ANALYSE)
    needs(given, "value", options.rollout.rounds is not None, "--rounds N")
    needs(given, "most", not options.move, "turns to choose from, and --move names them")
    game = _position(options.position)
    choices = [tuple(read_moves(game[0], text)) for text in options.move]
    choices = choices or rollouts.candidates(game, options.most)
    with counting("games", options.rollout.games * len(choices)) as progress:
        result = rollouts.roll_out(
            game, choices, options.rollout, seed=options.seed, progress=progress
        )
    texts = [_choice(game, estimate.actions) for estimate in result.candidates]
    if options.json:
        names = ("team", "ended", "games", "decisions", "seconds")
        candidates = [
            {key: np.asarray(value).tolist() for key, value in asdict(estimate).items()}
            | {"text": text}
            for estimate, text in zip(result.candidates, texts, strict=True)
        ]
        data = {name: getattr(result, name) for name in names} | {"candidates": candidates}
        print(json.dumps(data, indent=1))
        return DONE
    team, rows = result.team, [("choice", "win", "+-", "regret", "+-", "games")]
    for one, text in zip(result.candidates, texts, strict=True):
        values = one.mean[team], one.error[team], one.regret, one.regret_error
        win, error, *behind = (f"{100 * value:.1f}" for value in values)
        regret, its_error = behind if one.regret else ["", ""]
        games = f"{one.games:,}{' dropped' if one.dropped else ''}"
        rows.append((text, win, error, regret, its_error, games))
    letter = TEAM_LETTERS[team]
    print(f"{situation(game[0])}; percent of the win for team {letter}, with standard errors")
    print("\n".join(aligned(rows, right=range(1, 6))))
    each = 1e6 * result.seconds / max(result.decisions, 1)
    print(
        f"{rollouts.ENDS[result.ended]}: {result.games:,} games by {options.rollout.base} in "
        f"{result.seconds:.1f} s ({each:.1f} us a decision)"
    )
    return DONE


def _position(text: str) -> States:
    """Return the game that the argument names: text, a file of it, or - for standard input."""
    if text == "-":
        return from_text(sys.stdin.read())
    if "|" in text:
        return from_text(text)
    try:
        return from_text(Path(text).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{text!r}: {getattr(error, 'strerror', None) or error}") from error


def _choice(game: States, actions: Sequence[int]) -> str:
    turns = turn_texts(game, [{"action": action} for action in actions])
    return ", ".join(turn.text for turn in turns)


# ------------------------------------------------------------------------------------ engine

_ENGINE: Final = """\
Let an agent answer positions, one JSON object a line, for programs in any language.

    carolus engine planner
    carolus engine search:2p,seconds=1

Requests come on the standard input and answers go to the standard output. docs/write_a_bot.md
has the messages.
"""


@dataclass(frozen=True)
class EngineOptions:
    """The options of ``carolus engine``."""

    agent: str = argument("who answers (docs/bots.md)", "AGENT", kind=str)


@command("carolus engine")
def engine(arguments: Sequence[str], program: str) -> int:
    """Answer until the input ends; returns the exit code."""
    options = parse(EngineOptions, arguments, program, _ENGINE).options
    output = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # where an agent's own words go
        agent = bots.make(options.agent)
        for players in (2, 3, 4):  # a model is for one of them
            with contextlib.suppress(ArenaError):  # other errors come again when it is asked
                warm_up([agent], Rules(players))
                break
        serve(agent, sys.stdin.buffer, output.buffer)
    return DONE


def serve(agent: bots.Agent, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each line until the input ends."""
    while data := requests.readline(protocol.LONGEST):
        answers.write(protocol.message_line(_answer(agent, data)))
        answers.flush()


def _answer(agent: bots.Agent, data: bytes) -> dict[str, Any]:
    """Return the message that answers a line."""
    message: dict[str, Any] = {}
    try:
        message = protocol.read_message(data, "greeting", "request")
        if "protocol" in message:
            return {**protocol.GREETING, "name": agent.name}
        return _decision(agent, message)
    except Exception as error:  # a user's agent can fail in any way
        text = str(error) if isinstance(error, ValueError) else untrusted.message(error)
        request = message.get("id")
        with contextlib.suppress(untrusted.DataError):  # of one that is otherwise wrong
            message = untrusted.check(untrusted.parse_json(data), dict, "a message")
            request = int(untrusted.get(message, "id", int))
        return {"id": request, "error": text}


def _decision(agent: bots.Agent, request: dict[str, Any]) -> dict[str, Any]:
    """Return an answer; the same agent here would decide the same, and draw as many numbers."""
    game = from_text(request["position"])
    if not legal_masks(game).any():
        phase = PHASE_NAMES[int(game["phase"][0])]
        raise ValueError(f"the position waits for no decision: its phase is {phase}")
    stream = np.array([request["seed"]], np.uint64) if "seed" in request else new_streams(None, 1)
    game["generator"] = branches(stream, 0)
    values = bots.opinion(agent, game).values if request.get("analyse") else None
    action = int(agent.act(game, stream)[0])
    answer = {"id": request["id"], "action": action, "seed": int(stream[0])}
    return answer if values is None else {**answer, "values": values[0].tolist()}
