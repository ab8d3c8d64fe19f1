"""Trained networks as files: weights in ``NAME.safetensors``, their description in ``NAME.json``.

Both may be untrusted (see `system.untrusted`): reading them runs no code. A file is refused when it
is damaged, of another kind, or does not fit this version of the package (network, observation,
sizes).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots.neural import network
from carolus_env.bots.neural.network import Size
from carolus_env.engine import observation
from carolus_env.system import untrusted
from carolus_env.system.files import replacing
from carolus_env.system.untrusted import DataError, cut, shown

FORMAT: Final = "carolus-policy"
VERSION: Final = 2
"""Version of the files. Version 1 held plain perceptrons."""

SHIPPED: Final = Path(__file__).parent / "models"
NAMES: Final = ("2p", "3p", "4p")
"""The models of the package, as specs and commands name them."""
LARGEST: Final = 64 * 2**20
"""Most bytes of weights that are read; a typical model has 0.4 million."""
_LARGEST_JSON: Final = 2**20
_LISTED: Final = 6  # differences that an error text names
_KINDS: Final = {"players": int, "region": int, "trunk": int, "sha256": str, "about": dict}


class ModelError(ValueError):
    """A model that cannot be read or does not fit; the text says which and why."""


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
        if wrong := _differences(self.weights, network.shapes(self.size)):
            raise ModelError(f"the weights do not fit {self.size}: {_listed(wrong)}")


def save(model: Model, path: str | Path) -> None:
    """Write ``path.safetensors`` and ``path.json``; older files stay until both are written.

    Args:
        model: the model.
        path: with or without one of the suffixes.

    Raises:
        OSError: when they cannot be written (no space, no permission).
        ModelError: when the model is larger than `LARGEST`.
        TypeError: when ``about`` holds something that JSON cannot.
        ValueError: when ``about`` holds NaN or an infinity.
    """
    from safetensors.numpy import save as to_bytes

    weights = to_bytes({name: np.ascontiguousarray(w) for name, w in model.weights.items()})
    if len(weights) > LARGEST:
        raise ModelError(f"{path}: {len(weights):,} bytes of weights, allowed are {LARGEST:,}")
    about = {
        **_versions(),
        "players": model.size.players,
        "region": model.size.region,
        "trunk": model.size.trunk,
        "sha256": hashlib.sha256(weights).hexdigest(),
        "about": dict(model.about),
    }
    text = (json.dumps(about, indent=1, allow_nan=False) + "\n").encode()
    with replacing(_named(path, ".json")) as beside:
        beside.write(text)
        beside.flush()  # a full disk shows here
        with replacing(_named(path, ".safetensors")) as file:
            file.write(weights)


def load(path: str | Path) -> Model:
    """Read the files that `save` wrote, without running code from them.

    Args:
        path: with or without one of the suffixes.

    Raises:
        ModelError: when a file is missing, damaged, of another kind or of another version.
    """
    where = _named(path, ".json")
    about = _read_json(where)
    try:
        size = Size(about["players"], about["region"], about["trunk"])
    except ValueError as error:
        raise ModelError(f"{where}: {cut(str(error))}") from None
    where = _named(path, ".safetensors")
    weights = _read_weights(where, about["sha256"])
    try:
        return Model(size, weights, about["about"])
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def shipped(players: int) -> Model:
    """The package's model for games of ``players`` players.

    Raises:
        ModelError: when this installation has none.
    """
    path = SHIPPED / f"{players}p"
    if not _named(path, ".json").exists():
        raise ModelError(
            f"this installation has no model for {players} players: there is no {path}.json; "
            "name a model of your own by its path"
        )
    return load(path)


def find(name: str) -> Model:
    """The model that a spec names: one of `NAMES`, or a path.

    Raises:
        ModelError: see `load` and `shipped`.
    """
    return shipped(int(name[0])) if name in NAMES else load(name)


# ------------------------------------------------------------------------------------ reading


def _versions() -> dict[str, Any]:
    """What every model's JSON must hold."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "network_version": network.VERSION,
        "observation_version": observation.VERSION,
    }


def _read_json(path: Path) -> dict[str, Any]:
    """The JSON, checked as far as possible without the weights."""
    data = _read(path, _LARGEST_JSON)
    try:
        about: dict[str, Any] = untrusted.check(untrusted.parse_json(data), dict, "its JSON")
    except DataError as error:
        raise ModelError(f"{path}: not a model: {error}") from None
    try:
        for key, value in _versions().items():
            if untrusted.get(about, key, type(value)) != value:
                raise DataError(f"{key} must be {value!r}, got {shown(about[key])}")
        for key, kind in _KINDS.items():
            untrusted.get(about, key, kind)
    except DataError as error:
        raise ModelError(f"{path}: {error}") from None
    return about


def _read_weights(path: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = _read(path, LARGEST)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelError(
            f"{path}: not the weights that its JSON describes: sha256 must be {shown(digest)}, "
            f"got {found}"
        )
    try:
        return {name: np.array(w) for name, w in from_bytes(data).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = shown(" ".join(str(error).split()))
        raise ModelError(f"{path}: not a safetensors file of arrays: {reason}") from None


def _read(path: Path, most: int) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path}: cannot be read: not a regular file")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise ModelError(f"{path}: not a model: longer than {most:,} bytes")
    return data


def _differences(
    weights: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """What is wrong with the weights, a text for each array."""
    wrong = [f"{name} is missing" for name in shapes if name not in weights]
    wrong += [f"{shown(name)} is unknown" for name in weights if name not in shapes]
    for name in shapes.keys() & weights.keys():
        found, shape = weights[name], shapes[name]
        if found.shape != shape or found.dtype != np.float32:
            wrong.append(f"{name} must be float32 {shape}, got {found.dtype} {found.shape}")
        elif not np.isfinite(found).all():
            wrong.append(f"{name} holds NaN or infinity")
    return sorted(wrong)


def _listed(differences: Iterable[str]) -> str:
    every = list(differences)
    more = len(every) - _LISTED
    return "; ".join(every[:_LISTED]) + (f"; and {more} more" if more > 0 else "")


def _named(path: str | Path, suffix: str) -> Path:
    path = Path(path)
    if path.suffix in (".safetensors", ".json"):
        path = path.with_suffix("")
    return path.with_name(path.name + suffix)
