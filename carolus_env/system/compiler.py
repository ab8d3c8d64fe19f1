"""How kernels are compiled: Numba, with a cache that cannot go stale.

`kernel` marks a rule, which other kernels call (`rare`: seldom, or it is large; `part`: in one
place), `entry` marks a loop over a batch that Python calls; only entries are cached, since the
kernels they use are compiled into them. An entry releases the interpreter's lock. Numba
would keep using a cached entry after a change in a *kernel's* file; here each entry is stamped
with a hash of all sources that its kernels come from, so a change in one of them recompiles it.

With ``NUMBA_DISABLE_JIT=1`` all of them return the plain Python function, for a debugger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

import numba
from numba.core import caching, codegen, compiler, serialize
from numba.core.registry import CPUDispatcher

_PACKAGE = Path(__file__).parent.parent
_IMPORT = re.compile(
    r"^(?:from|import) (carolus_env[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE
)

COMPILED: bool = not numba.config.DISABLE_JIT
"""False when the compiler is off and every kernel is ordinary Python."""

P = ParamSpec("P")
R = TypeVar("R")


# Without Numba's run-time (nrt) arrays have no reference counts: these atomic counts would take a
# third of the time of a decision. Nothing compiled here makes an array. Divisions are NumPy's: with
# checks for 0, loops would not be vectorised.
_OPTIONS: Any = {"_nrt": False, "error_model": "numpy"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that other kernels call; it becomes a part of its callers."""
    if not COMPILED:
        return function
    return cast(Any, _Kernel(function, targetoptions={"forceinline": True}))


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that one other function calls, as a part of its source.

    It may be handed kernels, and can return what only its caller's source makes plain.
    """
    return numba.njit(inline="always", **_OPTIONS)(function) if COMPILED else function


def rare(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels seldom call; it stays a separate function."""
    return cast(Any, _Kernel(function)) if COMPILED else function


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, and keep the machine code for the next process."""
    if not COMPILED:
        return function
    dispatcher = numba.njit(nogil=True, **_OPTIONS)(function)
    if _cache_folder() is not None:
        dispatcher._cache = _EntryCache(function)  # what njit(cache=True) does, with our locator
    return dispatcher


# ------------------------------------------------------------------------------------ kernels


class _Joined(codegen.JITCodeLibrary):
    """The code of a kernel, joined to its callers' as it is.

    Numba would optimise each kernel with all that it calls, and turn it into machine code that
    nobody calls. That takes as long as all the rest.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelCompiler(compiler.Compiler):
    """Numba's, up to the code of LLVM."""

    def define_pipelines(self) -> list[Any]:
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        name = self.state.func_id.func_qualname
        self.state.library = _Joined(self.state.targetctx.codegen(), name)
        return super().define_pipelines()


class _Kernel(CPUDispatcher):
    """A function for compiled code. Where Python calls it, it gets machine code after all."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        options = {"nopython": True, **_OPTIONS, **(targetoptions or {})}
        super().__init__(py_func, locals, options, _KernelCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # One version for all values of a constant: LLVM makes those that help.
        kws = {name: numba.types.unliteral(argument) for name, argument in kws.items()}
        return super().get_call_template(tuple(map(numba.types.unliteral, args)), kws)

    def add_overload(self, cres: Any) -> None:
        cres = cres._replace(entry_point=object())  # callers find the code by it
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres

    @cached_property
    def _with_code(self) -> Any:
        return numba.njit(**_OPTIONS)(self.py_func)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:  # when Python calls it
        return self._with_code._compile_for_args(*args, **kws)


# ------------------------------------------------------------------------------------ the cache


@cache
def _sources_stamp(module: str, file: str) -> str:
    """A hash over every file that an entry's kernels, or a constant in one, can come from.

    Args:
        module: dotted name of the module that makes the entry.
        file: its file, read for a module that is not the package's.
    """
    sources = _sources(module)
    if not sources:  # a user's module, which can use any kernel of the package
        sources = {module: Path(file).read_bytes()}
        for path in sorted(_PACKAGE.rglob("*.py")):
            sources[str(path.relative_to(_PACKAGE))] = path.read_bytes()
    digest = hashlib.sha256(f"boundscheck {numba.config.BOUNDSCHECK}".encode())
    for name, source in sorted(sources.items()):
        digest.update(f"{name}\0".encode())
        digest.update(source)
    return digest.hexdigest()


def _sources(module: str) -> dict[str, bytes]:
    """A module and all that it imports of the package, and these of it, by dotted name.

    A kernel's constants are names of its own module or imported ones, so imports lead to them all.
    Empty for a module of another package.
    """
    sources: dict[str, bytes] = {}
    waiting = [module]
    for name in waiting:  # which grows meanwhile
        path = _path(name)
        if path is not None and name not in sources:
            sources[name] = path.read_bytes()
            waiting += _imported(sources[name])
    return sources


def _imported(source: bytes) -> set[str]:
    """The names of modules, and others, that a module imports from the package's modules."""
    return {
        f"{module}.{name}".rstrip(".")
        for module, names in _IMPORT.findall(source.decode())
        for name in ("", *re.findall(r"\w+", names))
    }


def _path(module: str) -> Path | None:
    """The file of a module of the package; None for any other name, and for the package itself."""
    package, *inner = module.split(".")
    below = _PACKAGE.joinpath(*inner)
    if package == _PACKAGE.name and inner:
        for path in (below.with_suffix(".py"), below / "__init__.py"):
            if path.is_file():
                return path
    return None


@cache
def _cache_folder() -> Path | None:
    """The first folder that can be written: NUMBA_CACHE_DIR, the package's own, the user's, temp.

    None when there is none: then every process compiles for itself.
    """
    home = os.environ.get("HOME", "")
    home_cache = os.environ.get("XDG_CACHE_HOME") or (Path(home) / ".cache" if home else "")
    candidates = [
        _PACKAGE / "__pycache__" / "kernels",
        *([Path(home_cache) / "carolus_env"] if home_cache else []),
    ]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR) / "carolus_env")
    with contextlib.suppress(OSError):  # where there is no folder for temporary files
        user = getattr(os, "getuid", lambda: 0)()
        candidates.append(Path(tempfile.gettempdir()) / f"carolus_env-{user}")
    for folder in candidates:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Cached code is run: never use a folder that someone else can write to.
            if hasattr(os, "getuid") and not _is_private(folder):
                continue
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


def _is_private(folder: Path) -> bool:
    status = folder.stat()
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.getuid() and not others_write


class _Locator(caching._CacheLocator):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._module, self._py_file = function.__module__, function.__code__.co_filename
        self._disambiguator = hashlib.sha256(function.__module__.encode()).hexdigest()[:10]

    def get_cache_path(self) -> str:
        return str(_cache_folder())

    def get_source_stamp(self) -> str:
        return _sources_stamp(self._module, self._py_file)

    def get_disambiguator(self) -> str:
        return self._disambiguator

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _EntryCacheImpl(caching.CompileResultCacheImpl):
    """Numba's files of machine code, with a digest of code and stamp.

    Numba writes its index first: a process that ended in between would leave a fresh index that
    names old code.
    """

    _locator_classes: ClassVar = [_Locator]

    def reduce(self, cres: Any) -> Any:
        code = serialize.dumps(super().reduce(cres))
        return self._digest(code), code

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        digest, code = payload
        if digest != self._digest(code):
            raise ValueError("the code is not what the index says")
        return super().rebuild(target_context, pickle.loads(code))

    def _digest(self, code: bytes) -> bytes:
        return hashlib.sha256(self.locator.get_source_stamp().encode() + code).digest()


class _EntryCache(caching.FunctionCache):
    """Numba's cache, but a damaged or unwritable file only costs time."""

    _impl_class = _EntryCacheImpl

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # A NamedTuple that is handed over may be of a module that the stamp does not cover.
        return (*super()._index_key(sig, codegen), *map(_fields, sig))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # a pickle cut short can raise nearly anything
            warnings.warn(f"carolus_env: ignoring a damaged kernel cache ({error})", stacklevel=2)
            found = None
            with contextlib.suppress(OSError):
                self.flush()  # the index too: it may be the damaged file, and is read to save
        if found is None:
            told.begins(self._py_func)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        told.ends()
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warnings.warn(
                f"carolus_env: compiled code could not be kept in {self.cache_path} ({error}); "
                "the next process compiles again",
                stacklevel=2,
            )


def _fields(argument: numba.types.Type) -> tuple[Any, ...]:
    """The names of the fields of a NamedTuple, and of those in it; empty for other types."""
    if not isinstance(argument, numba.types.NamedTuple | numba.types.NamedUniTuple):
        return ()
    return (argument.fields, *map(_fields, argument.types))


class _Told:
    """What the user is told of compiling: a line once; on a terminal, one that goes on.

    How much is left cannot be known: an interface compiles what it calls, when it calls it.
    """

    NOTICE: ClassVar = (
        "carolus_env: compiling for this machine, once: up to half a minute for each interface "
        "(`carolus warmup` does it beforehand)"
    )

    def __init__(self) -> None:
        self.once = False
        self._count, self._started = 0, 0.0

    def begins(self, function: Callable[..., Any]) -> None:
        """An entry is not in the cache, and will be compiled."""
        if not self.once:
            self.once, self._started = True, time.perf_counter()
            print(self.NOTICE, file=sys.stderr, flush=True)
        self._count += 1
        if sys.stderr.isatty():
            since = time.perf_counter() - self._started
            name = f"{function.__name__} of {function.__module__.removeprefix('carolus_env.')}"
            print(
                f"\r\x1b[2K  {name} (number {self._count}, {since:.0f} s so far) ...",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def ends(self) -> None:
        """The entry was compiled."""
        if sys.stderr.isatty():
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


told = _Told()
"""Of this process."""
