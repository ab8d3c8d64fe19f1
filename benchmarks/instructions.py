"""Instructions a decision: a guard against lost speed that a busy machine cannot disturb.

    python benchmarks/instructions.py             # counts, next to the reference
    python benchmarks/instructions.py --check     # exit code 1 if anything costs 5 % more
    python benchmarks/instructions.py --update    # makes these counts the reference

On request only: it needs valgrind (Linux, x86-64) and about a minute. Everything is counted twice,
with few games and with the same games several times over, in the same number of calls. What the
many cost more is the price of a ``decision``; the rest is the price of a ``call``, mostly checks in
Python. Start-up and loading are not counted. `aec_raw` plays one game and three, and a decision
includes its share of the reset.

Counts repeat to within half a percent. They are not seconds: cache misses and wrongly predicted
branches cost nothing here. Valgrind has no AVX-512, so the code is compiled for a processor without
it. Another Python, NumPy or Numba gives other counts; the reference names the versions it was made
with.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from throughput import aec_game

import carolus_env as ce
from carolus_env import carolus_magnus_v0, engine
from carolus_env.system.files import write_json

REFERENCE = Path(__file__).parent / "results" / "instructions.json"
TOLERANCE = 0.05

BATCHES = (128, 512)  # few games, and the same games four times over
CALLS, STRIDE = 40, 5  # every fifth decision of random games
AEC_GAMES = (1, 3)

Counts = dict[str, dict[str, float]]
"""``{"step, 2 players": {"decision": 310.2, "call": 21870.0}, ...}``, in instructions."""

Work = Callable[[], int]
"""Does the work; returns the number of decisions."""

PROCESSOR = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx2,+bmi,+bmi2,+fma,+lzcnt,+popcnt,+sse4.2",
}
"""Set explicitly: under valgrind Numba would see another processor, and compile again."""

# ------------------------------------------------------------------------------------ the work


@functools.cache
def positions(players: int) -> list[tuple[Any, ...]]:
    """Games, streams and actions of `CALLS` steps in random play; ended games restart."""
    games = ce.new_games(ce.Rules(players), BATCHES[0], seed=1)
    streams = ce.new_streams(1, BATCHES[0])
    found = []
    for decision in range(CALLS * STRIDE):
        before = games.copy(), streams.copy()
        actions = ce.random_actions(games, streams)
        if decision % STRIDE == 0:
            found.append((*before, actions))
        ce.step(games, actions)
        over = np.flatnonzero(ce.is_over(games))
        if len(over):
            games[over] = engine.next_games(games[over])
    return found


def calling(function: Callable[..., object]) -> Callable[[int, int], Work]:
    """A call for each of the `positions`, with the games repeated until there are ``size``."""

    def make(players: int, size: int) -> Work:
        times = size // BATCHES[0]
        parts = [[np.tile(array, times) for array in step] for step in positions(players)]

        def work() -> int:
            for games, streams, actions in parts:
                function(games, streams, actions)
            return CALLS * size

        return work

    return make


def aec(players: int, size: int) -> Work:
    """``size`` games of PettingZoo: ``reset()``, then ``last()``, a random choice, ``step``."""
    env = carolus_magnus_v0.raw_env(players=players)
    random = np.random.default_rng(1)

    def work() -> int:
        return sum(aec_game(env, game, random.random) for game in range(size))

    return work


def rolling_out(observation: Any) -> Callable[[int, int], Work]:
    """``size`` random decisions in each of 128 games, without leaving the kernel."""

    def make(players: int, size: int) -> Work:
        batch = ce.GameBatch(ce.Rules(players), BATCHES[0], seed=1, observation=observation)

        def work() -> int:
            batch.reset(1)
            return batch.rollout(size).decisions

        return work

    return make


def playing_out(players: int, size: int) -> Work:
    """``size`` whole games from the start of each of 16."""
    games = ce.new_games(ce.Rules(players), 16, seed=1)

    def work() -> int:
        return int(ce.playout(games, ce.new_streams(1, 16), repeats=size).decisions.sum())

    return work


MODES: dict[str, tuple[tuple[int, int], Callable[[int, int], Work]]] = {
    "playout": ((2, 8), playing_out),
    "rollout_mask": ((50, 200), rolling_out(None)),
    "rollout_u8": ((50, 200), rolling_out("uint8")),
    "rollout_f32": ((50, 200), rolling_out("float32")),
    "legal_masks": (BATCHES, calling(lambda games, streams, actions: ce.legal_masks(games))),
    "random_actions": (
        BATCHES,
        calling(lambda games, streams, actions: ce.random_actions(games, streams)),
    ),
    "step": (BATCHES, calling(lambda games, streams, actions: ce.step(games, actions))),
    "observe_u8": (BATCHES, calling(lambda games, streams, actions: ce.observe(games))),
    "observe_f32": (
        BATCHES,
        calling(lambda games, streams, actions: ce.observe(games, dtype=np.float32)),
    ),
    "aec_raw": (AEC_GAMES, aec),
}
"""Sizes of the few and the many, and what makes the work of a size."""


def name(mode: str, players: int, size: int) -> str:
    """The name of a count, in callgrind's files and between the processes."""
    return f"{mode}, {players} players, {size}"


# ------------------------------------------------------------------------------------ in valgrind

# How a program talks to valgrind (valgrind.h): rdi points to the request. Four rotations that
# cancel out, and the exchange of a register with itself, announce it. A processor does nothing for
# them, so the program also runs without valgrind.
MAGIC = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db c3")
ZERO, DUMP, START = 0x43540001, 0x43540003, 0x43540004  # callgrind.h: the counters, counting


class Callgrind:
    """Sends requests to callgrind; without valgrind they have no effect."""

    def __init__(self) -> None:
        may = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self.code = mmap.mmap(-1, len(MAGIC), prot=may)
        self.code.write(MAGIC)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.code))
        self.call = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))(start)

    def request(self, code: int, text: bytes = b"") -> None:
        """Send a request; ``text`` is the name for `DUMP`."""
        self.call(
            (ctypes.c_uint64 * 6)(
                code, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0
            )
        )


def run_all() -> None:
    """Do all work once as a warm-up and once counted; print the decisions as JSON."""
    gc.disable()  # when it would run depends on what was imported
    callgrind = Callgrind()
    works = [
        (name(mode, players, size), make(players, size), make(players, size))
        for mode, (sizes, make) in MODES.items()
        for players in (2, 3, 4)
        for size in sizes
    ]
    for _, warm_up, _ in works:
        warm_up()
    decisions = {}
    callgrind.request(START)
    for one, _, work in works:
        callgrind.request(ZERO)
        decisions[one] = work()
        callgrind.request(DUMP, one.encode())
    print(json.dumps(decisions))


# ------------------------------------------------------------------------------------ counting


def count() -> Counts:
    """Run `run_all` twice: to compile everything, and then under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
        environment = {
            **kept,
            **PROCESSOR,
            "NUMBA_CACHE_DIR": str(Path(folder) / "cache"),
            "NUMBA_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        child = [sys.executable, __file__, "--child"]
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        subprocess.run(child, env=environment, check=True, stdout=subprocess.DEVNULL)
        compiled = files_of(Path(folder) / "cache")
        done = subprocess.run(
            [*valgrind, f"--callgrind-out-file={folder}/counts", *child],
            env=environment,
            check=True,
            timeout=1200,
            stdout=subprocess.PIPE,
            text=True,
        )
        if files_of(Path(folder) / "cache") != compiled:
            raise RuntimeError(
                "functions were compiled under valgrind, so the counts are worthless"
            )
        instructions = {}
        for file in Path(folder).glob("counts.*"):
            text = file.read_text()
            section = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
            total = re.search(r"^summary: (\d+)", text, re.MULTILINE)
            if section and total:
                instructions[section[1]] = int(total[1])
        return per_decision(instructions, json.loads(done.stdout))


def files_of(folder: Path) -> dict[Path, int]:
    """Every file below the folder, with its modification time (ns)."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def per_decision(instructions: dict[str, int], decisions: dict[str, int]) -> Counts:
    """The price of a decision and, for batches, of a call."""
    counts: Counts = {}
    for mode, (sizes, _) in MODES.items():
        for players in (2, 3, 4):
            few, many = (name(mode, players, size) for size in sizes)
            more = decisions[many] - decisions[few]
            decision = (instructions[many] - instructions[few]) / more
            row = counts[f"{mode}, {players} players"] = {"decision": round(decision, 1)}
            if sizes == BATCHES:
                left = instructions[few] - decision * decisions[few]
                row["call"] = round(left / CALLS)
    return counts


def counted_with() -> dict[str, str]:
    """The versions that the counts depend on."""
    packages = ("numpy", "numba", "llvmlite", "gymnasium", "pettingzoo")
    return {"python": platform.python_version(), **{one: version(one) for one in packages}}


def compare(counts: Counts, reference: Counts) -> list[str]:
    """Print the counts next to the reference; returns what costs too much or is missing."""
    failures = [f"{one}: not counted" for one in reference if one not in counts]
    print(f"{'':28}{'instructions':>16}{'reference':>12}{'change':>10}")
    for one, row in counts.items():
        for price, found in row.items():
            line = f"{one:28}{price:>9} {found:10,.0f}"
            before = reference.get(one, {}).get(price)
            if before is not None:
                line += f"{before:12,.0f}{found / before - 1:+10.1%}"
                if found > before * (1 + TOLERANCE):
                    failures.append(f"{one}: a {price} costs {found:,.0f} instead of {before:,.0f}")
            print(line)
    return failures


def main(argv: list[str] | None = None) -> int:
    """Count, and compare with the reference or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        run_all()
        return 0
    if platform.machine() != "x86_64" or shutil.which("valgrind") is None:
        parser.error("needs valgrind, on x86-64")
    if options.check and not REFERENCE.exists():
        parser.error(f"there is no reference {REFERENCE}: make one with --update")
    known = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
    counts, now = count(), counted_with()
    failures = compare(counts, known.get("instructions", {}))
    if known and known["counted_with"] != now:
        print(f"note: the reference was counted with {known['counted_with']}, these with {now}")
    if options.update:
        REFERENCE.parent.mkdir(exist_ok=True)
        write_json(REFERENCE, {"counted_with": now, "instructions": counts})
        return 0
    if options.check and failures:
        print(*failures, sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
