"""Policies as files; see `bots.model_files`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import model_files
from carolus_env.bots.model_files import NAMES, Kind, Parts
from carolus_env.bots.neural import network
from carolus_env.bots.neural.network import Size
from carolus_env.engine import observation

FORMAT: Final = "carolus-policy"
VERSION: Final = 2
"""Version of the files. Version 1 held plain perceptrons."""

V1: Final = "v1"
"""In specs: the package's first networks, for any number of players. It will not change."""

SHIPPED: Final = Path(__file__).parent / "models"


@dataclass(frozen=True, eq=False)
class Model:
    """A network's size and weights, and their origin.

    Attributes:
        size: number of players and widths of the network.
        weights: the arrays that `network.shapes` names, float32.
        about: their origin, as JSON can hold it: rules, command, seed, decisions ...

    Raises:
        ModelError: when the weights do not fit a network of that size.
    """

    size: Size
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model_files.check_weights(_kind(), self.size, self.weights)


def save(model: Model, path: str | Path) -> None:
    """Write a model; see `model_files.write`."""
    model_files.write(_kind(), Parts(model.size, model.weights, model.about), path)


def load(path: str | Path) -> Model:
    """Read a model; see `model_files.read`."""
    return Model(*model_files.read(_kind(), path))


def shipped(players: int) -> Model:
    """The package's model for games of ``players`` players; see `model_files.shipped`."""
    return Model(*model_files.shipped(_kind(), players))


def find(name: str) -> Model:
    """The model that a spec names: one of `NAMES`, or a path.

    Raises:
        ModelError: see `load` and `shipped`.
    """
    return shipped(int(name[0])) if name in NAMES else load(name)


def _kind() -> Kind:
    versions: dict[str, str | int] = {
        "format": FORMAT,
        "version": VERSION,
        "network_version": network.VERSION,
        "observation_version": observation.VERSION,
    }
    return Kind(versions, Size, network.shapes, SHIPPED)
