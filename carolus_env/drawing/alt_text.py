"""A board in words, for screen readers and tooltips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from carolus_env import engine
from carolus_env.drawing import pieces
from carolus_env.drawing.scene import Decision, Scene
from carolus_env.engine.rules import CLAN_NAMES, CLANS, NOBODY, action_parts
from carolus_env.engine.state import single
from carolus_env.notation.vocabulary import castle_words, counted, span_text

ENDINGS: Final = {
    "castles": "with as many castles as it takes",
    "regions": "fewer than four regions are left",
    "max_rounds": "the last round is over",
    "forfeit": "an illegal action was played",
}
"""Reasons for the end of a game, in words."""


def title(scene: Scene) -> str:
    """Return the round and what is due, or who won."""
    if scene.phase == "over":
        return f"{scene.winners} won ({scene.data['result']['reason']})"
    return f"round {scene.data['round']}, {scene.names[scene.player or 0]} {due(scene)}"


def due(scene: Scene) -> str:
    """Return the next action of the player to move, in words."""
    data = scene.data
    if scene.phase == "place":
        return f"plays {counted(data['placements_left'], 'paladin')}"
    if scene.phase == "move":
        return "moves the Emperor"
    if scene.phase == "roll":
        return f"rolls {counted(data['dice_due'], 'die')}"
    return "plays a disc" if scene.phase == "disc" else "decides a crown"


def decision_words(scene: Scene, decision: Decision) -> list[str]:
    """Return a decision in one line, and its effects, if any, in another."""
    kind, number, clan, _ = action_parts(decision.action)
    name = _short(scene.names[decision.seat])
    where = (
        span_text(decision.territories[0], decision.territories[-1]) if decision.territories else ""
    )
    if kind == "disc":
        return [f"{name} plays disc {number}"]
    if kind == "crown":
        return [f"{name} takes {CLAN_NAMES[clan]} for a crown"]
    after = single(decision.before)
    engine.step(after, np.array([decision.action]), roll=False)
    if kind == "place":
        gained = after["control"][0, clan] == decision.seat != decision.before["control"][clan]
        said = [f"{name} places {CLAN_NAMES[clan]} {f'in {where}' if where else 'at court'}"]
        return said + [f"and gains control of {CLAN_NAMES[clan]}"] * bool(gained)
    owner = int(after["region_owner"][0, after["emperor"][0]])
    at = (int(decision.before["emperor"]) + number) % int(decision.before["regions"])
    then, castles = (int(decision.before[f"region_{what}"][at]) for what in ("owner", "castles"))
    changed = castle_words(then, owner, castles, [_short(team) for team in scene.teams])
    return [f"{name} moves the Emperor to {where}", changed]


def _short(name: str) -> str:
    """Return a name cut to fit before its text."""
    return pieces.fitting(name, 150, 19)[0]


def description(scene: Scene) -> list[str]:
    """Return a sentence for each region, clockwise from the Emperor's, then one for each seat."""
    regions = [region_words(scene, k) for k in range(len(scene.data["regions"]))]
    return regions + [_seat_words(scene, seat) for seat in range(scene.rules.players)]


def region_words(scene: Scene, k: int) -> str:
    """Return region ``k`` in words: its territories, paladins, castles, and the Emperor."""
    region = scene.data["regions"][k]
    word = "territory" if len(region["territories"]) == 1 else "territories"
    words = f"{word} {span(region)}: {paladin_words(region['paladins'])}"
    if region["owner"] != NOBODY:
        words += f", {counted(region['castles'], 'castle')} of {scene.teams[region['owner']]}"
    return words + (", the Emperor" if k == 0 else "")


def _seat_words(scene: Scene, seat: int) -> str:
    data = scene.data
    clans = [CLAN_NAMES[clan] for clan in range(CLANS) if data["control"][clan] == seat]
    castles = data["castles"][scene.rules.team(seat)]
    return (
        f"{scene.names[seat]}, {counted(castles, 'castle')} of {scene.rules.castles_to_win}: "
        f"controls {', '.join(clans) or 'no clan'}; court {paladin_words(data['courts'][seat])}; "
        f"reserve {paladin_words(data['reserves'][seat])}"
    )


def span(region: dict[str, Any]) -> str:
    """Return the territories of a region: ``7``, ``7-9``, ``14-0``."""
    return span_text(region["territories"][0], region["territories"][-1])


def paladin_words(counts: Iterable[int]) -> str:
    """Return ``2 red, 1 blue``; ``none`` where there are none."""
    words = [f"{n} {CLAN_NAMES[clan]}" for clan, n in enumerate(counts) if n]
    return ", ".join(words) or "none"
