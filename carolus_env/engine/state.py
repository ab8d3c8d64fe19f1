"""The state of a game: one structured NumPy record of at most 256 bytes.

A batch of games is an array of such records, and its fields are plain arrays:
``states["courts"]`` is ``(N, 4, 5)``. Unused seats, regions and bits are always zero, so two games
are equal exactly when their bytes are equal. `FIELDS` is the one description of the layout: the
dtype, the documentation table and the range checks are made from it.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules
from carolus_env.system.options import array
from carolus_env.system.untrusted import shown


class Field(NamedTuple):
    """One field of the record."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int
    high: int
    meaning: str
    option: str | None = None  # the option of `Rules` that it holds, by `Rules.to_codes`


_NAMES: Final = {"crown_choice": "crown_deferred", "partners": "partners_adjacent"}


def _option(option: str) -> Field:
    """Return the field of an option of `Rules`: its name, or what its 1 means."""
    among, or_none = rules.OPTIONS[option].among, rules.OPTIONS[option].or_none
    meaning, (low, high) = f"option {option}", (among[0], among[-1])
    if isinstance(low, str):
        meaning += f" ({', '.join(f'{i} {word}' for i, word in enumerate(among))})"
        low, high = 0, len(among) - 1
    elif or_none:
        meaning, low = meaning + " (0 None)", 0
    dtype = "u1" if high < 256 else "<u2"
    return Field(_NAMES.get(option, option), dtype, (), low, high, meaning, option)


CIRCLE: Final = 16  # entries of a field about regions: two machine words of counts
assert CIRCLE > rules.TERRITORIES

_P, _T, _C, _R = rules.MAX_PLAYERS, rules.MAX_TEAMS, rules.CLANS, CIRCLE

# fmt: off
FIELDS: Final = (
    Field("generator",         "<u8", (),       0, 2**64 - 1, "SplitMix64 state; every roll of the game comes from it"),
    Field("round",             "<u4", (),       0, 2**31, "rounds begun; 0 during the set-up"),
    _option("max_rounds"),
    _option("players"),
    Field("teams",             "u1",  (),       2, 3,     "number of teams"),
    *(_option(name) for name in rules.OPTIONS if name not in ("max_rounds", "players")),
    Field("phase",             "u1",  (),       0, 5,     "what is due: " + ", ".join(f"{i} {name}" for i, name in enumerate(rules.PHASE_NAMES))),
    Field("player",            "u1",  (),       0, 3,     "seat that decides or rolls next; 0 when the game is over"),
    Field("turn",              "u1",  (),       0, 3,     "index of that seat in `order`; 0 when the game is over"),
    Field("dice_due",          "u1",  (),       0, 9,     "dice of the roll that is due; 0 outside phase roll"),
    Field("placements_left",   "u1",  (),       0, 4,     "paladins still to play this turn; 0 outside phase place"),
    Field("regions",           "u1",  (),       2, 15,    "regions in the circle"),
    Field("emperor",           "u1",  (),       0, 14,    "index of the region where the Emperor stands"),
    Field("reason",            "u1",  (),       0, 4,     "why the game ended: " + ", ".join(f"{i} {name or 'not over'}" for i, name in enumerate(rules.REASON_NAMES))),
    Field("winners",           "u1",  (),       0, 7,     "bit t: team t has won or shares the win"),
    Field("team",              "u1",  (_P,),    0, 2,     "team of each seat"),
    Field("order",             "u1",  (_P,),    0, 3,     "seats in opening order; in action order once every disc is played"),
    Field("discs_in_hand",     "u1",  (_P,),    0, 31,    "bit d - 1: disc d is in the hand of each seat"),
    Field("discs_played",      "u1",  (_P,),    0, 5,     "disc played this round by each seat; 0: none yet"),
    Field("crowns",            "u1",  (_P,),    0, 9,     "undecided crowns of each seat"),
    Field("castles",           "u1",  (_T,),    0, 15,    "castles in play of each team"),
    Field("control",           "i1",  (_C,),   -1, 3,     "seat that controls each clan; -1: nobody"),
    Field("supply",            "u1",  (_C,),    0, 197,   "paladins of each clan in the supply"),
    Field("region_first",      "u1",  (_R,),    0, 14,    "first territory of each region clockwise, ascending; a region ends before the next one"),
    Field("region_owner",      "i1",  (_R,),   -1, 2,     "team with castles on the region; -1: none"),
    Field("region_castles",    "u1",  (_R,),    0, 15,    "castles on each region"),
    Field("region_paladins",   "u1",  (_C, _R), 0, 200,   "paladins of each clan on each region"),
    Field("courts",            "u1",  (_P, _C), 0, 197,   "paladins of each clan in the court of each seat"),
    Field("reserves",          "u1",  (_P, _C), 0, 9,     "paladins of each clan in the reserve of each seat"),
)
# fmt: on

STATE: Final = np.dtype([(field.name, field.dtype, field.shape) for field in FIELDS])
"""The dtype of a game's record; docs/notation.md lists its fields."""
assert STATE.itemsize <= 256

OPTION_FIELDS: Final = {field.option: field.name for field in FIELDS if field.option}
"""The field of each option of `Rules`."""

KEPT_FIELDS: Final = ("generator", "teams", "team", *OPTION_FIELDS.values())
"""Fields that a new game keeps of the one before: the rules and the generator."""

States = npt.NDArray[np.void]
"""A batch of games: ``(N,)`` of dtype `STATE`, C-contiguous."""
Ints = npt.NDArray[np.integer[Any]]


def as_states(states: Any, what: str = "states") -> States:
    """Check that ``states`` is a batch of games; return it, or a copy where kernels need one.

    They take neither read-only arrays nor slices with strides.
    """
    if not isinstance(states, np.ndarray) or states.dtype != STATE or states.ndim != 1:
        got = type(states).__name__
        if isinstance(states, np.ndarray):
            dtype = "record of other fields" if states.dtype.names else str(states.dtype)
            got = f"an array of shape {states.shape} and dtype {dtype}"
        raise TypeError(f"{what} must be a one-dimensional array of game records, got {got}")
    return states if states.flags.carray else np.array(states.view(RAW)).view(STATE)


def check_states(states: Any) -> None:
    """Check that ``states`` is a batch of games that kernels can change in place."""
    if as_states(states) is not states:
        raise TypeError(
            "states must be contiguous and writeable; "
            "for a strided slice, work on a copy and write it back"
        )


def check_rows(rows: Ints | None, games: int) -> npt.NDArray[np.int64]:
    """Return the indices of the games that a call means, all where ``rows`` is None."""
    if rows is None:
        return _few_rows(games) if games <= 1 << 16 else np.arange(games)
    rows = array("rows", rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise TypeError(
            f"rows must be a list of game indices, got shape {rows.shape} and dtype {rows.dtype}"
        )
    if len(rows) and not (rows.min() >= 0 and rows.max() < games):
        raise IndexError(f"rows must be from 0 to {games - 1}, got {rows.min()} to {rows.max()}")
    checked = np.array(rows, np.int64)  # signed, or differences would wrap around
    if (np.diff(checked) <= 0).any() and len(np.unique(checked)) < len(checked):
        raise ValueError("rows must name each game at most once")
    return checked


_few_rows = functools.lru_cache(16)(np.arange)


def check_buffer(name: str, value: Any, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    """Check that a kernel can write an array of that shape and dtype into ``value``."""
    fits = isinstance(value, np.ndarray) and value.shape == shape and value.dtype == dtype
    if not fits or not value.flags.carray:
        given = array(name, value)
        raise ValueError(
            f"{name} must be a contiguous, writeable {np.dtype(dtype)} array of shape {shape}, "
            f"got shape {given.shape} and dtype {given.dtype}"
        )


def single(state: np.void | States, what: str = "state") -> States:
    """Return a copy of a record ``states[i]``, or of a batch of one, as a batch of one, ``(1,)``."""
    kind = isinstance(state, np.void | np.ndarray) and state.dtype == STATE
    if not kind or state.size != 1:
        error, got = (ValueError, f"{state.size} games") if kind else (TypeError, shown(state))
        raise error(f"{what} must be one game, such as states[0], got {got}")
    copied: States = np.asarray(state).reshape(1).view(RAW).copy().view(STATE)
    return copied


RAW: Final = np.dtype((np.void, STATE.itemsize))
"""A game as one piece, for a view: NumPy copies and compares records field by field."""


def copy(states: States) -> States:
    """Copy games, ``(N,)``: ``states.copy()``, but faster, as raw bytes."""
    copied: States = as_states(states).view(RAW).copy().view(STATE)
    return copied


def pick(states: States, rows: Ints) -> States:
    """Copy the games at ``rows``, ``(M,)``: ``states[rows]``, but faster, as raw bytes.

    Rows may be in any order, and name a game several times; an unknown one is an IndexError.
    """
    states = as_states(states)
    try:
        picked: States = states.view(RAW)[rows].view(STATE)
        if np.less(rows, 0).any():
            raise IndexError("negative ones are not allowed")
    except (IndexError, TypeError, ValueError) as error:
        raise IndexError(f"rows must be indices of {len(states)} games: {error}") from None
    return picked


def put(states: States, rows: Ints, games: States) -> None:
    """Write ``games`` to ``rows``: ``states[rows] = games``, but faster, as raw bytes."""
    states.view(RAW)[rows] = games.view(RAW)


def common_players(states: States, what: str) -> int:
    """Return the number of players of all games; 2 where there are no games."""
    players = int(states["players"][0]) if len(states) else 2
    if (states["players"] != players).any():
        raise ValueError(f"games of different numbers of players have different {what}")
    return players


def to_bytes(states: States) -> bytes:
    """Return the games of a batch as bytes (little-endian), which `from_bytes` reads."""
    return as_states(states).tobytes()


def check_ranges(states: States) -> None:
    """Refuse records with a field outside the range that `FIELDS` gives."""
    for field in FIELDS:
        values = states[field.name].reshape(len(states), math.prod(field.shape))
        bad = (values < field.low) | (values > field.high)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            value = values[row][bad[row]][0]
            raise ValueError(
                f"game {row}: field {field.name!r} holds {value}, "
                f"allowed are {field.low} to {field.high}"
            )


def equal(a: States, b: States) -> npt.NDArray[np.bool_]:
    """Return a mask of the games that are equal by value, generator included: ``(N,)`` bool."""
    bytes_a, bytes_b = (as_states(s).view(np.uint8).reshape(-1, STATE.itemsize) for s in (a, b))
    return np.all(bytes_a == bytes_b, axis=1)


def winning_teams(state: np.void) -> list[int]:
    """Return the teams that have won one game or share its win, ascending."""
    return [team for team in range(int(state["teams"])) if state["winners"] >> team & 1]
