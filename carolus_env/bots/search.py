"""``search`` and ``mcts`` look ahead in a tree over whole turns, discs, crowns and dice.

`SearchBot` values positions by a network or an `Evaluator` of yours, `MctsBot` by the planner's
evaluation. One search settles all decisions of a turn. How the tree works:
`carolus_env.bots.tree`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import tree as trees
from carolus_env.bots.agent import Agent, BotOptions, Opinion
from carolus_env.bots.compiled import Pool, Remembered
from carolus_env.bots.network import Models
from carolus_env.bots.tree import PLANS_AHEAD, Forest, tree_of
from carolus_env.engine.chance import check_streams, random_bits
from carolus_env.engine.rules import ACTIONS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.networks.network import Network, NetworkModel, values, write_shares
from carolus_env.planning.heuristic import chances, weights_table
from carolus_env.planning.plans import MOST_PLANS, actions_of, play_plan
from carolus_env.system import cancellation
from carolus_env.system.arrays import F64, I64, U64, Bits, Int, Records
from carolus_env.system.compiler import entry, kernel
from carolus_env.system.options import option

_LARGEST: Final = 100_000  # positions in a tree
_MOST_CHOICES: Final = 10_000_000  # in the trees of games side by side, 0.6 GB
_BLOCK: Final = 32  # most simulations between checks of the clock and of a stop
_SOON: Final = 0.01  # seconds between these checks, about


@dataclass(frozen=True)
class MctsOptions(BotOptions):
    """Options of ``mcts``; see docs/bots.md."""

    bot = "mcts"

    sims: int = option(400, "simulations per search", among=(1, 10_000_000))
    seconds: float = option(
        0.0, "seconds per search instead; 0: count simulations", among=(0.0, 3600.0)
    )
    candidates: int = option(
        32, "turns that a search begins with, the planner's best ones", among=(1, MOST_PLANS)
    )


@dataclass(frozen=True)
class SearchOptions(MctsOptions):
    """Options of ``search``."""

    bot = "search"

    candidates: int = option(
        128, "turns that a search begins with, the planner's best ones", among=(1, MOST_PLANS)
    )


class Choice(NamedTuple):
    """The result of a search for one choice at its root."""

    actions: list[int]  # of a whole turn, or one
    visits: int  # simulations that took it
    prior: float  # its probability at first sight; all choices' sum to 1
    chances: F64  # (teams,) mean win probabilities over these; or zeros


class Evaluator(ABC):
    """A function that values positions for a search, such as a network of yours.

    It is called once per simulation with the positions after each choice (a whole turn, a disc or a
    crown) of the new nodes of all games that are searched side by side.
    """

    @abstractmethod
    def evaluate(self, states: States) -> npt.NDArray[np.floating[Any]]:
        """Return each team's win probability: ``(N, teams)``; each row sums to 1.

        The games are of one number of players, and none is over. Due dice have not been rolled.
        """


class MctsBot(Agent):
    """Searches from each position, by the planner's evaluation.

    With a budget of simulations, the same streams give the same decisions. ``simulations`` counts
    them. A search can be stopped (`system.cancellation`). ``weights`` of the evaluation are ``(5,
    F)`` float64; None: the fitted ones.
    """

    name = "mcts"
    _evaluator: Evaluator | None = None

    def __init__(self, options: MctsOptions | None = None, *, weights: F64 | None = None) -> None:
        self.options = options or MctsOptions()
        self.simulations = 0
        self._weights = weights_table(weights)
        self._scratch, self._remembered = Pool(), Remembered()

    def act(self, states: States, generators: U64) -> I64:
        as_states(states)
        check_streams(generators, states)
        plans = self._remembered.rests(states, generators)
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            streams = generators[new]
            result = self.consider(states[new], streams, most=1)
            generators[new] = streams
            for row, choices in zip(new.tolist(), result, strict=True):
                plans[row] = choices[0].actions
        return self._remembered.keep(states, generators, plans)

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return the choice, and its mean value; the position's where only one action is legal."""
        probabilities = np.zeros((len(states), ACTIONS))
        values = np.zeros((len(states), TEAMS[common_players(states, "opinions")]))
        best = [choices[0] for choices in self.consider(states, generators, most=1)]
        forced = [row for row, choice in enumerate(best) if choice.visits == 0]
        for row, choice in enumerate(best):
            probabilities[row, choice.actions[0]] = 1.0
            values[row] = choice.chances
        if forced:
            values[forced] = self._values(states[forced])
        return Opinion(probabilities, values)

    def consider(
        self, states: States, generators: U64, most: int | None = None
    ) -> list[list[Choice]]:
        """Search from each position, ignoring plans made before, and return each game's choices.

        The first is the one to play; ``most`` leaves only so many, None: all. Streams are advanced
        in place.
        """
        as_states(states)
        check_streams(generators, states)
        legal, dice = engine.legal_masks(states), random_bits(generators)
        result = [  # without a search: the only legal action
            [Choice([int(mask.argmax())], 0, 1.0, np.zeros(int(state["teams"])))]
            for mask, state in zip(legal, states, strict=True)
        ]
        searched, players = np.flatnonzero(legal.sum(axis=1) > 1), states["players"]
        together = 1
        if self._evaluator is not None:  # games of a number of players side by side
            nodes = 1 if self.options.seconds > 0 else min(self.options.sims + 1, _LARGEST)
            together = max(_MOST_CHOICES // (PLANS_AHEAD * nodes), 1)
        for number in np.unique(players[searched]).tolist():
            games = searched[players[searched] == number]
            for first in range(0, len(games), together):
                rows = games[first : first + together]
                searches = self._searched(states[rows], dice[rows], number, most)
                for row, choices in zip(rows.tolist(), searches, strict=True):
                    result[row] = choices
        return result

    def _values(self, states: States) -> F64:
        """Return each team's win probability in games of one number of players: ``(N, teams)``."""
        return chances(states, self._weights)[:, : TEAMS[int(states["players"][0])]]

    def _network(self, players: int) -> Network | None:
        """Return the network that values positions inside the kernels, if there is one."""
        return None

    def _searched(
        self, states: States, dice: U64, players: int, most: int | None
    ) -> list[list[Choice]]:
        """Search from games of one number of players, side by side."""
        sims, games = self.options.sims, 1 << (len(states) - 1).bit_length()  # few sizes of forests
        nodes = min(sims + 1, _LARGEST)
        if self.options.seconds > 0:
            nodes = min(max(_MOST_CHOICES // (PLANS_AHEAD * games), 2), _LARGEST)
        new = partial(Forest.new, games, nodes, self.options.candidates)
        with (
            self._scratch.lent((players, games), new) as forest,
            self._scratch.lent(players, partial(self._network, players)) as net,
        ):
            search = partial(self._simulate, states, self._weights[players], forest, dice, net)
            self._spend(search, len(states))
            return [_choices(forest, g, states[g], most) for g in range(len(states))]

    def _spend(self, simulate: Callable[[Budget, int, int], None], games: int) -> None:
        """Spend the budget on searches side by side: seconds are those of all games together."""
        options, stop = self.options, cancellation.current()
        seconds, sims = options.seconds * games, options.sims
        simulate((0.0, 0.0, 1.0), 1, options.candidates)
        closely = seconds > 0 or cancellation.stoppable()
        done, portion, start = 0, 1 if closely else _BLOCK, time.perf_counter()
        now = start
        while now - start < seconds or (seconds == 0 and done < sims):
            stop.check()
            if seconds > 0:
                budget = now - start, 0.0, seconds
            else:
                portion, budget = min(portion, sims - done), (float(done), 1.0, float(sims))
            simulate(budget, portion, 0)
            done, before, now = done + portion, now, time.perf_counter()
            portion = max(portion // 2, 1) if now - before > _SOON else min(2 * portion, _BLOCK)
        stop.check()
        self.simulations += done * games

    def _simulate(
        self, states: States, weights: F64, forest: Forest, dice: U64, net: Network | None,
        budget: Budget, sims: int, first: int,
    ) -> None:  # fmt: skip
        """Run simulations in every game; ``first`` is 0, or at the begin the most candidates."""
        if self._evaluator is None:
            _simulate(states, weights, forest, dice, net, budget, sims, first)
            return
        most, teams = len(states) * forest.plans.shape[1], TEAMS[int(states["players"][0])]
        after, outcomes = np.zeros(most, STATE), np.zeros((most, MAX_TEAMS))
        for k in range(sims):
            n = _go_down(states, weights, forest, dice, budget, k, first, after, outcomes)
            open_ = np.flatnonzero(after["phase"][:n] != OVER)
            if len(open_):
                outcomes[open_, :teams] = self._evaluated(after[open_])
            _grow(forest, len(states), outcomes)

    def _evaluated(self, states: States) -> F64:
        assert self._evaluator is not None
        result = np.asarray(self._evaluator.evaluate(states), np.float64)
        shape = (len(states), TEAMS[int(states["players"][0])])
        if result.shape != shape or not np.isfinite(result).all():
            raise ValueError(
                f"{type(self._evaluator).__name__}.evaluate of {shape[0]} positions must return "
                f"finite numbers of shape {shape}, got shape {result.shape}"
                + (" with NaN or infinity" if result.shape == shape else "")
            )
        return result


class SearchBot(MctsBot):
    """Searches by the win probabilities after each choice.

    A value network runs inside the compiled search. An `Evaluator` is called from Python with the
    positions of all games together. Both give the same tree where they give the same values.

    ``value`` is a model, for games of ``value.size.players`` players; an `Evaluator`; or None: the
    models of the package, each read when it is first needed.
    """

    name = "search"

    def __init__(
        self, value: NetworkModel | Evaluator | None = None, options: SearchOptions | None = None
    ) -> None:
        super().__init__(options or SearchOptions())
        self._evaluator = value if isinstance(value, Evaluator) else None
        self._models = Models("value", None if isinstance(value, Evaluator) else value)

    def _network(self, players: int) -> Network | None:
        if self._evaluator is not None:
            return None
        return Network.of(players, self._models.weights(self.name, players))

    def _values(self, states: States) -> F64:
        if self._evaluator is not None:
            return self._evaluated(states)
        return values(states, self._models.weights(self.name, int(states["players"][0])))


def _choices(forest: Forest, g: int, state: np.void, most: int | None) -> list[Choice]:
    """Return the choices at the root, best first: of those compared to the end the highest mean."""
    edges = forest.edges[g, : forest.nodes["edges"][g, 0]]
    teams, team, visits = int(state["teams"]), int(state["team"][state["player"]]), edges["visits"]
    means = edges["value"][:, :teams] / np.maximum(visits, 1)[:, None]
    to_the_end = np.where(visits >= visits.max() - 1, visits.max(), visits)
    # Those that were tried because all before them lost have fewer visits.
    to_the_end[forest.order[g, : forest.halving["compared"][g, 0]]] = visits.max()
    keys = (-np.arange(len(edges)), edges["prior"], means[:, team].round(9), to_the_end)
    best_first = np.lexsort(keys)[::-1][:most]
    return [
        Choice(actions_of(int(edge["plan"])), int(edge["visits"]), float(edge["prior"]), mean)
        for edge, mean in zip(edges[best_first], means[best_first], strict=True)
    ]


# ------------------------------------------------------------------------------------ the loops


Budget = tuple[float, float, float]
"""Simulations or seconds spent so far; what a simulation takes, 0 where the clock tells; in all."""


@kernel
def _descend(
    s: np.void, weights: F64, tree: Forest, dice: Bits, budget: Budget, k: Int, first: Int
) -> None:
    """Go to the leaf of simulation ``k`` of a call; the root, if the search begins."""
    if first > 0:
        trees.begin(s, weights, tree, dice, first)
    else:
        spent, each, total = budget
        trees.go_down(s, weights, tree, dice, (spent + k * each) / total)


@entry
def _simulate(
    states: Records, weights: F64, forest: Forest, dice: U64, net: Network | None, budget: Budget,
    sims: Int, first: Int,
) -> None:  # fmt: skip
    """Run simulations in every game, valued by the network or else by the evaluation."""
    for g in range(states.shape[0]):
        tree = tree_of(forest, g)
        for k in range(sims):
            _descend(states[g], weights, tree, dice[g], budget, k, first)
            trees.value_and_grow(weights, tree, net)


@kernel
def _listed(tree: Forest) -> Int:
    """Return the number of choices at the leaf; none where the game is over."""
    return 0 if tree.leaf[0]["phase"] == OVER else tree.listed[0]


@entry
def _go_down(
    states: Records, weights: F64, forest: Forest, dice: U64, budget: Budget, k: Int, first: Int,
    after: Records, outcomes: F64,
) -> Int:  # fmt: skip
    """Go to the leaf of simulation ``k`` of a call in every game.

    Writes the positions after the choices of every leaf, and the results of those that are over;
    returns how many there are.
    """
    row = 0
    for g in range(states.shape[0]):
        tree = tree_of(forest, g)
        _descend(states[g], weights, tree, dice[g], budget, k, first)
        for choice in range(_listed(tree)):
            after[row] = tree.leaf[0]
            play_plan(after[row], tree.plans[choice])
            if after[row]["phase"] == OVER:
                write_shares(after[row], outcomes[row])
            row += 1
    return row


@entry
def _grow(forest: Forest, games: Int, outcomes: F64) -> None:
    """Add the leaves to the trees, with the outcomes that `_go_down` or an `Evaluator` wrote."""
    row = 0
    for g in range(games):
        tree = tree_of(forest, g)
        count = _listed(tree)
        for k in range(count):
            for team in range(MAX_TEAMS):
                tree.outcomes[k, team] = outcomes[row + k, team]
        row += count
        if count > 0:
            trees.take_outcomes(tree.leaf[0], tree)
        trees.grow(tree)
