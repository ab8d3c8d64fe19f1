"""The board as SVG, drawn from a state alone, for files, notebooks, pixels and the page.

Its parts are groups with stable class names and ``data-`` attributes. With ``legal=True`` all that
can be chosen has the class ``open`` too, and ``data-action`` where one click makes one decision:
for a region the fewest steps there (``data-steps`` lists all numbers of steps).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final, Literal

import numpy as np

from carolus_env import engine
from carolus_env.drawing import pieces
from carolus_env.drawing.pieces import GOLD, TEAM_STYLES, Point, angle_of, polar
from carolus_env.engine import rules
from carolus_env.engine.rules import CLAN_NAMES, CLANS, NOBODY
from carolus_env.notation import descriptions
from carolus_env.notation.moves import counted, due, region_text
from carolus_env.records import position
from carolus_env.system.options import one_of, whole_number

LAYOUTS: Final = ("wide", "narrow")

_SIDE: Final = 1000.0  # side of the circle's square
_MARGIN, _GAP, _CORNER = 14.0, 18.0, 22.0  # the last is the radius of the drawing's corners
_PANEL_WIDTH, _PANEL_HEIGHT = 491.0, 300.0
# Heights in a panel: the name, the captions of discs and paladins, these, the court's caption.
_NAME, _CAPTION, _ROW, _COURT = 27.0, 53.0, 82.0, 107.0


def board_svg(
    state: np.void,
    *,
    theme: Literal["auto", "light", "dark"] = "auto",
    layout: Literal["wide", "narrow"] = "wide",
    names: Sequence[str] | None = None,
    legal: bool = False,
    last: tuple[np.void, int] | None = None,
    turn: Sequence[tuple[np.void, int]] | None = None,
    width: int | None = None,
) -> str:
    """Draw one game (``states[i]``) as a standalone SVG element, without scripts or links.

    Args:
        theme: ``"auto"`` follows the reader's preference and is light without one.
        layout: the players' panels to the right of the circle, or (``"narrow"``) below it.
        names: the seats' names; by default ``player 0`` and so on.
        legal: highlight the legal choices of the player to move.
        last: the state before the last decision, and its action; described in words.
        turn: the decisions that are marked, the oldest first, each as ``last``; None: ``last``.
        width: the element's width in pixels; None leaves it to the page. Width and height are made
            even, as videos need.
    """
    scene = Scene(state, names, legal, last, turn)
    one_of("theme", theme, pieces.THEMES)
    one_of("layout", layout, LAYOUTS)
    (across, down), circle, panels = _places(layout, scene.rules.players)
    size = ""
    if width is not None:
        width = _even(whole_number("width", width, 1, 20_000))
        size = f' width="{width}" height="{_even(width * down / across)}"'
    if scene.player is None:
        title = descriptions.outcome(state, scene.names)
    else:
        title = f"round {scene.data['round']}, {scene.names[scene.player]} {due(state)}"
    start, box = f"{-_MARGIN:g}", f"{across:g} {down:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="carolus carolus-{theme}" '
        f'role="img"{size} viewBox="{start} {start} {box}">',
        f"<title>{escape(f'Carolus Magnus, {title}')}</title>"
        f"<desc>{escape('. '.join(descriptions.board_words(state, scene.names)))}.</desc>",
        f"<style>{pieces.style_sheet(theme)}</style>",
        f'<rect class="f-back" x="{start}" y="{start}" width="{across:g}" '
        f'height="{down:g}" rx="{_CORNER:g}"/>',
        *_group("", 0.0, 0.0, circle, _circle(scene)),
    ]
    for seat, place in enumerate(panels):
        parts += _group(f' class="seat" data-seat="{seat}"', *place, _panel(scene, seat))
    return "".join(parts) + "</svg>"


def _even(pixels: float) -> int:
    """Return an even number near it, at least 2: videos and their players take no others."""
    return 2 * max(1, round(pixels / 2))


def _group(mark: str, x: float, y: float, scale: float, elements: Iterable[str]) -> Iterator[str]:
    """Put elements into a group, which ``mark`` makes known to a page."""
    x, y, scale = round(x, 1), round(y, 1), round(scale, 4)
    moves = [f"translate({x:g} {y:g})"] * bool(x or y) + [f"scale({scale:g})"] * (scale != 1)
    transform = f' transform="{" ".join(moves)}"' if moves else ""
    yield f"<g{mark}{transform}>"
    yield from elements
    yield "</g>"


def _places(
    layout: str, players: int
) -> tuple[tuple[float, float], float, list[tuple[float, float, float]]]:
    """Return the drawing's size, the circle's scale, and x, y and scale of each seat's panel."""
    if layout == "narrow":
        width = height = _SIDE
        scale = _SIDE / _PANEL_WIDTH
        left, top, step = 0.0, _SIDE + _GAP, _PANEL_HEIGHT * scale + _GAP
        down = _SIDE + players * step
    else:  # in a column that is as high as the circle
        total = players * _PANEL_HEIGHT + (players - 1) * _GAP
        scale = min(1.25, _SIDE / total) if total < _SIDE else 1.0
        down = height = max(_SIDE, total)
        left, top = height + _GAP, (height - total * scale) / 2
        step, width = (_PANEL_HEIGHT + _GAP) * scale, left + _PANEL_WIDTH * scale
    size = width + 2 * _MARGIN, down + 2 * _MARGIN
    return size, height / _SIDE, [(left, top + seat * step, scale) for seat in range(players)]


# Places of a single territory's clans, by their number: along the circle and outwards.
_PLACES_IN_ONE: Final[tuple[tuple[Point, ...], ...]] = (
    (),
    ((0, 0),),
    ((-25, 0), (25, 0)),
    ((-25, 24), (25, 24), (0, -24)),
    ((-26, 24), (26, 24), (-24, -24), (24, -24)),
    ((-49, 26), (0, 26), (49, 26), (-24, -24), (24, -24)),
)


def _circle(scene: Scene) -> Iterator[str]:
    """Yield the elements of the circle, from back to front."""
    regions = scene.data["regions"]
    yield '<g class="regions">'
    for k in sorted(range(len(regions)), key=lambda k: regions[k]["territories"][0]):
        yield from _region(scene, k)
    yield '</g><g class="walks">'
    yield from _walks(scene)
    yield "</g>"
    yield from _emperor(scene)
    yield from _middle(scene)


# ------------------------------------------------------------------------------------ regions


def _region(scene: Scene, k: int) -> Iterator[str]:
    region, steps, actions = scene.data["regions"][k], scene.steps_to(k), ""
    first, size = region["territories"][0], len(region["territories"])
    if steps:
        actions = f' data-action="{rules.move_action(steps[0])}" data-steps="{_joined(steps)}"'
    is_open = bool(steps) or (scene.phase == "place" and bool(scene.legal))
    marks = [mark for mark in scene.marks if set(mark.territories[:1]) & set(region["territories"])]
    yield (
        f'<g class="region{" open" if is_open else ""}" data-region="{k}" '
        f'data-territories="{region_text(scene.state, k)}"{actions}>'
        f"<title>{escape(descriptions.region_words(scene.state, k, scene.teams))}</title><g>"
    )
    owner, outline = region["owner"], pieces.region_outline(first, size)
    if owner == NOBODY:
        yield f'<path class="f-land s-edge" stroke-width="2" d="{outline}"/>'
    else:
        look = TEAM_STYLES[owner]
        yield f'<path fill="{look.fill}" stroke="{look.line}" stroke-width="2" d="{outline}"/>'
        if size > 1:
            yield (
                f'<path class="line" stroke="{look.line}" stroke-width="1.5" '
                f'stroke-dasharray="3 7" d="{pieces.region_seams(first, size)}"/>'
            )
    if k == 0:
        yield pieces.outline(outline, "s-gold", 11)
    if is_open:
        yield pieces.outline(outline, "s-open", 4)
    if marks:
        yield pieces.outline(outline, "s-last", 5, "14 7")
    yield "</g>"
    for territory in range(first, first + size):
        yield from _territory(scene, territory, owner)
    came = [sum(mark.clan == clan for mark in marks) for clan in range(CLANS)]
    yield from _paladins(first, size, region["paladins"], came)
    yield "</g>"


def _territory(scene: Scene, territory: int, owner: int) -> Iterator[str]:
    x, y = polar(pieces.NUMBER_RADIUS, angle_of(territory))
    number = territory % rules.TERRITORIES
    if owner == NOBODY:
        yield f"<g>{pieces.text(x, y, number, 16, 'f-ink')}</g>"
        return
    yield f"<g>{pieces.text(x, y, number, 16, 'number', TEAM_STYLES[owner].text)}"
    x, y = polar(pieces.CASTLE_RADIUS, angle_of(territory))
    yield pieces.castle(x, y, 17.0, owner)
    if number in scene.new_castles:
        yield pieces.ring(x, y, 25.0, "s-last")
    yield "</g>"


def _paladins(first: int, size: int, paladins: Sequence[int], came: Sequence[int]) -> Iterator[str]:
    """Yield a region's paladins: two rows in a single territory, one row along a larger region."""
    clans = [clan for clan in range(CLANS) if paladins[clan]]
    middle, radius = angle_of(first + (size - 1) / 2), 19.0
    places = _PLACES_IN_ONE[len(clans)]
    if size > 1:
        pitch, radius = min(62.0, size * 140.0 / max(1, len(clans))), 24.0
        places = tuple(((i - (len(clans) - 1) / 2) * pitch, 0.0) for i in range(len(clans)))
        if math.sin(middle) > 0:  # in the lower half clockwise is right to left: keep reading order
            places = places[::-1]
    for clan, (along, out) in zip(clans, places, strict=True):
        x, y = polar(pieces.MIDDLE + out, middle + along / (pieces.MIDDLE + out))
        yield pieces.token(x, y, radius, clan, paladins[clan])
        if came[clan]:
            yield pieces.added(x + radius * 0.8, y - radius * 0.95, came[clan])


# ------------------------------------------------------------------------------------ Emperor


def _emperor(scene: Scene) -> Iterator[str]:
    """Yield the Emperor, and a mark before each region that he can reach."""
    regions, radius = scene.data["regions"], pieces.EMPEROR_RADIUS
    yield pieces.emperor(*polar(radius, _angle_between(regions[0]["territories"])))
    for k, region in enumerate(regions):
        if steps := scene.steps_to(k):
            beside = 0.0 if k else 0.19  # he stands before his region himself
            x, y = polar(radius + 8, _angle_between(region["territories"]) + beside)
            size, action = 20 if len(steps) == 1 else 15, rules.move_action(steps[0])
            yield (
                f'<g class="step open" data-region="{k}" data-action="{action}">'
                f'<circle class="f-open" cx="{x:.1f}" cy="{y:.1f}" r="20"/>'
                f"{pieces.text(x, y, '+' + _joined(steps), size, 'f-card bold')}"
                f"{pieces.target(x, y, 36, 36)}</g>"
            )


def _walks(scene: Scene) -> Iterator[str]:
    """Yield the ways of the Emperor that are marked, with a dot where each began."""
    radius = pieces.EMPEROR_RADIUS
    for mark in scene.marks:
        if not mark.walk:
            continue
        start, end = (_angle_between(part) for part in (mark.walk, mark.territories))
        turned = (end - start) % math.tau or math.tau
        (x, y), *points = (polar(radius, start + turned * part) for part in (0, 0.5, 1))
        arcs = (f"A{radius:g} {radius:g} 0 0 1 {to_x:.1f} {to_y:.1f}" for to_x, to_y in points)
        path = f"M{x:.1f} {y:.1f}{''.join(arcs)}"
        yield (
            f'<g class="walk">{pieces.line(path, "s-last", 4, "1 11")}'
            f'<circle class="f-last" cx="{x:.1f}" cy="{y:.1f}" r="7"/></g>'
        )


def _angle_between(territories: Sequence[int]) -> float:
    """Return the angle of the middle of territories, which are given clockwise."""
    return angle_of(territories[0] + (len(territories) - 1) / 2)


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _middle(scene: Scene) -> Iterator[str]:
    data = scene.data
    head = f"round {data['round']}" if data["round"] else "set-up"
    yield _line(310, "game over" if scene.phase == "over" else head, 21, "f-soft")
    yield '<g class="words">'
    if scene.player is None:
        who, how, why = descriptions.ending(scene.state, scene.teams)
        yield _line(346, *pieces.fitting(who, 410, 32, 26, 20), "f-ink bold")
        yield _line(380, why or how, 20, "f-ink")
    else:
        name, size = pieces.fitting(scene.names[scene.player], 400, 32, 26, 20)
        yield _line(346, name, size, "f-ink bold")
        yield _line(382, due(scene.state), 23, "f-ink")
    if scene.last:
        names = scene.names[scene.last.seat], *scene.teams
        name, *teams = (pieces.fitting(name, 150, 19)[0] for name in names)
        before, action = scene.last.before, scene.last.action
        words, effect = descriptions.decision_words(before, action, teams, short=True)
        for line, content in enumerate(filter(None, (f"{name} {words}", effect))):
            yield _line(412 + 24 * line, *pieces.fitting(content, 400, 19, 16), "f-last")
    yield '</g><g class="supply">' + _line(462, "supply", 20, "f-soft")
    for clan in range(CLANS):
        count, action = data["supply"][clan], rules.crown_action(clan)
        x = pieces.CENTRE + (clan - 2) * 72
        yield scene.group("token", [action], f' data-clan="{clan}"')
        yield f"<title>{count} {CLAN_NAMES[clan]} in the supply</title>"
        yield pieces.token(x, 506, 22, clan, count, always=True)
        if action in scene.legal:
            yield pieces.ring(x, 506, 30, "s-open") + pieces.target(x, 506, 36, 36)
        yield "</g>"
    yield "</g>" + _line(558, "order of play", 20, "f-soft")
    order, y = data["order"], 590
    for turn, seat in enumerate(order):  # a castle of the player's team, and the disc played
        team, disc = scene.rules.team(seat), data["discs_played"][seat]
        x = pieces.CENTRE - (len(order) - 1) * 44 + turn * 88
        said = f"disc {disc}" if disc else "no disc yet"
        yield f"<g><title>{escape(scene.names[seat])}: {said}</title>"
        yield pieces.castle(x - 18, y + 2, 15, team)
        yield pieces.disc(x + 20, y, 18, disc or "-", TEAM_STYLES[team], 1.0)
        if seat == scene.player:
            yield pieces.line(f"M{x - 34:.1f} {y + 30}h72", "s-ink", 4)
        yield "</g>"
        if turn:
            yield pieces.line(f"M{x - 48:.1f} {y - 6}l6 6l-6 6", "s-soft", 2.5)


def _line(y: float, content: str, size: float, kind: str) -> str:
    return pieces.text(pieces.CENTRE, y, content, size, kind)


# ------------------------------------------------------------------------------------ panels


def _panel(scene: Scene, seat: int) -> Iterator[str]:
    """Yield the elements of a seat's panel, from its top left corner on."""
    team, result = scene.rules.team(seat), scene.data["result"]
    edge = 'class="f-card"'
    if seat == scene.player:
        edge = 'class="f-card s-ink" stroke-width="5"'
    elif result and team in result["winners"]:
        edge = 'class="f-card s-gold" stroke-width="9"'
        around_it = f'fill="none" stroke="{GOLD.line}" stroke-width="12" rx="16"'
        yield pieces.box(0, 0, _PANEL_WIDTH, _PANEL_HEIGHT, around_it)
    yield f'<rect {edge} width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}" rx="16"/>'
    right, goal, built = _PANEL_WIDTH - 16, scene.rules.castles_to_win, scene.data["castles"][team]
    bars = right - 88 - (goal - 1) * 12  # one for each castle that is needed to win
    yield pieces.castle(34, _NAME, 18, team)
    name, size = pieces.fitting(scene.names[seat], bars - 72, 24, 18)
    yield pieces.text(62, _NAME, name, size, "left f-ink bold")
    yield pieces.text(16, _CAPTION, "discs", 16, "left f-soft")
    yield pieces.text(right, _CAPTION, "reserve", 16, "right f-soft")
    yield pieces.text(_PANEL_WIDTH / 2, _COURT, "court", 16, "f-soft")
    yield f'<g class="castles"><title>{built} of {goal} castles</title>'
    yield pieces.text(right, _NAME, f"{built}/{goal}", 21, "right f-ink bold")
    for i in range(goal):  # a tall one for each in play
        height, kind = (20, "f-ink") if i < built else (7, "f-edge")
        yield pieces.box(bars + i * 12, _NAME + 10 - height, 8, height, f'class="{kind}" rx="2"')
    yield "</g>"
    for disc in range(1, rules.DISCS + 1):
        yield from _disc(scene, seat, disc)
    yield from _reserve(scene, seat)
    yield from _court(scene, seat)


def _disc(scene: Scene, seat: int, disc: int) -> Iterator[str]:
    hand, played = scene.data["discs_in_hand"][seat], scene.data["discs_played"][seat]
    x, y, actions = 34 + (disc - 1) * 42, _ROW, [rules.disc_action(disc)] * (seat == scene.player)
    where = "in hand" if disc in hand else "played now" if disc == played else "used"
    yield scene.group("disc", actions, f' data-seat="{seat}" data-disc="{disc}"')
    yield f"<title>disc {disc}: {where}</title>"
    if disc == played:
        kind = "f-last" if any(mark.disc == (seat, disc) for mark in scene.marks) else "f-gold"
        edge = f'stroke="{GOLD.line}" stroke-width="1.5"'
        yield f'<circle class="{kind}" {edge} cx="{x}" cy="{y}" r="21"/>'
    opacity = 0.35 if where == "used" else 1.0
    yield pieces.disc(x, y, 17, disc, TEAM_STYLES[scene.rules.team(seat)], opacity)
    if set(actions) & set(scene.legal):
        yield pieces.ring(x, y, 20, "s-open") + pieces.target(x, y, 21, 24)
    yield "</g>"


def _reserve(scene: Scene, seat: int) -> Iterator[str]:
    reserve, crowns = scene.data["reserves"][seat], scene.data["crowns"][seat]
    held = [clan for clan in range(CLANS) if reserve[clan]]
    pitch = 43.0
    x = _PANEL_WIDTH - 30 - pitch * (len(held) + (crowns > 0) - 1)
    placing = scene.phase == "place" and seat == scene.player
    yield f'<g class="reserve" data-seat="{seat}">'
    if not held and not crowns:
        yield pieces.text(_PANEL_WIDTH - 16, _ROW, "no paladins", 16, "right f-soft")
    for clan in held:
        actions = [rules.court_action(clan)] * placing
        yield scene.group("token", actions, f' data-clan="{clan}"', numbered=False)
        yield f"<title>reserve: {counted(reserve[clan], CLAN_NAMES[clan] + ' paladin')}</title>"
        yield pieces.token(x, _ROW, 17, clan, reserve[clan], always=True)
        if set(actions) & set(scene.legal):
            yield pieces.line(f"M{x - 13:.1f} {_ROW + 25:g}h26", "s-open", 4)
            yield pieces.target(x, _ROW, pitch / 2, 26)
        yield "</g>"
        x += pitch
    if crowns:
        yield f"<g><title>{counted(crowns, 'crown')} to decide</title>"
        yield pieces.piece(x, _ROW, pieces.polygon(pieces.CROWN, 18), GOLD)
        if crowns > 1:
            yield pieces.text(x, _ROW + 5, crowns, 15, "bold", GOLD.text)
        yield "</g>"
    yield "</g>"


def _court(scene: Scene, seat: int) -> Iterator[str]:
    court, control = scene.data["courts"][seat], scene.data["control"]
    is_open = seat == scene.player and scene.phase == "place" and bool(scene.legal)
    edge = 'class="s-open f-back" stroke-width="4"' if is_open else 'class="f-back"'
    yield (
        f'<g class="court{" open" if is_open else ""}" data-seat="{seat}">'
        f"<title>court of {escape(scene.names[seat])}: {descriptions.paladin_words(court)}</title>"
    )
    yield pieces.box(12, 116, _PANEL_WIDTH - 24, 172, f'{edge} rx="10"')
    for clan in range(CLANS):
        y, controlled = 135 + clan * 33.5, control[clan] == seat
        came = sum(mark.court == (seat, clan) for mark in scene.marks)
        yield f'<g class="row" data-clan="{clan}"><g>'
        if came:
            marked = 'class="s-last line" rx="8" stroke-width="3" stroke-dasharray="8 5"'
            yield pieces.box(18, y - 15, _PANEL_WIDTH - 36, 30, marked)
            yield pieces.added(_PANEL_WIDTH - 72, y, came)
        yield f"</g>{pieces.control_marker(36, y, clan, controlled)}"
        yield pieces.row(72, y, _PANEL_WIDTH - (170 if came else 130), clan, court[clan])
        kind = "right f-ink bold" if controlled else "right f-soft"
        yield pieces.text(_PANEL_WIDTH - 26, y, court[clan], 19, kind)
        yield "</g>"
    yield "</g>"


# ------------------------------------------------------------------------------------ content

_NOT_IN_XML: Final = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scene:
    """A game to be drawn; arguments as for `board_svg`."""

    def __init__(
        self,
        state: np.void,
        names: Sequence[str] | None,
        legal: bool,
        last: tuple[np.void, int] | None,
        turn: Sequence[tuple[np.void, int]] | None,
    ) -> None:
        self.state, self.rules = state, engine.rules_of(state)
        self.data = position.to_dict(state)
        self.phase: str = self.data["phase"]
        self.player: int | None = self.data["player"]
        players = self.rules.players
        if names is not None and len(names) != players:
            raise ValueError(f"names must be of {players} players, got {len(names)}")
        if names is None:
            names = [f"player {seat}" for seat in range(players)]
        self.names = [_NOT_IN_XML.sub("\ufffd", str(name)) for name in names]
        self.teams = descriptions.team_names(self.rules, self.names)
        self.legal: list[int] = engine.legal_actions(state).tolist() if legal else []
        self.last = None if last is None else MarkedMove(*last)
        self.marks = [MarkedMove(*decision) for decision in turn or []]
        if turn is None and self.last:
            self.marks = [self.last]
        before = _owners(position.to_dict(self.marks[0].before)) if self.marks else {}
        # Territories whose castle is another team's than before the marked decisions.
        owners = _owners(self.data).items()
        self.new_castles = [k for k, team in owners if team not in (NOBODY, before.get(k, team))]

    def steps_to(self, region: int) -> list[int]:
        """Return the legal steps that lead the Emperor to ``region``; none if unreachable."""
        steps, count = range(1, rules.DISCS + 1), len(self.data["regions"])
        return [n for n in steps if n % count == region and rules.move_action(n) in self.legal]

    def group(
        self, kind: str, actions: list[int], attributes: str = "", *, numbered: bool = True
    ) -> str:
        """Return a group's start tag, selectable where one of ``actions`` is legal."""
        result = [action for action in actions if action in self.legal]
        number = f' data-action="{result[0]}"' if result and numbered else ""
        return f'<g class="{kind}{" open" if result else ""}"{attributes}{number}>'


class MarkedMove:
    """A decision, and what it touched."""

    def __init__(self, before: np.void, action: int) -> None:
        self.before, self.action, self.seat = before, action, int(before["player"])
        kind, number, clan, destination = rules.action_parts(action)
        self.disc = (self.seat, number) if kind == "disc" else None
        self.court = (self.seat, clan) if kind == "place" and destination == 0 else None
        to_region = kind == "place" and destination > 0
        self.clan = clan if to_region else None  # of a paladin to a region
        self.walk = self._territories(0) if kind == "move" else []  # those that the Emperor left
        self.territories: list[int] = []  # of the region that it concerned
        if kind == "move" or self.clan is not None:
            self.territories = self._territories(number if kind == "move" else destination - 1)

    def _territories(self, region: int) -> list[int]:
        """Return the territories of a region, counted from the Emperor's, clockwise."""
        count, firsts = int(self.before["regions"]), self.before["region_first"]
        at = (int(self.before["emperor"]) + region) % count
        first, after = int(firsts[at]), int(firsts[(at + 1) % count])
        size = (after - first) % rules.TERRITORIES
        return [(first + k) % rules.TERRITORIES for k in range(size)]


def _owners(data: dict[str, Any]) -> dict[int, int]:
    """Return the team with a castle on each territory, `NOBODY` where there is none."""
    return {k: region["owner"] for region in data["regions"] for k in region["territories"]}
