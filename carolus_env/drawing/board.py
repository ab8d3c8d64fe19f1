"""The board as SVG, drawn from a state alone.

The same drawing serves files, notebooks, pixels and the page that people play on. Its parts are
groups with stable names, which a page can use:

| element | meaning |
| --- | --- |
| ``svg.carolus`` | the whole drawing, with ``<title>`` and ``<desc>`` |
| ``g.region[data-region=K]`` | region K, counted clockwise from the Emperor; ``data-territories`` |
| ``g.emperor`` | the Emperor |
| ``g.walk`` | the way that he went, where it is marked |
| ``g.step[data-region=K]`` | the mark before a region that he can reach |
| ``g.supply g.token[data-clan=C]`` | a clan in the supply |
| ``g.seat[data-seat=S]`` | the panel of a player, which holds the following |
| ``g.castles`` | the castles of the player's team |
| ``g.disc[data-disc=D]`` | a disc (with ``data-seat`` too) |
| ``g.reserve g.token[data-clan=C]`` | paladins of a clan in reserve |
| ``g.court[data-seat=S]`` | the court, with a ``g.row[data-clan=C]`` for each clan |

With ``legal=True`` everything that can be chosen also has the class ``open``, and ``data-action``
where one click makes one decision: discs, clans of the supply for a crown, and regions for the
Emperor (the fewest steps; ``data-steps`` lists all numbers of steps that lead there).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final, Literal, NamedTuple

import numpy as np

from carolus_env.drawing.alt_text import description, title
from carolus_env.drawing.circle import circle
from carolus_env.drawing.scene import Scene
from carolus_env.drawing.seats import PANEL_HEIGHT, PANEL_WIDTH, panel
from carolus_env.drawing.style import THEMES, style_sheet

LAYOUTS: Final = ("tall", "wide", "narrow")

_SIDE: Final = 1000.0  # side of the circle's square
_MARGIN, _GAP = 14.0, 18.0
CORNER: Final = 22.0
"""Radius of the whole drawing's corners."""


def board_svg(
    state: np.void,
    *,
    theme: Literal["auto", "light", "dark"] = "auto",
    layout: Literal["tall", "wide", "narrow"] = "tall",
    names: Sequence[str] | None = None,
    legal: bool = False,
    last: tuple[np.void, int] | None = None,
    turn: Sequence[tuple[np.void, int]] | None = None,
    values: Sequence[float] | None = None,
    width: int | None = None,
) -> str:
    """Draw one game (``states[i]``) as a standalone SVG element, without scripts or links.

    Args:
        state: the game.
        theme: colours; ``"auto"`` follows the reader's preference and is light without one.
        layout: ``"tall"``: the players' panels below the circle, two in a row; ``"wide"``: to its
            right; ``"narrow"``: below it and as wide, for a phone.
        names: the seats' names; by default ``player 0`` and so on.
        legal: highlight the legal choices of the player to move.
        last: the state before the last decision, and its action number; described in words.
        turn: the decisions that are marked, the oldest first, each as ``last``; None: ``last``.
        values: each team's win probability, 0 to 1, to draw as a bar.
        width: the element's width in pixels; None leaves it to the page.

    Raises:
        ValueError: for an impossible option, naming it, its value and what was expected.
    """
    scene = Scene(state, names, legal=legal, last=last, turn=turn, values=values)
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {THEMES}, got {theme!r}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {LAYOUTS}, got {layout!r}")
    if width is not None and not 1 <= width <= 20_000:
        raise ValueError(f"width must be from 1 to 20000 pixels, got {width!r}")
    places = _PLACES[layout](scene)
    across, down = (side + 2 * _MARGIN for side in places.size)
    size = ""
    if width is not None:
        size = f' width="{width}" height="{max(1, round(width * down / across))}"'
    box = f"{-_MARGIN:g} {-_MARGIN:g} {across:g} {down:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="carolus carolus-{theme}" '
        f'role="img"{size} viewBox="{box}">',
        f"<title>{escape(f'Carolus Magnus, {title(scene)}')}</title>"
        f"<desc>{escape('. '.join(description(scene)))}.</desc>",
        f"<style>{style_sheet(theme)}</style>",
        f'<rect class="f-back" x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="{across:g}" '
        f'height="{down:g}" rx="{CORNER:g}"/>',
        *_group("", 0.0, 0.0, places.circle, circle(scene)),
    ]
    for seat, place in enumerate(places.panels):
        parts += _group(f' class="seat" data-seat="{seat}"', *place, panel(scene, seat))
    return "".join(parts) + "</svg>"


def _group(mark: str, x: float, y: float, scale: float, elements: Iterable[str]) -> Iterator[str]:
    """Put elements into a group, which ``mark`` makes known to a page."""
    x, y, scale = round(x, 1), round(y, 1), round(scale, 4)
    moves = []
    if x or y:
        moves.append(f"translate({x:g} {y:g})")
    if scale != 1:
        moves.append(f"scale({scale:g})")
    transform = f' transform="{" ".join(moves)}"' if moves else ""
    yield f"<g{mark}{transform}>"
    yield from elements
    yield "</g>"


def board_words(state: np.void, names: Sequence[str] | None = None) -> list[str]:
    """Describe one game for screen readers: a sentence for each region, then for each seat.

    Raises:
        ValueError: for a wrong number of names.
    """
    return description(Scene(state, names))


class _Layout(NamedTuple):
    """Positions of the parts.

    Attributes:
        size: width and height without margins.
        circle: scale of the circle, which is at the top left.
        panels: x, y and scale of each seat's panel.
    """

    size: tuple[float, float]
    circle: float
    panels: list[tuple[float, float, float]]


def _tall(scene: Scene) -> _Layout:
    """Return the layout with panels in two columns below the circle."""
    players = scene.rules.players
    panels = []
    for seat in range(players):
        alone = seat == players - 1 and players % 2 == 1
        x = (_SIDE - PANEL_WIDTH) / 2 if alone else seat % 2 * (PANEL_WIDTH + _GAP)
        panels.append((x, _SIDE + _GAP + seat // 2 * (PANEL_HEIGHT + _GAP), 1.0))
    rows = (players + 1) // 2
    return _Layout((_SIDE, _SIDE + rows * (PANEL_HEIGHT + _GAP)), 1.0, panels)


def _narrow(scene: Scene) -> _Layout:
    """Return the layout with panels below the circle, each as wide as it."""
    scale = _SIDE / PANEL_WIDTH
    step = PANEL_HEIGHT * scale + _GAP
    panels = [(0.0, _SIDE + _GAP + seat * step, scale) for seat in range(scene.rules.players)]
    return _Layout((_SIDE, _SIDE + scene.rules.players * step), 1.0, panels)


def _wide(scene: Scene) -> _Layout:
    """Return the layout with panels in one column to the right of the circle, equally high."""
    players = scene.rules.players
    total = players * PANEL_HEIGHT + (players - 1) * _GAP
    scale = min(1.25, _SIDE / total) if total < _SIDE else 1.0
    height = max(_SIDE, total)
    top = (height - total * scale) / 2
    step = (PANEL_HEIGHT + _GAP) * scale
    panels = [(height + _GAP, top + seat * step, scale) for seat in range(players)]
    return _Layout((height + _GAP + PANEL_WIDTH * scale, height), height / _SIDE, panels)


_PLACES: Final = {"tall": _tall, "wide": _wide, "narrow": _narrow}
