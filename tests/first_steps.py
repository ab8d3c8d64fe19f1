"""First steps with every interface, agent and learner: what `make oldest` and `make newest` run.

What needs PyTorch is named and left out where it is missing: not every Python has a small build.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from numba.core.errors import NumbaDeprecationWarning, NumbaPendingDeprecationWarning

from carolus_env import bots, carolus_magnus_v0, learners
from carolus_env.commands import evaluate, train, warmup
from carolus_env.system.cancellation import Stop

UPDATES = {
    "ppo": {"width": 16, "hidden": 4, "candidates": 6, "workers": 1, "games": 4, "rollout": 8},
    "value": {"width": 16, "hidden": 4, "candidates": 6, "workers": 1, "max_rounds": 4},
    "sb3": {"region": 8, "whole": 8, "envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 1},
}
"""Options of each learner with which an update takes no time."""
FEW = {"mcts": "mcts:sims=2", "search": "search:sims=2"}


def play_in_parallel() -> None:
    env = carolus_magnus_v0.parallel_env()
    observations, _ = env.reset(seed=0)
    for _ in range(3):
        chosen = {seat: int(each["action_mask"].argmax()) for seat, each in observations.items()}
        observations, *_ = env.step(chosen)


def update(name: str) -> None:
    learner = learners.learner(name).begin(learners.config_of(name, **UPDATES[name]))
    learner.warm_up()
    for done in (0, 32):
        assert learner.learn(done, 32, 0.01, Stop()) == 32
    assert learner.metrics()["loss"] > 0


def run(main: Callable[[list[str]], int], *words: str) -> None:
    assert main([*words]) == 0, words


def main() -> None:
    # Others' own warnings are errors by PYTHONWARNINGS; these are no DeprecationWarning.
    for kind in (NumbaDeprecationWarning, NumbaPendingDeprecationWarning):
        warnings.simplefilter("error", kind)
    steps: dict[str, Callable[[], Any]] = {}
    for name in (*warmup.PARTS, *warmup.INTERFACES):
        if name != "training":
            steps[name] = lambda name=name: warmup._use(name)
    steps["parallel"] = play_in_parallel
    for name in sorted(bots.known().keys() - {"exe"}):  # which needs a program
        steps[name] = lambda name=name: warmup._use(FEW.get(name, name))
    for name in learners.LEARNERS:
        steps[f"learner {name}"] = lambda name=name: update(name)
    steps["train"] = lambda: run(train.main, "--help")
    steps["evaluate"] = lambda: run(evaluate.main, "greedy", "random", "--games", "12", "--quiet")
    for name, step in steps.items():
        if name.endswith("sb3") and find_spec("torch") is None:
            print(f"  {name}: not tried, PyTorch is missing")
            continue
        begun = perf_counter()
        step()
        print(f"  {name}: {perf_counter() - begun:.1f} s", flush=True)
    assert set(UPDATES) == set(learners.LEARNERS)
    print(f"{len(steps)} first steps on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
