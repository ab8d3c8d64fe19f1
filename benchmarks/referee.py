"""An outside referee for ``mcts``: OpenSpiel's tree search plays it at our game.

    python benchmarks/referee.py
    python benchmarks/referee.py --rows alike --games 40 --json referee.json --add
    python benchmarks/referee.py --spread

OpenSpiel's search is written by others and knows nothing of ours; it plays through
benchmarks/openspiel_game.py. Games are paired deals. Rows, with N simulations a search (`--sims`;
from ``playouts`` to ``uct`` `--long`):

    alike      ours set up like OpenSpiel's: single actions, a node for each roll, leaves valued by
               a random playout; PUCT with equal priors on both sides, the same exploration, and
               of choices with the same score the lowest action number
    playouts   as alike, with more simulations: OpenSpiel's random games come from our playout,
               which draws the same way and takes a fiftieth of the time
    shuffled   as playouts, but of choices with the same score OpenSpiel takes any, as it comes
    uct        as shuffled, OpenSpiel's choice by UCT
    default    ours as it is against OpenSpiel's UCT; a search of ours settles a whole turn
    time       the same, where a search of ours has the seconds that one of OpenSpiel's takes here;
               measured before the row is played

In PUCT, mean + c sqrt(N) / (K (1 + n)) with K choices, ours counts parts of the win from 0 to 1,
OpenSpiel payoffs from -1 to 1: its uct_c is twice our c. What still differs where they are alike:

    first      ours counts one visit worth an even share before the first
    order      ours looks at placements of a turn in ascending order only
    chance     OpenSpiel: a roll is a node, valued once before it is rolled. Ours: the roll is taken
               at once, and the position after it valued
    solver     OpenSpiel: proven ends are backed up, and its search stops when the root is proven;
               ours stops when no other choice can become the most visited one
    root       OpenSpiel's first simulation values the root itself

Ties weigh more than all of that: most choices of a small search have no visit yet, and the lowest
number of a placement is the own court, which is a good one to look at first.

UCT's term, c sqrt(ln N / n), is another one, and tries every choice once before any twice: no c of
ours is its c. Its uct_c = 0.5 is stronger here than 2, with which OpenSpiel's example comes: 36 to
8 games at 200 simulations, 46 to 54 at 50.

`--spread` compares searches on positions of random games: how evenly the visits of a root lie (exp
of their entropy, by the number of choices), and what the position is held to be worth.

Seconds are wall time of all decisions, forced ones included; simulations too are per decision.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from machine import line

from carolus_env import arena, bots, engine
from carolus_env.arena.games import warm_up
from carolus_env.engine.rules import DISC, MOVE, PLACE, Rules
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.system.files import check_writable, write_json

INSTALL = "pip install -e . open_spiel==2.0.2"
"""OpenSpiel is no dependency of this project: best in an environment of its own."""

C_ALIKE = 1.0
"""``c`` of ours where both are alike; OpenSpiel's is twice that."""

UCT_C = 0.5
"""OpenSpiel's ``c`` for UCT."""

ALIKE = "moves=single,chance=explicit,leaf=playout"
ROWS = ("alike", "playouts", "shuffled", "uct", "default", "time")
SPREADS = (0.3, 1.0, 3.0)
"""``c`` of ours that `--spread` looks at."""


# ------------------------------------------------------------------------------------ matches


def specs(row: str, sims: int, long: int) -> tuple[str, str]:
    """Ours and theirs in a row; ``time`` measures first."""
    if row in ("alike", "playouts", "shuffled", "uct"):
        sims = sims if row == "alike" else long
        theirs = f"openspiel:sims={sims}"
        theirs += f",c={UCT_C:g}" if row == "uct" else f",choice=puct,c={2 * C_ALIKE:g}"
        theirs += ",ties=first" if row in ("alike", "playouts") else ""
        theirs += "" if row == "alike" else ",rollouts=ours"
        return f"mcts:sims={sims},{ALIKE},c={C_ALIKE:g}", theirs
    theirs = f"openspiel:sims={sims},c={UCT_C:g}"
    if row == "default":
        return f"mcts:sims={sims}", theirs
    return f"mcts:seconds={seconds_a_search(theirs):.3f}", theirs


def seconds_a_search(spec: str, searches: int = 12) -> float:
    """Median wall time of a decision that is not forced, over positions of random games."""
    agent, taken = bots.make(spec), []
    states = positions(2, searches, seed=5)
    for g in range(len(states)):
        started = time.perf_counter()
        agent.act(states[g : g + 1], new_streams(g, 1))
        taken.append(time.perf_counter() - started)
    return float(np.median(taken))


def play(
    pair: tuple[str, str], players: int, games: int, seed: int, limit: float
) -> dict[str, Any]:
    """Play whole deals until there are so many games or the time is up; at least one.

    Returns:
        The pairing of `arena.pairing_result`, with simulations a decision of both, and the load
        of the machine (its average over the last minute) before and after.
    """
    rules = Rules(players=players)
    agents = [bots.make(spec) for spec in pair]
    warm_up(agents, rules)
    before = [agent.simulations for agent in agents]
    load = [os.getloadavg()[0]]
    deals = arena.Plan(rules, pair, deals=games, seed=seed)
    parts: list[arena.Results] = []
    started = time.perf_counter()
    played = 0
    while played < games and (not parts or time.perf_counter() - started < limit):
        fixtures = deals.fixtures(played, played + deals.games_per_deal)
        parts.append(
            arena.play_games(
                fixtures.tables,
                agents,
                rules,
                seed=seed,
                deals=fixtures.deals,
                seatings=fixtures.seatings,
            )
        )
        played += deals.games_per_deal
    found = arena.pairing_result(pair, arena.Results.joined(parts))
    done = [agent.simulations - first for agent, first in zip(agents, before, strict=True)]
    return {
        **asdict(found),
        "players": players,
        "seed": seed,
        "simulations_a_decision": [
            round(count / decisions, 2)
            for count, decisions in zip(done, found.decisions, strict=True)
        ],
        "seconds_a_decision": [
            round(taken / decisions, 5)
            for taken, decisions in zip(found.seconds, found.decisions, strict=True)
        ],
        "load": [round(load[0], 2), round(os.getloadavg()[0], 2)],
    }


def table_line(row: dict[str, Any]) -> str:
    """A row as text: the win rate is ours."""
    low, high = row["ci95"][0]
    sims, taken = row["simulations_a_decision"], row["seconds_a_decision"]
    ends = f"{row['wins'][0]}-{row['draws']}-{row['wins'][1]}"
    return (
        f"{row['row']:10}{row['games']:>6}{100 * row['win_rate'][0]:>7.1f} "
        f"[{100 * low:5.1f}, {100 * high:5.1f}]  {ends:9}"
        f"{sims[0]:>8.1f}{sims[1]:>10.1f}{taken[0]:>11.5f}{taken[1]:>11.5f}   "
        f"{row['agents'][0]} : {row['agents'][1]}"
    )


# ------------------------------------------------------------------------------------ likeness


def positions(players: int, count: int, seed: int) -> States:
    """``(count,)`` decisions with a choice, of random games: discs, placements and moves in turn.

    Each is of a game of its own, up to 150 decisions on.
    """
    found = []
    wanted = (DISC, PLACE, MOVE)
    for g in range(count):
        game, stream = engine.new_games(Rules(players=players), 1, seed=seed + g), new_streams(g, 1)
        earliest = 10 + g * 37 % 140
        for played in range(10_000):
            due = int(game["phase"][0]) == wanted[g % 3]
            if engine.is_over(game)[0]:
                game = engine.new_games(Rules(players=players), 1, seed=10**6 + seed + g)
                earliest = 10
            elif due and played >= earliest and len(engine.legal_actions(game)) > 1:
                break
            else:
                engine.step(game, engine.random_actions(game, stream))
        found.append(game)
    return np.concatenate(found)


def spread(visits: Sequence[int]) -> float:
    """How evenly visits lie: exp of their entropy, by the number of choices; 1: all alike."""
    parts = np.array([count for count in visits if count > 0], float) / sum(visits)
    return float(np.exp(-(parts * np.log(parts)).sum())) / len(visits)


Look = Callable[[States, int], tuple[float, float]]
"""Searches one position with a seed; gives the spread and the value to who decides, 0 to 1."""


def look_of(spec: str) -> Look:
    """How an agent of either kind looks at a position."""
    agent = bots.make(spec)

    def ours(state: States, seed: int) -> tuple[float, float]:
        [choices] = agent.consider(state, new_streams(seed, 1))
        visits = [choice.visits for choice in choices]
        mine = state["team"][0, state["player"][0]]
        values = np.array([choice.chances[mine] for choice in choices])
        return spread(visits), float(np.average(values, weights=visits))

    def theirs(state: States, seed: int) -> tuple[float, float]:
        children = agent.search(state[0], new_streams(seed, 1)[0]).children
        visits = [child.explore_count for child in children]
        value = sum(child.total_reward for child in children) / sum(visits)
        return spread(visits), (1 + value) / 2

    return ours if spec.startswith("mcts") else theirs


def compare(specs: Sequence[str], count: int, repeats: int) -> None:
    """Print spreads and values of each agent, means over positions, and how values differ.

    The difference is to the first agent's, position by position, with its standard error.
    """
    states = positions(2, count, seed=1)
    print(f"{'spread':>8}{'value':>8}{'less the first':>22}")
    first = None
    for spec in specs:
        look = look_of(spec)
        found = np.array(
            [
                [look(states[g : g + 1].copy(), 1000 * r + g) for r in range(repeats)]
                for g in range(count)
            ]
        ).mean(axis=1)
        first = found if first is None else first
        gap = found[:, 1] - first[:, 1]
        print(
            f"{found[:, 0].mean():8.2f}{found[:, 1].mean():8.4f}"
            f"{gap.mean():+13.4f} +- {gap.std() / np.sqrt(count):.4f}   {spec}",
            flush=True,
        )


# ------------------------------------------------------------------------------------ the script


def main(argv: list[str] | None = None) -> int:
    """Play, print the table, and write the JSON after every row."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"OpenSpiel must be there, best in an environment of its own:\n  {INSTALL}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--games", type=int, default=24, help="of a row (default: 24)")
    parser.add_argument("--sims", type=int, default=50, help="a decision (default: 50)")
    parser.add_argument("--long", type=int, default=400, help="the same, playouts to uct (400)")
    parser.add_argument("--limit", type=float, default=900, help="seconds for a row (default: 900)")
    parser.add_argument("--players", type=int, choices=(2, 3, 4), default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--add", action="store_true", help="keep the other rows of the JSON file")
    parser.add_argument("--spread", action="store_true", help="measure how both explore instead")
    options = parser.parse_args(argv)
    if min(options.games, options.limit, options.sims - 1, options.long - 1) <= 0:
        parser.error("games and limit must be positive, sims and long 2 or more")
    try:
        import openspiel_game  # noqa: F401  registers the agent
    except ImportError as error:
        parser.error(f"OpenSpiel is missing ({error}); install it with\n  {INSTALL}")
    if options.spread:
        sims = options.long
        for c in SPREADS:
            theirs = f"openspiel:sims={sims},choice=puct,c={2 * c:g},rollouts=ours"
            compare(
                [f"{theirs},ties=first", theirs, f"mcts:sims={sims},{ALIKE},c={c:g}"],
                count=90,
                repeats=4,
            )
        return 0
    rows: list[dict[str, Any]] = []
    try:
        if options.json:
            check_writable(options.json)
            if options.add and options.json.exists():
                rows = json.loads(options.json.read_text())
    except (ValueError, OSError) as error:
        parser.error(f"{options.json}: {error}")
    machine = line("open_spiel")
    print(machine)
    print(
        f"{'row':10}{'games':>6}{'our win rate % [95 %]':>24}  {'W-D-L':9}"
        f"{'sims':>8}{'theirs':>10}{'s':>11}{'theirs':>11}"
    )
    for name in options.rows:
        pair = specs(name, options.sims, options.long)
        played = play(pair, options.players, options.games, options.seed, options.limit)
        row = {"row": name, **played, "machine": machine}
        rows = [old for old in rows if old["row"] != name] + [row]
        print(table_line(row), flush=True)
        if options.json:
            write_json(options.json, sorted(rows, key=lambda row: ROWS.index(row["row"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
