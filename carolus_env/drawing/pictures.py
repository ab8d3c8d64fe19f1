"""Displays for notebooks: a board, a grid of boards, a recorded game; each can be saved."""

from __future__ import annotations

import re
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Final, overload

import gymnasium
import numpy as np

from carolus_env.drawing import animation
from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pixels import WIDE, WIDTH, svg_png
from carolus_env.engine.state import STATE, States, as_states
from carolus_env.records import Record
from carolus_env.system.files import write_file

MOST_BOARDS: Final = 8
"""Maximum number of boards drawn of a batch."""

_COLUMNS: Final = 4
_BOARD_WIDTH: Final = 270  # pixels of a board in a grid
_HEADING, _SPACE = 26, 10


class Picture:
    """A drawing that a notebook shows and that can be saved.

    Attributes:
        svg: the drawing as one standalone SVG element.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture.

        Args:
            path: a file name with the suffix ``.svg``, or ``.png`` (extra ``render``).

        Raises:
            ValueError: for another suffix.
            ImportError: without the extra ``render``, naming it.
            OSError: when the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            data = self.svg.encode()
        elif suffix == ".png":
            data = svg_png(self.svg)
        else:
            raise ValueError(f"a picture's name ends in .svg or .png, got {str(path)!r}")
        write_file(path, data)


class Film:
    """A recorded game that a notebook shows with buttons to step through it.

    Args:
        record: a game record.
        options: those of `save_animation`.

    Attributes:
        page: the HTML page that is shown, see `animation.animation_page`.
    """

    def __init__(self, record: Record, **options: Any) -> None:
        self._record, self._options = record, options
        self.page = animation.animation_page(record, **options)

    def _repr_html_(self) -> str:
        # In a sandboxed frame, its styles and scripts cannot touch those of the notebook.
        box = re.search(r' viewBox="\S+ \S+ (\S+) (\S+)"', self.page)
        assert box is not None
        across = self._options.get("width") or WIDTH
        down = across * float(box[2]) / float(box[1])
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts" title="Carolus Magnus" '
            f'style="border:0;width:100%;max-width:{across}px;'
            f'aspect-ratio:{across}/{down + animation.CONTROLS_HEIGHT:.0f}"></iframe>'
        )

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the animation with `save_animation`; ``options`` override those given before."""
        animation.save_animation(self._record, path, **{**self._options, **options})


@overload
def show(what: Record, **options: Any) -> Film: ...
@overload
def show(what: Any, **options: Any) -> Picture: ...
def show(what: Any, **options: Any) -> Picture | Film:
    """Display a game, an environment, several games, or a game record in a notebook.

    Args:
        what: a `Game`, a `GameBatch` or an environment; a state (``states[i]``); states, of which
            the first eight are drawn; or a game record (`carolus_env.records.record`).
        options: those of `board_svg`, for a record also ``seconds_per_move``. By default, one
            board and a record are wide and 800 pixels across.

    Raises:
        TypeError: for anything else.
        ValueError: for an impossible option, or for a record that is invalid (`RecordError`).
        ResetNeeded: for an environment before its first `reset`.
    """
    if isinstance(what, dict):
        return Film(what, **options)
    inner = getattr(what, "unwrapped", what)
    if hasattr(inner, "last_decision"):
        options = {"last": inner.last_decision(), **options}
    states = _states_of(inner)
    if states is None:
        raise TypeError(
            f"what to show must be a game, an environment, states or a record, got {type(what)}"
        )
    if not np.all(states["regions"]):  # zeros, before the first reset
        raise gymnasium.error.ResetNeeded("call reset first: no game has started")
    if isinstance(states, np.ndarray) and states.shape != (1,):
        svg = boards_svg(states, **options)
    else:
        svg = state_svg(states if isinstance(states, np.void) else states[0], **options)
    return Picture(svg)


def _states_of(what: Any) -> np.void | States | None:
    """Return the states of what holds some: in ``states`` games do, in ``games`` environments."""
    what = getattr(what, "games", what)
    what = getattr(what, "states", what)
    return what if isinstance(what, np.void | np.ndarray) and what.dtype == STATE else None


def state_svg(state: np.void, **options: Any) -> str:
    """Return `board_svg` with the defaults of notebooks: wide, 800 pixels across."""
    return board_svg(state, **{**WIDE, **options})


def boards_svg(states: States, *, width: int | None = None, **options: Any) -> str:
    """Draw the first eight of several games in one standalone SVG element.

    Args:
        states: ``(n,)`` games; a line below the boards counts those that are not drawn.
        width: width in pixels. None: 270 for each of up to four boards in a row.
        options: those of `board_svg` except ``last``.

    Raises:
        ValueError: for an impossible option, or without games.
    """
    shown = min(len(as_states(states)), MOST_BOARDS)
    if not shown:
        raise ValueError("there is no game to draw")
    columns = min(shown, _COLUMNS)
    across = columns * (_BOARD_WIDTH + _SPACE) + _SPACE
    pieces, down = [], _SPACE

    def write(words: str, x: int, y: int) -> None:
        pieces.append(
            f'<text class="f-ink left" x="{x}" y="{y + 16}" font-size="14">{words}</text>'
        )

    for i in range(shown):
        board = board_svg(states[i], **options, width=_BOARD_WIDTH)
        row, column = divmod(i, columns)
        height = int(board.partition(' height="')[2].partition('"')[0])
        x, y = _SPACE + column * (_BOARD_WIDTH + _SPACE), _SPACE + row * (height + _HEADING)
        write(f"game {i}", x, y)
        pieces.append(board.replace("<svg ", f'<svg x="{x}" y="{y + _HEADING - 4}" ', 1))
        down = y + height + _HEADING
    if more := len(states) - shown:
        write(f"and {more:,} more", _SPACE, down)
        down += _HEADING
    theme, size = options.get("theme", "auto"), width or across
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="carolus carolus-{theme}" role="img" '
        f'width="{size}" height="{size * down / across:.0f}" viewBox="0 0 {across} {down}">'
        f"<title>Carolus Magnus, {len(states):,} games</title>"
        f'<rect class="f-back" width="{across}" height="{down}" rx="6"/>{"".join(pieces)}</svg>'
    )
