"""What a cluster does, measured on one machine by benchmarks/cluster.py, and a model of more.

One process, the driver, gives blocks of games to all cores and writes what they return. A core
plays a block in its games' time; the driver spends a fixed time on a task and some on each game. So
cores are kept busy up to the ratio of the two, and no further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import results

from carolus_env.arena.games import SIDE_BY_SIDE
from carolus_env.arena.pool import BLOCK_SECONDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORES = (1, 2, 10, 100, 1000)
MICROSECONDS = {
    "random": 0.24,
    "greedy": 1.25,
    "planner": 58,
    "value:2p": 560,
    "search:2p,sims=100": 2600,
}
"""Of a decision with two players, in tournaments on one core (AMD EPYC)."""
AGENTS = tuple(MICROSECONDS)
DECISIONS = 150
"""Of a game, about."""


def load() -> dict[str, Any]:
    """What was measured."""
    found: Any = results.load("cluster")
    return found


def a_game(agent: str) -> float:
    """Seconds of one core for a game."""
    return DECISIONS * MICROSECONDS[agent] / 1e6


def block(agent: str) -> tuple[int, float]:
    """Games of a full block, and the seconds that a core plays it."""
    games = max(1, min(SIDE_BY_SIDE, int(BLOCK_SECONDS / a_game(agent))))
    return games, games * a_game(agent)


def driver(games: int) -> float:
    """The driver's seconds for a block."""
    found = load()
    return float(found["tasks"]["ray"]["driver_per_task"] + games * per_game())


def per_game() -> float:
    """The driver's seconds for a game, the mean over the tournaments on Ray."""
    runs = load()["overhead"]["pairs"]["ray"]
    return float(sum(run["driver_per_game"] for run in runs) / len(runs))


def busy(agent: str) -> float:
    """How many cores one driver keeps busy."""
    games, seconds = block(agent)
    return seconds / driver(games)


def overhead_table() -> str:
    """Processes against Ray, tournament by tournament."""
    found = load()["overhead"]
    lines = [
        "| who plays | start-up | games a second after it | of that time, workers play | "
        "driver's CPU a game |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, about in (("processes", "`--workers"), ("ray", "`--on ray`, `--workers")):
        for run in found["pairs"][name]:
            lines.append(
                f"| {about} {found['workers']}` | {run['start']:.1f} s | {run['games_per_s']:,.0f} "
                f"| {run['busy']:.0%} | {1e6 * run['driver_per_game']:.0f} us |"
            )
    task = load()["tasks"]["ray"]
    pairs = zip(found["pairs"]["ray"], found["pairs"]["processes"], strict=True)
    ratios = [ray["games_per_s"] / other["games_per_s"] for ray, other in pairs]
    return (
        "\n".join(lines) + f"\n\n{' against '.join(f'`{a}`' for a in found['agents'])}, "
        f"{found['games']:,} games, in pairs. Games a second with Ray are "
        f"{' and '.join(f'{ratio:.2f}' for ratio in ratios)} times those with processes; the share "
        f"of time in which workers play is {found['ratio']:.2f} times theirs (median of the "
        f"pairs). Tasks that do nothing: {task['tasks_per_s']:,.0f} a second, "
        f"{1e6 * task['driver_per_task']:.0f} us of the driver's CPU each. Before the start-up "
        f"above Ray takes {found['connecting']:.1f} s to start a cluster here. {where()}\n"
    )


def where() -> str:
    """The machine, and what else ran."""
    found = load()
    return f"Machine: {found['machine']}; load {found['overhead load']:.1f} before it began."


def scale_table() -> str:
    """The model: what one driver keeps busy."""
    lines = [
        "| agent | a game, one core | games a block | bytes a block | cores kept busy | "
        "100,000 games on 1,000 cores |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = load()["overhead"]
    start = found["connecting"] + max(run["start"] for run in found["pairs"]["ray"])
    for agent in AGENTS:
        games, _ = block(agent)
        total = start + 100_000 * a_game(agent) / min(1000.0, busy(agent))
        lines.append(
            f"| `{agent}` | {1000 * a_game(agent):.3g} ms | {games:,} | "
            f"{results.short(games * load()['bytes_per_game'])} | {busy(agent):,.0f} | "
            f"{total:,.0f} s |"
        )
    return "\n".join(lines) + "\n"


def training_table() -> str:
    """Both learners, by threads, processes and Ray."""
    lines = [
        "| learner | self-play by | a second | against one thread | the learner waits | "
        "bytes a round and actor |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    rows = load()["training"]
    for row in rows:
        [alone] = [r for r in rows if r["learner"] == row["learner"] and r["where"] == "one thread"]
        waits, sent = "-", "-"
        if row["where"] in ("processes", "ray"):
            waits, sent = f"{row['waiting']:.0%}", results.short(row["bytes"])
        lines.append(
            f"| `{row['learner']}` | {row['where']} | {row['per_s']:,.0f} {row['unit']} | "
            f"{row['per_s'] / alone['per_s']:.2f} | {waits} | {sent} |"
        )
    return "\n".join(lines) + f"\n\nMachine: {load()['machine']}.\n"


def plot(axes: Any, colours: tuple[str, ...]) -> None:
    """Cores against how many of them are kept busy, by agent."""
    for agent, colour in zip(AGENTS, colours, strict=True):
        limit = busy(agent)
        cores = sorted({*CORES, min(limit, 10_000.0), 10_000.0})
        kept = [min(float(n), limit) for n in cores]
        axes.plot(cores, kept, color=colour, label=agent)
    axes.set(xscale="log", yscale="log", xlabel="cores of the cluster", ylabel="cores kept busy")
    axes.legend(frameon=False)
    axes.grid(visible=True)


def figure(empty: Any, colours: tuple[str, ...]) -> Figure:
    """The plot of the model."""
    found, axes = empty(3.6)
    plot(axes, colours)
    drawn: Figure = found
    return drawn
