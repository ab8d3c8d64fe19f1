"""The arena: agents play many games side by side, and what they win is counted.

`play_games` plays any tables. A pairing compares two agents over all ways to seat them, and
`round_robin` plays every pairing of a list of agents.

The same seed gives the same games: game ``g`` rolls by seed ``seed + g``, and every seat of every
game has a random stream of its own, so neither the order of the games nor how many are played at
once changes a result.

    >>> from carolus_env import arena, bots
    >>> from carolus_env.rules import Rules
    >>> agents = [bots.make("greedy"), bots.make("random")]
    >>> [pairing] = arena.round_robin(agents, Rules(players=3), 300, seed=1)
    >>> pairing.win_rate, pairing.ci95
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, Checked
from carolus_env.rules import MAX_PLAYERS, PHASE_NAMES, REASON_NAMES, Rules
from carolus_env.state import Ints, States, pick
from carolus_env.streams import new_streams

SIDE_BY_SIDE: Final = 4092
"""Games in play at once; whole rotations of every number of players (a multiple of 2 and 6)."""

MAX_GAMES: Final = 10**8  # of a pairing; more than anybody waits for, and results fit in memory

_Z: Final = 1.959964  # normal quantile of a two-sided 95 %

Progress = Callable[[int], None]
"""Told how many games are finished, whenever some are."""


class ArenaError(RuntimeError):
    """An agent failed or broke the rules; the text names the agent and the reason."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while games were in play.

    Attributes:
        results: the games that count. Where games are played side by side, the short ones are
            finished first; so those in play at the moment are all left out, finished or not.
    """

    def __init__(self, results: Results) -> None:
        super().__init__()
        self.results = results


# ------------------------------------------------------------------------------------ games


@dataclass(frozen=True)
class Results:
    """What came out of ``G`` games between ``A`` agents, all with the same rules."""

    tables: npt.NDArray[np.int64]
    """``(G, players)``: index of the agent that sat at each seat."""
    returns: npt.NDArray[np.float64]
    """``(G, players)``: payoff of each seat (`engine.returns`)."""
    shares: npt.NDArray[np.float64]
    """``(G, players)``: each seat's part of the win; its team's, split evenly between partners.
    Rows sum to 1. When nobody has won (the game was cut off), every team's part is the same."""
    castles: npt.NDArray[np.uint8]
    """``(G, players)``: castles in play of each seat's team."""
    rounds: npt.NDArray[np.uint16]
    """``(G,)``: rounds begun."""
    reasons: npt.NDArray[np.uint8]
    """``(G,)``: why each game ended, an index of `rules.REASON_NAMES`."""
    decisions: npt.NDArray[np.int64]
    """``(A,)``: decisions that each agent took."""
    seconds: npt.NDArray[np.float64]
    """``(A,)``: time that each agent took for them."""


def play_games(
    tables: npt.ArrayLike,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Results:
    """Play games to their end, many at once.

    Args:
        tables: ``(G, players)`` whole numbers, which of ``agents`` sits at each seat of each game.
        agents: whoever plays; each answers all games that wait for it in one batch.
        rules: of all games.
        seed: 0 to 2^64 - 1; game ``g`` has seed ``seed + g``.
        progress: told how many games are finished.

    Raises:
        ArenaError: when an agent fails, or answers what is no legal action.
        Interrupted: on Ctrl-C, with the games that count.
        ValueError: for impossible tables or an impossible seed.
    """
    seating = _checked_tables(tables, len(agents), rules.players)
    if not hasattr(seed, "__index__") or not 0 <= int(seed) < 2**64:
        raise ValueError(f"seed must be a whole number from 0 to 2^64 - 1, got {seed!r}")
    seeds = np.uint64(seed) + np.arange(len(seating), dtype=np.uint64)

    def play(start: int, stop: int) -> Results:
        part = slice(start, stop)
        return _play_side_by_side(seating[part], agents, rules, seeds[part], start, progress)

    parts = [play(0, 0)]  # so that there is always something to join
    try:
        for start in range(0, len(seating), SIDE_BY_SIDE):
            parts.append(play(start, start + SIDE_BY_SIDE))
    except KeyboardInterrupt:
        raise Interrupted(_joined(parts)) from None
    return _joined(parts)


def _play_side_by_side(
    tables: npt.NDArray[np.int64],
    agents: Sequence[Agent],
    rules: Rules,
    seeds: npt.NDArray[np.uint64],
    played_before: int,
    progress: Progress | None,
) -> Results:
    games = len(tables)
    states = engine.new_games(rules, games, seed=seeds)
    streams = _seat_streams(seeds, rules.players)
    decisions, seconds = np.zeros(len(agents), np.int64), np.zeros(len(agents))
    in_play = np.arange(games)
    while len(in_play):
        seats = states["player"][in_play]
        deciding = tables[in_play, seats]
        actions = np.empty(len(in_play), np.int64)
        for index, agent in enumerate(agents):
            mine = np.flatnonzero(deciding == index)
            if not len(mine):
                continue
            rows = in_play[mine]
            generators = streams[rows, seats[mine]]  # copies, as the states are
            started = time.perf_counter()
            actions[mine] = _answer(agent, pick(states, rows), generators)
            seconds[index] += time.perf_counter() - started
            decisions[index] += len(mine)
            streams[rows, seats[mine]] = generators
        try:
            engine.step(states, actions, rows=in_play)
        except engine.IllegalActionError as error:
            culprit = agents[tables[error.game, error.player]].name
            phase = PHASE_NAMES[int(states["phase"][error.game])]
            raise ArenaError(
                f"agent {culprit!r} answered action {error.action} as player {error.player} "
                f"in phase {phase} of the game with seed {seeds[error.game]}; "
                f"legal are {error.legal}"
            ) from error
        still = in_play[~engine.is_over(states)[in_play]]
        if progress is not None and len(still) < len(in_play):
            progress(played_before + games - len(still))
        in_play = still

    team = states["team"][:, : rules.players].astype(np.int64)
    return Results(
        tables=tables,
        returns=engine.returns(states)[:, : rules.players],
        shares=_shares(states["winners"], team, rules),
        castles=np.take_along_axis(states["castles"], team, axis=1),
        rounds=states["round"].copy(),
        reasons=states["reason"].copy(),
        decisions=decisions,
        seconds=seconds,
    )


def _answer(agent: Agent, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
    """The agent's actions, or an `ArenaError`; whether they are legal is for the engine to say."""
    # Strangers' code comes checked, action by action; here that would be done twice.
    player = agent.agent if isinstance(agent, Checked) else agent
    try:
        answer = np.asarray(player.act(states, generators))
    except Exception as error:
        named, text = f"agent {agent.name!r}", str(error)
        if text.startswith(named):
            raise ArenaError(text) from error
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise ArenaError(f"{named} failed with {reason}") from error
    if answer.dtype.kind not in "iu" or answer.shape != states.shape:
        raise ArenaError(
            f"agent {agent.name!r} must answer one whole number a game, shape {states.shape}, "
            f"got shape {answer.shape} and dtype {answer.dtype}"
        )
    return answer


def _warm_up(agents: Sequence[Agent], rules: Rules) -> None:
    """One decision of each agent, so that compiling and loading are not counted as thinking."""
    for agent in agents:
        _answer(agent, engine.new_games(rules, 1, seed=0), new_streams(0, 1))


def _seat_streams(seeds: npt.NDArray[np.uint64], players: int) -> npt.NDArray[np.uint64]:
    """``(G, players)`` generators: one for each seat of each game, whoever sits there."""
    seats = np.arange(players, dtype=np.uint64)
    numbers: npt.NDArray[np.uint64] = seeds[:, None] * np.uint64(MAX_PLAYERS) + seats
    return new_streams(numbers.ravel(), numbers.size).reshape(numbers.shape)


def _shares(
    winners: npt.NDArray[np.uint8], team: npt.NDArray[np.int64], rules: Rules
) -> npt.NDArray[np.float64]:
    won = (winners[:, None] >> team & 1).astype(np.float64)
    won[winners == 0] = 1.0
    return won / won.sum(axis=1, keepdims=True)


def _joined(parts: Sequence[Results]) -> Results:
    def rows(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    return Results(
        tables=rows("tables"),
        returns=rows("returns"),
        shares=rows("shares"),
        castles=rows("castles"),
        rounds=rows("rounds"),
        reasons=rows("reasons"),
        decisions=np.sum([part.decisions for part in parts], axis=0),
        seconds=np.sum([part.seconds for part in parts], axis=0),
    )


def _checked_tables(tables: npt.ArrayLike, agents: int, players: int) -> npt.NDArray[np.int64]:
    given = np.asarray(tables)
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != players:
        raise ValueError(
            f"tables must be whole numbers of shape (games, {players}), "
            f"got shape {given.shape} and dtype {given.dtype}"
        )
    if given.size and not 0 <= given.min() <= given.max() < agents:
        raise ValueError(
            f"tables must name agents 0 to {agents - 1}, got {given.min()} to {given.max()}"
        )
    return given.astype(np.int64)


# ------------------------------------------------------------------------------------ pairings


def pairing_tables(rules: Rules, games: int) -> npt.NDArray[np.int64]:
    """Seat agents 0 and 1 in every way that compares them fairly, each equally often.

    2 players: both seatings. 3 players: 0 against two of 1 and 1 against two of 0, each in all
    three rotations. 4 players: each agent is a team of partners, on either pair of seats.

    Args:
        rules: number of players, and who are partners.
        games: wanted; rounded up to whole rotations (of 2, 6 or 2 games).

    Returns:
        ``(G, players)`` int64 with ``G >= games``.

    Raises:
        ValueError: for an impossible number of games.
    """
    if not hasattr(games, "__index__") or not 1 <= games <= MAX_GAMES:
        raise ValueError(f"games must be a whole number from 1 to {MAX_GAMES:,}, got {games!r}")
    if rules.players == 3:
        rotation = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    else:
        teams = [rules.team(seat) for seat in range(rules.players)]
        rotation = [teams, [1 - team for team in teams]]
    return np.tile(np.array(rotation, np.int64), (math.ceil(games / len(rotation)), 1))


@dataclass(frozen=True)
class PairingResult:
    """How two agents did against each other; pairs of values are in the order of ``agents``."""

    agents: tuple[str, str]
    games: int
    wins: tuple[int, int]
    """Games that seats of this agent alone have won."""
    draws: int
    """Games whose win both agents share, and games that were cut off."""
    win_rate: tuple[float, float]
    """Mean part of the win, see `pairing_result`: 0.5 each between equals, 1 for all wins."""
    ci95: tuple[tuple[float, float], tuple[float, float]]
    """95 % interval (low, high) of each win rate."""
    mean_rounds: float
    mean_castles: tuple[float, float]
    """Castles in play of the agent's team at the end; the mean, where it had two seats alone."""
    ends: dict[str, int]
    """Games by why they ended (`rules.REASON_NAMES`)."""
    decisions: tuple[int, int]
    seconds: tuple[float, float]
    """Time that each agent took for its decisions."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        return asdict(self)


def pairing_result(agents: tuple[str, str], results: Results) -> PairingResult:
    """Count a pairing's games (`pairing_tables`, agents 0 and 1).

    An agent's part of a game's win is what its seats hold of it: all of it when only its seats
    (or its team) won, half when two tied seats are of both agents. A game that was cut off is
    held by every team alike. The win rate is the mean of that part over all games. Between
    equals it is 0.5 also with three players, where an agent sits alone in half of the games
    (1/3 of the win is to be expected) and on two seats in the other half (2/3). An agent whose
    seats always win has 1.0.

    Raises:
        ValueError: when there is no game to count.
    """
    games = len(results.tables)
    if games == 0:
        raise ValueError(f"no game of {agents[0]!r} and {agents[1]!r} to count")
    parts = np.stack([(results.shares * (results.tables == k)).sum(axis=1) for k in (0, 1)])
    wins = (parts > 1 - 1e-9).sum(axis=1)
    low, high = mean_interval(parts[0])
    rate = float(parts[0].mean())
    castles = [
        float(np.average(results.castles, weights=results.tables == k, axis=1).mean())
        for k in (0, 1)
    ]
    return PairingResult(
        agents=agents,
        games=games,
        wins=(int(wins[0]), int(wins[1])),
        draws=games - int(wins.sum()),
        win_rate=(rate, 1 - rate),
        ci95=((low, high), (1 - high, 1 - low)),
        mean_rounds=float(results.rounds.mean()),
        mean_castles=(castles[0], castles[1]),
        ends={
            str(REASON_NAMES[reason]): count
            for reason, count in enumerate(np.bincount(results.reasons).tolist())
            if count
        },
        decisions=(int(results.decisions[0]), int(results.decisions[1])),
        seconds=(float(results.seconds[0]), float(results.seconds[1])),
    )


def mean_interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval (low, high) for the mean of independent values from 0 to 1.

    Wilson's score interval (JASA 22, 1927): for zeros and ones alone it is exactly that. It stays
    within 0 and 1 and has a width at 100 % wins too, where the usual mean +- 1.96 s / sqrt(n)
    has none. Values in between spread less than zeros and ones of the same mean, so they count
    as more: as ``n / c`` values, c being the variance by that of zeros and ones (Kish's design
    effect, as in Korn and Graubard, Survey Methodology 24, 1998). For c alone a zero and a one
    are added, which keeps some width when all values are the same.

    Seats and kinds of table are balanced, which makes the mean of a pairing a little more exact
    than independent values would; the interval leaves that aside and is at most some 6 % too
    wide for it (three players, equals).
    """
    n = len(values)
    mean = float(np.clip(values.mean(), 0, 1))
    padded = np.concatenate([values, [0.0, 1.0]])
    centre = padded.mean()
    c = float(np.square(padded).mean() - centre**2) / float(centre * (1 - centre))
    weight = _Z**2 * min(c, 1.0) / n
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight**2 / 4) / (1 + weight)
    # Rounding may miss the mean by a hair where an end coincides with it (0 %, 100 %).
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def round_robin(
    agents: Sequence[Agent],
    rules: Rules,
    games: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Iterator[PairingResult]:
    """Every agent against every other, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Each pairing is played with the same seeds, so its result does not depend on who else is there.

    Args:
        agents: two or more; the same one twice is allowed.
        rules: of all games.
        games: of each pairing; rounded up as in `pairing_tables`.
        seed: as in `play_games`.
        progress: told how many games are finished, of all pairings together.

    Yields:
        Each pairing when it is done; on Ctrl-C the one in play with those games that count.

    Raises:
        ArenaError, Interrupted: as `play_games`, when the next pairing is asked for.
        ValueError: for fewer than two agents, or an impossible number of games or seed.
    """
    if len(agents) < 2:
        raise ValueError(f"a pairing needs two agents, got {len(agents)}")
    tables = pairing_tables(rules, games)
    _warm_up(agents, rules)
    for k, (first, second) in enumerate(itertools.combinations(agents, 2)):
        names, before = (first.name, second.name), k * len(tables)

        def report(done: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done)

        try:
            results = play_games(tables, (first, second), rules, seed=seed, progress=report)
        except Interrupted as stop:
            if len(stop.results.tables):
                yield pairing_result(names, stop.results)
            raise
        yield pairing_result(names, results)
