"""Rollouts: the value of each candidate of a position, by playing on many times.

    >>> from carolus_env.evaluation.rollouts import Options, roll_out
    >>> result = roll_out(state, options=Options(games=2000), seed=1)
    >>> result.best.actions, result.best.mean, result.best.error

One base agent plays on from every candidate to the end, in all seats, with the same dice
(`evaluation.sampling`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from carolus_env import engine
from carolus_env.bots import AgentLike
from carolus_env.engine import rules
from carolus_env.engine.state import States, pick, single
from carolus_env.evaluation.sampling import Sampler, Value, value_function
from carolus_env.planning.plans import best_plans
from carolus_env.system.arrays import F64, I64
from carolus_env.system.machine import MOST_THREADS
from carolus_env.system.options import check_fields, instance, option, whole_number
from carolus_env.system.untrusted import shown

BASE: Final = "rollout_policy"  # the strongest agent that is quick (docs/bench.md)
PORTION: Final = 100  # games of each candidate that are played together, with stratified rolls
DOUBT: Final = 0.05  # probability that a rollout drops the best candidate
MOST_GAMES: Final = 10_000_000
ENDS: Final = {
    "best": "one candidate is surely the best",
    "error": "the errors are small enough",
    "games": "the budget of games is spent",
}


@dataclass(frozen=True)
class Estimate:
    """Estimated value of one candidate."""

    actions: tuple[int, ...]
    mean: F64  # (teams,): each team's win probability
    error: F64  # (teams,): the standard errors
    games: int
    regret: float  # against the best one, for the team that decides
    regret_error: float  # its standard error, from games with the same dice; 0 for the best one
    dropped: bool  # True: significantly worse, and played no further


@dataclass(frozen=True)
class Analysis:
    """A position rolled out."""

    candidates: tuple[Estimate, ...]  # the best one first
    team: int  # the team that decides
    ended: str  # why it stopped, one of `ENDS`
    decisions: int  # of the base agent, in all games
    seconds: float

    @property
    def best(self) -> Estimate:
        """The best candidate for the team that decides."""
        return self.candidates[0]

    @property
    def games(self) -> int:
        """Number of games from all candidates together."""
        return sum(candidate.games for candidate in self.candidates)


@dataclass(frozen=True)
class Options:
    """Options of rollouts."""

    base: AgentLike = option(
        BASE, "plays every seat: a spec, or in Python an agent", kind=object, metavar="BOT"
    )
    rounds: int | None = option(
        None,
        "stop games after so many rounds and value the positions by `value`: far quicker, a little "
        "biased; by default games are played on to the end",
        kind=int,
        among=(1, None),
    )
    value: str | Value = option(
        "value",
        "value function of `rounds`: planner, value, ppo, or a model, as value:PATH",
        kind=object,
        metavar="VALUE",
    )
    games: int = option(1000, "games of each choice, at most", among=(2, MOST_GAMES))
    error: float | None = option(
        None,
        "play until the standard error of every choice that is left is as small; by default until "
        "one is surely the best",
        kind=float,
        above=0,
        below=1,
        metavar="E",
    )
    threads: int = option(
        1, "threads that share the games; the results are the same", among=(1, MOST_THREADS)
    )

    def __post_init__(self) -> None:
        check_fields(self)


def roll_out(
    state: np.void | States,
    choices: Sequence[Sequence[int]] | None = None,
    options: Options | None = None,
    *,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Analysis:
    """Roll a position out: one game in which a decision is due, ``states[i]``.

    A candidate is dropped when it is more than so many standard errors worse than the best one
    that, with all candidates and all tests, the best one is dropped in at most 5 % of the rollouts
    (Bonferroni; the errors are taken as normal).

    Args:
        choices: candidates, each as its actions in order; None: those of `candidates`.
        progress: a function of the number of games played, all candidates together.
    """
    options = Options() if options is None else options
    instance("options", options, Options, "rollouts.Options(...)")
    state = single(state)[0]
    kind_of(state)  # refuses a game in which no decision is due
    compared = candidates(state) if choices is None else _checked(choices)
    if not compared:
        raise ValueError("choices must be one candidate or more, got none")
    if len(set(compared)) < len(compared):
        raise ValueError("choices must be different, a candidate is given twice")
    starts = after(state, compared)
    value: Any = options.value
    if options.rounds is None:
        value = None
    elif isinstance(value, str):
        value = value_function(value, int(state["players"]))
    sampler = Sampler(options.base, seed, value, options.rounds, threads=options.threads)
    samples = _Samples(len(compared), int(state["team"][state["player"]]))
    looks = set(looks_after(options.games))
    sure = NormalDist().inv_cdf(1 - DOUBT / (2 * max(len(compared) - 1, 1) * len(looks)))
    started, ended, decisions, done = time.perf_counter(), "games", 0, 0
    while done < options.games:
        left = np.flatnonzero(~samples.dropped)
        games = min(PORTION, options.games - done)
        numbers = np.tile(np.arange(done, done + games), len(left))
        shares, played = sampler.play(pick(starts, np.repeat(left, games)), numbers)
        samples.add(left, shares.reshape(len(left), games, -1))
        done, decisions = done + games, decisions + played
        if progress is not None:
            progress(int(samples.games.sum()))
        if done not in looks:
            continue
        samples.drop(sure)
        left = np.flatnonzero(~samples.dropped)
        if options.error is None:
            enough = len(left) == 1 < len(compared)
        else:
            errors = [standard_error(samples.of(row)[:, samples.team]) for row in left.tolist()]
            enough = max(errors) <= options.error
        if enough:
            ended = "best" if len(left) == 1 else "error"
            break
    order = samples.order()
    estimates = tuple(samples.estimate(row, order[0], compared[row]) for row in order)
    return Analysis(estimates, samples.team, ended, decisions, time.perf_counter() - started)


def looks_after(games: int) -> Iterator[int]:
    """Yield the games of each candidate after which a rollout is tested; the last is ``games``.

    The first tests are a portion apart. From the twentieth on each comes after a twentieth more
    games, so that the time for all of them is proportional to the games.
    """
    done = 0
    while done < games:
        done = min(done + PORTION * max(done // (20 * PORTION), 1), games)
        yield done


class _Samples:
    """The win shares of each candidate's games. Games of one number have the same dice."""

    def __init__(self, candidates: int, team: int) -> None:
        self.team = team
        self.games = np.zeros(candidates, np.int64)
        self.dropped = np.zeros(candidates, np.bool_)
        self._parts: list[list[F64]] = [[] for _ in range(candidates)]

    def add(self, rows: I64, shares: F64) -> None:
        """Add ``(candidates, games, teams)``."""
        self.games[rows] += shares.shape[1]
        for row, of_row in zip(rows, shares, strict=True):
            self._parts[row].append(of_row)

    def of(self, row: int) -> F64:
        """Return ``(games, teams)``."""
        if len(self._parts[row]) > 1:
            self._parts[row] = [np.concatenate(self._parts[row])]
        return self._parts[row][0]

    def order(self) -> list[int]:
        """Return all candidates: the best one that is left first, the dropped ones last."""
        means = [self.of(row)[:, self.team].mean() for row in range(len(self.games))]
        return sorted(range(len(means)), key=lambda row: (self.dropped[row], -means[row]))

    def behind(self, row: int, best: int) -> tuple[float, float]:
        """Return the regret against the best one, game by game, and its error."""
        games = min(self.games[row], self.games[best])
        gaps = (self.of(best)[:games] - self.of(row)[:games])[:, self.team]
        return float(gaps.mean()), standard_error(gaps)

    def drop(self, sure: float) -> None:
        """Drop candidates more than ``sure`` standard errors behind."""
        best = self.order()[0]
        for row in np.flatnonzero(~self.dropped).tolist():
            gap, error = self.behind(row, best)
            self.dropped[row] = row != best and gap > sure * error

    def estimate(self, row: int, best: int, actions: tuple[int, ...]) -> Estimate:
        shares, dropped = self.of(row), bool(self.dropped[row])
        behind = self.behind(row, best) if row != best else (0.0, 0.0)
        errors = np.array([standard_error(of_team) for of_team in shares.T])
        return Estimate(actions, shares.mean(axis=0), errors, len(shares), *behind, dropped)


def standard_error(values: F64) -> float:
    """Return the standard error of the mean.

    Equal values say little about the spread of rare ones, so two are added that lie at the ends of
    what shares can be.
    """
    padded = np.concatenate([values - values.mean(), [-0.5, 0.5]])
    return float(np.sqrt(np.square(padded).sum() / (len(values) + 1) / len(values)))


# ------------------------------------------------------------------------------------ candidates

KINDS: Final = ("disc", "turn", "crown")
"""Kinds of decision. A turn is all that remains of it: paladins and the Emperor's move."""
_KIND = {rules.DISC: "disc", rules.CROWN_CHOICE: "crown", rules.PLACE: "turn", rules.MOVE: "turn"}
MOST: Final = 4096  # candidates of a turn


def kind_of(state: np.void | States) -> str:
    """Return the kind of decision due in one game, one of `KINDS`."""
    phase = int(single(state)["phase"][0])
    if phase not in _KIND:
        raise ValueError(f"no decision is due: the game's phase is {rules.PHASE_NAMES[phase]}")
    return _KIND[phase]


def candidates(state: np.void | States, most: int = 8) -> list[tuple[int, ...]]:
    """Return the choices of the player to move in one game, each as its actions in order.

    Discs and crowns are all listed, by action number. Of turns at most ``most``, best first by the
    planner's evaluation; each set of placements occurs once, in one order.
    """
    most = whole_number("most", most, 1, MOST)
    game = single(state)
    if kind_of(game) != "turn":
        return [(int(action),) for action in engine.legal_actions(game)]
    return [tuple(actions) for actions in best_plans(game[0], most, "one")]


def after(state: np.void | States, choices: Sequence[Sequence[int]]) -> States:
    """Return one game after each choice, before any dice: ``(K,)``."""
    choices, game = _checked(choices), single(state)
    states = pick(game, np.zeros(len(choices), np.int64))
    for index in range(max(map(len, choices), default=0)):
        rows = np.array([row for row, actions in enumerate(choices) if len(actions) > index])
        for row in rows if index else ():
            going = states["phase"][row] not in (rules.ROLL, rules.OVER)
            if not going or states["player"][row] != game["player"][0]:
                raise ValueError(
                    f"choices must be of one player: after {index} of the actions "
                    f"{list(choices[row])}, player {game['player'][0]} does not decide"
                )
        actions = np.array([choices[row][index] for row in rows])
        engine.step(states, actions, rows=rows, roll=False)
    return states


def _checked(choices: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    try:
        checked = [
            tuple(whole_number("", a, 0, rules.ACTIONS - 1) for a in each) for each in choices
        ]
        if all(checked):
            return checked
    except (TypeError, ValueError):
        pass
    expected = f"lists of one action number or more, 0 to {rules.ACTIONS - 1}"
    raise ValueError(f"choices must be {expected}, got {shown(choices)}")
