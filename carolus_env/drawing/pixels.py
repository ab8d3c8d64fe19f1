"""The drawing as pixels, as PNG and in a window; needs the extra ``render``.

resvg draws the SVG with the fonts next to this file, so a picture is the same on every machine.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import BACKGROUNDS
from carolus_env.system import machine

WIDTH: Final = 800
"""Default width in pixels."""
WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}
"""Default options of environments, notebooks and animations."""

_UNCHANGED: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)  # as a transform
_OF_THREAD: Final = threading.local()
_FONTS: Final = [str(path) for path in sorted((Path(__file__).parent / "fonts").glob("*.ttf"))]


def board_pixels(state: np.void, *, width: int = WIDTH, **options: Any) -> npt.NDArray[np.uint8]:
    """Draw one game (``states[i]``) as pixels.

    Takes the options of `board_svg`; the height follows from the layout. ImportError names the
    extra ``render`` where it is missing.

    Returns:
        ``(height, width, 3)`` uint8, red, green and blue.
    """
    svg = board_svg(state, width=width, **options)
    return np.array(svg_picture(svg, options.get("theme", "auto")))


def board_png(state: np.void, *, width: int = WIDTH, **options: Any) -> bytes:
    """Return `board_pixels` as a PNG file, whose corners outside the drawing are transparent."""
    return svg_png(board_svg(state, width=width, **options))


def svg_picture(svg: str, theme: str = "auto") -> Any:
    """Return `svg_png` as a picture of PIL, in RGB, with the theme's background in the corners."""
    with extra("PIL.Image").open(io.BytesIO(svg_png(svg, BACKGROUNDS[theme]))) as picture:
        return picture.convert("RGB")


def svg_png(svg: str, background: str | None = None) -> bytes:
    """Return any SVG with text in DejaVu Sans as PNG, in the size that it states."""
    resvg = extra("resvg")
    colour = None if background is None else (*bytes.fromhex(background.removeprefix("#")), 255)
    try:
        tree = resvg.usvg.Tree.from_str(svg, _options(resvg))
        png: bytes = resvg.render(tree, _UNCHANGED, bg_color=colour)
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
    """Import a module of the extra ``render``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed for this picture ({error}); {machine.install('render')}"
        ) from error


# ------------------------------------------------------------------------------------ window


_UNSEEN: Final = ("dummy", "offscreen")  # SDL drivers without a visible window


class Window:
    """A window that opens with its first frame; objects can be copied and pickled.

    pygame has one window a process. Several objects share it, and each opens it again when it finds
    it closed or in another size. Without a display a warning is given, and all works unseen.
    """

    def __init__(self, caption: str) -> None:
        self._caption = caption
        self._opened = self._dismissed = False
        self._shown_at = 0.0

    def show(self, pixels: npt.NDArray[np.uint8], fps: float | None = None) -> None:
        """Show a frame, at most ``fps`` a second.

        When the user closes the window, it stays closed until `close` is called.
        """
        if self._dismissed:
            return
        pygame = extra("pygame")
        display = pygame.display
        if not display.get_init():
            _start(display)
        size, surface = (pixels.shape[1], pixels.shape[0]), display.get_surface()
        if surface is None or surface.get_size() != size:
            surface = display.set_mode(size)
            display.set_caption(self._caption)
        self._opened = True
        surface.blit(pygame.image.frombuffer(pixels.tobytes(), size, "RGB"), (0, 0))
        display.flip()
        events = pygame.event.get()  # empties the queue, which would fill up
        if any(event.type == pygame.QUIT for event in events):
            self.close()
            self._dismissed = True
            return
        if fps is not None and display.get_driver() not in _UNSEEN:
            time.sleep(max(0.0, self._shown_at + 1 / fps - time.monotonic()))
        self._shown_at = time.monotonic()

    def close(self) -> None:
        """Close the window if it is open; the next frame opens it again."""
        if self._opened:
            extra("pygame").display.quit()
        self._opened = self._dismissed = False


def _start(display: Any) -> None:
    """Find a display; on Linux without one, use SDL's dummy driver."""
    chosen = os.environ.get("SDL_VIDEODRIVER")  # by the user
    found = chosen or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if found or sys.platform != "linux":
        display.init()
    else:
        os.environ["SDL_VIDEODRIVER"] = "dummy"
        try:
            display.init()
        finally:
            del os.environ["SDL_VIDEODRIVER"]
    if not chosen and display.get_driver() in _UNSEEN:
        warnings.warn(
            "there is no display: render mode 'human' draws, but no window can be seen",
            stacklevel=2,
        )
