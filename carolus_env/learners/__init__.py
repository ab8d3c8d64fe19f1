"""Training: the learners (`LEARNERS`), and the parts that all runs share.

An algorithm is a file that reads from top to bottom: `ppo`, `td` and `sb3`. `options` has the
options that all have, `run` a run in its folder, `pool` the workers of self-play; `curve`,
`checkpoint`, `scalars` and `provenance` are parts of a run.

An update of PPO, file by file: `run` (`SelfPlayRun._pass`) asks `pool` (`WorkerPool.learn`) for a
round; each worker of `ppo` (`PpoLearner.learn`) plays a rollout by `bots.ppo`, whose candidates
`planning.plans` lists (by `kinds` and `heuristic`) and `networks.forward` values from `inputs`; its
gradients go through `networks.backward`; `pool` combines what the workers have learnt, and `run`
notes it.

Training needs the extra ``train``; only `sb3` needs PyTorch and Stable-Baselines3, of the extra
``sb3``.
"""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carolus_env.system.failures import MissingExtraError
from carolus_env.system.files import reading
from carolus_env.system.options import checked, declared, make
from carolus_env.system.untrusted import unknown

if TYPE_CHECKING:
    from carolus_env.learners.options import RunConfig
    from carolus_env.learners.run import Run


class Learner(NamedTuple):
    """A learner, by the names of its parts, which are imported when needed."""

    module: str
    config: str
    """Name of its hyperparameters' dataclass, a `RunConfig`."""
    learner: str
    """Name of its `SelfPlayLearner`, or of a class of `Run` that does without."""
    about: str
    """A description in one line."""
    extra: str = "train"
    """The extra that it needs."""

    def config_type(self) -> type[RunConfig]:
        """Return the dataclass of its hyperparameters.

        Raises:
            MissingExtraError: when a package that it needs is missing.
        """
        try:
            module = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("carolus_env"):
                raise
            what = f"--learner {self.module.rpartition('.')[2]}"
            raise MissingExtraError(error.name, what, self.extra) from error
        kind: type[RunConfig] = getattr(module, self.config)
        return kind

    def start(self, config: RunConfig, folder: Path, **keywords: Any) -> Run:
        """Return a run that has not begun; the keywords are ``command`` and ``show`` of `run`."""
        from carolus_env.learners.pool import SelfPlayLearner
        from carolus_env.learners.run import SelfPlayRun

        kind = getattr(importlib.import_module(self.module), self.learner)
        if issubclass(kind, SelfPlayLearner):
            kind = functools.partial(SelfPlayRun, kind)
        run: Run = kind(config, folder, **keywords)
        return run


LEARNERS: Final[dict[str, Learner]] = {
    "ppo": Learner(
        "carolus_env.learners.ppo", "PpoConfig", "PpoLearner", "a policy over whole turns, by PPO"
    ),
    "value": Learner(
        "carolus_env.learners.td", "TdConfig", "TdLearner", "a value network, by TD(lambda)"
    ),
    "sb3": Learner(
        "carolus_env.learners.sb3", "Sb3Config", "Sb3Run", "sb3-contrib's MaskablePPO", "sb3"
    ),
}
"""The learners by name; the first is the default. A new one is a file, and an entry here."""


def learner(name: str | None) -> Learner:
    """Return a learner by name; None: the default.

    Raises:
        ValueError: for an unknown learner.
    """
    name = next(iter(LEARNERS)) if name is None else name
    if not isinstance(name, str) or name not in LEARNERS:
        raise ValueError(unknown("unknown learner", name, LEARNERS))
    return LEARNERS[name]


def read_config(path: Path, name: str | None = None) -> RunConfig:
    """Read the options of a TOML file; those it leaves out keep their defaults.

    Args:
        path: the file's path.
        name: the learner's name, instead of the one in the file.

    Raises:
        ValueError: for a file that cannot be read, and naming the first option that is unknown
            or has the wrong type.
    """
    path = path.expanduser()
    try:
        with reading(path) as file:
            options = tomllib.loads(file.read().decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    if name is not None:
        options["learner"] = name
    try:
        return config_of(options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def config_of(options: Mapping[str, Any]) -> RunConfig:
    """Return a config made from options by name, ``learner`` among them.

    Raises:
        ValueError: naming the first option that is unknown or has a value that is not allowed.
    """
    values = dict(options)
    kind = learner(values.pop("learner", None)).config_type()
    known = declared(kind)
    for name, value in values.items():
        if name not in known:
            raise ValueError(
                unknown(f"learner {kind.learner_name} has no option", name, [*known, "learner"])
            )
        values[name] = checked(known[name], value)
    return make(kind, values)
