"""Whether a value network gains from being fitted to rollouts, and in which positions.

    python -m benchmarks.studies.supervised --json benchmarks/results/supervised.json

Positions are those after turns of the network's games against itself, before the dice. *Quick* is
the network's value, *deep* the mean over all rolls of the value after the next player's best
choice. Three sets are rolled out: positions where quick and deep differ most, as many others drawn
at random, and random ones to judge by. A rollout goes on for two rounds, less luck, and ends with
the network's value. The network is then fitted to a set, pass after pass, from its own weights. It
is judged by its distance to the rollouts of the third set (root mean square), and by paired games
against the network that it began with: after the pass with the least distance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import bots, engine
from carolus_env.analysis.rollout import BASE
from carolus_env.analysis.sampling import Sampler
from carolus_env.analysis.values import value_function
from carolus_env.arena import play_pairing
from carolus_env.bots.planner.evaluation import all_weights
from carolus_env.bots.planner.plans import STOP
from carolus_env.bots.value import model
from carolus_env.bots.value.ahead import values_ahead
from carolus_env.bots.value.inference import ValueWeights, values
from carolus_env.bots.value.inputs import write_seen
from carolus_env.bots.value.network import shapes
from carolus_env.engine import chance
from carolus_env.engine.rules import OVER, ROLL, Rules
from carolus_env.engine.state import States, pick
from carolus_env.engine.streams import new_streams
from carolus_env.learners.value.learning import new_worker, update
from carolus_env.system.compiler import entry
from carolus_env.system.files import check_writable, write_json

ROUNDS: Final = 2
SETS: Final = ("where quick and deep differ", "at random")
PLAY: Final = "candidates=32,plans=stop,next=0"
"""How the networks play against each other."""
DEALS: Final = 770_001
"""Seed of the first deal."""

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


def after_turns(players: int, games: int, seed: int) -> States:
    """Positions of games by the fast agent of rollouts: those in which dice are due."""
    states = engine.new_games(Rules(players), games, seed=seed)
    agent, streams = bots.make(BASE), new_streams(seed, games)
    found: list[States] = []
    while True:
        playing = np.flatnonzero(states["phase"] != OVER)
        if not len(playing):
            return np.concatenate(found)
        some, drawn = pick(states, playing), streams[playing]
        engine.step(some, agent.act(some, drawn), roll=False)
        found.append(some[some["phase"] == ROLL])
        chance.roll(some)
        states[playing], streams[playing] = some, drawn


def deep_values(states: States, weights: ValueWeights) -> Floats:
    """The mean over all rolls of the value after the next player's best choice."""
    found = np.zeros((len(states), int(states["teams"][0])))
    due = states["dice_due"]
    for dice in np.unique(due).tolist():
        rows = np.flatnonzero(due == dice)
        outcomes = chance.chance_outcomes(dice)
        for faces, probability in zip(outcomes.faces, outcomes.probabilities, strict=True):
            after = pick(states, rows)
            chance.apply_roll(after, np.tile(faces, (len(rows), 1)))
            found[rows] += probability * values_ahead(after, weights, candidates=8)
    return found


def rolled_out(states: States, spec: str, rollouts: int, seed: int) -> tuple[Floats, float]:
    """The mean of rollouts of each position, and the root mean square of their standard errors."""
    value = value_function(spec, int(states["players"][0]))
    sampler = Sampler(BASE, seed, value, rounds=ROUNDS, stratified=False)
    repeated = pick(states, np.repeat(np.arange(len(states)), rollouts))
    played = sampler.play(repeated, np.arange(len(repeated)), np.arange(len(repeated)))
    shares = (played.shares - played.luck).reshape(len(states), rollouts, -1)
    error = shares.std(axis=1, ddof=1) / np.sqrt(rollouts)
    return shares.mean(axis=1), float(np.sqrt((error**2).mean()))


@entry
def fit(states, targets, order, worker, rate):
    """One pass over positions: a step towards the target in each."""
    for i in range(order.shape[0]):
        s = states[order[i]]
        write_seen(s, worker.chooser.net.layout, worker.chooser.net.seen)
        for team in range(targets.shape[1]):
            worker.gradients.target[team] = targets[order[i], team]
        own = s["team"][s["player"]]
        update(worker.chooser.net.seen, own, targets.shape[1], worker, rate)


def distance(states: States, targets: Floats, weights: ValueWeights) -> float:
    """The root mean square of the difference between values and targets."""
    return float(np.sqrt(((values(states, weights) - targets) ** 2).mean()))


def fitted(
    start: model.ValueModel,
    states: States,
    targets: Floats,
    judged: tuple[States, Floats],
    rate: float,
    passes: int,
) -> tuple[list[float], dict[str, npt.NDArray[np.float32]]]:
    """Fit a network: its distance on the positions to judge by after each pass, and the best."""
    weights = ValueWeights.of(start.weights)
    firsts = {name: np.full(shape, 1.0) for name, shape in shapes(start.size).items()}
    players = start.size.players
    evaluation = all_weights()[players].copy()
    worker = new_worker(players, weights, ValueWeights.of(firsts), STOP, 8, evaluation)
    known, best = [distance(*judged, weights)], weights
    for turn in range(passes):
        order = np.random.default_rng(turn).permutation(len(states))
        fit(states, np.clip(targets, 0, 1), order, worker, np.float32(rate))
        known.append(distance(*judged, weights))
        if known[-1] == min(known[1:]):
            best = ValueWeights.of(weights._asdict())
    return known, best._asdict()


def study(
    spec: str,
    *,
    selfplay: int,
    positions: int,
    rollouts: int,
    rates: list[float],
    passes: int,
    games: int,
) -> Row:
    """Everything, for one network."""
    start = model.find(spec)
    players, weights = start.size.players, ValueWeights.of(start.weights)
    found = after_turns(players, selfplay, seed=1)
    quick = values(found, weights)
    apart = np.abs(deep_values(found, weights) - quick).max(axis=1)
    shuffled = np.random.default_rng(1).permutation(len(found))
    judging, rest = shuffled[:positions], shuffled[positions:]
    by_difference = rest[np.argsort(-apart[rest], kind="stable")[:positions]]
    chosen = dict(zip(SETS, (by_difference, rest[:positions]), strict=True))
    print(f"{len(found):,} positions; quick and deep differ by {apart.mean():.3f}", flush=True)
    labelled = {}
    for number, (name, rows) in enumerate({**chosen, "judged by": judging}.items()):
        states = pick(found, rows)
        targets, error = rolled_out(states, f"value:{spec}", rollouts, seed=number)
        labelled[name] = states, targets
        print(f"{name}: {len(rows):,} rolled out, standard error {error:.3f}", flush=True)
    results: list[Row] = []
    for name in SETS:
        states, targets = labelled[name]
        before = distance(states, targets, weights)
        for rate in rates:
            known, best = fitted(start, states, targets, labelled["judged by"], rate, passes)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fitted"
                model.save(model.ValueModel(start.size, best), path)
                agents = f"value:{path},{PLAY}", f"value:{spec},{PLAY}"
                result = play_pairing(agents, Rules(players), games, seed=DEALS)
            won = [result.win_rate[0], *result.ci95[0]]
            results.append(
                {"set": name, "before": before, "rate": rate, "known": known, "won": won}
            )
            print(name, rate, " ".join(f"{x:.4f}" for x in known), won, flush=True)
    return {
        "network": spec,
        "positions": positions,
        "rollouts": rollouts,
        "differ": {name: float(apart[some].mean()) for name, some in chosen.items()},
        "error": error,
        "games": games,
        "rows": results,
        "machine": line(),
    }


def main() -> int:
    """Print what is found, and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="2p", help="model of a value network, %(default)s")
    parser.add_argument("--selfplay", type=int, default=2500, help="games, %(default)s")
    parser.add_argument("--positions", type=int, default=8000, help="of each set, %(default)s")
    parser.add_argument("--rollouts", type=int, default=16, help="of each position, %(default)s")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01])
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--games", type=int, default=1000, help="of each result, %(default)s")
    parser.add_argument("--json", type=Path)
    given = vars(parser.parse_args())
    path, spec = given.pop("json"), given.pop("network")
    if path:
        check_writable(path)
    found = study(spec, **given)
    if path:
        write_json(path, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
