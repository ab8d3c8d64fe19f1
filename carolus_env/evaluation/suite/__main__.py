"""Make a suite of decisions, or go on where an earlier call stopped; docs/suite.md.

python -m carolus_env.evaluation.suite --players 2 --workers 2 --out 2p.jsonl.gz
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from carolus_env.evaluation.suite.data import SuiteError, read_suite
from carolus_env.evaluation.suite.making import PROPOSERS, TABLE, Plan, make_suite
from carolus_env.system import backends
from carolus_env.system.options import command_parser
from carolus_env.system.processes import WorkerError
from carolus_env.system.terminal import counting

DONE, USER_ERROR, INTERRUPTED = 0, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (None: the command line's); returns the exit code."""
    arguments = _parser().parse_args(argv)
    options = {field.name: getattr(arguments, field.name) for field in fields(Plan)}
    options["table"], options["proposers"] = map(tuple, (options["table"], options["proposers"]))
    out = arguments.out
    try:
        plan = Plan(**options)
        specs = (plan.base, plan.value, *plan.table, *plan.proposers)
        with (
            backends.workers_of(arguments, specs) as workers,
            counting("decisions", plan.decisions) as progress,
        ):
            make_suite(plan, out, workers=workers, progress=progress)
        print(f"{out}: {plan.decisions} decisions, hash {read_suite(out).digest}")
    except KeyboardInterrupt:
        print(f"interrupted; what is done is kept in {out}.part", file=sys.stderr)
        return INTERRUPTED
    except (SuiteError, WorkerError, ValueError) as error:
        print(f"carolus_env.evaluation.suite: {error}", file=sys.stderr)
        return USER_ERROR
    except OSError as error:
        reason = error.strerror or error
        print(f"carolus_env.evaluation.suite: {error.filename}: {reason}", file=sys.stderr)
        return USER_ERROR
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__, "python -m carolus_env.evaluation.suite")
    add, plan = parser.add_argument, Plan(2)
    add("--players", type=int, required=True, metavar="P", help="2, 3 or 4")
    add("--out", type=Path, required=True, metavar="FILE", help="to write, .jsonl or .jsonl.gz")
    backends.add_options(parser)
    for name, kind, about in (
        ("decisions", int, "how many"),
        ("error", float, "standard error of the best candidates' values"),
        ("base", str, "agent that plays the rollouts"),
        ("rounds", int, "leave games after so many rounds, with their value; 0: never"),
        ("value", str, "the value function"),
        ("decided", float, "leave out positions worth less than this, or more than 1 - this"),
        ("seed", int, "the same seed gives the same file"),
        ("turns", int, "candidates of a turn by the planner's evaluation"),
        ("games", int, "of each candidate, at most"),
    ):
        default: Any = getattr(plan, name)
        add(f"--{name}", type=kind, default=default, help=f"{about} (default {default})")
    add("--table", nargs="+", default=TABLE, metavar="AGENT", help="whose games positions are of")
    add("--proposers", nargs="+", default=PROPOSERS, metavar="AGENT",
        help="whose turns are candidates too")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
