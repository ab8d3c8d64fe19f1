"""The drawing as pixels and as PNG; needs the extra ``render``.

resvg draws the SVG with the fonts next to this file. So a picture is the same on every machine and
needs neither a system library nor an installed font.
"""

from __future__ import annotations

import importlib
import io
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.style import BACKGROUNDS
from carolus_env.system import failures

WIDTH: Final = 800
"""Default width in pixels."""

WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}
"""Default options of environments, notebooks and animations."""

_AS_IT_IS: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
"""The transform that changes nothing."""

_OF_THREAD: Final = threading.local()

_FONTS: Final = [str(path) for path in sorted((Path(__file__).parent / "fonts").glob("*.ttf"))]


def board_pixels(state: np.void, *, width: int = WIDTH, **options: Any) -> npt.NDArray[np.uint8]:
    """Draw one game (``states[i]``) as pixels.

    Args:
        state: the game.
        width: width in pixels; the height follows from the layout.
        options: those of `board_svg`.

    Returns:
        ``(height, width, 3)`` uint8, red, green and blue.

    Raises:
        ValueError: see `board_svg`.
        ImportError: without the extra ``render``, naming it.
    """
    return np.array(board_picture(state, width=width, **options))


def board_png(state: np.void, *, width: int = WIDTH, **options: Any) -> bytes:
    """Return `board_pixels` as a PNG file, whose corners outside the drawing are transparent."""
    return svg_png(board_svg(state, width=width, **options))


def board_picture(state: np.void, *, width: int = WIDTH, **options: Any) -> Any:
    """Return `board_pixels` as a picture of PIL, in RGB."""
    return svg_picture(board_svg(state, width=width, **options), options.get("theme", "auto"))


def svg_picture(svg: str, theme: str = "auto") -> Any:
    """Return `svg_png` as a picture of PIL, in RGB, with the theme's background in the corners."""
    with extra("PIL.Image").open(io.BytesIO(svg_png(svg, BACKGROUNDS[theme]))) as picture:
        return picture.convert("RGB")


def svg_png(svg: str, background: str | None = None) -> bytes:
    """Return any SVG with text in DejaVu Sans as PNG, in the size that it states.

    Args:
        svg: the drawing.
        background: a colour as ``"#rrggbb"``; None: transparent.

    Raises:
        ValueError: for what is not SVG, or has no size.
        ImportError: without the extra ``render``, naming it.
    """
    resvg = extra("resvg")
    colour = None if background is None else (*bytes.fromhex(background.removeprefix("#")), 255)
    try:
        tree = resvg.usvg.Tree.from_str(svg, _options(resvg))
        png: bytes = resvg.render(tree, _AS_IT_IS, bg_color=colour)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, of no public class
            raise
        raise ValueError(f"this SVG cannot be drawn ({error}): {svg[:80]!r}") from None
    return png


def _options(resvg: Any) -> Any:
    """Return resvg's options with the fonts; each thread needs its own."""
    if getattr(_OF_THREAD, "fonts", None) != _FONTS:
        options = resvg.usvg.Options.default()
        for path in _FONTS:
            options.load_font_file(path)
        _OF_THREAD.options, _OF_THREAD.fonts = options, _FONTS
    return _OF_THREAD.options


def extra(module: str) -> Any:
    """Import a module of the extra ``render``.

    Raises:
        ImportError: when it is missing, with how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed for this picture ({error}); {failures.install('render')}"
        ) from error
