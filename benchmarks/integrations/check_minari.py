# requires: minari[hdf5]==0.5.4 pillow==13.0.0
"""Minari: data sets of `carolus dataset` open, and their environment gives what they hold."""

from __future__ import annotations

import os
import resource
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from checking import Checks, run

os.environ["MINARI_DATASETS_PATH"] = str(Path("sets").absolute())
import minari

from carolus_env.integrations.minari import to_minari
from carolus_env.records.arrays import Packed, load_arrays, read_packed

warnings.filterwarnings("ignore", module="minari")


def made(players: int, games: int, name: str, *agents: str, observation: str = "uint8") -> str:
    """A Minari data set by the command; the folder has its name."""
    words = ["--players", players, "--games", games, "--out", name, "--observation", observation]
    run("-m", "carolus_env", "dataset", *agents, *words, "--minari", f"carolus/{name}-v0")
    return f"carolus/{name}-v0"


def same_as_arrays(data: minari.MinariDataset, folder: str) -> bool:
    """Whether the episodes hold the rows of the folder's arrays, and the end of each game."""
    arrays = load_arrays(folder)
    about = list(data.storage.get_episode_metadata(data.episode_indices))
    for episode, where in zip(data, about, strict=True):
        rows = (arrays.games == where["game"]) & (arrays.seats == where["seat"])
        steps = int(rows.sum())
        for found, wanted in (
            (episode.observations[:steps], arrays.observations[rows]),
            (episode.infos["action_mask"][:steps], arrays.masks[rows]),
            (episode.actions, arrays.actions[rows]),
            (episode.rewards[-1:], arrays.returns[rows][-1:]),
        ):
            if not np.array_equal(found, wanted):
                return False
        if len(episode.observations) != steps + 1 or episode.rewards[:-1].any():
            return False
    return True


def as_an_episode(data: minari.MinariDataset) -> dict[str, Any]:
    """What the recovered environment gives in one game, in the form of an episode."""
    env = data.recover_environment()
    seen, info = env.reset(seed=3)
    random = np.random.default_rng(1)
    found: dict[str, Any] = {"observations": [seen], "masks": [info["action_mask"]], "rewards": []}
    ended = False
    while not ended:
        action = random.choice(np.flatnonzero(info["action_mask"]))
        seen, reward, terminated, truncated, info = env.step(action)
        found["observations"].append(seen)
        found["masks"].append(info["action_mask"])
        found["rewards"].append(reward)
        ended = terminated or truncated
    return found


def main() -> None:
    """All checks."""
    checks = Checks("Minari", minari.__version__)
    names = {}
    for players, dtype in ((2, "uint8"), (3, "float32"), (4, "uint8")):
        name = f"{players}p-greedy"
        names[players] = made(players, 24, name, "greedy", "random", observation=dtype)
        data = minari.load_dataset(names[players])
        holds = same_as_arrays(data, name)
        checks.passed(f"{players} players: episodes are the arrays' rows", holds, "they differ")
        paid = np.array([episode.rewards.sum() for episode in data]).reshape(-1, players)
        checks.passed("rewards sum to zero", np.allclose(paid.sum(axis=1), 0) and paid.any(), "")
        for episode in data.sample_episodes(5):
            legal = np.take_along_axis(
                episode.infos["action_mask"][:-1], episode.actions[:, None], axis=1
            )
            holds = (
                legal.all()
                and not episode.infos["action_mask"][-1].any()
                and episode.terminations[-1]
                and data.observation_space.contains(episode.observations[0])
                and data.action_space.contains(episode.actions[0])
            )
            checks.passed("sampled episodes are legal and end", holds, str(episode))
        there = as_an_episode(data)
        env = data.recover_environment()
        seen, mask = np.array(there["observations"]), np.array(there["masks"])
        holds = (
            env.observation_space == data.observation_space
            and env.action_space == data.action_space
            and seen.dtype == data[0].observations.dtype
            and mask.dtype == data[0].infos["action_mask"].dtype
            and not mask[-1].any()
            and not any(there["rewards"][:-1])
        )
        checks.passed("its environment gives such episodes", holds, "they differ")

    agents = {row["agent"] for row in data.storage.get_episode_metadata(range(len(data)))}
    checks.passed("agents are named", agents == {"greedy", "random"}, str(agents))

    folder = Path("2p-greedy")
    games = read_packed(folder / "games.safetensors")
    many = Packed.joined([games] * 50)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun, cpu = time.perf_counter(), time.process_time()
    data = to_minari(many, "carolus/2p-many-v0")
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    size = data.storage.get_size()
    rate = (
        f"{data.total_steps / cpu:,.0f} decisions a CPU second ({seconds:.0f} s), "
        f"{1e6 * size / data.total_steps:,.0f} bytes each"
    )
    checks.passed(
        "written game by game", grown < 200, f"memory grew by {grown:.0f} MB", result=rate
    )
    holds = data.total_episodes == 2 * len(many.starts)
    checks.passed("players", holds, "episodes are missing", result="2, 3, 4")

    try:
        to_minari(folder, "carolus/2p-many-v0")
    except ValueError as error:
        checks.passed("a data set is not overwritten", "exists" in str(error), str(error))
    broken = many._replace(events=np.zeros_like(many.events))
    try:
        to_minari(broken, "carolus/2p-broken-v0")
    except ValueError:
        gone = "carolus/2p-broken-v0" not in minari.list_local_datasets()
        checks.passed("a failure leaves nothing", gone, "a part of it is left")
    checks.report(
        limits="one seat's side of a game is an episode; another format of storage than HDF5 "
        "has a folder for each",
        lines=1,
    )
    shutil.rmtree("sets")


if __name__ == "__main__":
    main()
