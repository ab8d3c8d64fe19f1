"""CarolusBench of the shipped agents, and of any other: ratings, regrets, and what a run costs.

    python -m benchmarks.carolusbench --save    # the rows of shipped agents that the results lack
    python -m benchmarks.carolusbench decisions:runs/mine/best --players 2 --name PPO --save

A row is measured as by ``evaluate.py AGENT --bench``, in one process, and again when the protocol,
the weights or the default options of its agent have changed. With --save each row is written when
it is finished, so the same command continues an interrupted run.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from benchmarks import strength
from benchmarks.machine import line
from benchmarks.results import Row, by_players, load, measuring_parser, save_rows
from carolus_env import bots, evaluation
from carolus_env.bots.network import TYPES
from carolus_env.bots.registry import fingerprint
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import bench, ladder
from carolus_env.evaluation.suite import ALL, measure
from carolus_env.networks.files import FOLDER
from carolus_env.system.machine import PACKAGE

AGENTS: Final = (
    "random",
    "greedy",
    "planner",
    "decisions",
    "mcts:sims=100",
    "rollout_policy",
    "ppo",
    "value",
)
"""The shipped agents, as `strength.spec_of` takes them."""
KEYS: Final = ("agent", "players")
_FEW: Final = 3
"""Decisions of the suite by which its kernels are compiled."""


def specs(players: int) -> list[str]:
    """Return the specs of the shipped agents for a number of players."""
    return [strength.spec_of(agent, players) for agent in AGENTS]


def version(players: int, spec: str) -> str:
    """Return the protocol and a digest of what an agent plays by: defaults, weights, own files."""
    if spec in specs(players):
        return f"{bench.NAME}, {strength.digest(players, [spec])}"
    files = fingerprint(bots.make(spec), players)
    del files[PACKAGE.name]
    return "-".join((f"{bench.NAME}, ", *sorted(files.values())))


def learning(players: int, spec: str) -> Row:
    """Return CPU-minutes of learning and the seed of a shipped model; nothing for other agents."""
    file = FOLDER / f"{spec.replace(':', '_')}.safetensors"
    if spec not in specs(players) or not file.exists():
        return {}
    about = TYPES[spec.partition(":")[0]].load(file).about
    return {"learning": about["cpu_seconds"] / 60, "seed": about["seed"]}


def row(players: int, spec: str) -> Row:
    """Measure an agent by CarolusBench; compiling does not count."""
    agent, suite, rules = bots.make(spec), bench.suite(players), Rules(players)
    ladder.prepare(agent, rules)
    for each in (agent, bots.make("random")):  # random's choices are not listed: rolled out
        measure(suite, each, bench.HALF, games=2, decisions=suite.half(bench.HALF)[:_FEW])
    begun = time.process_time()
    plan = bench.plan(spec, players, bench.opponents(agent, players))
    cup = evaluation.Tournament(plan, [agent, *map(bots.make, plan.agents[1:])])
    cup.run()
    result = bench.rating(plan, cup.results) | bench.regret(agent, players)
    mean, low, high = result["regret"][ALL][:3]
    return {
        "agent": spec,
        "players": players,
        "version": version(players, spec),
        "elo": result["elo"],
        "elo_ci95": result["elo_ci95"],
        "games": cup.games,
        "regret": mean,
        "regret_ci95": [low, high],
        "opponents": result["opponents"],
        "minutes": (time.process_time() - begun) / 60,
        "machine": line(),
    }


def table(rows: list[Row]) -> str:
    """Return the rating and the regret of each agent, the strongest first; seeds share a line."""
    agents: dict[tuple[str, int], list[Row]] = {}
    for each in sorted(rows, key=lambda row: (row["players"], -row["elo"])):
        name = each.get("name", f"`{each['agent']}`")
        agents.setdefault((name, each["players"]), []).append(each)
    cells = []
    for (name, players), runs in agents.items():
        intervals = len(runs) == 1
        seeds = f", {len(runs)} seeds"
        if intervals:
            seeds = f" seed {runs[0]['seed']}" if {"name", "seed"} <= runs[0].keys() else ""
        elos, regrets = [], []
        for each in runs:
            regret, *ends = (f"{100 * n:.1f}" for n in (each["regret"], *each["regret_ci95"]))
            low, high = each["elo_ci95"]
            elos.append(f"{each['elo']:+.0f}" + f" ({low:+.0f} to {high:+.0f})" * intervals)
            regrets.append(f"{regret} %" + f" ({' - '.join(ends)})" * intervals)
        cells.append(((name + seeds,), players, f"{', '.join(elos)}; {', '.join(regrets)}"))
    return by_players(["agent"], cells, rows)


def main() -> int:
    """Measure what the results lack, print the table, and save the rows if asked."""
    parser = measuring_parser(__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="(the shipped agents)")
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--name", help="name of the agents in the table; by default their spec")
    parser.add_argument("--learning", type=float, metavar="MINUTES", help="CPU time of learning")
    parser.add_argument("--seed", type=int, help="seed of learning")
    options = parser.parse_args()
    about: dict[str, Any] = {"name": options.name, "seed": options.seed}
    about = {k: v for k, v in (about | {"learning": options.learning}).items() if v is not None}
    known = {tuple(each[key] for key in KEYS): each for each in load("carolusbench")}
    rows = []
    for players in options.players:
        for spec in options.agents or specs(players):
            result = known.get((spec, players))
            if result is None or result["version"] != version(players, spec):
                result = row(players, spec)
            rows.append(result | learning(players, spec) | about)
            print(table(rows[-1:]), flush=True)
            if options.save:
                save_rows("carolusbench", rows[-1:], KEYS)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
