"""Published perft counts, and the command that counts; docs/perft.md defines what is counted.

    python -m carolus_env.notation.perft                        # count the published ones again
    python -m carolus_env.notation.perft LINE --depth 3
    python -m carolus_env.notation.perft LINE --depth 3 --divide
    python -m carolus_env.notation.perft LINE --depth 2 --divide --after "red>court, E+2"

The counts are in perft.json, beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from carolus_env.engine.perft import Count, divide, perft
from carolus_env.engine.state import States
from carolus_env.notation.moves import NotationError, event_text, read_move, read_roll
from carolus_env.notation.positions import from_text, to_line
from carolus_env.records import PositionError, play_event

PUBLISHED: Final = Path(__file__).with_name("perft.json")

DONE, DIFFERENCE, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


class Published(NamedTuple):
    """A position with its counts.

    Attributes:
        name: for lists.
        tries: the rules that it puts to the test.
        position: as a line without a generator.
        counts: after 1, 2 and 3 decisions.
    """

    name: str
    tries: str
    position: str
    counts: list[Count]


def published() -> list[Published]:
    """The twelve positions of docs/perft.md."""
    return [
        Published(
            row["name"],
            row["tries"],
            row["position"],
            [
                Count(*numbers)
                for numbers in zip(row["sequences"], row["positions"], row["ended"], strict=True)
            ],
        )
        for row in json.loads(PUBLISHED.read_text())
    ]


def play_on(game: States, text: str) -> None:
    """Play moves and rolls, separated by commas, in place: ``E+2, rolls red blue crown, d3``.

    Raises:
        NotationError: for the first that cannot be read or played after those before it.
    """
    for word in text.split(","):
        if dice := int(game["dice_due"][0]):
            play_event(game, {"roll": read_roll(word, dice)})
            continue
        for action in read_move(game[0], word):
            play_event(game, {"action": action})


def published_table() -> str:
    """The published counts as a Markdown table (docs/perft.md holds it; a test compares)."""
    each = range(1, 1 + len(published()[0].counts))
    heads = [f"{what} {n}" for what in Count._fields for n in each]
    lines = [f"| | position | tries | {' | '.join(heads)} |"]
    lines.append("| ---: | --- | --- |" + " ---: |" * len(heads))
    for number, case in enumerate(published(), 1):
        cells = [f"{count:,}" for counts in zip(*case.counts, strict=True) for count in counts]
        lines.append(f"| {number} | {case.name} | {case.tries} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ command line


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m carolus_env.notation.perft``; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        if options.position is None:
            return _recount()
        game = from_text(options.position)
        if options.after:
            play_on(game, options.after)
        _show(game, options.depth, options.divide)
    except (NotationError, PositionError) as error:
        print(error, file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m carolus_env.notation.perft",
        description="Count the different positions after some decisions, and the sequences of "
        "decisions and rolls that lead to them.",
        epilog="exit status: 0 done; 1 a published count was not reproduced; 2 a position or a "
        "move that cannot be read",
    )
    add = parser.add_argument
    add("position", metavar="LINE", nargs="?", help="a position (docs/notation.md); without one, "
        "the published positions are counted again and compared")  # fmt: skip
    add("--depth", type=_depth, default=3, metavar="N", help="decisions (default: 3)")
    add("--divide", action="store_true", help="the counts of that depth by the first action, or by "
        "the roll that is due")  # fmt: skip
    add("--after", metavar="MOVES", help="first play these, separated by commas: moves, and rolls "
        "such as 'rolls red blue crown'")  # fmt: skip
    return parser


def _depth(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more decisions, got {text!r}")
    return int(text)


def _recount() -> int:
    wrong = 0
    for case in published():
        counts = perft(from_text(case.position), len(case.counts))[1:]
        print(f"{'as published' if counts == case.counts else 'DIFFERENT':12}  {case.name}")
        if counts != case.counts:
            wrong += 1
            _table("depth", ((str(n), count) for n, count in enumerate(counts, 1)))
    return DIFFERENCE if wrong else DONE


def _show(game: States, depth: int, divided: bool) -> None:
    print(to_line(game[0], generator=False))
    if not divided:
        counts = perft(game, depth)[1:]
        _table("depth", ((str(n), count) for n, count in enumerate(counts, 1)))
        return
    rows = [
        (event_text(game[0], branch.event, branch.after[0]), branch.beyond)
        for branch in divide(game, depth)
    ]
    _table("first", [*rows, ("all", perft(game, depth)[-1])])


def _table(what: str, rows: Iterable[tuple[str, Count]]) -> None:
    rows = list(rows)
    width = max(len(text) for text in (what, *(name for name, _ in rows)))
    print(f"{what:{width}} {'sequences':>14} {'positions':>14} {'ended':>14}")
    for name, count in rows:
        print(f"{name:{width}} {count.sequences:14} {count.positions:14} {count.ended:14}")


if __name__ == "__main__":
    sys.exit(main())
