"""Another set of instructions gives the same games, decisions and trained weights, bit for bit."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import numpy as np
import carolus_env as ce
from carolus_env.bots import lockstep
from carolus_env.engine.chance import Deals
from carolus_env.learners.selfplay import WorkerPool
from carolus_env.engine.chance import Deals
from carolus_env.learners.selfplay import WorkerPool
from carolus_env.learners.ppo import PpoConfig, PpoLearner
from carolus_env.learners.td import TdConfig, TdLearner

def show(name, arrays):
    print(name, hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())

rules = ce.Rules(2)
for spec in ("planner", "ppo:2p", "value:2p"):
    deals = Deals.of(7, np.arange(20))
    games = lockstep.Games(deals.games(rules), np.zeros((20, 2), np.int64), deals.streams())
    steps = list(lockstep.play(games, [ce.make(spec)]))
    show(spec, [array for step in steps for array in (step.actions, ce.observe(step.shown))])
for learner, config, size in ((PpoLearner, PpoConfig, 50_000), (TdLearner, TdConfig, 300)):
    options = config(rules=rules, workers=2)
    pool, done = WorkerPool(learner, options), 0
    while done < size:
        count = options.round_size(done)
        pool.learn(done, count, 0.01)
        done += count
    show(learner.__name__, pool.model({}).weights.values())
"""
OLD_MATHEMATICS = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL"
"""Lets glibc take its functions for processors without these."""


@pytest.mark.slow
def test_a_plain_processor_gives_the_same_games_decisions_and_weights(tmp_path):
    other = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "GLIBC_TUNABLES": OLD_MATHEMATICS,
        "OPENBLAS_CORETYPE": "Nehalem",
    }
    command = [sys.executable, "-c", PROGRAM]
    here, there = (
        subprocess.run(
            command, env={**os.environ, **more}, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for more in ({}, other)
    )
    assert len(here) == 5
    assert here == there
