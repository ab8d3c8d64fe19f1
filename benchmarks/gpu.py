"""Decisions a second of games on a GPU, beside the CPU of the same machine and Pgx on the same GPU.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --players 2 --modes rollout_mask --save

Ended games restart, choosing the actions is included, and a figure is the median of `--repeats`
windows. `step_torch` plays actions that PyTorch draws from the masks, uniformly. Pgx plays by the
same loop, random legal actions with masks and restarts, and is left out where it is not installed.
``make gpu`` also compares the games with the CPU's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import carolus_env as ce
from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report, short
from carolus_env.system.machine import cores

if TYPE_CHECKING:
    import torch

MODES: Final = ("rollout_mask", "rollout_u8", "rollout_f32", "step_sample", "step_torch", "step_u8")
SIZES: Final = tuple(1 << bits for bits in range(10, 21, 2))
PGX_GAMES: Final = ("connect_four", "backgammon")
OBSERVATIONS: Final = {"mask": None, "u8": "uint8", "f32": "float32", "sample": None, "torch": None}

Play = Callable[[int], None]
"""Plays that many decisions in every game, and need not wait for the GPU."""


def playing(mode: str, players: int, n: int) -> Play:
    """Return what plays ``n`` games on the GPU."""
    from torch.utils.dlpack import from_dlpack

    way, kind = mode.split("_")
    observation: Any = OBSERVATIONS[kind]
    batch = ce.GameBatch(ce.Rules(players), n, seed=1, observation=observation, device="cuda")
    if way == "rollout":
        return lambda decisions: batch.rollout(decisions)
    if kind != "torch":
        return lambda decisions: [batch.step(batch.sample()) for _ in range(decisions)]
    masks = from_dlpack(batch.masks)
    return lambda decisions: [batch.step(drawn(masks)) for _ in range(decisions)]


def drawn(masks: torch.Tensor) -> torch.Tensor:
    """Draw a legal action for each row, all equally likely."""
    import torch

    scores = torch.rand(masks.shape, device=masks.device, dtype=torch.float16)
    return torch.where(masks != 0, scores, -1).argmax(dim=1)


def on_cpu(mode: str, players: int, n: int, threads: int) -> Play:
    """Return what plays ``n`` games on the CPU."""
    observation: Any = OBSERVATIONS[mode.split("_")[1]]
    batch = ce.GameBatch(ce.Rules(players), n, seed=1, observation=observation, threads=threads)
    return lambda decisions: batch.rollout(decisions)


def pgx_game(name: str, n: int) -> Callable[[int], Any]:
    """Return what plays ``n`` games of Pgx, all in one compiled loop."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    step = jax.vmap(auto_reset(env.step, env.init))

    @jax.jit
    def run(state: Any, key: Any) -> Any:
        def body(_: int, carried: Any) -> Any:
            state, key, ended = carried
            key, first, second = jax.random.split(key, 3)
            logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
            action = jax.random.categorical(first, logits, axis=1)
            state = step(state, action, jax.random.split(second, n))
            return state, key, ended + state.terminated.sum()

        return jax.lax.fori_loop(0, 100, body, (state, key, 0))

    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), n))
    key = jax.random.key(1)

    def play(decisions: int) -> Any:
        nonlocal state, key
        for _ in range(decisions // 100):
            state, key, ended = run(state, key)
        return jax.block_until_ready(ended)

    return play


def measure(play: Play, n: int, seconds: float, repeats: int, portion: int = 1) -> float:
    """Return decisions a second, the median of some windows; compiles first."""
    decisions, elapsed = portion, timed(play, portion)
    elapsed = timed(play, portion)
    while elapsed < seconds / 8:
        decisions *= 2
        elapsed = timed(play, decisions)
    count = max(portion, int(decisions * seconds / elapsed) // portion * portion)
    return statistics.median(n * count / timed(play, count) for _ in range(repeats))


def timed(play: Play, decisions: int) -> float:
    """Return the seconds that it takes, until the GPU has finished."""
    from numba import cuda

    cuda.synchronize()
    started = time.perf_counter()
    play(decisions)
    cuda.synchronize()
    return time.perf_counter() - started


def resources(players: int) -> list[list[str]]:
    """Return what each kernel compiled so far takes of a multiprocessor."""
    from carolus_env.engine import cuda as kernels

    lines = []
    for kind in (None, "uint8", "float32"):
        for name in ("refresh", "play", "rollout"):
            kernel = getattr(kernels.entries(players, kind), name)
            for registers in kernel.get_regs_per_thread().values() if kernel.overloads else ():
                (local,) = set(kernel.get_local_mem_per_thread().values())
                lines.append([name, str(kind), str(registers), str(local)])
    return lines


def table(rows: list[Row]) -> str:
    """Return decisions a second by mode and by games at once."""
    sizes = sorted({row["games"] for row in rows})
    cases: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        played = f", {row['players']} players" if row["players"] not in (2, None) else ""
        case = f"`{row['mode']}`{played}", row["on"]
        cases.setdefault(case, {})[row["games"]] = short(row["rate"])
    several = len({on for _, on in cases}) > 1
    lines = [
        [mode + f", {on}" * several, *(rates.get(n, "-") for n in sizes)]
        for (mode, on), rates in cases.items()
    ]
    return markdown(["games at once", *(f"{n:,}" for n in sizes)], lines, rows)


def main() -> None:
    import torch

    parser = measuring_parser(__doc__, seconds=0.2, repeats=3)
    parser.add_argument("--players", type=int, nargs="*", default=[2, 3, 4])
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, metavar="GAMES")
    parser.add_argument("--peers", nargs="*", choices=("cpu", "pgx"), default=("cpu", "pgx"))
    options = parser.parse_args()
    card = torch.cuda.get_device_name()
    machine = f"{card}; {line('numba-cuda', 'torch')}"
    print(machine, flush=True)
    rows: list[Row] = []

    def note(
        what: str, players: int | None, n: int, where: str, play: Play, portion: int = 1
    ) -> None:
        rate = measure(play, n, options.seconds, options.repeats, portion)
        rows.append(
            {"mode": what, "players": players, "games": n, "on": where, "rate": rate}
            | {"machine": machine}
        )
        print(f"{what:>16} {players or '':>2} {n:>9,} {where:>10} {short(rate)}/s", flush=True)

    for players in options.players:
        for mode in options.modes:
            for n in options.sizes if players == 2 else options.sizes[-2:]:
                note(mode, players, n, card, playing(mode, players, n))
    for mode in ("rollout_mask", "rollout_u8") if "cpu" in options.peers else ():
        for threads in (1, cores()):
            n = 4096 * threads
            note(mode, 2, n, f"CPU, threads: {threads}", on_cpu(mode, 2, n, threads))
    try:
        for name in PGX_GAMES if "pgx" in options.peers else ():
            for n in (1 << 14, 1 << 18):
                note(name, None, n, f"{card}, Pgx", pgx_game(name, n), 100)
    except ModuleNotFoundError as error:
        print(f"without Pgx: {error}")
    keys = ("mode", "players", "games", "on")
    report(table(rows), rows, "gpu", options.save, keys)
    for players in options.players:
        text = markdown(["kernel", "observations", "registers", "local bytes"], resources(players))
        print(f"{players} players\n{text}", end="")


if __name__ == "__main__":
    main()
