"""Colours of the themes, the font, and the style sheet of a drawing."""

from __future__ import annotations

from functools import cache
from typing import Final

from carolus_env.drawing.shapes import GOLD

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
