"""The games of a `GameBatch` on an NVIDIA GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cuda

from carolus_env import engine
from carolus_env.engine import cuda as kernels
from carolus_env.engine import observation as observing
from carolus_env.engine.device import (
    INTERFACE,
    DeviceArray,
    DeviceStates,
    Launch,
    current_stream,
    on_gpu,
    to_host,
)
from carolus_env.engine.kernels.legal import LEGAL_SETS
from carolus_env.engine.rules import ACTIONS, Rules
from carolus_env.engine.state import States
from carolus_env.engine.stepping import Outcomes


class CudaGames:
    """``n`` games on the GPU, and the buffers that describe them: `batch.CpuGames` on a GPU."""

    def __init__(self, rules: Rules, n: int, observation: str | None) -> None:
        self.rules, self.n, self._kind = rules, n, observation
        self.states = DeviceStates(n, rules.players, self.check)
        legal_rows = cuda.to_device(np.zeros(n, np.int64))
        masks, rewards = _zeros((n, ACTIONS), np.int8), _zeros((n, rules.players), np.float32)
        terminated, truncated = _zeros(n, np.bool_), _zeros(n, np.bool_)
        length = observing.length(rules.players)
        rows = -(-n // kernels.MOST_THREADS) * kernels.MOST_THREADS
        words = rows * length // kernels.WORD if observation == "uint8" else 1
        raw = cuda.to_device(np.zeros(words, np.uint64))
        scaled = _zeros((n, length) if observation == "float32" else (1, 1), np.float32)
        scales = cuda.to_device(observing.scales(rules.players))
        self.observations: DeviceArray | None = None
        if observation == "uint8":
            seen = raw.view(np.uint8)[: n * length].reshape(n, length)
            self.observations = DeviceArray(seen, self.check)
        elif observation == "float32":
            self.observations = DeviceArray(scaled, self.check)
        self.masks, self.rewards = DeviceArray(masks, self.check), DeviceArray(rewards, self.check)
        self.terminated = DeviceArray(terminated, self.check)
        self.truncated = DeviceArray(truncated, self.check)
        self._table = cuda.to_device(LEGAL_SETS)
        self._views = kernels.Views(legal_rows, self._table, masks, raw, scales, scaled)
        self._outcomes = Outcomes(rewards, terminated, truncated)
        self.generators = cuda.to_device(np.zeros(n, np.uint64))
        self._actions = cuda.to_device(np.zeros(n, np.int64))
        self._totals = cuda.to_device(np.zeros(rules.players + 1))
        self._refused = cuda.to_device(kernels.NO_REFUSAL)
        self._steps = 0
        blank = cuda.to_device(engine.blank_games(rules, 1).view(np.uint8))
        records, streams, views = self.states.words, self.generators, self._views
        entries = kernels.entries(rules.players, observation)
        block = {"threads": entries.threads, "shared": entries.shared}
        self._set_up = Launch(kernels.set_up, n, records, streams, blank, self._outcomes, **block)
        self._refresh = Launch(entries.refresh, n, records, views, **block)
        self._go_on = Launch(kernels.go_on, n, records, blank, n, **block)
        self._play = Launch(
            *(entries.play, n, records, self._actions, 0, self._refused, blank),
            *(self._outcomes, views),
            **block,
        )
        self._rollout = Launch(
            *(entries.rollout, n, records, streams, 0, blank, self._totals),
            *(self._outcomes, views),
            **block,
        )
        self._sample = Launch(kernels.sample, n, legal_rows, streams, self._actions)

    def __getstate__(self) -> dict[str, Any]:
        arrays = (self.states, self.rewards, self.terminated, self.truncated)
        return {
            "made": (self.rules, self.n, self._kind),
            "arrays": [array.copy_to_host() for array in arrays],
            "generators": to_host(self.generators),
        }

    def __setstate__(self, parts: dict[str, Any]) -> None:
        self.__init__(*parts["made"])  # type: ignore[misc]
        arrays = (self.states, self.rewards, self.terminated, self.truncated)
        for array, content in zip(arrays, parts["arrays"], strict=True):
            array.array.copy_to_device(content, stream=current_stream())
        self.generators.copy_to_device(parts["generators"], stream=current_stream())
        self._refresh()

    def reset(self, generators: npt.NDArray[np.uint64], streams: npt.NDArray[np.uint64]) -> None:
        """Restart all games by their generators, and the streams of `sample`."""
        self.generators.copy_to_device(generators, stream=current_stream())
        self._set_up()
        self.generators.copy_to_device(streams, stream=current_stream())
        self._refused.copy_to_device(kernels.NO_REFUSAL, stream=current_stream())
        self._refresh()

    def refresh(self) -> None:
        """See `GameBatch.refresh`."""
        self._go_on()
        self._refresh()

    def play(self, actions: Any, check: bool) -> None:
        """See `GameBatch.step`."""
        chosen = self._integers(actions)
        if check:
            self.check()
            legal_rows, first = self._views.legal_rows, cuda.to_device(np.array([self.n]))
            given = on_gpu(chosen)
            Launch(kernels.find_illegal, self.n, given, legal_rows, self._table, first)()
            if (game := int(to_host(first)[0])) < self.n:
                raise self._refusal(game, int(to_host(given)[game]))
        self._steps += 1
        self._play({1: chosen, 2: self._steps})

    def _integers(self, actions: Any) -> Any:
        """Return ``(n,)`` actions as an int64 array on the GPU."""
        given = getattr(actions, INTERFACE, None)
        if given is None:
            chosen = engine.whole_numbers(np.asarray(actions), "actions", self.n)
            self._actions.copy_to_device(chosen, stream=current_stream())
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
        return engine.refusal(self._host_states(), game, action)

    def _host_states(self) -> States:
        return to_host(self.states.array)

    def check(self) -> None:
        """Raise the error of an illegal action that was played since the last call."""
        _, code = refused = to_host(self._refused)
        if (refused != kernels.NO_REFUSAL).any():
            self._refused.copy_to_device(kernels.NO_REFUSAL, stream=current_stream())
            raise self._refusal(*kernels.read_refusal(int(code)))

    def sample(self) -> DeviceArray:
        """See `GameBatch.sample`."""
        self._sample()
        return DeviceArray(self._actions)

    def rollout(self, decisions: int) -> tuple[int, npt.NDArray[np.float64]]:
        """See `GameBatch.rollout`; returns the games that ended, and the sums of their payoffs."""
        self._totals.copy_to_device(np.zeros(self.rules.players + 1), stream=current_stream())
        self._rollout({2: decisions})
        *returns, ended = to_host(self._totals)
        self.check()
        return int(ended), np.array(returns)


def _zeros(shape: Any, dtype: Any) -> Any:
    return cuda.to_device(np.zeros(shape, dtype))
