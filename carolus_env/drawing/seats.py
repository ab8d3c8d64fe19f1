"""The players' panels of a drawing: castles, discs, reserve and court of each seat."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from carolus_env.drawing import alt_text, pieces
from carolus_env.drawing.scene import Scene
from carolus_env.drawing.shapes import CLAN_STYLES, GOLD, TEAM_STYLES, clan_shape, crown_shape
from carolus_env.engine.rules import CLAN_NAMES, CLANS, DISCS, court_action, disc_action
from carolus_env.notation.vocabulary import counted

PANEL_WIDTH: Final = 491.0
PANEL_HEIGHT: Final = 300.0
_NAME, _CAPTION, _ROW, _COURT = 27.0, 53.0, 82.0, 107.0
"""Heights of the name, of the captions of the row of discs and paladins, of that row, and of the
caption of the court."""


def panel(scene: Scene, seat: int) -> Iterator[str]:
    """Yield the elements of a seat's panel, from its top left corner on."""
    team, result = scene.rules.team(seat), scene.data["result"]
    edge = 'class="f-card"'
    if seat == scene.player:
        edge = 'class="f-card s-ink" stroke-width="5"'
    elif result and team in result["winners"]:
        edge = 'class="f-card s-gold" stroke-width="9"'
        around_it = f'fill="none" stroke="{GOLD.line}" stroke-width="12" rx="16"'
        yield pieces.box(0, 0, PANEL_WIDTH, PANEL_HEIGHT, around_it)
    goal = scene.rules.castles_to_win
    label, size = pieces.fitting(scene.names[seat], _left_bar(goal) - 72, 24, 18)
    yield f'<rect {edge} width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="16"/>'
    yield pieces.castle(34, _NAME, 18, team)
    yield pieces.text(62, _NAME, label, size, "left f-ink bold")
    yield pieces.text(16, _CAPTION, "discs", 16, "left f-soft")
    yield pieces.text(PANEL_WIDTH - 16, _CAPTION, "reserve", 16, "right f-soft")
    yield pieces.text(PANEL_WIDTH / 2, _COURT, "court", 16, "f-soft")
    yield from _castles(scene, team)
    for disc in range(1, DISCS + 1):
        yield from _disc(scene, seat, disc)
    yield from _reserve(scene, seat)
    yield from _court(scene, seat)


def _castles(scene: Scene, team: int) -> Iterator[str]:
    """Yield a bar for each castle that is needed to win, a tall one for each in play."""
    goal, built = scene.rules.castles_to_win, scene.data["castles"][team]
    yield f'<g class="castles"><title>{built} of {goal} castles</title>'
    yield pieces.text(PANEL_WIDTH - 16, _NAME, f"{built}/{goal}", 21, "right f-ink bold")
    for i in range(goal):
        x = _left_bar(goal) + i * 12
        height = 20 if i < built else 7
        kind = "f-ink" if i < built else "f-edge"
        yield pieces.box(x, _NAME + 10 - height, 8, height, f'class="{kind}" rx="2"')
    yield "</g>"


def _left_bar(goal: int) -> float:
    """Return the left end of the bars of ``goal`` castles."""
    return PANEL_WIDTH - 104 - (goal - 1) * 12


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
    x = PANEL_WIDTH - 30 - pitch * (len(held) + (crowns > 0) - 1)
    placing = scene.phase == "place" and seat == scene.player
    yield f'<g class="reserve" data-seat="{seat}">'
    if not held and not crowns:
        yield pieces.text(PANEL_WIDTH - 16, _ROW, "no paladins", 16, "right f-soft")
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
        f"<title>court of {escape(scene.names[seat])}: {alt_text.paladin_words(court)}</title>"
    )
    yield pieces.box(12, 116, PANEL_WIDTH - 24, 172, f'{edge} rx="10"')
    for clan in range(CLANS):
        y = 135 + clan * 33.5
        controlled = control[clan] == seat
        came = sum(mark.court == (seat, clan) for mark in scene.marks)
        yield f'<g class="row" data-clan="{clan}">'
        if came:
            marked = 'class="s-last line" rx="8" stroke-width="3" stroke-dasharray="8 5"'
            yield pieces.box(18, y - 15, PANEL_WIDTH - 36, 30, marked)
            yield pieces.added(PANEL_WIDTH - 72, y, came)
        yield pieces.control_marker(36, y, clan, controlled)
        yield from _row(72, y, PANEL_WIDTH - (170 if came else 130), clan, court[clan])
        kind = "right f-ink bold" if controlled else "right f-soft"
        yield pieces.text(PANEL_WIDTH - 26, y, court[clan], 19, kind)
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
