"""The drawing as pixels and as PNG; needs the extra ``render``.

resvg draws the SVG with the fonts next to this file. So a picture is the same on every machine and
needs neither a system library nor an installed font.
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
"""Default width in pixels."""

WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}
"""Default options of environments, notebooks and animations."""

_FONTS: Final = [str(path) for path in sorted((Path(__file__).parent / "fonts").glob("*.ttf"))]


def board_pixels(state: np.void, *, width: int = WIDTH, **options: Any) -> npt.NDArray[np.uint8]:
    """Draw one game (``states[i]``) as pixels.

    Args:
        state: the game.
        width: in pixels; the height follows from the layout.
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
    """`board_pixels` as a PNG file, whose corners outside the drawing are transparent."""
    return svg_png(board_svg(state, width=width, **options))


def svg_pixels(svg: str, theme: str = "auto") -> npt.NDArray[np.uint8]:
    """`svg_png` as ``(height, width, 3)`` uint8, with the theme's background in the corners."""
    image = extra("PIL.Image")
    with image.open(io.BytesIO(svg_png(svg, BACKGROUNDS[theme]))) as picture:
        return np.array(picture.convert("RGB"))


def svg_png(svg: str, background: str | None = None) -> bytes:
    """Any SVG with text in DejaVu Sans as PNG, in the size that it states.

    Raises:
        ImportError: without the extra ``render``, naming it.
    """
    png: bytes = extra("resvg_py").svg_to_bytes(
        svg_string=svg, background=background, skip_system_fonts=True, font_files=_FONTS
    )
    return png


def extra(module: str) -> Any:
    """Import a module of the extra ``render``.

    Raises:
        ImportError: when it is missing, with how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed for this picture ({error}); pip install 'carolus-env[render]'"
        ) from error
