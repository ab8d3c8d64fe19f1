"""What an agent plays by: the hashes of its files and of the package's sources behind it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from carolus_env.bots.agent import Agent, Checked
from carolus_env.bots.registry import FunctionAgent
from carolus_env.networks.files import FOLDER
from carolus_env.system.sources import (
    PACKAGE,
    digest,
    loaded_file,
    named_files,
    of_package,
    of_user,
)

_GAME: Final = ("carolus_env.engine", "carolus_env.bots.lockstep")
"""Modules that play every game."""


def fingerprint(agent: Agent, players: int) -> dict[str, str]:
    """Return a hash of each thing that decides how an agent plays, by name.

    These are its Python file and the user's modules that it imports, the files that its spec names,
    and ``carolus_env``: the package's code and networks behind it. What an agent holds in memory is
    not among them, nor are installed packages.
    """
    own = agent.agent if isinstance(agent, Checked) else agent
    maker: Any = own.function if isinstance(own, FunctionAgent) else type(own)
    contents: dict[str, bytes] = {}
    modules = [*_GAME]
    file = agent.name.partition(":")[0]
    if is_file := file.endswith(".py") and Path(file).is_file():
        contents |= of_user("bot", file)
    for kind in getattr(maker, "__mro__", (maker,)):
        name = str(getattr(kind, "__module__", ""))
        if name.partition(".")[0] == PACKAGE.name:
            modules.append(name)
        elif not is_file and (source := loaded_file(name)) is not None:
            contents |= of_user(name, source)
    if contents:  # a user's code can use any bot
        modules.append("carolus_env.bots")
    for path in named_files(agent.name):
        if path.suffix != ".py" or not is_file:
            contents[path.as_posix()] = path.read_bytes()
    result = {name: _hash({name: content}) for name, content in sorted(contents.items())}
    return {**result, PACKAGE.name: _package_hash(tuple(sorted(set(modules))), players)}


@cache
def _package_hash(modules: tuple[str, ...], players: int) -> str:
    """Return the hash of modules of the package, of all that they import, and of their data."""
    files = of_package(*modules)
    data = {path for source in files.values() for path in source.parent.glob("*.json")}
    if "carolus_env.networks.files" in files:
        data.update(FOLDER.glob(f"*_{players}p.*"))
    contents = {name: path.read_bytes() for name, path in files.items()}
    return _hash({**contents, **{path.name: path.read_bytes() for path in data}})


def _hash(contents: Mapping[str, bytes]) -> str:
    return digest(contents).hex()[:16]
