"""Perft: how many positions and how many ways there are after a few decisions.

The name is that of chess programs ("performance test"). A rule that is read differently changes
the counts, so they are a test for whoever writes the game anew: docs/perft.md defines them and has
those of twelve positions, `notation.perft` the command.

    >>> perft(ce.new_games(ce.Rules(), seed=3), 4)[4]
    Count(sequences=71680, positions=36160, ended=0)
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import chance
from carolus_env.engine.play import is_over, legal_actions, legal_masks, step
from carolus_env.engine.state import RAW, STATE, States, pick, single

BLOCK: Final = 1 << 16
"""Games that are copied at a time, before equal ones are merged."""

Ways = npt.NDArray[np.int64]


class Count(NamedTuple):
    """What is counted after some number of decisions.

    Attributes:
        sequences: of decisions and rolls that lead there. A roll is the multiset of its dice and
            counts once, however likely it is. A game that has ended is not continued.
        positions: the different positions that they lead to, the generator left aside.
        ended: the sequences whose last decision ended the game.
    """

    sequences: int
    positions: int
    ended: int


class Branch(NamedTuple):
    """One way to go on from a position.

    Attributes:
        event: ``{"action": number}``, or ``{"roll": faces}`` where dice are due.
        after: ``(1,)`` the game after it.
        beyond: the count of what follows.
    """

    event: dict[str, Any]
    after: States
    beyond: Count


def perft(state: np.void | States, depth: int) -> list[Count]:
    """Count positions and sequences after 0, 1, ... ``depth`` decisions.

    Dice that are due are rolled just before a decision, every multiset in turn, and not after the
    last one. A position is the record without its generator: what else the record holds decides
    how the game goes on or how it ended, and `notation.to_line` writes all of it.

    Args:
        state: a record ``states[i]`` or a batch of one; it does not change.
        depth: number of decisions. Memory holds every position of a depth, 229 bytes each.

    Returns:
        ``depth + 1`` counts; entry n is that after n decisions, and the first that of ``state``.

    Raises:
        ValueError: for a negative depth.
        OverflowError: with more than 2^62 sequences.
    """
    depth = operator.index(depth)
    if depth < 0:
        raise ValueError(f"depth must be 0 or more decisions, got {depth}")
    games = single(state)  # all that follow keep its generator, so it tells none apart
    ways = np.ones(1, np.int64)
    counts = [_count(games, ways)]
    for _ in range(depth):
        games, ways = _decided(*_rolled(games, ways))
        counts.append(_count(games, ways))
    return counts


def divide(state: np.void | States, depth: int) -> Iterator[Branch]:
    """The last count of ``perft(state, depth)`` by the first action, or by the roll that is due.

    The sequences of all branches add up to those of the position, and so do the ended ones. The
    positions need not, since several branches can lead to the same one.

    Raises:
        ValueError: for a depth below 1.
    """
    depth = operator.index(depth)
    if depth < 1:
        raise ValueError(f"depth must be 1 or more decisions, got {depth}")
    game = single(state)
    if dice := int(game["dice_due"][0]):
        ways, left = _each_roll(game, dice), depth
    else:
        ways, left = _each_action(game), depth - 1
    return (Branch(event, after, perft(after, left)[-1]) for event, after in ways)


def _each_roll(game: States, dice: int) -> Iterator[tuple[dict[str, Any], States]]:
    for faces in chance.chance_outcomes(dice).faces:
        after = game.copy()
        chance.apply_roll(after, faces)
        yield {"roll": faces.tolist()}, after


def _each_action(game: States) -> Iterator[tuple[dict[str, Any], States]]:
    for action in legal_actions(game).tolist():
        after = game.copy()
        step(after, np.array([action]), roll=False)
        yield {"action": action}, after


def _count(games: States, ways: Ways) -> Count:
    return Count(int(ways.sum()), len(games), int(ways[is_over(games)].sum()))


# ------------------------------------------------------------------------------------ one depth on
# A layer is its different games and, for each, the number of sequences that lead to it.


def _rolled(games: States, ways: Ways) -> tuple[States, Ways]:
    """The layer with every outcome of the dice that are due, up to a decision or the end."""
    while (waiting := np.flatnonzero(chance.roll_due(games))).size:  # the set-up rolls repeatedly
        done = np.flatnonzero(~chance.roll_due(games))
        layers = [(pick(games, done), ways[done])]
        for dice in np.unique(games["dice_due"][waiting]).tolist():
            faces = chance.chance_outcomes(dice).faces
            due = np.flatnonzero(games["dice_due"] == dice)
            for rows in _blocks(due, len(faces)):
                after = pick(games, np.repeat(rows, len(faces)))
                chance.apply_roll(after, np.tile(faces, (len(rows), 1)))
                layers.append(_merged(after, np.repeat(ways[rows], len(faces))))
        games, ways = _joined(layers)
    return games, ways


def _decided(games: States, ways: Ways) -> tuple[States, Ways]:
    """The layer after every legal action; games that are over have none."""
    layers = []
    masks = legal_masks(games)
    most = int(masks.sum(axis=1).max(initial=1))
    for rows in _blocks(np.arange(len(games)), most):
        nth, actions = np.nonzero(masks[rows])
        after = pick(games, rows[nth])
        step(after, actions, roll=False)
        layers.append(_merged(after, ways[rows[nth]]))
    return _joined(layers)


def _blocks(rows: npt.NDArray[np.int64], each: int) -> Iterator[npt.NDArray[np.int64]]:
    """Parts of ``rows``, of about `BLOCK` games when each row becomes ``each`` of them."""
    size = max(1, BLOCK // each)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _joined(layers: list[tuple[States, Ways]]) -> tuple[States, Ways]:
    if not layers:
        return np.zeros(0, STATE), np.zeros(0, np.int64)
    if len(layers) == 1:
        return layers[0]
    games = np.concatenate([games.view(RAW) for games, _ in layers]).view(STATE)
    return _merged(games, np.concatenate([ways for _, ways in layers]))


def _merged(games: States, ways: Ways) -> tuple[States, Ways]:
    """Each different game once, with the sequences of all its copies."""
    if ways.sum(dtype=np.float64) > 2.0**62:
        raise OverflowError("more than 2^62 sequences: take a smaller depth")
    _, first, copy_of = np.unique(games.view(RAW), return_index=True, return_inverse=True)
    total = np.zeros(len(first), np.int64)
    np.add.at(total, copy_of, ways)
    return pick(games, first), total
