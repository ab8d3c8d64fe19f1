"""Drawings for notebooks and files: pictures, pixels, animations, and a window.

An animation is an SVG that plays by itself, without a script (it uses SMIL), or a GIF. In the SVG
an element that several frames share is stored once, with the times at which it is shown, so a whole
game is little more than ten times as large as a board. Pixels need the extra ``render``: resvg
draws the SVG with the fonts next to this file, so a picture is the same on every machine.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import gymnasium
import numpy as np
import numpy.typing as npt

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import BACKGROUNDS
from carolus_env.engine.state import STATE
from carolus_env.records import Record, names_of, positions
from carolus_env.system import machine
from carolus_env.system.files import check_writable, write_file
from carolus_env.system.options import number

WIDTH: Final = 800  # in pixels
WIDE: Final[dict[str, Any]] = {"layout": "wide", "width": WIDTH}  # default options


# ------------------------------------------------------------------------------------ notebooks


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

    An environment before its first `reset` is a ResetNeeded.
    """
    if isinstance(what, dict):
        return Picture(animation_svg(what, **options))
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


# ------------------------------------------------------------------------------------ pixels


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


# ------------------------------------------------------------------------------------ animations


_SVG: Final = "{http://www.w3.org/2000/svg}"
_FOR_PAGES: Final = ("class", "data-")  # attributes of groups that do not change their style
_LAST_FRAME: Final = 4.0  # duration of the end, in moves


def frames_of(record: Record) -> list[tuple[np.void, tuple[np.void, int] | None]]:
    """Return the game before each decision and at the end, each with the ``last`` of its board."""
    *states, end = positions(record)
    last: tuple[np.void, int] | None = None
    frames: list[tuple[np.void, tuple[np.void, int] | None]] = []
    for state, event in zip(states, record["events"], strict=True):
        if "action" in event:
            frames.append((state, last))
            last = state, event["action"]
    return [*frames, (end, last)]


def _boards(record: Record, seconds: float, most: float, options: dict[str, Any]) -> list[str]:
    number("seconds_per_move", seconds, 0.02, most)
    frames = frames_of(record)
    options = {**WIDE, "names": names_of(record), **options}
    return [board_svg(state, last=last, **options) for state, last in frames]


def save_animation(record: Record, path: str | PathLike[str], **options: Any) -> None:
    """Write a recorded game as an animation, a frame for each decision.

    Args:
        path: a file name with the suffix ``.svg``, or ``.gif`` (extra ``render``).
        options: those of `board_svg` except ``last``, 800 pixels across by default, and
            ``seconds_per_move``, 1.0 by default; the end is shown four times as long.

    What is no record, or breaks the rules, is a RecordError.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".svg", ".gif"):
        raise ValueError(f"an animation's name ends in .svg or .gif, got {str(path)!r}")
    check_writable(path)
    if suffix == ".gif":
        write_file(path, animation_gif(record, **options))
    else:
        write_file(path, animation_svg(record, **options).encode())


def animation_gif(record: Record, *, seconds_per_move: float = 1.0, **options: Any) -> bytes:
    """Return `animation_svg` as a GIF with one palette, the end's; needs extra ``render``."""
    boards = _boards(record, seconds_per_move, 163, options)  # the format has 655.35 for a frame
    theme = options.get("theme", "auto")
    palette = svg_picture(boards[-1], theme).quantize(255)
    plain = extra("PIL.Image").Dither.NONE
    pictures = (svg_picture(b, theme).quantize(palette=palette, dither=plain) for b in boards)
    milliseconds = [round(1000 * seconds_per_move)] * len(boards)
    milliseconds[-1] = round(1000 * seconds_per_move * _LAST_FRAME)
    file = io.BytesIO()
    next(pictures).save(
        file, "GIF", save_all=True, append_images=pictures, duration=milliseconds, loop=0
    )
    return file.getvalue()


def animation_svg(record: Record, *, seconds_per_move: float = 1.0, **options: Any) -> str:
    """Return a recorded game as one standalone SVG that plays in a loop, without scripts."""
    boards = _boards(record, seconds_per_move, 3600, options)
    shown = defaultdict[tuple[_Place, str], int](int)  # bit k: frame k shows it
    for frame, board in enumerate(boards):
        root = ElementTree.fromstring(board)
        for leaf in _leaves(root):
            shown[leaf] |= 1 << frame
    leaves = [(key[1], shown[key]) for key in sorted(shown, key=itemgetter(0))]
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in root.attrib.items())
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg"{attributes}>'
            f"<title>Carolus Magnus, a game of {len(boards) - 1} decisions</title>"
            f"<style>{root.findtext(f'{_SVG}style') or ''}</style>",
            *_timed(leaves, len(boards), seconds_per_move),
            "</svg>",
        ]
    )


_Place = tuple[int, ...]
"""Path through the tree of a drawing: elements in the order of their places are its own order."""


def _leaves(
    element: ElementTree.Element, at: _Place = (), head: str = "", tail: str = ""
) -> Iterator[tuple[_Place, str]]:
    """Yield the drawn elements and their places, each within the groups that give it its style.

    Regions merge, so each counts as its first territory.
    """
    for place, child in enumerate(element):
        name = child.tag.removeprefix(_SVG)
        if name in ("title", "desc", "style"):
            continue
        here = (*at, int(child.get("data-territories", str(place)).partition("-")[0]))
        shown = [key for key in child.attrib if name != "g" or not key.startswith(_FOR_PAGES)]
        tag = name + "".join(f' {key}="{escape(child.attrib[key])}"' for key in shown)
        if name == "g":
            around = (f"{head}<{tag}>", f"</g>{tail}") if shown else (head, tail)
            yield from _leaves(child, here, *around)
        elif child.text:
            yield here, f"{head}<{tag}>{escape(child.text)}</{name}>{tail}"
        else:
            yield here, f"{head}<{tag}/>{tail}"


def _timed(leaves: list[tuple[str, int]], frames: int, seconds: float) -> Iterator[str]:
    """Yield leaves as markup, from back to front; those that are shown together share a group."""
    moves, every = frames - 1 + _LAST_FRAME, (1 << frames) - 1
    while leaves:
        shown, passed, at = leaves[0][1], 0, 0
        body, rest = "", list[tuple[str, int]]()
        for at, leaf in enumerate(leaves, 1):  # noqa: B007
            if leaf[1] == shown:  # and no leaf passed is ever on the screen with it
                body += leaf[0]
            else:
                passed |= leaf[1]
                rest.append(leaf)
                if passed & shown:
                    break
        leaves = rest + leaves[at:]
        if shown == every:
            yield body
            continue
        visible = [shown >> frame & 1 for frame in range(frames)]
        changes = [0, *(k for k in range(1, frames) if visible[k] != visible[k - 1])]
        times = ";".join(f"{change / moves:.6g}" for change in changes)
        values = ";".join("inline" if visible[change] else "none" for change in changes)
        at_first = "" if visible[0] else ' display="none"'
        yield (
            f'<g{at_first}><animate attributeName="display" calcMode="discrete" '
            f'dur="{moves * seconds:g}s" repeatCount="indefinite" keyTimes="{times}" '
            f'values="{values}"/>{body}</g>'
        )


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
        text = "there is no display: render mode 'human' draws, but no window can be seen"
        warnings.warn(text, stacklevel=2)
