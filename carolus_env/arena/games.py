"""Games side by side: all agents to move are asked, then all answers are played, in lockstep.

A game depends on the seed, its deal, its seating and its agents, not on how many games are played
at once or in which order. A *deal* is the territories, the first player and, for each seat, the
faces of all its rolls, whatever is played. So games of one deal differ only in who sits where,
and luck that comes from the dice alone cancels.

Every seat of every game has its own random stream for the agent there. Agents get copies of the
states; the generator in a copy comes from that stream and does not reveal the dice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.arena import lockstep
from carolus_env.arena.arguments import seatings_array, whole_number, whole_numbers
from carolus_env.arena.columns import COUNTS, LEADS, Finished, Results
from carolus_env.bots import Agent, Checked
from carolus_env.bots.agent import CHANGED
from carolus_env.engine.rules import MAX_PLAYERS, PHASE_NAMES, Rules
from carolus_env.engine.state import STATE, Ints, States, copy
from carolus_env.engine.streams import branches, new_streams, seed_generators
from carolus_env.records import Record, make_record
from carolus_env.system import failures

SIDE_BY_SIDE: Final = 4096
"""Most games in play at once."""

Progress = Callable[[int], None]
"""Called with the number of finished games whenever it grows."""


class ArenaError(RuntimeError):
    """A tournament cannot continue: an agent failed or broke the rules, or something is missing.

    Attributes:
        agent: name of the agent at fault; None: not an agent's fault.
        reason: what happened; the text of the error names the agent too.
        traceback: of the agent's own error, as Python prints it; empty where there was none.
    """

    traceback = ""

    def __init__(self, text: str, agent: str | None = None, reason: str | None = None) -> None:
        super().__init__(text)
        self.agent, self.reason = agent, text if reason is None else reason


def agent_error(error: BaseException, agent: str, what: str) -> ArenaError:
    """An `ArenaError` that names the agent once: as the error does already, or in front of it.

    Args:
        error: what the agent raised; one with an attribute ``agent`` names it (`bots.AgentError`).
        agent: its name.
        what: text after the name, where the error does not name the agent.
    """
    if isinstance(named := getattr(error, "agent", None), str):
        found = ArenaError(str(error), named, str(getattr(error, "reason", error)))
    else:
        found = ArenaError(f"agent {agent!r}{what}", agent, what.lstrip(": "))
    found.traceback = failures.whole(error)
    return found


def play_games(
    tables: npt.ArrayLike,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    deals: npt.ArrayLike | None = None,
    seatings: npt.ArrayLike | None = None,
    meetings: npt.ArrayLike | None = None,
    actions: list[npt.NDArray[np.uint8]] | None = None,
    progress: Progress | None = None,
) -> Results:
    """Play games to their end, many at once.

    Args:
        tables: ``(G, players)`` whole numbers: which of ``agents`` sits at each seat of each game.
        agents: the players; each answers all games in which it is to move in one batch.
        rules: of all games.
        seed: 0 to 2^64 - 1; deal ``d`` has seed ``seed + d``.
        deals: ``(G,)`` whole numbers, the deal of each game; None: game ``g`` is of deal ``g``.
        seatings: ``(G,)`` whole numbers that distinguish games of one deal; the agents' random
            streams depend on them. None: all 0.
        meetings: ``(G,)`` whole numbers that distinguish games of one deal and seating; the agents'
            random streams depend on them. None: all 0.
        actions: a list to which the actions of each game are appended, ``(K,)`` uint8 each.
        progress: called with the number of finished games.

    Raises:
        ArenaError: when an agent fails, or answers what is not a legal action.
        ValueError: for impossible tables, deals, seatings or an impossible seed.
    """
    seats = seatings_array(tables, len(agents), rules.players)
    games = len(seats)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    deal_of = np.arange(games) if deals is None else _numbers("deals", deals, games)
    seating_of = np.zeros(games, np.int64)
    if seatings is not None:
        seating_of = _numbers("seatings", seatings, games)
    meeting_of = np.zeros(games, np.int64)
    if meetings is not None:
        meeting_of = _numbers("meetings", meetings, games)
    parts = []
    for start in range(0, max(games, 1), SIDE_BY_SIDE):
        part = slice(start, start + SIDE_BY_SIDE)
        played = _SideBySide(
            seats[part],
            Lots(deal_of[part], seating_of[part], meeting_of[part]),
            agents,
            rules,
            seed,
        )
        log = None if actions is None else _ActionLog(actions)
        parts.append(played.play(log, progress, start))
    return Results.joined(parts)


def game_record(rules: Rules, seed: int, deal: int, actions: npt.NDArray[np.uint8]) -> Record:
    """The record of a game that `play_games` played (`carolus_env.records`).

    Args:
        rules: of the game.
        seed: as given to `play_games`.
        deal: of the game.
        actions: of the game, as `play_games` gives them.
    """
    seeds = _deal_seeds(seed, np.array([deal]))
    start = engine.new_games(rules, 1, seed=seeds, roll=False)
    dice = _dice(seed_generators(seeds, 1), rules.players)[0]
    return make_record(start, actions.tolist(), dice=dice)


# ------------------------------------------------------------------------------------ lockstep


class Lots(NamedTuple):
    """What decides the random numbers of ``G`` games, besides the seed."""

    deals: npt.NDArray[np.int64]
    """``(G,)``: set-up and dice."""
    seatings: npt.NDArray[np.int64]
    """``(G,)``: with the meeting, the agents' streams."""
    meetings: npt.NDArray[np.int64]
    """``(G,)``."""

    def streams(self, roots: npt.NDArray[np.uint64], players: int) -> npt.NDArray[np.uint64]:
        """The random stream of the agent at each seat, ``(G, players)``; one of its own in every
        game, so that nothing an agent remembers can belong to two games."""
        # Branches 0 to 3 of a deal's generator are the seats' dice.
        numbers = MAX_PLAYERS * (1 + self.seatings[:, None]) + np.arange(players)
        streams = branches(roots[:, None], numbers)
        later = self.meetings > 0  # the first meeting has the streams of games without meetings
        streams[later] = branches(streams[later], self.meetings[later][:, None])
        return streams


class _SideBySide:
    """Games in play together, and the arrays that the kernels work on."""

    def __init__(
        self,
        tables: npt.NDArray[np.int64],
        lots: Lots,
        agents: Sequence[Agent],
        rules: Rules,
        seed: int,
    ) -> None:
        games, players = tables.shape
        self.lots = lots
        self.agents = agents
        seeds = _deal_seeds(seed, lots.deals)
        roots = seed_generators(seeds, games)
        self.games = lockstep.Games(
            states=engine.new_games(rules, games, seed=seeds, roll=False),
            tables=tables,
            dice=_dice(roots, players),
            streams=lots.streams(roots, players),
            counts=np.zeros((games, players), COUNTS),
            leads=np.zeros(games, LEADS),
        )

    def play(self, log: _ActionLog | None, progress: Progress | None, before: int) -> Results:
        """Play all games to their end; ``before`` games are finished already."""
        games = left = len(self.games.states)
        actions = np.empty(games, np.int64)
        seconds = np.zeros(len(self.agents))  # for a decision of this step
        questions = lockstep.Questions(
            in_play=np.arange(games),
            games=np.empty(games, np.int64),
            states=np.empty(games, STATE),
            streams=np.empty(games, np.uint64),
            bounds=np.zeros(len(self.agents) + 2, np.int64),
        )
        lockstep.begin(self.games, questions)
        while left:
            self._ask(questions, actions, seconds)
            if log is not None:
                log.note(questions.games, actions)
            # New states: an agent may still hold those that it was given.
            questions = questions._replace(states=np.empty(left, STATE))
            wrong, still = lockstep.step(self.games, questions, actions, seconds)
            if wrong >= 0:
                raise self._refusal(int(questions.games[wrong]), int(actions[wrong]))
            if still < left:
                left = still
                actions = actions[:left]
                questions = lockstep.Questions(
                    in_play=questions.in_play[:left],
                    games=questions.games[:left],
                    states=questions.states[:left],
                    streams=questions.streams[:left],
                    bounds=questions.bounds,
                )
                if progress is not None:
                    progress(before + games - left)
        if log is not None:
            log.close(games)
        played = self.games
        return Results.of(
            Finished(
                deals=self.lots.deals,
                seatings=self.lots.seatings,
                tables=played.tables,
                states=played.states,
                leads=played.leads,
                counts=played.counts,
            )
        )

    def _ask(
        self,
        questions: lockstep.Questions,
        actions: npt.NDArray[np.int64],
        seconds: npt.NDArray[np.float64],
    ) -> None:
        """Ask every agent, and write the answers into ``actions``."""
        bounds = questions.bounds.tolist()
        for k, agent in enumerate(self.agents):
            mine = slice(bounds[k], bounds[k + 1])
            if mine.start == mine.stop:
                continue
            started = time.perf_counter()
            actions[mine] = answer(agent, questions.states[mine], questions.streams[mine])
            seconds[k] = (time.perf_counter() - started) / (mine.stop - mine.start)

    def _refusal(self, game: int, action: int) -> ArenaError:
        state = self.games.states[game]
        seat = int(state["player"])
        agent = self.agents[self.games.tables[game, seat]].name
        reason = (
            f"answered action {action} "
            f"as player {seat} in phase {PHASE_NAMES[int(state['phase'])]} "
            f"of deal {self.lots.deals[game]}, seating {self.lots.seatings[game]}; "
            f"legal are {engine.legal_actions(state).tolist()}"
        )
        return ArenaError(f"agent {agent!r} {reason}", agent, reason)


class _ActionLog:
    """Sorts the actions, noted step by step, into one array a game."""

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
    """The agent's actions. Whether they are legal is checked when they are played.

    Raises:
        ArenaError: when it fails, does not answer one whole number a game, or, from a user's file,
            changes the states.
    """
    # Agents from a user's file come wrapped in checks, most of which would be done twice here.
    theirs = isinstance(agent, Checked)
    player = agent.agent if isinstance(agent, Checked) else agent
    before = states.tobytes() if theirs else b""
    try:
        given = np.asarray(player.act(states, generators))
    except (Exception, SystemExit) as error:
        raise agent_error(error, agent.name, f" failed with {failures.told(error)}") from error
    if theirs and states.tobytes() != before:
        raise ArenaError(f"agent {agent.name!r} {CHANGED}", agent.name, CHANGED)
    if given.dtype.kind not in "iu" or given.shape != states.shape:
        reason = (
            f"must answer one whole number a game, shape {states.shape}, "
            f"got shape {given.shape} and dtype {given.dtype}"
        )
        raise ArenaError(f"agent {agent.name!r} {reason}", agent.name, reason)
    return given


def warm_up(agents: Sequence[Agent], rules: Rules) -> npt.NDArray[np.float64]:
    """Some decisions of each agent, so that compiling and loading do not count as thinking.

    Returns:
        ``(A,)`` seconds that a decision takes, roughly.
    """
    positions, seconds = _positions(rules), np.zeros(len(agents))
    for k, agent in enumerate(agents):
        for _ in range(2):  # the second time everything is loaded
            started = time.perf_counter()
            answer(agent, copy(positions), new_streams(0, len(positions)))
            seconds[k] = (time.perf_counter() - started) / len(positions)
    return seconds


def _positions(rules: Rules) -> States:
    """A game in each phase that occurs in one random game."""
    seen: dict[int, States] = {}
    game, stream = engine.new_games(rules, 1, seed=0), new_streams(0, 1)
    while not engine.is_over(game)[0] and len(seen) < 4:
        seen.setdefault(int(game["phase"][0]), copy(game))
        engine.step(game, engine.random_actions(game, stream))
    return np.concatenate(list(seen.values()))


def _deal_seeds(seed: int, deals: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.uint64(seed) + deals.astype(np.uint64)  # wraps around


def _dice(roots: npt.NDArray[np.uint64], players: int) -> npt.NDArray[np.uint64]:
    """``(G, players)``: the generator by which each seat rolls."""
    return branches(roots[:, None], np.arange(players))


def _numbers(name: str, values: npt.ArrayLike, games: int) -> npt.NDArray[np.int64]:
    found = whole_numbers(name, values, (games,))
    if games and found.min() < 0:
        raise ValueError(f"{name} must not be negative, got {found.min()}")
    return found.astype(np.int64)
