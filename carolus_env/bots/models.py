"""The networks that bots play by: your own files, or the package's models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from carolus_env import networks
from carolus_env.bots.agent import AgentError
from carolus_env.bots.options import parse
from carolus_env.networks.decisions import DecisionModel
from carolus_env.networks.files import Model, ModelError, file_of
from carolus_env.networks.forward import Weights
from carolus_env.networks.network import NetworkModel
from carolus_env.system.untrusted import unknown

NAMES: Final = ("2p", "3p", "4p")
"""The models of the package, as specs and commands name them."""
FOLDER: Final = Path(networks.__file__).parent / "models"

Kind = Literal["value", "ppo", "decisions"]
"""Purpose of a model of the package: to value positions, as a policy over whole turns, or over
single decisions."""
TYPES: Final[dict[str, type[Model[Any]]]] = {
    "value": NetworkModel,
    "ppo": NetworkModel,
    "decisions": DecisionModel,
}
"""The class of each kind's models."""
Options = TypeVar("Options")


def path_of(kind: Kind, name: str) -> Path:
    """Return the file of a model: of the package's, by ``2p``, ``3p`` or ``4p``, or your own."""
    if name in NAMES:
        return FOLDER / f"{kind}_{name}"
    path = Path(name)
    if path.name == name and not os.path.lexists(file_of(path)):
        raise ModelError(unknown("unknown model", name, NAMES, f"{', '.join(NAMES)} or a file"))
    return path


def find(kind: Kind, name: str) -> NetworkModel:
    """Find a model."""
    model = NetworkModel.load(path_of(kind, name))
    if kind == "ppo" and not model.size.policy:
        raise ModelError(f"{name}: the model has no policy head; the bots value and search use it")
    return model


class Models:
    """The weights that a bot plays by: of one model, or of the package (read when needed)."""

    def __init__(self, kind: Kind, model: NetworkModel | None) -> None:
        self._kind, self._only = kind, None if model is None else model.size.players
        self._weights: dict[int, Weights] = {}
        if model is not None:
            self._weights[model.size.players] = Weights.of(model.weights)

    def weights(self, bot: str, players: int) -> Weights:
        """Return the weights for games of ``players`` players."""
        if players not in self._weights:
            if self._only is not None:
                raise AgentError(bot, f"has a model for {self._only} players, not for {players}")
            self._weights[players] = Weights.of(find(self._kind, f"{players}p").weights)
        return self._weights[players]


def parse_model(
    bot: str, argument: str, options: type[Options], kind: Kind
) -> tuple[NetworkModel | None, Options]:
    """Parse a spec: return the model named before the options, or None, and the options."""
    first, _, rest = argument.partition(",")
    key, equals, _ = first.partition("=")
    if equals and key.strip().isidentifier():  # an option: no model is named
        first, rest = "", argument
    return find(kind, first) if first else None, parse(bot, options, rest)
