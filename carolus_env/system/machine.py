"""What a result is made with: the machine, versions, extras and sources; threads on its cores."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
import math
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

from carolus_env.system.options import whole_number

__version__ = "0.1.0"
"""The version of the package: written here and nowhere else."""
PACKAGE: Final = Path(__file__).parent.parent

S = TypeVar("S")
T = TypeVar("T")


def versions(*modules: str) -> dict[str, str]:
    """Return versions of the package, Python, NumPy, Numba, and the ``modules`` that are loaded."""
    result = {"carolus-env": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", *modules):
        if name in sys.modules:
            result[name] = str(sys.modules[name].__version__)
    return result


def machine() -> dict[str, str | int]:
    """Return the processor, the cores that this process may use, and the operating system."""
    return {"cpu": cpu(), "cores": cores(), "platform": platform.platform()}


def provenance() -> dict[str, Any]:
    """Return ``commit``, ``machine`` and ``versions``, as a run's ``config.json`` holds them."""
    packages = "gymnasium", "torch", "stable_baselines3", "sb3_contrib"
    return {"commit": commit(), "machine": machine(), "versions": versions(*packages)}


def commit(root: Path = PACKAGE.parent) -> str | None:
    """Return the commit of this project's repository at ``root``, with a plus where files differ.

    None without git, and for an installed package: a repository around it, such as one that holds a
    virtual environment, does not track these files at its root.
    """
    import subprocess  # not for every import of the package

    def git(*arguments: str) -> str:
        words, quiet = ["git", *arguments], subprocess.DEVNULL
        return subprocess.check_output(words, cwd=root, text=True, timeout=10, stderr=quiet).strip()

    file = "carolus_env/system/machine.py"
    try:
        # --full-name: the path as seen from the root of the repository that tracks the file
        if git("ls-files", "--full-name", "--", file) != file:
            return None
        return git("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=40") or None
    except (OSError, subprocess.SubprocessError):
        return None


def cpu() -> str:
    """Return the processor's name."""
    with contextlib.suppress(OSError):  # Linux alone has this file
        for entry in Path("/proc/cpuinfo").read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


GROUPS: Final = Path("/proc/self/cgroup")
LIMITS: Final = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores for this process: of its affinity and a container's quota."""
    if hasattr(os, "process_cpu_count"):  # since Python 3.13
        known = os.process_cpu_count()
    else:
        known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [known or 1.0]
    with contextlib.suppress(OSError, ValueError):  # of Linux's control groups, version 1 or 2
        for line in GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            names = ["cpu.cfs_quota_us", "cpu.cfs_period_us"] if controllers else ["cpu.max"]
            group = PurePath("cpu" if controllers else ".", path.lstrip("/"))
            for folder in (group, *group.parents):  # in a container the path may be the host's
                with contextlib.suppress(OSError, ValueError):
                    texts = [(LIMITS / folder / name).read_text() for name in names]
                    quota, period = map(int, " ".join(texts).split())
                    limits += [quota / period] if quota > 0 else []
    return max(1, math.ceil(min(limits)))


# ------------------------------------------------------------------------------------ extras


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is missing; the text says what needs it, and how to install it."""

    def __init__(self, package: object, what: str = "", extra: str = "") -> None:
        super().__init__(package, what, extra, name=str(package))

    def __str__(self) -> str:
        package, what, extra = self.args
        return f"{package} is missing; {what} needs the extra {extra!r}: {install(extra)}"


def install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    clone = f"pip install -c constraints.txt -e '.[{extra}]'"
    return f"pip install 'carolus-env[{extra}]' (in a clone: {clone})"


# ------------------------------------------------------------------------------------ sources

ROOMS: Final = ("system", "engine", "planning", "networks", "bots")
"""Rooms of kernels that others use; each imports from those before it alone."""


def room_of(module: str) -> str | None:
    """Return the room of a module of this package; None: it is none of it."""
    name, _, inner = module.partition(".")
    return inner.partition(".")[0] if name == PACKAGE.name else None


def room_sources(room: str) -> dict[str, bytes]:
    """Return a room's sources and data by path, and those of the rooms that its kernels come from.

    The room "" is the whole package.
    """
    below = ROOMS[: ROOMS.index(room)] if room in ROOMS else ROOMS
    files = {file for each in (*below, room) for file in (PACKAGE / each).rglob("*")}
    named = {file.relative_to(PACKAGE).as_posix(): file for file in files}
    return {name: named[name].read_bytes() for name in named if name.endswith((".py", ".json"))}


def user_sources(module: str, file: str | Path) -> dict[str, bytes]:
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
                for within in itertools.accumulate(imported.split("."), "{}.{}".format):  # packages
                    below = root.joinpath(*within.split("."))
                    beside = below.with_name(f"{below.name}.py"), below / "__init__.py"
                    found = next(filter(Path.is_file, beside), None) or loaded_file(within)
                    if found is not None:
                        waiting.append((within, found))
    return sources


def _imports(source: bytes, module: str, is_package: bool) -> Iterator[str]:
    """Yield the names of all modules that a module may import."""
    around = module.split(".") if is_package else module.split(".")[:-1]
    with contextlib.suppress(SyntaxError, ValueError):  # it cannot be imported
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
        result.update(f"{name}\0{len(content)}\0".encode() + content)
    return result.digest()


def named_files(spec: str) -> list[Path]:
    """Return the files that the words of an agent's spec name: a program, a script, a model."""
    words = dict.fromkeys([*re.split(r"[:,=]", spec), *re.split(r"[:,=\s]", spec)])
    paths = (Path(f"{word}{suffix}") for word in words if word for suffix in ("", ".safetensors"))
    return [path for path in paths if path.is_file()]


# ------------------------------------------------------------------------------------ threads

# Compiled entries release the interpreter's lock. Games share nothing: results are those of one.

MOST_THREADS: Final = 256


def check_threads(threads: int) -> int:
    """Check a number of threads."""
    return whole_number("threads", threads, 1, MOST_THREADS)


def runs(rows: int, threads: int) -> list[slice]:
    """Split ``range(rows)`` into one run for each thread, none of them empty."""
    threads = max(1, min(threads, rows))
    ends = [rows * worker // threads for worker in range(threads + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def together(task: Callable[[S], T], shares: Sequence[S]) -> list[T]:
    """Run ``task`` on every share at the same time, each on a separate thread."""
    if len(shares) == 1:
        return [task(shares[0])]
    pool = _pool(os.getpid())
    futures: list[Future[T]] = []
    try:
        futures += (pool.submit(task, share) for share in shares[1:])
        own = task(shares[0])
    finally:  # the others write into the caller's memory
        wait(futures)
    return [own, *(future.result() for future in futures)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process: a forked child has none of its parent's."""
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="carolus")
