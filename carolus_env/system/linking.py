"""Kernels whose code is linked to that of their callers before LLVM optimises it.

Numba optimises every function with all that it calls and makes machine code of it, also where only
compiled code calls it. That takes as long as all the rest, and is left out here.

This is the inside of Numba's compiler. It is tried before the first kernel is compiled: where a
version of Numba does not take it, kernels are compiled as `numba.njit` does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numba
from numba.core import codegen, compiler
from numba.core.registry import CPUDispatcher


def linked(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that compiled code calls, with options of `numba.njit`."""
    return _Kernel(function, {}, {"nopython": True, **options}, _KernelCompiler)


class _Library(codegen.JITCodeLibrary):
    """The code of a kernel, for its callers."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelCompiler(compiler.Compiler):
    """Numba's, up to the code of LLVM where linking works."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        if state.func_id.func is _successor or linking_works():
            flags = state.flags
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
            state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _Kernel(CPUDispatcher):
    """A function for compiled code; it gets machine code of its own where Python calls it."""

    def add_overload(self, cres: Any) -> None:
        if cres.entry_point is None:
            cres = cres._replace(entry_point=object())  # callers find the code by it
            self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)

    @cached_property
    def _with_code(self) -> Any:
        return numba.jit(**self.targetoptions)(self.py_func)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:  # when Python calls it
        return self._with_code._compile_for_args(*args, **kws)


def _successor(number: int) -> int:
    return number + 1


_SUCCESSOR = linked(_successor)


@cache
def linking_works() -> bool:
    """Return whether this version of Numba links kernels, by trying it."""
    try:
        return numba.njit(lambda number: _SUCCESSOR(number))(1) == 2
    except Exception:  # any error, as a compiler's internals may differ
        return False
