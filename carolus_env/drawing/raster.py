"""The drawing as pixels and as PNG; needs the extra ``render``.

resvg draws the SVG with the fonts next to this file. So a picture is the same on every machine and
needs neither a system library nor an installed font. Parts of a board that were drawn before are
kept as tiles (`tiles`).
"""

from __future__ import annotations

import importlib
import io
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import CORNER, Drawing
from carolus_env.drawing.style import BACKGROUNDS
from carolus_env.drawing.tiles import Tiles

WIDTH: Final = 800
"""Default width in pixels."""

WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}
"""Default options of environments, notebooks and animations."""

WIDEST_OF_TILES: Final = 2000
"""Pixels across, up to which boards are put together from tiles; wider ones are posters."""

_AS_IT_IS: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
"""The transform that changes nothing."""

_OF_THREAD: Final = threading.local()

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
    return np.array(board_picture(state, width=width, **options))


def board_png(state: np.void, *, width: int = WIDTH, **options: Any) -> bytes:
    """`board_pixels` as a PNG file, whose corners outside the drawing are transparent."""
    drawing, picture = _board(state, width, options)
    across, down = picture.size
    corner = CORNER * across / drawing.box[2]
    shape = f'<rect width="{across}" height="{down}" rx="{corner:.9g}"/>'
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}">{shape}</svg>'
    )
    picture.putalpha(_picture(whole).getchannel("A"))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def board_picture(state: np.void, *, width: int = WIDTH, **options: Any) -> Any:
    """`board_pixels` as a picture of PIL, in RGB."""
    return _board(state, width, options)[1]


def _board(state: np.void, width: int, options: dict[str, Any]) -> tuple[Drawing, Any]:
    drawing = Drawing(state, width=width, **options)
    image, _ = extra("PIL.Image"), extra("resvg")
    background = BACKGROUNDS[drawing.theme]
    if width > WIDEST_OF_TILES:
        return drawing, _picture(drawing.svg(), background).convert("RGB")
    canvas = image.new("RGB", drawing.size, background)
    for tile in _TILES.of(drawing):
        canvas.paste(tile.image, tile.at, tile.mask)
    return drawing, canvas


def svg_pixels(svg: str, theme: str = "auto") -> npt.NDArray[np.uint8]:
    """`svg_png` as ``(height, width, 3)`` uint8, with the theme's background in the corners."""
    return np.array(_picture(svg, BACKGROUNDS[theme]).convert("RGB"))


def _picture(svg: str, background: str | None = None) -> Any:
    """`svg_png` as a picture of PIL, in RGBA."""
    with extra("PIL.Image").open(io.BytesIO(svg_png(svg, background))) as picture:
        return picture.convert("RGBA")


_TILES: Final = Tiles(_picture)


def svg_png(svg: str, background: str | None = None) -> bytes:
    """Any SVG with text in DejaVu Sans as PNG, in the size that it states.

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
    """resvg's options with the fonts; each thread needs its own."""
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
            f"{module} is needed for this picture ({error}); pip install 'carolus-env[render]'"
        ) from error
