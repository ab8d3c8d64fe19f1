"""Schedules: which agents meet, in which seats, how often, and when it is enough.

A *deal* is one set-up with fixed dice. Every pair of agents that meets plays every deal in every
seating, so neither luck nor seats favour anyone. A `Plan` numbers all games, deal by deal: when it
stops early, all pairs have had the same deals. Stop rules may be asked after every deal. They count
*deal scores*, an agent's mean score, 0 to 1, over the games of a deal: deals are independent, games
of one deal are not. *Normalised Elo* (nElo) is in standard deviations of a game.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import Rules
from carolus_env.system import options
from carolus_env.system.arrays import F64
from carolus_env.system.options import REQUIRED, option

SCHEDULES: Final = ("round_robin", "field")
"""Schedules of a tournament: every pair of agents; the first agent against each of the others."""
ALONE: Final = "alone"
"""A schedule that compares nobody: one agent sits at every seat, and every deal is played once."""
MOST_GAMES: Final = 10**8  # maximum number of games of a plan


class Fixtures(NamedTuple):
    """``G`` games to be played, as columns of whole numbers.

    ``meetings``, ``deals`` and ``seatings`` are ``(G,)``: the number of each game's pair of agents,
    of its deal, and of its seating; ``tables`` are ``(G, players)``: the agent at each seat.
    """

    meetings: npt.NDArray[np.int64]
    deals: npt.NDArray[np.int64]
    seatings: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]

    def checked(self, agents: int, players: int) -> Fixtures:
        """Return them as int64, or a ValueError for impossible numbers or other shapes."""
        tables, columns = seatings_array(self.tables, agents, players), []
        for name in self._fields[:3]:
            column = options.whole_numbers(name, getattr(self, name), tables.shape[:1])
            columns.append(column.astype(np.int64))
            if columns[-1].min(initial=0) < 0:
                raise ValueError(f"{name} must not be negative, got {columns[-1].min()}")
        return Fixtures._make([*columns, tables])

    @classmethod
    def of(cls, tables: npt.ArrayLike) -> Fixtures:
        """Return the games of these tables, each of a deal of its own."""
        seated = options.array("tables", tables)
        zeros = np.zeros(seated.shape[:1], np.int64)
        return cls(zeros, np.arange(zeros.size), zeros, seated)


def seatings_of(rules: Rules) -> npt.NDArray[np.int64]:
    """Return all seatings that compare two agents fairly, ``(S, players)``: 0 or 1 at each seat.

    2 players: both. 3 players: one agent against two of the other and the reverse, each in all
    three rotations. 4 players: each agent is a team of partners, on either pair of seats.
    """
    options.instance("rules", rules, Rules, "carolus_env.Rules")
    if rules.players == 3:
        return np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    teams = np.array([rules.team(seat) for seat in range(rules.players)])
    return np.stack([teams, 1 - teams])


def pairing_tables(rules: Rules, games: int) -> npt.NDArray[np.int64]:
    """Return ``(G, players)`` fair seatings of agents 0 and 1 for `play_games`.

    All occur equally often: ``games`` is rounded up to a multiple of 2, of 6 for three players.
    """
    rotation = seatings_of(rules)
    return np.tile(rotation, (deals_for(games, len(rotation)), 1))


def deals_for(games: int, seatings: int) -> int:
    """Return the fewest deals that give two agents this many games in that many seatings a deal."""
    return math.ceil(options.whole_number("games", games, 1, MOST_GAMES) / seatings)


@dataclass(frozen=True)
class Plan:
    """Everything that decides which games a tournament plays.

    Game ``n`` is of deal ``n // games_per_deal``: all pairs in turn, each in all its seatings.
    """

    rules: Rules = option(REQUIRED, "the rules of all games", kind=object)
    agents: tuple[str, ...] = option(REQUIRED, "the agents' names", kind=tuple)
    schedule: str = option("round_robin", "which agents meet", among=(*SCHEDULES, ALONE))
    deals: int = option(500, "number of deals; with a stop rule, at most", among=(1, MOST_GAMES))
    seed: int = option(0, "no two share a deal; all pairs play the same", among=(0, 2**64 - 1))
    until: float | None = option(None, "see `Tournament.standing`", kind=float, above=0)
    """Play until the 95 % interval of every rating, widened so that it holds at any time, is
    narrower than this, in Elo points."""
    test: SequentialTest | None = option(None, "whether agent 0 is stronger than 1", kind=object)

    def __post_init__(self) -> None:
        options.check_fields(self)
        agents, schedule = len(self.agents), self.schedule
        if (agents == 1) != (schedule == ALONE) or not agents:
            needed = "one agent" if schedule == ALONE else "two agents or more"
            raise ValueError(f"schedule {schedule} needs {needed}, got {agents}")
        if self.games_per_deal > MOST_GAMES:  # before they fill the memory
            raise ValueError(
                f"{schedule} of {agents} agents has {self.games_per_deal:,} games a deal, at most "
                f"{MOST_GAMES:,} are possible"
            )
        options.whole_number("deals", self.deals, 1, MOST_GAMES // self.games_per_deal)
        test = SequentialTest() if self.test is None else self.test
        options.instance("test", test, SequentialTest, "a SequentialTest")
        if self.until is not None and self.test is not None:
            raise ValueError("a plan has one stop rule, until or test, got both")

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of agents that meet, ascending."""
        if self.schedule == ALONE:
            return [(0, 0)]
        agents = range(len(self.agents))
        firsts = agents if self.schedule == "round_robin" else agents[:1]
        return [(i, j) for i in firsts for j in agents[i + 1 :]]

    @cached_property
    def seatings(self) -> npt.NDArray[np.int64]:
        """``(S, players)``: which agent of a pair sits at each seat, in each of its seatings."""
        if self.schedule == ALONE:
            return np.zeros((1, self.rules.players), np.int64)
        return seatings_of(self.rules)

    @cached_property
    def games_per_deal(self) -> int:
        """Number of games of one deal: all pairs in all seatings."""
        agents = len(self.agents)
        pairs = {"round_robin": math.comb(agents, 2), "field": agents - 1, ALONE: 1}
        return pairs[self.schedule] * len(self.seatings)

    @property
    def games(self) -> int:
        """Number of games in all deals."""
        return self.deals * self.games_per_deal

    def checkpoints(self) -> Iterator[int]:
        """Yield the numbers of deals at which the stop rule is asked; the last is `deals`.

        When a test is asked changes only how many deals are played, not its verdict; intervals take
        longer, and are asked for at growing distances.
        """
        least, part = (LEAST_DEALS, 16) if self.test else (50, 4) if self.until else (self.deals, 1)
        deals = 0
        while deals < self.deals:
            deals = min(deals + max(least, math.ceil(deals / part)), self.deals)
            yield deals

    def fixtures(self, start: int, stop: int) -> Fixtures:
        """Return games number ``start`` to ``stop - 1``."""
        deals, places = np.divmod(np.arange(start, stop), self.games_per_deal)
        meetings, seatings = np.divmod(places, len(self.seatings))
        tables = np.array(self.pairs)[meetings[:, None], self.seatings[seatings]]
        return Fixtures(meetings, deals, seatings, tables)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON."""
        return asdict(self) | {"rules": self.rules.to_dict(), "agents": list(self.agents)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` wrote; a ValueError names what is missing, unknown or impossible."""
        try:
            values = {field.name: data[field.name] for field in fields(cls)}
            values["rules"] = Rules.from_dict(values["rules"])
            test = values["test"]
            values["test"] = None if test is None else SequentialTest(**test)
            return cls(**values)
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is missing") from None
        except (TypeError, AttributeError) as error:
            raise ValueError(f"not the plan of a tournament ({error})") from None


def seatings_array(
    tables: npt.ArrayLike, agents: int, players: int | None = None
) -> npt.NDArray[np.int64]:
    """Return ``(G, players)`` int64, a copy: the agent at each seat of each game."""
    result = options.array("tables", tables)
    if result.dtype.kind not in "iu" or result.ndim != 2 or players not in (None, result.shape[1]):
        raise ValueError(
            f"tables must be whole numbers of shape (games, {players or 'players'}), "
            f"got shape {result.shape} and dtype {result.dtype}"
        )
    if result.size and not 0 <= result.min() <= result.max() < agents:
        raise ValueError(
            f"tables must name agents 0 to {agents - 1}, got {result.min()} to {result.max()}"
        )
    return np.array(result, np.int64, order="C")


# ------------------------------------------------------------------------------------ stop rules

STRONGER, NOT_STRONGER, UNDECIDED = "stronger", "not stronger", "undecided"  # H1, H0, neither
NELO: Final = 800 / math.log(10)  # normalised Elo in a standard deviation of a game
ERROR_RATE: Final = 0.05
"""Chance of accepting H1 where ``nElo = elo0``, and H0 where ``nElo = elo1``; that with which
intervals ever leave out the true value."""
MOST_ELO: Final = 2000
LEAST_DEALS: Final = 16  # of a test: the likelihood of a few says more than they do
BEST_DEALS: Final = 500  # at which `widening` is least, compared with any other choice
_TOLERANCE: Final = 1e-9


class Outcome(NamedTuple):
    """Outcome of a test on deal scores."""

    verdict: str  # STRONGER, NOT_STRONGER or UNDECIDED
    deals: int  # until a bound was reached; all, where none was
    ratio: float  # log-likelihood ratio after these deals, H1 over H0
    elo: float | None  # nElo of these deals, after an early stop on average too extreme


@dataclass(frozen=True)
class SequentialTest:
    """A test of H0 ``nElo <= elo0`` against H1 ``nElo >= elo1`` that stops by itself.

    It is the generalised sequential probability ratio test (Li, Liu and Ying, Sequential Analysis
    33, 2014). The likelihood is that of normal deal scores, maximised over their deviation under
    each hypothesis. Its error rates are asymptotic.
    """

    elo0: float = option(0.0, "nElo of H0, at most", among=(-MOST_ELO, MOST_ELO))
    elo1: float = option(20.0, "nElo of H1, at least", among=(-MOST_ELO, MOST_ELO))

    def __post_init__(self) -> None:
        options.check_fields(self)
        if not self.elo0 < self.elo1:
            raise ValueError(f"elo0 must be below elo1, got {self.elo0!r} and {self.elo1!r}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted (Wald, 1945)."""
        high = math.log((1 - ERROR_RATE) / ERROR_RATE)
        return -high, high

    def path(self, scores: npt.ArrayLike, games: int) -> F64:
        """Return the log-likelihood ratio, H1 over H0, after each deal, ``(..., D)``.

        ``scores`` are ``(..., D)`` deal scores, 0 to 1, each of as many ``games``.
        """
        z = np.asarray(scores, float) - 0.5
        if not (np.abs(z) <= 0.5 + _TOLERANCE).all():
            raise ValueError(
                f"deal scores must be from 0 to 1, got {z.min() + 0.5} to {z.max() + 0.5}"
            )
        deals = np.arange(1, z.shape[-1] + 1)
        mean = z.cumsum(axis=-1) / deals
        square = np.maximum((z * z).cumsum(axis=-1) / deals, _TOLERANCE)

        def likelihood(elo: float) -> F64:
            """Return the largest log-likelihood of a deal, for any deviation 1 / u."""
            t = elo * math.sqrt(games) / NELO
            u = (t * mean + np.sqrt(np.square(t * mean) + 4 * square)) / (2 * square)
            result: F64 = np.log(u) - square * u * u / 2 + t * mean * u - t * t / 2
            return result

        return deals * (likelihood(self.elo1) - likelihood(self.elo0))

    def outcome(self, scores: npt.ArrayLike, games: int) -> Outcome:
        """Return the outcome on the first agent's deal scores ``(D,)``, each of as many ``games``.

        The first deal, from `LEAST_DEALS` on, after which a bound is reached decides. Later deals
        do not change it, so it does not matter when, or how often, one asks.
        """
        path = self.path(scores, games)
        lower, upper = self.bounds
        beyond = (path <= lower) | (path >= upper)
        reached = np.flatnonzero(beyond & (np.arange(1, len(path) + 1) >= LEAST_DEALS))
        deals = int(reached[0]) + 1 if len(reached) else len(path)
        ratio = float(path[deals - 1]) if deals else 0.0
        verdict = STRONGER if ratio >= upper else NOT_STRONGER if ratio <= lower else UNDECIDED
        return Outcome(verdict, deals, ratio, normalised_elo(np.asarray(scores)[:deals], games))


def normalised_elo(scores: npt.ArrayLike, games: int) -> float | None:
    """Return the normalised Elo of deal scores ``(D,)``; None without two different ones.

    For two games a deal this is fishtest's definition (Van den Bergh, "Normalized Elo", 2020).
    """
    result = np.asarray(scores, float)
    deviation = float(result.std()) if len(result) else 0.0
    if deviation < _TOLERANCE:
        return None
    return NELO * (float(result.mean()) - 0.5) / (math.sqrt(games) * deviation)


def widening(deals: int) -> float:
    """Return the factor by which a normal interval must widen to hold at any time, in the limit.

    It is the half width of the asymptotic confidence sequence of Waudby-Smith et al. (Annals of
    Statistics 52, 2024, theorem 2.2), divided by that of the normal interval.
    """
    logarithm = -2 * math.log(ERROR_RATE)
    part = deals * (logarithm + math.log(logarithm) + 1) / BEST_DEALS  # n rho^2, equation (10)
    half = math.sqrt(2 * (part + 1) / part * math.log(math.sqrt(part + 1) / ERROR_RATE))
    return half / NormalDist().inv_cdf(1 - ERROR_RATE / 2)
