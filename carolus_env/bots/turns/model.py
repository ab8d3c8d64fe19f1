"""Policies over whole turns as files; see `bots.model_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from carolus_env.bots.model_files import Kind, Trained
from carolus_env.bots.turns import network
from carolus_env.bots.value.network import Size

FORMAT: Final = "carolus-turns"
VERSION: Final = 1
"""Version of the files."""

SHIPPED: Final = Path(__file__).parent / "models"


class TurnModel(Trained[Size]):
    """A policy over whole turns, with a value; see `Trained`."""

    @classmethod
    def kind(cls) -> Kind:
        versions: dict[str, str | int] = {
            "format": FORMAT,
            "version": VERSION,
            "network_version": network.VERSION,
        }
        return Kind(versions, Size, network.shapes, SHIPPED)
