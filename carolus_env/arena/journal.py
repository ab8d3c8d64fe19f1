"""The results file of a tournament: JSON Lines, written at the end only, so a crash loses little.

The first line is the header: format, version, the `Plan`, versions of the software. Then comes one
line a game, in the order of the plan, and after each block of games that were played together a
line with the times. Lines of games depend on the plan alone: the same plan gives the same bytes,
wherever it was interrupted. docs/evaluation.md describes the keys.

A stranger's file is data: it is parsed, checked and refused with a `ResultsFileError`, never run.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
import numpy.typing as npt

from carolus_env.arena.columns import Results
from carolus_env.arena.seating import Plan
from carolus_env.engine.rules import DISCS, REASON_NAMES
from carolus_env.system.files import write_file
from carolus_env.system.machine import versions

FORMAT: Final = "carolus-tournament"
VERSION: Final = 1

_REASONS: Final = {name: number for number, name in enumerate(REASON_NAMES) if name}


class ResultsFileError(ValueError):
    """A file that holds no results of a tournament, or those of another one.

    Attributes:
        path: the file.
        line: its line, counted from 1; None: the file as a whole.
        reason: what is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int | None, reason: str) -> None:
        where = os.fspath(path) if line is None else f"{os.fspath(path)}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.path, self.line, self.reason = os.fspath(path), line, reason


@dataclass(frozen=True)
class Saved:
    """What a results file holds.

    Attributes:
        plan: of the tournament.
        results: its games so far, in the plan's order.
        wall: seconds that playing them took, as far as it is known.
        versions: of the software that wrote it.
        size: bytes of the whole lines.
        cut: the last line was cut short; it is left out.
    """

    plan: Plan
    results: Results
    wall: float
    versions: dict[str, str]
    size: int
    cut: bool


class Journal:
    """A results file that is open for more games; a context manager.

    Args:
        path: the file.
        size: bytes to keep of it; what follows is dropped.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        self._file: BinaryIO = path.open("r+b", buffering=0)
        if size is not None:
            self._file.truncate(size)
        self._file.seek(0, os.SEEK_END)

    @classmethod
    def create(cls, path: str | os.PathLike[str], plan: Plan) -> Journal:
        """A new file with its header.

        Raises:
            ResultsFileError: when there is a file already.
            OSError: when it cannot be written.
        """
        if Path(path).exists():
            raise ResultsFileError(path, None, "is there already; resume it or move it")
        header = {"format": FORMAT, "version": VERSION, **plan.to_dict(), "versions": versions()}
        write_file(path, _line(header))
        return cls(Path(path))

    @classmethod
    def resume(cls, path: str | os.PathLike[str], plan: Plan) -> tuple[Journal, Saved]:
        """Go on with a file, after its last whole line.

        Raises:
            ResultsFileError: when it is damaged, or of another tournament, naming what differs.
            OSError: when it cannot be read or written.
        """
        saved = read_games(path)
        if unlike := _differences(saved, plan):
            raise ResultsFileError(path, None, f"of another tournament: {'; '.join(unlike)}")
        return cls(Path(path), saved.size), saved

    def append(self, plan: Plan, start: int, results: Results, wall: float) -> None:
        """Write the games from number ``start`` on, and make sure that they are on the disk."""
        lines = [_line(entry) for entry in _entries(plan, start, results)]
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
        self._file.write(b"".join([*lines, _line(block)]))
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _entries(plan: Plan, start: int, results: Results) -> Iterator[dict[str, Any]]:
    meetings = plan.fixtures(start, start + len(results)).meetings.tolist()
    names = ["deals", "seatings", "tables", "returns", "shares", "castles", "rounds", "reasons"]
    names += ["lead_changes", "discs", "to_court", "to_regions", "decisions"]
    columns = [getattr(results, name).tolist() for name in names]
    for game, (meeting, row) in enumerate(zip(meetings, zip(*columns, strict=True), strict=True)):
        deal, seating, table, returns, shares, castles, rounds, reason, *counts = row
        lead_changes, discs, to_court, to_regions, decisions = counts
        yield {
            "game": start + game,
            "meeting": meeting,
            "deal": deal,
            "seating": seating,
            "table": table,
            "returns": returns,
            "shares": shares,
            "castles": castles,
            "rounds": rounds,
            "reason": REASON_NAMES[reason],
            "lead_changes": lead_changes,
            "discs": discs,
            "to_court": to_court,
            "to_regions": to_regions,
            "decisions": decisions,
        }


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _differences(saved: Saved, plan: Plan) -> list[str]:
    had, wanted = saved.plan.to_dict(), plan.to_dict()
    pairs = [(key, had[key], wanted[key]) for key in wanted if key != "rules"]
    pairs += [(key, had["rules"][key], wanted["rules"][key]) for key in wanted["rules"]]
    ours = versions()["carolus-env"]
    pairs.append(("carolus-env", saved.versions.get("carolus-env"), ours))
    return [f"{key}: {a!r} in the file, {b!r} here" for key, a, b in pairs if a != b]


# ------------------------------------------------------------------------------------ reading


def read_games(path: str | os.PathLike[str]) -> Saved:
    """Read a results file. A last line that was cut short is left out.

    Raises:
        ResultsFileError: for what is no such file, with the line.
        OSError: when it cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ResultsFileError(path, None, "there is no such file") from None
    size = data.rfind(b"\n") + 1
    lines = data[:size].split(b"\n")[:-1]
    if not lines:
        raise ResultsFileError(path, 1, "the header is missing")
    plan, made_with = _read_header(path, lines[0])
    entries: list[dict[str, Any]] = []
    numbers: list[int] = []  # the line of each game
    blocks: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(lines[1:], 2):
        entry = _parsed(path, number, line)
        if "block" in entry:
            blocks.append((number, entry))
            if _block(path, number, entry, len(plan.agents))[1] != len(entries):
                raise ResultsFileError(path, number, "the block does not end with the last game")
            continue
        if entry.get("game") != len(entries):
            raise ResultsFileError(
                path, number, f"game {len(entries)} must follow, got {_short(entry.get('game'))}"
            )
        entries.append(entry)
        numbers.append(number)
    if len(entries) > plan.games:
        raise ResultsFileError(path, None, f"more games than the {plan.games} of its plan")
    results = _Columns(path, numbers, entries, plan).results()
    wall = 0.0
    for number, entry in blocks:
        start, stop = _block(path, number, entry, len(plan.agents))
        _spread(results, slice(start, stop), entry["seconds"])
        wall += entry["wall"]
    return Saved(plan, results, wall, made_with, size, size < len(data))


def _read_header(path: str | os.PathLike[str], line: bytes) -> tuple[Plan, dict[str, str]]:
    header = _parsed(path, 1, line)
    if header.get("format") != FORMAT:
        raise ResultsFileError(
            path, 1, f"format must be {FORMAT!r}, got {_short(header.get('format'))}"
        )
    if header.get("version") != VERSION:
        raise ResultsFileError(
            path, 1, f"version must be {VERSION}, got {_short(header.get('version'))}"
        )
    made_with = header.get("versions")
    if not isinstance(made_with, dict):
        raise ResultsFileError(path, 1, f"versions must be an object, got {_short(made_with)}")
    try:
        return Plan.from_dict(header), made_with
    except ValueError as error:
        raise ResultsFileError(path, 1, str(error)[:300]) from None


def _parsed(path: str | os.PathLike[str], number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ResultsFileError(path, number, f"not JSON: {_short(str(error))}") from None
    if not isinstance(entry, dict):
        raise ResultsFileError(path, number, f"an object is needed, got {_short(entry)}")
    return entry


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _block(
    path: str | os.PathLike[str], number: int, entry: dict[str, Any], agents: int
) -> tuple[int, int]:
    """First game of a block, and the one after its last."""
    ends, seconds, wall = entry["block"], entry.get("seconds"), entry.get("wall")
    whole = isinstance(ends, list) and len(ends) == 2 and all(type(end) is int for end in ends)
    if not whole or not 0 <= ends[0] < ends[1]:
        raise ResultsFileError(path, number, f"no block of games: {_short(ends)}")
    times = [*seconds, wall] if isinstance(seconds, list) else []
    if len(times) != agents + 1 or not all(type(t) in (int, float) and t >= 0 for t in times):
        raise ResultsFileError(path, number, f"seconds must be {agents} numbers, and wall one")
    return ends[0], ends[1]


def _spread(results: Results, part: slice, seconds: list[float]) -> None:
    """Give every game of a block its part of the agents' seconds, by its decisions."""
    tables, decisions = results.tables[part], results.decisions[part]
    made = np.bincount(tables.ravel(), weights=decisions.ravel(), minlength=len(seconds))
    results.seconds[part] = (np.array(seconds) / np.maximum(made, 1))[tables] * decisions


class _Columns:
    """The lines of the games, column by column; what does not fit is refused with its line."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        numbers: list[int],
        entries: list[dict[str, Any]],
        plan: Plan,
    ) -> None:
        self.path, self.numbers, self.entries, self.plan = path, numbers, entries, plan

    def results(self) -> Results:
        players = self.plan.rules.players
        fixtures = self.plan.fixtures(0, len(self.entries))
        for name, wanted in (
            ("meeting", fixtures.meetings),
            ("deal", fixtures.deals),
            ("seating", fixtures.seatings),
            ("table", fixtures.tables),
        ):
            self.compare(name, wanted)
        shares = self.column("shares", (players,), 0, 1, "if")
        self.refuse(np.abs(shares.sum(axis=1) - 1) > 1e-9, "shares do not sum to 1")
        count, most = (players,), 2**31 - 1
        return Results(
            tables=fixtures.tables,
            deals=fixtures.deals,
            seatings=fixtures.seatings,
            returns=self.column("returns", count, -1, 1, "if").astype(np.float64),
            shares=shares.astype(np.float64),
            castles=self.column("castles", count, 0, 15).astype(np.uint8),
            rounds=self.column("rounds", (), 0, 2**32 - 1).astype(np.uint32),
            reasons=self.reasons(),
            lead_changes=self.column("lead_changes", (), 0, most).astype(np.int32),
            discs=self.column("discs", (players, DISCS), 0, most).astype(np.int32),
            to_court=self.column("to_court", count, 0, most).astype(np.int32),
            to_regions=self.column("to_regions", count, 0, most).astype(np.int32),
            decisions=self.column("decisions", count, 0, most).astype(np.int32),
            seconds=np.full((len(self.entries), players), np.nan),
        )

    def compare(self, name: str, wanted: npt.NDArray[np.int64]) -> None:
        for number, entry, value in zip(self.numbers, self.entries, wanted.tolist(), strict=True):
            if entry.get(name) != value:
                raise ResultsFileError(
                    self.path, number, f"{name} must be {value}, got {_short(entry.get(name))}"
                )

    def reasons(self) -> npt.NDArray[np.uint8]:
        for number, entry in zip(self.numbers, self.entries, strict=True):
            if not isinstance(entry.get("reason"), str) or entry["reason"] not in _REASONS:
                raise ResultsFileError(
                    self.path,
                    number,
                    f"reason must be one of {', '.join(_REASONS)}, "
                    f"got {_short(entry.get('reason'))}",
                )
        return np.array([_REASONS[entry["reason"]] for entry in self.entries], np.uint8)

    def column(
        self, name: str, shape: tuple[int, ...], low: float, high: float, kinds: str = "i"
    ) -> npt.NDArray[Any]:
        """All values of a key; all at once, and line by line only to find a wrong one."""
        values = [entry.get(name) for entry in self.entries]
        found = _array(values, (len(values), *shape), low, high, kinds)
        if found is not None:
            return found
        for number, value in zip(self.numbers, values, strict=True):
            if _array(value, shape, low, high, kinds) is None:
                wanted = f"numbers of shape {shape}" if shape else "a number"
                raise ResultsFileError(
                    self.path,
                    number,
                    f"{name} must be {wanted} from {low} to {high}, got {_short(value)}",
                )
        return np.array(values).reshape(len(values), *shape)  # there are none, or 1 and 0.5 mixed

    def refuse(self, wrong: npt.NDArray[np.bool_], reason: str) -> None:
        if wrong.any():
            raise ResultsFileError(self.path, self.numbers[int(wrong.argmax())], reason)


def _array(
    values: Any, shape: tuple[int, ...], low: float, high: float, kinds: str
) -> npt.NDArray[Any] | None:
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        return None
    fits = found.shape == shape and found.dtype.kind in kinds
    return found if fits and (found >= low).all() and (found <= high).all() else None


def _short(value: object) -> str:
    return reprlib.repr(value)
