"""Roll a position out: what is each choice worth, when everyone plays on as BASE does?

    carolus analyse "2 | 3 | 1 place 2 | 11 | A1y1 g1 ..."
    carolus analyse position.txt --base planner --games 5000 --threads 2
    carolus analyse position.txt --move "r>court, E+2" --move "b>8, E+1"

POSITION is a line or a page of text (docs/notation.md), a file of it, or - for standard input. The
games stop when one choice is surely the best, or at --games; with --error when the errors are small
enough. See docs/bench.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carolus_env.engine.state import States
from carolus_env.evaluation import rollouts
from carolus_env.notation import from_text, read_moves, turn_texts
from carolus_env.notation.moves import situation
from carolus_env.notation.positions import TEAM_LETTERS
from carolus_env.system.command import DONE, aligned, command, counting, needs, parse
from carolus_env.system.failures import UserError
from carolus_env.system.options import REQUIRED, group, option


@dataclass(frozen=True)
class AnalyseOptions:
    """The options of the command."""

    position: str = option(
        REQUIRED,
        "a line, a file, or - for standard input",
        kind=str,
        positional=True,
        metavar="POSITION",
    )
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
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options, given = parse(AnalyseOptions, arguments, program, __doc__)
    needs(given, "value", options.rollout.rounds is not None, "--rounds N")
    needs(given, "most", not options.move, "turns to choose from, and --move names them")
    game = _position(options.position)
    choices = [tuple(read_moves(game[0], text)) for text in options.move]
    choices = choices or rollouts.candidates(game, options.most)
    with counting("games", options.rollout.games * len(choices)) as progress:
        result = rollouts.roll_out(
            game, choices, options.rollout, seed=options.seed, progress=progress
        )
    if options.json:
        print(json.dumps(_as_data(result, game), indent=1))
    else:
        _print(result, game, options.rollout.base)
    return DONE


def _position(text: str) -> States:
    """Return the game that the argument names: text, a file of it, or - for standard input."""
    if text == "-":
        return from_text(sys.stdin.read())
    if "|" not in text:
        file = Path(text).expanduser()
        try:
            return from_text(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{text!r}: {error.strerror or error}") from error
        except ValueError as error:
            raise UserError(f"{text!r}: {error}") from error
    return from_text(text)


def _choice(game: States, actions: Sequence[int]) -> str:
    turns = turn_texts(game, [{"action": action} for action in actions])
    return ", ".join(turn.text for turn in turns)


def _as_data(rollout: rollouts.Analysis, game: States) -> dict[str, Any]:
    """Return a rollout as plain values for JSON."""
    names = ("team", "ended", "games", "decisions", "seconds")
    candidates = [
        {name: np.asarray(value).tolist() for name, value in asdict(estimate).items()}
        | {"text": _choice(game, estimate.actions)}
        for estimate in rollout.candidates
    ]
    return {name: getattr(rollout, name) for name in names} | {"candidates": candidates}


def _print(rollout: rollouts.Analysis, game: States, base: object) -> None:
    team = rollout.team
    rows: list[tuple[str, ...]] = [("choice", "win", "+-", "regret", "+-", "games")]
    for one in rollout.candidates:
        values = one.mean[team], one.error[team], one.regret, one.regret_error
        cells = [f"{100 * value:.1f}" for value in values]
        games = f"{one.games:,}{' dropped' if one.dropped else ''}"
        behind = cells[2:] if one.regret else ["", ""]
        rows.append((_choice(game, one.actions), *cells[:2], *behind, games))
    letter = TEAM_LETTERS[team]
    print(f"{situation(game[0])}; percent of the win for team {letter}, with standard errors")
    print("\n".join(aligned(rows, right=range(1, 6))))
    each = 1e6 * rollout.seconds / max(rollout.decisions, 1)
    print(
        f"{rollouts.ENDS[rollout.ended]}: {rollout.games:,} games by {base} in "
        f"{rollout.seconds:.1f} s ({each:.1f} us a decision)"
    )
