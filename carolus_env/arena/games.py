"""Games side by side: whoever is to decide is asked, what is decided is played, in lockstep.

A game depends on the seed, its deal, its seating and its agents; neither on how many games are
played at once nor on their order. A *deal* is the territories, the first player and, for each
seat, what every roll of that seat will show, whatever anybody plays. So games of one deal differ
in nothing but who sits where, and luck that is the dice's alone cancels.

Every seat of every game has a random stream of its own for the agent there. The states that agents
are shown are copies; the generator in them comes from that stream and says nothing about the dice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.arena import lockstep
from carolus_env.bots import Agent, Checked
from carolus_env.engine.rules import DISCS, MAX_PLAYERS, PHASE_NAMES, Rules
from carolus_env.engine.state import STATE, Ints, States
from carolus_env.engine.streams import branches, new_streams, seed_generators
from carolus_env.records import Record, make_record

SIDE_BY_SIDE: Final = 4096
"""Most games in play at once."""

Progress = Callable[[int], None]
"""Told how many games are finished, whenever some are."""


class ArenaError(RuntimeError):
    """An agent failed or broke the rules; the text names the agent and the reason."""


@dataclass(frozen=True)
class Results:
    """What came out of ``G`` games with the same rules; row ``g`` of every array is one game."""

    tables: npt.NDArray[np.int64]
    """``(G, players)``: index of the agent that sat at each seat."""
    deals: npt.NDArray[np.int64]
    """``(G,)``: number of the deal."""
    seatings: npt.NDArray[np.int64]
    """``(G,)``: number of the seating among those of its deal."""
    returns: npt.NDArray[np.float64]
    """``(G, players)``: payoff of each seat (`engine.returns`)."""
    shares: npt.NDArray[np.float64]
    """``(G, players)``: each seat's part of the win; its team's, split evenly between partners.
    Rows sum to 1. When nobody has won (the game was cut off), every team's part is the same."""
    castles: npt.NDArray[np.uint8]
    """``(G, players)``: castles in play of each seat's team, at the end."""
    rounds: npt.NDArray[np.uint32]
    """``(G,)``: rounds begun."""
    reasons: npt.NDArray[np.uint8]
    """``(G,)``: why each game ended, an index of `rules.REASON_NAMES`."""
    lead_changes: npt.NDArray[np.int32]
    """``(G,)``: how often another team than the last one to lead had the most castles alone."""
    discs: npt.NDArray[np.int32]
    """``(G, players, 5)``: how often each seat played disc 1 to 5."""
    to_court: npt.NDArray[np.int32]
    """``(G, players)``: paladins that each seat played to its court."""
    to_regions: npt.NDArray[np.int32]
    """``(G, players)``: paladins that each seat played to regions."""
    decisions: npt.NDArray[np.int32]
    """``(G, players)``: decisions of each seat."""
    seconds: npt.NDArray[np.float64]
    """``(G, players)``: time that they took, each decision its part of a batch's; NaN: unknown."""

    def __len__(self) -> int:
        return len(self.tables)

    def rows(self, rows: Ints | npt.NDArray[np.bool_] | slice) -> Results:
        """Some of the games."""
        return Results(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @staticmethod
    def joined(parts: Sequence[Results]) -> Results:
        """The games of several results of the same number of players, one or more."""

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        return Results(**{f.name: column(f.name) for f in fields(Results)})


def play_games(
    tables: npt.ArrayLike,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    deals: npt.ArrayLike | None = None,
    seatings: npt.ArrayLike | None = None,
    time_limit: float | None = None,
    actions: list[npt.NDArray[np.uint8]] | None = None,
    progress: Progress | None = None,
) -> Results:
    """Play games to their end, many at once.

    Args:
        tables: ``(G, players)`` whole numbers, which of ``agents`` sits at each seat of each game.
        agents: whoever plays; each answers all games that wait for it in one batch.
        rules: of all games.
        seed: 0 to 2^64 - 1; deal ``d`` has seed ``seed + d``.
        deals: ``(G,)`` whole numbers, the deal of each game; None: game ``g`` is of deal ``g``.
        seatings: ``(G,)`` whole numbers that tell games of one deal apart, for the agents' own
            random streams; None: all 0.
        time_limit: seconds that an agent may take for a decision, on average over those of one
            call; None: as long as it likes.
        actions: a list to which the actions of each game are appended, ``(K,)`` uint8 each.
        progress: told how many games are finished.

    Raises:
        ArenaError: when an agent fails, answers what is no legal action, or takes too long.
        ValueError: for impossible tables, deals, seatings or an impossible seed.
    """
    seating = _checked_tables(tables, len(agents), rules.players)
    games = len(seating)
    if not hasattr(seed, "__index__") or not 0 <= int(seed) < 2**64:
        raise ValueError(f"seed must be a whole number from 0 to 2^64 - 1, got {seed!r}")
    numbers = np.arange(games) if deals is None else _checked_numbers(deals, "deals", games)
    turns_at = np.zeros(games, np.int64)
    if seatings is not None:
        turns_at = _checked_numbers(seatings, "seatings", games)
    parts = []
    for start in range(0, max(games, 1), SIDE_BY_SIDE):
        part = slice(start, start + SIDE_BY_SIDE)
        played = _SideBySide(
            seating[part], numbers[part], turns_at[part], agents, rules, int(seed), time_limit
        )
        log = None if actions is None else _ActionLog(actions)
        parts.append(played.play(log, progress, start))
    return Results.joined(parts)


def game_record(rules: Rules, seed: int, deal: int, actions: npt.NDArray[np.uint8]) -> Record:
    """The record of a game that `play_games` played (`carolus_env.records`).

    Args:
        rules, seed: as they were played with.
        deal: of the game.
        actions: of the game, as `play_games` gives them.
    """
    seeds = _deal_seeds(seed, np.array([deal]))
    start = engine.new_games(rules, 1, seed=seeds, roll=False)
    dice = _dice(seed_generators(seeds, 1), rules.players)[0]
    return make_record(start, actions.tolist(), dice=dice)


# ------------------------------------------------------------------------------------ lockstep


class _SideBySide:
    """Games in play together, and the arrays that the kernels work on."""

    def __init__(
        self,
        tables: npt.NDArray[np.int64],
        deals: npt.NDArray[np.int64],
        seatings: npt.NDArray[np.int64],
        agents: Sequence[Agent],
        rules: Rules,
        seed: int,
        time_limit: float | None,
    ) -> None:
        games, players = tables.shape
        self.tables, self.deals, self.seatings = tables, deals, seatings
        self.agents, self.rules, self.time_limit = agents, rules, time_limit
        seeds = _deal_seeds(seed, deals)
        self.states = engine.new_games(rules, games, seed=seeds, roll=False)
        roots = seed_generators(seeds, games)
        self.dice = _dice(roots, players)
        # numbers 0 to 3 are the seats' dice
        numbers = MAX_PLAYERS * (1 + seatings[:, None]) + np.arange(players)
        self.streams = branches(roots[:, None], numbers)
        self.counts = np.zeros((games, players, lockstep.COUNTS), np.int32)
        self.leads = np.zeros((games, 2), np.int32)
        self.seconds = np.zeros((games, players))

    def play(self, log: _ActionLog | None, progress: Progress | None, before: int) -> Results:
        """Play all games to their end; ``before`` games are finished already."""
        games = len(self.tables)
        fixed: list[Any] = [self.states, self.tables, self.streams, self.dice]
        fixed += [self.counts, self.leads, self.seconds]
        in_play, asked = np.arange(games), np.empty(games, np.int64)
        drawn, actions = np.empty(games, np.uint64), np.empty(games, np.int64)
        bounds = np.zeros(len(self.agents) + 2, np.int64)
        costs = np.zeros(len(self.agents))  # seconds for a decision of this step
        shown = np.empty(games, STATE)
        lockstep.begin(*[*fixed, in_play, asked, drawn, bounds, shown])
        left = games
        while left:
            self._ask(bounds.tolist(), shown, drawn, actions, costs)
            if log is not None:
                log.note(asked, actions)
            shown = np.empty(left, STATE)  # an agent may have kept what it was shown
            told = [costs, actions, in_play, asked, drawn, bounds, shown]
            wrong, still = lockstep.step(*[*fixed, *told])
            if wrong >= 0:
                raise self._refusal(int(asked[wrong]), int(actions[wrong]))
            if still < left:
                left = still
                in_play, asked, drawn = in_play[:left], asked[:left], drawn[:left]
                actions, shown = actions[:left], shown[:left]
                if progress is not None:
                    progress(before + games - left)
        if log is not None:
            log.close(games)
        return self._results()

    def _ask(
        self,
        bounds: list[int],
        shown: States,
        drawn: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        costs: npt.NDArray[np.float64],
    ) -> None:
        """Every agent answers its run of the games shown, into ``actions``."""
        for k, agent in enumerate(self.agents):
            mine = slice(bounds[k], bounds[k + 1])
            if mine.start == mine.stop:
                continue
            started = time.perf_counter()
            actions[mine] = answer(agent, shown[mine], drawn[mine])
            costs[k] = (time.perf_counter() - started) / (mine.stop - mine.start)
            if self.time_limit is not None and costs[k] > self.time_limit:
                raise ArenaError(
                    f"agent {agent.name!r} took {costs[k]:.3g} s for a decision, "
                    f"{self.time_limit:g} s are allowed"
                )

    def _refusal(self, game: int, action: int) -> ArenaError:
        state = self.states[game]
        seat = int(state["player"])
        return ArenaError(
            f"agent {self.agents[self.tables[game, seat]].name!r} answered action {action} "
            f"as player {seat} in phase {PHASE_NAMES[int(state['phase'])]} "
            f"of deal {self.deals[game]}, seating {self.seatings[game]}; "
            f"legal are {engine.legal_actions(state).tolist()}"
        )

    def _results(self) -> Results:
        states, players = self.states, self.rules.players
        team = states["team"][:, :players].astype(np.int64)
        return Results(
            tables=self.tables,
            deals=self.deals,
            seatings=self.seatings,
            returns=engine.returns(states)[:, :players],
            shares=_shares(states["winners"], team),
            castles=np.take_along_axis(states["castles"], team, axis=1),
            rounds=states["round"].copy(),
            reasons=states["reason"].copy(),
            lead_changes=self.leads[:, 1].copy(),
            discs=self.counts[:, :, :DISCS].copy(),
            to_court=self.counts[:, :, lockstep.TO_COURT].copy(),
            to_regions=self.counts[:, :, lockstep.TO_REGIONS].copy(),
            decisions=self.counts[:, :, lockstep.DECISIONS].copy(),
            seconds=self.seconds,
        )


class _ActionLog:
    """Sorts what was played step by step into one list of actions a game."""

    def __init__(self, actions: list[npt.NDArray[np.uint8]]) -> None:
        self.actions = actions
        self.steps: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]] = []

    def note(self, games: npt.NDArray[np.int64], actions: npt.NDArray[np.int64]) -> None:
        self.steps.append((games.copy(), actions.astype(np.uint8)))

    def close(self, games: int) -> None:
        if not games:
            return
        played, actions = (np.concatenate(column) for column in zip(*self.steps, strict=True))
        order = np.argsort(played, kind="stable")
        ends = np.cumsum(np.bincount(played, minlength=games))[:-1]
        self.actions += np.split(actions[order], ends)


def answer(agent: Agent, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
    """The agent's actions; whether they are legal is for whoever plays them to say.

    Raises:
        ArenaError: when it fails, or answers something else than one whole number a game.
    """
    # Strangers' code comes checked, action by action; here that would be done twice.
    player = agent.agent if isinstance(agent, Checked) else agent
    try:
        given = np.asarray(player.act(states, generators))
    except Exception as error:
        named, text = f"agent {agent.name!r}", str(error)
        if text.startswith(named):
            raise ArenaError(text) from error
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise ArenaError(f"{named} failed with {reason}") from error
    if given.dtype.kind not in "iu" or given.shape != states.shape:
        raise ArenaError(
            f"agent {agent.name!r} must answer one whole number a game, shape {states.shape}, "
            f"got shape {given.shape} and dtype {given.dtype}"
        )
    return given


def warm_up(agents: Sequence[Agent], rules: Rules) -> npt.NDArray[np.float64]:
    """Some decisions of each agent, so that compiling and loading are not counted as thinking.

    Returns:
        ``(A,)`` seconds that a decision takes about.
    """
    positions, seconds = _positions(rules), np.zeros(len(agents))
    for k, agent in enumerate(agents):
        for _ in range(2):  # the second time it is loaded
            started = time.perf_counter()
            answer(agent, positions.copy(), new_streams(0, len(positions)))
            seconds[k] = (time.perf_counter() - started) / len(positions)
    return seconds


def _positions(rules: Rules) -> States:
    """A game in each phase that one random game comes to."""
    seen: dict[int, States] = {}
    game, stream = engine.new_games(rules, 1, seed=0), new_streams(0, 1)
    while not engine.is_over(game)[0] and len(seen) < 4:
        seen.setdefault(int(game["phase"][0]), game.copy())
        engine.step(game, engine.random_actions(game, stream))
    return np.concatenate(list(seen.values()))


def _deal_seeds(seed: int, deals: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.uint64(seed) + deals.astype(np.uint64)  # wraps around


def _dice(roots: npt.NDArray[np.uint64], players: int) -> npt.NDArray[np.uint64]:
    """``(G, players)``: the generator that each seat rolls by."""
    return branches(roots[:, None], np.arange(players))


def _shares(winners: npt.NDArray[np.uint8], team: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    won = (winners[:, None] >> team & 1).astype(np.float64)
    won[winners == 0] = 1.0
    return won / won.sum(axis=1, keepdims=True)


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
    return np.array(given, np.int64, order="C")


def _checked_numbers(numbers: npt.ArrayLike, what: str, games: int) -> npt.NDArray[np.int64]:
    given = np.asarray(numbers)
    if given.dtype.kind not in "iu" or given.shape != (games,):
        raise ValueError(
            f"{what} must be whole numbers of shape ({games},), "
            f"got shape {given.shape} and dtype {given.dtype}"
        )
    if games and given.min() < 0:
        raise ValueError(f"{what} must not be negative, got {given.min()}")
    return given.astype(np.int64)
