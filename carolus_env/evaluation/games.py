"""Games side by side: all agents to move are asked, then all answers are played, in lockstep.

A game depends on the seed, its deal, its seating and its agents, not on the games beside it. Those
of one *deal* share the set-up, the first player and, for each seat, the faces of all its rolls.
Agents have random streams of their own, and get copies of the states that do not reveal the dice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentLike, Checked, lockstep, make
from carolus_env.bots.agent import CHANGED
from carolus_env.engine import chance
from carolus_env.engine.chance import Deals, new_streams
from carolus_env.engine.rules import OVER, PHASE_NAMES, Rules
from carolus_env.engine.state import Ints, States, copy
from carolus_env.evaluation.seating import Fixtures
from carolus_env.records import Record, make_record
from carolus_env.system import cancellation, options, untrusted
from carolus_env.system.options import instance, whole_number

SIDE_BY_SIDE: Final = 4096
"""Most games in play at once."""

Progress = Callable[[int], None]
"""A function of the number of finished games, called whenever it grows."""

Results = npt.NDArray[np.void]
"""``(G,)`` finished games with the same rules, records of `result_type`."""

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
        if key not in made:
            try:
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
) -> Results:
    """Play games to their end, many at once; returns ``(G,)`` records of `result_type`.

    ``tables`` are ``(G, players)`` whole numbers: which of ``agents`` sits at each seat; game ``g``
    is of deal ``g``. Or `Fixtures`: games of a deal have the same set-up and dice, and the agents'
    random streams depend on deal, seating and meeting. Each agent answers all games in which it is
    to move in one batch. ``seed`` is 0 to 2^64 - 1; no two seeds share a deal.

    Raises:
        ArenaError: when an agent fails, or answers what is not a legal action.
        Stopped: when the work is to end (`system.cancellation`).
        ValueError: for impossible tables, deals, seatings or an impossible seed.
    """
    return play_and_record(tables, agents, rules, seed=seed, progress=progress)[0]


def play_and_record(
    tables: npt.ArrayLike | Fixtures,
    agents: Sequence[Agent],
    rules: Rules,
    *,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Results, Actions]:
    """Play games as `play_games` does; returns the actions of each game, too (`game_record`)."""
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
    """Return the record of a game, from the actions that `play_and_record` returned for it."""
    deals = Deals.of(seed, np.array([deal]))
    start = deals.games(rules, roll=False)
    return make_record(start, actions.tolist(), dice=deals.dice()[0])


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
    game, stream = engine.new_games(rules, 1, seed=0), new_streams(0, 1)
    while not engine.is_over(game)[0] and len(by_phase) < 4:
        by_phase.setdefault(int(game["phase"][0]), copy(game))
        engine.step(game, engine.random_actions(game, stream))
    positions = np.concatenate(list(by_phase.values()))
    for agent in agents:
        answer(agent, copy(positions), new_streams(0, len(positions)))


def refusal(agent: Agent, rules: Rules) -> str:
    """Return in a line why an agent cannot decide at the start of a game; empty if it can."""
    try:
        answer(agent, engine.new_games(rules, 1, seed=0), new_streams(0, 1))
    except ArenaError as error:
        return " ".join(str(error).split())
    return ""
