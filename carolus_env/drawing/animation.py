"""A game record as an animation: an SVG that plays by itself, an HTML page, or a GIF.

The SVG holds no script (it uses SMIL). An element that several frames share is stored once, with
the times at which it is shown, so a whole game is little more than ten times as large as a board.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

import numpy as np

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import BACKGROUNDS
from carolus_env.drawing.pixels import WIDE, extra, svg_picture
from carolus_env.records import Record, names_of, positions
from carolus_env.system.files import check_writable, write_file

SECONDS_PER_MOVE: Final = 1.0
_SVG: Final = "{http://www.w3.org/2000/svg}"
_FOR_PAGES: Final = ("class", "data-")  # attributes of groups that do not change their style
_LAST_FRAME: Final = 4.0  # duration of the end, in moves
_GIF_MOST: Final = int(655.35 / _LAST_FRAME)  # seconds; the format allows 655.35 for a frame


class Frame(NamedTuple):
    """A picture of a game.

    Attributes:
        state: the game, ``states[i]``.
        last: the state before the last decision, and its action number; None at the start.
    """

    state: np.void
    last: tuple[np.void, int] | None


def frames_of(record: Record) -> list[Frame]:
    """Return the frames of a recorded game: before each decision, and after the last event.

    Raises:
        RecordError: when ``record`` is not a record, or its game breaks the rules.
    """
    states = positions(record)
    last: tuple[np.void, int] | None = None
    frames = []
    for state, event in zip(states[:-1], record["events"], strict=True):
        if "action" in event:
            frames.append(Frame(state, last))
            last = state, event["action"]
    return [*frames, Frame(states[-1], last)]


def _boards(record: Record, options: dict[str, Any]) -> list[str]:
    """Return each frame as SVG; ``options`` are those of `board_svg` except ``last``."""
    frames = frames_of(record)
    options = {**WIDE, "names": names_of(record), **options}
    return [board_svg(frame.state, last=frame.last, **options) for frame in frames]


def _check_seconds(seconds: float, most: int = 3600) -> None:
    if not 0.02 <= seconds <= most:
        raise ValueError(f"seconds_per_move must be from 0.02 to {most}, got {seconds!r}")


# ------------------------------------------------------------------------------------ files


def save_animation(
    record: Record,
    path: str | PathLike[str],
    *,
    seconds_per_move: float = SECONDS_PER_MOVE,
    **options: Any,
) -> None:
    """Write a recorded game as an animation, a frame for each decision.

    Args:
        record: a game record.
        path: a file name with the suffix ``.svg``, ``.gif`` (extra ``render``), or ``.html`` for a
            page with buttons to step through the game.
        seconds_per_move: duration of a frame; the end is shown four times as long.
        options: those of `board_svg` except ``last``; wide and 800 pixels across by default, with
            the record's ``names``, or else its ``agents``, as names.

    Raises:
        RecordError: see `frames_of`.
        ValueError: for an impossible option, or another suffix.
        ImportError: without the extra ``render``, naming it.
        OSError: when the file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _MAKERS:
        raise ValueError(
            f"an animation's name ends in one of {', '.join(_MAKERS)}, got {str(path)!r}"
        )
    check_writable(path)
    made = _MAKERS[suffix](record, seconds_per_move=seconds_per_move, **options)
    write_file(path, made if isinstance(made, bytes) else made.encode())


def animation_gif(
    record: Record, *, seconds_per_move: float = SECONDS_PER_MOVE, **options: Any
) -> bytes:
    """Return `animation_svg` as a GIF with one palette, the end's; needs extra ``render``."""
    _check_seconds(seconds_per_move, _GIF_MOST)
    boards, theme = _boards(record, options), options.get("theme", "auto")
    palette = svg_picture(boards[-1], theme).quantize(255)
    plain = extra("PIL.Image").Dither.NONE
    pictures = (
        svg_picture(board, theme).quantize(palette=palette, dither=plain) for board in boards
    )
    milliseconds = [round(1000 * seconds_per_move)] * len(boards)
    milliseconds[-1] = round(1000 * seconds_per_move * _LAST_FRAME)
    file = io.BytesIO()
    next(pictures).save(
        file, "GIF", save_all=True, append_images=pictures, duration=milliseconds, loop=0
    )
    return file.getvalue()


# ------------------------------------------------------------------------------------ SVG


def animation_svg(
    record: Record, *, seconds_per_move: float = SECONDS_PER_MOVE, **options: Any
) -> str:
    """Return a recorded game as one standalone SVG that plays in a loop, without scripts.

    Args:
        record: a game record.
        seconds_per_move: duration of a frame; the end is shown four times as long.
        options: see `save_animation`.

    Raises:
        RecordError: see `frames_of`.
        ValueError: for an impossible option.
    """
    _check_seconds(seconds_per_move)
    boards = _boards(record, options)
    shown = defaultdict[tuple[_Place, str], int](int)
    for number, board in enumerate(boards):
        root = ElementTree.fromstring(board)
        for leaf in _leaves(root):
            shown[leaf] |= 1 << number
    ordered = sorted(shown, key=itemgetter(0))
    leaves = [_Leaf(markup, shown[place, markup]) for place, markup in ordered]
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


class _Leaf(NamedTuple):
    """An element, and the frames that show it: bit ``k`` is that of frame ``k``."""

    markup: str
    shown: int


def _leaves(
    element: ElementTree.Element, at: _Place = (), head: str = "", tail: str = ""
) -> Iterator[tuple[_Place, str]]:
    """Yield the drawn elements and their places, each within the groups that give it its style.

    Regions merge, so each counts as its first territory.
    """
    for number, child in enumerate(element):
        name = child.tag.removeprefix(_SVG)
        if name in ("title", "desc", "style"):
            continue
        here = (*at, int(child.get("data-territories", str(number)).partition("-")[0]))
        attributes = {
            key: value
            for key, value in child.attrib.items()
            if name != "g" or not key.startswith(_FOR_PAGES)
        }
        tag = name + "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
        if name == "g":
            around = (f"{head}<{tag}>", f"</g>{tail}") if attributes else (head, tail)
            yield from _leaves(child, here, *around)
        elif child.text:
            yield here, f"{head}<{tag}>{escape(child.text)}</{name}>{tail}"
        else:
            yield here, f"{head}<{tag}/>{tail}"


def _timed(leaves: list[_Leaf], frames: int, seconds: float) -> Iterator[str]:
    """Yield leaves as markup, from back to front; those that are shown together share a group."""
    moves, every = frames - 1 + _LAST_FRAME, (1 << frames) - 1
    while leaves:
        shown, passed, at = leaves[0].shown, 0, 0
        body, rest = "", list[_Leaf]()
        for at, leaf in enumerate(leaves, 1):  # noqa: B007
            if leaf.shown == shown:  # and no leaf passed is ever on the screen with it
                body += leaf.markup
            else:
                passed |= leaf.shown
                rest.append(leaf)
                if passed & shown:
                    break
        leaves = rest + leaves[at:]
        if shown == every:
            yield body
            continue
        visible = [bool(shown >> number & 1) for number in range(frames)]
        changes = [0, *(k for k in range(1, frames) if visible[k] != visible[k - 1])]
        times = ";".join(f"{change / moves:.6g}" for change in changes)
        values = ";".join("inline" if visible[change] else "none" for change in changes)
        at_first = "" if visible[0] else ' display="none"'
        yield (
            f'<g{at_first}><animate attributeName="display" calcMode="discrete" '
            f'dur="{moves * seconds:g}s" repeatCount="indefinite" keyTimes="{times}" '
            f'values="{values}"/>{body}</g>'
        )


# ------------------------------------------------------------------------------------ HTML


def animation_page(
    record: Record, *, seconds_per_move: float = SECONDS_PER_MOVE, **options: Any
) -> str:
    """Return `animation_svg` in an HTML page with buttons and a slider to step through the game.

    The page is one file without links. Where scripts may not run, the animation plays by itself.
    """
    film = animation_svg(record, seconds_per_move=seconds_per_move, **options)
    theme = options.get("theme", "auto")
    return _PAGE.format(
        film=film,
        last=sum("action" in event for event in record["events"]),
        seconds=seconds_per_move,
        schemes="light dark" if theme == "auto" else theme,
        light=BACKGROUNDS[theme],
        dark=BACKGROUNDS["dark" if theme == "auto" else theme],
    )


CONTROLS_HEIGHT: Final = 46
"""Height of the controls below the animation on its page, in pixels."""

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Carolus Magnus</title>
<style>
:root {{ color-scheme: {schemes}; background: {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ background: {dark} }} }}
body {{ margin: 0 auto; max-width: max-content; font: 14px "DejaVu Sans", Verdana, sans-serif }}
svg {{ display: block; max-width: 100%; height: auto; max-height: calc(100vh - 46px) }}
form {{ display: flex; gap: .5em; align-items: center; height: 46px; padding: 0 10px }}
form[hidden] {{ display: none }}
input {{ flex: 1; min-width: 4em }}
button {{ font: inherit; min-width: 2.6em; min-height: 2em }}
button[data-by="0"] {{ min-width: 5em }}
output {{ min-width: 6.5em; text-align: right }}
</style>
{film}
<form hidden>
<button type="button" data-by="-1" title="one decision back">&#9664;</button>
<button type="button" data-by="0" >pause</button>
<button type="button" data-by="1" title="next decision">&#9654;</button>
<input type="range" min="0" max="{last}" value="0" aria-label="decision">
<output></output>
</form>
<script>
const film = document.querySelector("svg"), form = document.querySelector("form");
const slider = form.querySelector("input"), play = form.querySelector("[data-by='0']");
const seconds = {seconds}, last = {last};
function show(k) {{
  slider.value = k;
  film.setCurrentTime((+slider.value + 0.5) * seconds);
  label();
}}
function label() {{
  form.querySelector("output").value = `${{slider.value}} of ${{last}}`;
  play.textContent = film.animationsPaused() ? "play" : "pause";
}}
form.hidden = false;
film.pauseAnimations();
show(0);
slider.oninput = () => {{ film.pauseAnimations(); show(slider.value); }};
form.onclick = (event) => {{
  const by = event.target.dataset.by;
  if (by === undefined) return;
  if (by !== "0") {{ film.pauseAnimations(); show(+slider.value + +by); return; }}
  if (!film.animationsPaused()) film.pauseAnimations();
  else {{ if (+slider.value === last) show(0); film.unpauseAnimations(); }}
  label();
}};
setInterval(() => {{
  if (film.animationsPaused()) return;
  slider.value = Math.floor(film.getCurrentTime() / seconds);
  if (+slider.value === last) film.pauseAnimations();
  label();
}}, 50);
</script>
</html>
"""

_MAKERS: Final[dict[str, Callable[..., str | bytes]]] = {
    ".svg": animation_svg,
    ".gif": animation_gif,
    ".html": animation_page,
}
"""The function that makes the file, by suffix."""
