"""Workers that play and learn side by side: each has games of its own, all have one network.

A rollout is played by all workers at once. Then every gradient step takes decisions of each worker,
and their gradients are summed in the workers' order. So what is learnt depends on the seed and on
the number of workers, not on the cores that they find, or whether rollouts are played by threads of
this process or by actors elsewhere. Gradients are always computed here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.turns.inference import Head, Judge
from carolus_env.engine.rules import MAX_TEAMS, TERRITORIES
from carolus_env.engine.state import States
from carolus_env.engine.stepping import Fresh
from carolus_env.engine.streams import branches, new_streams
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.gradients import (
    Adam,
    Gradients,
    Layers,
    Loss,
    add_gradients,
    step,
    step_rows,
)
from carolus_env.learners.turns.rollouts import Memory, play, work_out
from carolus_env.networks.forward import Weights
from carolus_env.planning.plans import WIDTHS
from carolus_env.system import workers
from carolus_env.system.processes import Workers

Floats = npt.NDArray[np.float32]

OF_MEANS: Final = 0.9
OF_SQUARES: Final = 0.999
TINY: Final = 1e-6
"""Of Adam: see `gradients.Adam`."""


@dataclass
class Worker:
    """What one worker plays and learns with."""

    states: States
    """``(N,)`` the games under way."""
    streams: npt.NDArray[np.uint64]
    """``(N,)`` the streams of their choices."""
    judge: Judge
    """The network, shared, with scratch."""
    memory: Memory
    """The decisions of the last rollout."""
    last: Floats
    """``(N, 3)`` what the policy expected after them."""
    layers: Layers
    """Scratch."""
    gradients: Gradients
    """Its share of the crew's gradients."""
    fresh: Fresh
    """What new games are made from."""


class Crew:
    """Workers, and the network that they share.

    Args:
        config: of the run.
    """

    weights: dict[str, Floats]
    """The network's, by name; changed in place."""
    told_of_games: npt.NDArray[np.float64]
    """``(2,)`` games that ended so far, and their rounds."""
    told: npt.NDArray[np.float64]
    """``(5,)`` the sum of what `add_gradients` told so far."""
    cpu_seconds: npt.NDArray[np.float64]
    """``(3,)`` of rollouts, gradients and steps, of all workers."""
    actors: Workers | None = None
    """Who plays rollouts in place of threads, where not None; begun with `Actor` as their job."""
    waited: float = 0.0
    """Seconds spent on waiting for actors."""

    def __init__(self, config: TurnConfig) -> None:
        self._config = config
        self.weights = config.first_weights()
        self._body, self._head = _shared(Weights, self.weights), _shared(Head, self.weights)
        self.means = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.squares = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self._gradients = {
            name: np.zeros((config.workers, *array.shape), np.float32)
            for name, array in self.weights.items()
        }
        self._touched = np.zeros((config.workers, len(self._body.rows)), np.bool_)
        self.steps = 0
        self.random = np.random.default_rng(config.seed)
        self.told_of_games, self.told, self.cpu_seconds = np.zeros(2), np.zeros(5), np.zeros(3)
        self._workers = [
            self._worker(place, games)
            for place, games in enumerate(workers.runs(config.games, config.workers))
        ]

    def _worker(self, place: int, games: slice) -> Worker:
        config, rules = self._config, self._config.rules()
        seeds = branches(np.uint64(config.seed), np.arange(games.start, games.stop))
        plans = WIDTHS.index(config.plans)
        judge = Judge.of(config.players, self._body, self._head, plans, config.candidates)
        own = {name: array[place] for name, array in self._gradients.items()}
        n = len(seeds)
        return Worker(
            engine.new_games(rules, n, seed=seeds),
            new_streams(seeds, n),
            judge,
            Memory.new(n * config.rollout, len(judge.logits), config.players),
            np.zeros((n, MAX_TEAMS), np.float32),
            Layers.new(judge),
            Gradients(_shared(Weights, own), _shared(Head, own), self._touched[place]),
            Fresh(engine.blank_games(rules, 1), np.zeros((1, TERRITORIES), np.int64)),
        )

    # -------------------------------------------------------------------------------- learning

    def warm_up(self) -> None:
        """Compile what learning needs; a crew of its own learns from a few decisions."""
        other = Crew(replace(self._config, games=1, workers=1, rollout=2, batch=2, epochs=1))
        other.play()
        other.learn(0.0, 0.0)

    def play(self) -> None:
        """A rollout of all games."""
        if self.actors is None:
            for told in self._together(self.rolled_out, self._workers, 0):
                self.told_of_games += told
        else:
            self._play_elsewhere(self.actors)

    def rolled_out(self, worker: Worker) -> npt.NDArray[np.float64]:
        """Let a worker play its rollout, and work out what that teaches; returns what was told."""
        config, told = self._config, np.zeros(2)
        games = worker.states, worker.streams, worker.fresh
        play(*games, worker.judge, worker.memory, worker.last, told)
        trace, gae_lambda = np.float32(config.trace), np.float32(config.gae_lambda)
        work_out(worker.memory, worker.last, trace, gae_lambda)
        return told

    def _play_elsewhere(self, actors: Workers) -> None:
        """A rollout by actors. They keep nothing: the games stay here, between two rollouts."""
        begun = time.monotonic()
        weights = actors.share(self.weights)
        tasks = ((weights, worker.states, worker.streams) for worker in self._workers)
        played = actors.all(tasks)
        self.waited += time.monotonic() - begun
        for worker, (states, streams, memory, told, seconds) in zip(
            self._workers, played, strict=True
        ):
            worker.states[...], worker.streams[...] = states, streams
            for name, array in worker.memory._asdict().items():
                array[...] = getattr(memory, name)
            self.told_of_games += told
            self.cpu_seconds[0] += seconds

    def learn(self, rate: float, entropy: float) -> None:
        """Learn from the last rollout.

        Args:
            rate: of learning.
            entropy: weight of the entropy.
        """
        config = self._config
        advantages = np.concatenate([worker.memory.advantages for worker in self._workers])
        loss = self._loss(float(advantages.mean()), 1 / (float(advantages.std()) + 1e-6), entropy)
        updates = max(len(advantages) // config.batch, 1)
        for _ in range(config.epochs):
            shares = [self._shares(worker, updates) for worker in self._workers]
            for update in range(updates):
                self._add_gradients([of_worker[update] for of_worker in shares], loss)
                self._step(rate)

    def _shares(self, worker: Worker, updates: int) -> list[npt.NDArray[np.int64]]:
        """A worker's decisions in random order, split into one part for each gradient step."""
        order = self.random.permutation(len(worker.memory.counts))
        return np.array_split(order, updates)

    def _loss(self, mean: float, scale: float, entropy: float) -> Loss:
        config = self._config
        numbers = (config.clip, entropy, config.value_weight, mean, scale, 1 / config.batch)
        return Loss(*map(np.float32, numbers))

    def _add_gradients(self, chosen: list[npt.NDArray[np.int64]], loss: Loss) -> None:
        def task(share: tuple[Worker, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
            worker, decisions = share
            told = np.zeros(5)
            add_gradients(
                *(decisions, worker.memory, worker.judge, worker.layers, worker.gradients),
                *(loss, told),
            )
            return told

        for told in self._together(task, list(zip(self._workers, chosen, strict=True)), 1):
            self.told += told

    def _step(self, rate: float) -> None:
        """One step of Adam; the rows of the tables are shared out among the workers."""
        self.steps += 1
        corrected = rate * np.sqrt(1 - OF_SQUARES**self.steps) / (1 - OF_MEANS**self.steps)
        adam = Adam(*map(np.float32, (corrected, OF_MEANS, OF_SQUARES, TINY)))
        runs = workers.runs(len(self._body.rows), len(self._workers))

        def task(rows: slice) -> None:
            step_rows(
                *(rows.start, rows.stop, self._touched, self.weights["rows"]),
                *(self.means["rows"], self.squares["rows"], self._gradients["rows"], adam),
            )
            if rows.start == 0:
                for name in self.weights.keys() - {"rows"}:
                    step(
                        self.weights[name].reshape(-1),
                        self.means[name].reshape(-1),
                        self.squares[name].reshape(-1),
                        self._gradients[name].reshape(len(self._touched), -1),
                        adam,
                    )

        self._together(task, runs, 2)

    def _together(self, task: Callable[[Any], Any], shares: list[Any], kind: int) -> list[Any]:
        """`workers.together`, with the CPU time noted."""

        def timed(share: Any) -> tuple[Any, float]:
            begun = time.thread_time()
            return task(share), time.thread_time() - begun

        found = workers.together(timed, shares)
        self.cpu_seconds[kind] += sum(seconds for _, seconds in found)
        return [result for result, _ in found]

    # -------------------------------------------------------------------------------- resuming

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """With `numbers`, what `restore` needs."""
        found: dict[str, npt.NDArray[Any]] = {}
        for kind in ("weights", "means", "squares"):
            found |= {f"{kind}/{name}": array for name, array in getattr(self, kind).items()}
        for place, worker in enumerate(self._workers):
            found[f"states/{place}"] = worker.states.view(np.uint8).reshape(len(worker.states), -1)
            found[f"streams/{place}"] = worker.streams
        for name in ("told_of_games", "told", "cpu_seconds"):
            found[name] = getattr(self, name)
        return found

    def numbers(self) -> dict[str, Any]:
        """See `arrays`."""
        return {"steps": self.steps, "random": self.random.bit_generator.state}

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what `numbers` and `arrays` returned.

        Raises:
            KeyError, ValueError: for those of another network or number of games.
        """
        for name, array in self.arrays().items():
            if array.shape != arrays[name].shape:
                raise ValueError(f"{name} must be {array.shape}, got {arrays[name].shape}")
            array[...] = arrays[name]
        self.steps = int(numbers["steps"])
        self.random.bit_generator.state = numbers["random"]


@dataclass(frozen=True)
class Actor:
    """The job of actors: each plays the rollout of a task's games as one worker of a crew."""

    config: TurnConfig

    def __call__(self) -> Callable[..., tuple[Any, ...]]:
        crews: dict[int, Crew] = {}  # by number of games

        def play(
            weights: Mapping[str, Floats], states: States, streams: npt.NDArray[np.uint64]
        ) -> tuple[Any, ...]:
            games = len(states)
            if games not in crews:
                crews[games] = Crew(replace(self.config, games=games, workers=1, start=None))
            crew = crews[games]
            [worker] = crew._workers
            for name, array in crew.weights.items():
                array[...] = weights[name]
            worker.states[...], worker.streams[...] = states, streams
            begun = time.thread_time()
            told = crew.rolled_out(worker)
            seconds = time.thread_time() - begun
            return worker.states, worker.streams, worker.memory, told, seconds

        return play


def _shared(kind: type[Any], arrays: Mapping[str, Floats]) -> Any:
    """Arrays by name as a NamedTuple, not copied."""
    return kind(*(arrays[name] for name in kind._fields))
