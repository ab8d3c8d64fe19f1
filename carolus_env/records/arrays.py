"""Games as arrays of observations, masks, actions and returns, for offline learning.

`Packed` is the compact form of records, half a kilobyte a game: its set-up, and a byte for every
action and every die. The engine plays such games side by side, millions of decisions a second.
`to_arrays` trusts the records: `carolus_env.records.replay` compares them with the engine.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import observation as observing
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.rules import ACTIONS, BY_MAX_ROUNDS, FACES, MAX_PLAYERS, OVER, ROLL
from carolus_env.engine.state import STATE, States, common_players, copy
from carolus_env.engine.stepping import Views, write_views
from carolus_env.records.position import are_set_ups
from carolus_env.records.record import Record, check_record, read_records, start_of
from carolus_env.system import arrays as tensors
from carolus_env.system.arrays import F32, I8, I64, U8, U64, Bools, Records, int64
from carolus_env.system.compiler import entry
from carolus_env.system.files import naming, write_file, write_json
from carolus_env.system.machine import check_threads, runs, together
from carolus_env.system.untrusted import DataError, expect

FACE: Final = 128
"""An event from here on is a die: ``FACE`` and what it shows. The others are actions."""
MOST_DICE: Final = 9
FORMAT: Final = "carolus-games"
VERSION: Final = 1
_WRONG: Final = 255
_SIDE_BY_SIDE: Final = 4096  # games in play at once


class Packed(NamedTuple):
    """Games in their compact form."""

    starts: States  # ``(G,)`` before their first rolls, of one number of players
    # ``(E,)`` uint8, one game after the other: an action's number, or `FACE` and the face of a die
    events: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int64]  # ``(G + 1,)``: ``events[bounds[g]:bounds[g + 1]]`` of game g

    @property
    def decisions(self) -> int:
        """Actions in all games."""
        return int(np.count_nonzero(self.events < FACE))

    @classmethod
    def joined(cls, parts: Sequence[Packed]) -> Packed:
        """Return the games of all parts, one part after the other; at least one part."""
        steps = np.concatenate([np.diff(part.bounds) for part in parts])
        return cls(
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.events for part in parts]),
            np.concatenate([[0], np.cumsum(steps)]).astype(np.int64),
        )


class Arrays(NamedTuple):
    """Every decision of some games, in order, all seats; `MEANINGS` says what each array holds."""

    observations: npt.NDArray[Any] | None
    masks: npt.NDArray[np.int8] | None
    actions: npt.NDArray[np.uint8]
    seats: npt.NDArray[np.uint8]
    games: npt.NDArray[np.int32]
    returns: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]
    discounts: npt.NDArray[np.float32]


MEANINGS: Final = {
    "observations": ("uint8 or float32", "(D, length)",
        "the observation of the player to move (docs/environments.md); may be left out"),
    "masks": ("int8", "(D, 95)", "the legal actions; may be left out"),
    "actions": ("uint8", "(D,)", "the action number"),
    "seats": ("uint8", "(D,)", "the acting seat"),
    "games": ("int32", "(D,)", "the game's index"),
    "returns": ("float32", "(D,)",
        "the seat's payoff at the end: its reward to go, since there are no other rewards"),
    "dones": ("bool", "(D,)", "True at the seat's last decision in the game"),
    "discounts": ("float32", "(D,)",
        "0 at a seat's last decision, else 1; 1 there too where the game was cut off at "
        "max_rounds"),
}  # fmt: skip
"""The arrays: dtype, shape, meaning. D are the decisions of all games."""


def arrays_table() -> str:
    """Return `MEANINGS` as a Markdown table."""
    lines = ["| array | dtype | shape | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {' | '.join(texts)} |" for name, texts in MEANINGS.items()]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ packing


def pack(records: Iterable[Record]) -> Packed:
    """Convert records to their compact form."""
    return _pack(map(check_record, records))


def read_games(path: str | os.PathLike[str]) -> Packed:
    """Read a file of records (JSON Lines, plain or gzip), or one of `write_packed`.

    What is neither is a ValueError (a `RecordError` where it seems to be the first).
    """
    with Path(path).open("rb") as file:
        begin = file.read(9)
    if begin[8:] == b"{" and begin[:1] != b"{":  # safetensors: the header's length, the header
        return read_packed(path)
    return _pack(record for _, record in read_records(Path(path)))


def _pack(records: Iterable[Record]) -> Packed:
    """Convert checked records, see `pack`."""
    starts, events, bounds = bytearray(), bytearray(), [0]
    for record in records:
        starts += start_of(record).tobytes()
        for event in record["events"]:
            if "roll" in event:
                faces = event["roll"]
                events += bytes(FACE + face if 0 <= face < FACES else _WRONG for face in faces)
            else:
                action = event["action"]
                events.append(action if 0 <= action < ACTIONS else _WRONG)
        bounds.append(len(events))
    games = np.frombuffer(starts, STATE)
    common_players(games, "observations")
    return Packed(games, np.frombuffer(bytes(events), np.uint8), np.array(bounds, np.int64))


def pack_played(
    starts: States, dice: npt.NDArray[np.uint64], actions: Sequence[npt.NDArray[np.uint8]]
) -> Packed:
    """Return played games in their compact form.

    ``starts`` ``(G,)`` are before their first rolls, of one number of players; ``dice`` ``(G, 4)``
    the generators by which their seats roll (`Deals.dice`); ``actions`` those of each game.
    """
    ends = np.cumsum([0, *map(len, actions)])
    played = np.concatenate([*actions, np.zeros(0, np.uint8)])
    most = len(played) + MOST_DICE * (len(played) + MAX_PLAYERS * len(starts))
    events, bounds = np.zeros(most, np.uint8), np.zeros(len(ends), np.int64)
    faces = np.zeros((1, MOST_DICE), np.uint8)
    _note_events(copy(starts), dice.copy(), played, ends, faces, events, bounds)
    starts = copy(starts)
    starts["generator"] = 0  # the dice are in the events
    return Packed(starts, events[: bounds[-1]].copy(), bounds)


def write_packed(path: str | os.PathLike[str], games: Packed) -> None:
    """Write games to a file: safetensors, which holds no code."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "starts": games.starts.view(np.uint8).reshape(-1, STATE.itemsize),
        "events": games.events,
        "bounds": games.bounds,
    }
    write_file(path, tensors.to_bytes(arrays, {"format": FORMAT, "version": VERSION}))


def read_packed(path: str | os.PathLike[str]) -> Packed:
    """Read what `write_packed` wrote; the file is untrusted."""
    data = Path(path).read_bytes()
    row, integers = (STATE.itemsize,), (np.uint8, np.uint8, np.int64)
    try:
        arrays, about = tensors.from_bytes(data)
        expect(about, format=FORMAT, version=VERSION)
        for name, dtype, shape in zip(Packed._fields, integers, (row, (), ()), strict=True):
            found = arrays.get(name, np.zeros(()))
            if found.dtype != dtype or not found.ndim or found.shape[1:] != shape:
                sizes = " x ".join(map(str, ("N", *shape)))
                raise DataError(f"{name!r} must be {sizes} numbers of type {np.dtype(dtype)}")
        starts = np.frombuffer(bytearray(arrays["starts"]), STATE)
        games = Packed(starts, arrays["events"], arrays["bounds"])
        _check_packed(games)
    except ValueError as error:
        raise ValueError(f"{path}: not a file of packed games: {error}") from None
    return games


def _check_packed(games: Packed) -> None:
    """Refuse games that would lead the kernel outside its arrays."""
    starts, events, bounds = games
    if len(bounds) != len(starts) + 1:
        raise ValueError(f"{len(starts)} games have {len(bounds) - 1} rows of events")
    descends = (bounds[1:] < bounds[:-1]).any()  # compared: differences can wrap around
    if bounds[0] != 0 or bounds[-1] != len(events) or descends:
        raise ValueError(f"the bounds do not divide the {len(events)} events")
    if not (fresh := are_set_ups(starts)).all():
        raise ValueError(f"game {int(np.argmin(fresh))} does not start before its first roll")
    common_players(starts, "observations")


# ------------------------------------------------------------------------------------ arrays


def to_arrays(
    games: Packed,
    *,
    observation: Literal["uint8", "float32"] | None = "uint8",
    masks: bool = True,
    out: str | os.PathLike[str] | None = None,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Arrays:
    """Play games on the engine, and note every decision.

    Args:
        games: of `pack` or `read_games`.
        observation: dtype of the observations; None: leave them out.
        masks: note the legal actions.
        out: a folder to make, with a file for each array: they are mapped into memory instead of
            held there, and `load_arrays` opens them again.
        threads: threads that share the games; the arrays do not depend on it.
        progress: called with the number of games that are done.

    Raises:
        ValueError: when an event is not the one that is due, or a game is not over; it names
            the game and the event. Likewise for starts and bounds that `pack` cannot give.
    """
    check_threads(threads)
    if observation not in ("uint8", "float32", None):
        raise ValueError(f"observation must be uint8, float32 or None, got {observation!r}")
    _check_packed(games)
    games = Packed._make(
        np.require(each, None, ["C", "A", "W"]) for each in games
    )  # as the kernel takes them
    decisions = np.concatenate([[0], np.cumsum(games.events < FACE)])  # before each event
    firsts, total = decisions[games.bounds], len(games.starts)
    width = observing.length(common_players(games.starts, "observations"))
    rows = int(firsts[-1])
    shapes: dict[str, tuple[int, ...]] = {"observations": (rows, width), "masks": (rows, ACTIONS)}
    dtypes: dict[str, Any] = {name: dtype for name, (dtype, *_) in MEANINGS.items()}
    dtypes |= {"observations": observation, "masks": "int8" if masks else None}
    with nullcontext() if out is None else _new_folder(Path(out)) as folder:
        made = {
            name: dtype
            and _zeros(folder and folder / f"{name}.npy", dtype, shapes.get(name, (rows,)))
            for name, dtype in dtypes.items()
        }
        data = Arrays(**made)
        data.games[:] = np.repeat(np.arange(total, dtype=np.int32), np.diff(firsts))
        for start in range(0, total, _SIDE_BY_SIDE):
            stop = min(start + _SIDE_BY_SIDE, total)
            parts = [slice(start + s.start, start + s.stop) for s in runs(stop - start, threads)]
            for wrong in together(partial(_note_decisions, games, data, firsts), parts):
                if wrong:
                    raise ValueError(wrong)
            if progress is not None:
                progress(stop)
        if out is None:
            return data
        del data, made
    return load_arrays(out)


def _note_decisions(games: Packed, data: Arrays, firsts: I64, part: slice) -> str:
    """Play some games from their starts to their ends, and write their rows; return a fault."""
    views = Views(data.masks, data.observations, None, None)
    if data.observations is not None and data.observations.dtype == np.float32:
        raw = np.zeros((1, data.observations.shape[1]), np.uint8)
        scales = observing.scales(int(games.starts["players"][0]))
        views = Views(data.masks, raw, scales, data.observations)
    fault, bounds = np.full(2, -1), games.bounds[part.start : part.stop + 1]
    _unroll(
        copy(games.starts[part]), games.events, bounds, firsts[part], *views, data.actions,
        data.seats, data.returns, data.dones, data.discounts, np.zeros((1, MOST_DICE), np.uint8),
        np.zeros(MAX_PLAYERS, np.int64), fault,
    )  # fmt: skip
    row, event = fault.tolist()
    if row < 0:
        return ""
    name, (begin, end) = f"game {part.start + row}", bounds[row : row + 2].tolist()
    if event == end:
        return f"{name} is not over after its {end - begin} bytes of events"
    return f"{name}: byte {event - begin} of its events, {games.events[event]}, is not what is due"


def load_arrays(folder: str | os.PathLike[str]) -> Arrays:
    """Load the arrays that `to_arrays` wrote to a folder, mapped into memory for reading."""
    files: dict[str, Any] = {name: Path(folder) / f"{name}.npy" for name in Arrays._fields}
    for name, file in files.items():
        left_out = name in ("observations", "masks") and not file.exists()
        files[name] = None if left_out else np.load(file, mmap_mode="r", allow_pickle=False)
    return Arrays(**files)


# ------------------------------------------------------------------------------------ kernels


@entry
def _note_events(
    states: Records, dice: U64, actions: U8, ends: I64, faces: U8, events: U8, bounds: I64
) -> None:
    """Play games to their ends by the dice of each seat, and note their events."""
    count = 0
    for g in range(states.shape[0]):
        s = states[g]
        for k in range(ends[g], ends[g + 1] + 1):
            while s["phase"] == ROLL:
                seat, due = int64(s["player"]), int64(s["dice_due"])
                s["generator"] = dice[g, seat]
                turns.draw_faces(s, faces, 0)
                dice[g, seat] = s["generator"]
                turns.take_roll(s, faces, 0)
                for die in range(due):
                    events[count] = FACE + faces[0, die]
                    count += 1
            if k < ends[g + 1]:
                events[count] = actions[k]
                count += 1
                turns.play(s, int64(actions[k]))
        bounds[g + 1] = count


@entry
def _unroll(
    states: Records, events: U8, bounds: I64, firsts: I64,
    masks: I8 | None, raw: U8 | None, scales: F32 | None, scaled: F32 | None,
    actions: U8, seats: U8, returns: F32, dones: Bools, discounts: F32,
    faces: U8, lasts: I64, fault: I64,
) -> None:  # fmt: skip
    """Play each game's events to its end; ``fault``: the game and the event that are not due."""
    views = Views(masks, raw, scales, scaled)
    for g in range(states.shape[0]):
        s, row, event, end = states[g], firsts[g], bounds[g], bounds[g + 1]
        lasts[:] = -1
        while event < end and s["phase"] != OVER:
            if s["phase"] == ROLL:
                due, die = int64(s["dice_due"]), 0
                while die < due and event < end and FACE <= events[event] < FACE + FACES:
                    faces[0, die] = events[event] - FACE
                    die += 1
                    event += 1
                if die < due:
                    break
                turns.take_roll(s, faces, 0)
            else:
                if not legal.is_legal(s, int64(events[event])):
                    break
                seat = int64(s["player"])
                write_views(s, row, views)
                actions[row], seats[row] = events[event], seat
                dones[row], discounts[row] = False, 1.0
                lasts[seat] = row
                turns.play(s, int64(events[event]))
                row += 1
                event += 1
        if event < end or s["phase"] != OVER:
            fault[0], fault[1] = g, event
            return
        for k in range(firsts[g], row):
            returns[k] = turns.payoff(s, int64(seats[k]))
        for seat in range(int64(s["players"])):
            if lasts[seat] >= 0:
                dones[lasts[seat]] = True
                if s["reason"] != BY_MAX_ROUNDS:
                    discounts[lasts[seat]] = 0.0


# ------------------------------------------------------------------------------------ files


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill, which appears as ``path`` when all in it is complete."""
    if path.exists():
        raise FileExistsError(f"{path} exists: name another folder")
    beside = path.with_name(f".carolus-{secrets.token_hex(8)}.part")
    beside.mkdir()
    try:
        yield beside
        about = {"format": FORMAT, "version": VERSION, "observation": observing.VERSION}
        write_json(beside / "about.json", about)
        beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _zeros(file: Path | None, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array of zeros, in memory or mapped to a new file."""
    if file is None or not shape[0]:  # nothing can be mapped
        array = np.zeros(shape, dtype)
        if file is not None:
            np.save(file, array)
        return array
    with naming(file):
        mapped: npt.NDArray[Any] = np.lib.format.open_memmap(file, "w+", np.dtype(dtype), shape)
        if hasattr(os, "posix_fallocate"):  # a full disk shows here, not as a signal
            with file.open("r+b") as opened:
                os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
    return mapped
