"""Reading the options of a training run from TOML, JSON or a mapping: for every learner."""

from __future__ import annotations

import dataclasses
import importlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from carolus_env.engine.rules import OPTIONS, Rules
from carolus_env.learners.options import RunOptions

CONFIGS: Final = {
    "ppo": "turns.config:TurnConfig",
    "value": "value.config:ValueConfig",
    "sb3": "sb3:Sb3Config",
}
"""Where the options of each learner are; imported when needed, since ``sb3`` needs PyTorch."""
DEFAULT: Final = "ppo"
"""The learner of options that name none."""


def options_of(learner: str) -> type[RunOptions]:
    """Return the class of a learner's options.

    Raises:
        ValueError: for an unknown learner.
        ModuleNotFoundError: when a package that it needs is missing.
    """
    if learner not in CONFIGS:
        raise ValueError(f"learner must be one of {', '.join(CONFIGS)}, got {learner!r}")
    path, _, name = CONFIGS[learner].partition(":")
    module = importlib.import_module(f"carolus_env.learners.{path}")
    kind: type[RunOptions] = getattr(module, name)
    return kind


def read(path: Path, learner: str | None = None) -> RunOptions:
    """The options of a TOML file; those it leaves out keep their defaults.

    Args:
        path: of the file.
        learner: instead of the one that the file names.

    Raises:
        ValueError: for a file that cannot be read, and naming the first option that is unknown
            or has the wrong type.
    """
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    if learner is not None:
        found["learner"] = learner
    try:
        return from_mapping(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def from_mapping(options: Mapping[str, Any]) -> RunOptions:
    """Options by name, ``learner`` among them.

    Raises:
        ValueError: naming the first option that is unknown or has the wrong type.
    """
    import pydantic

    options = dict(options)
    learner = options.pop("learner", DEFAULT)
    kind = options_of(learner)
    own = [field.name for field in dataclasses.fields(kind) if field.name != "rules"]
    names = [*OPTIONS, *own]
    if unknown := [name for name in options if name not in names]:
        raise ValueError(
            f"unknown option {unknown[0]!r} of learner {learner}; "
            f"known are {', '.join(names)}, learner"
        )
    rules = Rules.from_dict({name: options.pop(name) for name in OPTIONS if name in options})
    try:
        # strict, but as JSON: there a list is accepted for a tuple
        read = pydantic.TypeAdapter(kind).validate_json(json.dumps(options), strict=True)
        return dataclasses.replace(read, rules=rules)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"option {where!r}: {first['msg']}, got {first['input']!r}") from None
