"""Games side by side: all agents to move are asked, then all answers are played, in lockstep.

A game depends on the seed, its deal, its seating and its agents, not on the games beside it. Those
of one *deal* share the set-up, the first player and, for each seat, the faces of all its rolls.
Agents have random streams of their own, and get copies of the states that do not reveal the dice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentLike, Checked, lockstep, make
from carolus_env.bots.agent import CHANGED
from carolus_env.engine import chance
from carolus_env.engine.chance import Deals
from carolus_env.engine.rules import OVER, PHASE_NAMES, REASON_NAMES, Rules
from carolus_env.engine.state import Ints, States, copy
from carolus_env.evaluation.schedules import Fixtures, Plan, deals_for, seatings_of
from carolus_env.records import Record, make_record
from carolus_env.system import cancellation, options, untrusted
from carolus_env.system.arrays import F64
from carolus_env.system.options import instance, whole_number

SIDE_BY_SIDE: Final = 4096  # most games in play at once

Progress = Callable[[int], None]  # of the number of finished games, whenever it grows
Results = npt.NDArray[np.void]  # ``(G,)`` finished games with the same rules, of `result_type`
Actions = list[npt.NDArray[np.uint8]]  # of each game


def result_type(players: int) -> np.dtype[np.void]:
    """Return the dtype of a finished game's result; fields of shape ``(players,)`` are by seat."""
    return np.dtype(
        [
            ("deal", "i8"),
            ("seating", "i8"),
            ("table", "i8", players),  # the agent there, by its number
            ("shares", "f8", players),  # win shares, with sum 1, as `engine.win_shares`
            ("castles", "u1", players),  # in play at the end, of the seat's team
            ("rounds", "u4"),  # rounds begun
            ("reason", "u1"),  # why the game ended: index of `rules.REASON_NAMES`
            ("decisions", "i4", players),
            ("seconds", "f8", players),  # each decision counts as its part of a batch's time
        ]
    )


class ArenaError(options.UserError):
    """A tournament cannot continue: an agent failed or broke the rules, or something is missing.

    ``agent`` is the name of the agent at fault, or None; ``reason`` a description without it;
    ``traceback`` the agent's own, as Python prints it, or empty.
    """

    traceback = ""

    def __init__(self, text: str, agent: str | None = None, reason: str | None = None) -> None:
        super().__init__(text)
        self.agent, self.reason = agent, text if reason is None else reason


def agent_error(error: BaseException, agent: str, what: str) -> ArenaError:
    """Return an `ArenaError` that names the agent once, in front unless the error names it."""
    if isinstance(named := getattr(error, "agent", None), str):
        result = ArenaError(str(error), named, str(getattr(error, "reason", error)))
    else:
        result = ArenaError(f"agent {agent!r}{what}", agent, what.lstrip(": "))
    result.traceback = untrusted.full_traceback(error)
    return result


def make_agents(agents: Iterable[AgentLike]) -> list[Agent]:
    """Make agents (`bots.make`), those of the same spec once; any failure is an `ArenaError`."""
    made: dict[Any, Agent] = {}
    result = []
    for agent in agents:
        key = agent if isinstance(agent, str) else id(agent)
        try:
            if key not in made:
                made[key] = make(agent)
        except Exception as error:  # a user's file or model can fail in any way
            name = agent if isinstance(agent, str) else getattr(agent, "name", "agent")
            raise agent_error(error, name, f": {error}") from error
        result.append(made[key])
    return result


# ------------------------------------------------------------------------------------ playing


def play_games(
    tables: npt.ArrayLike | Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Results, Actions]:
    """Play games to their end, many at once.

    ``tables`` are ``(G, players)`` whole numbers: which of ``agents`` sits at each seat; game ``g``
    is of deal ``g``. Or `Fixtures`: games of a deal have the same set-up and dice, and the agents'
    random streams depend on deal, seating and meeting. Each agent answers all games in which it is
    to move in one batch. ``seed`` is 0 to 2^64 - 1; no two seeds share a deal.

    Returns:
        ``(G,)`` records of `result_type`, and the actions of each game, for `game_record`.

    Raises:
        ArenaError: when an agent fails, or answers what is not a legal action.
    """
    instance("rules", rules, Rules, "carolus_env.Rules")
    instance("agents", agents, Sequence, "a list of agents")
    for agent in agents:
        instance("agents", agent, Agent, "a list of agents (carolus_env.make makes them)")
    fixtures = tables if isinstance(tables, Fixtures) else Fixtures.of(tables)
    fixtures = fixtures.checked(len(agents), rules.players)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    results = np.zeros(len(fixtures.tables), result_type(rules.players))
    actions: Actions = []
    for start in range(0, len(results), SIDE_BY_SIDE):
        rows = slice(start, start + SIDE_BY_SIDE)
        report = (lambda done, start=start: progress(start + done)) if progress else None
        block = Fixtures(*(column[rows] for column in fixtures))
        actions += _side_by_side(block, results[rows], agents, rules, seed, report)
    return results, actions


def game_record(rules: Rules, seed: int, deal: int, actions: npt.NDArray[np.uint8]) -> Record:
    """Return the record of a game, from the actions that `play_games` returned for it."""
    deals = Deals.of(seed, np.array([deal]))
    return make_record(deals.games(rules, roll=False), actions.tolist(), dice=deals.dice()[0])


def _side_by_side(
    fixtures: Fixtures,
    results: Results,
    agents: Sequence[Agent],
    rules: Rules,
    seed: int,
    progress: Progress | None,
) -> Actions:
    """Play games in lockstep and fill in their results; returns the actions of each."""
    deals = Deals.of(seed, fixtures.deals)
    states, dice = deals.games(rules, roll=False), deals.dice()
    streams = deals.streams(fixtures.seatings, fixtures.meetings)

    def roll(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        chance.roll_dealt(states, dice, rows)
        return rows

    steps, done = [], 0
    games = lockstep.Games(states, fixtures.tables, streams)
    try:
        for step in lockstep.play(games, agents, roll, answer=answer):
            results["decisions"][step.rows, step.seats] += 1
            results["seconds"][step.rows, step.seats] += step.seconds
            steps.append((step.rows.astype(np.uint16), step.actions.astype(np.uint8)))
            over = int((states["phase"][step.rows] == OVER).sum())
            done += over
            if over and progress is not None:
                progress(done)
            cancellation.current().check()
    except engine.IllegalActionError as error:
        phase = PHASE_NAMES[int(states["phase"][error.game])]
        agent = agents[fixtures.tables[error.game, error.player]].name
        reason = (
            f"answered action {error.action} as player {error.player} in phase {phase} "
            f"of deal {fixtures.deals[error.game]}, seating {fixtures.seatings[error.game]}; "
            f"legal are {error.legal}"
        )
        raise ArenaError(f"agent {agent!r} {reason}", agent, reason) from None
    results["deal"], results["seating"] = fixtures.deals, fixtures.seatings
    results["table"] = fixtures.tables
    results["shares"] = engine.win_shares(states).reshape(fixtures.tables.shape)
    results["castles"] = states["castles"][:, [rules.team(seat) for seat in range(rules.players)]]
    results["rounds"], results["reason"] = states["round"], states["reason"]
    rows, actions = (np.concatenate(column) for column in zip(*steps, strict=True))
    ends = np.cumsum(results["decisions"].sum(axis=1))[:-1]
    return np.split(actions[np.argsort(rows, kind="stable")], ends)


def answer(agent: Agent, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
    """Return the agent's actions. Whether they are legal is checked when they are played."""
    # Agents from a user's file come wrapped in checks, most of which would be done twice here.
    checked = isinstance(agent, Checked)
    player = agent.agent if isinstance(agent, Checked) else agent
    before = states.tobytes() if checked else b""
    try:
        actions = np.asarray(player.act(states, generators))
    except cancellation.Stopped:
        raise
    except (Exception, SystemExit) as error:
        raise agent_error(error, agent.name, f" failed with {untrusted.message(error)}") from error
    if checked and states.tobytes() != before:
        reason = CHANGED
    elif actions.dtype.kind not in "iu" or actions.shape != states.shape:
        reason = (
            f"must answer one whole number a game, shape {states.shape}, "
            f"got shape {actions.shape} and dtype {actions.dtype}"
        )
    else:
        return actions
    raise ArenaError(f"agent {agent.name!r} {reason}", agent.name, reason)


def warm_up(agents: Sequence[Agent], rules: Rules) -> None:
    """Play some decisions of each agent, so that compiling and loading do not count as thinking."""
    by_phase: dict[int, States] = {}  # of one random game
    game, stream = engine.new_games(rules, 1, seed=0), chance.new_streams(0, 1)
    while not engine.is_over(game)[0] and len(by_phase) < 4:
        by_phase.setdefault(int(game["phase"][0]), copy(game))
        engine.step(game, engine.random_actions(game, stream))
    positions = np.concatenate(list(by_phase.values()))
    for agent in agents:
        answer(agent, copy(positions), chance.new_streams(0, len(positions)))


def refusal(agent: Agent, rules: Rules) -> str:
    """Return in a line why an agent cannot decide at the start of a game; empty if it can."""
    try:
        answer(agent, engine.new_games(rules, 1, seed=0), chance.new_streams(0, 1))
    except ArenaError as error:
        return " ".join(str(error).split())
    return ""


# ------------------------------------------------------------------------------------ two agents

_Z: Final = 1.959964  # normal quantile of a two-sided 95 %


@dataclass(frozen=True)
class PairingResult:
    """The result of two agents against each other; pairs are in the order of ``agents``."""

    agents: tuple[str, str]
    deals: int  # each played in every seating
    games: int
    wins: tuple[int, int]  # games that this agent's seats alone have won
    draws: int  # games that neither has won alone: shared, or cut off
    win_rate: tuple[float, float]  # see `pairing_result`: 0.5 each between equals, 1 for all wins
    ci95: tuple[tuple[float, float], tuple[float, float]]  # 95 % interval of each win rate
    mean_rounds: float
    mean_castles: tuple[float, float]  # in play at the end; the mean of its seats' teams
    ends: dict[str, int]  # games by the reason for their end (`rules.REASON_NAMES`)
    decisions: tuple[int, int]
    seconds: tuple[float, float]  # time that each agent took for its decisions

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        return asdict(self)


def pairing_result(
    agents: Sequence[str], results: Results, pair: tuple[int, int] = (0, 1)
) -> PairingResult:
    """Count the games of two agents against each other; those of others are left out.

    The win rate is the mean score. An agent scores its seats' share of the win: 1 when only they
    won, 0.5 when one seat of each agent shares the win. In a game that was cut off all teams have
    the same share. Between equals the rate is 0.5, also with three players: there an agent has one
    seat in half of the games (expected share 1/3) and two in the other half (2/3). The interval
    allows for what games of one deal have in common (`mean_interval`).
    """
    first, second = (agents[k] for k in pair)
    seats = np.stack([results["table"] == k for k in pair])
    met = seats.any(axis=2).all(axis=0) & (seats[0] | seats[1]).all(axis=1)
    results, seats = results[met], seats[:, met]
    if not len(results):
        raise ValueError(f"no game of {first!r} and {second!r} to count")
    scores = (results["shares"] * seats).sum(axis=2)
    wins = (scores > 1 - 1e-9).sum(axis=1).tolist()
    low, high = mean_interval(scores[0], results["deal"])
    rate = float(scores[0].mean())
    castles = [float(np.average(results["castles"], weights=m, axis=1).mean()) for m in seats]
    decisions, seconds = (
        (results[name] * seats).sum(axis=(1, 2)).tolist() for name in ("decisions", "seconds")
    )
    return PairingResult(
        agents=(first, second),
        deals=len(np.unique(results["deal"])),
        games=len(results),
        wins=(wins[0], wins[1]),
        draws=len(results) - sum(wins),
        win_rate=(rate, 1 - rate),
        ci95=((low, high), (1 - high, 1 - low)),
        mean_rounds=float(results["rounds"].mean()),
        mean_castles=(castles[0], castles[1]),
        ends=count_ends(results),
        decisions=(decisions[0], decisions[1]),
        seconds=(seconds[0], seconds[1]),
    )


def deal_scores(games: Results, agent: int) -> F64:
    """Return an agent's mean score in each deal, ``(D,)``, of ``(D, S)`` games of a pair."""
    scores: F64 = (games["shares"] * (games["table"] == agent)).sum(axis=2).mean(axis=1)
    return scores


def rates_by_place(games: Results, agent: int, first: Ints) -> list[float]:
    """Return an agent's win rate at each place, from who begins, in ``(D, K, S)`` games.

    ``first`` ``(D,)`` are the seats that begin. A game's score counts for all places of the agent,
    in equal parts, so the rate is 0.5 between equals.
    """
    own = games["table"] == agent
    players = own.shape[-1]
    places = (np.arange(players) - first[:, None, None, None]) % players
    parts = own / np.maximum(own.sum(axis=-1, keepdims=True), 1)
    scores = (games["shares"] * own).sum(axis=-1, keepdims=True) * parts
    at = np.broadcast_to(places, own.shape).ravel()
    won, counted = (np.bincount(at, each.ravel(), players) for each in (scores, parts))
    rates: list[float] = (won / np.maximum(counted, 1e-9)).tolist()
    return rates


def count_ends(results: Results) -> dict[str, int]:
    """Return the number of games by the reason for their end."""
    reasons, counts = np.unique(results["reason"], return_counts=True)
    return {str(REASON_NAMES[k]): n for k, n in zip(reasons, counts.tolist(), strict=True)}


def play_pairing(
    agents: tuple[AgentLike, AgentLike],
    rules: Rules,
    games: int,
    *,
    seed: int,
    progress: Progress | None = None,
) -> PairingResult:
    """Let two agents play each other, every deal in every seating.

    ``agents`` are spec strings or agents, and may be the same object. ``games`` is rounded up to
    whole deals, of 2 games, or of 6 for three players.
    """
    instance("agents", agents, Sequence, "two agents or their spec strings")
    if len(agents) != 2:
        raise ValueError(f"agents must be two, got {len(agents)}")
    pair = make(agents[0]), make(agents[1])
    names = pair[0].name, pair[1].name
    plan = Plan(rules, names, deals=deals_for(games, len(seatings_of(rules))), seed=seed)
    warm_up(pair, rules)
    results, _ = play_games(plan.fixtures(0, plan.games), pair, rules, seed=seed, progress=progress)
    return pairing_result(names, results)


def mean_interval(values: F64, deals: npt.NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Return the 95 % interval (low, high) for the mean of ``(N,)`` values from 0 to 1.

    ``deals`` are ``(N,)`` numbers of the values' deals; None: all values are independent. For
    independent zeros and ones this is Wilson's score interval (JASA 22, 1927), which stays within 0
    and 1 and has a width even at 100 % wins. Other values count as ``n / c`` zeros and ones, with c
    Kish's design effect (as in Korn and Graubard, Survey Methodology 24, 1998), from the variance
    of sums over deals: these are independent, values of one deal are not. For c alone a zero and a
    one are added, each as another deal, which keeps some width when all values are the same. Since
    few deals tell little about c, Student's quantile replaces the normal one, for the deals and the
    two added ones, less one.
    """
    n = len(values)
    mean = float(np.clip(values.mean(), 0, 1))
    padded = np.concatenate([values, [0.0, 1.0]])
    places = np.arange(n) if deals is None else np.unique(deals, return_inverse=True)[1]
    last = int(places.max())
    groups = np.concatenate([places, [last + 1, last + 2]])
    centre = float(padded.mean())
    c = float(np.square(np.bincount(groups, weights=padded - centre)).sum())
    c /= centre * (1 - centre) * (n + 2)
    weight = (_Z if deals is None else _student(last + 2, _Z)) ** 2 * c / n
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight**2 / 4) / (1 + weight)
    # Rounding may move an end past the mean where they coincide (0 %, 100 %).
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _student(n: int, z: float) -> float:
    """Return Student's quantile of n degrees for the normal one (Abramowitz and Stegun 26.7.5)."""
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
