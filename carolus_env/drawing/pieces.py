"""The parts of a drawing: colours, shapes, and the SVG elements made of them.

A unit is a thousandth of the circle's width. Each clan has a shape besides its colour, and teams
differ in lightness, so a picture can be read in black and white.
"""

from __future__ import annotations

import math
import unicodedata
from functools import cache
from html import escape
from itertools import accumulate
from typing import Final, NamedTuple

from carolus_env.engine.rules import TERRITORIES

# ------------------------------------------------------------------------------------ places

CENTRE: Final = 500.0
INNER, MIDDLE, OUTER = 304.0, 372.0, 436.0  # radii of the circle of territories
CASTLE_RADIUS: Final = 466.0
EMPEROR_RADIUS: Final = 246.0
NUMBER_RADIUS: Final = 314.0
_STEP: Final = math.tau / TERRITORIES
_GAP: Final = 4.5  # half of the space between two territories
_KINKS: Final = (0.0, 13.0, -13.0)  # bends of successive borders: territories have three shapes
_BULGE: Final = 9.0  # bulge of the outer edge

Point = tuple[float, float]


def angle_of(territory: float) -> float:
    """Return a territory's middle angle in radians, clockwise from the right; 0 is at the top."""
    return territory * _STEP - math.pi / 2


def polar(radius: float, angle: float) -> Point:
    """Return the point at ``radius`` and ``angle`` (see `angle_of`) from the centre."""
    return CENTRE + radius * math.cos(angle), CENTRE + radius * math.sin(angle)


def _border(number: int, aside: float) -> list[Point]:
    """Return the border before territory ``number``, inside out, moved ``aside`` clockwise."""
    angle, kink = angle_of(number - 0.5), _KINKS[number % len(_KINKS)]
    places = ((INNER, 0.0), (MIDDLE, kink), (OUTER, 0.0))
    return [polar(radius, angle + (bend + aside) / radius) for radius, bend in places]


@cache
def region_outline(first: int, size: int) -> str:
    """Return the outline of the region of ``size`` territories from ``first`` on."""
    points = _border(first, _GAP)
    inside: list[Point] = []
    for territory in range(first, first + size):
        if territory > first:
            seam = _border(territory, 0.0)
            points.append(seam[2])
            inside.append(seam[0])
        points.append(polar(OUTER + _BULGE, angle_of(territory)))
    points += reversed(_border(first + size, -_GAP))
    points += reversed(inside)
    return rounded(points, 11.0)


@cache
def region_seams(first: int, size: int) -> str:
    """Return the seams between the territories of a region; empty for a single territory."""
    lines = (_border(territory, 0.0) for territory in range(first + 1, first + size))
    return "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line) for line in lines)


def rounded(points: list[Point], radius: float) -> str:
    """Return a closed polygon with rounded corners, less so between short sides."""
    parts: list[str] = []
    for i, (x, y) in enumerate(points):
        cut: list[Point] = []
        for px, py in (points[i - 1], points[(i + 1) % len(points)]):
            length = math.hypot(px - x, py - y)
            share = min(radius, length / 2) / length
            cut.append((x + (px - x) * share, y + (py - y) * share))
        (ax, ay), (bx, by) = cut
        parts.append(f"{'L' if i else 'M'}{ax:.1f} {ay:.1f}Q{x:.1f} {y:.1f} {bx:.1f} {by:.1f}")
    return "".join(parts) + "Z"


# ------------------------------------------------------------------------------------ pieces


class PieceStyle(NamedTuple):
    """Colours of a piece."""

    fill: str
    line: str
    text: str


_INK, _PAPER = "#1f1b24", "#fffaf0"

CLAN_STYLES: Final = tuple(
    PieceStyle(fill, text, text)
    for fill, text in zip(
        ("#c4252f", "#f4a3c4", "#2457b0", "#f6c92f", "#23794b"),
        (_PAPER, _INK, _PAPER, _INK, _PAPER),
        strict=True,
    )
)
"""Styles by clan: red, pink, blue, yellow, green."""

TEAM_STYLES: Final = (
    PieceStyle("#2c2a33", "#d9d3c4", _PAPER),
    PieceStyle("#fffdf5", "#3b3742", _INK),
    PieceStyle("#8d8a95", "#332f3a", _INK),
)
"""Styles by team: black, white and gray, as the castles of the board game."""

GOLD: Final = PieceStyle("#f2b61c", "#4a3305", "#2e2003")

_CORNERS: Final[tuple[tuple[Point, ...], ...]] = (
    ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),  # square
    (),  # circle
    ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),  # diamond
    ((0, -1.2), (1.2, 0.92), (-1.2, 0.92)),  # triangle
    (
        (-0.44, -1.05), (0.44, -1.05), (0.44, -0.44), (1.05, -0.44), (1.05, 0.44), (0.44, 0.44),
        (0.44, 1.05), (-0.44, 1.05), (-0.44, 0.44), (-1.05, 0.44), (-1.05, -0.44), (-0.44, -0.44),
    ),  # cross
)  # fmt: skip


@cache
def clan_shape(clan: int, radius: float) -> str:
    """Return the outline of a clan's paladin about the origin."""
    if not _CORNERS[clan]:
        arc = f"A{radius} {radius} 0 0 1"
        return f"M{-radius} 0{arc} {radius} 0{arc} {-radius} 0Z"
    return rounded([(x * radius, y * radius) for x, y in _CORNERS[clan]], radius * 0.22)


_TEXT_DROP: Final = (0.0, 0.0, 0.0, 0.2, 0.0)  # of a clan's number, in radii

CASTLE: Final[tuple[Point, ...]] = (  # a tower with four merlons
    (-1, -0.95), (-0.62, -0.95), (-0.62, -0.6), (-0.24, -0.6), (-0.24, -0.95), (0.24, -0.95),
    (0.24, -0.6), (0.62, -0.6), (0.62, -0.95), (1, -0.95), (1, -0.2), (0.78, 0), (0.78, 0.9),
    (0.28, 0.9), (0.28, 0.42), (-0.28, 0.42), (-0.28, 0.9), (-0.78, 0.9), (-0.78, 0), (-1, -0.2),
)  # fmt: skip
CROWN: Final[tuple[Point, ...]] = (
    (-1, -0.55), (-0.5, 0.05), (0, -0.85), (0.5, 0.05), (1, -0.55), (0.8, 0.75), (-0.8, 0.75),
)  # fmt: skip


@cache
def polygon(corners: tuple[Point, ...], size: float) -> str:
    """Return the outline of `CASTLE` or `CROWN` about the origin."""
    return "M" + "L".join(f"{x * size:.1f} {y * size:.1f}" for x, y in corners) + "Z"


# ------------------------------------------------------------------------------------ themes

THEMES: Final = ("auto", "light", "dark")
FONT: Final = "DejaVu Sans, Verdana, sans-serif"

# background, panels and labels on marks, empty land and its edge, text, faint text, legal choices,
# last decision
# fmt: off
_LIGHT: Final = {
    "back": "#efe6d2", "card": "#f9f3e4", "land": "#d9c9a0", "edge": "#7f6d42",
    "ink": "#2a2530", "soft": "#6d6355", "open": "#00806f", "last": "#7a3fd1",
}
_DARK: Final = {
    "back": "#191b21", "card": "#262932", "land": "#5d553f", "edge": "#8d8058",
    "ink": "#f1ead9", "soft": "#b5ab98", "open": "#3fe0c5", "last": "#c3a1ff",
}
# fmt: on
BACKGROUNDS: Final = {"auto": _LIGHT["back"], "light": _LIGHT["back"], "dark": _DARK["back"]}
"""Colour behind the drawing in each theme, for picture formats without transparency."""


@cache
def style_sheet(theme: str) -> str:
    """Return the CSS of a theme.

    Classes ``f-NAME`` fill and ``s-NAME`` stroke with a colour of the theme. Each colour rule is
    scoped to the theme's class, so several drawings on one page do not affect each other.
    """

    def rules(scope: str, colours: dict[str, str]) -> str:
        fills = "".join(f"{scope} .f-{n}{{fill:{c}}}" for n, c in colours.items())
        return fills + "".join(f"{scope} .s-{n}{{stroke:{c}}}" for n, c in colours.items())

    base = (
        f".carolus text{{font-family:{FONT};text-anchor:middle}}"
        ".carolus .left{text-anchor:start}.carolus .right{text-anchor:end}"
        ".carolus .bold{font-weight:bold}.carolus .line{fill:none}"
        f".carolus .f-gold{{fill:{GOLD.fill}}}.carolus .s-gold{{stroke:{GOLD.fill}}}"
    )
    if theme != "auto":
        return base + rules(f".carolus-{theme}", _LIGHT if theme == "light" else _DARK)
    dark = rules(".carolus-auto", _DARK)
    return base + rules(".carolus-auto", _LIGHT) + f"@media (prefers-color-scheme:dark){{{dark}}}"


# ------------------------------------------------------------------------------------ elements
# All as SVG, centred on ``x`` and ``y`` where nothing else is said.


def token(x: float, y: float, radius: float, clan: int, count: int, *, always: bool = False) -> str:
    """Return a clan's shape with the number of paladins; 1 is written only with ``always``."""
    look = CLAN_STYLES[clan]
    shape = piece(x, y, clan_shape(clan, radius), look)
    if count == 1 and not always:
        return shape
    size, drop = round(radius * (1.12 if count < 10 else 0.95), 1), radius * _TEXT_DROP[clan]
    return shape + text(x, y + drop, count, size, "bold", look.text)


def row(left: float, y: float, width: float, clan: int, count: int) -> str:
    """Return a clan's paladins in a row, with a gap after each fifth, closer if they are many."""
    pitch, look = min(18.5, width / max(1.0, count + 0.45 * ((count - 1) // 5))), CLAN_STYLES[clan]
    places = (left + pitch * (i + 0.45 * (i // 5)) for i in range(count))
    d = clan_shape(clan, 7.6)
    paladins = (f'<path transform="translate({x:.1f} {y:.1f})" d="{d}"/>' for x in places)
    look_of_all = f'fill="{look.fill}" stroke="{look.line}" stroke-width="1.5"'
    return f"<g {look_of_all}>{''.join(paladins)}</g>"


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


def emperor(x: float, y: float) -> str:
    """Return the Emperor, 80 high before he is scaled."""
    return (
        f'<g class="emperor" transform="translate({x:.1f} {y:.1f}) scale(0.9)">'
        "<title>The Emperor</title>"
        f'<g stroke="{GOLD.line}" stroke-width="2" stroke-linejoin="round">'
        f'<path fill="{GOLD.fill}" d="M-9 -10C-17 -5 -20 10 -25 34Q0 42 25 34C20 10 17 -5 9 -10'
        f'Q0 -4 -9 -10Z"/>'
        '<path fill="#fbe3b5" d="M-9 -17A9.5 9.5 0 1 0 9.5 -17A9.5 9.5 0 1 0 -9.5 -17Z"/>'
        f'<path fill="{GOLD.fill}" d="M-13 -24L-14 -39L-6.5 -32L0 -42L6.5 -32L14 -39L13 -24'
        'Q0 -20 -13 -24Z"/></g></g>'
    )


def castle(x: float, y: float, size: float, team: int) -> str:
    """Return a castle of ``team``."""
    return piece(x, y, polygon(CASTLE, size), TEAM_STYLES[team])


def disc(x: float, y: float, radius: float, label: object, look: PieceStyle, opacity: float) -> str:
    """Return a disc with ``label`` on it."""
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return (
        f'<g{faint}><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{look.fill}" '
        f'stroke="{look.line}" stroke-width="2"/>'
        f"{text(x, y, label, 20, 'bold', look.text)}</g>"
    )


def piece(x: float, y: float, shape: str, look: PieceStyle) -> str:
    """Return a shape that is given about the origin."""
    return (
        f'<path transform="translate({x:.1f} {y:.1f})" fill="{look.fill}" stroke="{look.line}" '
        f'stroke-width="2" stroke-linejoin="round" d="{shape}"/>'
    )


def ring(x: float, y: float, radius: float, kind: str) -> str:
    """Return a circle without a filling; ``kind`` is its class, here and below."""
    return f'<circle class="line {kind}" cx="{x:.1f}" cy="{y}" r="{radius}" stroke-width="5"/>'


def line(path: str, kind: str, width: float, dashes: str = "") -> str:
    """Return the lines of an SVG path, with round ends."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    style = f'class="line {kind}" stroke-width="{width}" stroke-linecap="round"{dashed}'
    return f'<path {style} d="{path}"/>'


def box(x: float, y: float, width: float, height: float, look: str) -> str:
    """Return a rectangle by its upper left corner; ``look`` holds its attributes."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def outline(path: str, kind: str, width: float, dashes: str = "") -> str:
    """Return the border that an SVG path draws, on a wider one that stands out on any ground."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ground = f'stroke="{GOLD.line}"' if kind == "s-gold" else 'class="s-card"'
    join = 'stroke-linejoin="round"'
    return (
        f'<path {ground} fill="none" stroke-width="{width + 3:g}" {join} d="{path}"/>'
        f'<path class="line {kind}" stroke-width="{width:g}" {join}{dashed} d="{path}"/>'
    )


def target(x: float, y: float, width: float, height: float) -> str:
    """Return an invisible area to click, ``width`` to each side."""
    look = 'class="room" fill="none" pointer-events="all"'
    return box(x - width, y - height, 2 * width, 2 * height, look)


def text(
    x: float, y: float, content: object, size: float, kind: str, fill: str | None = None
) -> str:
    """Return a text; digits and capitals are 0.73 of the size high."""
    colour = f' fill="{fill}"' if fill else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:g}"{colour}>'
        f"{escape(str(content))}</text>"
    )


def added(x: float, y: float, count: int) -> str:
    """Return a mark ``+2`` beside a piece: so many came with the decisions that are marked."""
    label = f"+{count}"
    wide = 12 + 9 * len(label)
    below = box(x - wide / 2, y - 11, wide, 22, 'class="f-last" rx="11"')
    return below + text(x, y, label, 16, "f-card bold")


def fitting(content: str, width: float, *sizes: float) -> tuple[str, float]:
    """Return a text in the first of ``sizes`` in which it is at most ``width`` wide.

    Where it fits in none, it is cut to fit the last; an ellipsis shows it.
    """
    for size in sizes:
        if sum(map(_width, content)) * size <= width:
            return content, size
    ends, room = accumulate(map(_width, content)), width / sizes[-1] - _width("…")
    shortened = content[: sum(end <= room for end in ends)]
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
