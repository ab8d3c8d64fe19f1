"""The board as SVG, drawn from a state alone.

One drawing serves them all: files, notebooks, frames of pixels, the page that people play on. For
a page's sake its pieces are groups with stable names:

| element | what it is |
| --- | --- |
| ``svg.carolus`` | the whole, with ``<title>`` and ``<desc>`` |
| ``g.region[data-region=K]`` | region K, counted clockwise from the Emperor; ``data-territories`` |
| ``g.emperor`` | the Emperor |
| ``g.step[data-region=K]`` | the mark before a region that he can reach |
| ``g.supply g.token[data-clan=C]`` | the supply |
| ``g.seat[data-seat=S]`` | all that stands before a player, of which |
| ``g.disc[data-disc=D]`` | a disc (with ``data-seat`` too) |
| ``g.reserve g.token[data-clan=C]`` | paladins of a clan in reserve |
| ``g.court[data-seat=S]`` | the court |

With ``legal=True`` whatever can be chosen has the class ``open`` too, and ``data-action`` where one
click makes one decision: discs, clans of the supply for a crown, and regions for the Emperor (the
fewest steps; ``data-steps`` lists all that lead there).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, Final, Literal

import numpy as np

from carolus_env import engine
from carolus_env.drawing.shapes import (
    CASTLE_RADIUS,
    CENTRE,
    CLAN_LOOKS,
    EMPEROR_CROWN,
    EMPEROR_HEAD,
    EMPEROR_RADIUS,
    EMPEROR_ROBE,
    GOLD,
    MIDDLE,
    NUMBER_RADIUS,
    TEAM_LOOKS,
    TEXT_DROP,
    Look,
    angle_of,
    castle_shape,
    clan_shape,
    crown_shape,
    polar,
    region_outline,
    region_seams,
)
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    DESTINATIONS,
    DISCS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    NOBODY,
    TERRITORIES,
    Rules,
    court_action,
    crown_action,
    disc_action,
    move_action,
)
from carolus_env.notation import move_text
from carolus_env.notation.words import counted, span_text, team_names
from carolus_env.records import position

THEMES: Final = ("auto", "light", "dark")
LAYOUTS: Final = ("tall", "wide")
FONT: Final = "DejaVu Sans, Verdana, sans-serif"
_NOT_IN_XML: Final = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ENDINGS: Final = {
    "castles": "with as many castles as it takes",
    "regions": "fewer than four regions are left",
    "max_rounds": "the last round is over",
    "forfeit": "an illegal action was played",
}
"""Why a game ended, in words."""

_SIDE = 1000.0  # of the circle's square
_MARGIN, _BETWEEN = 14.0, 18.0
_PANEL_WIDTH, _PANEL_HEIGHT = (_SIDE - _BETWEEN) / 2, 300.0

# What differs between day and night: background, panels and centre, empty land, ink, faint ink.
# fmt: off
_LIGHT: Final = {
    "back": "#efe6d2", "card": "#f9f3e4", "land": "#d9c9a0", "edge": "#a8946a",
    "ink": "#2a2530", "soft": "#6d6355", "open": "#00806f", "last": "#7a3fd1",
}
_DARK: Final = {
    "back": "#191b21", "card": "#262932", "land": "#5d553f", "edge": "#8d8058",
    "ink": "#f1ead9", "soft": "#b5ab98", "open": "#3fe0c5", "last": "#c3a1ff",
}
# fmt: on
BACKGROUNDS: Final = {"auto": _LIGHT["back"], "light": _LIGHT["back"], "dark": _DARK["back"]}
"""What is behind the drawing in each theme, for pictures that know no transparency."""


def board_svg(
    state: np.void,
    *,
    theme: Literal["auto", "light", "dark"] = "auto",
    layout: Literal["tall", "wide"] = "tall",
    names: Sequence[str] | None = None,
    legal: bool = False,
    last: tuple[np.void, int] | None = None,
    values: Sequence[float] | None = None,
    width: int | None = None,
) -> str:
    """Draw one game (``states[i]``) as a standalone SVG element, without scripts or links.

    Args:
        state: the game.
        theme: colours; ``"auto"`` follows the reader's preference, light where there is none.
        layout: players' courts below the circle of territories, or to its right.
        names: of the seats; ``player 0`` and so on where it is left out.
        legal: highlight what the player to move may choose.
        last: the state before the last decision, and that decision; it is marked.
        values: each team's expected share of the win, 0 to 1: a bar in the middle.
        width: the element's width in pixels; None leaves it to the page.

    Raises:
        ValueError: naming the argument, its value and what was expected.
    """
    drawing = _Drawing(state, names, legal, last, values)
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {THEMES}, got {theme!r}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {LAYOUTS}, got {layout!r}")
    if width is not None and not 1 <= width <= 20_000:
        raise ValueError(f"width must be from 1 to 20000 pixels, got {width!r}")
    return drawing.whole(theme, layout, width)


def board_words(state: np.void, names: Sequence[str] | None = None) -> list[str]:
    """A board for those who do not see it: a sentence for each region, then for each seat.

    Raises:
        ValueError: for another number of names.
    """
    return _Drawing(state, names, False, None, None).words()


@cache
def _style(theme: str) -> str:
    """The style sheet; each rule begins with the theme's class, as a page may hold several."""

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


class _Drawing:
    """A state, read once, and the pieces of its picture."""

    def __init__(
        self,
        state: np.void,
        names: Sequence[str] | None,
        legal: bool,
        last: tuple[np.void, int] | None,
        values: Sequence[float] | None,
    ) -> None:
        self.rules: Rules = engine.rules_of(state)
        self.data = position.to_dict(state)
        players, teams = self.rules.players, self.rules.teams
        if names is not None and len(names) != players:
            raise ValueError(f"names must be of {players} players, got {len(names)}")
        if names is None:
            names = [f"player {seat}" for seat in range(players)]
        self.names = [_NOT_IN_XML.sub("\ufffd", str(name)) for name in names]
        self.teams = team_names(self.rules, self.names)
        if values is not None:
            values = [float(value) for value in values]
            if len(values) != teams or not all(0 <= value <= 1 for value in values):
                raise ValueError(
                    f"values must be {teams} shares of the win from 0 to 1, got {values}"
                )
        self.values = values
        self.legal: list[int] = engine.legal_actions(state).tolist() if legal else []
        self.phase: str = self.data["phase"]
        self.player: int | None = self.data["player"]
        self.last = None if last is None else _Last(*last)

    # -------------------------------------------------------------------------------- the whole

    def whole(self, theme: str, layout: str, width: int | None) -> str:
        players = self.rules.players
        if layout == "tall":
            rows = (players + 1) // 2
            places = []
            for seat in range(players):
                alone = seat == players - 1 and players % 2 == 1
                x = (_SIDE - _PANEL_WIDTH) / 2 if alone else seat % 2 * (_PANEL_WIDTH + _BETWEEN)
                places.append((x, _SIDE + _BETWEEN + seat // 2 * (_PANEL_HEIGHT + _BETWEEN), 1.0))
            size = (_SIDE, _SIDE + rows * (_PANEL_HEIGHT + _BETWEEN))
            circle = 1.0
        else:
            total = players * _PANEL_HEIGHT + (players - 1) * _BETWEEN
            scale = min(1.25, _SIDE / total) if total < _SIDE else 1.0
            height = max(_SIDE, total)
            circle = height / _SIDE
            top = (height - total * scale) / 2
            step = (_PANEL_HEIGHT + _BETWEEN) * scale
            places = [(height + _BETWEEN, top + seat * step, scale) for seat in range(players)]
            size = (height + _BETWEEN + _PANEL_WIDTH * scale, height)
        across, down = (side + 2 * _MARGIN for side in size)
        said = f"Carolus Magnus, {self._situation()}"
        sized = f' width="{width}" height="{width * down / across:.0f}"' if width else ""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="carolus carolus-{theme}" role="img"'
            f'{sized} viewBox="{-_MARGIN:g} {-_MARGIN:g} {across:g} {down:g}">',
            f"<title>{escape(said)}</title><desc>{escape('. '.join(self.words()))}.</desc>",
            f"<style>{_style(theme)}</style>",
            f'<rect class="f-back" x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="{across:g}" '
            f'height="{down:g}" rx="22"/>',
            f'<g transform="scale({circle:.4g})">' if circle != 1 else "<g>",
            *self._circle(),
            "</g>",
        ]
        for seat, (x, y, scale) in enumerate(places):
            scaled = f" scale({scale:.4g})" if scale != 1 else ""
            at = f'transform="translate({x:.1f} {y:.1f}){scaled}"'
            parts.append(f'<g class="seat" data-seat="{seat}" {at}>')
            parts += self._seat(seat)
            parts.append("</g>")
        return "".join(parts) + "</svg>"

    def _situation(self) -> str:
        data = self.data
        if self.phase == "over":
            result = data["result"]
            return f"{self._winners()} won ({result['reason']})"
        return f"round {data['round']}, {self.names[self.player or 0]} {self._due()}"

    def _due(self) -> str:
        data = self.data
        if self.phase == "place":
            return f"plays {counted(data['placements_left'], 'paladin')}"
        if self.phase == "move":
            return "moves the Emperor"
        if self.phase == "roll":
            return f"rolls {counted(data['dice_due'], 'die')}"
        return "plays a disc" if self.phase == "disc" else "decides a crown"

    def words(self) -> list[str]:
        """What a picture tells: a sentence for each region, then for each seat."""
        said = [self._region_words(k) for k in range(len(self.data["regions"]))]
        control = self.data["control"]
        for seat, name in enumerate(self.names):
            court = _paladin_words(self.data["courts"][seat])
            reserve = _paladin_words(self.data["reserves"][seat])
            clans = [clan for clan in range(CLANS) if control[clan] == seat]
            controls = ", ".join(CLAN_NAMES[clan] for clan in clans) or "no clan"
            castles = self.data["castles"][self.rules.team(seat)]
            said.append(
                f"{name}, {counted(castles, 'castle')} of {self.rules.castles_to_win}: "
                f"controls {controls}; court {court}; reserve {reserve}"
            )
        return said

    def _winners(self) -> str:
        return " and ".join(self.teams[team] for team in self.data["result"]["winners"]) or "nobody"

    def _region_words(self, k: int) -> str:
        region = self.data["regions"][k]
        words = f"{_territories(region)}: {_paladin_words(region['paladins'])}"
        if region["owner"] != NOBODY:
            words += f", {counted(region['castles'], 'castle')} of {self.teams[region['owner']]}"
        return words + (", the Emperor" if k == 0 else "")

    # -------------------------------------------------------------------------------- circle

    def _circle(self) -> Iterator[str]:
        for k in range(len(self.data["regions"])):
            yield from self._region(k)
        yield from self._emperor()
        yield from self._middle()

    def _region(self, k: int) -> Iterator[str]:
        region = self.data["regions"][k]
        first, size = region["territories"][0], len(region["territories"])
        owner = region["owner"]
        steps = self._steps_to(k)
        shown = ""
        if steps:
            shown = f' data-action="{move_action(steps[0])}" data-steps="{_list(steps)}"'
        is_open = bool(steps) or (self.phase == "place" and bool(self.legal))
        yield (
            f'<g class="region{" open" if is_open else ""}" data-region="{k}" '
            f'data-territories="{_span(region)}"{shown}>'
            f"<title>{escape(self._region_words(k))}</title>"
        )
        outline = region_outline(first, size)
        if owner == NOBODY:
            yield f'<path class="f-land s-edge" stroke-width="2" d="{outline}"/>'
        else:
            look = TEAM_LOOKS[owner]
            yield f'<path fill="{look.fill}" stroke="{look.line}" stroke-width="2" d="{outline}"/>'
        if size > 1:
            stroke = TEAM_LOOKS[owner].line
            yield (
                f'<path class="line" stroke="{stroke}" stroke-opacity=".35" stroke-width="2" '
                f'stroke-dasharray="3 7" d="{region_seams(first, size)}"/>'
            )
        if k == 0:
            yield _outline(outline, "s-gold", 11)
        if is_open:
            yield _outline(outline, "s-open", 4)
        if self.last and first in self.last.territories:
            yield _outline(outline, "s-last", 5, "14 7")
        for territory in range(first, first + size):
            x, y = polar(NUMBER_RADIUS, angle_of(territory))
            yield _text(x, y, territory % TERRITORIES, 18, "f-soft")
            if owner != NOBODY:
                yield _castle(*polar(CASTLE_RADIUS, angle_of(territory)), 17.0, owner)
        yield from _tokens_in(first, size, region["paladins"])
        yield "</g>"

    def _steps_to(self, k: int) -> list[int]:
        """The numbers of steps that lead the Emperor to region ``k``; none where he may not go."""
        count = len(self.data["regions"])
        steps = range(1, DISCS + 1)
        return [n for n in steps if n % count == k and move_action(n) in self.legal]

    def _emperor(self) -> Iterator[str]:
        middle = _middle_angle(self.data["regions"][0])
        x, y = polar(EMPEROR_RADIUS, middle)
        yield f'<g class="emperor" transform="translate({x:.1f} {y + 3:.1f})">'
        yield "<title>The Emperor</title>"
        yield f'<g stroke="{GOLD.line}" stroke-width="2" stroke-linejoin="round">'
        yield f'<path fill="{GOLD.fill}" d="{EMPEROR_ROBE}"/>'
        yield f'<path fill="#fbe3b5" d="{EMPEROR_HEAD}"/>'
        yield f'<path fill="{GOLD.fill}" d="{EMPEROR_CROWN}"/></g></g>'
        for k, region in enumerate(self.data["regions"]):
            if steps := self._steps_to(k):
                beside = 0.0 if k else 0.19  # where he stands himself
                x, y = polar(EMPEROR_RADIUS + 8, _middle_angle(region) + beside)
                action = move_action(steps[0])
                yield f'<g class="step open" data-region="{k}" data-action="{action}">'
                yield f'<circle class="f-open" cx="{x:.1f}" cy="{y:.1f}" r="20"/>'
                yield _text(x, y, "+" + _list(steps), 20 if len(steps) == 1 else 15, "f-card bold")
                yield "</g>"

    def _middle(self) -> Iterator[str]:
        """What stands inside the circle: round, what is due, supply, order of play, the values."""
        data, x = self.data, CENTRE
        if self.phase == "over":
            head = "game over"
        else:
            head = f"round {data['round']}" if data["round"] else "set-up"
        yield _text(x, 306, head, 23, "f-soft")
        yield from self._headline(x)
        if self.last:
            yield _text(x, 426, _short(self.last.text, 34), 22, "f-last")
        yield '<g class="supply">'
        yield _text(x, 468, "supply", 20, "f-soft")
        for clan in range(CLANS):
            action, at = crown_action(clan), x + (clan - 2) * 62
            hook = self._hook("token", [action], f' data-clan="{clan}"')
            yield hook + f"<title>{data['supply'][clan]} {CLAN_NAMES[clan]} in the supply</title>"
            yield from _token(at, 506, 22, clan, data["supply"][clan], always=True)
            if action in self.legal:
                yield _ring(at, 506, 30, "s-open")
            yield "</g>"
        yield "</g>"
        yield from self._order(x, 590)
        if self.values is not None:
            yield from self._bar(x, 652)

    def _headline(self, x: float) -> Iterator[str]:
        if self.phase == "over":
            who = _short(f"{self._winners()} won", 44)
            yield _text(x, 356, who, min(32.0, 800 / len(who)), "f-ink bold")
            yield _text(x, 390, ENDINGS[self.data["result"]["reason"]], 21, "f-ink")
            return
        assert self.player is not None
        yield _text(x, 346, _short(self.names[self.player], 20), 32, "f-ink bold")
        yield _text(x, 387, self._due(), 25, "f-ink")

    def _order(self, x: float, y: float) -> Iterator[str]:
        """Who plays when: a castle of each team, and the disc, in playing order."""
        order, played = self.data["order"], self.data["discs_played"]
        yield _text(x, y - 32, "order of play", 20, "f-soft")
        left = x - (len(order) - 1) * 44
        for turn, seat in enumerate(order):
            team, at = self.rules.team(seat), left + turn * 88
            name = escape(self.names[seat])
            yield f"<g><title>{name}: {_disc_words(played[seat])}</title>"
            yield _castle(at - 18, y + 2, 15, team)
            number = played[seat] or "-"
            yield from _disc(at + 20, y, 18, number, TEAM_LOOKS[team], 1.0)
            if seat == self.player:
                yield _line(f"M{at - 34:.1f} {y + 30}h72", "s-ink", 4)
            yield "</g>"
            if turn:
                yield _line(f"M{at - 48:.1f} {y - 6}l6 6l-6 6", "s-soft", 2.5)

    def _bar(self, x: float, y: float) -> Iterator[str]:
        """Each team's expected share of the win."""
        assert self.values is not None
        wide, high = 250.0, 28.0
        total = sum(self.values) or 1.0
        said = ", ".join(
            f"{100 * value:.0f} % {name}"
            for name, value in zip(self.teams, self.values, strict=True)
        )
        yield f'<g class="values"><title>expected share of the win: {escape(said)}</title>'
        at = x - wide / 2
        for team, value in enumerate(self.values):
            share, look = wide * value / total, TEAM_LOOKS[team]
            yield _box(at, y, share, high, f'fill="{look.fill}"')
            if share > 44:
                percent = f"{100 * value:.0f}"
                yield _text(at + share / 2, y + high / 2, percent, 18, "bold", look.text)
            at += share
        yield _box(x - wide / 2, y, wide, high, 'class="s-ink line" rx="3" stroke-width="2"')
        yield "</g>"

    # -------------------------------------------------------------------------------- seats

    def _seat(self, seat: int) -> Iterator[str]:
        team, won = self.rules.team(seat), self.data["result"]
        edge = 'class="f-card"'
        if seat == self.player:
            edge = 'class="f-card s-ink" stroke-width="5"'
        elif won and team in won["winners"]:
            edge = 'class="f-card s-gold" stroke-width="9"'
        yield f'<rect {edge} width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}" rx="16"/>'
        yield _castle(34, 34, 18, team)
        label = _short(self.names[seat], 17)
        yield _text(62, 34, label, 24 if len(label) < 14 else 18, "left f-ink bold")
        yield from self._castles(team)
        yield from self._discs(seat, team)
        yield from self._reserve(seat)
        yield from self._court(seat)

    def _castles(self, team: int) -> Iterator[str]:
        """As many castles as win, those in play filled."""
        goal, built = self.rules.castles_to_win, self.data["castles"][team]
        yield f"<g><title>{built} of {goal} castles</title>"
        right = _PANEL_WIDTH - 16
        yield _text(right, 34, f"{built}/{goal}", 21, "right f-ink bold")
        for i in range(goal):
            x = right - 88 - (goal - 1 - i) * 12
            height = 20 if i < built else 7
            kind = "f-ink" if i < built else "f-edge"
            yield _box(x, 44 - height, 8, height, f'class="{kind}" rx="2"')
        yield "</g>"

    def _discs(self, seat: int, team: int) -> Iterator[str]:
        hand, played = self.data["discs_in_hand"][seat], self.data["discs_played"][seat]
        look = TEAM_LOOKS[team]
        for disc in range(1, DISCS + 1):
            x, y, action = 34 + (disc - 1) * 42, 84, disc_action(disc)
            own = seat == self.player
            hooks = f' data-seat="{seat}" data-disc="{disc}"'
            yield self._hook("disc", [action] if own else [], hooks)
            where = "in hand" if disc in hand else "played now" if disc == played else "used"
            yield f"<title>disc {disc}: {where}</title>"
            if disc == played:
                kind = "f-last" if self.last and self.last.disc == (seat, disc) else "f-gold"
                yield f'<circle class="{kind}" cx="{x}" cy="{y}" r="21.5"/>'
            faint = 1.0 if disc in hand or disc == played else 0.25
            yield from _disc(x, y, 17, disc, look, faint)
            if own and action in self.legal:
                yield _ring(x, y, 20, "s-open")
            yield "</g>"

    def _reserve(self, seat: int) -> Iterator[str]:
        reserve, crowns = self.data["reserves"][seat], self.data["crowns"][seat]
        held = [clan for clan in range(CLANS) if reserve[clan]]
        pitch = 43.0
        x = _PANEL_WIDTH - 30 - pitch * (len(held) + (crowns > 0) - 1)
        placing = self.phase == "place" and seat == self.player
        yield f'<g class="reserve" data-seat="{seat}">'
        if not held and not crowns:
            yield _text(_PANEL_WIDTH - 16, 84, "no paladins in reserve", 16, "right f-soft")
        for clan in held:
            actions = [court_action(clan)] if placing else []
            yield self._hook("token", actions, f' data-clan="{clan}"', numbered=False)
            yield f"<title>reserve: {counted(reserve[clan], CLAN_NAMES[clan] + ' paladin')}</title>"
            yield from _token(x, 84, 17, clan, reserve[clan], always=True)
            if placing and court_action(clan) in self.legal:
                yield _line(f"M{x - 13:.1f} 110h26", "s-open", 4)
            yield "</g>"
            x += pitch
        if crowns:
            yield f"<g><title>{counted(crowns, 'crown')} to decide</title>"
            yield _piece(x, 84, crown_shape(18), GOLD)
            if crowns > 1:
                yield _text(x, 89, crowns, 15, "bold", GOLD.text)
            yield "</g>"
        yield "</g>"

    def _court(self, seat: int) -> Iterator[str]:
        court, control = self.data["courts"][seat], self.data["control"]
        is_open = seat == self.player and self.phase == "place" and bool(self.legal)
        yield f'<g class="court{" open" if is_open else ""}" data-seat="{seat}">'
        yield f"<title>court of {escape(self.names[seat])}: {_paladin_words(court)}</title>"
        edge = 'class="s-open f-back" stroke-width="4"' if is_open else 'class="f-back"'
        yield _box(12, 116, _PANEL_WIDTH - 24, 172, f'{edge} rx="10"')
        for clan in range(CLANS):
            y = 135 + clan * 33.5
            controlled = control[clan] == seat
            if self.last and self.last.court == (seat, clan):
                marked = 'class="s-last line" rx="8" stroke-width="3" stroke-dasharray="8 5"'
                yield _box(18, y - 15, _PANEL_WIDTH - 36, 30, marked)
            yield _marker(36, y, clan, controlled)
            room = _PANEL_WIDTH - 130
            count = court[clan]
            pitch = min(18.5, room / max(1.0, count + 0.45 * ((count - 1) // 5)))
            yield f'<g fill="{CLAN_LOOKS[clan].fill}">'
            for i in range(count):
                x = 72 + pitch * (i + 0.45 * (i // 5))  # a gap after each fifth
                yield f'<path transform="translate({x:.1f} {y:.1f})" d="{clan_shape(clan, 7.6)}"/>'
            yield "</g>"
            kind = "right f-ink bold" if controlled else "right f-soft"
            yield _text(_PANEL_WIDTH - 26, y, count, 19, kind)
        yield "</g>"

    def _hook(
        self, kind: str, actions: list[int], attributes: str = "", *, numbered: bool = True
    ) -> str:
        """The begin of a group that can be chosen where one of ``actions`` is legal."""
        found = [action for action in actions if action in self.legal]
        if not found:
            return f'<g class="{kind}"{attributes}>'
        number = f' data-action="{found[0]}"' if numbered else ""
        return f'<g class="{kind} open"{attributes}{number}>'


class _Last:
    """Where the last decision left its mark."""

    def __init__(self, before: np.void, action: int) -> None:
        data = position.to_dict(before)
        regions, player = data["regions"], data["player"]
        self.text = move_text(before, action)
        self.territories: Sequence[int] = ()
        self.court: tuple[int, int] | None = None
        self.disc: tuple[int, int] | None = None
        if action >= FIRST_PLACE:
            clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
            if destination == 0:
                self.court = (player, clan)
            else:
                self.territories = regions[destination - 1]["territories"]
        elif action >= FIRST_MOVE:
            steps = action - FIRST_MOVE + 1
            self.territories = regions[steps % len(regions)]["territories"]
        elif action < FIRST_CROWN:
            self.disc = (player, action - FIRST_DISC + 1)


# ------------------------------------------------------------------------------------ pieces


def _tokens_in(first: int, size: int, paladins: Sequence[int]) -> Iterator[str]:
    """A region's paladins: in one territory two rows, in a larger region a row along the circle."""
    clans = [clan for clan in range(CLANS) if paladins[clan]]
    middle = angle_of(first + (size - 1) / 2)
    if size == 1:
        rows: tuple[tuple[Point, ...], ...] = _PLACES_IN_ONE
        radius = 19.0
        places = rows[len(clans)]
    else:
        pitch = min(62.0, size * 140.0 / max(1, len(clans)))
        radius = 24.0
        places = tuple(((i - (len(clans) - 1) / 2) * pitch, 0.0) for i in range(len(clans)))
        if math.sin(middle) > 0:  # below, clockwise is to the left; clans stand as they are read
            places = places[::-1]
    for clan, (along, out) in zip(clans, places, strict=True):
        x, y = polar(MIDDLE + out, middle + along / (MIDDLE + out))
        yield from _token(x, y, radius, clan, paladins[clan])


Point = tuple[float, float]

# Where a territory's clans stand: along the circle and outwards.
_PLACES_IN_ONE: Final[tuple[tuple[Point, ...], ...]] = (
    (),
    ((0, 0),),
    ((-25, 0), (25, 0)),
    ((-25, 24), (25, 24), (0, -24)),
    ((-26, 24), (26, 24), (-24, -24), (24, -24)),
    ((-49, 26), (0, 26), (49, 26), (-24, -24), (24, -24)),
)


def _token(
    x: float, y: float, radius: float, clan: int, count: int, *, always: bool = False
) -> Iterator[str]:
    """A clan's shape with its number; a single paladin goes without unless ``always``."""
    look = CLAN_LOOKS[clan]
    yield _piece(x, y, clan_shape(clan, radius), look)
    if count != 1 or always:
        size = radius * (1.12 if count < 10 else 0.95)
        yield _text(x, y + radius * TEXT_DROP[clan], count, round(size, 1), "bold", look.text)


def _marker(x: float, y: float, clan: int, controlled: bool) -> str:
    """The dot at a court's edge, or the clan's marker on it."""
    look, shape = CLAN_LOOKS[clan], clan_shape(clan, 10.0)
    at = f'transform="translate({x:g} {y:.1f})"'
    if not controlled:
        return f'<path {at} fill="none" stroke="{look.fill}" stroke-width="3" d="{shape}"/>'
    return (
        f'<circle class="f-ink" cx="{x:g}" cy="{y:.1f}" r="16.5"/>'
        f'<path {at} class="s-card" fill="{look.fill}" stroke-width="1.5" d="{shape}"/>'
    )


def _castle(x: float, y: float, size: float, team: int) -> str:
    return _piece(x, y, castle_shape(size), TEAM_LOOKS[team])


def _piece(x: float, y: float, shape: str, look: Look) -> str:
    """A shape about the origin, moved to where it stands."""
    return (
        f'<path transform="translate({x:.1f} {y:.1f})" fill="{look.fill}" stroke="{look.line}" '
        f'stroke-width="2" stroke-linejoin="round" d="{shape}"/>'
    )


def _ring(x: float, y: float, radius: float, kind: str) -> str:
    return f'<circle class="line {kind}" cx="{x:.1f}" cy="{y}" r="{radius}" stroke-width="5"/>'


def _line(path: str, kind: str, width: float) -> str:
    return f'<path class="line {kind}" stroke-width="{width}" stroke-linecap="round" d="{path}"/>'


def _box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _disc(
    x: float, y: float, radius: float, label: object, look: Look, opacity: float
) -> Iterator[str]:
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    yield (
        f'<g{faint}><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{look.fill}" '
        f'stroke="{look.line}" stroke-width="2"/>'
        f"{_text(x, y, label, 20, 'bold', look.text)}</g>"
    )


def _text(x: float, y: float, text: object, size: float, kind: str, fill: str | None = None) -> str:
    """Text centred on a height; digits and capitals are 0.73 of the size high."""
    colour = f' fill="{fill}"' if fill else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:g}"{colour}>'
        f"{escape(str(text))}</text>"
    )


def _outline(path: str, kind: str, width: float, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path class="line {kind}" stroke-width="{width:g}" stroke-linejoin="round"{dashed} '
        f'd="{path}"/>'
    )


# ------------------------------------------------------------------------------------ words


def _middle_angle(region: dict[str, Any]) -> float:
    return angle_of(region["territories"][0] + (len(region["territories"]) - 1) / 2)


def _span(region: dict[str, Any]) -> str:
    return span_text(region["territories"][0], region["territories"][-1])


def _territories(region: dict[str, Any]) -> str:
    word = "territory" if len(region["territories"]) == 1 else "territories"
    return f"{word} {_span(region)}"


def _paladin_words(counts: Iterable[int]) -> str:
    said = [f"{n} {CLAN_NAMES[clan]}" for clan, n in enumerate(counts) if n]
    return ", ".join(said) or "none"


def _disc_words(disc: int) -> str:
    return f"disc {disc}" if disc else "no disc yet"


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
