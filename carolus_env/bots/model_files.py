"""Trained models as files: weights in ``NAME.safetensors``, their description in ``NAME.json``.

Both may be untrusted (see `system.untrusted`): reading them runs no code. A file is refused when it
is damaged, of another kind, or does not fit this version of the package. A kind of models is a
subclass of `Trained`, which says its versions and sizes: `bots.turns.model`, `bots.value.model`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import AgentError
from carolus_env.bots.options import parse
from carolus_env.system import untrusted
from carolus_env.system.files import replacing
from carolus_env.system.untrusted import DataError, cut, shown

NAMES: Final = ("2p", "3p", "4p")
"""The models of the package, as specs and commands name them."""
PLAYED_BY: Final = {
    "carolus-turns": "ppo",
    "carolus-value": "value or search",
    "carolus-sb3": "sb3",
}
"""The bots that play models of a format."""
LARGEST: Final = 64 * 2**20
"""Most bytes of weights that are read; a typical model has 0.4 to 4 million."""
_LARGEST_JSON: Final = 2**20
_LISTED: Final = 6  # differences that an error text names


Size = TypeVar("Size")


class ModelError(ValueError):
    """A model that cannot be read or does not fit; the text says which and why."""


@dataclass(frozen=True)
class Kind:
    """A kind of models."""

    versions: Mapping[str, str | int]
    """What the JSON of each must hold: its format, and the versions of what it depends on."""
    size: Callable[..., Any]
    """The dataclass of sizes: whole numbers, which the JSON holds by name."""
    shapes: Callable[[Any], Mapping[str, tuple[int, ...]]]
    """The shape of each array of weights, of a size."""
    folder: Path
    """Where the package's own models lie."""


@dataclass(frozen=True, eq=False)
class Trained(Generic[Size]):
    """A network's size and weights, and their origin.

    Attributes:
        size: number of players and widths of the network.
        weights: the arrays that `Kind.shapes` names, float32.
        about: their origin, as JSON can hold it: rules, command, seed, decisions ...

    Raises:
        ModelError: when the weights do not fit a network of that size.
    """

    size: Size
    weights: Mapping[str, npt.NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def kind(cls) -> Kind:
        """What kind of models this is."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if wrong := _differences(self.weights, self.kind().shapes(self.size)):
            raise ModelError(f"the weights do not fit {self.size}: {_listed(wrong)}")

    def save(self, path: str | Path) -> None:
        """Write ``path.safetensors`` and ``path.json``; older files stay until both are written.

        Args:
            path: with or without one of the suffixes.

        Raises:
            OSError: when they cannot be written (no space, no permission).
            ModelError: when the model is larger than `LARGEST`.
            TypeError: when ``about`` holds something that JSON cannot.
            ValueError: when ``about`` holds NaN or an infinity.
        """
        from safetensors.numpy import save as to_bytes

        weights = to_bytes({name: np.ascontiguousarray(w) for name, w in self.weights.items()})
        if len(weights) > LARGEST:
            raise ModelError(f"{path}: {len(weights):,} bytes of weights, allowed are {LARGEST:,}")
        about = {
            **self.kind().versions,
            **asdict(self.size),  # type: ignore[call-overload]
            "sha256": hashlib.sha256(weights).hexdigest(),
            "about": dict(self.about),
        }
        text = (json.dumps(about, indent=1, allow_nan=False) + "\n").encode()
        with replacing(_named(path, ".json")) as beside:
            beside.write(text)
            beside.flush()  # a full disk shows here
            with replacing(_named(path, ".safetensors")) as file:
                file.write(weights)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the files that `save` wrote, without running code from them.

        Args:
            path: with or without one of the suffixes.

        Raises:
            ModelError: when a file is missing, damaged, of another kind or of another version.
        """
        kind = cls.kind()
        where = _named(path, ".json")
        about = _read_json(kind, where)
        try:
            size = kind.size(**{name: about[name] for name in _sizes(kind)})
        except ValueError as error:
            raise ModelError(f"{where}: {cut(str(error))}") from None
        where = _named(path, ".safetensors")
        weights = _read_weights(where, about["sha256"])
        try:
            return cls(size, weights, about["about"])
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None

    @classmethod
    def shipped(cls, players: int) -> Self:
        """The package's model for games of ``players`` players.

        Raises:
            ModelError: when this installation has none.
        """
        path = cls.kind().folder / f"{players}p"
        if not _named(path, ".json").exists():
            raise ModelError(
                f"this installation has no model for {players} players: there is no {path}.json; "
                "name a model of your own by its path"
            )
        return cls.load(path)

    @classmethod
    def find(cls, name: str) -> Self:
        """The model that a spec names: one of `NAMES`, or a path.

        Raises:
            ModelError: see `load` and `shipped`.
        """
        return cls.shipped(int(name[0])) if name in NAMES else cls.load(name)


def _played_by(found: Any) -> str:
    """What to say of a model of a format that is not wanted."""
    bot = PLAYED_BY.get(found) if isinstance(found, str) else None
    return "" if bot is None else f", a model that the bot {bot} plays"


# ------------------------------------------------------------------------------------ agents

M = TypeVar("M")
N = TypeVar("N")
Options = TypeVar("Options")


class ByPlayers(Generic[M, N]):
    """Networks by number of players: of one model, or of the package's, read when needed.

    Args:
        fixed: the one model, which has a ``size``; None: the package's.
        shipped: reads the package's model for a number of players.
        make: makes a model's network.
    """

    def __init__(
        self, fixed: M | None, shipped: Callable[[int], M], make: Callable[[M], N]
    ) -> None:
        self._fixed, self._shipped, self._make = fixed is not None, shipped, make
        self._made: dict[int, N] = {}
        if fixed is not None:
            self._made[fixed.size.players] = make(fixed)  # type: ignore[attr-defined]

    def of(self, name: str, players: int) -> N:
        """The network for games of ``players`` players.

        Args:
            name: the agent's name, for the error.
            players: 2, 3 or 4.

        Raises:
            AgentError: when the one model is for another number of players.
        """
        if players not in self._made:
            if self._fixed:
                [trained] = self._made
                raise AgentError(name, f"has a model for {trained} players, not for {players}")
            self._made[players] = self._make(self._shipped(players))
        return self._made[players]


def parsed(
    name: str, argument: str, kind: type[Options], find: Callable[[str], M | None]
) -> tuple[M | None, Options]:
    """The model named before the options, None if there is none, and the options.

    Args:
        name: the bot's name, for errors.
        argument: ``2p``, a path or nothing, then options, all separated by commas.
        kind: the dataclass of the options.
        find: reads a model by its name; None: the package's models.

    Raises:
        AgentError: for a wrong option.
        ModelError: for a model that is missing or does not fit.
    """
    first, _, rest = argument.partition(",")
    key, equals, _ = first.partition("=")
    if equals and key.strip().isidentifier():  # an option: no model is named
        first, rest = "", argument
    options = parse(name, kind, rest)
    return find(first) if first else None, options


# ------------------------------------------------------------------------------------ reading


def _sizes(kind: Kind) -> list[str]:
    return list(kind.size.__dataclass_fields__)  # type: ignore[attr-defined]


def _read_json(kind: Kind, path: Path) -> dict[str, Any]:
    """The JSON, checked as far as possible without the weights."""
    data = _read(path, _LARGEST_JSON)
    try:
        about: dict[str, Any] = untrusted.check(untrusted.parse_json(data), dict, "its JSON")
    except DataError as error:
        raise ModelError(f"{path}: not a model: {error}") from None
    try:
        for key, value in kind.versions.items():
            if untrusted.get(about, key, type(value)) != value:
                raise DataError(
                    f"{key} must be {value!r}, got {shown(about[key])}{_played_by(about[key])}"
                )
        for key in _sizes(kind):
            untrusted.get(about, key, int)
        untrusted.get(about, "sha256", str)
        untrusted.get(about, "about", dict)
    except DataError as error:
        raise ModelError(f"{path}: {error}") from None
    return about


def _read_weights(path: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = _read(path, LARGEST)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelError(
            f"{path}: not the weights that its JSON describes: sha256 must be {shown(digest)}, "
            f"got {found}"
        )
    try:
        return {name: np.array(w) for name, w in from_bytes(data).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = shown(" ".join(str(error).split()))
        raise ModelError(f"{path}: not a safetensors file of arrays: {reason}") from None


def _read(path: Path, most: int) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path}: cannot be read: not a regular file")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise ModelError(f"{path}: not a model: longer than {most:,} bytes")
    return data


def _differences(
    weights: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """What is wrong with the weights, a text for each array."""
    wrong = [f"{name} is missing" for name in shapes if name not in weights]
    wrong += [f"{shown(name)} is unknown" for name in weights if name not in shapes]
    for name in shapes.keys() & weights.keys():
        found, shape = weights[name], shapes[name]
        if found.shape != shape or found.dtype != np.float32:
            wrong.append(f"{name} must be float32 {shape}, got {found.dtype} {found.shape}")
        elif not np.isfinite(found).all():
            wrong.append(f"{name} holds NaN or infinity")
    return sorted(wrong)


def _listed(differences: Iterable[str]) -> str:
    every = list(differences)
    more = len(every) - _LISTED
    return "; ".join(every[:_LISTED]) + (f"; and {more} more" if more > 0 else "")


def _named(path: str | Path, suffix: str) -> Path:
    path = Path(path)
    if path.suffix in (".safetensors", ".json"):
        path = path.with_suffix("")
    return path.with_name(path.name + suffix)
