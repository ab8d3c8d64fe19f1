"""Starts of games: the options that every environment's `reset` takes.

``territories`` (the clan of the paladin on each of the 15 territories) and ``first_player`` (a
seat) fix parts of the set-up; ``position`` (as `carolus_env.records.position.to_dict` gives it) is
any position instead. A position brings its generator, which rolls the dice to come, unless a seed
is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States
from carolus_env.envs.learner import Starts
from carolus_env.records import position

OPTIONS: Final = ("territories", "first_player", "position")
_ONE_GAME: Final = {"territories": 1, "first_player": 0}  # dimensions of a value for one game


def first_game(rules: Rules, options: Mapping[str, Any], drawn: int, seed: int | None) -> States:
    """Return the game that an environment starts, ``(1,)``; rolls that are due are not rolled.

    Args:
        rules: the environment's rules.
        options: a subset of `OPTIONS`; others are ignored.
        drawn: the seed to use without ``seed``; a position with a generator keeps that.
        seed: the seed given to `reset`.

    Raises:
        ValueError: for options that no game can start from (`PositionError` for a position).
    """
    if "position" not in options:
        return engine.new_games(
            rules,
            seed=drawn if seed is None else seed,
            territories=options.get("territories"),
            first_player=options.get("first_player"),
            roll=False,
        )
    if len(options.keys() & set(OPTIONS)) > 1:
        raise ValueError("reset: position excludes territories and first_player")
    description = options["position"]
    if seed is None and not (isinstance(description, Mapping) and "generator" in description):
        seed = drawn
    start = position.from_dict(description, seed=seed)
    if (result := engine.rules_of(start[0])) != rules:
        raise ValueError(f"reset: the position has {result}, this environment {rules}")
    return start


def check_names(options: Mapping[str, Any], known: Sequence[str] = OPTIONS) -> None:
    """Refuse options of other names.

    Raises:
        ValueError: naming the first one and those that are known.
    """
    for name in options:
        if name not in known:
            raise ValueError(f"reset: unknown option {name!r}, known are {', '.join(known)}")


def for_each_game(options: Mapping[str, Any], games: int) -> list[dict[str, Any]]:
    """Return each game's options in a vector environment; a value is one for all or one each.

    Raises:
        ValueError: when there is another number of values than games.
    """
    each: list[dict[str, Any]] = [{} for _ in range(games)]
    for name, value in options.items():
        if name == "position":
            several = isinstance(value, Sequence) and not isinstance(value, str)
        else:
            several = np.ndim(value) > _ONE_GAME[name]
        if several and len(value) != games:
            raise ValueError(
                f"reset: {name} must be one for all games or {games}, got {len(value)}"
            )
        for game in range(games):
            each[game][name] = value[game] if several else value
    return each


def start_from(rules: Rules, each: Sequence[Mapping[str, Any]]) -> Starts:
    """Return the maker of `LearnerGames.reset`'s games, one for each mapping of `OPTIONS`.

    In a position the learner takes the seat of the player to move.

    Raises:
        ValueError: for an unknown option.
    """
    for options in each:
        check_names(options)

    def make(seeds: npt.NDArray[np.uint64], by_user: bool) -> tuple[States, npt.NDArray[np.int64]]:
        games = np.concatenate(
            [
                first_game(rules, options, int(seed), int(seed) if by_user else None)
                for options, seed in zip(each, seeds, strict=True)
            ]
        )
        chance.roll(games)
        if engine.is_over(games).any():
            raise ValueError("reset: the position's game is over")
        placed = np.array(["position" in options for options in each], np.bool_)
        return games, np.where(placed, games["player"].astype(np.int64), -1)

    return make
