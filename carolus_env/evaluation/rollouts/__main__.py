"""Roll a position out: what is each choice worth, when everyone plays on as BASE does?

    python -m carolus_env.evaluation.rollouts "2 | 3 | 1 place 2 | 11 | A1y1 g1 ..."
    python -m carolus_env.evaluation.rollouts position.txt --base planner --games 5000 --threads 2
    python -m carolus_env.evaluation.rollouts position.txt --move "r>court, E+2" --move "b>8, E+1"

POSITION is a line or a page of text (docs/notation.md), a file of it, or - for standard input. The
games stop when one choice is surely the best, or at --games; with --error when the errors are small
enough. See docs/rollouts.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from carolus_env.engine.state import States
from carolus_env.evaluation.rollouts.candidates import candidates, choice_text
from carolus_env.evaluation.rollouts.rollout import ENDS, Options, Rollout, roll_out
from carolus_env.notation import from_text, read_moves
from carolus_env.notation.vocabulary import TEAM_LETTERS, situation
from carolus_env.system import cluster
from carolus_env.system.cancellation import ended_by_sigterm
from carolus_env.system.executors import InProcess, WorkerError
from carolus_env.system.options import command_parser
from carolus_env.system.terminal import aligned, counting

PROGRAM: Final = "python -m carolus_env.evaluation.rollouts"
DONE, USER_ERROR, INTERRUPTED = 0, 2, 130
_HEADINGS: Final = ("choice", "win", "+-", "behind by", "+-", "games")


@ended_by_sigterm()
def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command, which the user called ``program``; returns the exit status."""
    arguments = _parser(program).parse_args(argv)
    try:
        game = _position(arguments.position)
        choices = [tuple(read_moves(game[0], text)) for text in arguments.move]
        choices = choices or candidates(game[0], arguments.most)
        options = Options(
            **{field.name: getattr(arguments, field.name) for field in fields(Options)}
        )
        with (
            cluster.workers_of(
                arguments, filter(None, (arguments.base, arguments.value))
            ) as workers,
            counting("games", arguments.games * len(choices)) as progress,
        ):
            result = roll_out(
                game[0],
                choices,
                options,
                seed=arguments.seed,
                progress=progress,
                workers=None if isinstance(workers, InProcess) else workers,
            )
    except (ValueError, WorkerError) as error:
        print(f"carolus_env.evaluation.rollouts: {error}", file=sys.stderr)
        return USER_ERROR
    except OSError as error:
        print(f"{arguments.position}: {error.strerror or error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if arguments.json:
        print(json.dumps(as_data(result, game), indent=1))
    else:
        _print(result, game, options)
    return DONE


def _parser(program: str) -> argparse.ArgumentParser:
    parser = command_parser(__doc__, program)
    usual = Options()
    add = parser.add_argument
    add("position", metavar="POSITION", help="a line, a file, or - for standard input")
    add("--base", default=usual.base, metavar="BOT", help="plays every seat (default %(default)s)")
    add("--move", action="append", default=[], metavar="TEXT", help="a choice to compare, in "
        "notation; may be repeated (default: discs, crowns, or the best turns)")  # fmt: skip
    add("--most", type=int, default=8, metavar="K", help="turns to compare (default %(default)s)")
    add("--games", type=int, default=usual.games, metavar="N", help="of each choice, at most "
        "(default %(default)s)")  # fmt: skip
    add("--error", type=float, metavar="E", help="play until the standard error of every choice "
        "that is left is as small")  # fmt: skip
    add("--rounds", type=int, metavar="N", help="stop games after N rounds and value the "
        "positions by --value: far quicker, a little biased (default: play on)")  # fmt: skip
    add("--value", default=usual.value, metavar="VALUE", help="value function of --rounds: "
        "planner, value, ppo, or a model, as value:PATH (default %(default)s)")  # fmt: skip
    add("--threads", type=int, default=1, metavar="N", help="(default %(default)s)")
    cluster.add_options(parser)
    add("--seed", type=int, default=0, metavar="S", help="the same seed gives the same games")
    add("--json", action="store_true", help="print JSON")
    return parser


def _position(text: str) -> States:
    """Return the game that the argument names.

    Raises:
        ValueError: for a text that is no position.
        OSError: for a file that cannot be read.
    """
    if text == "-":
        return from_text(sys.stdin.read())
    return from_text(text if "|" in text else Path(text).read_text())


def as_data(rollout: Rollout, game: States) -> dict[str, Any]:
    """Return a rollout as plain values for JSON."""
    return {
        "team": rollout.team,
        "ended": rollout.ended,
        "games": rollout.games,
        "decisions": rollout.decisions,
        "seconds": rollout.seconds,
        "candidates": [
            {
                **{name: np.asarray(value).tolist() for name, value in asdict(estimate).items()},
                "text": choice_text(game, estimate.actions),
            }
            for estimate in rollout.candidates
        ],
    }


def _print(rollout: Rollout, game: States, options: Options) -> None:
    rows = []
    for estimate in rollout.candidates:
        mean, error = estimate.mean[rollout.team], estimate.error[rollout.team]
        losses = (estimate.loss, estimate.loss_error)
        behind = [f"{100 * loss:.1f}" if estimate.loss else "" for loss in losses]
        rows.append(
            (
                choice_text(game, estimate.actions),
                f"{100 * mean:.1f}",
                f"{100 * error:.1f}",
                *behind,
                f"{estimate.games:,}{' dropped' if estimate.dropped else ''}",
            )
        )
    team = TEAM_LETTERS[rollout.team]
    print(f"{situation(game[0])}; percent of the win for team {team}, with standard errors")
    print("\n".join(aligned([_HEADINGS, *rows], right=True)))
    each = 1e6 * rollout.seconds / max(rollout.decisions, 1)
    print(
        f"{ENDS[rollout.ended]}: {rollout.games:,} games by {options.base} in "
        f"{rollout.seconds:.1f} s ({each:.1f} us a decision)"
    )


if __name__ == "__main__":
    sys.exit(main())
