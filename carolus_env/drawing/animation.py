"""A game record as an animation: an SVG that plays by itself, an HTML page, or a GIF.

The SVG holds no script (it uses SMIL). An element that several frames share is stored once, with
the times at which it is shown, so a whole game is little more than ten times as large as a board.
"""

from __future__ import annotations

import difflib
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

import numpy as np

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pieces import BACKGROUNDS
from carolus_env.drawing.pixels import WIDE, board_picture, extra
from carolus_env.records import Record, names_of, positions
from carolus_env.system.files import check_writable, write_file

SECONDS_PER_MOVE: Final = 1.0
_LAST_FRAME: Final = 4.0  # duration of the end, in moves

_GIF_COLOURS: Final = 255  # one of 256 is left for pixels that stay the same
_GIF_MOST: Final = int(655.35 / _LAST_FRAME)  # seconds; the format allows 655.35 for a frame
_SAMPLES: Final = 6  # frames from which the colours are chosen
_PLAIN_COLOURS: Final = 64  # kept exactly; the others are averages, for smooth edges

Progress = Callable[[int, int], None]
"""A function of the number of frames done and of all frames."""


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


# ------------------------------------------------------------------------------------ files


def save_animation(
    record: Record,
    path: str | PathLike[str],
    *,
    seconds_per_move: float = SECONDS_PER_MOVE,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Write a recorded game as an animation, a frame for each decision.

    Args:
        record: a game record.
        path: a file name with the suffix ``.svg``, ``.gif`` (extra ``render``), or ``.html`` for a
            page with buttons to step through the game.
        seconds_per_move: duration of a frame; the end is shown four times as long.
        progress: a function to call after each frame.
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
    made = _MAKERS[suffix](record, seconds_per_move=seconds_per_move, progress=progress, **options)
    write_file(path, made if isinstance(made, bytes) else made.encode())


def animation_gif(
    record: Record,
    *,
    seconds_per_move: float = SECONDS_PER_MOVE,
    progress: Progress | None = None,
    **options: Any,
) -> bytes:
    """Return `animation_svg` as a GIF with one palette of 255 colours; needs extra ``render``."""
    _check_seconds(seconds_per_move)
    if seconds_per_move > _GIF_MOST:
        raise ValueError(
            f"seconds_per_move of a GIF must be at most {_GIF_MOST}, got {seconds_per_move!r}"
        )
    frames = frames_of(record)
    image = extra("PIL.Image")

    options = {**WIDE, "names": names_of(record), **options}

    def picture(frame: Frame) -> Any:
        return board_picture(frame.state, last=frame.last, **options)

    spread = np.linspace(0, len(frames) - 1, _SAMPLES).astype(int)
    colours = _gif_colours([picture(frames[i]) for i in np.unique(spread)])

    def pictures() -> Iterator[Any]:
        for number, frame in enumerate(frames, 1):
            yield picture(frame).quantize(palette=colours, dither=image.Dither.NONE)
            if progress is not None:
                progress(number, len(frames))

    file, each = io.BytesIO(), pictures()
    milliseconds = [round(1000 * seconds_per_move)] * len(frames)
    milliseconds[-1] = round(1000 * seconds_per_move * _LAST_FRAME)
    next(each).save(
        file,
        "GIF",
        save_all=True,
        append_images=each,
        duration=milliseconds,
        loop=0,
        optimize=True,
    )
    return file.getvalue()


def _gif_colours(samples: Sequence[Any]) -> Any:
    """Return a picture of PIL with the palette for all frames, chosen by some of them."""
    image, (width, height) = extra("PIL.Image"), samples[0].size
    sheet = image.new("RGB", (width, height * len(samples)))
    for i, sample in enumerate(samples):
        sheet.paste(sample, (0, i * height))
    result = sorted(sheet.getcolors(sheet.width * sheet.height), reverse=True)
    plain = [part for _, colour in result[:_PLAIN_COLOURS] for part in colour]
    small = sheet.resize((-(-sheet.width // 2), -(-sheet.height // 2)), image.Resampling.NEAREST)
    mixed = small.quantize(_GIF_COLOURS - _PLAIN_COLOURS).getpalette()
    colours = image.new("P", (1, 1))
    colours.putpalette([*plain, *mixed][: 3 * _GIF_COLOURS])
    return colours


# ------------------------------------------------------------------------------------ SVG


def animation_svg(
    record: Record,
    *,
    seconds_per_move: float = SECONDS_PER_MOVE,
    progress: Progress | None = None,
    **options: Any,
) -> str:
    """Return a recorded game as one standalone SVG that plays in a loop, without scripts.

    Args:
        record: a game record.
        seconds_per_move: duration of a frame; the end is shown four times as long.
        progress: a function to call after each frame.
        options: see `save_animation`.

    Raises:
        RecordError: see `frames_of`.
        ValueError: for an impossible option.
    """
    frames = frames_of(record)
    return _film(frames, seconds_per_move, progress, {"names": names_of(record), **options})


def animation_page(
    record: Record,
    *,
    seconds_per_move: float = SECONDS_PER_MOVE,
    progress: Progress | None = None,
    **options: Any,
) -> str:
    """Return `animation_svg` in an HTML page with buttons and a slider to step through the game.

    The page is one file without links. Where scripts may not run, the animation plays by itself.
    """
    frames = frames_of(record)
    film = _film(frames, seconds_per_move, progress, {"names": names_of(record), **options})
    theme = options.get("theme", "auto")
    return _PAGE.format(
        film=film,
        last=len(frames) - 1,
        seconds=seconds_per_move,
        schemes="light dark" if theme == "auto" else theme,
        light=BACKGROUNDS[theme],
        dark=BACKGROUNDS["dark" if theme == "auto" else theme],
    )


def _film(
    frames: Sequence[Frame],
    seconds_per_move: float,
    progress: Progress | None,
    options: dict[str, Any],
) -> str:
    _check_seconds(seconds_per_move)
    options = {**WIDE, **options}
    pieces: list[_Piece] = []
    previous: list[_Piece] = []
    for number, frame in enumerate(frames):
        root = ElementTree.fromstring(board_svg(frame.state, last=frame.last, **options))
        previous = _merge(pieces, previous, list(_leaves(root)), number)
        if progress is not None:
            progress(number + 1, len(frames))
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in root.attrib.items())
    style = root.findtext(f"{_SVG}style") or ""
    title = f"Carolus Magnus, a game of {len(frames) - 1} decisions"
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg"{attributes}><title>{title}</title>',
            f"<style>{style}</style>",
            *_timed(pieces, len(frames), seconds_per_move),
            "</svg>",
        ]
    )


def _check_seconds(seconds: float) -> None:
    if not 0.02 <= seconds <= 3600:
        raise ValueError(f"seconds_per_move must be from 0.02 to 3600, got {seconds!r}")


class _Piece:
    """An element and the frames that show it."""

    __slots__ = ("frames", "index", "markup")

    def __init__(self, markup: str) -> None:
        self.markup = markup
        self.frames: list[int] = []
        self.index = 0  # among all pieces, from back to front


def _merge(
    pieces: list[_Piece], previous: list[_Piece], leaves: list[str], number: int
) -> list[_Piece]:
    """Find the leaves of frame ``number`` among the pieces, in order, and add the missing ones.

    Returns:
        The pieces of this frame.
    """
    before = [piece.markup for piece in previous]
    match = difflib.SequenceMatcher(None, before, leaves, autojunk=False)
    result: list[_Piece | None] = [None] * len(leaves)
    for a, b, size in match.get_matching_blocks():
        result[b : b + size] = previous[a : a + size]
    ordered: list[_Piece] = []
    done = 0  # pieces before this index cannot match later leaves
    added: list[tuple[int, _Piece]] = []
    for i, piece in enumerate(result):
        if piece is None:  # look in earlier frames, between its neighbours
            following = next((p.index for p in result[i:] if p is not None), len(pieces))
            between = pieces[done:following]
            piece = next((other for other in between if other.markup == leaves[i]), None)
        if piece is None:
            piece = _Piece(leaves[i])
            added.append((done, piece))
        else:
            done = piece.index + 1
        piece.frames.append(number)
        ordered.append(piece)
    for index, piece in reversed(added):
        pieces.insert(index, piece)
    for index, piece in enumerate(pieces):
        piece.index = index
    return ordered


_SVG: Final = "{http://www.w3.org/2000/svg}"
_FOR_PAGES: Final = ("class", "data-")  # attributes of groups that do not change their style


def _leaves(element: ElementTree.Element, head: str = "", tail: str = "") -> Iterator[str]:
    """Yield the drawn elements, each within the groups that give it its style."""
    for child in element:
        name = child.tag.removeprefix(_SVG)
        if name in ("title", "desc", "style"):
            continue
        attributes = {
            key: value
            for key, value in child.attrib.items()
            if name != "g" or not key.startswith(_FOR_PAGES)
        }
        tag = name + "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
        if name == "g":
            yield from _leaves(
                child, *((f"{head}<{tag}>", f"</g>{tail}") if attributes else (head, tail))
            )
        elif child.text:
            yield f"{head}<{tag}>{escape(child.text)}</{name}>{tail}"
        else:
            yield f"{head}<{tag}/>{tail}"


def _timed(pieces: Sequence[_Piece], frames: int, seconds: float) -> Iterator[str]:
    """Yield the pieces as markup; neighbours that are shown at the same times share a group."""
    moves = frames - 1 + _LAST_FRAME
    for shown, run in itertools.groupby(pieces, key=lambda piece: piece.frames):
        body = "".join(piece.markup for piece in run)
        if len(shown) == frames:
            yield body
            continue
        visible = np.isin(np.arange(frames), shown)
        changes = [0, *(np.flatnonzero(visible[1:] != visible[:-1]) + 1).tolist()]
        times = ";".join(f"{change / moves:.6g}" for change in changes)
        values = ";".join("inline" if visible[change] else "none" for change in changes)
        at_first = "" if visible[0] else ' display="none"'
        yield (
            f'<g{at_first}><animate attributeName="display" calcMode="discrete" '
            f'dur="{moves * seconds:g}s" repeatCount="indefinite" keyTimes="{times}" '
            f'values="{values}"/>{body}</g>'
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
