"""The rules on an NVIDIA GPU: the engine's kernels, each game in a thread; the arrays they work on.

A block of threads copies the records of its games into its shared memory, plays there, and copies
them back. So every access to global memory is to neighbouring bytes; and since a record has an odd
number of bytes, threads that read the same field of their games rarely read from the same bank.
Shared memory holds the block's records, a blank record, and the block's observations.

Nothing here waits for the GPU but what needs its answer. Kernels run in PyTorch's current stream
where PyTorch uses the GPU, else in the default stream. Needs the extra ``gpu``. With
``NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1`` it is ordinary Python in Numba's simulator.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from carolus_env.engine import observation, stepping
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.rules import ACTIONS, OVER
from carolus_env.engine.state import STATE, States, as_states, copy
from carolus_env.engine.stepping import Outcomes
from carolus_env.system.arrays import F32, F64, I8, I64, U8, U64, Int
from carolus_env.system.compiler import keep_gpu_code
from carolus_env.system.machine import install

try:
    import numba_cuda  # noqa: F401 (without it, `numba.cuda` is an older one)
    from cuda import core
    from cuda.core.utils import StridedMemoryView
    from numba import cuda
except ImportError as error:
    raise ImportError(
        f"a GPU needs numba-cuda and cuda-core ({error}): {install('gpu')}", name=error.name
    ) from None

SIMULATED: Final = bool(numba.config.ENABLE_CUDASIM)

# Few games are a question of taste: Numba would warn of each number below 4,096.
warnings.filterwarnings("ignore", r"(\x1b\[1m)?Grid size \d+ will likely")
_CUDA = 2  # DLPack's number of this kind of device
_POINTER = 4  # an array is flattened to two owners, its size, its item's size, and its address
INTERFACE: Final = "__cuda_array_interface__"
_RECORD, _RECORD_BYTES = numba.from_dtype(STATE), STATE.itemsize
WARP: Final = 32  # threads that run in step
MOST_THREADS: Final = 128  # of a block; arrays of records have room for full blocks of that size
WORD: Final = 8  # bytes that a thread copies at a time
BLANK_BYTES: Final = -(-_RECORD_BYTES // WORD) * WORD  # of the blank record in shared memory

# What ``refused`` holds, the step and the code of an illegal action, while there is none.
NO_REFUSAL: Final = np.full(2, np.iinfo(np.int64).max)
MOST_SHOWN: Final = 9999  # illegal actions are reported up to this number, with either sign
_GAME_SHIFT = 15

# ------------------------------------------------------------------------------------ arrays


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
    """A kernel with its arguments, which are kept as the driver takes them after the first launch.

    Numba looks at every argument at every launch: that takes longer than a thousand games do.
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
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape} and dtype {self.dtype.name}>"

    def copy(self) -> DeviceArray:
        """Return a copy on the GPU."""
        copied = cuda.device_array(self.shape, self.dtype)
        copied.copy_to_device(self.array, stream=current_stream())
        return DeviceArray(copied, self._check)

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
    """Games on the GPU: ``(n,)`` of dtype `STATE`, all of as many players.

    ``states["player"]`` is the array of that field, for fields of one byte.
    """

    def __init__(self, n: int, players: int, check: Callable[[], None] = lambda: None) -> None:
        self.players = players
        words = full_blocks(n) * STATE.itemsize // WORD  # room for the games of full blocks
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
        array = cuda.from_cuda_array_interface(part, owner=self.words, sync=False)
        return DeviceArray(array, self._check)

    def copy_to_device(self, states: States) -> None:
        """Replace the games by ``states``, ``(n,)``; `GameBatch.refresh` then updates the views."""
        if (as_states(states)["players"] != self.players).any():
            raise ValueError(f"states must be games of {self.players} players, as those here")
        self.array.copy_to_device(copy(states), stream=current_stream())

    def play_out(
        self, generators: Any, repeats: int, most_decisions: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Play each game to its end, see `play.playout`; return mean payoffs and decisions."""
        n, threads = len(self), MOST_THREADS
        streams = on_gpu(generators)
        if streams.shape != (n,) or streams.dtype != np.uint64:
            raise ValueError(
                f"generators must be uint64 of shape ({n},), got {streams.dtype} of {streams.shape}"
            )
        payoffs = cuda.to_device(np.zeros((n, self.players), np.float32))
        decisions = cuda.to_device(np.zeros(n, np.int64))
        arguments = self.words, streams, repeats, most_decisions, payoffs, decisions
        Launch(play_out, n, *arguments, threads=threads, shared=shared_bytes(threads))()
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


# ------------------------------------------------------------------------------------ kernels


class Views(NamedTuple):
    """What the kernels write about games: `stepping.Views` on the GPU."""

    legal_rows: I64  # (n,) the games' legal sets
    table: I8  # `LEGAL_SETS`: in constant memory, threads would read one after another
    masks: I8  # (n, 95)
    raw: U64  # uint8 observations as words, with room for the games of full blocks
    scales: F32  # (length,), for float32 observations
    scaled: F32  # (n, length) float32 observations


class Entries(NamedTuple):
    """Kernels for a number of players and a kind of observations."""

    threads: int  # of a block
    shared: int  # bytes of shared memory of a block
    refresh: Callable[..., None]
    play: Callable[..., None]
    rollout: Callable[..., None]


@cuda.jit(device=True)
def _load(words: U64) -> None:
    """Copy the block's records into shared memory."""
    threads = cuda.blockDim.x
    tile, size = cuda.shared.array(0, numba.uint64), threads * _RECORD_BYTES // WORD
    for i in range(cuda.threadIdx.x, size, threads):
        tile[i] = words[cuda.blockIdx.x * size + i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _store(words: U64) -> None:
    """Copy the block's records back."""
    threads = cuda.blockDim.x
    tile, size = cuda.shared.array(0, numba.uint64), threads * _RECORD_BYTES // WORD
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, size, threads):
        words[cuda.blockIdx.x * size + i] = tile[i]


@cuda.jit(device=True)
def _load_blank(blank: U8) -> None:
    """Copy the blank record into shared memory, behind the block's."""
    threads = cuda.blockDim.x
    copied = cuda.shared.array(0, numba.uint8)
    for i in range(cuda.threadIdx.x, _RECORD_BYTES, threads):
        copied[threads * _RECORD_BYTES + i] = blank[i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _allows(table: I8, legal_row: Int, action: Int) -> bool:
    """Return whether a legal set holds ``action``, any integer."""
    return 0 <= action < ACTIONS and table[legal_row, action] == 1


@cuda.jit(device=True)
def _refuse(refused: I64, step: Int, g: Int, action: Int) -> None:
    """Note an illegal action of this step; of several, the first game's is kept."""
    cuda.atomic.min(refused, 0, step)
    shown = min(max(action, -MOST_SHOWN), MOST_SHOWN) + MOST_SHOWN
    cuda.atomic.min(refused, 1, (g << _GAME_SHIFT) + shown)


def read_refusal(code: int) -> tuple[int, int]:
    """Return the game and the action of ``refused[1]``."""
    game, shown = divmod(code, 1 << _GAME_SHIFT)
    return game, shown - MOST_SHOWN


@cuda.jit(device=True)
def _clear(outcomes: Outcomes) -> None:
    g = cuda.grid(1)
    if g < outcomes.terminated.shape[0]:
        outcomes.terminated[g] = outcomes.truncated[g] = False
        for seat in range(outcomes.rewards.shape[1]):
            outcomes.rewards[g, seat] = 0.0


def full_blocks(games: int) -> int:
    """Return the rows of arrays that hold full blocks of so many games."""
    return -(-games // MOST_THREADS) * MOST_THREADS


def shared_bytes(threads: int, length: int = 0) -> int:
    """Return the bytes of a block's shared memory, with observations of a length."""
    return threads * (_RECORD_BYTES + length) + BLANK_BYTES


@cache
def entries(players: int, kind: str | None, threads: int = WARP) -> Entries:
    """Return the kernels for a number of players and observations of a dtype, or None."""
    at = observation.offsets(players)
    raw, scaled = kind == "uint8", kind == "float32"
    length = at.length
    shared = shared_bytes(threads, length if kind else 0)
    seen_start, seen_words = shared_bytes(threads), threads * length // WORD
    totals_row = (1, players + 1)  # a sum for each seat, and the number of games

    @cuda.jit(device=True)
    def write_views(views: Views) -> None:
        """Write the views of the block's games; the threads of a warp write each row together."""
        g, thread, lane = cuda.grid(1), cuda.threadIdx.x, cuda.threadIdx.x % WARP
        games, n = cuda.shared.array(0, _RECORD), views.legal_rows.shape[0]
        seen = cuda.shared.array(0, numba.uint8)
        if g < n:
            s = games[thread]
            views.legal_rows[g] = legal.legal_set(s)
            if raw or scaled:
                start = seen_start + thread * length
                observation.write_blocks(s, s["player"], at, seen[start : start + length])
        cuda.syncthreads()
        for row in range(g - lane, min(g - lane + WARP, n)):
            legal_row = views.legal_rows[row]
            for action in range(lane, ACTIONS, WARP):
                views.masks[row, action] = views.table[legal_row, action]
        if raw:
            words = cuda.shared.array(0, numba.uint64)
            for i in range(thread, seen_words, threads):
                views.raw[cuda.blockIdx.x * seen_words + i] = words[seen_start // WORD + i]
        if scaled:
            for k in range(min(WARP, n - g + lane)):
                start, row = seen_start + (thread - lane + k) * length, g - lane + k
                for i in range(lane, length, WARP):
                    views.scaled[row, i] = np.float32(seen[start + i]) * views.scales[i]
        cuda.syncthreads()

    @cuda.jit
    def refresh(
        records: U64, generators: U64, anew: Int, blank: U8, outcomes: Outcomes, views: Views
    ) -> None:
        """Roll what is due, and start the next game where one is over; write all views.

        With ``anew`` start a game everywhere, by its generator, and clear the outcomes.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        _load_blank(blank)
        _load(records)
        if g < generators.shape[0]:
            s = games[thread]
            if anew:
                s["generator"] = generators[g]
                s["phase"] = OVER
            turns.roll_on(s)
            if s["phase"] == OVER:
                stepping.start_anew(games, thread, games[threads : threads + 1])
        if anew:
            _clear(outcomes)
        write_views(views)
        _store(records)

    @cuda.jit
    def play(
        records: U64, actions: I64, step: Int, refused: I64, blank: U8, outcomes: Outcomes,
        views: Views,
    ) -> None:  # fmt: skip
        """Play an action in every game, with dice, outcomes, new games and views.

        A game that does not allow its action stays as it is, and `_refuse` notes it; then later
        steps do nothing.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        if refused[0] < step:
            return
        _load_blank(blank)
        _load(records)
        if g < actions.shape[0]:
            s = games[thread]
            if _allows(views.table, views.legal_rows[g], actions[g]):
                turns.play(s, actions[g])
                turns.roll_on(s)
            else:
                _refuse(refused, step, g, actions[g])
            stepping.note_outcome(s, g, outcomes)
            if s["phase"] == OVER:
                stepping.start_anew(games, thread, games[threads : threads + 1])
        write_views(views)
        _store(records)

    @cuda.jit
    def rollout(
        records: U64, generators: U64, decisions: Int, blank: U8, totals: F64, outcomes: Outcomes,
        views: Views,
    ) -> None:  # fmt: skip
        """Play random decisions in every game, all views written at each.

        Adds the payoffs of games that end, then their number, to ``totals``; clears the outcomes.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        own = cuda.local.array(totals_row, numba.float64)
        for k in range(players + 1):
            own[0, k] = 0.0
        _load_blank(blank)
        _load(records)
        for _ in range(decisions):
            write_views(views)
            if g < generators.shape[0]:
                s = games[thread]
                stepping.play_random_decision(s, views.legal_rows[g], generators, g)
                if s["phase"] == OVER:
                    turns.add_returns(s, own, 0)
                    own[0, players] += 1.0
                    stepping.start_anew(games, thread, games[threads : threads + 1])
            cuda.syncthreads()
        write_views(views)
        _clear(outcomes)
        for k in range(players + 1):
            cuda.atomic.add(totals, k, own[0, k])
        _store(records)

    for kernel in (refresh, play, rollout):
        keep_gpu_code(kernel, (players, kind, threads))
    return Entries(threads, shared, refresh, play, rollout)


@cuda.jit
def find_illegal(actions: I64, legal_rows: I64, table: I8, wrong: I64) -> None:
    """Write the first game that does not allow its action to ``wrong[0]``, if there is one."""
    g = cuda.grid(1)
    if g < actions.shape[0] and not _allows(table, legal_rows[g], actions[g]):
        cuda.atomic.min(wrong, 0, g)


@cuda.jit
def sample(legal_rows: I64, generators: U64, actions: I64) -> None:
    """Draw a legal action for each game, all equally likely."""
    g = cuda.grid(1)
    if g < legal_rows.shape[0]:
        actions[g] = legal.draw_action(legal_rows[g], generators, g)


@cuda.jit
def play_out(
    records: U64, generators: U64, repeats: Int, most: Int, payoffs: F32, decisions: I64
) -> None:
    """Play each game to its end at random, see `play.playout`; ``records`` stay as they are."""
    games, g = cuda.shared.array(0, _RECORD), cuda.grid(1)
    for _ in range(repeats):
        _load(records)
        if g < decisions.shape[0]:
            stepping.play_out_once(games[cuda.threadIdx.x], generators, most, payoffs, decisions, g)
        cuda.syncthreads()
    if g < decisions.shape[0]:
        for seat in range(payoffs.shape[1]):
            payoffs[g, seat] /= repeats


@cuda.jit
def as_int64(numbers: Any, result: I64) -> None:
    """Convert integers of any dtype."""
    g = cuda.grid(1)
    if g < result.shape[0]:
        result[g] = numbers[g]


for _kernel in (find_illegal, sample, play_out, as_int64):
    keep_gpu_code(_kernel, ())
