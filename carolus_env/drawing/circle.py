"""The circle of a drawing: regions, the Emperor, and in the middle what all players share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from carolus_env.drawing import alt_text, pieces
from carolus_env.drawing.scene import Decision, Scene
from carolus_env.drawing.shapes import (
    CASTLE_RADIUS,
    CENTRE,
    EMPEROR_CROWN,
    EMPEROR_HEAD,
    EMPEROR_RADIUS,
    EMPEROR_ROBE,
    EMPEROR_SCALE,
    GOLD,
    MIDDLE,
    NUMBER_RADIUS,
    TEAM_STYLES,
    Point,
    angle_of,
    polar,
    region_outline,
    region_seams,
)
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CLANS,
    NOBODY,
    TERRITORIES,
    crown_action,
    move_action,
)

# Places of a single territory's clans, by their number: along the circle and outwards.
_PLACES_IN_ONE: Final[tuple[tuple[Point, ...], ...]] = (
    (),
    ((0, 0),),
    ((-25, 0), (25, 0)),
    ((-25, 24), (25, 24), (0, -24)),
    ((-26, 24), (26, 24), (-24, -24), (24, -24)),
    ((-49, 26), (0, 26), (49, 26), (-24, -24), (24, -24)),
)


def circle(scene: Scene) -> Iterator[str]:
    """Yield the elements of the circle, from back to front."""
    for k in range(len(scene.data["regions"])):
        yield from _region(scene, k)
    yield from _walks(scene)
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
        f'data-territories="{alt_text.span(region)}"{actions}>'
        f"<title>{escape(alt_text.region_words(scene, k))}</title>"
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
    for territory in range(first, first + size):
        yield from _territory(scene, territory, owner)


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
    """Yield the round, what is due, the last decision, supply, playing order and values."""
    data, x = scene.data, CENTRE
    if scene.phase == "over":
        head = "game over"
    else:
        head = f"round {data['round']}" if data["round"] else "set-up"
    yield _line(310, head, 21, "f-soft")
    yield from _headline(scene)
    if scene.last:
        for line, content in enumerate(alt_text.decision_words(scene, scene.last)):
            yield _line(412 + 24 * line, *pieces.fitting(content, 400, 19, 16), "f-last")
    yield '<g class="supply">'
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
    if scene.values is not None:
        yield from _values(scene, scene.values, x, 652)


def _line(y: float, content: str, size: float, kind: str) -> str:
    """Return a line of text in the middle."""
    return pieces.text(CENTRE, y, content, size, kind)


def _headline(scene: Scene) -> Iterator[str]:
    """Yield who won and why, or the player to move and what is due."""
    if scene.phase == "over":
        yield _line(346, *pieces.fitting(f"{scene.winners} won", 410, 32, 26, 20), "f-ink bold")
        yield _line(380, alt_text.ENDINGS[scene.data["result"]["reason"]], 20, "f-ink")
        return
    assert scene.player is not None
    name = pieces.fitting(scene.names[scene.player], 400, 32, 26, 20)
    yield _line(346, *name, "f-ink bold")
    yield _line(382, alt_text.due(scene), 23, "f-ink")


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


def _values(scene: Scene, values: Sequence[float], x: float, y: float) -> Iterator[str]:
    """Yield a bar of each team's win probability."""
    wide, high = 250.0, 28.0
    total = sum(values) or 1.0
    shares = ", ".join(
        f"{100 * value:.0f} % {name}" for name, value in zip(scene.teams, values, strict=True)
    )
    yield f'<g class="values"><title>expected share of the win: {escape(shares)}</title>'
    at = x - wide / 2
    for team, value in enumerate(values):
        share, look = wide * value / total, TEAM_STYLES[team]
        yield pieces.box(at, y, share, high, f'fill="{look.fill}"')
        if share > 44:
            percent = f"{100 * value:.0f}"
            yield pieces.text(at + share / 2, y + high / 2, percent, 18, "bold", look.text)
        at += share
    yield pieces.box(x - wide / 2, y, wide, high, 'class="s-ink line" rx="3" stroke-width="2"')
    yield from _names_of_values(scene, values, x, y + high + 15)
    yield "</g>"


def _names_of_values(scene: Scene, values: Sequence[float], x: float, y: float) -> Iterator[str]:
    """Yield each team's castle, name and share below the bar."""
    pitch = 290.0 / len(values)
    for team, value in enumerate(values):
        left = x + (team - len(values) / 2) * pitch
        yield pieces.castle(left + 9, y - 1, 8, team)
        label = f"{100 * value:.0f} {scene.teams[team]}"
        yield pieces.text(left + 22, y, *pieces.fitting(label, pitch - 28, 16, 13), "left f-ink")


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
