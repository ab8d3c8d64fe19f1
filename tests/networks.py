"""What the tests of networks, bots and learners share: small random models, positions to try."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from strategies import history

from carolus_env import bots, engine
from carolus_env.engine.rules import OVER, Rules
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.networks.network import LEAK, LINEAR, NetworkModel, Size, random_weights


@cache
def random_model(
    players: int, policy: bool = False, seed: int = 1, width: int = 24, hidden: int = 8
) -> NetworkModel:
    """Return a model with opinions: all its weights are random, and its values differ."""
    size, random = Size(players, width, hidden, policy), np.random.default_rng(seed)
    weights = random_weights(size, seed)
    for array in weights.values():
        array += random.normal(0, 0.2, array.shape).astype(np.float32)
    weights["sharpness"][:] = 1.5
    return NetworkModel(size, weights, {"seed": seed})


def positions(rules: Rules, seed: int = 5, most: int = 400) -> States:
    """Return positions of random games, rolls that are due included, none of them over."""
    states = history(rules, seed=seed, games=6).ravel()
    states = states[states["phase"] != OVER]
    chosen = np.random.default_rng(seed).permutation(len(states))[:most]
    return states[np.sort(chosen)].copy()


def good_positions(players: int, games: int = 60, seed: int = 2) -> States:
    """Return decisions of every kind between good players, some of them near the end."""
    states, streams = engine.new_games(Rules(players), games, seed=seed), new_streams(seed, games)
    planner, kept = bots.make("planner"), []
    for step in range(400):
        going = ~engine.is_over(states)
        if not going.any():
            break
        states, streams = states[going].copy(), streams[going].copy()
        if step % 11 == 5:
            kept.append(states[step % 7 :: 9].copy())
        engine.step(states, planner.act(states, streams))
    return np.concatenate(kept)


def plain_scores(weights: dict[str, Any], rows: npt.NDArray[Any], features: Any, stage: int) -> Any:
    """Return the scores of one position, by arrays of NumPy or tensors of PyTorch alike."""

    def leaky(x: Any) -> Any:
        return (x > 0) * x + (x <= 0) * float(LEAK) * x

    out, hidden = weights["out"][stage], weights["hidden"][stage]
    sums = weights["rows"][rows].sum(0) + features @ weights["features"] + weights["bias"]
    second = leaky(leaky(sums[:-LINEAR]) @ hidden + weights["hidden_bias"][stage])
    units = len(second)
    return out[:, :units] @ second + out[:, units:] @ sums[-LINEAR:] + weights["out_bias"][stage]


def slope(loss: Any, arrays: dict[str, npt.NDArray[Any]], name: str, at: tuple[int, ...]) -> float:
    """Return the derivative of ``loss(arrays)`` with respect to one number, by differences."""
    ends = []
    for change in (1e-5, -1e-5):
        moved = {**arrays, name: arrays[name].copy()}
        moved[name][at] += change
        ends.append(float(loss(moved)))
    return (ends[0] - ends[1]) / 2e-5
