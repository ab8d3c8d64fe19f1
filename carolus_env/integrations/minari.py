"""Minari: recorded games as a data set for offline reinforcement learning.

    >>> from carolus_env.integrations.minari import to_minari
    >>> to_minari("data", "carolus/2p-planner-v0")  # a folder of `carolus dataset`, or records
    >>> minari.load_dataset("carolus/2p-planner-v0").recover_environment()

An episode is one seat's side of one game: its decisions, the legal actions at each, and at the last
one what it was paid. That is what Gymnasium's ``CarolusMagnus-v0`` gives a learner in that seat, so
the environment that a data set names has the spaces, rewards, ends and infos of its episodes. A
game of three players is three episodes, one after the other. Needs ``minari[hdf5]`` and ``pillow``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import ACTIONS, Rules
from carolus_env.engine.state import STATE
from carolus_env.records.arrays import (
    Packed,
    read_games,
    read_packed,
    to_arrays,
)
from carolus_env.system.options import values_text
from carolus_env.system.version import __version__

ENVIRONMENT: Final = "CarolusMagnus-v0"
INSTALL: Final = "pip install 'minari[hdf5]' pillow"
JOB: Final = "job.json"
"""File in a folder of `carolus dataset`: the rules, the agents and the command."""
_AT_ONCE: Final = 500  # games in memory, about 50 MB

Dtype = Literal["uint8", "float32"]


class Episode(NamedTuple):
    """One seat's T decisions in a game.

    Attributes:
        game, seat: numbers of the game and of the seat.
        observations: ``(T + 1, length)`` the seat's observations; the last is of the end.
        masks: ``(T + 1, 95)`` int8, the legal actions; at the end none.
        actions: ``(T,)`` int64.
        rewards: ``(T,)`` float32, 0 but for the last.
        terminations, truncations: ``(T,)`` bool; a game that was cut off at ``max_rounds`` is
            truncated.
    """

    game: int
    seat: int
    observations: npt.NDArray[Any]
    masks: npt.NDArray[np.int8]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float32]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]


def to_minari(
    source: str | os.PathLike[str] | Packed,
    dataset_id: str,
    *,
    observation: Dtype = "uint8",
    opponents: str | None = None,
    progress: Callable[[int], None] | None = None,
    **metadata: Any,
) -> Any:
    """Make a Minari data set of games; it is written game by game, and never held in memory.

    Args:
        source: a folder of `carolus dataset`, a file of records or of packed games, or games.
        dataset_id: such as ``carolus/2p-planner-v0``.
        observation: dtype of the observations.
        opponents: players of the other seats of the environment that `recover_environment` makes.
            None: the folder's first agent, or ``random`` where agents are not known.
        progress: a function of the number of games that are done.
        metadata: other arguments of `minari.create_dataset_from_buffers`: ``author``,
            ``author_email``, ``code_permalink``, ``description``, ``algorithm_name`` ...

    Returns:
        The `minari.MinariDataset`. Metadata of an episode: ``game``, ``seat``, and where agents are
        known ``agent``, by name.

    Raises:
        ImportError: without Minari, saying what to install.
        ValueError: for an id that Minari cannot use or has already, games of several rules, or
            none, and as `read_games`.
        OSError: when a file cannot be read or written.
    """
    import_minari()
    check_id(dataset_id)
    games, job, tables = _read(source)
    rules = rules_of_all(games)
    agents = job.get("agents", [])
    import minari
    from minari.storage import get_dataset_path

    spec = environment_spec(rules, observation, opponents or (agents[0] if agents else "random"))
    options = {
        "algorithm_name": ", ".join(agents) or None,
        "description": _description(rules, len(games.starts), job),
        "requirements": [f"carolus-env=={__version__}"],
        **metadata,
    }
    try:
        buffers = map(_buffer, episodes(games, observation, progress))
        made = minari.create_dataset_from_buffers(dataset_id, buffers, env=spec, **options)
        made.storage.update_episode_metadata(_about(len(games.starts), rules, agents, tables))
        made.storage.update_metadata({"carolus": {"rules": rules.to_dict(), **job}})
    except BaseException:
        shutil.rmtree(get_dataset_path(dataset_id), ignore_errors=True)
        raise
    return made


def _buffer(episode: Episode) -> Any:
    """Return an episode as Minari takes it."""
    from minari.data_collector import EpisodeBuffer

    _, _, observations, masks, *rest = episode
    names = ("actions", "rewards", "terminations", "truncations")
    options: dict[str, Any] = dict(zip(names, rest, strict=True))
    return EpisodeBuffer(observations=observations, infos={"action_mask": masks}, **options)


def _about(
    games: int, rules: Rules, agents: list[str], tables: npt.NDArray[np.uint8] | None
) -> Iterator[dict[str, Any]]:
    """Yield the metadata of each episode."""
    for game in range(games):
        for seat in range(rules.players):
            known = {} if tables is None else {"agent": agents[tables[game, seat]]}
            yield {"game": game, "seat": seat, **known}


def import_minari() -> None:
    """Raise ImportError, saying what to install, where Minari cannot write data sets."""
    try:
        import h5py  # noqa: F401
        import minari  # noqa: F401
        import PIL  # noqa: F401 (Minari's storage imports it, without asking for it)
    except ImportError as error:
        raise ImportError(f"a Minari data set needs Minari ({error}): {INSTALL}") from error


def check_id(dataset_id: str) -> None:
    """Check that Minari can make a data set of this id.

    Raises:
        ValueError: for an id without a version or of another form, or that exists.
    """
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage import get_dataset_path

    try:
        parse_dataset_id(dataset_id)
    except (ValueError, TypeError):  # the latter without a version
        raise ValueError(
            f"a Minari id is such as carolus/2p-planner-v0, with a version, got {dataset_id!r}"
        ) from None
    if (path := get_dataset_path(dataset_id)).exists():
        raise ValueError(f"the Minari data set {dataset_id} exists, in {path}")


def environment_spec(rules: Rules, observation: Dtype, opponents: str) -> Any:
    """Return Gymnasium's spec of ``CarolusMagnus-v0`` with these rules and opponents."""
    spec = gymnasium.spec(ENVIRONMENT)
    kwargs = {**rules.to_dict(), "observation": observation, "opponents": opponents}
    return type(spec)(spec.id, entry_point=spec.entry_point, kwargs=kwargs)


# ------------------------------------------------------------------------------------ episodes


def episodes(
    games: Packed, observation: Dtype = "uint8", progress: Callable[[int], None] | None = None
) -> Iterator[Episode]:
    """Yield each seat's side of each game, in order, a few hundred games in memory at a time.

    Raises:
        ValueError: see `to_arrays`.
    """
    players = int(games.starts["players"][0]) if len(games.starts) else 0
    for first in range(0, len(games.starts), _AT_ONCE):
        part = _slice(games, first, min(first + _AT_ONCE, len(games.starts)))
        ends = np.zeros(len(part.starts), STATE)
        data = to_arrays(part, observation=observation, ends=ends)
        assert data.observations is not None and data.masks is not None
        bounds = np.searchsorted(data.games, np.arange(len(part.starts) + 1))
        viewers = np.tile(np.arange(players), len(ends))
        finals = observe(ends.repeat(players), viewers, dtype=observation)
        finals = finals.reshape(len(ends), players, 1, -1)
        nothing = np.zeros((1, ACTIONS), np.int8)
        for game in range(len(ends)):
            game_rows = slice(bounds[game], bounds[game + 1])
            for seat in range(players):
                rows = game_rows.start + np.flatnonzero(data.seats[game_rows] == seat)
                done = data.dones[rows]
                cut_off = data.discounts[rows] != 0
                yield Episode(
                    first + game,
                    seat,
                    np.concatenate([data.observations[rows], finals[game, seat]]),
                    np.concatenate([data.masks[rows], nothing]),
                    data.actions[rows].astype(np.int64),
                    np.where(done, data.returns[rows], np.float32(0)),
                    done & ~cut_off,
                    done & cut_off,
                )
        if progress is not None:
            progress(first + len(ends))


def rules_of_all(games: Packed) -> Rules:
    """Return the rules of all games.

    Raises:
        ValueError: when there are several, or no games.
    """
    result = {engine.rules_of(state) for state in games.starts}
    if len(result) != 1:
        raise ValueError(f"a data set has games of one set of rules, got {len(result)}: {result}")
    return result.pop()


def _slice(games: Packed, first: int, last: int) -> Packed:
    """Return the games from ``first`` to before ``last``."""
    begin, end = games.bounds[first], games.bounds[last]
    return Packed(
        games.starts[first:last],
        games.events[begin:end],
        games.bounds[first : last + 1] - begin,
    )


def _read(
    source: str | os.PathLike[str] | Packed,
) -> tuple[Packed, dict[str, Any], npt.NDArray[np.uint8] | None]:
    """Read the games, metadata on how they were made, and the agent in each seat by number."""
    if isinstance(source, Packed):
        return source, {}, None
    path = Path(source)
    if not path.is_dir():
        return read_games(path), {}, None
    games, job = read_packed(path / "games.safetensors"), json.loads((path / JOB).read_text())
    return games, job, np.load(path / "tables.npy", allow_pickle=False)


def _description(rules: Rules, games: int, job: Mapping[str, Any]) -> str:
    """Return a description of the data set, for people."""
    lines = [
        f"{games:,} games of Carolus Magnus; an episode is one seat's side of a game, and the "
        f"{rules.players} episodes of a game follow each other.",
        "Legal actions are in infos['action_mask']; the reward is 0 until a seat's last decision, "
        "then the payoff.",
        f"Rules: {values_text(rules.to_dict())}.",
    ]
    if "command" in job:
        lines.append(f"Played by: {job['command']}")
    if (size := job.get("games_a_deal", 1)) > 1:
        lines.append(
            f"The {size} games of a deal, one after the other, have the same set-up and dice: "
            "split by whole deals."
        )
    return "\n".join(lines)
