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
    """A drawing that a notebook shows and that can be saved; ``svg`` is one standalone element."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file named ``.svg``, or ``.png`` (extra ``render``)."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".svg", ".png"):
            raise ValueError(f"a picture's name ends in .svg or .png, got {str(path)!r}")
        write_file(path, svg_png(self.svg) if suffix == ".png" else self.svg.encode())


def show(what: Any, **options: Any) -> Picture:
    """Display a game, an environment of one game, or a game record in a notebook.

    Args:
        what: a `Game`, an environment, a state (``states[i]``), or a game record, which plays by
            itself.
        options: those of `board_svg`, for a record those of `save_animation`.

    Raises:
        TypeError, ValueError: for anything else, several games, or an invalid record.
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
