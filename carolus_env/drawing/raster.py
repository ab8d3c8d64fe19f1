"""The drawing as pixels and as PNG.

resvg draws the SVG; text is set in the fonts beside this file, so that a picture is the same on
every machine and needs neither a system library nor an installed font. Needs the extra ``render``.
"""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.style import BACKGROUNDS

WIDTH: Final = 800
"""Pixels across, where nothing is said."""

WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}
"""How environments, notebooks and films show a game, where nothing else is said."""

_FONTS: Final = [str(path) for path in sorted((Path(__file__).parent / "fonts").glob("*.ttf"))]


def board_pixels(state: np.void, *, width: int = WIDTH, **options: Any) -> npt.NDArray[np.uint8]:
    """Draw one game (``states[i]``) as pixels.

    Args:
        state: the game.
        width: pixels across; the layout decides how many down.
        options: those of `board_svg`.

    Returns:
        ``(height, width, 3)`` uint8, red, green and blue.

    Raises:
        ValueError: see `board_svg`.
        ImportError: without the extra ``render``, naming it.
    """
    svg = board_svg(state, width=width, **options)
    return svg_pixels(svg, options.get("theme", "auto"))


def board_png(state: np.void, *, width: int = WIDTH, **options: Any) -> bytes:
    """`board_pixels` as a PNG file, transparent where the drawing's corners are round."""
    return svg_png(board_svg(state, width=width, **options))


def svg_pixels(svg: str, theme: str = "auto") -> npt.NDArray[np.uint8]:
    """`svg_png` as ``(height, width, 3)`` uint8, with the theme's background in the corners."""
    image = extra("PIL.Image")
    with image.open(io.BytesIO(svg_png(svg, BACKGROUNDS[theme]))) as picture:
        return np.array(picture.convert("RGB"))


def svg_png(svg: str, background: str | None = None) -> bytes:
    """Any SVG that sets text in DejaVu Sans only, as PNG in its own size.

    Raises:
        ImportError: without the extra ``render``, naming it.
    """
    png: bytes = extra("resvg_py").svg_to_bytes(
        svg_string=svg, background=background, skip_system_fonts=True, font_files=_FONTS
    )
    return png


def extra(module: str) -> Any:
    """A module of the extra ``render``.

    Raises:
        ImportError: when it is missing, saying how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed for this picture ({error}); pip install 'carolus-env[render]'"
        ) from error
