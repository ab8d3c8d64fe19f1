"""A game record as an animation: an SVG that plays by itself, or a GIF.

The SVG holds no script (it uses SMIL). An element that several frames share is stored once, with
the times at which it is shown, so a whole game is little more than ten times as large as a board.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pixels import WIDE, extra, svg_picture
from carolus_env.records import Record, names_of, positions
from carolus_env.system.files import check_writable, write_file
from carolus_env.system.options import number

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

    Raises:
        RecordError: when it is not a record, or its game breaks the rules.
        ImportError: without the extra ``render``, naming it.
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
