"""How well a position's value predicts the winner: the evaluation's and the network's.

    python evaluate.py search:v1,sims=100 mcts:sims=100 --games 300 --records games.jsonl.gz
    python -m benchmarks.studies.values games.jsonl.gz --json benchmarks/results/values.json

Takes each position of the records in which a player chooses a disc or begins a turn, and estimates
the teams' win probabilities: in that position, and in the one that the planner's best plan of the
turn leads to. The network values positions with a decision, so there it is asked after the dice:
of one roll, and the mean of `--rolls`. The log loss of the result is 0 for a certain and correct
estimate and 0.693 (two teams) for even odds. A value with a smaller loss makes a
better leaf of a search tree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import bots, engine
from carolus_env.bots.neural import model
from carolus_env.bots.planner import evaluation
from carolus_env.bots.search.judges import NetworkJudge
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MOVE, OVER, PLACE
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.records import Record, positions, read_records
from carolus_env.system.files import write_json

SEED = 1
LEAST = 1e-4  # probabilities are clipped to at least this

Values = npt.NDArray[np.float64]


def of_record(found: Record) -> tuple[States, Values]:
    """The positions of a game that are valued, and each team's share of its win."""
    passed = positions(found)
    phase = passed["phase"]
    begins = (phase == PLACE) & (np.roll(phase, 1) != PLACE)
    shares = win_shares(passed[-1:]) if passed["winners"][-1] else np.nan
    chosen = passed[(phase == DISC) | begins]
    return chosen, np.full((len(chosen), int(passed["teams"][0])), shares)


def win_shares(states: States) -> Values:
    """Each team's share of the win, ``(N, teams)``; equal shares where nobody has won."""
    won = np.array(states["winners"][:, None] >> np.arange(int(states["teams"][0])) & 1, float)
    won[states["winners"] == 0] = 1.0
    return won / won.sum(axis=1, keepdims=True)


def after_the_best_plan(states: States, streams: npt.NDArray[np.uint64] | None) -> States:
    """The games after the planner's turn that begins here; with streams, after the next dice."""
    games, planner = states.copy(), bots.make("planner")
    if streams is not None:
        games["generator"] = streams  # the game's real dice must stay hidden
    due = (PLACE, MOVE) if streams is None else (PLACE, MOVE, CROWN_CHOICE)
    while True:
        same = np.isin(games["phase"], due) & (games["player"] == states["player"])
        same &= (games["turn"] == states["turn"]) & (games["round"] == states["round"])
        rows = np.flatnonzero(same)
        if not len(rows):
            return games
        actions = planner.act(games[rows], new_streams(SEED, len(rows)))
        engine.step(games, actions, rows=rows, roll=streams is not None)


def result_or(states: States, estimate: Callable[[States], Values]) -> Values:
    """The result of games that are over, and an estimate of the others."""
    values = win_shares(states)
    rows = np.flatnonzero(states["phase"] != OVER)
    values[rows] = estimate(states[rows])
    return values


def estimates(states: States, rolls: int) -> Iterator[tuple[str, Values]]:
    """Each way to value positions, with its ``(N, teams)`` win probabilities; NaN: none."""
    players, teams = int(states["players"][0]), int(states["teams"][0])
    judge = NetworkJudge(model.shipped(players))

    def evaluated(games: States) -> Values:
        return evaluation.chances(games)[:, :teams]

    def judged(games: States) -> Values:
        return judge.judge(games)[1]

    def of_turns(found: Values) -> Values:
        values = np.full((len(states), teams), np.nan)
        values[turns] = found
        return values

    yield "evaluation", evaluated(states)
    yield "network", judged(states)
    turns = np.flatnonzero(states["phase"] == PLACE)
    end = after_the_best_plan(states[turns], None)
    yield "evaluation after the best plan", of_turns(result_or(end, evaluated))
    streams = new_streams(SEED, rolls * len(turns)).reshape(rolls, -1)
    ends = [result_or(after_the_best_plan(states[turns], each), judged) for each in streams]
    yield "network after the best plan, 1 roll", of_turns(ends[0])
    yield f"network after the best plan, {rolls} rolls", of_turns(np.mean(ends, axis=0))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, help="games of one number of players, as records")
    parser.add_argument("--rolls", type=int, default=4)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    games = [of_record(found) for _, found in read_records(options.records)]
    states = np.concatenate([chosen for chosen, _ in games])
    shares = np.concatenate([won for _, won in games])
    game = np.repeat(np.arange(len(games)), [len(chosen) for chosen, _ in games])
    known = ~np.isnan(shares[:, 0])  # not cut off
    states, shares, game = states[known], shares[known], game[known]
    losses = {
        name: -(shares * np.log(np.clip(values, LEAST, 1 - LEAST))).sum(axis=1)
        for name, values in estimates(states, options.rolls)
    }
    rows: list[dict[str, Any]] = []
    for moment, phase in (("a disc is chosen", DISC), ("a turn begins", PLACE)):
        here = states["phase"] == phase
        for name, loss in losses.items():
            if np.isnan(loss[here]).any():
                continue
            less = (losses["network"] - loss)[here]
            per_game = np.bincount(game[here], less, len(games))
            error = 1.96 * per_game.std() * len(games) ** 0.5 / here.sum()
            rows.append(
                {
                    "players": int(states["players"][0]),
                    "moment": moment,
                    "value": name,
                    "log_loss": round(float(loss[here].mean()), 4),
                    "less_than_network": [round(float(less.mean()), 4), round(float(error), 4)],
                    "positions": int(here.sum()),
                    "games": len(games),
                    "machine": line(),
                }
            )
            row = rows[-1]
            print(f"{moment:18} {name:40} {row['log_loss']:.4f}  less {row['less_than_network']}")
    if options.json:
        write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
