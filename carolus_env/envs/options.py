"""Options that the environments share: rules, illegal actions, dtypes, render modes, spaces."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from gymnasium import spaces

from carolus_env.engine import observation
from carolus_env.engine.rules import OPTIONS, RuleOptions, Rules
from carolus_env.system.options import one_of

ILLEGAL = ("raise", "forfeit")
DTYPES = ("float32", "uint8")
RENDER_MODES = (None, "ansi", "rgb_array", "human")
RENDER_FPS = 2


def rules_for(env: type, players: int, options: RuleOptions) -> Rules:
    """Return the rules that the keywords of an environment name.

    Args:
        env: the environment's class, whose own keywords an error names too.
        players: 2, 3 or 4.
        options: the keywords that are not the environment's own.

    Raises:
        TypeError: for an unknown option, naming it and the known ones.
        ValueError: for rules that no game can have.
    """
    for name in options:
        if name not in OPTIONS:
            own = [key for key in inspect.signature(env).parameters if key != "rules"]
            known = ", ".join(dict.fromkeys([*own, *OPTIONS]))
            raise TypeError(f"{env.__name__} has no option {name!r}, known are {known}")
    return Rules(players, **options)


def check_options(
    illegal: str,
    observation: str,
    render_mode: str | None,
    render_modes: tuple[str | None, ...] = RENDER_MODES,
) -> None:
    """Check the options that environments share.

    Raises:
        ValueError: naming the option, its value and what is allowed.
    """
    for name, value, allowed in (
        ("illegal", illegal, ILLEGAL),
        ("observation", observation, DTYPES),
        ("render_mode", render_mode, render_modes),
    ):
        one_of(name, value, allowed)


def observation_box(players: int, dtype: np.dtype[Any]) -> spaces.Box:
    """Return the observation space, with a bound for each entry."""
    highs = observation.highs(players)
    if dtype == np.float32:
        return spaces.Box(np.float32(0), highs * observation.scales(players), dtype=np.float32)
    return spaces.Box(np.uint8(0), highs, dtype=np.uint8)
