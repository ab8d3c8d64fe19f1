"""Trained networks as files: ``NAME.safetensors`` holds the weights, ``NAME.json`` what they are.

Reading them runs no code, whoever wrote them. What does not fit this version of the package
(network, observation, sizes) is refused, and so is a file that is damaged or something else.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots.neural import network
from carolus_env.bots.neural.network import Size
from carolus_env.engine import observation
from carolus_env.system.files import replacing

FORMAT: Final = "carolus-policy"
VERSION: Final = 2
"""Of the files. Version 1 held the plain perceptrons of an earlier training."""

SHIPPED: Final = Path(__file__).parent / "models"
NAMES: Final = ("2p", "3p", "4p")
"""The models of the package, by which agents and commands call them."""
LARGEST: Final = 64 * 2**20  # bytes; a usual model has 0.4 million
_LARGEST_JSON: Final = 2**20
_LISTED: Final = 6  # differences that an error text names
_KINDS: Final = {
    **dict.fromkeys(("players", "region", "trunk"), (int, "a whole number")),
    "sha256": (str, "a string"),
    "about": (dict, "an object"),
}


class ModelError(ValueError):
    """A model that cannot be read or does not fit; the text says which, and what was expected."""


@dataclass(frozen=True, eq=False)
class Model:
    """A network's size and weights, and where they come from.

    Attributes:
        size: of the network, the number of players with it.
        weights: the arrays that `network.shapes` names, float32.
        about: how it came about, in what JSON can hold: rules, command, seed, decisions ...

    Raises:
        ModelError: when the weights are not those of a network of that size.
    """

    size: Size
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := _differences(self.weights, network.shapes(self.size)):
            raise ModelError(f"no weights of {self.size}: {_listed(wrong)}")


def save(model: Model, path: str | Path) -> None:
    """Write ``path.safetensors`` and ``path.json``; the old ones stay until both are written.

    Args:
        path: with or without one of the suffixes.

    Raises:
        OSError: when they cannot be written (no space, no permission).
        ModelError: when the model is larger than `LARGEST`.
        TypeError: when ``about`` holds what JSON cannot.
    """
    from safetensors.numpy import save as to_bytes

    weights = to_bytes({name: np.ascontiguousarray(w) for name, w in model.weights.items()})
    if len(weights) > LARGEST:
        raise ModelError(f"{path}: {len(weights):,} bytes of weights, at most {LARGEST:,} are read")
    about = {
        **_versions(),
        "players": model.size.players,
        "region": model.size.region,
        "trunk": model.size.trunk,
        "sha256": hashlib.sha256(weights).hexdigest(),
        "about": dict(model.about),
    }
    text = (json.dumps(about, indent=1) + "\n").encode()
    with replacing(_named(path, ".json")) as beside:
        beside.write(text)
        beside.flush()  # a full disk shows here
        with replacing(_named(path, ".safetensors")) as file:
            file.write(weights)


def load(path: str | Path) -> Model:
    """Read what `save` wrote. Runs no code from the files.

    Args:
        path: with or without one of the suffixes.

    Raises:
        ModelError: when a file is missing, damaged, something else, or not of this version.
    """
    where = _named(path, ".json")
    about = _read_json(where)
    try:
        size = Size(about["players"], about["region"], about["trunk"])
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None
    where = _named(path, ".safetensors")
    weights = _read_weights(where, about["sha256"])
    try:
        return Model(size, weights, about["about"])
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def shipped(players: int) -> Model:
    """The model for so many players that comes with the package.

    Raises:
        ModelError: when this installation has none.
    """
    path = SHIPPED / f"{players}p"
    if not _named(path, ".json").exists():
        raise ModelError(
            f"this installation ships no model for {players} players, there is no {path}.json; "
            "a model of your own is named by its path"
        )
    return load(path)


def find(name: str) -> Model:
    """The model that a word means: one of `NAMES`, else a path.

    Raises:
        ModelError: see `load` and `shipped`.
    """
    return shipped(int(name[0])) if name in NAMES else load(name)


# ------------------------------------------------------------------------------------ reading


def _versions() -> dict[str, Any]:
    """What is written into every model's JSON, and must stand there when it is read."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "network_version": network.VERSION,
        "observation_version": observation.VERSION,
    }


def _read_json(path: Path) -> dict[str, Any]:
    """What the JSON says, so far as it can be said without the weights."""
    data = _read(path, _LARGEST_JSON)
    try:
        about = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: no model, not JSON ({error})") from None
    if not isinstance(about, dict):
        raise ModelError(f"{path}: no model, a JSON object was expected")
    for key, value in _versions().items():
        if type(about.get(key)) is not type(value) or about[key] != value:
            found = _short(about[key]) if key in about else "nothing"
            raise ModelError(f"{path}: {key} must be {value!r}, found {found}")
    for key, (kind, named) in _KINDS.items():
        if type(about.get(key)) is not kind:
            raise ModelError(f"{path}: {key} must be {named}, found {_short(about.get(key))}")
    return about


def _read_weights(path: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = _read(path, LARGEST)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelError(
            f"{path}: not the weights that its JSON describes: sha256 must be {_short(digest)}, "
            f"found {found}"
        )
    try:
        return {name: np.array(w) for name, w in from_bytes(data).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"{path}: not a safetensors file of arrays ({reason[:200]})") from None


def _read(path: Path, most: int) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path}: cannot be read (not a regular file)")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > most:
        raise ModelError(f"{path}: no model, longer than {most:,} bytes")
    return data


def _differences(
    weights: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """What is wrong with the weights, one line each."""
    wrong = [f"{name} is missing" for name in shapes if name not in weights]
    wrong += [f"{_short(name)} is unknown" for name in weights if name not in shapes]
    for name in shapes.keys() & weights.keys():
        found, shape = weights[name], shapes[name]
        if found.shape != shape or found.dtype != np.float32:
            wrong.append(f"{name} must be float32 {shape}, found {found.dtype} {found.shape}")
        elif not np.isfinite(found).all():
            wrong.append(f"{name} holds NaN or infinity")
    return sorted(wrong)


def _listed(differences: Iterable[str]) -> str:
    every = list(differences)
    more = len(every) - _LISTED
    return "; ".join(every[:_LISTED]) + (f"; and {more} more" if more > 0 else "")


_shortening = reprlib.Repr()
_shortening.maxstring = _shortening.maxother = 80
_short = _shortening.repr  # of what strangers wrote: neither long nor deep


def _named(path: str | Path, suffix: str) -> Path:
    path = Path(path)
    if path.suffix in (".safetensors", ".json"):
        path = path.with_suffix("")
    return path.with_name(path.name + suffix)
