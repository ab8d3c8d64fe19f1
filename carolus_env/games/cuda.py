"""A `GameBatch` on an NVIDIA GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cuda

from carolus_env import engine
from carolus_env.engine import cuda as kernels
from carolus_env.engine import observation as observing
from carolus_env.engine.cuda import DeviceArray, DeviceStates, Launch, on_gpu, to_host
from carolus_env.engine.kernels.legal import LEGAL_SETS
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.stepping import Outcomes
from carolus_env.games.batch import GameBatch, Rollout, Turn
from carolus_env.system.options import whole_number


class CudaBatch(GameBatch):
    """``GameBatch(..., device="cuda")``: the same games, by the same kernels."""

    def _allocate(self, threads: int) -> None:
        rules, n, kind = self.rules, self.n, self._observation
        length = observing.length(rules.players)
        words = kernels.full_blocks(n) * length // kernels.WORD if kind == "uint8" else 1
        raw = _zeros(words, np.uint64)
        scaled = _zeros((n, length) if kind == "float32" else (1, 1), np.float32)
        seen = scaled if kind == "float32" else None
        if kind == "uint8":
            seen = raw.view(np.uint8)[: n * length].reshape(n, length)
        legal_rows, masks = _zeros(n, np.int64), _zeros((n, ACTIONS), np.int8)
        flags = _zeros(n, np.bool_), _zeros(n, np.bool_)
        outcomes = Outcomes(_zeros((n, rules.players), np.float32), *flags)
        self._table = cuda.to_device(LEGAL_SETS)
        scales = cuda.to_device(observing.scales(rules.players))
        self._views = kernels.Views(legal_rows, self._table, masks, raw, scales, scaled)
        self.states = DeviceStates(n, rules.players, self.check)
        self.masks = DeviceArray(masks, self.check)
        self.observations = None if seen is None else DeviceArray(seen, self.check)
        self.rewards, self.terminated, self.truncated = (
            DeviceArray(array, self.check) for array in outcomes
        )
        self.generators = _zeros(n, np.uint64)
        self._actions = _zeros(n, np.int64)
        self._totals = _zeros(rules.players + 1, np.float64)
        self._refused = cuda.to_device(kernels.NO_REFUSAL)
        self._steps = 0
        entries = kernels.entries(rules.players, kind)

        def launch(kernel: Any, *arguments: Any) -> Launch:
            arguments = (self.states.words, *arguments, outcomes, self._views)
            return Launch(kernel, n, *arguments, threads=entries.threads, shared=entries.shared)

        blank = cuda.to_device(engine.blank_games(rules, 1).view(np.uint8))
        self._refresh = launch(entries.refresh, self.generators, 0, blank)
        self._play_all = launch(entries.play, self._actions, 0, self._refused, blank)
        self._roll_out = launch(entries.rollout, self.generators, 0, blank, self._totals)
        self._sample = Launch(kernels.sample, n, legal_rows, self.generators, self._actions)

    def _saved(self) -> tuple[Any, ...]:
        arrays = self.states, self.rewards, self.terminated, self.truncated
        return self.generators, *(array.array for array in arrays)

    def __getstate__(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in ("rules", "n", "device", "_observation")}
        self.check()
        return {"made": made, "arrays": [to_host(array) for array in self._saved()]}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(parts["made"])
        self._allocate(1)
        for array, content in zip(self._saved(), parts["arrays"], strict=True):
            _write(array, content)
        self._refresh()

    def __deepcopy__(self, memo: dict[int, Any]) -> GameBatch:
        copied = object.__new__(type(self))
        copied.__setstate__(self.__getstate__())
        return copied

    def _restart(self, generators: npt.NDArray[np.uint64], streams: npt.NDArray[np.uint64]) -> None:
        _write(self._refused, kernels.NO_REFUSAL)
        _write(self.generators, generators)
        self._refresh({2: 1})
        _write(self.generators, streams)

    def refresh(self) -> None:
        self._check_players()
        self._refresh({2: 0})

    def step(self, actions: Any, *, copy: bool = False, check: bool = False) -> Turn:
        chosen = self._integers(actions)
        if check:
            self.check()
            first, given = cuda.to_device(np.array([self.n])), on_gpu(chosen)
            views = self._views.legal_rows, self._table
            Launch(kernels.find_illegal, self.n, given, *views, first)()
            if (game := int(to_host(first)[0])) < self.n:
                raise self._refusal(game, int(to_host(given)[game]))
        self._steps += 1
        self._play_all({1: chosen, 2: self._steps})
        return self.turn(copy=copy)

    def _integers(self, actions: Any) -> Any:
        """Return ``(n,)`` actions as an int64 array on the GPU."""
        given = getattr(actions, kernels.INTERFACE, None)
        if given is None:
            _write(self._actions, engine.whole_numbers(np.asarray(actions), "actions", self.n))
            return self._actions
        dtype, shape = np.dtype(given["typestr"]), tuple(given["shape"])
        if dtype.kind not in "iu":
            raise TypeError(f"actions must be integers, got dtype {dtype}")
        if shape != (self.n,):
            raise ValueError(f"actions must be one a game, shape ({self.n},), got {shape}")
        if dtype == np.int64 and given.get("strides") in (None, (8,)):
            return actions
        Launch(kernels.as_int64, self.n, on_gpu(actions), self._actions)()
        return self._actions

    def _refusal(self, game: int, action: int) -> ValueError:
        return engine.refusal(to_host(self.states.array), game, action)

    def check(self) -> None:
        _, code = refused = to_host(self._refused)
        if (refused != kernels.NO_REFUSAL).any():
            _write(self._refused, kernels.NO_REFUSAL)
            raise self._refusal(*kernels.read_refusal(int(code)))

    def sample(self) -> DeviceArray:
        self._sample()
        return DeviceArray(self._actions, self.check)

    def rollout(self, decisions: int) -> Rollout:
        decisions = whole_number("decisions", decisions, 0)
        _write(self._totals, np.zeros(self.rules.players + 1))
        self._roll_out({2: decisions})
        *returns, ended = to_host(self._totals)
        self.check()
        return Rollout(decisions * self.n, int(ended), np.array(returns))


def _zeros(shape: Any, dtype: Any) -> Any:
    return cuda.to_device(np.zeros(shape, dtype))


def _write(array: Any, content: npt.NDArray[Any]) -> None:
    array.copy_to_device(content, stream=kernels.current_stream())
