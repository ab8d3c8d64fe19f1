"""The files that code comes from: rooms of the package, or a user's file and what it imports."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent.parent
ROOMS: Final = ("system", "engine", "planning", "networks", "bots")
"""Rooms of kernels that others use; each imports from those before it alone."""


def room_of(module: str) -> str | None:
    """Return the room of a module of this package; None: it is none of it."""
    name, _, inner = module.partition(".")
    return inner.partition(".")[0] if name == PACKAGE.name else None


def of_room(room: str) -> dict[str, bytes]:
    """Return a room's sources and data by path, and those of the rooms that its kernels come from.

    The room "" is the whole package.
    """
    below = ROOMS[: ROOMS.index(room)] if room in ROOMS else ROOMS
    files = {file for each in (*below, room) for file in (PACKAGE / each).rglob("*")}
    named = {file.relative_to(PACKAGE).as_posix(): file for file in files}
    return {name: named[name].read_bytes() for name in named if name.endswith((".py", ".json"))}


def of_user(module: str, file: str | Path) -> dict[str, bytes]:
    """Return the sources, by path, of a user's module and of modules of theirs that it imports.

    These are the ones beside it, and others that are loaded and not installed.
    """
    file = Path(file).resolve()
    above = module.count(".") + (file.name == "__init__.py")
    root = file.parents[min(above, len(file.parents) - 1)]
    waiting = [(module, file)]
    sources: dict[str, bytes] = {}
    for name, path in waiting:  # it grows meanwhile
        key = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        if key not in sources:
            sources[key] = path.read_bytes()
            for imported in _imports(sources[key], name, path.name == "__init__.py"):
                for within in accumulate(imported.split("."), "{}.{}".format):  # packages
                    below = root.joinpath(*within.split("."))
                    beside = below.with_name(f"{below.name}.py"), below / "__init__.py"
                    found = next(filter(Path.is_file, beside), None) or loaded_file(within)
                    if found is not None:
                        waiting.append((within, found))
    return sources


def _imports(source: bytes, module: str, is_package: bool) -> Iterator[str]:
    """Yield the names of all modules that a module may import."""
    around = module.split(".") if is_package else module.split(".")[:-1]
    with suppress(SyntaxError, ValueError):  # it cannot be imported
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = around[: len(around) + 1 - node.level] if node.level else []
                base = [*base, node.module] if node.module else base
                yield from (".".join([*base, each.name]) for each in node.names)


def loaded_file(module: str) -> Path | None:
    """Return the file of a loaded module of the user's: not installed, nor the package's."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    known = path.is_relative_to(PACKAGE) or path.is_relative_to(sysconfig.get_path("stdlib"))
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return None if known or installed or not path.is_file() else path


def digest(contents: Mapping[str, bytes], begin: bytes = b"") -> bytes:
    """Return the SHA-256 hash of contents by name, in any order, after some first bytes."""
    result = hashlib.sha256(begin)
    for name, content in sorted(contents.items()):
        result.update(f"{name}\0{len(content)}\0".encode())
        result.update(content)
    return result.digest()


def named_files(spec: str) -> list[Path]:
    """Return the files that the words of an agent's spec name: a program, a script, a model."""
    words = dict.fromkeys([*re.split(r"[:,=]", spec), *re.split(r"[:,=\s]", spec)])
    paths = (Path(f"{word}{suffix}") for word in words if word for suffix in ("", ".safetensors"))
    return [path for path in paths if path.is_file()]
