"""Numba's compiler with what kernels do not need left out: a third of a user's wait.

Numba optimises every function with all that it calls and makes machine code of it, also where only
compiled code calls it. Here kernels are linked to their callers first, and optimised once; and a
kernel is compiled once for all constants that it is called with.

This is the inside of Numba's compiler, tried before the first kernel is compiled: where a version
of Numba does not take it, kernels are compiled as `numba.njit` does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from numba.core import codegen, compiler, sigutils, types
from numba.core.registry import CPUDispatcher


def linked(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that compiled code calls, with options of `numba.njit`."""
    return _Kernel(function, {}, {"nopython": True, **options}, _KernelCompiler)


def entered(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that Python calls, with options of `numba.njit`."""
    return _Entry(function, {}, {"nopython": True, **options}, _EntryCompiler)


class _Library(codegen.JITCodeLibrary):
    """Code that is linked to all kernels that it needs, and these need."""

    _linking_libraries: list[Any]

    def _link(self) -> None:
        for library in self._needed():
            if isinstance(library, _KernelLibrary):
                module = super(_KernelLibrary, library)._get_module_for_linking()
            else:
                module = library._get_module_for_linking()
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(module, preserve=True)
        self._linking_libraries = []

    def _needed(self) -> list[Any]:
        """Return all libraries, callers first: LLVM drops what nothing calls when it is linked."""
        seen: set[Any] = set()
        done: list[Any] = []

        def visit(library: Any) -> None:
            seen.add(library)
            for other in library._linking_libraries if isinstance(library, _Library) else ():
                if other not in seen:
                    visit(other)
            done.append(library)

        visit(self)
        return done[-2::-1]


class _KernelLibrary(_Library):
    """The code of a kernel, for its callers."""

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:  # for a caller that Numba compiles as usual
        if self._linking_libraries:
            self._link()
            self._shared_module = None
        return super()._get_module_for_linking()


class _EntryLibrary(_Library):
    """The code of an entry, which is optimised and becomes machine code."""

    def finalize(self) -> None:
        self._link()
        super().finalize()

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Compiler(compiler.Compiler):
    """Numba's, whose code is linked before it is optimised."""

    library: Any
    flags: tuple[str, ...]

    def define_pipelines(self) -> list[Any]:
        state = self.state
        pipelines = super().define_pipelines()
        if state.func_id.func in (_successor, _trial) or linking_works():
            state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            for flag in self.flags:
                setattr(state.flags, flag, True)
        return pipelines


class _KernelCompiler(_Compiler):
    """Makes the code of LLVM for callers."""

    library, flags = _KernelLibrary, ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")


class _EntryCompiler(_Compiler):
    """Makes machine code for Python."""

    library, flags = _EntryLibrary, ("no_cfunc_wrapper",)


class _Kernel(CPUDispatcher):
    """A function for compiled code; it gets machine code of its own where Python calls it."""

    def compile(self, sig: Any) -> Any:
        arguments, _ = sigutils.normalize_signature(sig)
        return super().compile(tuple(map(_without_value, arguments)))

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return super().get_call_template(
            tuple(map(_without_value, args)), {k: _without_value(v) for k, v in kws.items()}
        )

    def add_overload(self, cres: Any) -> None:
        if cres.entry_point is None:
            cres = cres._replace(entry_point=object())  # callers find the code by it
            self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)

    @cached_property
    def _with_code(self) -> Any:
        return entered(self.py_func, **self.targetoptions)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:  # when Python calls it
        return self._with_code._compile_for_args(*args, **kws)


class _Entry(CPUDispatcher):
    """A function for Python."""

    def compile(self, sig: Any) -> Any:
        enabled = gc.isenabled()
        gc.disable()  # a compiler makes millions of objects that stay
        try:
            return super().compile(sig)
        finally:
            if enabled:
                gc.enable()


def _without_value(argument: Any) -> Any:
    """Return int64 for the type of a constant: kernels are compiled once for all constants."""
    return types.int64 if isinstance(argument, types.IntegerLiteral) else argument


def _successor(number: int) -> int:
    return number + 1


_SUCCESSOR = linked(_successor)


def _trial(number: int) -> Any:
    return _SUCCESSOR(number)


@cache
def linking_works() -> bool:
    """Return whether this version of Numba links kernels, by trying it."""
    try:
        return bool(entered(_trial)(1) == 2)
    except Exception:  # any error, as a compiler's internals may differ
        return False
