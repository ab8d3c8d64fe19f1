"""First steps with every interface, agent and learner: what `make oldest` and `make newest` run.

Interfaces are compiled; with NUMBA_DISABLE_JIT=1 agents and learners decide and learn a little in
plain Python, which is faster than compiling them. What needs PyTorch is named and left out where it
is missing: not every Python has a small build.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from math import isfinite
from time import perf_counter
from typing import Any

from numba.core.errors import NumbaDeprecationWarning, NumbaPendingDeprecationWarning

import carolus_env as ce
from carolus_env import bots, carolus_magnus_v0, learners
from carolus_env.commands import evaluate, warmup
from carolus_env.engine import rules
from carolus_env.system import options
from carolus_env.system.cancellation import Stop
from carolus_env.system.compiler import COMPILED

UPDATES = {
    "ppo": {"width": 16, "hidden": 4, "candidates": 6, "workers": 1, "envs": 2, "rollout": 1},
    "value": {"width": 16, "hidden": 4, "candidates": 6, "workers": 1, "max_rounds": 1},
    "sb3": {"region": 8, "whole": 8, "envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 1},
}
"""Options of each learner with which an update takes no time."""
SLOW = ("turns", "training")
"""Interfaces that take long to compile."""
FEW = {"mcts": "mcts:sims=2", "search": "search:sims=2"}


def decide(name: str) -> None:
    """Let an agent decide the last paladin of a turn, which leaves it few choices."""
    games, streams = ce.new_games(ce.Rules(), 1, seed=0), ce.new_streams(0, 1)
    while games["phase"][0] != rules.MOVE:
        before = games.copy()
        ce.step(games, ce.random_actions(games, streams))
    agent = bots.make(FEW.get(name, name))
    assert ce.legal_masks(before)[0, agent.act(before, streams)[0]]


def play_in_parallel() -> None:
    env = carolus_magnus_v0.parallel_env()
    observations, _ = env.reset(seed=0)
    for _ in range(3):
        chosen = {seat: int(each["action_mask"].argmax()) for seat, each in observations.items()}
        observations, *_ = env.step(chosen)


def update(name: str) -> None:
    kind = learners.learner(name)
    learner = kind.begin(options.make(kind.Config, UPDATES[name]))
    learner.warm_up()
    assert learner.learn(0, 2, 0.01, Stop()) >= 2  # decisions, games or a rollout
    assert isfinite(learner.metrics()["loss"])


def main() -> None:
    # Others' own warnings are errors by PYTHONWARNINGS; these are no DeprecationWarning.
    for kind in (NumbaDeprecationWarning, NumbaPendingDeprecationWarning):
        warnings.simplefilter("error", kind)
    steps: dict[str, Callable[[], Any]] = {}
    if COMPILED:
        for name in (*warmup.PARTS, *(each for each in warmup.INTERFACES if each not in SLOW)):
            steps[name] = lambda name=name: warmup._use(name)
        steps["parallel"] = play_in_parallel
        words = ["greedy", "random", "--games", "12", "--quiet"]
        steps["evaluate"] = lambda: sys.exit(code) if (code := evaluate.main(words)) else None
        steps["learner sb3"] = lambda: update("sb3")
    else:
        steps["turns"] = lambda: warmup._use("turns")
        for name in sorted(bots.known().keys() - {"exe"}):  # which needs a program
            steps[name] = lambda name=name: decide(name)
        for name in sorted(learners.LEARNERS.keys() - {"sb3"}):  # sb3's kernels: the interfaces'
            steps[f"learner {name}"] = lambda name=name: update(name)
    for name, step in steps.items():
        if name.endswith("sb3") and find_spec("torch") is None:
            print(f"  {name}: not tried, PyTorch is missing")
            continue
        begun = perf_counter()
        step()
        print(f"  {name}: {perf_counter() - begun:.1f} s", flush=True)
    print(f"{len(steps)} first steps on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
