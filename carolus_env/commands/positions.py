"""Commands about positions: ``carolus analyse`` rolls one out, ``carolus engine`` answers them."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import IO, Any, Final

import numpy as np

from carolus_env import bots
from carolus_env.engine.chance import branches, new_streams
from carolus_env.engine.play import legal_masks
from carolus_env.engine.rules import MOVE, PHASE_NAMES, PLACE, Rules
from carolus_env.engine.state import States, equal
from carolus_env.evaluation import rollouts
from carolus_env.evaluation.games import ArenaError, warm_up
from carolus_env.evaluation.tournament import labels
from carolus_env.integrations import external as protocol
from carolus_env.notation import from_text, read_moves, turn_texts
from carolus_env.notation.moves import situation
from carolus_env.notation.positions import TEAM_LETTERS
from carolus_env.records import Record, RecordError, names_of, positions, read_records
from carolus_env.system import untrusted
from carolus_env.system.command import DONE, INTERRUPTED, aligned, command, counting, needs, parse
from carolus_env.system.files import expanded
from carolus_env.system.options import UserError, argument, group, option

_ANALYSE: Final = """\
Roll a position out: what is each choice worth, when everyone plays on as BASE does? Or roll out
each decision of a recorded game: what did it cost?

    carolus analyse "2 | 3 | 1 place 2 | 11 | A1y1 g1 ..."
    carolus analyse position.txt --base planner --games 5000 --threads 2
    carolus analyse position.txt --move "r>court, E+2" --move "b>8, E+1"
    carolus analyse games.jsonl.gz --game 3 --rounds 3 --games 300

POSITION is a line or a page of text (docs/notation.md), a file of it, or - for standard input; or a
file of game records. The games stop when one choice is surely the best, or at --games; with --error
when the errors are small enough. See docs/bench.md.
"""


@dataclass(frozen=True)
class AnalyseOptions:
    """The options of ``carolus analyse``."""

    position: str = argument(
        "a line, a file of it or of game records, or - for standard input", "POSITION", kind=str
    )
    game: int = option(1, "which game of a file of records, from 1", among=(1, None))
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
    """Roll out and print; returns the exit code."""
    options, given = parse(AnalyseOptions, arguments, program, _ANALYSE)
    is_record = "|" not in options.position and options.position.endswith((".jsonl", ".jsonl.gz"))
    needs(given, "value", options.rollout.rounds is not None, "--rounds N")
    needs(given, "most", not options.move, "turns to choose from, and --move names them")
    needs(given, "game", is_record, "a file of game records, .jsonl or .jsonl.gz")
    needs(given, "move", not is_record, "a position, not a game")
    kept = _analyse_game(options) if is_record else _analyse_position(options)
    if kept:
        raise UserError(f"interrupted: {kept}", INTERRUPTED)
    return DONE


def _analyse_position(options: AnalyseOptions) -> str:
    """Roll one position out, and print it; return what was kept of an interrupted rollout."""
    game = _position(options.position)
    choices = [tuple(read_moves(game[0], text)) for text in options.move]
    choices = choices or rollouts.candidates(game, options.most)
    kept = ""
    with counting("games", options.rollout.games * len(choices)) as progress:
        try:
            result = rollouts.roll_out(
                game, choices, options.rollout, seed=options.seed, progress=progress
            )
        except rollouts.Interrupted as stopped:
            result = stopped.analysis
            kept = f"the {result.games:,} games played before are shown"
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
        return kept
    team, rows = result.team, [("choice", "win", "+-", "regret", "+-", "games")]
    for one, text in zip(result.candidates, texts, strict=True):
        values = one.mean[team], one.error[team], one.regret, one.regret_error
        win, error, *behind = map(_percent, values)
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
    return kept


def _percent(part: float) -> str:
    return f"{100 * part:.1f}"


def _analyse_game(options: AnalyseOptions) -> str:
    """Roll out each decision of a recorded game and print its cost, and each player's rate."""
    path = expanded(options.position)
    try:
        record = next(islice(read_records(path), options.game - 1, None), (0, None))[1]
    except (OSError, RecordError) as wrong:
        raise UserError(f"{path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    if record is None:
        raise UserError(f"{path}: holds no game {options.game}")
    decisions, rows, kept = [*_decisions(record, options.most)], list[dict[str, Any]](), ""
    with counting("decisions", len(decisions)) as progress, contextlib.suppress(KeyboardInterrupt):
        for game, played, choices in decisions:
            result = rollouts.roll_out(game, choices, options.rollout, seed=options.seed)
            of = {one.actions: one for one in result.candidates}[played]
            rows.append(
                {
                    "round": int(game["round"][0]),
                    "player": int(game["player"][0]),
                    "choice": _choice(game, played),
                    "cost": of.regret,
                    "error": of.regret_error,
                    "best": _choice(game, result.best.actions),
                }
            )
            progress(len(rows))
    if len(rows) < len(decisions):
        kept = f"{len(rows)} of {len(decisions)} decisions were rolled out"
    players = []
    for seat, name in enumerate(labels(names_of(record))):
        own = [row for row in rows if row["player"] == seat]
        cost, error = sum(row["cost"] for row in own), math.hypot(*(row["error"] for row in own))
        count = max(len(own), 1)
        about = {"name": name, "decisions": len(own), "cost": cost, "error": error}
        players.append({**about, "rate": cost / count, "rate_error": error / count})
    if options.json:
        print(json.dumps({"game": options.game, "decisions": rows, "players": players}, indent=1))
        return kept
    table = [("round", "player", "choice", "cost", "+-", "best")]
    for row in rows:
        name, best = players[row["player"]]["name"], row["best"] if row["cost"] else ""
        numbers = (_percent(row[key]) for key in ("cost", "error"))
        table.append((str(row["round"]), name, row["choice"], *numbers, best))
    totals = [("player", "decisions", "cost", "+-", "a decision", "+-")]
    for each in players:
        numbers = (_percent(each[key]) for key in ("cost", "error", "rate", "rate_error"))
        totals.append((each["name"], str(each["decisions"]), *numbers))
    print("percent of the win that each decision with an alternative cost, with standard errors")
    print("\n".join([*aligned(table, right=(0, 3, 4)), "", *aligned(totals, right=range(1, 6))]))
    return kept


def _decisions(
    record: Record, most: int
) -> Iterator[tuple[States, tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield a game before each decision that had an alternative, the choice, and all candidates.

    A turn is one decision; one that the record does not end is left out.
    """
    states, events, first = positions(record), record["events"], 0
    in_turn = np.isin(states["phase"], (PLACE, MOVE))
    while first < len(events):
        game, end = states[first : first + 1], first + 1
        while in_turn[first] and in_turn[end] and states["player"][end] == game["player"][0]:
            end += 1
            if end == len(states):
                return
        if "action" in events[first]:
            played = tuple(event["action"] for event in events[first:end])
            choices = rollouts.candidates(game, most)
            after = rollouts.after(game, [*choices, played])
            same = np.flatnonzero(equal(after[:-1], after[-1:].repeat(len(choices))))
            if len(same):
                played = choices[same[0]]
            else:
                choices.append(played)
            if len(choices) > 1:
                yield game, played, choices
        first = end


def _position(text: str) -> States:
    """Return the game that the argument names: text, a file of it, or - for standard input."""
    if text == "-":
        return from_text(sys.stdin.read())
    if "|" in text:
        return from_text(text)
    try:
        return from_text(expanded(text).read_text(encoding="utf-8"))
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
        rest = data
        while len(rest) == protocol.LONGEST and not rest.endswith(b"\n"):
            rest = requests.readline(protocol.LONGEST)
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
