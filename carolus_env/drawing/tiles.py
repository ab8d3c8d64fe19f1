"""The parts of drawings as small pictures: what was drawn before, in any game, is not drawn again.

Each part of a `Drawing` is drawn alone, at its place among the pixels. The parts laid on the
background in order make the frame. Where two parts share a smooth edge, it differs a little from
the whole drawn at once: it is rounded twice.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from carolus_env.drawing.board import Drawing
from carolus_env.drawing.pieces import Part
from carolus_env.drawing.style import style_sheet

MOST_KEPT: Final = 48 * 2**20
"""Bytes of the tiles that are kept."""
_BYTES_OF_ONE: Final = 1000  # besides its pixels: its key and its objects
_LARGE: Final = 6000  # pixels of a part that has a sheet of its own: more would stay empty


class Tile(NamedTuple):
    """A part as a picture.

    Attributes:
        image: PIL's, RGB; None where nothing is to be seen.
        mask: its opacity, PIL's L. Apart, since pasting would take them apart each time.
        at: its left and top among the pixels.
    """

    image: Any
    mask: Any
    at: tuple[int, int]

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return _BYTES_OF_ONE + (5 * self.image.width * self.image.height if self.image else 0)


class Place(NamedTuple):
    """Where units are among the pixels: ``left + scale * x``, ``top + scale * y``."""

    scale: float
    left: float
    top: float

    def pixels(self, part: Part) -> tuple[int, int, int, int]:
        """Left, top, width and height of a part; some of it may be outside the picture."""
        assert part.box is not None
        left, top, right, bottom = part.box
        x, y = math.floor(self.left + self.scale * left), math.floor(self.top + self.scale * top)
        right = math.ceil(self.left + self.scale * right)
        bottom = math.ceil(self.top + self.scale * bottom)
        return x, y, right - x, bottom - y


class _Missing(NamedTuple):
    """A part to be drawn."""

    part: Part
    place: Place
    pixels: tuple[int, int, int, int]

    @property
    def area(self) -> int:
        """Of its box, in pixels."""
        return self.pixels[2] * self.pixels[3]


_Key = tuple[str, Place, str]


class Tiles:
    """Tiles, of which those used last are kept.

    Args:
        rasterise: makes a picture of PIL, in RGBA, of an SVG.
        most: bytes that are kept.
    """

    def __init__(self, rasterise: Callable[[str], Any], most: int = MOST_KEPT) -> None:
        self._rasterise, self._most = rasterise, most
        self._kept: OrderedDict[_Key, Tile] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, drawing: Drawing) -> list[Tile]:
        """The tiles of a drawing with a size, from back to front."""
        assert drawing.size is not None
        width, height = drawing.size
        left, top, across, down = drawing.box
        scale = min(width / across, height / down)
        left = (width - across * scale) / 2 - left * scale
        top = (height - down * scale) / 2 - top * scale
        keys: list[_Key] = []
        missing: dict[_Key, _Missing] = {}
        with self._lock:
            for group in drawing.groups:
                place = Place(scale * group.scale, left + scale * group.x, top + scale * group.y)
                for part in group.parts:
                    if part.box is None:
                        continue
                    key = part.markup, place, drawing.theme
                    keys.append(key)
                    if key in self._kept:
                        self._kept.move_to_end(key)
                    else:
                        missing[key] = _Missing(part, place, place.pixels(part))
            small = {key: one for key, one in missing.items() if one.area < _LARGE}
            large = [{key: one} for key, one in missing.items() if key not in small]
            for sheet in (small, *large):
                if sheet:
                    self._draw(sheet, drawing.theme)
            found = [self._kept[key] for key in keys]
            while self._bytes > self._most:
                self._bytes -= self._kept.popitem(last=False)[1].size
        return [tile for tile in found if tile.image is not None]

    def _draw(self, missing: dict[_Key, _Missing], theme: str) -> None:
        """Draw parts on one sheet, cut it up, and keep the tiles."""
        places, size = _packed([one.pixels[2:] for one in missing.values()])
        markup = []
        for one, (x, y) in zip(missing.values(), places, strict=True):
            scale, left, top = one.place
            left, top = left - one.pixels[0] + x, top - one.pixels[1] + y
            at = f"{scale:.9g} 0 0 {scale:.9g} {left:.9g} {top:.9g}"
            markup.append(f'<g transform="matrix({at})">{one.part.markup}</g>')
        sheet = self._rasterise(
            f'<svg xmlns="http://www.w3.org/2000/svg" class="carolus carolus-{theme}" '
            f'width="{size[0]}" height="{size[1]}"><style>{style_sheet(theme)}</style>'
            f"{''.join(markup)}</svg>"
        )
        for (key, one), (x, y) in zip(missing.items(), places, strict=True):
            left, top, width, height = one.pixels
            image = sheet.crop((x, y, x + width, y + height))
            seen = image.getchannel("A").getbbox()
            tile = Tile(None, None, (0, 0))
            if seen is not None:
                image = image.crop(seen)
                corner = left + seen[0], top + seen[1]
                tile = Tile(image.convert("RGB"), image.getchannel("A"), corner)
            self._kept[key] = tile
            self._bytes += tile.size


def _packed(sizes: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Place rectangles of ``(width, height)`` on a sheet in rows.

    Returns:
        Left and top of each, and the sheet's width and height.
    """
    sizes = list(sizes)
    square = math.isqrt(sum(width * height for width, height in sizes))
    across = max(square, *(width for width, _ in sizes), 1)
    places = [(0, 0)] * len(sizes)
    x = y = row = 0
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i][1]):  # the highest first
        width, height = sizes[i]
        if x + width > across:
            x, y, row = 0, y + row, 0
        places[i] = x, y
        x, row = x + width, max(row, height)
    return places, (across, max(1, y + row))
