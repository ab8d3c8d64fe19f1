"""What one rating cannot say: lotteries, alpha-rank and cycles of a table of win rates.

Pure functions on arrays. Nothing here knows how the table was measured, so intervals are the
caller's business: `carolus_env.arena.payoffs` calls these for every resample of the deals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ALPHA: Final = 100.0
"""Strength of selection in `alpha_rank`."""
POPULATION: Final = 50
"""Size of the population in `alpha_rank`."""

_TINY: Final = 1e-9  # weights and margins below this are rounding
_SLACK: Final = 1e-7  # by which a weight that was found may be missed in the next programme


class Cycle(NamedTuple):
    """Agents of which each beats the next, and the last the first.

    Attributes:
        agents: their numbers, the lowest first.
        rates: win rate of each against the next.
    """

    agents: tuple[int, ...]
    rates: tuple[float, ...]


# ------------------------------------------------------------------------------------ lotteries


def maximal_lottery(margins: npt.ArrayLike) -> Floats:
    """The maximal lottery: weights of the agents such that no agent beats the draw on average.

    An agent drawn with these weights has a margin of 0 or more, in the mean, against every agent
    (Kreweras 1965; Fishburn, Review of Economic Studies 51, 1984). It is the equilibrium of the
    zero-sum game in which both sides choose an agent. An agent that beats all others has weight
    1. Three that beat each other in a cycle share the weight; agents outside have none. Copies of
    an agent take no weight from others, unlike in a mean over opponents.

    Of several such lotteries this is the one whose least weight is greatest, then the second least
    and so on (leximin), which is unique. There are several only where margins are tied exactly.
    The linear programme is solved by SciPy's ``linprog`` (HiGHS).

    Args:
        margins: ``(A, A)``: how far the row's agent is ahead of the column's, for example its win
            rate less one half. The reverse has the opposite sign.

    Returns:
        ``(A,)``: 0 or more, sum 1.

    Raises:
        ValueError: when the margins are not finite, square, and of opposite signs.
        ImportError: without SciPy.
    """
    table = _margins(margins)
    agents = len(table)
    ahead = table + np.eye(agents) > _TINY * max(1.0, np.abs(table).max())
    if (best := ahead.all(axis=1)).any():  # usual, and without any programme
        return best.astype(np.float64)
    # Every feasible point is maximal, so any aim will do.
    weights, _ = _programme(table, np.zeros(agents), range(agents))
    return weights if _only_one(table, weights) else _evenest(table)


def _programme(margins: Floats, least: Floats, free: Iterable[int]) -> tuple[Floats, float]:
    """The maximal lottery with these least weights in which that of the ``free`` is greatest.

    Returns:
        The lottery, ``(A,)``, and the least weight of any of the free agents in it.
    """
    from scipy.optimize import linprog

    agents = len(margins)
    rows = np.eye(agents)[list(free)]
    found = linprog(
        np.append(np.zeros(agents), -1.0),
        A_ub=np.block([[margins, np.zeros((agents, 1))], [-rows, np.ones((len(rows), 1))]]),
        b_ub=np.zeros(agents + len(rows)),
        A_eq=np.append(np.ones(agents), 0.0)[None],
        b_eq=[1.0],
        bounds=[*((low, 1) for low in least), (0, 1)],
        method="highs",
    )
    if found.x is None:
        raise ArithmeticError(f"the linear programme was not solved: {found.message}")
    weights = np.where(found.x[:agents] > _TINY, found.x[:agents], 0.0)
    return weights / weights.sum(), float(found.x[agents])


def _only_one(margins: Floats, weights: Floats) -> bool:
    """Whether no other lottery is maximal.

    The weights of any other are, by complementary slackness, within the support of this one if
    all agents outside lose to it; and there they solve a linear system with this solution.
    """
    support = weights > _TINY
    scale = max(1.0, np.abs(margins).max())
    if ((margins @ weights)[~support] > -_TINY * scale).any():
        return False
    inside = margins[np.ix_(support, support)]
    rank = np.linalg.matrix_rank(inside, tol=_TINY * scale) if inside.any() else 0
    return bool(rank == support.sum() - 1)


def _evenest(margins: Floats) -> Floats:
    """The maximal lottery whose least weight is greatest, then the second least, and so on."""
    agents = len(margins)
    least, free = np.zeros(agents), list(range(agents))
    weights, level = _programme(margins, least, free)
    with contextlib.suppress(ArithmeticError):  # where rounding closes the set: what is found
        while free:
            least[free] = max(0.0, level - _SLACK)
            most = {k: _programme(margins, least, [k])[1] for k in free}
            stuck = min(most, key=lambda k: most[k])  # always one, however the solver rounds
            free = [k for k in free if k != stuck and most[k] > level + 10 * _SLACK]
            if free:
                weights, level = _programme(margins, least, free)
    return weights


def _margins(margins: npt.ArrayLike) -> Floats:
    table = np.asarray(margins, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not len(table):
        raise ValueError(f"margins must be a square table, got shape {table.shape}")
    if not np.isfinite(table).all():
        i, j = np.argwhere(~np.isfinite(table))[0].tolist()
        raise ValueError(f"margins must be finite, got {table[i, j]} for agents {i} and {j}")
    if (off := np.abs(table + table.T)).max() > 1e-6:
        i, j = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            "margins of two agents must have opposite signs, "
            f"got {table[i, j]} and {table[j, i]} for agents {i} and {j}"
        )
    return (table - table.T) / 2


# ------------------------------------------------------------------------------------ alpha-rank


def alpha_rank(
    payoffs: npt.ArrayLike, *, alpha: float = ALPHA, population: int = POPULATION
) -> Floats:
    """Alpha-rank: how much of the time evolution spends with each agent.

    A population consists of copies of one agent. Sometimes one member changes to another agent;
    members play games with each other in random groups, and copy members with higher payoffs,
    until the newcomer has taken over or is gone. The rank of an agent is the fraction of time
    that the population consists of it, in the long run (Omidshafiei et al., Scientific Reports 9,
    2019, the case of one population). In games of more than two seats the payoff of a member
    is its mean over the groups that can be drawn (Gokhale and Traulsen, PNAS 107, 2010).

    With two seats these are the figures of OpenSpiel's ``alpharank.compute`` with
    ``use_local_selection_model=False``. Logarithms keep the figures exact where selection is so
    strong that OpenSpiel finds several stationary distributions and raises an error.

    Args:
        payoffs: ``(..., A, A, n - 1)`` for games of ``n`` seats: ``[i, j, k - 1]`` is the payoff of
            one seat of agent ``i`` where ``k`` seats are ``i``'s and the others ``j``'s.
            ``[i, i, 0]`` is the payoff where all seats are ``i``'s; the rest of the diagonal is
            not read.
        alpha: strength of selection, 0 or more; 0: all agents have the same rank.
        population: its size, at least the number of seats and 2.

    Returns:
        ``(..., A)``: sums to 1.

    Raises:
        ValueError: for payoffs of another shape or not finite, or impossible parameters.
    """
    table = np.asarray(payoffs, dtype=np.float64)
    if table.ndim < 3 or table.shape[-3] != table.shape[-2] or not table.size:
        raise ValueError(f"payoffs must have shape (..., A, A, n - 1), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("payoffs must be finite: every agent must have met every other")
    seats = table.shape[-1] + 1
    if not 0 <= alpha < np.inf:
        raise ValueError(f"alpha must be 0 or more, got {alpha!r}")
    if population < max(2, seats):
        raise ValueError(f"population must be at least {max(2, seats)}, got {population!r}")
    return _stationary(_fixation(table, alpha, population))


def _fixation(payoffs: Floats, alpha: float, population: int) -> Floats:
    """Logarithm of the probability that one ``r`` takes over a population of ``s``.

    Returns:
        ``(..., A, A)``, ``[s, r]``.
    """
    agents, seats = payoffs.shape[-2], payoffs.shape[-1] + 1
    own = payoffs[..., np.arange(agents), np.arange(agents), 0]  # (..., A)
    groups = _groups(population, seats)  # (m - 1, n)
    # [r, s, p - 1]: fitness of r where p members are r's and the others s's.
    fitness = payoffs @ groups[:, :-1].T + own[..., :, None, None] * groups[:, -1]
    ahead = fitness - np.swapaxes(fitness, -3, -2)[..., ::-1]
    steps = np.cumsum(-alpha * ahead, axis=-1)
    start = np.zeros((*steps.shape[:-1], 1))
    chance = -np.logaddexp.reduce(np.concatenate([start, steps], axis=-1), axis=-1)
    found: Floats = np.swapaxes(chance, -2, -1)
    return found


def _groups(population: int, seats: int) -> Floats:
    """How many of a member's partners in a game are of its own kind.

    Returns:
        ``(m - 1, n)``: where ``p = 1 .. m - 1`` members are of its kind, the probability that
        ``0 .. n - 1`` of the other seats are (hypergeometric).
    """
    same = np.zeros((population - 1, seats))
    same[:, 0] = 1.0
    kind = np.arange(1, population)[:, None] - 1  # others of its kind
    for drawn in range(seats - 1):
        k = np.arange(seats)
        chance = np.clip((kind - k) / (population - 1 - drawn), 0, 1)
        same = same * (1 - chance) + np.roll(same * chance, 1, axis=1)
    return same


def _stationary(rates: Floats) -> Floats:
    """Stationary distribution of the chain with these logarithms of rates, ``(..., A, A)``.

    Grassmann, Taksar and Heyman's elimination (Operations Research 33, 1985): it only adds,
    multiplies and divides, so it works on logarithms of any size.
    """
    rates = rates.copy()
    agents = rates.shape[-1]
    with np.errstate(invalid="ignore"):
        for n in range(agents - 1, 0, -1):
            out = np.logaddexp.reduce(rates[..., n, :n], axis=-1)
            rates[..., :n, n] -= out[..., None]
            through = rates[..., :n, n, None] + rates[..., n, None, :n]
            rates[..., :n, :n] = np.logaddexp(rates[..., :n, :n], through)
    found = np.zeros(rates.shape[:-1])
    for n in range(1, agents):
        found[..., n] = np.logaddexp.reduce(found[..., :n] + rates[..., :n, n], axis=-1)
    found = np.exp(found - found.max(axis=-1, keepdims=True))
    shares: Floats = found / found.sum(axis=-1, keepdims=True)
    return shares


# ------------------------------------------------------------------------------------ cycles


def cycles(beats: npt.ArrayLike, rates: npt.ArrayLike, most: int = 10) -> list[Cycle]:
    """Agents that beat each other in a cycle; the shortest cycles, the strongest first.

    A cycle is as strong as its weakest link. Only the shortest ones are named, since longer ones
    mostly consist of them: where every pair is decided, any cycle contains one of three agents.

    Args:
        beats: ``(A, A)`` bools: the row's agent beats the column's. The caller decides what is
            significant.
        rates: ``(A, A)``: win rate of the row against the column; read where ``beats``.
        most: how many are named at most.

    Raises:
        ValueError: for tables of different shapes, or two agents that beat each other.
    """
    wins, rate = np.asarray(beats, dtype=bool), np.asarray(rates, dtype=np.float64)
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1] or rate.shape != wins.shape:
        raise ValueError(
            f"beats and rates must be square tables, got shapes {wins.shape} and {rate.shape}"
        )
    if (both := np.argwhere(wins & wins.T)).size:
        raise ValueError("agents {} and {} cannot beat each other".format(*both[0].tolist()))
    in_cycles = _in_cycles(wins)
    for length in range(3, len(in_cycles) + 1):
        found: list[Cycle] = []
        for start in in_cycles:
            later = [agent for agent in in_cycles if agent > start]
            _extend([start], later, length, wins, rate, found)
        if found:
            return sorted(found, key=lambda cycle: (-min(cycle.rates), cycle.agents))[:most]
    return []


def _in_cycles(beats: npt.NDArray[np.bool_]) -> list[int]:
    """The agents that are part of any cycle: those that can be reached from themselves."""
    reached = beats.copy()
    for k in range(len(beats)):
        reached |= reached[:, k, None] & reached[k]
    return [int(agent) for agent in np.flatnonzero(reached.diagonal())]


def _extend(
    path: list[int], left: list[int], length: int, beats: Any, rates: Floats, found: list[Cycle]
) -> None:
    """Add all cycles of a length that begin with this path."""
    if len(path) == length:
        if beats[path[-1], path[0]]:
            links = zip(path, path[1:] + path[:1], strict=True)
            found.append(Cycle(tuple(path), tuple(float(rates[i, j]) for i, j in links)))
        return
    for agent in left:
        if beats[path[-1], agent]:
            rest = [other for other in left if other != agent]
            _extend([*path, agent], rest, length, beats, rates, found)
