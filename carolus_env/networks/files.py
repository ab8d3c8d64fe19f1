"""Trained models as files, ``NAME.safetensors``: weights and, as metadata, their description.

They may be untrusted (see `system.untrusted`): reading them runs no code. A file is refused when it
is damaged, of another format or version, or does not fit. A kind of models is a subclass of
`Model`, such as `networks.network.NetworkModel`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.system import arrays, untrusted
from carolus_env.system.files import expanded, write_file
from carolus_env.system.untrusted import cut, shown, unknown

NAMES: Final = ("2p", "3p", "4p")
"""The models of the package, as specs and commands name them."""
FOLDER: Final = Path(__file__).with_name("models")
Kind = Literal["value", "ppo", "decisions"]
"""Purpose of a model of the package: to value positions, as a policy over whole turns, or over
single decisions."""

LARGEST: Final = 64 * 2**20  # most bytes of a file; a typical model has 0.4 to 4 million
SUFFIX: Final = ".safetensors"
_LISTED: Final = 6  # differences that an error text names


S = TypeVar("S", bound=Any)  # a dataclass of integers and booleans, with a method `shapes`


class ModelError(ValueError):
    """A model that cannot be read or does not fit; the text says which and why."""


@dataclass(frozen=True, eq=False)
class Model(Generic[S]):
    """A network's size and weights, and their origin; ModelError where they do not fit.

    ``weights`` are the arrays that ``size.shapes()`` names, float32; ``about`` is their origin, as
    JSON can hold it: rules, command, seed, decisions ...
    """

    format: ClassVar[str]  # of the files, which they name
    version: ClassVar[int]  # it changes when old weights would mean something else
    size_type: ClassVar[type]

    size: S
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := _differences(self.weights, self.size.shapes()):
            more = f"; and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
            listed = "; ".join(wrong[:_LISTED]) + more
            raise ModelError(f"the weights do not fit {self.size}: {listed}")

    def save(self, path: str | Path) -> None:
        """Write ``path.safetensors``; an older file stays until the new one is complete."""
        write_file(file_of(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of the file; ModelError: it is larger than `LARGEST`.

        TypeError, ValueError: ``about`` holds something that JSON cannot, such as NaN.
        """
        own = {"sha256": self.digest(), "about": dict(self.about)}
        data = arrays.to_bytes(self.weights, {**self.versions(), **asdict(self.size), **own})
        if len(data) > LARGEST:
            raise ModelError(f"a model of {len(data):,} bytes, allowed are {LARGEST:,}")
        return data

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; ModelError: missing, damaged, of another kind or version."""
        where = file_of(path)
        data = _read(where)
        try:
            weights, about = arrays.from_bytes(data)
            untrusted.expect(about, **cls.versions())
            sizes = {
                each.name: untrusted.get(about, each.name, bool if each.type == "bool" else int)
                for each in fields(cls.size_type)
            }
            model = cls(cls.size_type(**sizes), weights, untrusted.get(about, "about", dict))
            if untrusted.get(about, "sha256", str) != model.digest():
                raise ModelError("damaged: its weights are not those that were saved (sha256)")
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        except ValueError as error:
            raise ModelError(f"{where}: {cut(str(error))}") from None
        return model

    def digest(self) -> str:
        """Return the hash of the weights: of a safetensors file with them alone."""
        return hashlib.sha256(arrays.to_bytes(self.weights)).hexdigest()

    @classmethod
    def versions(cls) -> dict[str, str | int]:
        """Return the format and the versions that the file of each model must name."""
        return {"format": cls.format, "version": cls.version}


def file_of(path: str | Path) -> Path:
    """Return the file of a model that is named with or without the suffix."""
    path = expanded(path)
    return path if path.suffix == SUFFIX else Path(f"{path}{SUFFIX}")


def path_of(kind: Kind, name: str) -> Path:
    """Return the file of a model: of the package's, by ``2p``, ``3p`` or ``4p``, or your own."""
    if name in NAMES:
        return FOLDER / f"{kind}_{name}"
    path = Path(name)
    if path.name == name and not os.path.lexists(file_of(path)):
        raise ModelError(unknown("unknown model", name, NAMES, f"{', '.join(NAMES)} or a file"))
    return path


# ------------------------------------------------------------------------------------ reading


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path}: cannot be read: not a regular file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise ModelError(f"{path}: not a model: longer than {LARGEST:,} bytes")
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
