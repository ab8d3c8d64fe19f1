"""Files of GPU code: numba-cuda's, with the folder and the stamp of `system.kernel_cache`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.cuda.core import caching
from numba.cuda.dispatcher import CUDACache, CUDACacheImpl

from carolus_env.system.compiler import notice
from carolus_env.system.kernel_cache import cache_folder, sources_stamp


class _Locator(caching._CacheLocator):
    """The folder and the stamp of a function's files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)

    def get_cache_path(self) -> str:
        return f"{cache_folder()}/cuda"

    def get_source_stamp(self) -> bytes:
        return sources_stamp(self._function)

    def get_disambiguator(self) -> str:
        return ""


class _CacheImpl(CUDACacheImpl):
    _locator_classes = (_Locator,)


class _Cache(CUDACache):
    """The files of a kernel that was made for ``key``, the values of its function's closure."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any], key: tuple[Any, ...]) -> None:
        self._key = key
        super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        code = super().load_overload(sig, target_context)
        if code is None:
            notice.begin(self._py_func)
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        notice.end()
        super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self._key)


def keep_gpu_code(dispatcher: Any, key: tuple[Any, ...]) -> None:
    """Keep the code of a kernel of `numba.cuda.jit` for the next process."""
    if cache_folder():
        dispatcher._cache = _Cache(dispatcher.py_func, key)
