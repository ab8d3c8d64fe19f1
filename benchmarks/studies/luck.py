"""What limits luck-adjusted results: how much of a result the rolls decide, and who can see it.

    python -m benchmarks.studies.luck planner mcts:sims=100 --json benchmarks/results/luck.json

One pairing is played for each number of players. Let y be the first agent's score in a game, x_k
what a value function expects of it after roll k, and l_k the luck of that roll (`analysis.luck`). A
game is then a sum of steps: each roll's l_k, and the changes in between, when players decide,
d_k = x_k - l_k - x_(k-1) and at last y - x_K. Shares are of the variance of y:

    foresight   the squared correlation of y and x: at the start, and after a quarter, a half and
                three quarters of the rolls
    rolls       mean sum of l_k^2: what the value function takes rolls to be worth
    decisions   mean sum of d_k^2: what the value function did not expect of decisions: what the
                agents leave to chance, and its own errors
    explained   the squared correlation of y and the sum of luck; equal to `rolls` where the value
                function is right
    weight      by which luck is multiplied (`arena.pairing.less_luck`): 1 where the value function
                knows what rolls are worth, less where it makes too much of them
    saved       how many games are worth one less luck; at weight 1, and at the weight from the
                other deals, with its 95 % interval
    CPU         milliseconds of one core that a game takes, and its luck; so in core-seconds a game
                is worth `saved` times the first by their sum

``--ceiling`` asks the same of a perfect value function, for cheap agents in self-play: from
positions before a roll, two rolls are drawn, and each is played on twice with other dice. The
covariance of results after the same roll, less that after different rolls, is what the roll alone
decides; times the rolls of a game, the share of the result's variance.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import arena
from carolus_env.analysis.luck import METHODS, luck
from carolus_env.analysis.sampling import Sampler
from carolus_env.analysis.values import Floats, value_function
from carolus_env.arena.pairing import less_luck
from carolus_env.engine.chance import apply_roll, draw_faces
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.records import read_records, start_of
from carolus_env.records.events import play_events
from carolus_env.system.files import write_json

VALUES = ("planner", "ppo:v1", "value")
DEALS = {2: 150, 3: 20, 4: 50}
MOMENTS = (0.25, 0.5, 0.75)
CEILING_GAMES, CEILING_TIMES = 40, 100


class Rolls(NamedTuple):
    """The rolls of a tournament's games after their set-up, game by game."""

    scores: Floats
    """``(G,)``: the first agent's score in each game."""
    deals: npt.NDArray[np.int64]
    """``(G,)``."""
    sides: Floats
    """``(G, teams)``: 1/2 for the teams of the first agent, -1/2 for the other's, each in the part
    of its seats that the agent has."""
    games: npt.NDArray[np.int64]
    """``(K,)``: the game of each roll."""
    before: States
    """``(K,)``."""
    after: States
    """``(K,)``."""
    faces: npt.NDArray[np.int64]
    """``(K, dice)``."""
    starts: States
    """``(G,)``: before the first decision of round 1."""
    seconds: float
    """Of the CPU, to play all games; all workers'."""


def play(agents: tuple[str, str], players: int, deals: int, seed: int, workers: int) -> Rolls:
    """Play a pairing, and take its games apart."""
    plan = arena.Plan(Rules(players), agents, deals=deals, seed=seed)
    arena.play_pairing(agents, plan.rules, 2, seed=seed)  # compiles
    cup = arena.Tournament(plan)
    found: dict[str, list[Any]] = {name: [] for name in ("games", "before", "after", "faces")}
    starts = []
    with tempfile.TemporaryDirectory() as folder:
        spent = cpu_seconds()
        cup.run(workers=workers, records=Path(folder) / "games.jsonl")
        spent = cpu_seconds() - spent
        for game, (_, record) in enumerate(read_records(Path(folder) / "games.jsonl")):
            start = None
            for played in play_events(start_of(record), record["events"]):
                if played.before["round"][0] == 0:
                    start = played.after
                elif "roll" in played.event:
                    found["games"].append(game)
                    found["before"].append(played.before)
                    found["after"].append(played.after)
                    found["faces"].append(played.event["roll"])
            starts.append(start)
    results = cup.results
    side = np.where(results.tables == 0, 0.5, -0.5)  # (G, players)
    team = [plan.rules.team(seat) for seat in range(players)]
    sides = np.zeros((len(results), max(team) + 1))
    for seat in range(players):
        sides[:, team[seat]] += side[:, seat] / team.count(team[seat])
    return Rolls(
        scores=0.5 + (results.shares * side).sum(axis=1),
        deals=results.deals,
        sides=sides,
        games=np.array(found["games"]),
        before=np.concatenate(found["before"]),
        after=np.concatenate(found["after"]),
        faces=np.array(found["faces"]),
        starts=np.concatenate(starts),
        seconds=spent,
    )


def cpu_seconds() -> float:
    """Of this process, and of its workers that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measured(rolls: Rolls, spec: str, method: str) -> dict[str, Any]:
    """The figures of one value function."""
    players = int(rolls.before["players"][0])
    value, games = value_function(spec, players), len(rolls.scores)
    variance = rolls.scores.var()

    def expected(states: States, of: npt.NDArray[np.int64]) -> Floats:
        found: Floats = 0.5 + (value(states) * rolls.sides[of]).sum(axis=1)
        return found

    starts = expected(rolls.starts, np.arange(games))
    after = expected(rolls.after, rolls.games)
    luck(rolls.before[:1], rolls.faces[:1], value, method)  # compiles
    spent = cpu_seconds()
    of_teams = luck(rolls.before, rolls.faces, value, method)
    spent = cpu_seconds() - spent
    worth = (of_teams * rolls.sides[rolls.games]).sum(axis=1)
    first = np.searchsorted(rolls.games, np.arange(games))
    counts = np.bincount(rolls.games, minlength=games)
    last = first + counts - 1
    since = np.concatenate([[0.0], after[:-1]])
    since[first] = starts
    decided = after - worth - since
    decisions = np.bincount(rolls.games, decided**2, games) + (rolls.scores - after[last]) ** 2
    moments = [starts, *(after[first + (part * (counts - 1)).astype(int)] for part in MOMENTS)]
    total = np.bincount(rolls.games, worth, games)
    plain = np.bincount(rolls.deals, rolls.scores - rolls.scores.mean())
    fixed = np.bincount(rolls.deals, rolls.scores - total - (rolls.scores - total).mean())
    found = less_luck(rolls.scores, total, rolls.deals)
    return {
        "value": spec,
        "version": value.version,
        "method": method,
        "foresight": [float(np.corrcoef(rolls.scores, x)[0, 1] ** 2) for x in moments],
        "rolls": float(np.bincount(rolls.games, worth**2, games).mean() / variance),
        "decisions": float(decisions.mean() / variance),
        "explained": float(np.corrcoef(rolls.scores, total)[0, 1] ** 2),
        "mean_luck": [float(total.mean()), float(total.std() / games**0.5)],
        "weight": found["luck_weight"],
        "saved_at_weight_1": float((plain**2).sum() / (fixed**2).sum()),
        "saved": list(found["games_saved"]),
        "seconds_a_game": [rolls.seconds / games, spent / games],
        "win_rate": float(rolls.scores.mean()),
        "adjusted_rate": found["adjusted_rate"][0],
        "adjusted_ci95": list(found["adjusted_ci95"][0]),
    }


def ceiling(base: str, players: int, seed: int) -> dict[str, Any]:
    """What rolls decide of the results of an agent's self-play."""
    rolls = play((base, base), players, CEILING_GAMES // 2, seed, 1)
    numbers = np.repeat(np.arange(len(rolls.before)), CEILING_TIMES)
    side = np.array([0.5, *[-0.5] * (rolls.sides.shape[1] - 1)])
    sampler = Sampler(base, seed, method="none", stratified=False)
    scores = np.empty((2, 2, len(numbers)))
    for roll in range(2):
        games = rolls.before[numbers]
        games["generator"] = new_streams(seed + roll, len(games))
        apply_roll(games, draw_faces(games))
        for time_ in range(2):
            ids = np.arange(len(games)) + (2 * roll + time_) * len(games)
            shares = sampler.play(games, ids, np.zeros(len(games), np.int64)).shares
            scores[roll, time_] = 0.5 + shares @ side
    products = (scores[0, 0] - scores[1, 0]) * (scores[0, 1] - scores[1, 1]) / 2
    of_place = products.reshape(-1, CEILING_TIMES).mean(axis=1)
    of_game = np.bincount(rolls.games, of_place)
    played = sampler.play(
        rolls.starts[np.arange(20_000) % len(rolls.starts)],
        np.arange(20_000) + 4 * len(numbers),
        np.zeros(20_000, np.int64),
    )
    variance = (0.5 + played.shares @ side).var()
    error = products.std() / len(products) ** 0.5 * len(numbers) / CEILING_TIMES / len(of_game)
    return {
        "agents": [base, base],
        "players": players,
        "value": "perfect",
        "rolls_a_game": len(rolls.games) / len(of_game),
        "rolls": float(of_game.mean() / variance),
        "error": float(error / variance),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs=2, metavar="AGENT")
    parser.add_argument("--players", type=int, nargs="+", default=list(DEALS))
    parser.add_argument("--deals", type=int, help=f"default {DEALS}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--ceiling", metavar="AGENT", help="also what rolls decide of its self-play"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    rows, machine = [], line()
    print(machine)
    for players in options.players:
        started = time.perf_counter()
        agents = (options.agents[0], options.agents[1])
        deals = options.deals or DEALS[players]
        rolls = play(agents, players, deals, options.seed, options.workers)
        seconds = time.perf_counter() - started
        about = {"agents": list(agents), "players": players, "deals": deals, "seed": options.seed}
        about |= {"games": len(rolls.scores), "rolls_a_game": len(rolls.games) / len(rolls.scores)}
        for spec in VALUES:
            for method in METHODS:
                row = {**about, **measured(rolls, spec, method), "machine": machine}
                rows.append(row)
                print(
                    f"{players} players, {spec:8}{method:6} foresight "
                    + " ".join(f"{part:.2f}" for part in row["foresight"])
                    + "  rolls {rolls:.2f}  decisions {decisions:.2f}  explained {explained:.3f}"
                    "  weight {weight:.2f}".format(**row)
                    + f"  saved {row['saved_at_weight_1']:.2f}, "
                    + "{:.2f} [{:.2f}, {:.2f}]".format(*row["saved"]),
                    flush=True,
                )
        if options.ceiling:
            rows.append({**ceiling(options.ceiling, players, options.seed), "machine": machine})
            print(
                "{players} players, {agents}: rolls {rolls:.2f} +- {error:.2f}".format(**rows[-1])
            )
        print(f"{seconds:.0f} s for the games", flush=True)
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
