"""A folder of `carolus dataset` as a data set of Minari.

    carolus dataset planner --games 4000 --out data
    python minari_dataset.py data carolus/2p-planner-v0

An episode is one seat's side of one game, as Gymnasium's ``CarolusMagnus-v0`` gives it to a learner
in that seat: the payoff is the reward of its last decision. The arrays have no position after that,
so the last observation stands twice, the second time without legal actions. Needs
``minari[hdf5]`` and ``pillow``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer

from carolus_env.records.arrays import Arrays, load_arrays


def episodes(data: Arrays) -> Iterator[Any]:
    """Yield the decisions of each seat in each game."""
    assert data.observations is not None and data.masks is not None
    games = np.searchsorted(data.games, np.arange(int(data.games[-1]) + 2))
    for game in range(len(games) - 1):
        rows = np.arange(games[game], games[game + 1])
        for seat in range(int(data.seats[rows].max()) + 1):
            own = rows[data.seats[rows] == seat]
            done, going = data.dones[own], data.discounts[own] != 0
            masks = data.masks[own]
            yield EpisodeBuffer(
                observations=data.observations[[*own, own[-1]]],
                actions=data.actions[own].astype(np.int64),
                rewards=np.where(done, data.returns[own], np.float32(0)),
                terminations=done & ~going,
                truncations=done & going,  # cut off at ``max_rounds``
                infos={"action_mask": np.concatenate([masks, np.zeros_like(masks[:1])])},
            )


def main() -> None:
    """Make the data set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of `carolus dataset`")
    parser.add_argument("id", help="such as carolus/2p-planner-v0")
    options = parser.parse_args()
    data = load_arrays(options.folder)
    job = json.loads((options.folder / "job.json").read_text())
    agents, spec = job["agents"], deepcopy(gymnasium.spec("CarolusMagnus-v0"))
    dtype = str(getattr(data.observations, "dtype", ""))
    spec.kwargs |= {**job["rules"], "observation": dtype, "opponents": agents[0]}
    made = minari.create_dataset_from_buffers(
        options.id,
        episodes(data),
        env=spec,
        algorithm_name=", ".join(agents),
        description=(options.folder / "README.md").read_text(),
        requirements=["carolus-env"],
    )
    tables = np.load(options.folder / "tables.npy")
    made.storage.update_episode_metadata(
        {"game": game, "seat": seat, "agent": agents[agent]}
        for (game, seat), agent in np.ndenumerate(tables)
    )
    print(f"{made.id}: {made.total_episodes:,} episodes")


if __name__ == "__main__":
    main()
