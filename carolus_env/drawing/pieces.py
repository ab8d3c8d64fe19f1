"""SVG elements that all parts of a drawing are made of: pieces, marks, text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from html import escape

from carolus_env.drawing.shapes import (
    CLAN_STYLES,
    GOLD,
    TEAM_STYLES,
    TEXT_DROP,
    PieceStyle,
    castle_shape,
    clan_shape,
)


def token(
    x: float, y: float, radius: float, clan: int, count: int, *, always: bool = False
) -> Iterator[str]:
    """Yield a clan's shape with the number of paladins; 1 is written only with ``always``."""
    look = CLAN_STYLES[clan]
    yield piece(x, y, clan_shape(clan, radius), look)
    if count != 1 or always:
        size = radius * (1.12 if count < 10 else 0.95)
        yield text(x, y + radius * TEXT_DROP[clan], count, round(size, 1), "bold", look.text)


def control_marker(x: float, y: float, clan: int, controlled: bool) -> str:
    """Return the clan's marker in a court, an outline unless the player controls the clan."""
    look, shape = CLAN_STYLES[clan], clan_shape(clan, 10.0)
    at = f'transform="translate({x:g} {y:.1f})"'
    if not controlled:
        return "".join(
            f'<path {at} fill="none" stroke="{colour}" stroke-width="{width}" d="{shape}"/>'
            for colour, width in ((look.line, 5.5), (look.fill, 3))
        )
    return (
        f'<circle class="f-ink" cx="{x:g}" cy="{y:.1f}" r="16.5"/>'
        f'<path {at} class="s-card" fill="{look.fill}" stroke-width="1.5" d="{shape}"/>'
    )


def castle(x: float, y: float, size: float, team: int) -> str:
    """Return a castle of ``team``, centred on ``x``, ``y``, as an SVG element."""
    return piece(x, y, castle_shape(size), TEAM_STYLES[team])


def disc(
    x: float, y: float, radius: float, label: object, look: PieceStyle, opacity: float
) -> Iterator[str]:
    """Yield a disc with ``label`` on it, as SVG."""
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    yield (
        f'<g{faint}><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{look.fill}" '
        f'stroke="{look.line}" stroke-width="2"/>'
        f"{text(x, y, label, 20, 'bold', look.text)}</g>"
    )


def piece(x: float, y: float, shape: str, look: PieceStyle) -> str:
    """Return a shape that is given about the origin, moved to ``x``, ``y``."""
    return (
        f'<path transform="translate({x:.1f} {y:.1f})" fill="{look.fill}" stroke="{look.line}" '
        f'stroke-width="2" stroke-linejoin="round" d="{shape}"/>'
    )


def ring(x: float, y: float, radius: float, kind: str) -> str:
    """Return a circle without a filling, as an SVG element; ``kind`` is its class."""
    return f'<circle class="line {kind}" cx="{x:.1f}" cy="{y}" r="{radius}" stroke-width="5"/>'


def line(path: str, kind: str, width: float, dashes: str = "") -> str:
    """Return the lines of an SVG path, with round ends; ``kind`` is their class."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path class="line {kind}" stroke-width="{width}" stroke-linecap="round"{dashed} '
        f'd="{path}"/>'
    )


def box(x: float, y: float, width: float, height: float, look: str) -> str:
    """Return an SVG rectangle by its upper left corner; ``look`` holds its attributes."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def outline(path: str, kind: str, width: float, dashes: str = "") -> str:
    """Return the border that an SVG path draws, on a wider one that stands out on any ground.

    ``kind`` is its class.
    """
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ground = f'stroke="{GOLD.line}"' if kind == "s-gold" else 'class="s-card"'
    return (
        f'<path {ground} fill="none" stroke-width="{width + 3:g}" stroke-linejoin="round" '
        f'd="{path}"/>'
        f'<path class="line {kind}" stroke-width="{width:g}" stroke-linejoin="round"{dashed} '
        f'd="{path}"/>'
    )


def target(x: float, y: float, width: float, height: float) -> str:
    """Return an invisible area to click around ``x``, ``y``, ``width`` to each side."""
    look = 'class="room" fill="none" pointer-events="all"'
    return box(x - width, y - height, 2 * width, 2 * height, look)


def text(
    x: float, y: float, content: object, size: float, kind: str, fill: str | None = None
) -> str:
    """Return a text centred vertically on ``y``; digits and capitals are 0.73 of the size high."""
    colour = f' fill="{fill}"' if fill else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:g}"{colour}>'
        f"{escape(str(content))}</text>"
    )


def added(x: float, y: float, count: int) -> str:
    """Return a mark ``+2`` beside a piece: so many came with the decisions that are marked."""
    label = f"+{count}"
    wide = 12 + 9 * len(label)
    return box(x - wide / 2, y - 11, wide, 22, 'class="f-last" rx="11"') + text(
        x, y, label, 16, "f-card bold"
    )


def fitting(content: str, width: float, *sizes: float) -> tuple[str, float]:
    """Return a text in the first of ``sizes`` in which it is at most ``width`` wide.

    Where it fits in none, it is cut to fit the last; an ellipsis shows it.
    """
    ems = sum(map(_width, content))
    for size in sizes:
        if ems * size <= width:
            return content, size
    room, shortened = width / sizes[-1] - _width("…"), ""
    for letter in content:
        room -= _width(letter)
        if room < 0:
            break
        shortened += letter
    return shortened.rstrip("\u200d ") + "…", sizes[-1]  # no trailing joiner


@cache
def _width(letter: str) -> float:
    """Return an upper estimate of a letter's width in bold type, in units of its size."""
    kind = unicodedata.category(letter)
    if kind in ("Mn", "Me", "Cf"):  # drawn over the letter before, or not at all
        return 0.0
    if kind == "So" or unicodedata.east_asian_width(letter) in "WF":  # emoji, and wide scripts
        return 1.4
    if letter in " .,:;'!|()[]-ijlftrI":
        return 0.46
    if letter in "mwMW@%…":
        return 1.1
    return 0.72 if letter.isascii() and not letter.isupper() else 0.86
