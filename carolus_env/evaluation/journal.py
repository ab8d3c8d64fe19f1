"""The results file of a tournament: JSON Lines, append-only, so a crash loses little.

The first line is the header: format, version, the `Plan`, versions of the software, and hashes of
what the agents play by. Then comes a line for each block of games that were played together, with
what does not follow from the plan; docs/formats.md describes the keys.
Results files are untrusted: parsed, checked, refused with a `ResultsFileError`, but never run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env.engine.rules import REASON_NAMES
from carolus_env.evaluation.games import Results, result_type
from carolus_env.evaluation.schedules import Plan
from carolus_env.system.files import Log, json_line, read_lines, write_file
from carolus_env.system.machine import versions
from carolus_env.system.untrusted import DataError, check, cut, expect, get, parse_json, shown

Sources = Sequence[Mapping[str, str]]  # what each agent of a plan plays by, see `fingerprint`

FORMAT: Final[dict[str, str | int]] = {"format": "carolus-tournament", "version": 1}
FIELDS: Final = {  # of `games.result_type` that the file has, with the bounds of their values
    "shares": (0, 1),
    "castles": (0, 15),
    "rounds": (0, 2**32 - 1),
    "reason": (1, len(REASON_NAMES) - 1),
    "decisions": (0, 2**31 - 1),
}
_MOST_SECONDS: Final = 1e15


class ResultsFileError(ValueError):
    """A file that holds no results of a tournament, or those of another one.

    ``path`` is the file, ``line`` the number of the line from 1, or None, ``reason`` what is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], line: int | None, reason: str) -> None:
        super().__init__(os.fspath(path), line, reason)
        self.path, self.line, self.reason = os.fspath(path), line, reason

    def __str__(self) -> str:
        return f"{self.path}{'' if self.line is None else f', line {self.line}'}: {self.reason}"


class Saved(NamedTuple):
    """Content of a results file."""

    plan: Plan
    results: Results  # the games so far, in the plan's order
    wall: float  # seconds that playing them took
    versions: dict[str, str]  # of the software that wrote the file
    sources: list[dict[str, str]]  # what each agent plays by, see `fingerprint`
    size: int  # bytes of the complete lines
    cut: bool  # the last line is incomplete; it is left out


def begin(path: str | os.PathLike[str], plan: Plan, sources: Sources) -> Log:
    """Create a new file with its header."""
    header = {**FORMAT, **plan.to_dict(), "versions": versions(), "sources": sources}
    try:
        return Log.create(path, json_line(header))
    except FileExistsError:
        raise ResultsFileError(path, None, "exists; resume it (--resume) or move it") from None


def resume(path: str | os.PathLike[str], plan: Plan, sources: Sources) -> tuple[Log, Saved]:
    """Open a file to go on after its last complete line; one of another tournament is refused.

    A plan that has more deals than the file's takes its place there.
    """
    saved = read_games(path)
    old, new = ({**each.to_dict(), **each.rules.to_dict()} for each in (saved.plan, plan))
    more = plan.deals > saved.plan.deals
    pairs = [(k, old[k], new[k]) for k in new if k != "rules" and not (more and k == "deals")]
    pairs.append(("carolus-env", saved.versions.get("carolus-env"), versions()["carolus-env"]))
    unlike = [f"{key}: {a!r} in the file, {b!r} here" for key, a, b in pairs if a != b]
    if saved.plan.agents == plan.agents:
        unlike += changes(plan.agents, saved.sources, sources)
    if unlike:
        raise ResultsFileError(path, None, f"of another tournament: {'; '.join(unlike)}")
    if more:
        header, blocks = Path(path).read_bytes()[: saved.size].split(b"\n", 1)
        write_file(path, json_line({**parse_json(header), "deals": plan.deals}) + blocks)
    return Log(path, None if more else saved.size), saved


def append(log: Log, plan: Plan, start: int, results: Results, wall: float) -> None:
    """Write the games from number ``start`` on as a block; see `Log.append`."""
    tables, seconds = results["table"].ravel(), results["seconds"].ravel()
    spent = np.bincount(tables, seconds, len(plan.agents)).round(9)
    block = {"games": [start, start + len(results)]}
    block |= {name: results[name].tolist() for name in FIELDS}
    log.append(json_line({**block, "seconds": spent.tolist(), "wall": round(wall, 6)}))


def changes(agents: Sequence[str], old: Sources, new: Sources) -> list[str]:
    """Return a text for each agent that plays by other files, which names these."""
    result = {}
    for agent, before, now in zip(agents, old, new, strict=True):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names:
            result[agent] = f"{agent}: {', '.join(sorted(names))} changed since"
    return list(result.values())


def read_games(path: str | os.PathLike[str]) -> Saved:
    """Read a results file, an incomplete last line left out; any other is a `ResultsFileError`."""
    try:
        lines, size, cut_off = read_lines(path)
    except FileNotFoundError:
        raise ResultsFileError(path, None, "there is no such file") from None
    if not lines:
        raise ResultsFileError(path, 1, "the header is missing")
    number, games, wall = 1, 0, 0.0
    try:
        header = check(parse_json(lines[0]), dict, "the header")
        plan, sources = _read_header(header)
        parts = [np.zeros(0, result_type(plan.rules.players))]
        for line in lines[1:]:
            number += 1
            block = check(parse_json(line), dict, "a line")
            parts.append(_read_block(block, plan, games))
            games += len(parts[-1])
            wall += float(_numbers(block, "wall", "f8", (), 0, _MOST_SECONDS))
    except DataError as error:
        raise ResultsFileError(path, number, str(error)) from None
    results = np.concatenate(parts)
    return Saved(plan, results, wall, header["versions"], sources, size, cut_off)


def _read_header(header: dict[str, Any]) -> tuple[Plan, list[dict[str, str]]]:
    expect(header, **FORMAT)
    get(header, "versions", dict)
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
    return plan, sources


def _read_block(block: dict[str, Any], plan: Plan, games: int) -> Results:
    """Return the games of a line; ``games`` were before it."""
    start, stop = map(int, _numbers(block, "games", "i8", (2,), 0, plan.games))
    if not games == start < stop == start + len(get(block, "rounds", list)):
        raise DataError(f"games from {games} on must follow, got {shown(block['games'])}")
    fixtures = plan.fixtures(start, stop)
    result = np.zeros(stop - start, result_type(plan.rules.players))
    result["deal"], result["seating"] = fixtures.deals, fixtures.seatings
    result["table"] = tables = fixtures.tables
    for name, bounds in FIELDS.items():
        field = result[name]
        field[...] = _numbers(block, name, field.dtype.str, field.shape, *bounds)
    if (np.abs(result["shares"].sum(axis=1) - 1) > 1e-9).any():
        raise DataError("shares of a game do not sum to 1")
    # Every game has its part of the agents' seconds, by its decisions.
    seconds = _numbers(block, "seconds", "f8", (len(plan.agents),), 0, _MOST_SECONDS)
    decisions = np.bincount(tables.ravel(), result["decisions"].ravel(), len(seconds))
    result["seconds"] = (seconds / np.maximum(decisions, 1))[tables] * result["decisions"]
    return result


def _numbers(
    block: Mapping[str, Any], name: str, kind: str, shape: tuple[int, ...], low: float, high: float
) -> Any:
    """Return a value of a line as numbers from ``low`` to ``high``."""
    whole = np.dtype(kind).kind in "iu"
    try:
        result = np.array(block.get(name))
    except (ValueError, OverflowError):  # lists of different lengths
        result = np.array(None)
    fits = result.shape == shape and result.dtype.kind in ("iu" if whole else "iuf")
    if not (fits and ((result >= low) & (result <= high)).all()):
        what = f"{'whole ' * whole}numbers of shape {shape}" if shape else "a number"
        raise DataError(f"{name} must be {what} from {low} to {high}, got {shown(block.get(name))}")
    return result
