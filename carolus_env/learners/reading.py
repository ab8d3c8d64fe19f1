"""Reading the options of a training run from TOML, JSON or a mapping: for every learner."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from carolus_env.learners.options import RunOptions
from carolus_env.learners.single.config import Config
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.value.config import ValueConfig

CONFIGS: Final[dict[str, type[RunOptions]]] = {
    kind.learner_name: kind for kind in (TurnConfig, ValueConfig, Config)
}
"""The options of each learner."""
DEFAULT: Final = TurnConfig.learner_name
"""The learner of options that name none."""
_REMOVED: Final = {"shaping": 0.0, "earlier_share": 0.0}
"""Options of earlier versions, with the value that left them unused ..."""
_WITH_THEM: Final = ("earlier", "on_duty", "hardness", "remember_every")
"""... and those that meant nothing then."""
_FIRST_BOTS: Final = ["random", "greedy", "planner"]
"""The default of ``eval_bots`` before policies were placed on the ladder."""


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


def from_run(options: Mapping[str, Any]) -> RunOptions:
    """The options in a run's ``config.json``, also that of a run begun by an earlier version.

    Raises:
        ValueError: for a run that used an option which no longer exists, and as `from_mapping`.
    """
    options = dict(options)
    if options.get("learner") == "ppo" and "trunk" in options:  # when it learnt single decisions
        options["learner"] = Config.learner_name
    if "learner" not in options:  # begun when there was only one
        options["learner"] = Config.learner_name
        if options.get("eval_bots") == _FIRST_BOTS:
            del options["eval_bots"]
    if options["learner"] == Config.learner_name:
        for name, unused in _REMOVED.items():
            if options.pop(name, unused) != unused:
                raise ValueError(
                    f"option {name!r} no longer exists; "
                    "resume the run with the version that began it"
                )
        for name in _WITH_THEM:
            options.pop(name, None)
    return from_mapping(options)


def from_mapping(options: Mapping[str, Any]) -> RunOptions:
    """Options by name, ``learner`` among them.

    Raises:
        ValueError: naming the first option that is unknown or has the wrong type.
    """
    import pydantic

    options = dict(options)
    learner = options.pop("learner", DEFAULT)
    if learner not in CONFIGS:
        raise ValueError(f"learner must be one of {', '.join(CONFIGS)}, got {learner!r}")
    kind = CONFIGS[learner]
    names = [field.name for field in dataclasses.fields(kind)]
    if unknown := [name for name in options if name not in names]:
        raise ValueError(
            f"unknown option {unknown[0]!r} of learner {learner}; "
            f"known are {', '.join(names)}, learner"
        )
    try:
        # strict, but as JSON: there a list is accepted for a tuple
        return pydantic.TypeAdapter(kind).validate_json(json.dumps(options), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"option {where!r}: {first['msg']}, got {first['input']!r}") from None
