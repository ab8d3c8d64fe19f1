"""The ladder: agents of stepped strength, with ratings that were measured once.

An agent that plays a few rungs near its own strength has a rating on a scale that everyone shares.
``docs/ladder.py`` plays the rungs against each other and writes their ratings to ``ladder.json``;
docs/ladder.md shows them. `planner` is the anchor: its rating is 0.

    >>> from carolus_env.arena import ladder
    >>> [rung.spec for rung in ladder.nearest(2, -700.0, 3)]
    >>> ladder.place(2, {"greedy": results}).elo
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.arena.columns import Results
from carolus_env.arena.seating import pairing
from carolus_env.engine.rules import Rules

Floats = npt.NDArray[np.float64]

FILE: Final = Path(__file__).with_name("ladder.json")
"""The measured ratings."""
FORMAT: Final = "carolus-ladder"
VERSION: Final = 1
"""Of the ladder: other rungs, or rungs that play differently, get another number."""
ANCHOR: Final = "planner"
"""The rung whose rating is 0."""

_LOW: Final = (
    "random",
    *(f"greedy:errors={errors}" for errors in (0.95, 0.88, 0.75, 0.5)),
    "greedy",
)
_ERRORS: Final = (0.64, 0.56, 0.48, 0.4, 0.33, 0.26, 0.2, 0.14, 0.09, 0.04)
_FEWER: Final = (0.62, 0.52, 0.42, 0.33, 0.24, 0.15, 0.06)


def _steps(errors: Iterable[float]) -> tuple[str, ...]:
    return (*_LOW, *(f"planner:errors={rate}" for rate in errors), ANCHOR)


RUNGS: Final = {
    2: (
        *_steps(_ERRORS),
        "mcts:sims=100",
        "value:2p,errors=0.06",
        "value:2p,errors=0.03",
        "value:2p",
        "search:2p,sims=100",
    ),
    3: (*_steps(_FEWER), "value:3p,errors=0.04", "value:3p", "search:3p,sims=100"),
    4: (
        *_steps(_ERRORS),
        "value:4p,errors=0.1",
        "value:4p,errors=0.05",
        "value:4p",
        "search:4p,sims=100",
    ),
}
"""The rungs by number of players, the weakest first. With three players, where nobody wins more
than a third of its games against two equals, errors cost less, and fewer steps do."""

_SEARCHERS: Final = ("mcts", "search")
_ELO: Final = 400 / np.log(10)  # points in a logit
_GAMES: Final = {players: len(pairing(Rules(players)).seatings) for players in RUNGS}  # of a deal


@dataclass(frozen=True)
class Rung:
    """An agent of the ladder, and its rating in Elo points above `ANCHOR`."""

    spec: str
    elo: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""

    @property
    def searches(self) -> bool:
        """Whether the agent searches, which takes it milliseconds a decision."""
        return searches(self.spec)


def searches(spec: str) -> bool:
    """Whether this agent searches (``mcts``, ``search``)."""
    return spec.partition(":")[0] in _SEARCHERS


@cache
def rungs(players: int) -> tuple[Rung, ...]:
    """All rungs for that number of players, the weakest first.

    Raises:
        ValueError: for another number of players than 2, 3 or 4.
    """
    if players not in RUNGS:
        raise ValueError(f"the ladder has {sorted(RUNGS)} players, got {players!r}")
    return tuple(Rung(**row) for row in json.loads(FILE.read_text())["players"][str(players)])


def version_hash() -> str:
    """Of the content: the same hash means the same ladder."""
    return str(json.loads(FILE.read_text())["hash"])


def nearest(players: int, elo: float, count: int = 1, *, searchers: bool = False) -> list[Rung]:
    """The rungs whose ratings are nearest to ``elo``, the nearest first.

    Args:
        players: 2, 3 or 4.
        elo: a rating.
        count: how many, at most.
        searchers: whether agents that search are among them.
    """
    fitting = [rung for rung in rungs(players) if searchers or not rung.searches]
    return sorted(fitting, key=lambda rung: abs(rung.elo - elo))[:count]


def guess(players: int, wins: Callable[[str], bool]) -> float:
    """About where an agent stands: between the rungs that it beats and those that beat it.

    Args:
        players: 2, 3 or 4.
        wins: whether it beats a rung, by spec; asked of some that do not search.
    """
    known = [rung for rung in rungs(players) if not rung.searches]
    below, above = -1, len(known)  # it beats the one, and loses to the other
    while above - below > 1:
        middle = (below + above) // 2
        if wins(known[middle].spec):
            below = middle
        else:
            above = middle
    return (known[max(below, 0)].elo + known[min(above, len(known) - 1)].elo) / 2


def to_json(found: Mapping[str, list[dict[str, Any]]], command: str) -> dict[str, Any]:
    """The content of `FILE`; its ``hash`` names this ladder in papers.

    Args:
        found: the rows of `Rung`, the weakest first, by number of players.
        command: that measured them.
    """
    text = json.dumps(found, sort_keys=True)
    return {
        "format": FORMAT,
        "version": VERSION,
        "hash": hashlib.sha256(text.encode()).hexdigest()[:12],
        "command": command,
        "players": found,
    }


# ------------------------------------------------------------------------------------ placing


@dataclass(frozen=True)
class Place:
    """An agent's rating on the ladder."""

    elo: float
    """Elo points above `ANCHOR`."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end. The interval covers the luck of the games, not that of the rungs' own ratings."""


def place(
    players: int,
    met: Mapping[str, Results],
    *,
    seed: int = 0,
    bootstraps: int = 1000,
) -> Place:
    """Rate an agent by its games against rungs, whose ratings stay as they are.

    The model, the prior (one drawn deal, shared by the rungs) and the interval (a Bayesian
    bootstrap over deals) are those of `carolus_env.arena.ratings`.

    Args:
        players: 2, 3 or 4.
        met: for each rung, by spec, the games against it; the agent is number 0 in their tables
            and sits in every seating equally often. Games of the same deal share luck.
        seed: of the bootstrap.
        bootstraps: number of refits.

    Raises:
        ValueError: when no rung was met, or one is unknown.
    """
    elos = _elos(players, met)
    numbers = np.unique(np.concatenate([results.deals for results in met.values()]))
    games, wins = np.zeros((2, len(numbers), len(met)))
    for k, results in enumerate(met.values()):
        deal = np.searchsorted(numbers, results.deals)
        share = (results.shares * (results.tables == 0)).sum(axis=1)
        games[:, k] = np.bincount(deal, minlength=len(numbers))
        wins[:, k] = np.bincount(deal, share, minlength=len(numbers))
    generator = np.random.default_rng(seed)
    weights = generator.standard_exponential((bootstraps, len(numbers)))
    virtual = generator.standard_gamma(0.5 / len(met), (2, bootstraps, len(met))) * _GAMES[players]
    samples = _fit(players, elos, weights @ wins + virtual[0], weights @ games + virtual.sum(0))
    low, high = np.quantile(samples, [0.025, 0.975])
    best = _most_likely(players, elos, wins.sum(axis=0), games.sum(axis=0))
    return Place(best, float(low), float(high))


def elo_of(players: int, met: Mapping[str, tuple[float, int]]) -> float:
    """The rating of `place`, from win rates alone.

    Args:
        players: 2, 3 or 4.
        met: for each rung, by spec, the win rate against it (`PairingResult.win_rate`) and the
            number of games.

    Raises:
        ValueError: when no rung was met, or one is unknown.
    """
    rates, games = np.array(list(met.values()), float).reshape(-1, 2).T
    return _most_likely(players, _elos(players, met), rates * games, games)


def _elos(players: int, specs: Iterable[str]) -> Floats:
    known = {rung.spec: rung.elo for rung in rungs(players)}
    found = list(specs)
    if not found or not set(found) <= set(known):
        unknown = [spec for spec in found if spec not in known]
        raise ValueError(
            f"no rung of the ladder for {players} players: {unknown[0]!r}"
            if unknown
            else "a place on the ladder needs games against a rung, got none"
        )
    return np.array([known[spec] for spec in found])


def _most_likely(players: int, elos: Floats, wins: Floats, games: Floats) -> float:
    drawn = _GAMES[players] / len(elos)
    return float(_fit(players, elos, wins + drawn / 2, games + drawn)[0])


def _fit(players: int, elos: Floats, wins: Floats, games: Floats) -> Floats:
    """The ratings whose expected wins equal the wins, which is where they are most likely.

    By bisection, since the expected wins grow with the rating.

    Args:
        players: 2, 3 or 4.
        elos: ``(R,)`` of the rungs.
        wins: ``(..., R)`` against each; ``games`` alike.

    Returns:
        ``(B,)``, one for each row.
    """
    wins, games = np.atleast_2d(wins), np.atleast_2d(games)
    low = np.full(len(wins), elos.min() - 6000.0)
    high = np.full(len(wins), elos.max() + 6000.0)
    total = wins.sum(axis=1)
    for _ in range(40):
        middle = (low + high) / 2
        expected = (games * win_rate(players, middle[:, None] - elos)).sum(axis=1)
        low, high = (
            np.where(expected < total, middle, low),
            np.where(expected < total, high, middle),
        )
    return (low + high) / 2


def win_rate(players: int, difference: Floats) -> Floats:
    """The expected win rate of an agent that is so many Elo points stronger, over all seatings."""
    seats: Sequence[tuple[int, int]] = [(1, 2), (2, 1)] if players == 3 else [(1, 1)]
    odds = np.exp(difference / _ELO)
    return np.mean([mine * odds / (mine * odds + theirs) for mine, theirs in seats], axis=0)
