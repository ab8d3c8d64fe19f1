"""Policies as files; see `bots.model_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from carolus_env.bots.model_files import Kind, Trained
from carolus_env.bots.neural import network
from carolus_env.bots.neural.network import Size
from carolus_env.engine import observation

FORMAT: Final = "carolus-policy"
VERSION: Final = 2
"""Version of the files. Version 1 held plain perceptrons."""

V1: Final = "v1"
"""In specs: the package's first networks, for any number of players. It will not change."""

SHIPPED: Final = Path(__file__).parent / "models"


class Model(Trained[Size]):
    """A network with a policy and a value; see `Trained`."""

    @classmethod
    def kind(cls) -> Kind:
        versions: dict[str, str | int] = {
            "format": FORMAT,
            "version": VERSION,
            "network_version": network.VERSION,
            "observation_version": observation.VERSION,
        }
        return Kind(versions, Size, network.shapes, SHIPPED)


save, load, find = Model.save, Model.load, Model.find
shipped = Model.shipped
