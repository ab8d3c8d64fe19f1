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

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from carolus_env.drawing import pieces
from carolus_env.drawing.pieces import (
    CASTLE_RADIUS,
    CENTRE,
    CLAN_STYLES,
    EMPEROR_CROWN,
    EMPEROR_HEAD,
    EMPEROR_RADIUS,
    EMPEROR_ROBE,
    EMPEROR_SCALE,
    GOLD,
    MIDDLE,
    NUMBER_RADIUS,
    TEAM_STYLES,
    THEMES,
    Point,
    angle_of,
    clan_shape,
    crown_shape,
    polar,
    region_outline,
    region_seams,
    style_sheet,
)
from carolus_env.drawing.scene import Decision, Scene
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    DISCS,
    NOBODY,
    TERRITORIES,
    court_action,
    crown_action,
    disc_action,
    move_action,
)
from carolus_env.notation import region_text
from carolus_env.notation.descriptions import (
    board_words,
    decision_words,
    due,
    ending,
    outcome,
    paladin_words,
    region_words,
)
from carolus_env.notation.vocabulary import counted

LAYOUTS: Final = ("tall", "wide", "narrow")

_SIDE: Final = 1000.0  # side of the circle's square
_MARGIN, _GAP = 14.0, 18.0
_CORNER: Final = 22.0
"""Radius of the whole drawing's corners."""

_PANEL_WIDTH: Final = 491.0
_PANEL_HEIGHT: Final = 300.0
_NAME, _CAPTION, _ROW, _COURT = 27.0, 53.0, 82.0, 107.0
"""Heights of the name, of the captions of the row of discs and paladins, of that row, and of the
caption of the court."""


def board_svg(
    state: np.void,
    *,
    theme: Literal["auto", "light", "dark"] = "auto",
    layout: Literal["tall", "wide", "narrow"] = "tall",
    names: Sequence[str] | None = None,
    legal: bool = False,
    last: tuple[np.void, int] | None = None,
    turn: Sequence[tuple[np.void, int]] | None = None,
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
        width: the element's width in pixels; None leaves it to the page.

    Raises:
        ValueError: for an impossible option, naming it, its value and what was expected.
    """
    scene = Scene(state, names, legal=legal, last=last, turn=turn)
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
        f"<title>{escape(f'Carolus Magnus, {_title(scene)}')}</title>"
        f"<desc>{escape('. '.join(board_words(state, scene.names)))}.</desc>",
        f"<style>{style_sheet(theme)}</style>",
        f'<rect class="f-back" x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="{across:g}" '
        f'height="{down:g}" rx="{_CORNER:g}"/>',
        *_group("", 0.0, 0.0, places.circle, _circle(scene)),
    ]
    for seat, place in enumerate(places.panels):
        parts += _group(f' class="seat" data-seat="{seat}"', *place, _panel(scene, seat))
    return "".join(parts) + "</svg>"


def _title(scene: Scene) -> str:
    """Return the round and what is due, or who won."""
    if scene.player is None:
        return outcome(scene.state, scene.names)
    return f"round {scene.data['round']}, {scene.names[scene.player]} {due(scene.state)}"


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
        x = (_SIDE - _PANEL_WIDTH) / 2 if alone else seat % 2 * (_PANEL_WIDTH + _GAP)
        panels.append((x, _SIDE + _GAP + seat // 2 * (_PANEL_HEIGHT + _GAP), 1.0))
    rows = (players + 1) // 2
    return _Layout((_SIDE, _SIDE + rows * (_PANEL_HEIGHT + _GAP)), 1.0, panels)


def _narrow(scene: Scene) -> _Layout:
    """Return the layout with panels below the circle, each as wide as it."""
    scale = _SIDE / _PANEL_WIDTH
    step = _PANEL_HEIGHT * scale + _GAP
    panels = [(0.0, _SIDE + _GAP + seat * step, scale) for seat in range(scene.rules.players)]
    return _Layout((_SIDE, _SIDE + scene.rules.players * step), 1.0, panels)


def _wide(scene: Scene) -> _Layout:
    """Return the layout with panels in one column to the right of the circle, equally high."""
    players = scene.rules.players
    total = players * _PANEL_HEIGHT + (players - 1) * _GAP
    scale = min(1.25, _SIDE / total) if total < _SIDE else 1.0
    height = max(_SIDE, total)
    top = (height - total * scale) / 2
    step = (_PANEL_HEIGHT + _GAP) * scale
    panels = [(height + _GAP, top + seat * step, scale) for seat in range(players)]
    return _Layout((height + _GAP + _PANEL_WIDTH * scale, height), height / _SIDE, panels)


_PLACES: Final = {"tall": _tall, "wide": _wide, "narrow": _narrow}


# ------------------------------------------------------------------------------------ circle

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
    region = scene.data["regions"][k]
    first, size = region["territories"][0], len(region["territories"])
    steps = scene.steps_to(k)
    actions = ""
    if steps:
        actions = f' data-action="{move_action(steps[0])}" data-steps="{_joined(steps)}"'
    is_open = bool(steps) or (scene.phase == "place" and bool(scene.legal))
    yield (
        f'<g class="region{" open" if is_open else ""}" data-region="{k}" '
        f'data-territories="{region_text(scene.state, k)}"{actions}>'
        f"<title>{escape(region_words(scene.state, k, scene.teams))}</title>"
    )
    yield from _ground(scene, k, is_open)
    came = [sum(mark.clan == clan for mark in _marks_on(scene, region)) for clan in range(CLANS)]
    yield from _paladins(first, size, region["paladins"], came)
    yield "</g>"


def _ground(scene: Scene, k: int, is_open: bool) -> Iterator[str]:
    """Yield a region without its paladins: its outline and marks, the numbers, the castles."""
    region = scene.data["regions"][k]
    first, size = region["territories"][0], len(region["territories"])
    owner = region["owner"]
    outline = region_outline(first, size)
    yield "<g>"
    if owner == NOBODY:
        yield f'<path class="f-land s-edge" stroke-width="2" d="{outline}"/>'
    else:
        look, seams = TEAM_STYLES[owner], ""
        if size > 1:
            seams = (
                f'<path class="line" stroke="{look.line}" stroke-width="1.5" '
                f'stroke-dasharray="3 7" d="{region_seams(first, size)}"/>'
            )
        yield f'<path fill="{look.fill}" stroke="{look.line}" stroke-width="2" d="{outline}"/>'
        yield seams
    if k == 0:
        yield pieces.outline(outline, "s-gold", 11)
    if is_open:
        yield pieces.outline(outline, "s-open", 4)
    if _marks_on(scene, region):
        yield pieces.outline(outline, "s-last", 5, "14 7")
    yield "</g>"
    for territory in range(first, first + size):
        yield "<g>"
        yield from _territory(scene, territory, owner)
        yield "</g>"


def _territory(scene: Scene, territory: int, owner: int) -> Iterator[str]:
    """Yield a territory's number and castle."""
    x, y = polar(NUMBER_RADIUS, angle_of(territory))
    number = territory % TERRITORIES
    if owner == NOBODY:
        yield pieces.text(x, y, number, 16, "f-ink")
        return
    look = TEAM_STYLES[owner]
    yield pieces.text(x, y, number, 16, "number", look.text)
    x, y = polar(CASTLE_RADIUS, angle_of(territory))
    yield pieces.castle(x, y, 17.0, owner)
    if number in scene.new_castles:
        yield pieces.ring(x, y, 25.0, "s-last")


def _marks_on(scene: Scene, region: dict[str, Any]) -> list[Decision]:
    """Return the marked decisions that concern a region, also one that has merged since."""
    there = region["territories"]
    return [mark for mark in scene.marks if mark.territories and mark.territories[0] in there]


def _paladins(first: int, size: int, paladins: Sequence[int], came: Sequence[int]) -> Iterator[str]:
    """Yield a region's paladins: two rows in a single territory, one row along a larger region."""
    clans = [clan for clan in range(CLANS) if paladins[clan]]
    middle = angle_of(first + (size - 1) / 2)
    if size == 1:
        radius = 19.0
        places = _PLACES_IN_ONE[len(clans)]
    else:
        pitch = min(62.0, size * 140.0 / max(1, len(clans)))
        radius = 24.0
        places = tuple(((i - (len(clans) - 1) / 2) * pitch, 0.0) for i in range(len(clans)))
        if math.sin(middle) > 0:  # in the lower half clockwise is right to left: keep reading order
            places = places[::-1]
    for clan, (along, out) in zip(clans, places, strict=True):
        x, y = polar(MIDDLE + out, middle + along / (MIDDLE + out))
        yield from pieces.token(x, y, radius, clan, paladins[clan])
        if came[clan]:
            yield pieces.added(x + radius * 0.8, y - radius * 0.95, came[clan])


# ------------------------------------------------------------------------------------ Emperor


def _emperor(scene: Scene) -> Iterator[str]:
    """Yield the Emperor, and a mark before each region that he can reach."""
    x, y = polar(EMPEROR_RADIUS, _middle_angle(scene.data["regions"][0]))
    at = f"translate({x:.1f} {y:.1f}) scale({EMPEROR_SCALE:g})"
    yield (
        f'<g class="emperor" transform="{at}">'
        "<title>The Emperor</title>"
        f'<g stroke="{GOLD.line}" stroke-width="2" stroke-linejoin="round">'
        f'<path fill="{GOLD.fill}" d="{EMPEROR_ROBE}"/>'
        f'<path fill="#fbe3b5" d="{EMPEROR_HEAD}"/>'
        f'<path fill="{GOLD.fill}" d="{EMPEROR_CROWN}"/></g></g>'
    )
    for k, region in enumerate(scene.data["regions"]):
        if steps := scene.steps_to(k):
            beside = 0.0 if k else 0.19  # he stands before his region himself
            x, y = polar(EMPEROR_RADIUS + 8, _middle_angle(region) + beside)
            size = 20 if len(steps) == 1 else 15
            yield (
                f'<g class="step open" data-region="{k}" data-action="{move_action(steps[0])}">'
                f'<circle class="f-open" cx="{x:.1f}" cy="{y:.1f}" r="20"/>'
                f"{pieces.text(x, y, '+' + _joined(steps), size, 'f-card bold')}"
                f"{pieces.target(x, y, 36, 36)}</g>"
            )


def _walks(scene: Scene) -> Iterator[str]:
    """Yield the ways of the Emperor that are marked, with a dot where each began."""
    for mark in scene.marks:
        if not mark.walk:
            continue
        start, end = (_angle_between(part) for part in (mark.walk, mark.territories))
        turned = (end - start) % math.tau or math.tau
        (x, y), (half_x, half_y), (end_x, end_y) = (
            polar(EMPEROR_RADIUS, start + turned * share) for share in (0, 0.5, 1)
        )
        arc = f"A{EMPEROR_RADIUS:g} {EMPEROR_RADIUS:g} 0 0 1"
        path = f"M{x:.1f} {y:.1f}{arc} {half_x:.1f} {half_y:.1f}{arc} {end_x:.1f} {end_y:.1f}"
        yield (
            f'<g class="walk">{pieces.line(path, "s-last", 4, "1 11")}'
            f'<circle class="f-last" cx="{x:.1f}" cy="{y:.1f}" r="7"/></g>'
        )


def _middle_angle(region: dict[str, Any]) -> float:
    return _angle_between(region["territories"])


def _angle_between(territories: Sequence[int]) -> float:
    """Return the angle of the middle of territories, which are given clockwise."""
    return angle_of(territories[0] + (len(territories) - 1) / 2)


# ------------------------------------------------------------------------------------ middle


def _middle(scene: Scene) -> Iterator[str]:
    """Yield the round, what is due, the last decision, supply and playing order."""
    data, x = scene.data, CENTRE
    if scene.phase == "over":
        head = "game over"
    else:
        head = f"round {data['round']}" if data["round"] else "set-up"
    yield _line(310, head, 21, "f-soft")
    yield '<g class="words">'
    yield from _headline(scene)
    if scene.last:
        name, *teams = (
            pieces.fitting(name, 150, 19)[0]
            for name in (scene.names[scene.last.seat], *scene.teams)
        )
        lines = decision_words(scene.last.before, scene.last.action, name, teams)
        for line, content in enumerate(lines):
            yield _line(412 + 24 * line, *pieces.fitting(content, 400, 19, 16), "f-last")
    yield '</g><g class="supply">'
    yield _line(462, "supply", 20, "f-soft")
    for clan in range(CLANS):
        count, action, at = data["supply"][clan], crown_action(clan), x + (clan - 2) * 72
        yield scene.group("token", [action], f' data-clan="{clan}"')
        yield f"<title>{count} {CLAN_NAMES[clan]} in the supply</title>"
        yield from pieces.token(at, 506, 22, clan, count, always=True)
        if action in scene.legal:
            yield pieces.ring(at, 506, 30, "s-open") + pieces.target(at, 506, 36, 36)
        yield "</g>"
    yield "</g>"
    yield from _order(scene, x, 590)


def _line(y: float, content: str, size: float, kind: str) -> str:
    """Return a line of text in the middle."""
    return pieces.text(CENTRE, y, content, size, kind)


def _headline(scene: Scene) -> Iterator[str]:
    """Yield who won and why, or the player to move and what is due."""
    if scene.phase == "over":
        who, how, why = ending(scene.state, scene.teams)
        yield _line(346, *pieces.fitting(who, 410, 32, 26, 20), "f-ink bold")
        yield _line(380, why or how, 20, "f-ink")
        return
    assert scene.player is not None
    name = pieces.fitting(scene.names[scene.player], 400, 32, 26, 20)
    yield _line(346, *name, "f-ink bold")
    yield _line(382, due(scene.state), 23, "f-ink")


def _order(scene: Scene, x: float, y: float) -> Iterator[str]:
    """Yield a castle of each player's team and the disc played, in playing order."""
    order, played = scene.data["order"], scene.data["discs_played"]
    yield _line(y - 32, "order of play", 20, "f-soft")
    left = x - (len(order) - 1) * 44
    for turn, seat in enumerate(order):
        team, at, disc = scene.rules.team(seat), left + turn * 88, played[seat]
        disc_words = f"disc {disc}" if disc else "no disc yet"
        yield f"<g><title>{escape(scene.names[seat])}: {disc_words}</title>"
        yield pieces.castle(at - 18, y + 2, 15, team)
        yield from pieces.disc(at + 20, y, 18, disc or "-", TEAM_STYLES[team], 1.0)
        if seat == scene.player:
            yield pieces.line(f"M{at - 34:.1f} {y + 30}h72", "s-ink", 4)
        yield "</g>"
        if turn:
            yield pieces.line(f"M{at - 48:.1f} {y - 6}l6 6l-6 6", "s-soft", 2.5)


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


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
    goal = scene.rules.castles_to_win
    label, size = pieces.fitting(scene.names[seat], _left_bar(goal) - 72, 24, 18)
    yield f'<rect {edge} width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}" rx="16"/>'
    yield pieces.castle(34, _NAME, 18, team)
    yield pieces.text(62, _NAME, label, size, "left f-ink bold")
    yield pieces.text(16, _CAPTION, "discs", 16, "left f-soft")
    yield pieces.text(_PANEL_WIDTH - 16, _CAPTION, "reserve", 16, "right f-soft")
    yield pieces.text(_PANEL_WIDTH / 2, _COURT, "court", 16, "f-soft")
    yield from _castles(scene, team)
    for disc in range(1, DISCS + 1):
        yield from _disc(scene, seat, disc)
    yield from _reserve(scene, seat)
    yield from _court(scene, seat)


def _castles(scene: Scene, team: int) -> Iterator[str]:
    """Yield a bar for each castle that is needed to win, a tall one for each in play."""
    goal, built = scene.rules.castles_to_win, scene.data["castles"][team]
    yield f'<g class="castles"><title>{built} of {goal} castles</title>'
    yield pieces.text(_PANEL_WIDTH - 16, _NAME, f"{built}/{goal}", 21, "right f-ink bold")
    for i in range(goal):
        x = _left_bar(goal) + i * 12
        height = 20 if i < built else 7
        kind = "f-ink" if i < built else "f-edge"
        yield pieces.box(x, _NAME + 10 - height, 8, height, f'class="{kind}" rx="2"')
    yield "</g>"


def _left_bar(goal: int) -> float:
    """Return the left end of the bars of ``goal`` castles."""
    return _PANEL_WIDTH - 104 - (goal - 1) * 12


def _disc(scene: Scene, seat: int, disc: int) -> Iterator[str]:
    hand, played = scene.data["discs_in_hand"][seat], scene.data["discs_played"][seat]
    team, to_move = scene.rules.team(seat), seat == scene.player
    x, y, action = 34 + (disc - 1) * 42, _ROW, disc_action(disc)
    where = "in hand" if disc in hand else "played now" if disc == played else "used"
    attributes = f' data-seat="{seat}" data-disc="{disc}"'
    yield scene.group("disc", [action] if to_move else [], attributes)
    yield f"<title>disc {disc}: {where}</title>"
    if disc == played:
        is_marked = any(mark.disc == (seat, disc) for mark in scene.marks)
        kind = "f-last" if is_marked else "f-gold"
        edge = f'stroke="{GOLD.line}" stroke-width="1.5"'
        yield f'<circle class="{kind}" {edge} cx="{x}" cy="{y}" r="21"/>'
    opacity = 1.0 if disc in hand or disc == played else 0.35
    yield from pieces.disc(x, y, 17, disc, TEAM_STYLES[team], opacity)
    if to_move and action in scene.legal:
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
        actions = [court_action(clan)] if placing else []
        yield scene.group("token", actions, f' data-clan="{clan}"', numbered=False)
        yield f"<title>reserve: {counted(reserve[clan], CLAN_NAMES[clan] + ' paladin')}</title>"
        yield from pieces.token(x, _ROW, 17, clan, reserve[clan], always=True)
        if placing and court_action(clan) in scene.legal:
            yield pieces.line(f"M{x - 13:.1f} {_ROW + 25:g}h26", "s-open", 4)
            yield pieces.target(x, _ROW, pitch / 2, 26)
        yield "</g>"
        x += pitch
    if crowns:
        yield f"<g><title>{counted(crowns, 'crown')} to decide</title>"
        yield pieces.piece(x, _ROW, crown_shape(18), GOLD)
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
        f"<title>court of {escape(scene.names[seat])}: {paladin_words(court)}</title>"
    )
    yield pieces.box(12, 116, _PANEL_WIDTH - 24, 172, f'{edge} rx="10"')
    for clan in range(CLANS):
        y = 135 + clan * 33.5
        controlled = control[clan] == seat
        came = sum(mark.court == (seat, clan) for mark in scene.marks)
        yield f'<g class="row" data-clan="{clan}"><g>'
        if came:
            marked = 'class="s-last line" rx="8" stroke-width="3" stroke-dasharray="8 5"'
            yield pieces.box(18, y - 15, _PANEL_WIDTH - 36, 30, marked)
            yield pieces.added(_PANEL_WIDTH - 72, y, came)
        yield "</g>"
        yield pieces.control_marker(36, y, clan, controlled)
        yield from _row(72, y, _PANEL_WIDTH - (170 if came else 130), clan, court[clan])
        kind = "right f-ink bold" if controlled else "right f-soft"
        yield pieces.text(_PANEL_WIDTH - 26, y, court[clan], 19, kind)
        yield "</g>"
    yield "</g>"


def _row(left: float, y: float, width: float, clan: int, count: int) -> Iterator[str]:
    """Yield a clan's paladins in a row with a gap after each fifth, closer where there are many."""
    pitch = min(18.5, width / max(1.0, count + 0.45 * ((count - 1) // 5)))
    look = CLAN_STYLES[clan]
    yield f'<g fill="{look.fill}" stroke="{look.line}" stroke-width="1.5">'
    for i in range(count):
        x = left + pitch * (i + 0.45 * (i // 5))
        yield f'<path transform="translate({x:.1f} {y:.1f})" d="{clan_shape(clan, 7.6)}"/>'
    yield "</g>"
