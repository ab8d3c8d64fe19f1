"""The files that code comes from: a module's own, and those of all that it imports."""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent.parent
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n;]*)|import[ \t]+([^\n;]+))",
    re.MULTILINE,
)
_INSTALLED: Final = ("site-packages", "dist-packages")


def is_of_package(module: str) -> bool:
    """Return whether a module is one of this package, and not the package itself."""
    return _path(PACKAGE, module) is not None


def of_package(*modules: str) -> dict[str, Path]:
    """Return the files of modules of this package and of all that they import of it, by name.

    Names of other modules, and of the package itself, lead nowhere.
    """
    files: dict[str, Path] = {}
    waiting = list(modules)
    for name in waiting:  # it grows meanwhile
        path = _path(PACKAGE, name)
        if path is not None and name not in files:
            files[name] = path
            waiting += _imports_of(path, path.stat().st_mtime_ns, name)
    return files


@cache
def _imports_of(path: Path, changed: int, module: str) -> tuple[str, ...]:
    """Return the names that a module's file, last changed then, may import."""
    return tuple(_imports(path.read_bytes(), module, path.name == "__init__.py"))


def of_user(module: str, file: str | Path) -> dict[str, bytes]:
    """Return the sources of a user's module and of the modules of theirs that it imports.

    These are the ones beside it, and others that are loaded and not installed. Keys are paths from
    the folder in which Python finds the module, or full ones.
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
                parts = imported.split(".")
                for within in (".".join(parts[: k + 1]) for k in range(len(parts))):  # packages
                    found = _file_in(root, within) or loaded_file(within)
                    if found is not None:
                        waiting.append((within, found))
    return sources


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


def _imports(source: bytes, module: str, is_package: bool) -> Iterator[str]:
    """Yield the names of all modules that a module may import."""
    text = re.sub(r"#[^\n]*", "", source.decode(errors="replace")).replace("\\\n", " ")
    around = module.split(".") if is_package else module.split(".")[:-1]
    for origin, names, modules in _IMPORT.findall(text):
        dots = len(origin) - len(origin.lstrip("."))
        base = around[: len(around) + 1 - dots] if dots else []
        base = [*base, *filter(None, origin.lstrip(".").split("."))]
        if base:
            yield ".".join(base)
        for name in re.findall(r"(?:^|,)\s*([.\w]+)", (names or modules).strip("()")):
            yield ".".join([*base, name])


@cache
def _path(package: Path, module: str) -> Path | None:
    """Return the file of a module of the package; None for other names and the package itself."""
    name, *inner = module.split(".")
    return _file_in(package.parent, module) if name == package.name and inner else None


def _file_in(folder: Path, module: str) -> Path | None:
    """Return the file of a module that Python finds in a folder; None: there is none."""
    below = folder.joinpath(*module.split("."))
    for path in (below.with_name(f"{below.name}.py"), below / "__init__.py"):
        if path.is_file():
            return path
    return None


def loaded_file(module: str) -> Path | None:
    """Return the file of a loaded module of the user's: not installed, nor the package's."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    stands = (PACKAGE, Path(sysconfig.get_path("stdlib")))
    if any(map(path.is_relative_to, stands)) or not path.is_file():
        return None
    return None if set(_INSTALLED) & set(path.parts) else path
