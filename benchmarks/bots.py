"""What bots cost: time per decision, simulations a second, games a second of each pairing.

    python benchmarks/bots.py
    python benchmarks/bots.py --players 2 --json bots.json

On one core. Decisions are timed on positions from games of the planner against itself, in one batch
for each phase, several times. A bot that plans whole turns is asked for the first decision of one.
Pairings play whole games side by side; *outside* is the share of time in which no bot was deciding.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import line

import carolus_env as ce
from carolus_env import arena, bots
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PHASE_NAMES, PLACE, Rules
from carolus_env.system.files import check_writable, write_json

BOTS = ("random", "greedy", "planner", "mcts:sims=100", "mcts:sims=400")
PHASES = (CROWN_CHOICE, DISC, PLACE, MOVE)
GAMES = {"random": 4000, "greedy": 1000, "planner": 60, "mcts": 6}
POSITIONS = {"mcts": 20}


def positions(players: int, games: int = 40) -> Any:
    """All positions of games between planners with a disc, a crown, a move or a turn to begin."""
    states, planner = ce.new_games(Rules(players), games, seed=1), bots.make("planner")
    streams, seen = ce.new_streams(1, games), []
    while len(states):
        seen.append(states.copy())
        ce.step(states, planner.act(states, streams[: len(states)]))
        states = states[states["phase"] != OVER]
    everything = np.concatenate(seen)
    whole = everything["placements_left"] == Rules(players).dice
    return everything[(everything["phase"] != PLACE) | whole]


def decisions(spec: str, states: Any, repeats: int) -> list[dict[str, Any]]:
    """Microseconds a decision in each phase, and simulations a second of bots that simulate."""
    rows, random = [], np.random.default_rng(1)
    players = int(states["players"][0])
    for phase in PHASES:
        known = states[states["phase"] == phase]
        count = min(len(known), POSITIONS.get(spec.partition(":")[0], 1000))
        asked = known[random.choice(len(known), count, replace=False)]
        bots.make(spec).act(asked[:1], ce.new_streams(1, 1))  # compiles
        times, rates = [], []
        for repeat in range(repeats):
            bot, streams = bots.make(spec), ce.new_streams(repeat, count)
            bot.act(asked[:1], streams[:1])  # allocates its tree
            before = getattr(bot, "simulations", 0)
            started = time.perf_counter()
            bot.act(asked, streams)
            seconds = time.perf_counter() - started
            times.append(1e6 * seconds / count)
            rates.append((getattr(bot, "simulations", 0) - before) / seconds)
        rows.append(
            {
                "bot": spec,
                "players": players,
                "phase": PHASE_NAMES[phase],
                "us": statistics.median(times),
                "us_min": min(times),
                "us_max": max(times),
                "simulations_per_s": statistics.median(rates) or None,
            }
        )
        row = rows[-1]
        rate = f"{row['simulations_per_s']:,.0f} simulations/s" if rates[0] else ""
        print(f"{spec:16} {players} {row['phase']:6} {row['us']:12,.2f} us  {rate}", flush=True)
    return rows


def pairings(players: int, repeats: int) -> list[dict[str, Any]]:
    """Games a second of each pair of bots, and the share of the time spent outside them."""
    rows, rules = [], Rules(players)
    for pair in itertools.combinations_with_replacement(BOTS[:-1], 2):
        made = [bots.make(spec) for spec in pair]
        games = min(GAMES[spec.partition(":")[0]] for spec in pair)
        seatings = arena.pairing_tables(rules, games)
        arena.play_games(seatings[:6], made, rules, seed=0)
        rates, outside = [], []
        for repeat in range(repeats):
            started = time.perf_counter()
            results = arena.play_games(seatings, made, rules, seed=repeat)
            seconds = time.perf_counter() - started
            rates.append(len(seatings) / seconds)
            outside.append(1 - float(results.seconds.sum()) / seconds)
        rows.append(
            {
                "pair": list(pair),
                "players": players,
                "games": len(seatings),
                "games_per_s": statistics.median(rates),
                "min": min(rates),
                "max": max(rates),
                "outside": statistics.median(outside),
            }
        )
        row = rows[-1]
        names = " : ".join(pair)
        print(
            f"{names:34} {players} {row['games_per_s']:10,.1f} games/s, "
            f"outside {100 * row['outside']:.1f} %",
            flush=True,
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json:
        check_writable(options.json)
    print(line())
    asked, played = [], []
    for players in options.players:
        states = positions(players)
        for spec in BOTS:
            asked += decisions(spec, states, options.repeats)
        played += pairings(players, options.repeats)
    if options.json:
        report = {"machine": line(), "decisions": asked, "pairings": played}
        write_json(options.json, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
