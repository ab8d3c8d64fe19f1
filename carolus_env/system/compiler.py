"""Compilation of kernels with Numba: linked before they are optimised, and kept for later.

Numba's own cache would keep using an entry after a change in a *kernel's* file. A file here carries
a hash of all sources that its kernels can come from, and of the code. Where a version of Numba does
not take `system.linking` or this cache, plain Numba does its work. With ``NUMBA_DISABLE_JIT=1``
functions stay plain Python, for a debugger.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import pickle
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from numbers import Number
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar

import numba
import numpy as np

from carolus_env.system import machine
from carolus_env.system.files import write_file

COMPILED: bool = not numba.config.DISABLE_JIT
"""False when the compiler is off and every kernel is ordinary Python."""

P = ParamSpec("P")
R = TypeVar("R")


try:
    from carolus_env.system.linking import entered, linked
except Exception:  # Numba's internals may have changed

    def linked(function: Callable[..., Any], **options: Any) -> Any:
        """Compile a function as Numba does."""
        return numba.njit(**options)(function)

    entered = linked


# Divisions are NumPy's: with checks for 0, loops would not be vectorised.
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
# Without Numba's run-time (nrt) arrays have no reference counts: these atomic counts would take a
# third of the time of a decision. Nothing compiled here makes an array.
_TARGET = getattr(numba.njit(lambda: None), "targetdescr", None)
if hasattr(getattr(_TARGET, "options", None), "_nrt"):
    _OPTIONS["_nrt"] = False


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that other kernels call; it becomes a part of its callers."""
    return linked(function, forceinline=True, **_OPTIONS) if COMPILED else function


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function as a part of its caller's source; it may be handed kernels."""
    return numba.njit(inline="always", **_OPTIONS)(function) if COMPILED else function


def separate(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels call; it stays one, as it is large or has many callers."""
    return linked(function, forceinline=False, **_OPTIONS) if COMPILED else function


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, without the interpreter's lock.

    Its code is kept with that of all that it calls, unless it depends on locals other than kernels
    of modules' files.
    """
    if not COMPILED:
        return function
    dispatcher = entered(function, nogil=True, **_OPTIONS)
    cells = dispatcher.py_func.__closure__ or ()
    kernels = [getattr(cell.cell_contents, "py_func", None) for cell in cells]
    if any(each is None or each.__closure__ is not None for each in kernels):
        return dispatcher
    functions = (dispatcher.py_func, *kernels)
    if _can_keep() and all(Path(each.__code__.co_filename).is_file() for each in functions):
        dispatcher._cache = _EntryCache(functions)
    return dispatcher


class CompileNotice:
    """Messages about compilation progress: one line, and on a terminal what is compiled."""

    TEXT: ClassVar = (
        "carolus_env: compiling for the first use on this machine: up to half a minute for each "
        "interface or agent (`carolus warmup` does it beforehand)"
    )

    def __init__(self) -> None:
        self._count, self._started = 0, 0.0
        self._tell: Callable[[str], None] | None = None

    @contextlib.contextmanager
    def told(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Call a function with each entry's name in the ``with`` block, rather than print it."""
        before, self._tell = self._tell, tell
        try:
            yield
        finally:
            self._tell = before

    def begin(self, function: Callable[..., Any]) -> None:
        """Say that an entry is compiled."""
        self._count += 1
        name = f"{function.__name__} of {function.__module__.removeprefix('carolus_env.')}"
        if self._tell is not None:
            self._tell(f"{name} (number {self._count})")
            return
        if not self._started:
            self._started = time.perf_counter()
            print(self.TEXT, file=sys.stderr, flush=True)
        seconds = time.perf_counter() - self._started
        self._replace_line(f"  {name} (number {self._count}, {seconds:.0f} s so far) ...")

    def end(self) -> None:
        """Say that it is compiled."""
        self._replace_line("")

    def _replace_line(self, text: str) -> None:
        if self._tell is None and sys.stderr.isatty():
            print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


notice = CompileNotice()
"""The notice of this process."""

# ------------------------------------------------------------------------------------ kept code

_DIGEST = hashlib.sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def _can_keep() -> bool:
    """Return whether there is a folder for code, and this version of Numba asks for it as known."""
    try:
        for name in ("load_overload", "save_overload"):
            method = getattr(numba.core.caching.NullCache, name)
            if len(inspect.signature(method).parameters) != 3:
                raise TypeError(f"{name} takes other arguments")
        # Modules beside a bot's file are not found by name; Numba names their kernels' this one.
        sys.modules.setdefault("<dynamic>", numba.core.utils._dynamic_module)
    except Exception as error:
        text = f"carolus_env: code cannot be kept with Numba {numba.__version__} ({error}); every "
        warnings.warn(text + "process compiles again", stacklevel=2)
        return False
    return bool(cache_folders()[1])


class _EntryCache:
    """The files of an entry, one for each signature; in place of Numba's `FunctionCache`."""

    cache_path = None

    def __init__(self, functions: tuple[Callable[..., Any], ...]) -> None:
        self._functions, self._constants = functions, b""
        # Now: a file may be edited before the entry is called.
        self._stamp = b"".join(map(sources_stamp, functions))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            name = self._name(sig, target_context.codegen())
            self._constants = b"\0".join(_constants(self._functions, frozenset(), set()))
            for folder in cache_folders()[1]:
                data = _read_trusted(folder / name)
                code = data[_DIGEST:]
                if data[:_DIGEST] == self._digest(code):
                    target_context.refresh()
                    rebuild = numba.core.compiler.CompileResult._rebuild
                    return rebuild(target_context, *pickle.loads(code))
        except Exception as error:  # an unknown version of Numba can raise anything
            warnings.warn(f"carolus_env: ignoring the kernel cache ({error!r})", stacklevel=2)
        notice.begin(self._functions[-1])
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        notice.end()
        folder, _ = cache_folders()
        if folder is None or data.library.has_dynamic_globals:  # addresses in this process
            return
        try:
            file = folder / self._name(sig, data.library.codegen)
            code = numba.core.serialize.dumps(data._reduce())
            write_file(file, self._digest(code) + code)
            file.chmod(file.stat().st_mode & ~_OTHERS_WRITE)
        except Exception as error:
            text = f"carolus_env: compiled code could not be kept in {folder} ({error}); "
            warnings.warn(text + "the next process compiles again", stacklevel=2)

    def _name(self, sig: Any, codegen: Any) -> str:
        """Return the name of the file for arguments of these types, on this processor."""
        names = [f"{f.__module__}.{f.__qualname__}" for f in self._functions]
        theirs = [f for f in self._functions if machine.room_of(f.__module__) is None]
        files = [os.path.realpath(f.__code__.co_filename) for f in theirs]  # many are in bot.py
        key = (*names, *files, *map(_with_fields, sig), *codegen.magic_tuple())
        short = hashlib.sha256(repr(key).encode()).hexdigest()[:20]
        return f"{names[-1]}-{short}.{sys.implementation.cache_tag}.nbc"

    def _digest(self, code: bytes) -> bytes:
        return machine.digest({"constants": self._constants, "code": code}, self._stamp)


def _with_fields(argument: numba.types.Type) -> str:
    """Return the name of a type with the fields of named tuples in it."""
    inner = map(_with_fields, getattr(argument, "types", ()))
    return f"{argument}{getattr(argument, 'fields', '')}{','.join(inner)}"


def sources_stamp(function: Callable[..., Any]) -> bytes:
    """Return a hash over all files that a function's kernels, or constants in them, come from."""
    room = machine.room_of(function.__module__)
    if room is not None:
        return _package_stamp(room)
    # A user's module can use any kernel of the package; it is read each time: it may be edited.
    theirs = machine.user_sources(function.__module__, function.__code__.co_filename)
    return machine.digest(theirs, _package_stamp(""))


@cache
def _package_stamp(room: str) -> bytes:
    settings = f"numba {numba.__version__}, boundscheck {numba.config.BOUNDSCHECK}".encode()
    return machine.digest(machine.room_sources(room), settings)


def _constants(value: Any, names: frozenset[str], met: set[Any]) -> Iterator[bytes]:
    """Yield what a user's kernels are compiled with beside their sources: it may come from files.

    Of a module that is what has one of the ``names``.
    """
    value = getattr(value, "py_func", value)
    if isinstance(value, Number | str | bytes | np.generic | np.ndarray):
        yield pickle.dumps(value)
    elif isinstance(value, tuple):
        yield f"{type(value).__name__} of {len(value)}".encode()
        for each in value:
            yield from _constants(each, names, met)
    elif isinstance(value, ModuleType | FunctionType):
        inner = vars(value)
        if isinstance(value, FunctionType):
            if machine.room_of(str(value.__module__)) is not None:
                return  # the package's constants come from its sources
            code, cells = value.__code__, value.__closure__ or ()
            yield code.co_code  # of several with its name, a file may have chosen this one
            names = _names_in(code)
            given = [code.co_consts, value.__defaults__, *(cell.cell_contents for cell in cells)]
            inner = {"": tuple(given), **value.__globals__}
        if (id(value), names) not in met:
            met.add((id(value), names))
            for name in sorted(names & inner.keys()):
                yield name.encode()
                yield from _constants(inner[name], names, met)


def _names_in(code: CodeType) -> frozenset[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(("", *code.co_names)).union(*map(_names_in, inner))


# Kept code is run: it is read where only this user, root and the owner of the package can write,
# whose code runs here anyway.


def _is_trusted(file: Path | int) -> bool:
    """Return whether nobody else can write a file or folder."""
    status = os.stat(file)  # noqa: PTH116 - or the number of an open one
    owners = {os.getuid(), 0, machine.PACKAGE.stat().st_uid}
    return not status.st_mode & _OTHERS_WRITE and status.st_uid in owners


def _read_trusted(path: Path) -> bytes:
    """Return the content of a file; nothing where there is none that is trusted."""
    with contextlib.suppress(FileNotFoundError, PermissionError), path.open("rb") as file:
        return file.read() if _is_trusted(file.fileno()) else b""
    return b""


@cache
def cache_folders() -> tuple[Path | None, list[Path]]:
    """Return the first folder of this user's that can be written, and all that code is read from.

    Without the first every process compiles for itself what it does not find.
    """
    home, user_cache = os.environ.get("HOME"), os.environ.get("XDG_CACHE_HOME")
    candidates = [machine.PACKAGE / "__pycache__" / "kernels"]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR) / "carolus_env")
    if user_cache or home:
        candidates.append(Path(user_cache or f"{home}/.cache") / "carolus_env")
    with contextlib.suppress(OSError):  # where there is no folder for temporary files
        candidates.append(Path(tempfile.gettempdir()) / f"carolus_env-{os.getuid()}")
    own, trusted = None, []
    for folder in candidates:
        with contextlib.suppress(OSError):
            if own is None:
                folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            if folder.is_dir() and _is_trusted(folder):
                trusted.append(folder)
                if own is None and folder.stat().st_uid == os.getuid():
                    tempfile.TemporaryFile(dir=folder).close()
                    own = folder
    return own, trusted


def keep_gpu_code(dispatcher: Any, key: tuple[Any, ...]) -> None:
    """Keep the code of a kernel of `numba.cuda.jit`; ``key``: the values of its closure."""
    (folder, _), function = cache_folders(), dispatcher.py_func
    if numba.config.ENABLE_CUDASIM or folder is None:
        return
    from numba.cuda.core.caching import _CacheLocator
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl

    class Locator(_CacheLocator):
        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
            return cls()

        def get_cache_path(self) -> str:
            return f"{folder}/cuda"

        def get_source_stamp(self) -> bytes:
            return sources_stamp(function)

        def get_disambiguator(self) -> str:
            return ""

    class Files(CUDACacheImpl):
        _locator_classes = (Locator,)

    class Cache(CUDACache):
        _impl_class = Files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            code = super().load_overload(sig, target_context)
            if code is None:
                notice.begin(function)
            return code

        def save_overload(self, sig: Any, data: Any) -> None:
            notice.end()
            super().save_overload(sig, data)

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), key)

    dispatcher._cache = Cache(function)
