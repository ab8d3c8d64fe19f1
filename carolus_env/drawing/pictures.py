"""Displays for notebooks: a board or a recorded game, which can be saved."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from carolus_env.drawing import animation
from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pixels import WIDE, svg_png
from carolus_env.engine.state import STATE
from carolus_env.system.files import write_file


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
        if suffix not in (".svg", ".png"):
            raise ValueError(f"a picture's name ends in .svg or .png, got {str(path)!r}")
        write_file(path, svg_png(self.svg) if suffix == ".png" else self.svg.encode())


def show(what: Any, **options: Any) -> Picture:
    """Display a game, an environment of one game, or a game record in a notebook.

    Args:
        what: a `Game` or an environment; a state (``states[i]``); or a game record
            (`carolus_env.records.record`), which plays by itself, see `save_animation`.
        options: those of `board_svg`, for a record also ``seconds_per_move``; 800 pixels across by
            default.

    Raises:
        TypeError: for anything else.
        ValueError: for an impossible option, for several games, or for a record that is invalid
            (`RecordError`).
        ResetNeeded: for an environment before its first `reset`.
    """
    if isinstance(what, dict):
        return Picture(animation.animation_svg(what, **options))
    inner = getattr(what, "unwrapped", what)
    states = getattr(inner, "games", inner)  # environments have games, which have states
    states = getattr(states, "states", states)
    if not isinstance(states, np.void | np.ndarray) or states.dtype != STATE:
        raise TypeError(f"what to show must be a game, environment or record, got {type(what)}")
    if states.size != 1:
        raise ValueError(f"what to show must be one game, such as states[0], got {states.size}")
    state = states.reshape(1)[0]
    if not state["regions"]:  # zeros, before the first reset
        raise gymnasium.error.ResetNeeded("call reset first: no game has started")
    if hasattr(inner, "last_decision"):
        options = {"last": inner.last_decision(), **options}
    return Picture(state_svg(state, **options))


def state_svg(state: np.void, **options: Any) -> str:
    """Return `board_svg` with the defaults of notebooks: 800 pixels across."""
    return board_svg(state, **{**WIDE, **options})
