"""What each part of a rollout gives: spread, core-seconds, and whether the mean stays the same.

    python -m benchmarks.studies.rollouts --base ppo:v1 --positions 200 --games 200

Positions are decisions of the base agent's own games; from each, two candidates are played on. A
way of playing (`WAYS`) is judged by what it costs to reach a standard error:

    spread   variance of a candidate's mean, times the games: from the means of portions, so that
             what first rolls in proportion save counts too
    gap      the same for the difference between the two candidates
    seconds  of one core for a game
    cost     seconds x spread, compared with plain rollouts: below 1 is better

The mean difference to plain rollouts (other dice) over all positions must lie within its error,
but where games are left before their end: there it is what the value function is wrong by.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import bots, engine
from carolus_env.analysis.candidates import after, candidates
from carolus_env.analysis.sampling import Sampler
from carolus_env.analysis.values import value_function
from carolus_env.engine.rules import OVER, Rules
from carolus_env.engine.state import STATE, States, pick
from carolus_env.engine.streams import new_streams
from carolus_env.system.files import write_json

PORTION: Final = 50
RESULTS: Final = Path(__file__).parent.parent / "results" / "rollouts.json"


class Way(NamedTuple):
    """A way to play rollouts."""

    name: str
    paired: bool = True
    stratified: bool = True
    value: str | None = None
    method: str = "none"
    rounds: int | None = None


WAYS: Final = (
    Way("plain", paired=False, stratified=False),
    Way("same dice", stratified=False),
    Way("and first rolls in proportion"),
    Way("and luck by the planner, faces", value="planner", method="faces"),
    Way("and luck by ppo:v1, faces", value="ppo:v1", method="faces"),
    Way("and luck by value, faces", value="value", method="faces"),
    Way("left after 4 rounds, value's word", value="value", rounds=4),
    Way("left after 2 rounds, value's word", value="value", rounds=2),
    Way("2 rounds, and luck by value, faces", value="value", method="faces", rounds=2),
)


def decisions(base: str, players: int, count: int, seed: int) -> States:
    """Decisions with two candidates or more, one from each of the base agent's games."""
    states = engine.new_games(Rules(players), 3 * count, seed=seed)
    streams, agent = new_streams(seed, len(states)), bots.make(base)
    chosen = np.random.default_rng(seed).integers(5, 110, len(states))
    found, step = np.zeros(0, STATE), 0
    while len(found) < count:
        rows = np.flatnonzero(states["phase"] != OVER)
        if not len(rows):
            raise ValueError(f"only {len(found)} of {count} decisions were met")
        at = [row for row in rows[chosen[rows] == step] if len(candidates(states[row], 2)) > 1]
        found = np.concatenate([found, states[at]])
        some, drawn = pick(states, rows), streams[rows]
        engine.step(states, agent.act(some, drawn), rows=rows)
        streams[rows] = drawn
        step += 1
    return found[:count]


def play(
    way: Way, base: str, starts: States, games: int, seed: int
) -> tuple[npt.NDArray[np.float64], float]:
    """``(positions, 2, games)`` values for the deciding team, and seconds of a game."""
    players = int(starts["players"][0])
    value = None if way.value is None else value_function(way.value, players)
    sampler = Sampler(base, seed, value, way.method, way.rounds, way.stratified)
    found, spent = np.zeros((len(starts), 2, games)), 0.0
    for k, state in enumerate(starts):
        ends = after(state, candidates(state, 2)[:2])
        team = int(state["team"][int(state["player"])])
        for start in range(0, games, PORTION):
            places = np.tile(np.arange(PORTION), 2)
            numbers = places + start + k * games
            if not way.paired:
                numbers = numbers + np.repeat([0, games * len(starts)], PORTION)
            since = time.process_time()
            played = sampler.play(pick(ends, np.repeat([0, 1], PORTION)), numbers, places)
            spent += time.process_time() - since
            values = (played.shares - played.luck)[:, team].reshape(2, PORTION)
            found[k, :, start : start + PORTION] = values
    return found, spent / found.size


def spread(values: npt.NDArray[np.float64]) -> float:
    """Variance of the mean times the games, from the means of portions; ``(..., games)``."""
    portions = values.reshape(*values.shape[:-1], -1, PORTION).mean(axis=-1)
    return float(PORTION * portions.var(axis=-1, ddof=1).mean())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="ppo:v1")
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--games", type=int, default=200, help=f"a multiple of {PORTION}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    starts = decisions(options.base, options.players, options.positions, options.seed)
    print(f"{line()}\n{options.base}, {options.players} players, {len(starts)} positions")
    play(WAYS[-1], options.base, starts[:1], PORTION, 0)  # compiles
    rows: list[dict[str, Any]] = []
    for number, way in enumerate(WAYS):
        seed = 1000 + (number > 0)  # other dice than plain rollouts; the same for all others
        values, seconds = play(way, options.base, starts, options.games, seed)
        if not rows:
            plain = values
        gap = values[:, 0] - values[:, 1]
        shift = (values - plain).mean(axis=(1, 2))
        row = {
            "way": way.name,
            "spread": spread(values),
            "gap": spread(gap),
            "seconds": seconds,
            "shift": float(shift.mean()),
            "shift_error": float(shift.std(ddof=1) / np.sqrt(len(shift))),
        }
        first = rows[0] if rows else row
        for name in ("spread", "gap"):
            row[f"{name}_cost"] = row[name] * seconds / (first[name] * first["seconds"])
        rows.append(row)
        print(
            f"{way.name:32} spread {row['spread']:.4f}  gap {row['gap']:.4f}  "
            f"{1e3 * seconds:.2f} ms a game  cost {row['spread_cost']:.2f}, of a gap "
            f"{row['gap_cost']:.2f}  shift {row['shift']:+.4f} +- {row['shift_error']:.4f}",
            flush=True,
        )
    if options.json:
        about = {name: getattr(options, name) for name in ("base", "players", "games", "seed")}
        about |= {"positions": len(starts), "machine": line()}
        write_json(options.json, [{**about, "rows": rows}])
    return 0


if __name__ == "__main__":
    sys.exit(main())
