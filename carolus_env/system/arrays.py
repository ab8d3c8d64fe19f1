"""Short names for the types of kernels' arguments, and memory for them."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

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


def allocate(kind: type[Scratch]) -> Scratch:
    """Allocate a NamedTuple of arrays, zeroed.

    A field is annotated by its type, shape and, of records, dtype, as ``Annotated[I64, 4, 3]`` or
    ``Annotated[Records, 2, STATE]``; or it is such a tuple.
    """
    return kind(
        *(
            np.zeros(*field) if isinstance(field, tuple) else allocate(field)
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
            fields.append(((*shape, last), get_args(get_args(hint.__origin__)[1])[0]))
    return fields
