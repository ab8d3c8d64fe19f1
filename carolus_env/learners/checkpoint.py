"""A run's checkpoint: numbers and arrays in one file. Reading it runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from carolus_env.system import tensors
from carolus_env.system.files import write_file
from carolus_env.system.untrusted import DataError, expect, get

FORMAT: Final = "carolus-checkpoint"
VERSION: Final = 1
FILE: Final = "resume/checkpoint.safetensors"
"""The file, in a run's folder."""


def write(folder: Path, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Replace the last checkpoint of a run, which stays until this one is complete."""
    text = json.dumps(numbers)  # a metric may be NaN
    about = {"format": FORMAT, "version": VERSION, "numbers": text}
    (folder / FILE).parent.mkdir(exist_ok=True)
    write_file(folder / FILE, tensors.to_bytes(arrays, about))


def read(folder: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read the numbers and arrays of a run's last checkpoint."""
    try:
        arrays, about = tensors.from_bytes((folder / FILE).read_bytes())
        expect(about, format=FORMAT, version=VERSION)
        numbers: dict[str, Any] = json.loads(get(about, "numbers", str))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, DataError) as error:
        raise ValueError(f"{folder}: no readable checkpoint ({error})") from None
    return numbers, arrays
