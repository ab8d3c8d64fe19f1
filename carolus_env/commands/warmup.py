"""Compile kernels now, rather than when they are first used.

    carolus warmup                          # all but training, sb3 and agents with models
    carolus warmup aec value:2p --workers 4

NAME is an interface (engine, batch, aec, gym, vector, turns, evaluation, training, sb3) or an
agent, as docs/bots.md names it. Compiled code is kept for this machine and this version of the
package (docs/installing.md), so that every later process starts at once. The engine comes first,
since everything uses it; the others are compiled side by side.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import gymnasium
import numpy as np

import carolus_env as ce
from carolus_env import bots, carolus_magnus_v0, evaluation, learners
from carolus_env.envs.learner import LearnerGames
from carolus_env.evaluation.games import refusal
from carolus_env.system import compiler
from carolus_env.system.command import DONE, FAILED, command, parse
from carolus_env.system.executors import MOST_PROCESSES
from carolus_env.system.machine import cores
from carolus_env.system.options import argument, option
from carolus_env.system.untrusted import message

PARTS: Final = ("engine (set-up)", "engine (decisions)", "engine (observations)")
INTERFACES: Final = ("batch", "aec", "gym", "vector", "turns", "evaluation", "training", "sb3")
USUAL: Final = ("engine", *INTERFACES[:-2], "random", "greedy", "planner", "mcts")


def _use(name: str) -> None:
    """Use a part of the engine, an interface or an agent once."""
    rules, streams = ce.Rules(), ce.new_streams(0, 2)
    games = ce.new_games(rules, 2, seed=0)
    match name:
        case "engine (set-up)":
            pass
        case "engine (decisions)":
            for _ in range(3):
                ce.step(games, ce.random_actions(games, streams))
            for result in (ce.legal_masks, ce.returns, ce.engine.win_shares):
                result(games)
        case "engine (observations)":
            for dtype in (np.uint8, np.float32):
                ce.observe(games, np.zeros(2, np.int64), dtype=dtype)
            game = ce.Game(seed=0)
            game.play(int(game.legal_actions[0]))
        case "batch":
            for observation in (None, "uint8", "float32"):
                batch = ce.GameBatch(rules, 2, seed=0, observation=observation)
                batch.step(batch.sample())
                batch.rollout(1)
            ce.playout(batch.states, streams)
        case "aec":
            for aec in (carolus_magnus_v0.env(), carolus_magnus_v0.env(observation="uint8")):
                aec.reset(seed=0)
                for _ in range(3):
                    aec.step(int(aec.last()[0]["action_mask"].argmax()))
        case "gym":
            _step(gymnasium.make("CarolusMagnus-v0", disable_env_checker=True))
        case "vector":
            _step(gymnasium.make_vec("CarolusMagnus-v0", 2))
        case "turns":
            _step(gymnasium.make("CarolusMagnusTurns-v0", disable_env_checker=True))
            _step(gymnasium.make_vec("CarolusMagnusTurns-v0", 2))
        case "training":
            for kind in map(learners.learner, ("ppo", "value")):
                kind.begin(kind.Config()).warm_up()
        case "sb3":
            from carolus_env.envs.sb3 import CarolusVecEnv

            _step(CarolusVecEnv(rules, 2))
        case "evaluation":
            evaluation.play_pairing((bots.make("random"), bots.make("random")), rules, 2, seed=0)
        case _:
            agent = bots.make(name)  # a model is for one number of players
            playable = (each for each in map(ce.Rules, (2, 3, 4)) if not refusal(agent, each))
            rules = next(playable, rules)
            opponents = LearnerGames(rules, 2, agent, seed=0)
            opponents.step(opponents.masks().argmax(axis=1))
            agent.act(ce.new_games(rules, 2, seed=0), streams)


def _step(env: Any) -> None:
    env.reset()
    env.step(getattr(env, "unwrapped", env).action_masks().argmax(axis=-1))


def compile_one(name: str) -> tuple[float, list[str]]:
    """Compile what is used, in this process; return the seconds, and names of the functions."""
    functions: list[str] = []
    started = time.perf_counter()
    with compiler.notice.told(functions.append):
        _use(name)
    return time.perf_counter() - started, [text.split()[0] for text in functions]


@dataclass(frozen=True)
class WarmupOptions:
    """The options of the command."""

    names: tuple[str, ...] = argument("what to compile", "NAME", USUAL)
    workers: int = option(cores(), "processes", among=(1, MOST_PROCESSES))


@command("carolus warmup")
def main(arguments: Sequence[str], program: str) -> int:
    """Compile, print what was compiled, and return the exit code."""
    options = parse(WarmupOptions, arguments, program, __doc__).options
    names = [name for name in dict.fromkeys(options.names) if name != "engine"]
    code, width = DONE, max(map(len, [*PARTS, *names]))
    print(f"compiling with {options.workers} workers; the engine first", flush=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for group in (PARTS[:1], PARTS[1:], names):
            waiting = {pool.submit(compile_one, name): name for name in group}
            for future in as_completed(waiting):
                name = waiting[future]
                try:
                    seconds, functions = future.result()
                except Exception as error:  # a package is missing, or a user's file fails
                    code = FAILED
                    print(f"  {name}  failed: {message(error)}", file=sys.stderr)
                else:
                    compiled = ", ".join(dict.fromkeys(functions)) or "nothing more"
                    print(f"  {name:{width}}  {seconds:5.1f} s  {compiled}", flush=True)
    return code
