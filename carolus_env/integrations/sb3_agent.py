"""``sb3`` plays what ``train.py --learner sb3`` learnt; it needs NumPy alone.

A model is the actor of Stable-Baselines3's ``MlpPolicy`` (`MlpModel`): layers with tanh, then one
output for each action. The illegal ones are masked, and the highest of the others is played.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent
from carolus_env.bots.agent import AgentError
from carolus_env.engine import observation
from carolus_env.engine.rules import ACTIONS, DISCS, MAX_PLAYERS
from carolus_env.envs import candidates
from carolus_env.envs.turns import Turns
from carolus_env.integrations import agents
from carolus_env.networks.files import Model
from carolus_env.planning.plans import MOST_PLANS
from carolus_env.system.options import whole_number

WIDTH_LIMITS: Final = (1, 1024)
LAYERS_LIMITS: Final = (1, 8)
"""The lowest and the highest `Size.width` and `Size.layers`."""


@dataclass(frozen=True)
class Size:
    """The sizes of an actor.

    Attributes:
        players: number of players, 2 to 4.
        candidates: candidates where actions are whole turns; 0: actions are single decisions.
        width: units of each hidden layer.
        layers: number of hidden layers.

    Raises:
        ValueError: for a size that no actor can have.
    """

    players: int
    candidates: int
    width: int
    layers: int

    def __post_init__(self) -> None:
        for name, (low, high) in (
            ("players", (2, MAX_PLAYERS)),
            ("width", WIDTH_LIMITS),
            ("layers", LAYERS_LIMITS),
        ):
            whole_number(name, getattr(self, name), low, high)
        if self.candidates and not DISCS <= self.candidates <= MOST_PLANS:
            raise ValueError(
                f"candidates must be 0 or from {DISCS} to {MOST_PLANS}, got {self.candidates}"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of weights, as PyTorch has them: outputs first."""
        inputs, actions = observation.length(self.players), ACTIONS
        if self.candidates:
            inputs, actions = self.candidates * candidates.length(self.players), self.candidates
        result: dict[str, tuple[int, ...]] = {}
        for layer in range(self.layers):
            result[f"hidden.{layer}.weight"] = self.width, inputs
            result[f"hidden.{layer}.bias"] = (self.width,)
            inputs = self.width
        return {**result, "action.weight": (actions, inputs), "action.bias": (actions,)}


class MlpModel(Model[Size]):
    """The actor of an ``MlpPolicy`` as files; see `Model`."""

    format: ClassVar[str] = "carolus-sb3"
    version: ClassVar[int] = 1
    size_type: ClassVar[type] = Size

    @classmethod
    def versions(cls) -> dict[str, str | int]:
        """Return the format and the versions, those of the observations included."""
        of_inputs = {
            "observation_version": observation.VERSION,
            "candidates_version": candidates.VERSION,
        }
        return {**super().versions(), **of_inputs}


def likeliest(
    model: MlpModel, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the likeliest legal action of each row.

    Args:
        model: the actor.
        observations: ``(N, ...)`` float32, flattened here.
        masks: ``(N, actions)`` bool, the legal actions.

    Returns:
        ``(N,)`` actions.
    """
    hidden, weights = observations.reshape(len(observations), -1), model.weights
    for layer in range(model.size.layers):
        name = f"hidden.{layer}"
        hidden = np.tanh(hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])
    logits = hidden @ weights["action.weight"].T + weights["action.bias"]
    return np.where(masks, logits, -np.inf).argmax(axis=1)


def agent_of(model: MlpModel) -> Agent:
    """Return the agent that plays a model."""
    turns = Turns(model.size.candidates) if model.size.candidates else None
    return agents.agent_of(partial(likeliest, model), model.size.players, turns)


def make_sb3(argument: str) -> Agent:
    """Make the agent of ``sb3:PATH``.

    Raises:
        AgentError: without a path.
        ModelError: for a model that cannot be read or does not fit.
    """
    if not argument:
        raise AgentError("sb3", "needs the path of a model, as in sb3:runs/mine/best")
    return agent_of(MlpModel.load(argument))


def actor(state: Mapping[str, Any], layers: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return the weights of the actor in the state dict of an ``MlpPolicy``."""
    names = {f"hidden.{n}": f"mlp_extractor.policy_net.{2 * n}" for n in range(layers)}
    names["action"] = "action_net"
    return {
        f"{name}.{kind}": state[f"{module}.{kind}"].cpu().numpy().copy()
        for name, module in names.items()
        for kind in ("weight", "bias")
    }
