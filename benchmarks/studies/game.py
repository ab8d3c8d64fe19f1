"""The game in figures: its length and choices, and what seats, discs, clans and castles are worth.

    python -m benchmarks.studies.game --games 500 --json figures.json

docs/game.md has the command of its tables.

One agent plays all seats, for 2, 3 and 4 players and both crown options. What is measured:

- *length*: rounds, turns and decisions of a game, and why it ended;
- *choices*: legal actions of a decision; whole turns (each set of placements once) at the beginning
  of a turn; and the size of the tree, as a power of ten: the product of a game's discs, crowns,
  whole turns and different rolls;
- *seats*: a seat's share of the win, by its place in the first round's opening order;
- *places*: the share of the win of who acts first, second and so on in a round, over all rounds;
- *discs*: how much of the win each disc costs against the best one in hand, by the network looking
  ahead (`bots.value.ahead`), by the discs left in hand, and how often each is chosen;
- *leads*: what one castle and one clan more than the best other player are worth: coefficients of
  a linear regression of the result, on one position of each game, before its discs are chosen. They
  say what goes with winning, not what causes it: who is ahead has often other things too.

Intervals are 95 %, from the spread between games.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.machine import line
from carolus_env import bots, engine
from carolus_env.bots.value.ahead import disc_values
from carolus_env.bots.value.inference import ValueWeights
from carolus_env.bots.value.model import shipped
from carolus_env.engine.chance import chance_outcomes
from carolus_env.engine.rules import (
    CLANS,
    CROWN_CHOICE,
    DICE,
    DISC,
    DISCS,
    MOVE,
    NOBODY,
    PLACE,
    REASON_NAMES,
    Rules,
)
from carolus_env.engine.state import States, pick
from carolus_env.engine.streams import new_streams
from carolus_env.system.files import write_json

CROWNS: Final = ("on_roll", "deferred")
DISC_POSITIONS: Final = 1500
"""Positions whose discs are valued."""

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


class Games(NamedTuple):
    """Games that were played, and every position in which a decision was due."""

    ends: States
    """``(G,)``."""
    shares: Floats
    """``(G, players)``: each seat's share of the win."""
    games: npt.NDArray[np.int64]
    """``(K,)``: the game of each position."""
    positions: States
    """``(K,)``."""
    actions: npt.NDArray[np.int64]
    """``(K,)``: what was decided."""
    choices: npt.NDArray[np.int64]
    """``(K,)``: the number of legal actions."""


def play(rules: Rules, spec: str, count: int, seed: int) -> Games:
    """Play games in which one agent has all seats."""
    agent, states = bots.make(spec), engine.new_games(rules, count, seed=seed)
    streams, found = new_streams(seed, count), []
    while not (over := engine.is_over(states)).all():
        rows = np.flatnonzero(~over)
        some, own = pick(states, rows), streams[rows]
        actions = np.asarray(agent.act(some.copy(), own), np.int64)
        streams[rows] = own
        found.append((rows, some, actions, engine.legal_masks(some).sum(axis=1)))
        engine.step(states, actions, rows=rows)
    games, positions, actions, choices = (np.concatenate(part) for part in zip(*found, strict=True))
    return Games(states, engine.win_shares(states), games, positions, actions, choices)


def mean(values: npt.ArrayLike) -> Row:
    """A mean with its 95 % interval, of independent values."""
    numbers = np.asarray(values, float)
    error = 1.96 * numbers.std(ddof=1) / np.sqrt(len(numbers))
    return {"mean": float(numbers.mean()), "error": float(error)}


def by_game(games: npt.NDArray[np.int64], values: Floats) -> Row:
    """The mean of several values a game, with its 95 % interval: games are independent."""
    count, total = np.bincount(games).astype(float), np.bincount(games, values)
    there = count > 0
    count, total = count[there], total[there]
    average = total.sum() / count.sum()
    error = np.sqrt(((total - average * count) ** 2).sum()) / count.sum()
    return {"mean": float(average), "error": float(1.96 * error)}


def lengths(played: Games) -> Row:
    """Rounds, turns and decisions of a game, and the share of each reason to end."""
    count = len(played.ends)
    moves = played.positions["phase"] == MOVE
    reasons = played.ends["reason"]
    rounds = played.ends["round"].astype(float)
    return {
        "rounds": mean(rounds),
        "rounds_range": [float(end) for end in np.quantile(rounds, [0.05, 0.95])],
        "turns": mean(np.bincount(played.games[moves], minlength=count)),
        "decisions": mean(np.bincount(played.games, minlength=count)),
        "reasons": {
            name: float(np.mean(reasons == number))
            for number, name in enumerate(REASON_NAMES)
            if number
        },
    }


def choices(played: Games, rules: Rules) -> Row:
    """Legal actions of a decision, by what it is about, and whole turns."""
    phases = played.positions["phase"]
    kinds = {"disc": DISC, "crown": CROWN_CHOICE, "place": PLACE, "move": MOVE}
    found = {
        name: float(played.choices[phases == phase].mean())
        for name, phase in kinds.items()
        if (phases == phase).any()
    }
    full = played.positions["placements_left"] == DICE[rules.players]
    begun = np.flatnonzero((phases == PLACE) & full)
    counts = whole_turns(played.positions[begun])
    single = np.isin(phases, (DISC, CROWN_CHOICE))
    tree = np.bincount(played.games[begun], np.log10(counts), len(played.ends))
    tree += np.bincount(played.games[single], np.log10(played.choices[single]), len(played.ends))
    rolls = len(chance_outcomes(DICE[rules.players]).probabilities)
    tree += np.bincount(played.games[begun], minlength=len(played.ends)) * np.log10(rolls)
    return {
        "tree": mean(tree),
        **found,
        "turn": by_game(played.games[begun], counts),
        "turn_median": float(np.median(counts)),
    }


def whole_turns(states: States) -> Floats:
    """How many whole turns there are in positions at the beginning of one: ``(N,)`` float64.

    That is the sets of paladins that can be played, each paladin to the court or a region, times
    the Emperor's moves.
    """
    rows, player = np.arange(len(states)), states["player"]
    reserves = states["reserves"][rows, player].astype(int)
    places = states["regions"].astype(int) + 1
    most = states["placements_left"].astype(int)
    ways = np.zeros((len(states), int(most.max(initial=0)) + 1))  # with so many paladins
    ways[:, 0] = 1
    for clan in range(CLANS):
        before, ways = ways, np.zeros_like(ways)
        for used in range(ways.shape[1]):
            sets = np.where(used <= reserves[:, clan], special.comb(places + used - 1, used), 0)
            ways[:, used:] += before[:, : ways.shape[1] - used] * sets[:, None]
    moves = states["discs_played"][rows, player]
    return np.asarray(ways[rows, most] * moves)


def seats(played: Games, players: int) -> list[Row]:
    """The share of the win by the place in the first round's opening order."""
    first = np.flatnonzero((played.positions["round"] == 1) & (played.positions["turn"] == 0))
    first = first[played.positions["phase"][first] == DISC]
    games, where = np.unique(played.games[first], return_index=True)
    order = played.positions["order"][first[where]][:, :players].astype(int)
    shares = np.take_along_axis(played.shares[games], order, axis=1)
    return [mean(shares[:, place]) for place in range(players)]


def places(played: Games, players: int) -> list[Row]:
    """The share of the win of who acts first, second ... in a round."""
    moves = np.flatnonzero(played.positions["phase"] == MOVE)
    some = played.positions[moves]
    shares = played.shares[played.games[moves], some["player"]]
    turn = some["turn"]
    return [
        by_game(played.games[moves[turn == place]], shares[turn == place])
        for place in range(players)
    ]


def discs(played: Games, players: int, random: np.random.Generator) -> list[Row]:
    """For each number of discs in hand: what each disc costs, and how often it is chosen."""
    weights = ValueWeights.of(shipped(players).weights)
    rows = np.flatnonzero(played.positions["phase"] == DISC)
    rows = np.sort(random.choice(rows, min(DISC_POSITIONS, len(rows)), replace=False))
    some = played.positions[rows]
    team = some["team"][np.arange(len(some)), some["player"]].astype(int)
    values = disc_values(some, weights)[np.arange(len(some)), :, team]
    loss = np.nanmax(values, axis=1)[:, None] - values
    hand = some["discs_in_hand"][np.arange(len(some)), some["player"]]
    in_hand = np.array([int(bits).bit_count() for bits in hand])
    chosen = played.actions[rows]
    found = []
    for left in range(2, DISCS + 1):
        there = in_hand == left
        row: Row = {"in_hand": left, "positions": int(there.sum()), "discs": []}
        for disc in range(DISCS):
            had = there & ~np.isnan(values[:, disc])
            row["discs"].append(
                {
                    "disc": disc + 1,
                    "loss": mean(loss[had, disc]) if had.sum() > 1 else None,
                    "chosen": float((chosen[had] == disc).mean()) if had.any() else None,
                }
            )
        found.append(row)
    return found


def leads(played: Games, players: int, random: np.random.Generator) -> Row:
    """What one castle and one clan more are worth, in shares of the win."""
    start = (played.positions["phase"] == DISC) & (played.positions["turn"] == 0)
    start = np.flatnonzero(start & (played.positions["round"] > 1))
    order = random.permutation(start)
    _, where = np.unique(played.games[order], return_index=True)
    rows = order[where]  # one position of each game
    some, teams = played.positions[rows], int(played.positions["teams"][0])
    team = random.integers(teams, size=len(rows))  # whose share it is
    castles = some["castles"][:, :teams].astype(float)
    holder = some["control"].astype(int)
    of_team = np.where(
        holder == NOBODY, -1, np.take_along_axis(some["team"].astype(int), holder % players, 1)
    )
    clans = np.stack([(of_team == k).sum(axis=1) for k in range(teams)], axis=1).astype(float)
    seats = played.shares[played.games[rows]]
    y = np.where(some["team"][:, :players] == team[:, None], seats, 0).sum(axis=1)
    own = np.arange(len(rows)), team

    def lead(numbers: Floats) -> Floats:
        others = numbers.copy()
        others[own] = -np.inf
        return numbers[own] - others.max(axis=1)

    x = np.stack([np.ones(len(rows)), lead(castles), lead(clans)], axis=1)
    inverse = np.linalg.inv(x.T @ x)
    weights = inverse @ x.T @ y
    residual = (y - x @ weights)[:, None] * x
    errors = 1.96 * np.sqrt(np.diag(inverse @ residual.T @ residual @ inverse))
    return {
        name: {"mean": float(weights[k]), "error": float(errors[k])}
        for k, name in ((1, "castle"), (2, "clan"))
    }


def figures(rules: Rules, spec: str, count: int, seed: int) -> Row:
    """All figures of one kind of game."""
    random, players = np.random.default_rng(seed), rules.players
    played = play(rules, spec, count, seed)
    return {
        "players": players,
        "crown_choice": rules.crown_choice,
        "agent": spec,
        "games": count,
        "seed": seed,
        "length": lengths(played),
        "choices": choices(played, rules),
        "seats": seats(played, players),
        "places": places(played, players),
        "discs": discs(played, players, random),
        "leads": leads(played, players, random),
        "machine": line(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--agent", default="value", help="plays all seats (%(default)s)")
    parser.add_argument("--games", type=int, default=1000, help="of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of games and choices (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args(argv)
    if args.games < 20:
        parser.error(f"--games must be at least 20, got {args.games}")
    rows = []
    for players in (2, 3, 4):
        for crown in CROWNS:
            row = figures(Rules(players, crown), args.agent, args.games, args.seed)
            rows.append(row)
            seat = ", ".join(f"{100 * part['mean']:.1f}" for part in row["seats"])
            rounds, turn = row["length"]["rounds"]["mean"], row["choices"]["turn"]["mean"]
            print(
                f"{players} players, crowns {crown}: {rounds:.1f} rounds, "
                f"{turn:.0f} whole turns, seats {seat} %",
                flush=True,
            )
    if args.json:
        write_json(args.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
