"""Arrays and their description in one file: safetensors, with JSON in its metadata.

One file is renamed once, so arrays and description are always of each other. Both may be untrusted
(see `system.untrusted`): reading them runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.system.untrusted import DataError, check, get, parse_json, shown

_KEY: Final = "about"  # of the metadata, for the JSON: safetensors writes several in any order


def to_bytes(
    arrays: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any] | None = None
) -> bytes:
    """Return the content of a file of arrays; the same content gives the same bytes."""
    from safetensors.numpy import save

    text = None if about is None else {_KEY: json.dumps(about, allow_nan=False)}
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, text)


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
