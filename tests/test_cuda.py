"""The rules' kernels play on a GPU as they are: the same games, byte for byte.

Skipped without numba-cuda (`pip install 'numba-cuda[cu13]'`). Without a GPU the kernels run in its
simulator, as plain Python, and the real compiler makes the GPU's code of them, which nobody runs.
"""

import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from strategies import ALL_KINDS

from carolus_env import engine
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import KEPT_FIELDS, STATE, to_bytes
from carolus_env.engine.streams import new_streams

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not importlib.util.find_spec("numba_cuda"), reason="needs numba-cuda"),
]

GAMES, ON_GPU = 4, Path(__file__).parent / "on_gpu.py"
CONSTANT_MEMORY = 1 << 16  # bytes of constants that a GPU's program may have
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
"""The simulator's arrays are none that compiled functions take: there, everything is Python."""


def run(*arguments, environment=None):
    """What a process that imports Numba's CUDA says; fails when it fails."""
    variables = {key: value for key, value in os.environ.items() if key not in SIMULATOR}
    variables |= {"PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def gpu_found():
    return run("-c", "from numba import cuda; print(cuda.is_available())") == "True\n"


def played_by_the_engine(start, streams):
    """Final games, the masks of their last decisions, and how many decisions each took."""
    games, decisions = engine.next_games(start), np.zeros(len(start), int)
    masks = engine.legal_masks(games)
    while len(rows := np.flatnonzero(~engine.is_over(games))):
        masks[rows] = engine.legal_masks(games, rows=rows)
        engine.step(games, engine.random_actions(games, streams, rows=rows), rows=rows)
        decisions[rows] += 1
    return games, masks, decisions


@pytest.mark.parametrize("rules", ALL_KINDS[:6], ids=str)
@pytest.mark.parametrize("where", ["simulator", "gpu"])
def test_games_on_a_gpu_are_those_of_the_engine(where, rules: Rules, tmp_path):
    if where == "gpu" and not gpu_found():
        pytest.skip("needs an NVIDIA GPU")
    new, start = engine.new_games(rules, GAMES, seed=5, roll=False), np.zeros(GAMES, STATE)
    for name in KEPT_FIELDS:  # nothing but the rules and the generators
        start[name] = new[name]
    streams = new_streams(5, GAMES)
    np.savez(tmp_path / "start.npz", states=start, streams=streams)
    environment = SIMULATOR if where == "simulator" else None
    files = tmp_path / "start.npz", tmp_path / "end.npz"
    run(ON_GPU, "play", *files, environment=environment)
    games, masks, decisions = played_by_the_engine(start, streams)
    with np.load(tmp_path / "end.npz") as result:
        assert result["decisions"].tolist() == decisions.tolist() and decisions.all()
        assert to_bytes(result["states"]) == to_bytes(games)
        assert result["streams"].tolist() == streams.tolist()
        assert np.array_equal(result["masks"], masks)
        assert np.array_equal(result["seen"], observe(games))
        assert np.array_equal(result["payoffs"][:, : rules.players], engine.returns(games))


def test_the_real_compiler_makes_a_gpus_code_of_the_rules():
    """Constants included: a table has a copy for each place in the code that names it."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    for library in ("nvvm", "nvrtc"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            pytest.skip(f"needs lib{library}: pip install 'numba-cuda[cu13]'")
    code = run(ON_GPU, "compile")
    assert len(re.findall(r"^\.visible \.entry ", code, re.MULTILINE)) == 1
    constants = re.findall(r"^\s*\.const .*\.b(\d+) [^\[;]+\[(\d+)\]", code, re.MULTILINE)
    assert sum(int(bits) // 8 * int(count) for bits, count in constants) <= CONSTANT_MEMORY
