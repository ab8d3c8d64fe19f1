"""Arrays on an NVIDIA GPU, which other libraries read in place, and what launches its kernels.

Nothing here waits for the GPU but what needs its answer. Kernels run in PyTorch's current stream
where PyTorch uses the GPU, else in the default stream. Needs the extra ``gpu``.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.engine.chance import check_streams
from carolus_env.engine.state import STATE, States, as_states, copy
from carolus_env.system.machine import install

try:
    import numba_cuda  # noqa: F401 (without it, `numba.cuda` is an older one)
    from cuda import core
    from cuda.core.utils import StridedMemoryView
    from numba import cuda

    from carolus_env.engine import cuda as kernels
except ImportError as error:
    raise ImportError(
        f"a GPU needs numba-cuda and cuda-core ({error}): {install('gpu')}", name=error.name
    ) from None

# Few games are a question of taste: Numba would warn of each number below 4,096.
warnings.filterwarnings("ignore", r"(\x1b\[1m)?Grid size \d+ will likely")
SIMULATED: Final = bool(cuda.config.ENABLE_CUDASIM) if hasattr(cuda, "config") else False
_CUDA = 2  # DLPack's number of this kind of device
_POINTER = 4  # an array is flattened to two owners, its size, its item's size, and its address
INTERFACE: Final = "__cuda_array_interface__"


def check_gpu() -> None:
    """Check that there is a GPU."""
    if not cuda.is_available():
        why = str(cuda.cuda_error() if hasattr(cuda, "cuda_error") else "").split("\n")
        raise RuntimeError(
            "device='cuda' needs an NVIDIA GPU and its driver: "
            + (" ".join(filter(None, why)) or "none was found")
        )


def current_stream() -> Any:
    """Return PyTorch's current stream where PyTorch uses the GPU, else the default stream, 0."""
    torch = sys.modules.get("torch")
    if torch is None or SIMULATED or not torch.cuda.is_initialized():
        return 0
    return _stream(torch.cuda.current_stream().cuda_stream)


@cache
def _stream(handle: int) -> Any:
    return cuda.external_stream(handle) if handle else 0


class Launch:
    """A kernel with its arguments.

    Numba looks at every argument at every launch, which takes longer than a thousand games do. So
    after the first launch the arguments are kept as the driver takes them.
    """

    def __init__(
        self, kernel: Any, games: int, *arguments: Any, threads: int = 128, shared: int = 0
    ) -> None:
        self._kernel, self._arguments = kernel, list(arguments)
        self._grid, self._threads, self._shared = -(-games // threads), threads, shared
        self._prepared: tuple[Any, Any, list[Any], list[int]] | None = None
        self._first = not SIMULATED

    def __call__(self, replaced: Mapping[int, Any] = MappingProxyType({})) -> None:
        """Launch the kernel; ``replaced`` arguments are numbers, or arrays of the same type."""
        if self._prepared is None:
            arguments = [replaced.get(i, kept) for i, kept in enumerate(self._arguments)]
            arguments = [on_gpu(a) if hasattr(a, INTERFACE) else a for a in arguments]
            stream = current_stream()
            self._kernel[self._grid, self._threads, stream, self._shared](*arguments)
            if self._first:
                self._first, self._arguments = False, arguments
                with contextlib.suppress(Exception):  # another version of numba-cuda
                    self._prepared = self._prepare()
            return
        kernel, config, flat, starts = self._prepared
        for i, value in replaced.items():
            if isinstance(value, int):
                flat[starts[i]] = ctypes.c_int64(value)
            else:
                flat[starts[i] + _POINTER] = getattr(value, INTERFACE)["data"][0]
        core.launch(_core_stream(current_stream()), config, kernel, *flat)

    def _prepare(self) -> tuple[Any, Any, list[Any], list[int]]:
        """Return the driver's kernel and configuration, the flat arguments, and their starts."""
        (compiled,) = self._kernel.overloads.values()
        flat: list[Any] = []
        starts = []
        for kind, value in zip(compiled.argument_types, self._arguments, strict=True):
            starts.append(len(flat))
            compiled._prepare_args(kind, value, 0, [], flat)
        config = core.LaunchConfig(grid=self._grid, block=self._threads, shmem_size=self._shared)
        return compiled._codelibrary.get_cufunc().kernel, config, flat, starts


@cache
def _core_stream(stream: Any) -> Any:
    from numba.cuda.cudadrv import driver

    return driver._to_core_stream(stream)


def to_host(array: Any) -> npt.NDArray[Any]:
    """Return a copy of Numba's array as a NumPy array, when all before it in the stream is done."""
    stream = current_stream()
    copied = array.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    return np.asarray(copied)


class DeviceArray:
    """An array on the GPU.

    ``torch.from_dlpack``, ``jax.dlpack.from_dlpack``, ``cupy.from_dlpack`` and Numba's kernels
    read it in place. `copy_to_host`, or ``np.asarray``, waits for the GPU and copies it.
    """

    on_gpu: Final = True

    def __init__(self, array: Any, check: Callable[[], None] = lambda: None) -> None:
        self.array, self._check = array, check

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return np.dtype(self.array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape} and dtype {self.dtype.name}>"

    def copy(self) -> DeviceArray:
        """Return a copy on the GPU."""
        copied = cuda.device_array(self.shape, self.dtype)
        copied.copy_to_device(self.array, stream=current_stream())
        return DeviceArray(copied)

    def copy_to_host(self) -> npt.NDArray[Any]:
        """Return a copy as a NumPy array."""
        copied = to_host(self.array)
        self._check()
        return copied

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array on the GPU can only be copied")
        return np.asarray(self.copy_to_host(), dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self.array.__cuda_array_interface__
        return interface

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        own, other = current_stream(), _stream(0 if stream in (None, 0, 1) else stream)
        if stream != -1 and own is not other:
            written = cuda.event(timing=False)
            written.record(own)
            written.wait(other)
        view = StridedMemoryView.from_cuda_array_interface(self, stream_ptr=-1)
        return view.__dlpack__(stream=-1, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, cuda.get_current_device().id


class DeviceStates(DeviceArray):
    """Games on the GPU: ``(n,)`` of dtype `STATE`.

    ``states["player"]`` is the array of that field, for fields of one byte.

    Attributes:
        players: number of players, the same in all games.
        words: the records as 64-bit words, with room for as many games as full blocks have.
    """

    def __init__(self, n: int, players: int, check: Callable[[], None] = lambda: None) -> None:
        self.players = players
        words = kernels.full_blocks(n) * STATE.itemsize // kernels.WORD
        self.words = cuda.to_device(np.zeros(words, np.uint64))
        super().__init__(self.words.view(np.uint8)[: n * STATE.itemsize].view(STATE), check)

    def __getitem__(self, field: str) -> DeviceArray:
        dtype, offset = STATE.fields[field][:2]  # type: ignore[index]
        if dtype.base.itemsize > 1:
            raise ValueError(f"field {field!r} is of {dtype.base}, not aligned: copy_to_host first")
        record = self.array.__cuda_array_interface__
        part = {
            "shape": (*self.shape, *dtype.shape),
            "strides": np.empty(1, STATE)[field].strides,
            "typestr": dtype.base.str,
            "data": (record["data"][0] + offset, False),
            "version": 3,
        }
        return DeviceArray(cuda.from_cuda_array_interface(part, owner=self.words, sync=False))

    def copy_to_device(self, states: States) -> None:
        """Replace the games by ``states``, ``(n,)``; `GameBatch.refresh` then updates the views."""
        self.array.copy_to_device(copy(as_states(states)), stream=current_stream())

    def play_out(
        self, generators: Any, repeats: int, most_decisions: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Play each game to its end, see `play.playout`; return mean payoffs and decisions."""
        n, threads = len(self), kernels.MOST_THREADS
        if isinstance(generators, np.ndarray):
            check_streams(generators, self)  # type: ignore[arg-type]
        streams = on_gpu(generators)
        if streams.shape != (n,) or streams.dtype != np.uint64:
            raise ValueError(
                f"generators must be uint64 of shape ({n},), got {streams.dtype} of {streams.shape}"
            )
        payoffs = cuda.to_device(np.zeros((n, self.players), np.float32))
        decisions = cuda.to_device(np.zeros(n, np.int64))
        arguments = self.words, streams, repeats, most_decisions, payoffs, decisions
        shared = kernels.shared_bytes(threads)
        Launch(kernels.play_out, n, *arguments, threads=threads, shared=shared)()
        if isinstance(generators, np.ndarray):
            generators[:] = to_host(streams)
        return DeviceArray(payoffs), DeviceArray(decisions)


def on_gpu(values: Any) -> Any:
    """Return Numba's array of values on the GPU, in place where they are there, else a copy."""
    if isinstance(values, DeviceArray):
        return values.array
    if hasattr(values, INTERFACE):
        return cuda.from_cuda_array_interface(
            values.__cuda_array_interface__, owner=values, sync=False
        )
    return cuda.to_device(np.array(values, order="C"), stream=current_stream())
