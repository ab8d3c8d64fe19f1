"""Trained models as files: weights in ``NAME.safetensors``, their description in ``NAME.json``.

Both may be untrusted (see `system.untrusted`): reading them runs no code. A file is refused when it
is damaged, of another format or version, or does not fit. A kind of models is a subclass of
`Model`, such as `networks.network.NetworkModel`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.system import untrusted
from carolus_env.system.files import replacing
from carolus_env.system.untrusted import DataError, cut, shown

LARGEST: Final = 64 * 2**20
"""Most bytes of weights that are read; a typical model has 0.4 to 4 million."""
_LARGEST_JSON: Final = 2**20
_LISTED: Final = 6  # differences that an error text names


class Sizes(Protocol):
    """The size of a network: a dataclass of integers and booleans, which the JSON holds by name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of each array of weights."""


S = TypeVar("S", bound=Sizes)


class ModelError(ValueError):
    """A model that cannot be read or does not fit; the text says which and why."""


@dataclass(frozen=True, eq=False)
class Model(Generic[S]):
    """A network's size and weights, and their origin.

    Attributes:
        size: number of players and widths of the network.
        weights: the arrays that `Sizes.shapes` names, float32.
        about: origin of the weights, as JSON can hold it: rules, command, seed, decisions ...

    Raises:
        ModelError: when the weights do not fit a network of that size.
    """

    format: ClassVar[str]
    """Format of the files, which their JSON names."""
    version: ClassVar[int]
    """Version of the files; it changes when old weights would mean something else."""
    size_type: ClassVar[type]
    """The dataclass of sizes."""

    size: S
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := _differences(self.weights, self.size.shapes()):
            raise ModelError(f"the weights do not fit {self.size}: {_listed(wrong)}")

    def save(self, path: str | Path) -> None:
        """Write ``path.safetensors`` and ``path.json``; older files stay until both are written.

        Args:
            path: the file's path, with or without one of the suffixes.

        Raises:
            OSError: when they cannot be written (no space, no permission).
            ModelError: when the model is larger than `LARGEST`.
            TypeError: when ``about`` holds something that JSON cannot.
            ValueError: when ``about`` holds NaN or an infinity.
        """
        from safetensors.numpy import save as to_bytes

        weights = to_bytes({name: np.ascontiguousarray(w) for name, w in self.weights.items()})
        if len(weights) > LARGEST:
            raise ModelError(f"{path}: {len(weights):,} bytes of weights, allowed are {LARGEST:,}")
        about = {
            **self.versions(),
            **asdict(self.size),
            "sha256": hashlib.sha256(weights).hexdigest(),
            "about": dict(self.about),
        }
        text = (json.dumps(about, indent=1, allow_nan=False) + "\n").encode()
        with replacing(_named(path, ".json")) as beside:
            beside.write(text)
            beside.flush()  # a full disk shows here
            with replacing(_named(path, ".safetensors")) as file:
                file.write(weights)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the files that `save` wrote, without running code from them.

        Args:
            path: the file's path, with or without one of the suffixes.

        Raises:
            ModelError: when a file is missing, damaged, of another kind or of another version.
        """
        where = _named(path, ".json")
        about = _read_json(cls, where)
        try:
            size = cls.size_type(**{item.name: about[item.name] for item in fields(cls.size_type)})
        except ValueError as error:
            raise ModelError(f"{where}: {cut(str(error))}") from None
        where = _named(path, ".safetensors")
        weights = _read_weights(where, about["sha256"])
        try:
            return cls(size, weights, about["about"])
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None

    @classmethod
    def versions(cls) -> dict[str, str | int]:
        """Return the format and the versions that the JSON of each model must hold."""
        return {"format": cls.format, "version": cls.version}


# ------------------------------------------------------------------------------------ reading


def _read_json(kind: type[Model[Any]], path: Path) -> dict[str, Any]:
    """Read the JSON, and check it as far as possible without the weights."""
    data = _read(path, _LARGEST_JSON)
    try:
        about: dict[str, Any] = untrusted.check(untrusted.parse_json(data), dict, "its JSON")
    except DataError as error:
        raise ModelError(f"{path}: not a model: {error}") from None
    try:
        for key, value in kind.versions().items():
            if untrusted.get(about, key, type(value)) != value:
                raise DataError(f"{key} must be {value!r}, got {shown(about[key])}")
        for item in fields(kind.size_type):
            untrusted.get(about, item.name, bool if item.type in (bool, "bool") else int)
        untrusted.get(about, "sha256", str)
        untrusted.get(about, "about", dict)
    except DataError as error:
        raise ModelError(f"{path}: {error}") from None
    return about


def _read_weights(path: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = _read(path, LARGEST)
    result = hashlib.sha256(data).hexdigest()
    if result != digest:
        raise ModelError(
            f"{path}: not the weights that its JSON describes: sha256 must be {shown(digest)}, "
            f"got {result}"
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
    """Return the defects of the weights, a text for each array."""
    wrong = [f"{name} is missing" for name in shapes if name not in weights]
    wrong += [f"{shown(name)} is unknown" for name in weights if name not in shapes]
    for name in shapes.keys() & weights.keys():
        result, shape = weights[name], shapes[name]
        if result.shape != shape or result.dtype != np.float32:
            wrong.append(f"{name} must be float32 {shape}, got {result.dtype} {result.shape}")
        elif not np.isfinite(result).all():
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
