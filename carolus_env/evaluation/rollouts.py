"""Rollouts: the value of each candidate of a position, by playing on many times.

    >>> from carolus_env.evaluation.rollouts import Options, roll_out
    >>> result = roll_out(state, options=Options(games=2000), seed=1)
    >>> result.best.actions, result.best.mean, result.best.error

One base agent plays on from every candidate to the end, in all seats, with the same dice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import AgentLike, lockstep
from carolus_env.bots.network import find, values_ahead
from carolus_env.engine import chance, rules
from carolus_env.engine.chance import Deals
from carolus_env.engine.state import States, as_states, common_players, copy, pick, single
from carolus_env.networks.network import Weights
from carolus_env.planning import heuristic
from carolus_env.planning.plans import best_plans
from carolus_env.system import cancellation, machine, untrusted
from carolus_env.system.arrays import F64, I64
from carolus_env.system.options import (
    REQUIRED,
    check_fields,
    instance,
    option,
    whole_number,
    whole_numbers,
)
from carolus_env.system.untrusted import shown, unknown

BASE: Final = "rollout_policy"  # the strongest agent that is quick (docs/bench.md)
PORTION: Final = 100  # games of each candidate that are played together, with stratified rolls
DOUBT: Final = 0.05  # probability that a rollout drops the best candidate
MOST_GAMES: Final = 10_000_000
ENDS: Final = {
    "best": "one candidate is surely the best",
    "error": "the errors are small enough",
    "games": "the budget of games is spent",
    "interrupted": "interrupted",
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


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a rollout; ``analysis`` is that of the games that were played."""

    def __init__(self, analysis: Analysis) -> None:
        super().__init__(analysis)
        self.analysis = analysis


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
        1, "threads that share the games; the results are the same", among=(1, machine.MOST_THREADS)
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

    Raises:
        Interrupted: on Ctrl-C, with what was computed.
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
    value = None if options.rounds is None else options.value
    if isinstance(value, str):
        value = value_function(value, int(state["players"]))
    sampler = Sampler(options.base, seed, value, options.rounds, threads=options.threads)
    samples = _Samples(len(compared), int(state["team"][state["player"]]))
    looks = set(looks_after(options.games))
    sure = NormalDist().inv_cdf(1 - DOUBT / (2 * max(len(compared) - 1, 1) * len(looks)))
    sampler.warm_up(single(state))
    started, ended, decisions, done = time.perf_counter(), "games", 0, 0
    while done < options.games:
        left = np.flatnonzero(~samples.dropped)
        games = min(PORTION, options.games - done)
        numbers = np.tile(np.arange(done, done + games), len(left))
        try:
            shares, played = sampler.play(pick(starts, np.repeat(left, games)), numbers)
        except KeyboardInterrupt:
            if not done:
                raise
            ended = "interrupted"
            break
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
            ended = "best" if len(left) == 1 < len(compared) else "error"
            break
    order = samples.order()
    estimates = tuple(samples.estimate(row, order[0], compared[row]) for row in order)
    spent = time.perf_counter() - started
    analysis = Analysis(estimates, samples.team, ended, decisions, spent)
    if ended == "interrupted":
        raise Interrupted(analysis)
    return analysis


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

KINDS: Final = ("disc", "turn", "crown")  # of decisions; a turn is all that remains of it
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


@dataclass(frozen=True)
class Sampler:
    """A player of games from positions on."""

    base: bots.AgentLike = option(
        REQUIRED, "the player of every seat: a spec, or an agent, copied for threads", kind=object
    )
    seed: int = option(REQUIRED, "the seed of all games", kind=int, among=(0, 2**64 - 1))
    value: Value | None = option(None, "the value of games that are left", kind=object)
    rounds: int | None = option(
        None, "rounds until a game is left, the present one included", kind=int, among=(1, None)
    )
    stratified: bool = option(True, "first rolls of games played together come in proportion")
    threads: int = option(1, "results do not depend on them", among=(1, machine.MOST_THREADS))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rounds is not None and not isinstance(self.value, Value):
            raise ValueError(f"value must be a rollouts.Value, got {shown(self.value)}")

    def play(self, starts: States, numbers: I64) -> tuple[F64, int]:
        """Play games to their end, or for `rounds`; can be stopped (`system.cancellation`).

        Each game begins at one of ``starts``, at any point, and has a number, from 0 on: that of
        its dice and streams. Returns ``(G, teams)`` float64, the win shares, or values where a game
        was left before its end; and the number of decisions in all games.
        """
        players = common_players(as_states(starts, "starts"), "shares")
        numbers = whole_numbers("numbers", numbers, (len(starts),)).astype(np.int64)
        whole_number("numbers", int(numbers.min(initial=0)), 0)
        heights = self._heights(numbers) if self.stratified else np.full(len(numbers), np.nan)
        stop, runs = cancellation.current(), machine.runs(len(starts), self.threads)
        while len(self._agents) < len(runs):
            self._agents.append(self._another())

        def played(share: tuple[bots.Agent, slice]) -> tuple[F64, int]:
            agent, rows = share
            with stop.watched():  # in the other threads, too
                states = copy(starts[rows])
                return self._play(agent, states, players, numbers[rows], heights[rows])

        parts = machine.together(played, list(zip(self._agents, runs, strict=False)))
        return np.concatenate([shares for shares, _ in parts]), sum(count for _, count in parts)

    def warm_up(self, game: States) -> None:
        """Use the base and the value once, so that compiling and loading do not count as theirs."""
        choose(self._agents[0], game, np.zeros(1, np.int64))
        if self.value is not None:
            self.value(game)

    @cached_property
    def _agents(self) -> list[bots.Agent]:
        """Those of the threads, as many as were needed so far."""
        return [bots.make(self.base)]

    def _another(self) -> bots.Agent:
        """Return an agent for one more thread: a user's expects to be alone."""
        try:
            return bots.make(deepcopy(self.base))
        except TypeError as error:
            reason = f"cannot be copied for each thread: {untrusted.message(error)}"
            raise bots.AgentError(self._agents[0].name, reason) from None

    def _heights(self, numbers: I64) -> F64:
        """Return where first rolls lie among all rolls, 0 to 1: a stratum a number, shuffled."""
        different, strata = np.unique(numbers, return_inverse=True)
        random = np.random.default_rng([self.seed, *different[:1].tolist()])
        places = random.permutation(len(different)) + random.random(len(different))
        heights: F64 = (places / max(len(different), 1))[strata]
        return heights

    def _play(
        self, agent: bots.Agent, states: States, players: int, numbers: I64, heights: F64
    ) -> tuple[F64, int]:
        """Play some of the games in this thread, in place; no height: the first roll is rolled."""
        deals = Deals.of(self.seed, numbers)
        dice, waiting = deals.dice(), ~np.isnan(heights)  # for the first roll
        last = states["round"].astype(np.int64) + (self.rounds or 0)
        rolls = chance.chance_outcomes(rules.DICE[players])
        ends = np.cumsum(rolls.probabilities)[:-1]

        def roll(rows: I64) -> I64:
            first = rows[waiting[rows] & (states["phase"][rows] == rules.ROLL)]
            waiting[first] = False
            usual = first[states["dice_due"][first] == rules.DICE[players]]
            if len(usual):
                seats = states["player"][usual]
                states["generator"][usual] = dice[usual, seats]
                chance.draw_faces(states, rows=usual)  # the dice advance as by any roll
                dice[usual, seats] = states["generator"][usual]
                faces = rolls.faces[np.searchsorted(ends, heights[usual], side="right")]
                chance.apply_roll(states, faces, rows=usual)
            chance.roll_dealt(states, dice, rows)
            if self.rounds is None:
                return rows
            # Between two rounds nothing is under way that a value would have to foresee.
            begins = (states["phase"][rows] == rules.DISC) & (states["turn"][rows] == 0)
            return rows[~(begins & (states["round"][rows] >= last[rows]))]

        games = lockstep.Games(states, np.zeros((len(states), players), np.int64), deals.streams())
        steps = lockstep.play(games, [agent], roll)
        decisions = sum(len(step.rows) for step in steps)
        shares = np.zeros((len(states), rules.TEAMS[players]))
        teams = states["team"][:, :players].astype(np.int64)
        won = engine.win_shares(states)[:, :players]
        np.add.at(shares, (np.arange(len(states))[:, None], teams), won)
        left = np.flatnonzero(states["phase"] != rules.OVER)
        if self.value is not None and len(left):
            shares[left] = self.value(pick(states, left))
        return shares, decisions


def choose(
    agent: bots.Agent, states: States, numbers: npt.NDArray[np.integer], seed: int = 0
) -> tuple[list[tuple[int, ...]], States]:
    """Let an agent decide in every position; in a turn, until the turn is over.

    A position's number and the seed decide the agent's random stream, so answers do not depend on
    other positions. Returns the actions of each choice, and ``(N,)`` the positions after them,
    before any dice, with generator 0.
    """
    instance("agent", agent, bots.Agent, "an agent (carolus_env.make makes one)")
    agent = agent if isinstance(agent, bots.Checked) else bots.Checked(agent)
    after = copy(states)
    if np.isin(after["phase"], (rules.ROLL, rules.OVER)).any():
        raise ValueError("states must be games in which a decision is due")
    numbers = whole_numbers("numbers", numbers, (len(after),))
    streams = Deals.of(whole_number("seed", seed, 0, 2**64 - 1), numbers).roots[:, None]
    left = 2 + after["placements_left"].astype(np.int64)  # calls of `go_on`: one is before all

    def go_on(rows: I64) -> I64:
        left[rows] -= 1
        return rows[left[rows] > 0]

    actions: list[tuple[int, ...]] = [()] * len(after)
    games = lockstep.Games(after, np.zeros((len(after), rules.MAX_PLAYERS), np.int64), streams)
    for step in lockstep.play(games, [agent], go_on):
        for row, action in zip(step.rows.tolist(), step.actions.tolist(), strict=True):
            actions[row] += (action,)
    after["generator"] = 0
    return actions, after


# ------------------------------------------------------------------------------------ values

KNOWN: Final = "planner, ppo, value, ppo:MODEL or value:MODEL"


@dataclass(frozen=True)
class Value:
    """A named estimate of each team's win probability."""

    name: str  # the spec that makes it again, see `value_function`
    version: str  # twelve hexadecimal digits that change with its weights
    players: int  # of the games that it is for
    _of: Callable[[States], F64]

    def __call__(self, states: States) -> F64:
        """Return ``(N, teams)`` float64, rows sum to 1; the real shares where a game is over."""
        players = common_players(as_states(states), "values")
        if len(states) and players != self.players:
            raise ValueError(
                f"value function {self.name!r} is for {self.players} players, not for {players}"
            )
        return self._of(states)[:, : rules.TEAMS[self.players]]


def value_function(spec: str, players: int) -> Value:
    """Make a value function.

    ``planner`` is the planner's evaluation; ``value`` the package's value network for that number
    of players, after the best next choice; ``ppo`` the same by the value of a policy. These two
    take a model, as ``value:PATH``.
    """
    instance("spec", spec, str, f"the spec of a value function: {KNOWN}")
    players = whole_number("players", players, 2, rules.MAX_PLAYERS)
    name, _, argument = spec.partition(":")
    if spec == "planner":
        weights = heuristic.all_weights()[players].tobytes()
        return Value(spec, _version(weights), players, heuristic.chances)
    if name not in ("ppo", "value") or "," in argument:
        raise ValueError(
            unknown("unknown value function", spec, ("planner", "ppo", "value"), KNOWN)
        )
    model = find("ppo" if name == "ppo" else "value", argument or f"{players}p")
    if (own := model.size.players) != players:
        raise ValueError(f"value function {spec!r} is for {own} players, not for {players}")
    network = Weights.of(model.weights)

    def ahead(states: States) -> F64:
        result = values_ahead(states, network)
        shares: F64 = result / result.sum(axis=1, keepdims=True)  # the network's are float32
        return shares

    weights = b"".join(model.weights[key].tobytes() for key in sorted(model.weights))
    return Value(spec, _version(weights), players, ahead)


def _version(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()[:12]
