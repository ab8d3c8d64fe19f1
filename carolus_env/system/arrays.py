"""Arrays: short names for the types of kernels' arguments, memory for them, and files of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from carolus_env.system.untrusted import DataError, check, get, parse_json, shown

Int: TypeAlias = Any
"""A whole number: an `int` in Python, an int64 in compiled code."""
Bits: TypeAlias = Any
"""64 bits, a uint64: a random stream, or a set."""
Records: TypeAlias = Any
"""Game records: an array of dtype `engine.state.STATE`, or of another record."""

Bools: TypeAlias = npt.NDArray[np.bool_]
F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
I8: TypeAlias = npt.NDArray[np.int8]
I16: TypeAlias = npt.NDArray[np.int16]
I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
U8: TypeAlias = npt.NDArray[np.uint8]
U64: TypeAlias = npt.NDArray[np.uint64]

float32: Any = np.float32
int64: Any = np.int64
uint64: Any = np.uint64
"""Conversions in kernels, where the compiler knows the types and a type checker does not."""

Scratch = TypeVar("Scratch", bound=tuple[Any, ...])


def allocate(kind: type[Scratch], **sizes: int) -> Scratch:
    """Allocate a NamedTuple of arrays, zeroed.

    A field is annotated by its type, shape and, of records, dtype: ``Annotated[I64, 4, "width"]``,
    ``Annotated[Records, 2, STATE]``. Sizes have names or are numbers. Or it is such a tuple.
    """
    return kind(
        *(
            np.zeros([sizes.get(size, size) for size in field[0]], field[1])
            if isinstance(field, tuple)
            else allocate(field, **sizes)
            for field in _fields(kind)
        )
    )


@cache
def _fields(kind: type[Scratch]) -> list[Any]:
    """Return shape and dtype of each array, the class of each tuple."""
    fields: list[Any] = []
    for hint in get_type_hints(kind, include_extras=True).values():
        if not hasattr(hint, "__metadata__"):
            fields.append(hint)
            continue
        *shape, last = hint.__metadata__
        if isinstance(last, np.dtype):
            fields.append((tuple(shape), last))
        else:
            scalar = get_args(hint.__origin__)[-1]  # before NumPy 2.5 a dtype of it
            fields.append(((*shape, last), *(get_args(scalar) or [scalar])))
    return fields


# ------------------------------------------------------------------------------------ files

# Safetensors, with a description as JSON in its metadata. Reading one runs no code.

_KEY: Final = "about"  # of the metadata, for the JSON: safetensors writes several in any order


def to_bytes(
    arrays: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any] | None = None
) -> bytes:
    """Return the content of a file of arrays; the same content gives the same bytes."""
    from safetensors.numpy import save

    text = None if about is None else {_KEY: json.dumps(about, allow_nan=False)}
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()}, text)


def from_bytes(data: bytes) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the description in the content of a file; a wrong one: `DataError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = {name: np.array(array) for name, array in load(data).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = shown(" ".join(str(error).split()))
        raise DataError(f"cut short, damaged or no safetensors file: {reason}") from None
    header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header.get("__metadata__") or {}
    about = check(parse_json(get(metadata, _KEY, str, "metadata")), dict, f"metadata.{_KEY}")
    return arrays, about
