"""A run's checkpoint: a folder with JSON numbers and NumPy arrays. Reading it runs no code."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.system.files import replacing, write_json

VERSION: Final = 1
NUMBERS, ARRAYS = "numbers.json", "arrays.npz"


def write(folder: Path, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Replace the last checkpoint, which stays until this one is complete.

    Raises:
        OSError: when it cannot be written.
    """
    fresh, old = _beside(folder, ".part"), _beside(folder, ".old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        with replacing(fresh / ARRAYS) as file:
            named: dict[str, Any] = {name.replace("/", ":"): a for name, a in arrays.items()}
            np.savez(file, **named)
        write_json(fresh / NUMBERS, {"version": VERSION, **numbers})
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read the numbers and arrays of the last complete checkpoint.

    Raises:
        ValueError: when there is none, or it cannot be read.
    """
    if not folder.is_dir():  # interrupted between the two renames of `write`
        folder = _beside(folder, ".old")
    try:
        numbers = json.loads((folder / NUMBERS).read_text())
        with np.load(folder / ARRAYS, allow_pickle=False) as file:
            arrays = {name.replace(":", "/"): file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder.parent}: no readable checkpoint ({error})") from None
    if not isinstance(numbers, dict) or numbers.pop("version", None) != VERSION:
        raise ValueError(f"{folder.parent}: no checkpoint of version {VERSION}")
    return numbers, arrays


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)
