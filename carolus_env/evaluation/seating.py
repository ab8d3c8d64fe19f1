"""Schedules: which agents meet, in which seats, and how often.

Two agents are compared at a `Meeting`, in every seating that a fair comparison needs. A *deal* is
one set-up with fixed dice (`carolus_env.evaluation.games`). Every deal is played in every seating,
so neither luck nor seats favour anyone. A `Plan` numbers all games of a tournament, deal by deal:
when it stops early, all meetings have had the same deals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import Rules
from carolus_env.evaluation.sequential import SequentialTest
from carolus_env.system.options import array, instance, whole_number, whole_numbers

SCHEDULES: Final = ("round_robin", "field")
"""Schedules of a tournament, see `meetings`."""
ALONE: Final = "alone"
"""A schedule that compares nobody: one agent sits at every seat, and every deal is played once."""
MOST_GAMES: Final = 10**8
"""Maximum number of games of a plan."""


class Meeting(NamedTuple):
    """Two agents that are compared with each other, and all their seatings.

    Attributes:
        agents: the agents' numbers, ascending.
        seatings: ``(S, players)`` int64, the agent at each seat.
    """

    agents: tuple[int, int]
    seatings: npt.NDArray[np.int64]


class Fixtures(NamedTuple):
    """``G`` games to be played, as columns.

    Attributes:
        meetings: number of each game's meeting.
        deals: number of its deal.
        seatings: row of its meeting's seatings.
        tables: ``(G, players)``, the agent at each seat.
    """

    meetings: npt.NDArray[np.int64]
    deals: npt.NDArray[np.int64]
    seatings: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]

    def checked(self, agents: int, players: int) -> Fixtures:
        """Check them for games of ``players`` players between that many agents.

        Raises:
            ValueError: for an impossible number, or columns of other shapes.
        """
        tables = seatings_array(self.tables, agents, players)
        numbers = {}
        for name in ("meetings", "deals", "seatings"):
            result = whole_numbers(name, getattr(self, name), (len(tables),)).astype(np.int64)
            if result.min(initial=0) < 0:
                raise ValueError(f"{name} must not be negative, got {result.min()}")
            numbers[name] = result
        return Fixtures(**numbers, tables=tables)

    @classmethod
    def of(cls, tables: npt.ArrayLike) -> Fixtures:
        """Return the games of these tables, each of a deal of its own."""
        seated = array("tables", tables)
        count = len(seated) if seated.ndim else 0
        zeros = np.zeros(count, np.int64)
        return cls(zeros, np.arange(count), zeros, seated)


def pairing(rules: Rules, first: int = 0, second: int = 1) -> Meeting:
    """Return all seatings of two agents that compare them fairly.

    2 players: both seatings. 3 players: one against two of the other and the reverse, each in all
    three rotations. 4 players: each agent is a team of partners, on either pair of seats.
    """
    instance("rules", rules, Rules, "carolus_env.Rules")
    if rules.players == 3:
        rotation = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    else:
        teams = [rules.team(seat) for seat in range(rules.players)]
        rotation = [teams, [1 - team for team in teams]]
    return Meeting((first, second), np.array([first, second])[np.array(rotation)])


def meetings(schedule: str, rules: Rules, agents: int) -> list[Meeting]:
    """Return all meetings of a tournament.

    Args:
        schedule: ``round_robin`` (every pair of agents) or ``field`` (the first agent against each
            of the others); or `ALONE`.
        rules: number of players, and who are partners.
        agents: number of agents.

    Raises:
        ValueError: for an unknown schedule, too few agents, or `ALONE` with several agents.
    """
    if schedule == ALONE:
        if agents != 1:
            raise ValueError(f"alone is for one agent, got {agents}")
        return [Meeting((0, 0), np.zeros((1, rules.players), np.int64))]
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}")
    if agents < 2:
        raise ValueError(f"a pairing needs two agents, got {agents}")
    pairs = math.comb(agents, 2) if schedule == "round_robin" else agents - 1
    games = pairs * (6 if rules.players == 3 else 2)
    if games > MOST_GAMES:  # before they fill the memory
        raise ValueError(
            f"{schedule} of {agents} agents has {games:,} games a deal, at most {MOST_GAMES:,} "
            "are possible"
        )
    firsts = range(agents if schedule == "round_robin" else 1)
    return [pairing(rules, i, j) for i in firsts for j in range(i + 1, agents)]


def pairing_tables(rules: Rules, games: int) -> npt.NDArray[np.int64]:
    """Return the seatings of a `pairing` of agents 0 and 1, repeated, for `games.play_games`.

    Args:
        rules: number of players, and who are partners.
        games: requested number; rounded up to whole rotations (of 2, 6 or 2 games).

    Returns:
        ``(G, players)`` int64 with ``G >= games``.

    Raises:
        ValueError: for an impossible number of games.
    """
    rotation = pairing(rules).seatings
    return np.tile(rotation, (deals_for(games, len(rotation)), 1))


def deals_for(games: int, seatings: int) -> int:
    """Return the fewest deals that give this many games of a meeting with that many seatings."""
    return math.ceil(whole_number("games", games, 1, MOST_GAMES) / seatings)


# ------------------------------------------------------------------------------------ plans


def _next_until(deals: int) -> int:
    """Return the number of deals at which intervals are next checked: 50 or a quarter more.

    So the checks never dominate the running time.
    """
    return deals + max(50, math.ceil(deals / 4))


def _next_test(deals: int) -> int:
    """Return the number of deals at which a test is next asked: 16 or a sixteenth more.

    A test's verdict does not depend on when it is asked; only how many deals are played does.
    """
    return deals + max(16, math.ceil(deals / 16))


@dataclass(frozen=True)
class Plan:
    """Everything that decides which games a tournament plays.

    Game ``n`` is deal ``n // D`` with ``D`` games a deal: all meetings in turn, each in all of its
    seatings.

    Raises:
        ValueError: for impossible agents, schedule, deals, seed or stop rule.
    """

    rules: Rules
    agents: tuple[str, ...]
    schedule: str = "round_robin"
    deals: int = 500
    """Number of deals; with ``until`` or ``test``, at most this many."""
    seed: int = 0
    """0 to 2^64 - 1; no two seeds share a deal. Deals are the same in every meeting."""
    until: float | None = None
    """Play until the 95 % interval of every rating, widened so that it holds at any time, is
    narrower than this, in Elo points."""
    test: SequentialTest | None = None
    """Play until it knows whether agent 0 is stronger than agent 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", tuple(self.agents))
        whole_number("seed", self.seed, 0, 2**64 - 1)
        whole_number("deals", self.deals, 1, MOST_GAMES // self.games_per_deal)
        if self.until is not None and not 0 < self.until < math.inf:
            raise ValueError(f"until must be above 0 Elo points, got {self.until!r}")
        if self.test is not None and self.until is not None:
            raise ValueError("a plan has one stop rule, until or test, got both")

    @cached_property
    def meetings(self) -> list[Meeting]:
        """The meetings of agents, each in every seating; see `meetings`."""
        return meetings(self.schedule, self.rules, len(self.agents))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of agents that meet, ascending."""
        return [meeting.agents for meeting in self.meetings]

    @cached_property
    def games_per_deal(self) -> int:
        """Number of games of one deal: the seatings of all meetings."""
        return sum(len(meeting.seatings) for meeting in self.meetings)

    @property
    def games(self) -> int:
        """Number of games in all deals."""
        return self.deals * self.games_per_deal

    def checkpoints(self) -> Iterator[int]:
        """Yield the numbers of deals at which the stop rule is asked; the last is `deals`."""
        deals = 0
        while deals < self.deals:
            if self.test is not None:
                deals = _next_test(deals)
            else:
                deals = self.deals if self.until is None else _next_until(deals)
            deals = min(deals, self.deals)
            yield deals

    def fixtures(self, start: int, stop: int) -> Fixtures:
        """Return games number ``start`` to ``stop - 1``."""
        deals, places = np.divmod(np.arange(start, stop), self.games_per_deal)
        meetings, seatings, tables = self._deal
        return Fixtures(meetings[places], deals, seatings[places], tables[places])

    @cached_property
    def _deal(self) -> tuple[npt.NDArray[np.int64], ...]:
        """The games of a deal: meeting, seating, table."""
        counts = [len(meeting.seatings) for meeting in self.meetings]
        return (
            np.repeat(np.arange(len(counts)), counts),
            np.concatenate([np.arange(count) for count in counts]),
            np.concatenate([meeting.seatings for meeting in self.meetings]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON."""
        return {
            "rules": self.rules.to_dict(),
            "agents": list(self.agents),
            "schedule": self.schedule,
            "seed": self.seed,
            "deals": self.deals,
            "until": self.until,
            "test": self.test and asdict(self.test),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` wrote.

        Raises:
            ValueError: naming what is missing, unknown or impossible.
        """
        try:
            agents: Sequence[Any] = data["agents"]
            if not isinstance(agents, list) or not all(isinstance(a, str) for a in agents):
                raise ValueError(f"agents must be a list of texts, got {agents!r}")
            test = None if data["test"] is None else SequentialTest(**data["test"])
            return cls(
                Rules.from_dict(data["rules"]),
                tuple(agents),
                data["schedule"],
                data["deals"],
                data["seed"],
                data["until"],
                test,
            )
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is missing") from None
        except (TypeError, AttributeError) as error:
            raise ValueError(f"not the plan of a tournament ({error})") from None


def labels(names: Sequence[str]) -> list[str]:
    """Return the names of agents, numbered where one occurs more than once."""
    counts, numbers = Counter(names), Counter[str]()
    result = []
    for name in names:
        numbers[name] += 1
        result.append(f"{name} #{numbers[name]}" if counts[name] > 1 else name)
    return result


def seatings_array(
    tables: npt.ArrayLike, agents: int, players: int | None = None
) -> npt.NDArray[np.int64]:
    """Return ``(G, players)`` int64, a copy: the agent at each seat of each game."""
    result = array("tables", tables)
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
