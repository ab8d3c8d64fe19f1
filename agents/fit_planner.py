"""Fit the planner's weights to the results of its own games.

    python -m agents.fit_planner                   # 2, 3 and 4 players; shows the weights
    python -m agents.fit_planner --players 3 --write

In each round the latest planners play each other, with some random decisions so that all kinds of
positions occur. Then the weights are fitted to all positions so far: a softmax regression of the
winner on the features at the ends of turns and before discs (conditional logit: McFadden, 1974),
with a small ridge penalty. Each new planner meets the best one on held-out deals, and
replaces it if it wins more. The first one counts only castles and clans.

With ``--write`` the best weights go into carolus_env/planning/weights.json, together with the
command that made them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import carolus_env as ce
from carolus_env import bots, evaluation
from carolus_env.bots import PlannerBot
from carolus_env.engine.chance import Deals, derived_seed, new_streams, roll
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, Rules
from carolus_env.planning import heuristic
from carolus_env.system.files import write_json

FIRST = {"castles": 0.5, "clans": 0.2}
POOL = 4  # the latest planners, which play for the next fit
RANDOM_DISCS, RANDOM_OTHERS = 0.3, 0.05  # shares of random decisions
RIDGE = 1e-3
MATCH = 2**62  # number of the seed of matches, beyond those of the fits' deals

Array = npt.NDArray[np.float64]


class Positions(NamedTuple):
    """The features of positions, and how their games ended.

    Attributes:
        features: ``(N, teams, F)`` float32.
        shares: ``(N, teams)`` float32, each team's win share.
    """

    features: npt.NDArray[np.float32]
    shares: npt.NDArray[np.float32]


def play(rules: Rules, pool: Sequence[Array], seed: int, deals: range) -> Positions:
    """Play games with a random planner of the population for each team.

    Args:
        rules: rules of all games.
        pool: the weights of each planner.
        seed: seed of all games and decisions.
        deals: the deals' numbers.
    """
    games = len(deals)
    random = np.random.default_rng([seed, deals.start, rules.players])
    states = Deals.of(seed, np.array(deals)).games(rules)
    planners = [PlannerBot(weights=weights) for weights in pool]
    members = random.integers(len(pool), size=(games, rules.teams))
    numbers = np.arange(games)
    winners = np.zeros(games, np.int64)
    counted, of_game = [], []

    def note(chosen: npt.NDArray[np.bool_]) -> None:
        counted.append(heuristic.features(states[chosen])[:, : rules.teams].astype(np.float32))
        of_game.append(numbers[chosen])

    while len(states):
        rows = np.arange(len(states))
        phase = states["phase"].copy()
        team = states["team"][rows, states["player"]]
        streams = new_streams(int(random.integers(2**60)), len(states))
        actions = ce.random_actions(states, streams)
        share = np.where(phase == DISC, RANDOM_DISCS, RANDOM_OTHERS)
        planned = random.random(len(states)) >= share
        for k, planner in enumerate(planners):
            moved = np.flatnonzero(planned & (members[numbers, team] == k))
            actions[moved] = planner.act(states[moved], streams[moved])
        ce.step(states, actions, roll=False)
        now = states["phase"]
        note((now != OVER) & ((phase == MOVE) | ((phase == CROWN_CHOICE) & (now == DISC))))
        roll(states)
        note((states["phase"] == DISC) & (phase == MOVE))
        over = states["phase"] == OVER
        winners[numbers[over]] = states["winners"][over]
        states, numbers = states[~over], numbers[~over]

    won = (winners[:, None] >> np.arange(rules.teams) & 1).astype(np.float32)
    won[winners == 0] = 1  # cut off: equal shares
    won /= won.sum(axis=1, keepdims=True)
    return Positions(np.concatenate(counted), won[np.concatenate(of_game)])


def fit(positions: Positions) -> tuple[Array, float]:
    """Fit the weights' win probabilities to the results; return weights and mean log loss."""
    from scipy.optimize import minimize

    features, shares = positions
    spread = features.reshape(-1, features.shape[2]).std(axis=0).astype(np.float64)
    spread[spread == 0] = np.inf  # a constant feature has no weight
    scaled = (features / spread).astype(np.float32)

    def loss(weights: Array) -> tuple[float, Array]:
        scores = (scaled @ weights.astype(np.float32)).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        error = (shares - np.exp(logs)).astype(np.float32)
        slope = -np.tensordot(error, scaled, axes=2) / len(shares) + 2 * RIDGE * weights
        return float(-(shares * logs).sum() / len(shares) + RIDGE * weights @ weights), slope

    result = minimize(loss, np.zeros(len(spread)), jac=True, method="L-BFGS-B")
    return result.x / spread, float(result.fun)


def match(rules: Rules, pair: Sequence[bots.Agent], games: int, seed: int) -> Any:
    """Return a match of two agents."""
    seatings = evaluation.pairing_tables(rules, games)
    results, _ = evaluation.play_games(seatings, pair, rules, seed=seed)
    return evaluation.pairing_result(("new", "old"), results)


def find(players: int, *, games: int, rounds: int, match_games: int, seed: int) -> Array:
    """Find the best weights, ``(F,)``, by ``rounds`` rounds of playing and fitting."""
    rules = Rules(players=players)
    names = [feature.name for feature in heuristic.FEATURES]

    def for_all(row: Array) -> Array:
        return np.tile(row, (5, 1))  # by number of players

    best = for_all(np.array([FIRST.get(name, 0.0) for name in names]))
    pool, played = [best], []
    for number in range(rounds):
        started = time.perf_counter()
        deals = range(games * number, games * (number + 1))
        played.append(play(rules, pool[-POOL:], seed, deals))
        together = Positions(*(np.concatenate(column) for column in zip(*played, strict=True)))
        weights, loss = fit(together)
        new = for_all(weights)
        pool.append(new)
        pair = PlannerBot(weights=new), PlannerBot(weights=best)
        result = match(rules, pair, match_games, derived_seed(seed, MATCH))
        low, high = result.ci95[0]
        print(
            f"{players} players, fit {number + 1}: {len(together.shares):,} positions, "
            f"log loss {loss:.4f}, against the best {100 * result.win_rate[0]:.1f} % "
            f"({100 * low:.1f} - {100 * high:.1f}), {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        if result.win_rate[0] > 0.5:
            best = new
    return best[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and print the weights; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    add("--games", type=int, default=1500, help="games for each fit (default %(default)s)")
    add("--rounds", type=int, default=5, help="fits (default %(default)s)")
    add("--match-games", type=int, default=600, help="against the best planner after each fit")
    add("--seed", type=int, default=1, help="default %(default)s")
    add("--write", action="store_true", help="write the weights into the package")
    options = parser.parse_args(argv)
    path = Path(heuristic.__file__).with_name("weights.json")
    for players in options.players:
        weights = find(
            players,
            games=options.games,
            rounds=options.rounds,
            match_games=options.match_games,
            seed=options.seed,
        )
        row = {
            feature.name: float(f"{weight:.4g}")
            for feature, weight in zip(heuristic.FEATURES, weights, strict=True)
        }
        for name, weight in row.items():
            print(f"  {name:18} {weight:9.4f}")
        pair = PlannerBot(weights=np.tile(list(row.values()), (5, 1))), bots.make("greedy")
        seed = derived_seed(options.seed, MATCH + 1)
        against = match(Rules(players), pair, options.match_games, seed)
        print(f"  against greedy: {100 * against.win_rate[0]:.1f} %", flush=True)
        if options.write:
            result = json.loads(path.read_text())
            result["weights"][str(players)] = row
            result["found"][str(players)] = (
                f"python -m agents.fit_planner --players {players} --games {options.games} "
                f"--rounds {options.rounds} --match-games {options.match_games} "
                f"--seed {options.seed}"
            )
            write_json(path, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
