"""An outside referee for ``mcts``: OpenSpiel's tree search plays against it, at our game.

    python -m benchmarks.studies.referee
    python -m benchmarks.studies.referee --rows alike --games 40 --json referee.json --add
    python -m benchmarks.studies.referee --spread

OpenSpiel's search was written independently of ours; openspiel_bot.py makes
it an agent. Games are paired deals. These are the rows; a search has `--sims` simulations,
and `--long` of them in ``playouts``, ``shuffled`` and ``uct``:

    alike      ours is set up like OpenSpiel's: single actions, a node for each roll, leaves valued
               by a random playout; PUCT with equal priors on both sides, the same exploration, and
               of choices with equal scores the lowest action number
    playouts   as alike, with more simulations: OpenSpiel's random games are played by our playout,
               which draws in the same way in a fiftieth of the time
    shuffled   as playouts, but OpenSpiel breaks ties at random, its default
    uct        as shuffled, with OpenSpiel's choice by UCT
    default    ours by default, where a search settles a whole turn, against OpenSpiel's UCT
    time       the same, but our search gets the seconds that one of OpenSpiel's takes on this
               machine; they are measured before the row is played

PUCT's score is mean + c sqrt(N) / (K (1 + n)) with K choices. Ours counts shares of the win from 0
to 1 and OpenSpiel payoffs from -1 to 1, so its uct_c is twice our c. These differences remain where
both are set up alike:

    first      ours counts one visit with an even share before the first real one
    order      ours considers the placements of a turn in ascending order only
    chance     OpenSpiel's roll is a node that is valued once before it is rolled; ours rolls at
               once and values the position after it
    solver     OpenSpiel backs up proven ends and stops when the root is proven; ours stops when no
               other choice can become the most visited one
    root       OpenSpiel's first simulation values the root itself

Ties matter more than all of these: in a small search most choices have no visit yet. The lowest
action number of a placement is the court, a good choice to look at first.

UCT's term, c sqrt(ln N / n), is a different one. It tries every choice once before any twice, so no
c of ours corresponds to its c. Here uct_c = 0.5 is stronger than 2, the value of OpenSpiel's
example: 36 to 8 games at 200 simulations, 46 to 54 at 50.

`--spread` compares searches on positions of random games: how evenly the visits of a root are
spread (exp of their entropy, divided by the number of choices), and the value of the position.

Seconds are wall time over all decisions, forced ones included; so are simulations a decision.
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

from benchmarks.machine import line
from carolus_env import arena, bots, engine
from carolus_env.arena.games import warm_up
from carolus_env.engine.rules import DISC, MOVE, PLACE, Rules
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.system.files import check_writable, write_json

INSTALL = "pip install -e . open_spiel==2.0.2"
"""OpenSpiel is not a dependency of this project; a separate environment is best."""

C_ALIKE = 1.0
"""Our ``c`` where both are set up alike; OpenSpiel's is twice that."""

UCT_C = 0.5
"""OpenSpiel's ``c`` for UCT."""

ALIKE = "moves=single,chance=explicit,leaf=playout"
ROWS = ("alike", "playouts", "shuffled", "uct", "default", "time")
SPREADS = (0.3, 1.0, 3.0)
"""Our values of ``c`` that `--spread` compares."""


# ------------------------------------------------------------------------------------ matches


def specs(row: str, sims: int, long: int) -> tuple[str, str]:
    """Our spec and OpenSpiel's in a row; for ``time`` seconds are measured first."""
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
    """Median wall time of an unforced decision, over positions of random games."""
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
    """Play whole deals, at least one, until there are enough games or the time is up.

    Returns:
        the pairing of `arena.pairing_result`, simulations and seconds a decision of both, and the
        machine's load average over one minute, before and after.
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
                meetings=fixtures.meetings,
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
    """A row as text; the win rate is ours."""
    low, high = row["ci95"][0]
    sims, taken = row["simulations_a_decision"], row["seconds_a_decision"]
    ends = f"{row['wins'][0]}-{row['draws']}-{row['wins'][1]}"
    return (
        f"{row['row']:10}{row['games']:>6}{100 * row['win_rate'][0]:>7.1f} "
        f"[{100 * low:5.1f}, {100 * high:5.1f}]  {ends:9}"
        f"{sims[0]:>8.1f}{sims[1]:>10.1f}{taken[0]:>11.5f}{taken[1]:>11.5f}   "
        f"{row['agents'][0]} : {row['agents'][1]}"
    )


# ------------------------------------------------------------------------------------ spread


def positions(players: int, count: int, seed: int) -> States:
    """``(count,)`` unforced decisions of random games: a disc, a placement, a move, and so on.

    Each comes from another game, after up to 150 decisions.
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
    """How evenly visits are spread: exp of their entropy by the number of choices; 1: evenly."""
    parts = np.array([count for count in visits if count > 0], float) / sum(visits)
    return float(np.exp(-(parts * np.log(parts)).sum())) / len(visits)


Look = Callable[[States, int], tuple[float, float]]
"""Searches a position with a seed; gives the spread, and the value to the player to move."""


def look_of(spec: str) -> Look:
    """The search of an agent of either kind."""
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
    """Print each agent's mean spread and value, and how its values differ from the first agent's.

    The difference is taken position by position and comes with its standard error.
    """
    states = positions(2, count, seed=1)
    print(f"{'spread':>8}{'value':>8}{'minus the first':>22}")
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
    """Play, print the table, and write the JSON after each row."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"Needs OpenSpiel, best in a separate environment:\n  {INSTALL}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--games", type=int, default=24, help="games of a row (default: 24)")
    parser.add_argument("--sims", type=int, default=50, help="simulations a search (default: 50)")
    parser.add_argument(
        "--long",
        type=int,
        default=400,
        help="the same, playouts to uct (default: 400)",
    )
    parser.add_argument("--limit", type=float, default=900, help="seconds for a row (default: 900)")
    parser.add_argument("--players", type=int, choices=(2, 3, 4), default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--add", action="store_true", help="keep the other rows of the JSON file")
    parser.add_argument("--spread", action="store_true", help="compare spreads and values instead")
    options = parser.parse_args(argv)
    if min(options.games, options.limit, options.sims - 1, options.long - 1) <= 0:
        parser.error("games and limit must be positive, sims and long 2 or more")
    try:
        import benchmarks.studies.openspiel_bot  # noqa: F401  registers the agent
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
