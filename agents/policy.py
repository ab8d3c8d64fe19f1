"""A trained policy as a file and as an agent.

A policy is two files side by side: ``NAME.safetensors`` (weights) and ``NAME.json`` (what they
are: players, observation version, layers, training). Neither can run code when it is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from carolus_env import engine, observation
from carolus_env.bots import Agent, uniforms
from carolus_env.files import write_file, write_json
from carolus_env.rules import ACTIONS
from carolus_env.state import States

FORMAT, VERSION = "carolus-policy", 1


class PolicyError(ValueError):
    """A policy file that cannot be read or does not fit; the text says which and why."""


@dataclass(frozen=True)
class PolicyInfo:
    """What a policy's JSON says about its weights."""

    players: int
    hidden: tuple[int, ...]
    """Units of the hidden layers, the same for policy and value; ReLU between them."""
    observation_version: int = observation.VERSION
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it came about: command, seed, decisions, versions. For people."""


class PolicyNetwork(nn.Module):
    """Two small perceptrons over the float32 observation: action logits, and the payoff expected.

    Args:
        info: number of players and hidden layers.
    """

    def __init__(self, info: PolicyInfo) -> None:
        super().__init__()
        self.info = info
        self.policy = _perceptron(observation.length(info.players), info.hidden, ACTIONS)
        self.value = _perceptron(observation.length(info.players), info.hidden, 1)

    @classmethod
    def from_sb3(cls, policy: Any, info: PolicyInfo) -> PolicyNetwork:
        """A frozen copy of a MaskablePPO's ``model.policy``."""
        network = cls(info)
        extractor = policy.mlp_extractor
        pairs = (
            (network.policy, [*extractor.policy_net, policy.action_net]),
            (network.value, [*extractor.value_net, policy.value_net]),
        )
        for ours, theirs in pairs:
            linear = [layer for layer in theirs if isinstance(layer, nn.Linear)]
            targets = [layer for layer in ours if isinstance(layer, nn.Linear)]
            for to, source in zip(targets, linear, strict=True):
                to.load_state_dict(source.state_dict())
        return network.requires_grad_(False).cpu()

    def logits(self, seen: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        """``(N, 95)`` logits, minus infinity where the action is illegal."""
        return self.policy(seen).masked_fill(~masks.bool(), -torch.inf)


def _perceptron(inputs: int, hidden: tuple[int, ...], outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class PolicyAgent(Agent):
    """Plays what a network says.

    Args:
        network: for games of ``network.info.players`` players.
        temperature: 0 takes the likeliest action; 1 draws from the policy; above 1 flatter.
    """

    def __init__(self, network: PolicyNetwork, *, temperature: float = 0.0) -> None:
        if not 0.0 <= temperature <= 100.0:
            raise ValueError(f"temperature must be from 0 to 100, got {temperature}")
        self.network = network
        self.temperature = temperature
        self.name = "ppo"

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """One legal action for each game.

        Raises:
            PolicyError: for games of another number of players than the policy was trained for.
        """
        players = self.network.info.players
        if len(states) and (states["players"] != players).any():
            raise PolicyError(
                f"agent {self.name!r} was trained for {players} players, "
                f"not for {int(states['players'].max())}"
            )
        seen = observation.observe(states, dtype=np.float32)
        masks = engine.legal_masks(states)
        logits = self.network.logits(torch.from_numpy(seen), torch.from_numpy(masks))
        if self.temperature == 0.0:
            return logits.argmax(dim=1).numpy()
        chances = torch.softmax(logits.double() / self.temperature, dim=1).numpy()
        heights = chances.cumsum(axis=1)
        drawn = uniforms(generators) * heights[:, -1]
        return (heights <= drawn[:, None]).sum(axis=1)


# ------------------------------------------------------------------------------------ files


def save(network: PolicyNetwork, path: str | Path) -> None:
    """Write ``path.safetensors`` and ``path.json``; the old ones stay until the new are whole.

    Raises:
        OSError: when they cannot be written (no space, no permission).
    """
    info = network.info
    weights = save_tensors({name: t.contiguous() for name, t in network.state_dict().items()})
    about = {
        "format": FORMAT,
        "version": VERSION,
        "players": info.players,
        "observation_version": info.observation_version,
        "hidden": list(info.hidden),
        "sha256": hashlib.sha256(weights).hexdigest(),
        "training": dict(info.training),
    }
    write_file(_with_suffix(path, ".safetensors"), weights)
    write_json(_with_suffix(path, ".json"), about)


def load(path: str | Path) -> PolicyNetwork:
    """Read what `save` wrote. Runs no code from the files.

    Args:
        path: with or without the suffix ``.safetensors`` or ``.json``.

    Raises:
        PolicyError: when a file is missing, unreadable, no policy, or of another observation.
    """
    about = _read_about(_with_suffix(path, ".json"))
    info = _info(about, _with_suffix(path, ".json"))
    weights_path = _with_suffix(path, ".safetensors")
    weights = _read(weights_path)
    if hashlib.sha256(weights).hexdigest() != about.get("sha256"):
        raise PolicyError(f"{weights_path}: not the weights that its JSON describes (sha256)")
    network = PolicyNetwork(info)
    try:
        tensors = load_tensors(weights)
        network.load_state_dict(tensors)
    except (SafetensorError, RuntimeError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise PolicyError(f"{weights_path}: no weights for this network ({reason})") from None
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise PolicyError(f"{weights_path}: the weights hold NaN or infinity")
    return network.requires_grad_(False)


def load_agent(argument: str) -> PolicyAgent:
    """The agent of a spec's argument: ``PATH`` or ``PATH,temperature=T``.

    Raises:
        PolicyError: see `load`.
        ValueError: for an unknown option.
    """
    path, *options = argument.split(",")
    if not path:
        raise ValueError("agent 'ppo': say which policy, as in ppo:runs/first/best")
    temperature = 0.0
    for option in options:
        key, _, value = option.partition("=")
        if key != "temperature":
            raise ValueError(f"agent 'ppo': unknown option {option!r}, known is temperature=T")
        try:
            temperature = float(value)
        except ValueError:
            raise ValueError(f"agent 'ppo': temperature must be a number, got {value!r}") from None
    return PolicyAgent(load(path), temperature=temperature)


def _with_suffix(path: str | Path, suffix: str) -> Path:
    path = Path(path)
    if path.suffix in (".safetensors", ".json"):
        path = path.with_suffix("")
    return path.with_name(path.name + suffix)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror})") from None


def _read_about(path: Path) -> dict[str, Any]:
    data = _read(path)
    try:
        about = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"{path}: no policy, not JSON ({error})") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise PolicyError(f"{path}: no policy, its format is not {FORMAT!r}")
    if about.get("version") != VERSION:
        raise PolicyError(f"{path}: policy version {about.get('version')!r}, known is {VERSION}")
    return about


def _info(about: dict[str, Any], path: Path) -> PolicyInfo:
    players, hidden = about.get("players"), about.get("hidden")
    if players not in (2, 3, 4):
        raise PolicyError(f"{path}: players must be 2, 3 or 4, got {players!r}")
    if (
        not isinstance(hidden, list)
        or len(hidden) > 16
        or not all(type(width) is int and 1 <= width <= 8192 for width in hidden)
    ):
        raise PolicyError(f"{path}: hidden must list at most 16 layer widths, got {hidden!r}")
    if about.get("observation_version") != observation.VERSION:
        raise PolicyError(
            f"{path}: made for observation version {about.get('observation_version')!r}, "
            f"this is version {observation.VERSION}"
        )
    return PolicyInfo(players, tuple(hidden), observation.VERSION, about.get("training") or {})
