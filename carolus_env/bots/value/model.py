"""Value networks as files; see `bots.model_files`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import model_files
from carolus_env.bots.model_files import NAMES, Kind, Parts
from carolus_env.bots.value import network
from carolus_env.bots.value.network import Size

FORMAT: Final = "carolus-value"
VERSION: Final = 1
"""Version of the files."""

SHIPPED: Final = Path(__file__).parent / "models"


@dataclass(frozen=True, eq=False)
class ValueModel:
    """A value network's size and weights, and their origin.

    Attributes:
        size: number of players and widths of the network.
        weights: the arrays that `network.shapes` names, float32.
        about: their origin, as JSON can hold it: rules, command, seed, games ...

    Raises:
        ModelError: when the weights do not fit a network of that size.
    """

    size: Size
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model_files.check_weights(_KIND, self.size, self.weights)


def save(model: ValueModel, path: str | Path) -> None:
    """Write a model; see `model_files.write`."""
    model_files.write(_KIND, Parts(model.size, model.weights, model.about), path)


def load(path: str | Path) -> ValueModel:
    """Read a model; see `model_files.read`."""
    return ValueModel(*model_files.read(_KIND, path))


def shipped(players: int) -> ValueModel:
    """The package's model for games of ``players`` players; see `model_files.shipped`."""
    return ValueModel(*model_files.shipped(_KIND, players))


def find(name: str) -> ValueModel:
    """The model that a spec names: one of `NAMES`, or a path.

    Raises:
        ModelError: see `load` and `shipped`.
    """
    return shipped(int(name[0])) if name in NAMES else load(name)


_KIND: Final = Kind(
    {"format": FORMAT, "version": VERSION, "network_version": network.VERSION},
    Size,
    network.shapes,
    SHIPPED,
)
