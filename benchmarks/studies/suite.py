"""Whether the suite tells the strength of agents: their loss against their rating.

    python -m benchmarks.studies.suite carolus_env/arena/ladder.json \
        --json benchmarks/results/suite.json

Measures every agent of a ladder that is rated above `greedy`, and compares the order by loss with
the order by rating (Spearman's rank correlation). Its interval is a bootstrap: decisions are drawn
anew, the same for all agents, and ratings anew from their intervals, taken as normal and
independent.

The ladder is ``carolus_env/arena/ladder.json``, or any JSON with a list ``agents`` of objects that
have ``spec`` and ``elo`` (or ``rating`` with it), ``low`` and ``high``.

With ``--again 100`` the best and the last candidates of 100 decisions are played on that many times
more, with other dice and to the end of each game. How much less the best are worth then is how
lucky they were, to be compared with `measure.optimism`, and what leaving games early gave them.
What the last ones lose then stands beside what the suite says that they lose.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import line
from carolus_env import bots
from carolus_env.analysis.candidates import after
from carolus_env.analysis.sampling import Sampler
from carolus_env.analysis.suite.data import Suite, read_suite, shipped
from carolus_env.analysis.suite.measure import ALL, Measured, measure, optimism
from carolus_env.analysis.suite.report import HALF_NAMES
from carolus_env.engine.state import pick
from carolus_env.system.files import write_json

DRAWN = 5000
AGAIN = 12345  # seed of new games
ABOVE = "greedy"
WIDTH = 2 * 1.96  # standard deviations in a 95 % interval

Row = dict[str, Any]


def rated(path: Path, players: int, above: str = ABOVE) -> list[Row]:
    """The agents above the agent ``above`` with their ratings, the weakest first.

    Raises:
        ValueError: when the file does not name them.
    """
    data = json.loads(path.read_text())
    if "agents" in data:
        if data.get("rules", {}).get("players", players) != players:
            return []
        given = data["agents"]
    else:
        given = data.get("players", {}).get(str(players), [])
    rows = [{"spec": row["spec"], **row.get("rating", row)} for row in given]
    found = [{key: row[key] for key in ("spec", "elo", "low", "high")} for row in rows]
    found.sort(key=lambda row: row["elo"])
    names = [row["spec"] for row in found]
    if found and above not in names:
        raise ValueError(f"{path}: {above} is not among the agents for {players} players")
    return found[names.index(above) + 1 :] if found else []


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, from 0; equal values share the mean of theirs."""
    less = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    same = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    found: np.ndarray = less + (same - 1) / 2
    return found


def spearman(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; 0 where all values are equal."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    found: np.ndarray = (a * b).sum(axis=-1) / np.where(spread > 0, spread, 1)
    return found


def drawn_losses(measured: Sequence[Measured], seed: int = 0) -> np.ndarray:
    """Mean losses of the agents over decisions drawn anew, kind by kind: ``(DRAWN, agents)``."""
    chance = np.random.default_rng(seed)
    kinds = np.array([one.kind for one in measured[0].decisions])
    losses = np.stack([one.losses for one in measured], axis=1)
    total = np.zeros((DRAWN, len(measured)))
    for kind in np.unique(kinds):
        part = losses[kinds == kind]
        counts = chance.multinomial(len(part), np.full(len(part), 1 / len(part)), size=DRAWN)
        total += counts @ part / len(kinds)
    return total


def compare(suite: Suite, agents: list[Row], half: str, say: Any = print) -> Row:
    """The result for one number of players, JSON-ready."""
    measured, rows = [], []
    for row in agents:
        found = measure(suite, bots.make(row["spec"]), half)
        loss = found.summary()[ALL]
        measured.append(found)
        rows.append({**row, "loss": loss.mean, "loss_low": loss.low, "loss_high": loss.high,
                     "seconds": round(found.seconds, 2), "asked": found.asked})  # fmt: skip
        say(f"{suite.players} players  {row['spec']:24} {row['elo']:7.0f}  {100 * loss.mean:6.2f} "
            f"[{100 * loss.low:.2f}, {100 * loss.high:.2f}]", flush=True)  # fmt: skip
    elo = np.array([row["elo"] for row in rows])
    spread = np.array([(row["high"] - row["low"]) / WIDTH for row in rows])
    loss_now = np.array([row["loss"] for row in rows])
    draws = drawn_losses(measured)
    ratings = elo + spread * np.random.default_rng(1).standard_normal(draws.shape)
    low, high = np.percentile(spearman(-draws, ratings), [2.5, 97.5])
    steps = np.diff(elo)
    told = (np.diff(loss_now) < 0).sum()
    return {
        "players": suite.players,
        "suite": suite.digest,
        "half": half,
        "decisions": len(measured[0].decisions),
        "optimism": optimism(measured[0].decisions),
        "spearman": float(spearman(-loss_now, elo)),
        "low": float(low),
        "high": float(high),
        "neighbours": len(steps),
        "neighbours_in_order": int(told),
        "widest_step": float(steps.max()),
        "agents": rows,
    }


def again(suite: Suite, games: int, most: int = 100) -> dict[str, float]:
    """What the suite says of candidates, and what they are worth in new games, to the end.

    Args:
        suite: whose decisions are played on, the first ``most`` of them.
        games: of the best and of the last candidate of each.
        most: decisions.

    Returns:
        Means over decisions, and standard errors: ``less``, ``error``: how much less the best
        candidates are worth; ``listed``: what the last ones lose by the suite; ``lost``,
        ``lost_error``: what they lose in the new games.
    """
    some = suite.decisions[:most]
    ends = [after(one.state()[0], [c.actions for c in one.candidates[:: len(one.candidates) - 1]])
            for one in some]  # fmt: skip
    numbers = np.repeat(np.arange(len(some)), 2 * games) * games
    numbers += np.tile(np.arange(games), 2 * len(some))  # the two have the same dice
    sampler = Sampler(suite.base, AGAIN, stratified=False)
    shares = sampler.play(pick(np.concatenate(ends), np.repeat(np.arange(2 * len(some)), games)),
                          numbers, numbers).shares  # fmt: skip
    means = shares.reshape(len(some), 2, games, -1).mean(axis=2)
    values = means[np.arange(len(some)), :, [one.team for one in some]]
    less = [one.best.value - best for one, (best, _) in zip(some, values, strict=True)]
    lost = values[:, 0] - values[:, 1]
    root = np.sqrt(len(some))
    return {
        "less": float(np.mean(less)),
        "error": float(np.std(less, ddof=1) / root),
        "listed": float(np.mean([one.candidates[-1].loss for one in some])),
        "lost": float(lost.mean()),
        "lost_error": float(lost.std(ddof=1) / root),
    }


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ladders", type=Path, nargs="+", metavar="LADDER")
    parser.add_argument("--players", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--half", choices=HALF_NAMES, default="all")
    parser.add_argument("--above", default=ABOVE, metavar="AGENT", help="default %(default)s")
    parser.add_argument("--suite", type=Path, help="a file, instead of the package's suite")
    parser.add_argument("--again", type=int, metavar="GAMES")
    parser.add_argument("--json", type=Path, help="other numbers of players stay as they are there")
    options = parser.parse_args()
    results = []
    if options.json and options.json.exists():
        results = json.loads(options.json.read_text())
    for players in options.players:
        found = [rated(path, players, options.above) for path in options.ladders]
        agents = next(filter(None, found), [])
        if len(agents) < 3:
            print(f"{players} players: {len(agents)} rated agents, left out", file=sys.stderr)
            continue
        suite = read_suite(options.suite) if options.suite else shipped(players)
        result = compare(suite, agents, options.half)
        if options.again:
            result["again"] = again(suite, options.again)
            print(
                "{less:.4f} less in new games, standard error {error:.4f}; the last candidates "
                "lose {lost:.4f} there, standard error {lost_error:.4f}, {listed:.4f} by the suite"
                .format(**result["again"])
            )  # fmt: skip
        results = [row for row in results if row["players"] != players]
        results.append({**result, "machine": line()})
        if options.json:
            write_json(options.json, sorted(results, key=lambda row: int(row["players"])))
        print(
            f"{players} players: {len(agents)} agents, Spearman {result['spearman']:.3f} "
            f"[{result['low']:.3f}, {result['high']:.3f}], {result['neighbours_in_order']} of "
            f"{result['neighbours']} neighbours in order, widest step {result['widest_step']:.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
