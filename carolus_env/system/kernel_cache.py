"""Files of machine code; a change of any source of kernels in one makes the next process compile.

Numba's own cache would keep using an entry after a change in a *kernel's* file. Here each file
carries a hash of all sources that its kernels can come from (`system.sources`), and of the code.
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
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, compiler, serialize
from numba.core import utils as numba_utils

from carolus_env.system import sources
from carolus_env.system.files import write_file

_DIGEST = hashlib.sha256().digest_size

for _name in ("load_overload", "save_overload"):
    if len(inspect.signature(getattr(caching.NullCache, _name)).parameters) != 3:
        raise ImportError(f"{_name} takes other arguments")


# Modules beside a bot's file are not found by name later; Numba names their kernels' this one.
sys.modules.setdefault("<dynamic>", numba_utils._dynamic_module)


def keep_code(dispatcher: Any, notice: Any) -> None:
    """Keep an entry's code, unless it depends on locals other than kernels of modules' files."""
    folder, functions = cache_folder(), [dispatcher.py_func]
    for cell in functions[0].__closure__ or ():
        kernel = getattr(cell.cell_contents, "py_func", None)
        if kernel is None or kernel.__closure__ is not None:
            return
        functions.append(kernel)
    if folder and all(Path(f.__code__.co_filename).is_file() for f in functions):
        dispatcher._cache = _EntryCache(functions, folder, notice)


class _EntryCache(caching.NullCache):
    """The files of an entry, one for each signature; in Numba's place."""

    def __init__(self, functions: list[Callable[..., Any]], folder: Path, notice: Any) -> None:
        self._functions, self._folder, self._notice = functions, folder, notice
        # Now: a file may be edited before the entry is called.
        self._stamp = b"".join(map(sources_stamp, functions))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            data = self._file(sig, target_context.codegen()).read_bytes()
            code = data[_DIGEST:]
            if data[:_DIGEST] == self._digest(code):
                target_context.refresh()
                return compiler.CompileResult._rebuild(target_context, *pickle.loads(code))
        except FileNotFoundError:
            pass
        except Exception as error:  # an unknown version of Numba can raise anything
            warnings.warn(f"carolus_env: ignoring the kernel cache ({error!r})", stacklevel=2)
        self._notice.begin(self._functions[-1])
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self._notice.end()
        if data.library.has_dynamic_globals:  # addresses in this process
            return
        try:
            code = serialize.dumps(data._reduce())
            write_file(self._file(sig, data.library.codegen), self._digest(code) + code)
        except Exception as error:
            text = f"carolus_env: compiled code could not be kept in {self._folder} ({error}); "
            warnings.warn(text + "the next process compiles again", stacklevel=2)

    def _file(self, sig: Any, codegen: Any) -> Path:
        """Return the file for arguments of these types, on this processor."""
        names = [f"{f.__module__}.{f.__qualname__}" for f in self._functions]
        theirs = [f for f in self._functions if sources.room_of(f.__module__) is None]
        files = [os.path.realpath(f.__code__.co_filename) for f in theirs]  # many are in bot.py
        key = (*names, *files, *map(_with_fields, sig), *codegen.magic_tuple())
        short = hashlib.sha256(repr(key).encode()).hexdigest()[:20]
        return self._folder / f"{names[-1]}-{short}.{sys.implementation.cache_tag}.nbc"

    def _digest(self, code: bytes) -> bytes:
        return hashlib.sha256(self._stamp + code).digest()


def _with_fields(argument: numba.types.Type) -> str:
    """Return the name of a type with the fields of named tuples in it."""
    inner = map(_with_fields, getattr(argument, "types", ()))
    return f"{argument}{getattr(argument, 'fields', '')}{','.join(inner)}"


def sources_stamp(function: Callable[..., Any]) -> bytes:
    """Return a hash over all files that a function's kernels, or constants in them, come from."""
    settings = f"numba {numba.__version__}, boundscheck {numba.config.BOUNDSCHECK}".encode()
    room = sources.room_of(function.__module__)
    if room is not None:
        return _package_stamp(room, settings)
    # A user's module can use any kernel of the package; it is read each time: it may be edited.
    theirs = sources.of_user(function.__module__, function.__code__.co_filename)
    return sources.digest(theirs, _package_stamp("", settings))


@cache
def _package_stamp(room: str, settings: bytes) -> bytes:
    return sources.digest(sources.of_room(room), settings)


@cache
def cache_folder() -> Path | None:
    """Return the first folder that can be written; None: every process compiles for itself."""
    home, user_cache = os.environ.get("HOME"), os.environ.get("XDG_CACHE_HOME")
    candidates = [sources.PACKAGE / "__pycache__" / "kernels"]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR) / "carolus_env")
    if user_cache or home:
        candidates.append(Path(user_cache or f"{home}/.cache") / "carolus_env")
    with contextlib.suppress(OSError):  # where there is no folder for temporary files
        candidates.append(Path(tempfile.gettempdir()) / f"carolus_env-{os.getuid()}")
    return next(filter(_is_usable, candidates), None)


def _is_usable(folder: Path) -> bool:
    """Return whether a folder can be made and written, and by nobody else: cached code is run."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        tempfile.TemporaryFile(dir=folder).close()
        return not others_write and status.st_uid == os.getuid()
    return False
