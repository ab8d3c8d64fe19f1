"""Results of the benchmarks, in results.json beside this file, and formats of their tables.

Each benchmark prints its table, and with ``--save`` writes its rows there; ``make tables`` puts the
same tables into README.md and docs/.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from carolus_env.system.files import write_json

RESULTS: Final = Path(__file__).parent / "results.json"

Row = dict[str, Any]


def measuring_parser(about: str | None, **options: Any) -> argparse.ArgumentParser:
    """Return the parser of a benchmark, with ``--save`` and an option for each number given."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="write to benchmarks/results.json")
    for name, usual in options.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual, help="(%(default)s)")
    return parser


def report(
    text: str, rows: Iterable[Row], name: str, saved: bool, keys: Sequence[str] = ()
) -> None:
    """Print a benchmark's table; if asked, write its rows, in place of all or those of `keys`."""
    print(text)
    if saved:
        save_rows(name, rows, keys) if keys else save(name, list(rows))


def load(name: str) -> Any:
    """Load the rows saved under a name."""
    return json.loads(RESULTS.read_text())[name]


def save(name: str, value: Any) -> None:
    """Write a value under a name; the others stay."""
    result = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    write_json(RESULTS, dict(sorted({**result, name: value}.items())))


def save_rows(name: str, rows: Iterable[Row], keys: Sequence[str]) -> None:
    """Write rows under a name, in place of those with the same values of ``keys``."""

    def case(row: Row) -> tuple[str, ...]:
        return tuple(str(row[key]) for key in keys)

    result = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    merged = {case(row): row for row in [*result.get(name, []), *rows]}
    save(name, list(merged.values()))


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]], rows: Iterable[Row] = ()) -> str:
    """Return a Markdown table, followed by the machines on which ``rows`` were measured."""
    text = "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines))
    machines = dict.fromkeys(row["machine"] for row in rows)
    return text + (f"\nMachine: {'; '.join(machines)}.\n" if machines else "")


def by_players(
    head: Sequence[str],
    cells: Iterable[tuple[Sequence[str], int, str]],
    measured: Iterable[Row] = (),
) -> str:
    """Return a Markdown table with a column for each number of players, and the machines below it.

    Args:
        head: names of the columns on the left.
        cells: for each cell the names on its left, its players, and its text. A spec's number of
            players is left out of a name, as the column says it.
        measured: see `markdown`.
    """
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for specs, players, text in cells:
        names = (spec.replace(f":{players}p,", ":").replace(f":{players}p", "") for spec in specs)
        lines.setdefault(tuple(names), {})[players] = text
    rows = [[*names, *(row.get(n, "-") for n in (2, 3, 4))] for names, row in lines.items()]
    return markdown([*head, *(f"{n} players" for n in (2, 3, 4))], rows, measured)


def interval(row: Row) -> str:
    """Return a win rate in percent with its 95 % interval."""
    rate, low, high = (f"{100 * part:.1f}" for part in (row["win_rate"], *row["ci95"]))
    return f"{rate} % ({low} - {high})"


def short(number: float) -> str:
    """Return a number in at most three digits: 10.9 M, 3.71 M, 620 k, 69 k, 6.94 k, 512."""
    number = float(f"{number:.3g}")
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            scaled = number / size
            digits = 2 if scaled < 10 else int(scaled < 100 and unit != "k")
            return f"{scaled:.{digits}f} {unit}"
    return f"{number:g}"


def times(ratio: float) -> str:
    """Return a ratio: 0.42, 1.73, 17, 4,200."""
    return f"{float(f'{ratio:.3g}'):.2f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"


def digits(number: float, unit: str) -> str:
    """Return a number with two digits where it is small: 0.28 s, 7.5 s, 43 ms."""
    return f"{number:.{2 if number < 1 else int(number < 10)}f} {unit}"
