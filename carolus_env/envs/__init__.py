"""Environments, of decisions or turns: PettingZoo (``aec``), Gymnasium (``gym``), SB3 (``sb3``).

Here is what they share. Starts of games are options of `reset`: ``territories`` (the clan on each
of the 15 territories) and ``first_player`` (a seat) fix parts of the set-up; ``position`` (as
`carolus_env.records.position.to_dict` gives it) is any position instead, with its own dice to come
unless a seed is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env import engine
from carolus_env.engine import chance, observation
from carolus_env.engine.rules import OPTIONS, Rules
from carolus_env.engine.state import States
from carolus_env.records import position
from carolus_env.system.options import array, one_of
from carolus_env.system.untrusted import unknown

RENDER_FPS: Final = 2


class NotStarted:
    """A stand-in for the game before the first `reset`: any attribute of it is a ResetNeeded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise gymnasium.error.ResetNeeded("call reset first: no game has started")


def rules_for(
    env: Callable[..., Any], players: int, options: Mapping[str, Any], hidden: Container[str] = ()
) -> Rules:
    """Return the rules among an environment's keywords; its users cannot give ``hidden`` ones."""
    own = [key for key in inspect.signature(env).parameters if key != "rules"]
    known = [key for key in dict.fromkeys([*own, *OPTIONS]) if key not in hidden]
    for name in options:
        if name not in known:
            raise TypeError(unknown("unknown option", name, known))
    return Rules(players, **{name: options[name] for name in OPTIONS if name in options})


def check_options(
    illegal: str, observation: str, render_mode: str | None, metadata: Mapping[str, Any]
) -> None:
    """Check the options that environments share."""
    one_of("illegal", illegal, ("raise", "forfeit"))
    one_of("observation", observation, ("float32", "uint8"))
    one_of("render_mode", render_mode, (None, *metadata["render_modes"]))


def observation_box(players: int, dtype: np.dtype[Any]) -> spaces.Box:
    """Return the observation space, with a bound for each entry."""
    highs = observation.highs(players)
    if dtype == np.float32:
        return spaces.Box(np.float32(0), highs * observation.scales(players), dtype=np.float32)
    return spaces.Box(np.uint8(0), highs, dtype=np.uint8)


def with_mask(box: spaces.Box, actions: int) -> spaces.Dict:
    """Return the space of an observation with a mask of legal actions."""
    mask = spaces.Box(0, 1, (actions,), np.int8)
    return spaces.Dict(observation=box, action_mask=mask)


# ------------------------------------------------------------------------------------ starts

RESET_OPTIONS: Final = ("territories", "first_player", "position")
_ONE_GAME: Final = {"territories": 1, "first_player": 0}  # dimensions of a value for one game


def first_game(rules: Rules, options: Mapping[str, Any], drawn: int, seed: int | None) -> States:
    """Return the game that an environment starts, ``(1,)``; rolls that are due are not rolled.

    Without ``seed`` a position keeps its generator, and anything else takes the seed ``drawn``.
    """
    if "position" not in options:
        return engine.new_games(
            rules,
            seed=drawn if seed is None else seed,
            territories=options.get("territories"),
            first_player=options.get("first_player"),
            roll=False,
        )
    if len(options.keys() & set(RESET_OPTIONS)) > 1:
        raise ValueError("reset: position excludes territories and first_player")
    description = options["position"]
    if seed is None and not (isinstance(description, Mapping) and "generator" in description):
        seed = drawn
    start = position.from_dict(description, seed=seed)
    if (result := engine.rules_of(start[0])) != rules:
        raise ValueError(f"reset: the position has {result}, this environment {rules}")
    return start


def check_reset_options(options: Mapping[str, Any], known: Sequence[str] = RESET_OPTIONS) -> None:
    """Refuse options of other names, by a ValueError."""
    for name in options:
        if name not in known:
            raise ValueError(unknown("reset: unknown option", name, known))


def for_each_game(options: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """Return each game's options in a vector environment; a value is one for all or one each."""
    each: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, value in options.items():
        if name == "position":
            several = isinstance(value, Sequence) and not isinstance(value, str)
        else:
            several = array(f"reset: {name}", value).ndim > _ONE_GAME[name]
        if several and len(value) != n:
            raise ValueError(f"reset: {name} must be one for all games or {n}, got {len(value)}")
        for game in range(n):
            each[game][name] = value[game] if several else value
    return each


def games_from(
    rules: Rules, each: Sequence[Mapping[str, Any]], seeds: npt.NDArray[np.uint64], by_user: bool
) -> tuple[States, npt.NDArray[np.int64]]:
    """Return a game for each mapping of `RESET_OPTIONS`, at its first decision, and seats.

    A seat is that of the player to move in a position, else -1. ``by_user`` tells whether a user
    chose the seeds.
    """
    for options in each:
        check_reset_options(options)
    starts = zip(each, seeds.tolist(), strict=True)
    games = np.concatenate(
        [first_game(rules, given, seed, seed if by_user else None) for given, seed in starts]
    )
    chance.roll(games)
    if engine.is_over(games).any():
        raise ValueError("reset: the position's game is over")
    placed = np.array(["position" in options for options in each], np.bool_)
    return games, np.where(placed, games["player"].astype(np.int64), -1)
