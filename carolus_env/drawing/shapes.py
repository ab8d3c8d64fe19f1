"""Shapes and colours of the pieces, and outlines of regions, as strings for SVG's ``d``.

A unit is a thousandth of the circle's width. Each clan has a shape besides its colour, and teams
differ in lightness, so a picture can be read in black and white.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

from carolus_env.engine.rules import TERRITORIES

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


class PieceStyle(NamedTuple):
    """Colours of a piece."""

    fill: str
    line: str
    text: str


_INK, _PAPER = "#1f1b24", "#fffaf0"

CLAN_STYLES: Final = (
    PieceStyle("#c4252f", _PAPER, _PAPER),
    PieceStyle("#f4a3c4", _INK, _INK),
    PieceStyle("#2457b0", _PAPER, _PAPER),
    PieceStyle("#f6c92f", _INK, _INK),
    PieceStyle("#23794b", _PAPER, _PAPER),
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
        return (
            f"M{-radius} 0A{radius} {radius} 0 0 1 {radius} 0A{radius} {radius} 0 0 1 {-radius} 0Z"
        )
    return rounded([(x * radius, y * radius) for x, y in _CORNERS[clan]], radius * 0.22)


TEXT_DROP: Final = (0.0, 0.0, 0.0, 0.2, 0.0)
"""Drop of a clan's number below the centre, in radii; a triangle is widest below."""


@cache
def castle_shape(size: float) -> str:
    """Return a tower with four merlons about the origin."""
    profile = (
        (-1, -0.95), (-0.62, -0.95), (-0.62, -0.6), (-0.24, -0.6), (-0.24, -0.95),
        (0.24, -0.95), (0.24, -0.6), (0.62, -0.6), (0.62, -0.95), (1, -0.95), (1, -0.2),
        (0.78, 0), (0.78, 0.9), (0.28, 0.9), (0.28, 0.42), (-0.28, 0.42), (-0.28, 0.9),
        (-0.78, 0.9), (-0.78, 0), (-1, -0.2),
    )  # fmt: skip
    return "M" + "L".join(f"{x * size:.1f} {y * size:.1f}" for x, y in profile) + "Z"


@cache
def crown_shape(size: float) -> str:
    """Return a crown with three points about the origin."""
    profile = (
        (-1, -0.55), (-0.5, 0.05), (0, -0.85), (0.5, 0.05), (1, -0.55), (0.8, 0.75), (-0.8, 0.75),
    )  # fmt: skip
    return "M" + "L".join(f"{x * size:.1f} {y * size:.1f}" for x, y in profile) + "Z"


# The Emperor about the origin, 80 high.
EMPEROR_ROBE: Final = "M-9 -10C-17 -5 -20 10 -25 34Q0 42 25 34C20 10 17 -5 9 -10Q0 -4 -9 -10Z"
EMPEROR_HEAD: Final = "M-9 -17A9.5 9.5 0 1 0 9.5 -17A9.5 9.5 0 1 0 -9.5 -17Z"
EMPEROR_CROWN: Final = "M-13 -24L-14 -39L-6.5 -32L0 -42L6.5 -32L14 -39L13 -24Q0 -20 -13 -24Z"
EMPEROR_SCALE: Final = 0.9
