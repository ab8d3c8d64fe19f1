"""Compile kernels now, rather than when they are first used.

    carolus warmup                          # all but sb3, and the agents without models
    carolus warmup aec value:2p --workers 4

NAME is an interface (engine, batch, aec, gym, vector, turns, sb3, evaluation) or an agent, as
docs/bots.md names it. Compiled code is kept for this machine and this version of the package
(docs/installing.md), so that every later process starts at once. The engine comes first, since
everything uses it; the others are compiled side by side.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final, NamedTuple

import numpy as np

import carolus_env as ce
from carolus_env import bots, engine, evaluation
from carolus_env.engine import observation
from carolus_env.engine.rules import Rules
from carolus_env.engine.streams import new_streams
from carolus_env.envs import aec
from carolus_env.envs.gym import (
    CarolusEnv,
    CarolusVectorEnv,
)
from carolus_env.envs.learner import LearnerGames
from carolus_env.system import compiler
from carolus_env.system.command import DONE, FAILED, command, parse
from carolus_env.system.executors import MOST_PROCESSES
from carolus_env.system.failures import message
from carolus_env.system.machine import cores
from carolus_env.system.options import option


def _set_up() -> None:
    engine.new_games(Rules(), 2, seed=0)


def _decisions() -> None:
    games, streams = engine.new_games(Rules(), 2, seed=0), new_streams(0, 2)
    for _ in range(3):
        engine.step(games, engine.random_actions(games, streams))
    engine.legal_masks(games)
    engine.returns(games)
    engine.win_shares(games)


def _observations() -> None:
    games = engine.new_games(Rules(), 2, seed=0)
    for dtype in (np.uint8, np.float32):
        observation.observe(games, np.zeros(2, np.int64), dtype=dtype)
    game = ce.Game(seed=0)
    game.play(int(game.legal_actions[0]))


def _engine() -> None:
    for use in _ENGINE.values():
        use()


def _batch() -> None:
    for dtype in (None, "uint8", "float32"):
        batch = ce.GameBatch(Rules(), 2, seed=0, observation=dtype)
        batch.step(batch.sample())
        batch.rollout(1)
    ce.playout(batch.states, new_streams(0, 2))


def _aec() -> None:
    for dtype in ("float32", "uint8"):
        env = aec.env(observation=dtype)
        env.reset(seed=0)
        for _ in range(3):
            env.step(int(env.last()[0]["action_mask"].argmax()))


def _play_one(env: CarolusEnv) -> None:
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))


def _many(env: CarolusVectorEnv) -> None:
    env.reset(seed=0)
    env.step(env.action_masks().argmax(axis=1))


def _turns() -> None:
    _play_one(CarolusEnv(turns=True))
    _many(CarolusVectorEnv(2, turns=True))


def _sb3() -> None:
    from carolus_env.envs.sb3 import CarolusVecEnv

    env = CarolusVecEnv(Rules(), 2)
    env.reset()
    env.step(env.action_masks().argmax(axis=1))


def _evaluation() -> None:
    evaluation.play_pairing((bots.make("random"), bots.make("random")), Rules(), 2, seed=0)


_ENGINE: Final[dict[str, Callable[[], None]]] = {
    "engine (set-up)": _set_up,
    "engine (decisions)": _decisions,
    "engine (observations)": _observations,
}
"""The engine in parts: the others compile side by side after the first."""

INTERFACES: Final[dict[str, Callable[[], None]]] = {
    "engine": _engine,
    "batch": _batch,
    "aec": _aec,
    "gym": lambda: _play_one(CarolusEnv()),
    "vector": lambda: _many(CarolusVectorEnv(2)),
    "turns": _turns,
    "sb3": _sb3,
    "evaluation": _evaluation,
}
"""Interfaces to compile besides agents, each with a function that uses it once."""

USUAL: Final = (
    *("engine", "batch", "aec", "gym", "vector", "turns", "evaluation"),
    *("random", "greedy", "planner", "mcts"),
)
"""Names to compile by default."""


def _agent(spec: str) -> None:
    """Let an agent decide, as an opponent and by `Agent.act`, in a game that it can play."""
    agent = bots.make(spec)
    failed: Exception | None = None
    for players in (2, 3, 4):
        try:
            games = LearnerGames(Rules(players), 2, agent, seed=0)
        except ValueError as error:  # a model is for one number of players
            failed = error
            continue
        games.step(games.masks().argmax(axis=1))
        agent.act(engine.new_games(Rules(players), 2, seed=0), new_streams(0, 2))
        return
    if failed is not None:
        raise failed


class Compiled(NamedTuple):
    """The functions that were compiled, and the seconds that it took."""

    seconds: float
    functions: list[str]


def compile_one(name: str) -> Compiled:
    """Compile the interface, part of the engine or agent in this process.

    Raises:
        ValueError: for an unknown agent.
    """
    functions: list[str] = []
    started = time.perf_counter()
    with compiler.notice.told(functions.append):
        if use := {**_ENGINE, **INTERFACES}.get(name):
            use()
        else:
            _agent(name)
    return Compiled(time.perf_counter() - started, [text.split()[0] for text in functions])


@dataclass(frozen=True)
class WarmupOptions:
    """The options of the command."""

    names: tuple[str, ...] = option(USUAL, "what to compile", positional=True, metavar="NAME")
    workers: int = option(cores(), "processes", among=(1, MOST_PROCESSES))


@command("carolus warmup")
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options = parse(WarmupOptions, arguments, program, __doc__).options
    names = [name for name in dict.fromkeys(options.names) if name != "engine"]
    first, *parts = _ENGINE
    width, failures = max(map(len, [*_ENGINE, *names])), 0
    print(f"compiling with {options.workers} workers; the engine first", flush=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for group in ([first], parts, names):
            waiting = {pool.submit(compile_one, name): name for name in group}
            for future in as_completed(waiting):
                name = waiting[future]
                try:
                    seconds, functions = future.result()
                except Exception as error:  # a package is missing, or a user's file fails
                    failures += 1
                    print(f"  {name}  failed: {message(error)}", file=sys.stderr)
                else:
                    compiled = ", ".join(dict.fromkeys(functions)) or "nothing more"
                    print(f"  {name:{width}}  {seconds:5.1f} s  {compiled}", flush=True)
    return FAILED if failures else DONE
