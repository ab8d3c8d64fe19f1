"""Other projects' environments and this one, measured in turns in one run, as ratios.

    python -m benchmarks.peers
    python -m benchmarks.peers --peers pgx --repeats 9 --save

Each row plays windows of `--seconds` in turn, peer, ours, peer, ours, ..., and gives the median,
lowest and highest ratio of neighbouring windows, ours / peer; rates are medians too. Everything
runs on the first `--cores` cores of this process, JAX on the CPU. A warm-up is not measured: it
compiles, and ends three games of each lane, so that the games of a batch no longer end together.

Ours are the modes of throughput.py, with 2 players unless `--players` says otherwise. Choices are
uniform over the legal actions everywhere. What a step of a peer includes, and what is counted:

    pgx_*                    choice, step, mask, observation and Pgx's auto-reset, compiled into
                             one loop; every step of a game counts, forced passes too
    openspiel_backgammon     from Python: legal_actions, choice, apply_action. Dice are drawn from
                             chance_outcomes: their time is included, but only the players'
                             decisions count, forced passes too; one decision plays two dice
    pettingzoo_connect_four  last(), choice by the mask, step: the same loop for theirs and ours;
                             _raw: without wrappers

The games differ in length and rules: decisions/s measures how fast an environment steps, games/s
how fast it completes games.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import random
import statistics
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from benchmarks import throughput
from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report, short, times
from benchmarks.throughput import Window

INSTALL = (
    "pip install -e . pgx==2.6.0 jax==0.10.2 open_spiel==2.0.2 pettingzoo==1.27.0 pygame-ce==2.5.8"
)
"""The peers are not dependencies of this project; a separate environment is best."""

BATCH = throughput.BATCH
PGX_BATCH = {"connect_four": 4096, "backgammon": 256}  # more are no faster
PGX_STEPS = 32  # a call takes hundredths of a second, so its overhead is negligible
WARM_UP_GAMES = 3  # mean games of a lane before it is measured


# ------------------------------------------------------------------------------------ the peers


def pgx_loop(game: str) -> Window:
    """Run Pgx: a batch stepped, observed and reset in one compiled loop."""
    # Pgx runs on the same cores as ours, not on an accelerator; read when JAX is imported.
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental.wrappers import auto_reset

    batch = PGX_BATCH[game]
    env = pgx.make(game)
    step = jax.vmap(auto_reset(env.step, env.init))

    def body(_: Any, carried: Any) -> Any:
        states, key, ended = carried
        key, for_choice, for_step = jax.random.split(key, 3)
        mask = states.legal_action_mask
        # One random number for each lane picks the nth legal action: faster than categorical.
        nth = (jax.random.uniform(for_choice, (batch,)) * mask.sum(axis=1)).astype(jnp.int32)
        actions = (jnp.cumsum(mask, axis=1) > nth[:, None]).argmax(axis=1)
        states = step(states, actions, jax.random.split(for_step, batch))
        return states, key, ended + states.terminated.sum()

    @jax.jit
    def play(states: Any, key: Any) -> Any:
        # The whole states are returned, or the compiler would drop the observations.
        return jax.lax.fori_loop(0, PGX_STEPS, body, (states, key, jnp.int32(0)))

    key = jax.random.PRNGKey(1)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(2), batch))

    def portion() -> tuple[int, int]:
        nonlocal states, key
        states, key, ended = play(states, key)
        return PGX_STEPS * batch, int(ended)  # waits for the result

    return throughput.repeating(portion)


def openspiel_loop(game: str) -> Window:
    """Run OpenSpiel from Python, one game at a time, no mask and no observation."""
    import pyspiel

    loaded = pyspiel.load_game(game)

    def portion() -> tuple[int, int]:
        state, decisions = loaded.new_initial_state(), 0
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(drawn(state.chance_outcomes()))
            else:
                legal = state.legal_actions()
                state.apply_action(legal[int(random.random() * len(legal))])
                decisions += 1
        return decisions, 1

    return throughput.repeating(portion)


def drawn(outcomes: list[tuple[int, float]]) -> int:
    """Draw one of OpenSpiel's pairs (outcome, probability)."""
    remaining = random.random()
    for outcome, probability in outcomes:
        remaining -= probability
        if remaining < 0:
            return outcome
    return outcomes[-1][0]  # rounding may leave a remainder


def connect_four(wrapped: bool) -> Window:
    """Return PettingZoo's connect four, with its wrappers or without."""
    from pettingzoo.classic import connect_four_v3

    return throughput.aec_loop((connect_four_v3.env if wrapped else connect_four_v3.raw_env)())


class Peer(NamedTuple):
    """Packages whose versions matter, games at a time, and what makes a window."""

    packages: tuple[str, ...]
    batch: int
    make: Callable[[], Window]


PEERS = {
    "pgx_connect_four": Peer(
        ("pgx", "jax"), PGX_BATCH["connect_four"], lambda: pgx_loop("connect_four")
    ),
    "pgx_backgammon": Peer(("pgx", "jax"), PGX_BATCH["backgammon"], lambda: pgx_loop("backgammon")),
    "openspiel_backgammon": Peer(("open_spiel",), 1, lambda: openspiel_loop("backgammon")),
    "pettingzoo_connect_four_raw": Peer(("pettingzoo",), 1, lambda: connect_four(wrapped=False)),
    "pettingzoo_connect_four": Peer(("pettingzoo",), 1, lambda: connect_four(wrapped=True)),
}

ROWS = (
    # Pgx observes at every step, so rollout_u8 is its counterpart.
    ("rollout_mask", "pgx_connect_four", "decisions/s"),
    ("rollout_u8", "pgx_connect_four", "decisions/s"),
    ("playout", "pgx_backgammon", "games/s"),
    ("rollout_mask", "pgx_backgammon", "games/s"),
    ("rollout_u8", "pgx_backgammon", "games/s"),
    ("playout", "openspiel_backgammon", "games/s"),
    ("single", "openspiel_backgammon", "decisions/s"),
    ("aec_raw", "pettingzoo_connect_four_raw", "decisions/s"),
    ("aec", "pettingzoo_connect_four", "decisions/s"),
)
"""Our mode, the peer, and the unit of comparison."""


# ------------------------------------------------------------------------------------ measuring


@cache
def peer_window(peer: str) -> Window:
    """Return a peer, warmed up; its rows share it."""
    return warmed_up(PEERS[peer].make(), PEERS[peer].batch)


@cache
def our_window(mode: str, players: int, cores: int) -> Window:
    """Return one of our modes, warmed up."""
    if mode.startswith(("playout", "rollout")):
        return warmed_up(throughput.make_window(mode, players, BATCH, cores), BATCH)
    return warmed_up(throughput.make_window(mode, players, 1), 1)


def warmed_up(window: Window, batch: int) -> Window:
    """Return the window, compiled, with games that no longer end together."""
    games = 0
    while games < WARM_UP_GAMES * batch:
        games += window(0.3)[1]
    return window


def measure(mode: str, peer: str, unit: str, options: argparse.Namespace) -> Row:
    """Measure one row: windows of the peer and of ours in turn.

    Raises:
        ImportError: when the peer is not installed.
    """
    packages, players, seconds = PEERS[peer].packages, options.players, options.seconds
    theirs = peer_window(peer)
    ours = our_window(mode, players, options.cores)
    pairs = [
        (rate(theirs, unit, seconds), rate(ours, unit, seconds)) for _ in range(options.repeats)
    ]
    ratios = [our / their for their, our in pairs]
    return {
        "row": f"{mode}/{peer}",
        "ours": mode,
        "ours_per_s": round(statistics.median(our for _, our in pairs)),
        "peer": peer,
        "peer_version": ", ".join(
            f"{name} {importlib.metadata.version(name)}" for name in packages
        ),
        "peer_per_s": round(statistics.median(their for their, _ in pairs)),
        "peer_batch": PEERS[peer].batch,
        "players": players,
        "unit": unit,
        "ratio": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "repeats": options.repeats,
        "seconds": seconds,
    }


def rate(window: Window, unit: str, seconds: float) -> float:
    """Measure decisions or games a second."""
    decisions, games, elapsed = window(seconds)
    while unit == "games/s" and not games:  # the window was too short for a game to end
        _, games, more = window(seconds)
        elapsed += more
    return (games if unit == "games/s" else decisions) / elapsed


def keep_to(cores: int) -> None:
    """Restrict this process and its children to its first cores.

    Raises:
        ValueError: when it has fewer.
    """
    if cores == 1:  # read when JAX is imported; the user's flags come later and override
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {flags}".strip()
    if not hasattr(os, "sched_setaffinity"):
        print("this system cannot pin a process: Pgx may use more cores than ours", file=sys.stderr)
        return
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= cores <= len(allowed):
        raise ValueError(f"cores must be from 1 to {len(allowed)}, got {cores}")
    os.sched_setaffinity(0, allowed[:cores])


def table(rows: list[Row]) -> str:
    """Return the rates and ratios of this environment and others."""
    lines = [
        [
            *(f"`{row['ours']}`", f"`{row['peer']}`", row["unit"]),
            *(short(row["ours_per_s"]), short(row["peer_per_s"])),
            f"{times(row['ratio'])} ({times(row['ratio_min'])} to {times(row['ratio_max'])})",
        ]
        for row in rows
    ]
    head = ["ours", "other", "unit", "ours", "other", "ours / other"]
    versions = dict.fromkeys(row["peer_version"] for row in rows)
    return f"{markdown(head, lines, rows)}\nThe others: {'; '.join(versions)}.\n"


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and save the rows if asked."""
    packages = sorted({peer.packages[0] for peer in PEERS.values()})
    parser = measuring_parser(__doc__, cores=1, seconds=2.0, repeats=5)
    parser.epilog = f"Missing peers are skipped; none is a dependency of this project:\n  {INSTALL}"
    parser.add_argument(
        "--peers", nargs="+", choices=packages, default=packages, help="default: all"
    )
    parser.add_argument("--players", type=int, choices=(2, 3, 4), default=2)
    options = parser.parse_args(argv)
    if options.seconds <= 0 or options.repeats < 1:
        parser.error("seconds and repeats must be positive")
    try:
        keep_to(options.cores)
    except ValueError as error:
        parser.error(str(error))
    machine = f"{line()}, {options.cores} used"
    rows = []
    skipped = False
    for mode, peer, unit in ROWS:
        if PEERS[peer].packages[0] not in options.peers:
            continue
        try:
            row = measure(mode, peer, unit, options)
        except ImportError as error:
            print(f"{mode:14}{peer:29}skipped: {error}", flush=True)
            skipped = True
            continue
        rows.append({**row, "machine": machine})
        print(f"{mode}/{peer}: {row['ratio']} times", flush=True)
    if skipped:
        print(f"to install what was skipped, best in a separate environment:\n  {INSTALL}")
    report(table(rows), rows, "peers", options.save, ("row",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
