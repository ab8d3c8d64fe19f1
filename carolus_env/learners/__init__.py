"""Training: the learners (`LEARNERS`), each a file that reads from top to bottom.

`run` has a run in its folder, and the options that all have; `selfplay` the workers of self-play.
Training needs the extra ``train``; `sb3` needs PyTorch and Stable-Baselines3, of the extra ``sb3``.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carolus_env.system.files import expanded, reading
from carolus_env.system.machine import MissingExtraError
from carolus_env.system.options import declared, make
from carolus_env.system.untrusted import unknown

if TYPE_CHECKING:
    from carolus_env.learners.run import RunConfig


class Entry(NamedTuple):
    """A learner of the table; its class is imported when needed."""

    place: str  # MODULE:CLASS of a `run.Learner` or a `selfplay.SelfPlayLearner`
    about: str  # a description in one line
    extra: str = "train"  # the extra that it needs


LEARNERS: Final[dict[str, Entry]] = {
    "ppo": Entry("carolus_env.learners.ppo:PpoLearner", "a policy over whole turns, by PPO"),
    "value": Entry("carolus_env.learners.td:TdLearner", "a value network, by TD(lambda)"),
    "sb3": Entry("carolus_env.learners.sb3:Sb3Learner", "sb3-contrib's MaskablePPO", "sb3"),
}
"""The learners by name; the first is the default. A new one is a file, and an entry here."""


def learner(name: str | None) -> Any:
    """Return the class of a learner by its name; None: the default."""
    name = next(iter(LEARNERS)) if name is None else name
    if not isinstance(name, str) or name not in LEARNERS:
        raise ValueError(unknown("unknown learner", name, LEARNERS))
    place, _, extra = LEARNERS[name]
    module, _, kind = place.partition(":")
    try:
        return getattr(importlib.import_module(module), kind)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("carolus_env"):
            raise
        raise MissingExtraError(error.name, f"--learner {name}", extra) from error


def read_config(path: Path, name: str | None = None) -> RunConfig:
    """Read the options of a TOML file; ``name`` is the learner instead of the one in the file."""
    path = expanded(path)
    try:
        with reading(path) as file:
            values = tomllib.loads(file.read().decode("utf-8-sig"))
        config = config_of(values if name is None else {**values, "learner": name})
        return config.extended({key: values[key] for key in config.resumable if key in values})
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def config_of(given: Mapping[str, Any]) -> RunConfig:
    """Return a config made from options by name, ``learner`` among them."""
    values = dict(given)
    kind: type[RunConfig] = learner(values.pop("learner", None)).Config
    known = declared(kind)
    for name, value in values.items():
        if name not in known:
            about = f"learner {kind.learner_name} has no option"
            raise ValueError(unknown(about, name, [*known, "learner"]))
        values[name] = known[name].check(value, name)
    return make(kind, values)
