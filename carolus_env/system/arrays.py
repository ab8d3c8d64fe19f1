"""Short names for the types of kernels' arguments; shapes are in the docstrings."""

from __future__ import annotations

from typing import Any, TypeAlias

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
