"""The results file of a tournament: JSON Lines, append-only, so a crash loses little.

The first line is the header: format, version, the `Plan`, versions of the software, and hashes of
what the agents play by. Then comes one
line for each game, in the order of the plan, and after each block of games that were played
together a line with the times. Lines of games depend on the plan alone: the same plan gives the
same bytes, however often it was interrupted. `COLUMNS` has the keys, docs/formats.md describes
them.

Results files are untrusted: parsed, checked, refused with a `ResultsFileError`, but never run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from carolus_env.evaluation.games import COLUMNS, PLANNED, Column, Results
from carolus_env.evaluation.seating import MOST_GAMES, Plan
from carolus_env.system.files import Log, json_line, read_lines
from carolus_env.system.machine import versions
from carolus_env.system.untrusted import (
    DataError,
    check,
    cut,
    expect,
    get,
    parse_json,
    shown,
    table,
)

Sources = Sequence[Mapping[str, str]]
"""What each agent of a plan plays by, see `bots.fingerprint`."""

FORMAT: Final = "carolus-tournament"
VERSION: Final = 1
_MOST_SECONDS: Final = 1e15


class ResultsFileError(ValueError):
    """A file that holds no results of a tournament, or those of another one.

    Attributes:
        path: the file.
        line: line number, counted from 1; None: the file as a whole.
        reason: a description of what is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int | None, reason: str) -> None:
        where = os.fspath(path) if line is None else f"{os.fspath(path)}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.path, self.line, self.reason = os.fspath(path), line, reason

    def __reduce__(self) -> tuple[Any, ...]:  # keeps errors picklable across processes
        return type(self), (self.path, self.line, self.reason)


@dataclass(frozen=True)
class Saved:
    """Content of a results file.

    Attributes:
        plan: the tournament's plan.
        results: the games so far, in the plan's order.
        wall: seconds that playing them took, as far as known.
        versions: versions of the software that wrote the file.
        sources: what each agent plays by, see `bots.fingerprint`.
        size: bytes of the complete lines.
        cut: the last line is incomplete; it is left out.
    """

    plan: Plan
    results: Results
    wall: float
    versions: dict[str, str]
    sources: list[dict[str, str]]
    size: int
    cut: bool


class Journal(Log):
    """A results file, open for more games."""

    @classmethod
    def begin(cls, path: str | os.PathLike[str], plan: Plan, sources: Sources) -> Self:
        """Create a new file with its header.

        Raises:
            ResultsFileError: when the file exists.
            OSError: when it cannot be written.
        """
        about = {"versions": versions(), "sources": sources}
        header = {"format": FORMAT, "version": VERSION, **plan.to_dict(), **about}
        try:
            return cls.create(path, json_line(header))
        except FileExistsError:
            raise ResultsFileError(path, None, "exists; resume it or move it") from None

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], plan: Plan, sources: Sources
    ) -> tuple[Self, Saved]:
        """Resume a file after its last complete line.

        Raises:
            ResultsFileError: when it is damaged, or belongs to another tournament; the text names
                what differs.
            OSError: when it cannot be read or written.
        """
        saved = read_games(path)
        if unlike := _differences(saved, plan, sources):
            raise ResultsFileError(path, None, f"of another tournament: {'; '.join(unlike)}")
        return cls(path, saved.size), saved

    def append_games(self, plan: Plan, start: int, results: Results, wall: float) -> None:
        """Write the games from number ``start`` on as a block; see `Log.append`."""
        lines = [json_line(entry) for entry in _entries(plan, start, results)]
        spent = np.bincount(
            results.tables.ravel(),
            weights=np.nan_to_num(results.seconds).ravel(),
            minlength=len(plan.agents),
        )
        block = {
            "block": [start, start + len(results)],
            "seconds": [round(seconds, 9) for seconds in spent.tolist()],
            "wall": round(wall, 6),
        }
        self.append(b"".join([*lines, json_line(block)]))


def _planned(plan: Plan, start: int, stop: int) -> dict[str, list[Any]]:
    """Return the planned columns of games ``start`` to ``stop - 1``, by key."""
    fixtures = plan.fixtures(start, stop)
    return {
        "game": list(range(start, stop)),
        "meeting": fixtures.meetings.tolist(),
        "deal": fixtures.deals.tolist(),
        "seating": fixtures.seatings.tolist(),
        "table": fixtures.tables.tolist(),
    }


def _entries(plan: Plan, start: int, results: Results) -> Iterator[dict[str, Any]]:
    planned = _planned(plan, start, start + len(results))
    columns: dict[str, list[Any]] = {}
    for column in COLUMNS:
        if column.source == PLANNED:
            columns[column.key] = planned[column.key]
        elif column.key:
            values = getattr(results, column.name).tolist()
            columns[column.key] = [column.words[k] for k in values] if column.words else values
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _differences(saved: Saved, plan: Plan, sources: Sources) -> list[str]:
    old, new = saved.plan.to_dict(), plan.to_dict()
    keys = [key for key in {**new, **old} if key != "rules"]  # optional ones may be missing
    pairs = [(key, old.get(key), new.get(key)) for key in keys]
    pairs += [(key, old["rules"][key], new["rules"][key]) for key in new["rules"]]
    ours = versions()["carolus-env"]
    pairs.append(("carolus-env", saved.versions.get("carolus-env"), ours))
    unlike = [f"{key}: {a!r} in the file, {b!r} here" for key, a, b in pairs if a != b]
    if saved.plan.agents == plan.agents:
        unlike += changes(plan.agents, saved.sources, sources)
    return unlike


def changes(agents: Sequence[str], old: Sources, new: Sources) -> list[str]:
    """Return a text for each agent that plays by other files, which names these."""
    result = {}
    for agent, before, now in zip(agents, old, new, strict=True):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names:
            result[agent] = f"{agent}: {', '.join(sorted(names))} changed since"
    return list(result.values())


# ------------------------------------------------------------------------------------ reading


def read_games(path: str | os.PathLike[str]) -> Saved:
    """Read a results file. An incomplete last line is left out.

    Raises:
        ResultsFileError: for any other file, or a damaged one; the text names the line.
        OSError: when it cannot be read.
    """
    try:
        lines, size, cut_off = read_lines(path)
    except FileNotFoundError:
        raise ResultsFileError(path, None, "there is no such file") from None
    if not lines:
        raise ResultsFileError(path, 1, "the header is missing")
    number = 1
    entries: list[dict[str, Any]] = []
    numbers: list[int] = []  # the line of each game
    blocks: list[_Block] = []
    try:
        plan, made_with, sources = _read_header(parse_json(lines[0]))
        for number, line in enumerate(lines[1:], 2):
            entry = check(parse_json(line), dict, "a line")
            if "block" in entry:
                blocks.append(_read_block(entry, len(plan.agents), len(entries)))
                continue
            if entry.get("game") != len(entries):
                raise DataError(f"game {len(entries)} must follow, got {shown(entry.get('game'))}")
            entries.append(entry)
            numbers.append(number)
    except DataError as error:
        raise ResultsFileError(path, number, str(error)) from None
    if len(entries) > plan.games:
        raise ResultsFileError(path, None, f"more games than the {plan.games} of its plan")
    results = _results(path, numbers, entries, plan)
    for block in blocks:
        block.share_out(results)
    wall = sum(block.wall for block in blocks)
    return Saved(plan, results, float(wall), made_with, sources, size, cut_off)


def _read_header(data: Any) -> tuple[Plan, dict[str, str], list[dict[str, str]]]:
    header = check(data, dict, "the header")
    expect(header, format=FORMAT, version=VERSION)
    made_with = get(header, "versions", dict)
    sources = get(header, "sources", list)
    for index, each in enumerate(sources):
        for name in check(each, dict, f"sources[{index}]"):
            get(each, name, str, f"sources[{index}]")
    try:
        plan = Plan.from_dict(header)
    except ValueError as error:
        raise DataError(cut(str(error))) from None
    if len(sources) != len(plan.agents):
        raise DataError(f"sources must be one for each agent, got {len(sources)}")
    return plan, made_with, sources


@dataclass(frozen=True)
class _Block:
    """Games ``start`` to ``stop - 1``, which were played together."""

    start: int
    stop: int
    seconds: npt.NDArray[np.float64]  # time of each agent
    wall: float

    def share_out(self, results: Results) -> None:
        """Give every game its part of the agents' seconds, by its decisions."""
        part = slice(self.start, self.stop)
        tables, decisions = results.tables[part], results.decisions[part]
        made = np.bincount(tables.ravel(), weights=decisions.ravel(), minlength=len(self.seconds))
        results.seconds[part] = (self.seconds / np.maximum(made, 1))[tables] * decisions


def _read_block(entry: dict[str, Any], agents: int, games: int) -> _Block:
    start, stop = table(entry, "block", (2,), 0, MOST_GAMES).tolist()
    if not start < stop == games:
        raise DataError(f"the block {shown(entry['block'])} does not end with the last game")
    times = [*get(entry, "seconds", list), entry.get("wall")]
    result = _array(times, (agents + 1,), 0, _MOST_SECONDS, "if")
    if result is None:
        raise DataError(f"seconds must be {agents} numbers, and wall one, got {shown(times)}")
    return _Block(start, stop, result[:-1].astype(np.float64), times[-1])


def _results(
    path: str | os.PathLike[str], numbers: list[int], entries: list[dict[str, Any]], plan: Plan
) -> Results:
    """Return the games of lines; a wrong value is refused with its line's number."""
    games, players = len(entries), plan.rules.players
    planned = _planned(plan, 0, games)
    result = {}
    for column in COLUMNS:
        shape = column.shape_of(games, players)
        if not column.key:
            result[column.name] = np.full(shape, np.nan)
            continue
        values = [entry.get(column.key) for entry in entries]
        wanted = planned.get(column.key)
        read = _read(column, values, wanted, shape)
        if read is None:  # line by line, only to find the wrong one
            for row, value in enumerate(values):
                expected = wanted and wanted[row : row + 1]
                if _read(column, [value], expected, (1, *shape[1:])) is None:
                    text = _expected(column, expected, shape[1:])
                    raise ResultsFileError(
                        path, numbers[row], f"{column.key} must be {text}, got {shown(value)}"
                    )
        if column.name:
            result[column.name] = np.array(read, column.dtype).reshape(shape)
    wrong = np.abs(result["shares"].sum(axis=1) - 1) > 1e-9
    if wrong.any():
        raise ResultsFileError(path, numbers[int(wrong.argmax())], "shares do not sum to 1")
    return Results(**result)


def _read(column: Column, values: list[Any], planned: Any, shape: tuple[int, ...]) -> Any:
    """Return the values of a column as numbers; None where they are not what it holds."""
    if planned is not None:
        return values if values == planned else None
    if column.words:
        known = {word: number for number, word in enumerate(column.words) if word}
        fits = all(isinstance(word, str) and word in known for word in values)
        return [known[word] for word in values] if fits else None
    kinds = "if" if column.dtype.startswith("f") else "i"
    return _array(values, shape, column.low, column.high, kinds) if values else values


def _expected(column: Column, planned: Any, shape: tuple[int, ...]) -> str:
    if planned is not None:
        return str(planned[0])
    if column.words:
        return f"one of {', '.join(filter(None, column.words))}"
    kind = f"numbers of shape {shape}" if shape else "a number"
    return f"{kind} from {column.low} to {column.high}"


def _array(
    values: Any, shape: tuple[int, ...], low: float, high: float, kinds: str
) -> npt.NDArray[Any] | None:
    """Return the values as numbers of these kinds, shape and bounds; None where they are not."""
    try:
        result = np.array(values)
    except (ValueError, OverflowError):
        return None
    fits = result.shape == shape and result.dtype.kind in kinds
    return result if fits and (result >= low).all() and (result <= high).all() else None
