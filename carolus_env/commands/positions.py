"""Commands about positions: ``carolus analyse`` rolls one out, ``carolus engine`` answers them."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import IO, Any, Final, TypeAlias

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
    data, lines, kept = (_analyse_game if is_record else _analyse_position)(options)
    print(json.dumps(data, indent=1) if options.json else "\n".join(lines))
    if kept:
        raise UserError(f"interrupted: {kept}", INTERRUPTED)
    return DONE


_Analysed: TypeAlias = tuple[dict[str, Any], list[str], str]
"""What is printed, as JSON and as lines, and what was kept of a rollout that was interrupted."""


def _analyse_position(options: AnalyseOptions) -> _Analysed:
    """Roll one position out."""
    game, kept = _position(options.position), ""
    choices = [tuple(read_moves(game[0], text)) for text in options.move]
    choices = choices or rollouts.candidates(game, options.most)
    with counting("games", options.rollout.games * len(choices)) as progress:
        try:
            result = rollouts.roll_out(
                game, choices, options.rollout, seed=options.seed, progress=progress
            )
        except rollouts.Interrupted as stopped:
            result = stopped.analysis
            kept = f"the {result.games:,} games played before are shown"
    team, candidates = result.team, []
    rows = [("choice", "win", "+-", "regret", "+-", "games")]
    for one in result.candidates:
        plain = {key: np.asarray(value).tolist() for key, value in asdict(one).items()}
        candidates.append({**plain, "text": _choice(game, one.actions)})
        behind = _percents(one.regret, one.regret_error) if one.regret else ("", "")
        win, games = _percents(one.mean[team], one.error[team]), f"{one.games:,}"
        rows.append((candidates[-1]["text"], *win, *behind, games + " dropped" * one.dropped))
    names = ("team", "ended", "games", "decisions", "seconds")
    data = {name: getattr(result, name) for name in names} | {"candidates": candidates}
    percent = f"percent of the win for team {TEAM_LETTERS[team]}, with standard errors"
    played = f"{result.games:,} games by {options.rollout.base} in {result.seconds:.1f} s"
    each = f"{1e6 * result.seconds / max(result.decisions, 1):.1f} us a decision"
    last = f"{rollouts.ENDS[result.ended]}: {played} ({each})"
    return data, [f"{situation(game[0])}; {percent}", *aligned(rows, right=range(1, 6)), last], kept


def _percents(*parts: float) -> tuple[str, ...]:
    return tuple(f"{100 * part:.1f}" for part in parts)


def _analyse_game(options: AnalyseOptions) -> _Analysed:
    """Roll out each decision of a recorded game: its cost, and each player's rate."""
    path = expanded(options.position)
    try:
        record = next(islice(read_records(path), options.game - 1, None), (0, None))[1]
    except (OSError, RecordError) as wrong:
        raise UserError(f"{path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    if record is None:
        raise UserError(f"{path}: holds no game {options.game}")
    names, decisions = labels(names_of(record)), [*_decisions(record, options.most)]
    table, rows = [["round", "player", "choice", "cost", "+-", "best"]], list[dict[str, Any]]()
    with counting("decisions", len(decisions)) as progress, contextlib.suppress(KeyboardInterrupt):
        for game, played, choices in decisions:
            result = rollouts.roll_out(game, choices, options.rollout, seed=options.seed)
            [of] = [one for one in result.candidates if one.actions == played]
            at = {name: int(game[name][0]) for name in ("round", "player")}
            choice, best = (_choice(game, actions) for actions in (played, result.best.actions))
            cost = {"cost": of.regret, "error": of.regret_error}
            rows.append({**at, "choice": choice, **cost, "best": best})
            costs = _percents(of.regret, of.regret_error)
            name, best = names[at["player"]], best * (of.regret != 0)
            table.append([str(at["round"]), name, choice, *costs, best])
            progress(len(rows))
    some = f"{len(rows)} of {len(decisions)} decisions were rolled out"
    players, totals = [], [["player", "decisions", "cost", "+-", "mean", "+-"]]
    for seat, name in enumerate(names):
        own = [row for row in rows if row["player"] == seat]
        cost, error = sum(row["cost"] for row in own), math.hypot(*(row["error"] for row in own))
        rate = {"rate": cost / max(len(own), 1), "rate_error": error / max(len(own), 1)}
        players.append({"name": name, "decisions": len(own), "cost": cost, "error": error, **rate})
        totals.append([name, str(len(own)), *_percents(cost, error, *rate.values())])
    text = "what each decision cost, in percent of a win, with standard errors"
    lines = [text, *aligned(table, right=(0, 3, 4)), "", *aligned(totals, right=range(1, 6))]
    data = {"game": options.game, "decisions": rows, "players": players}
    return data, lines, some if len(rows) < len(decisions) else ""


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
