"""``mcts``: Monte-Carlo tree search over whole turns, with chance.

The tree's choices are discs and whole turns: the planner lists a turn's plans, best first, and its
evaluation gives their priors and first values. So a turn is one choice, no set of placements is
tried twice, and a search at the start of a turn settles all its decisions, which are cached
until they are needed. How the tree works: `carolus_env.bots.search.tree`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Agent, Opinion, Remembered
from carolus_env.bots.options import BotOptions
from carolus_env.bots.search.forest import (
    BY_PLANNER,
    CHANCES,
    LEAVES,
    Forest,
    Settings,
    tree_of,
)
from carolus_env.bots.search.tree import begin, grow, simulate
from carolus_env.engine.rules import ACTIONS, DISCS, TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.engine.streams import check_streams, move_on
from carolus_env.networks.forward import Network
from carolus_env.planning.heuristic import all_weights, chances
from carolus_env.planning.plans import WIDTHS, actions_of
from carolus_env.system import cancellation
from carolus_env.system.arrays import F64, U64, Int, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import option

_LARGEST: Final = 100_000  # positions in a tree
_BLOCK: Final = 32  # simulations between checks of the visits
_SOON: Final = 0.01  # seconds between checks of the clock and of a stop, about


def root_width(default: int) -> Any:
    """Return the option ``root_width``, whose default depends on what values the positions."""
    return option(default, "the same in the turn to play; 0: as `width`", among=(0, 4096))


@dataclass(frozen=True)
class TreeOptions(BotOptions):
    """Options of a tree search, whatever values its positions; see docs/bots.md."""

    sims: int = option(400, "simulations per search", among=(1, 10_000_000))
    seconds: float = option(
        0.0, "seconds per search instead; 0: count simulations", among=(0.0, 3600.0)
    )
    chance: str = option(
        "open", "dice of others: averaged over, or a node for each outcome", among=CHANCES
    )
    root: str = option("one", "plans of the turn to play, see the planner", among=WIDTHS)
    plans: str = option("stop", "plans of later turns", among=WIDTHS)
    width: int = option(32, "most plans considered in a turn, the best ones", among=(1, 4096))
    root_width: int = root_width(0)
    c: float = option(0.2, "exploration", among=(0.0, 100.0))
    temperature: float = option(1.0, "of the priors; higher: flatter", among=(0.01, 100.0))

    def settings(self, leaf: int) -> Settings:
        """Return the options in numbers, for positions valued by ``leaf``, see `Settings`."""
        return Settings(
            chance=CHANCES.index(self.chance),
            leaf=leaf,
            crowns=BY_PLANNER,
            root=WIDTHS.index(self.root),
            plans=WIDTHS.index(self.plans),
            root_width=int(self.root_width or self.width),
            width=int(self.width),
            exploration=float(self.c),
            temperature=float(self.temperature),
        )


@dataclass(frozen=True)
class MctsOptions(TreeOptions):
    """Options of ``mcts``."""

    bot = "mcts"

    leaf: str = option(
        "planner", "value of a new position: by evaluation, or by playout", among=LEAVES
    )


class Choice(NamedTuple):
    """The result of a search for one choice at its root.

    Attributes:
        actions: action numbers, in order: of a whole turn, or one.
        visits: the number of simulations that took it.
        prior: the choice's probability before the search; all choices' sum to 1.
        chances: ``(teams,)`` float64, each team's mean win probability over these simulations;
            zeros without any.
    """

    actions: list[int]
    visits: int
    prior: float
    chances: npt.NDArray[np.float64]


class TreeSearch(Agent):
    """A tree search from each position, which plays the most visited choice.

    With a budget of simulations, the same streams give the same decisions. A search can be stopped
    (`system.cancellation`); the streams may have moved on by then. Subclasses say what
    values the positions.

    Attributes:
        simulations: the number of simulations so far.
    """

    def __init__(
        self, options: TreeOptions, settings: Settings, weights: npt.NDArray[np.float64]
    ) -> None:
        self.options = options
        self.simulations = 0
        self._settings = settings
        self._weights = weights
        self._forest: Forest | None = None
        self._remembered = Remembered()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_forest": None}  # memory is allocated again where it is needed

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        plans = self._remembered.rests(states, generators)
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            streams = generators[new]
            result = self._considered(states[new], streams, fully=False)
            generators[new] = streams
            for row, choices in zip(new.tolist(), result, strict=True):
                plans[row] = choices[0].actions
        return self._remembered.keep(states, generators, plans)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return each first action's share of the visits of a search, and their mean value.

        Where only one action is legal nothing is searched, and the value is the position's.
        """
        probabilities = np.zeros((len(states), ACTIONS))
        values = np.zeros((len(states), TEAMS[common_players(states, "opinions")]))
        forced = []
        for row, choices in enumerate(self.consider(states, generators)):
            visits = np.array([choice.visits for choice in choices], np.float64)
            if visits.sum() == 0:
                probabilities[row, choices[0].actions[0]] = 1.0
                forced.append(row)
                continue
            visits /= visits.sum()
            for choice, share in zip(choices, visits, strict=True):
                probabilities[row, choice.actions[0]] += share
            values[row] = visits @ np.array([choice.chances for choice in choices])
        if forced:
            values[forced] = self._values(states[forced])
        return Opinion(probabilities, values)

    def consider(self, states: States, generators: npt.NDArray[np.uint64]) -> list[list[Choice]]:
        """Search from each position, ignoring plans made before.

        Args:
            states: ``(N,)`` games that wait for a decision; they are not changed.
            generators: ``(N,)`` uint64 streams, advanced in place.

        Returns:
            For each game its choices; the first is the one to play.
        """
        as_states(states)
        check_streams(generators, states)
        return self._considered(states, generators, fully=True)

    def _considered(
        self, states: States, generators: npt.NDArray[np.uint64], *, fully: bool
    ) -> list[list[Choice]]:
        """Search from each position; unless ``fully``, only until the choice is settled."""
        legal = engine.legal_masks(states)
        result = [[_only(mask, state)] for mask, state in zip(legal, states, strict=True)]
        undecided = np.flatnonzero(legal.sum(axis=1) > 1)
        for rows in self._groups(states, undecided):
            streams = generators[rows]
            searched = self._searched(states[rows], streams, fully)
            for row, choices in zip(rows, searched, strict=True):
                result[row] = choices
            generators[rows] = streams
        return result

    # -------------------------------------------------------------------------------- valuing

    def _values(self, states: States) -> npt.NDArray[np.float64]:
        """Return each team's win probability in games of one number of players: ``(N, teams)``."""
        return chances(states, self._weights)[:, : TEAMS[int(states["players"][0])]]

    def _network(self, players: int) -> Network | None:
        """Return the network that values positions inside the kernels, if there is one."""
        return None

    def _groups(
        self, states: States, rows: npt.NDArray[np.int64]
    ) -> Iterable[npt.NDArray[np.int64]]:
        """Return the games that are searched side by side."""
        return rows[:, None]

    def _simulate(
        self, states: States, generators: npt.NDArray[np.uint64], forest: Forest, sims: int
    ) -> None:
        """Run simulations in every game; 0 begins the search."""
        network = self._network(int(states["players"][0]))
        _search(states, self._settings, self._weights, forest, generators, sims, network)

    # -------------------------------------------------------------------------------- searching

    def _searched(
        self, states: States, generators: npt.NDArray[np.uint64], fully: bool
    ) -> list[list[Choice]]:
        forest, stop = self._forest_of(len(states)), cancellation.current()
        self._simulate(states, generators, forest, 0)
        timed = self.options.seconds > 0 or cancellation.stoppable()
        done, portion, remaining = 0, 1 if timed else _BLOCK, self._left(0, 0.0)
        start = now = time.perf_counter()
        while remaining > 0:
            if done % _BLOCK == 0 and not fully and _are_settled(forest, len(states), remaining):
                break
            stop.check()
            sims = min(portion, _BLOCK - done % _BLOCK)
            sims = sims if self.options.seconds > 0 else min(sims, int(remaining))
            self._simulate(states, generators, forest, sims)
            done, before, now = done + sims, now, time.perf_counter()
            remaining = self._left(done, now - start)
            portion = max(portion // 2, 1) if now - before > _SOON else min(2 * portion, _BLOCK)
        stop.check()
        if self.options.seconds == 0:  # stopping early must not change later draws
            move_on(generators, int(remaining))
        self.simulations += done * len(states)
        return [_choices(forest, g, states[g]) for g in range(len(states))]

    def _left(self, done: int, seconds: float) -> float:
        """Return the number of simulations left; estimated where the clock decides."""
        if self.options.seconds == 0:
            return self.options.sims - done
        if done == 0:
            return np.inf
        return done * (self.options.seconds - seconds) / seconds

    def _forest_of(self, trees: int) -> Forest:
        """Return a forest of at least this many trees: the last one if it is large enough."""
        if self._forest is None or len(self._forest.nodes) < trees:
            nodes = _LARGEST if self.options.seconds > 0 else min(self.options.sims + 1, _LARGEST)
            width = max(self._settings.root_width, self._settings.width, DISCS)
            self._forest = Forest.new(trees, nodes, width)
        return self._forest


class MctsBot(TreeSearch):
    """Searches a tree by the planner's evaluation, or by random playouts.

    Args:
        options: the bot's options; by default those of `MctsOptions`.
        weights: ``(5, F)`` float64 of the evaluation; None: the fitted ones.
    """

    name = "mcts"

    def __init__(
        self,
        options: MctsOptions | None = None,
        *,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        options = options or MctsOptions()
        settings = options.settings(LEAVES.index(options.leaf))
        super().__init__(options, settings, all_weights().copy() if weights is None else weights)


def _only(mask: npt.NDArray[np.int8], state: np.void) -> Choice:
    """Return the only legal action as a choice, without a search."""
    return Choice([int(mask.argmax())], 0, 1.0, np.zeros(int(state["teams"])))


def _are_settled(forest: Forest, games: int, remaining: float) -> bool:
    """Return whether the most visited choice of every game can no longer change."""
    for g in range(games):
        visits = np.sort(forest.edges["visits"][g, : forest.nodes["edges"][g, 0]])
        if len(visits) > 1 and visits[-1] - visits[-2] <= remaining:
            return False
    return True


def _choices(forest: Forest, g: int, state: np.void) -> list[Choice]:
    """Return the choices at the root, by visits, then by value, best first."""
    edges = forest.edges[g, : forest.nodes["edges"][g, 0]]
    teams, team = int(state["teams"]), int(state["team"][state["player"]])
    means = edges["value"][:, :teams] / np.maximum(edges["visits"], 1)[:, None]
    best_last = np.lexsort((-np.arange(len(edges)), means[:, team], edges["visits"]))
    return [
        Choice(
            actions_of(int(edges["plan"][k])),
            int(edges["visits"][k]),
            float(edges["prior"][k]),
            means[k],
        )
        for k in best_last[::-1]
    ]


@entry
def _search(
    states: Records,
    settings: Settings,
    weights: F64,
    forest: Forest,
    generators: U64,
    sims: Int,
    net: Network | None,
) -> None:
    """Run simulations in every game; 0 begins the searches. ``net`` is a `Network` or None."""
    for g in range(states.shape[0]):
        s = states[g]
        bits = generators[g]
        tree = tree_of(forest, g)
        if sims == 0:
            begin(s, settings, weights[s["players"]], tree, bits)
            grow(settings, weights[s["players"]], tree, bits, net)
        for _ in range(sims):
            bits = simulate(s, settings, weights[s["players"]], tree, bits, net)
        generators[g] = bits
