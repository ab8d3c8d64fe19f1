"""Policies over whole turns as files; see `bots.model_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from carolus_env.bots.model_files import NAMES, Kind, Trained, format_of
from carolus_env.bots.neural import model as single
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


def decides_singly(name: str) -> bool:
    """Whether a model of ``ppo`` is a policy over single decisions (`bots.neural`).

    Args:
        name: one of `NAMES` or nothing, which name the package's policies over whole turns; ``v1``,
            its first policies, over single decisions; or a path.

    Raises:
        ModelError: when there is no model at that path.
    """
    if not name or name in NAMES:
        return False
    return name == single.V1 or format_of(name, (FORMAT, single.FORMAT)) == single.FORMAT
