"""Games on a GPU are the engine's, byte for byte; without a GPU, in a simulator of one.

Skipped without numba-cuda (extra ``gpu``). The simulator runs the kernels as plain Python. The real
compiler makes the GPU's code of them, which nobody runs where there is no GPU.
"""

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ON_GPU = Path(__file__).parent / "on_gpu.py"
CONSTANT_MEMORY = 1 << 16  # bytes of constants that a GPU's program may have
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
"""The simulator's arrays are none that compiled functions take: there, everything is Python."""

without_numba_cuda = importlib.util.find_spec("numba_cuda") is None
needs_numba_cuda = pytest.mark.skipif(without_numba_cuda, reason="needs the extra gpu")


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


@pytest.mark.slow
@needs_numba_cuda
@pytest.mark.parametrize("kind", range(7))
def test_a_batch_in_the_simulator_is_the_one_on_the_cpu(kind):
    arguments = ("--games", 35, "--decisions", 12, "--kinds", kind)
    assert "illegal actions are refused" in run(ON_GPU, *arguments, environment=SIMULATOR)


@pytest.mark.slow
@needs_numba_cuda
def test_a_batch_on_a_gpu_is_the_one_on_the_cpu():
    if not gpu_found():
        pytest.skip("needs an NVIDIA GPU")
    assert "illegal actions are refused" in run(ON_GPU, "--libraries")


def message_of(setup):
    """The error of a batch on a GPU, in a process that begins with ``setup``."""
    code = (
        "import sys, carolus_env as ce\n"
        f"{setup}\n"
        "try:\n    ce.GameBatch(ce.Rules(), 2, device='cuda')\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    return run("-c", code)


def test_without_numba_cuda_a_gpu_is_refused_and_the_extra_named():
    message = message_of("sys.modules['numba_cuda'] = None")
    assert message.startswith("ImportError") and "carolus-env[gpu]" in message


@needs_numba_cuda
def test_without_a_gpu_it_is_refused():
    if gpu_found():
        pytest.skip("there is a GPU")
    assert message_of("").startswith("RuntimeError device='cuda' needs an NVIDIA GPU")


PTX = """
import re
from types import SimpleNamespace
import numba
from numba import cuda, types
from numba.cuda import dispatcher
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(8, 0))
from carolus_env.engine import cuda as kernels
from carolus_env.engine.stepping import Outcomes
def array(dtype, ndim=1):
    return types.Array(dtype, ndim, "C")
words, numbers, scale = array(numba.uint64), array(numba.int64), array(numba.float32)
table, rows, flags = array(numba.int8, 2), array(numba.float32, 2), array(numba.boolean)
views = types.NamedTuple((numbers, table, table, words, scale, rows), kernels.Views)
outcomes = types.NamedTuple((rows, flags, flags), Outcomes)
blank, totals = array(numba.uint8), array(numba.float64)
signature = (words, words, numba.int64, blank, totals, outcomes, views)
for kind in (None, "uint8"):
    kernel = kernels.entries(4, kind).rollout
    code, _ = cuda.compile_ptx(kernel.py_func, signature, cc=(8, 0))
    constants = re.findall(r"^\\s*\\.const .*\\.b(\\d+) [^\\[;]+\\[(\\d+)\\]", code, re.MULTILINE)
    print(sum(int(bits) // 8 * int(count) for bits, count in constants),
          len(re.findall(r"\\sld\\.shared", code)), len(re.findall(r"\\scall", code)))
"""


@pytest.mark.slow
@needs_numba_cuda
def test_the_real_compiler_makes_a_gpus_code_of_the_rules():
    """The games stay in shared memory, no function is left to call, and the constants fit."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    for library in ("nvvm", "nvrtc"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            pytest.skip(f"needs lib{library}: the extra gpu")
    for line in run("-c", PTX).splitlines():
        constants, loads, calls = map(int, line.split())
        assert constants <= CONSTANT_MEMORY
        assert loads > 400
        assert calls == 0
