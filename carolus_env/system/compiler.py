"""Compilation of kernels with Numba: linked before they are optimised, and kept for later.

Entries alone are kept, since what they call is compiled with them. Where a version of Numba does
not take `system.linking` or `system.kernel_cache`, plain Numba does its work. With
``NUMBA_DISABLE_JIT=1`` functions stay plain Python, for a debugger.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, ParamSpec, TypeVar

import numba

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


try:
    from carolus_env.system.kernel_cache import keep_code
except Exception as error:
    warnings.warn(
        f"carolus_env: code cannot be kept with Numba {numba.__version__} ({error}); every process "
        "compiles again",
        stacklevel=2,
    )

    def keep_code(dispatcher: Any, notice: Any) -> None:
        """Keep nothing."""


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
    """Compile a function that Python calls, without the interpreter's lock, and keep its code."""
    if not COMPILED:
        return function
    dispatcher = entered(function, nogil=True, **_OPTIONS)
    keep_code(dispatcher, notice)
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
