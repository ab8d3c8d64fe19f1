"""What an agent plays by: the hashes of its files and of the package's sources behind it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from carolus_env.bots.agent import Agent, Checked
from carolus_env.bots.registry import FunctionAgent
from carolus_env.networks.files import FOLDER
from carolus_env.system import machine


def fingerprint(agent: Agent, players: int) -> dict[str, str]:
    """Return a hash of each thing that decides how an agent plays, by name.

    These are its Python file and the user's modules that it imports, the files that its spec names,
    and ``carolus_env``: the package's code behind it, and the networks for that many players. What
    an agent holds in memory is not among them, nor are installed packages.
    """
    own = agent.agent if isinstance(agent, Checked) else agent
    maker: Any = own.function if isinstance(own, FunctionAgent) else type(own)
    contents: dict[str, bytes] = {}
    package = "bots"
    file = agent.name.partition(":")[0]
    if is_file := file.endswith(".py") and Path(file).is_file():
        contents |= machine.user_sources("bot", file)
    for kind in getattr(maker, "__mro__", (maker,)):
        name = str(getattr(kind, "__module__", ""))
        if (room := machine.room_of(name)) is not None:
            package = package if room in machine.ROOMS else ""
        elif not is_file and (source := machine.loaded_file(name)) is not None:
            contents |= machine.user_sources(name, source)
    for path in machine.named_files(agent.name):
        if path.suffix != ".py" or not is_file:
            contents[path.as_posix()] = path.read_bytes()
    hashes = {name: _hash({name: content}) for name, content in sorted(contents.items())}
    return {**hashes, machine.PACKAGE.name: _package_hash(package, players)}


@cache
def _package_hash(room: str, players: int) -> str:
    """Return the hash of a room, of those behind it, and of the models for that many players."""
    models = {path.name: path.read_bytes() for path in FOLDER.glob(f"*_{players}p.*")}
    return _hash(machine.room_sources(room) | models)


def _hash(contents: dict[str, bytes]) -> str:
    return machine.digest(contents).hex()[:16]
