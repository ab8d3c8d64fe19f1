"""``mcts``: Monte-Carlo tree search over whole turns, with chance.

The tree's choices are discs and whole turns: the planner lists a turn's plans, best first, and its
evaluation gives their priors and first values. So a turn is one choice, no set of placements is
tried twice, and a search at the start of a turn settles all its decisions, which are remembered
until they are needed. How the tree works: `carolus_env.bots.search.tree`.

A `Judge`, for example a network, can value positions instead of the evaluation, those of many games
at a time. Then the evaluation only compares the plans of a turn. With a `ValueJudge` it only lists
them: a value network values the position after each choice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Agent, AgentError, Opinion
from carolus_env.bots.neural.inference import NetArrays
from carolus_env.bots.options import check, option
from carolus_env.bots.planner.evaluation import all_weights, chances
from carolus_env.bots.planner.plans import WIDTHS, actions_of
from carolus_env.bots.remembered import Remembered
from carolus_env.bots.search.forest import (
    BY_PLANNER,
    CHANCES,
    JUDGE,
    LEAVES,
    MOVES,
    VALUE,
    Forest,
    Settings,
    tree_of,
)
from carolus_env.bots.search.judges import Judge, ValueJudge
from carolus_env.bots.search.tree import ask, back_up, begin, go_down, grow, simulate
from carolus_env.bots.value.inference import ValueNet
from carolus_env.engine.rules import ACTIONS, DISCS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.engine.streams import check_streams, move_on
from carolus_env.system import stopping
from carolus_env.system.compiler import entry

_WIDEST: Final = 80  # single actions in a position, at most
_LARGEST: Final = 100_000  # positions in a tree
_PORTION: Final = 32  # simulations between checks of the clock and the visits


def root_width(default: int) -> Any:
    """The option ``root_width``, whose default depends on what values the positions."""
    return option(default, "the same in the turn to play; 0: as `width`", among=(0, 4096))


@dataclass(frozen=True)
class TreeOptions:
    """How a tree is searched, whatever values its positions; see docs/bots.md."""

    sims: int = option(400, "simulations per search", among=(1, 10_000_000))
    seconds: float = option(
        0.0, "seconds per search instead; 0: count simulations", among=(0.0, 3600.0)
    )
    moves: str = option("turn", "choices of the tree: whole turns, or single actions", among=MOVES)
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
        """The options in numbers, for positions valued by ``leaf``, see `Settings`."""
        return Settings(
            moves=MOVES.index(self.moves),
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
    """How ``mcts`` searches.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    leaf: str = option(
        "planner", "value of a new position: by evaluation, or by playout", among=LEAVES
    )

    def __post_init__(self) -> None:
        check("mcts", self)


class Choice(NamedTuple):
    """The result of a search for one choice at its root.

    Attributes:
        actions: action numbers, in order: of a whole turn, or one.
        visits: the number of simulations that took it.
        prior: its probability before the search; the sum over all choices is 1.
        chances: ``(teams,)`` float64, each team's mean share of the win over these simulations;
            zeros without any.
    """

    actions: list[int]
    visits: int
    prior: float
    chances: npt.NDArray[np.float64]


class MctsBot(Agent):
    """Searches a tree from each position and plays the most visited choice.

    With a budget of simulations, the same streams give the same decisions. A search can be stopped
    at any simulation (`carolus_env.system.stopping`); the streams may have moved on by then.

    Args:
        options: `MctsOptions`; with a ``judge`` any `TreeOptions`.
        judge: values positions; None: as ``options.leaf`` says. A `Judge`'s policy is the prior of
            discs, crowns and single actions; whole turns keep the evaluation's. All priors of a
            `ValueJudge` are the softmax of its values, as log odds.
        weights: ``(5, F)`` float64 of the evaluation; None: the fitted ones.

    Attributes:
        simulations: the number of simulations so far.

    Raises:
        AgentError: for options without a ``leaf`` when there is no judge.
    """

    name = "mcts"

    def __init__(
        self,
        options: TreeOptions | None = None,
        *,
        judge: Judge | ValueJudge | None = None,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.options = options or MctsOptions()
        self.simulations = 0
        self._judge = judge
        self._weights = all_weights().copy() if weights is None else weights
        leaf = VALUE if isinstance(judge, ValueJudge) else JUDGE
        if judge is None:
            if not isinstance(self.options, MctsOptions):
                raise AgentError(
                    self.name,
                    f"{type(self.options).__name__} need a judge, got None; without one use "
                    "MctsOptions, whose leaf says how positions are valued",
                )
            leaf = LEAVES.index(self.options.leaf)
        self._settings = self.options.settings(leaf)
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
            found = self._considered(states[new], streams, fully=False)
            generators[new] = streams
            for row, choices in zip(new.tolist(), found, strict=True):
                plans[row] = choices[0].actions
        return self._remembered.keep(states, generators, plans)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """A search from each game: each first action's share of the visits, and their mean value.

        Where only one action is legal nothing is searched, and the value is the position's.
        """
        probabilities = np.zeros((len(states), ACTIONS))
        values = self._values_now(states)
        for row, choices in enumerate(self.consider(states, generators)):
            visits = np.array([choice.visits for choice in choices], np.float64)
            if visits.sum() == 0:
                probabilities[row, choices[0].actions[0]] = 1.0
                continue
            visits /= visits.sum()
            for choice, share in zip(choices, visits, strict=True):
                probabilities[row, choice.actions[0]] += share
            values[row] = visits @ np.array([choice.chances for choice in choices])
        return Opinion(probabilities, values)

    def _values_now(self, states: States) -> npt.NDArray[np.float64]:
        teams = TEAMS[common_players(states, "opinions")]
        if self._judge is None:
            return chances(states, self._weights)[:, :teams]
        if isinstance(self._judge, ValueJudge):
            return self._judge.values(states)
        return np.array(self._judge.judge(states)[1], np.float64)

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
        found = [[_only(mask, state)] for mask, state in zip(legal, states, strict=True)]
        undecided = np.flatnonzero(legal.sum(axis=1) > 1)
        for rows in self._side_by_side(states, undecided):
            streams = generators[rows]
            searched = self._searched(states[rows], streams, fully)
            for row, choices in zip(rows, searched, strict=True):
                found[row] = choices
            generators[rows] = streams
        return found

    def _side_by_side(
        self, states: States, rows: npt.NDArray[np.int64]
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Groups of games to search together: single games, or all that Python judges."""
        players = states["players"][rows]
        for number in np.unique(players).tolist():
            same = rows[players == number]
            yield from [same] if self._asks_python(number) else same[:, None]

    def _networks(self, players: int) -> tuple[NetArrays | None, ValueNet | None]:
        """What the kernels ask: a policy network, a value network, or none."""
        if isinstance(self._judge, ValueJudge):
            return None, self._judge.net(players)
        net = None if self._judge is None else self._judge.net(players)
        return None if net is None else net.arrays(), None

    def _asks_python(self, players: int) -> bool:
        return isinstance(self._judge, Judge) and self._judge.net(players) is None

    # -------------------------------------------------------------------------------- searching

    def _searched(
        self, states: States, generators: npt.NDArray[np.uint64], fully: bool
    ) -> list[list[Choice]]:
        forest, stop = self._forest_of(len(states)), stopping.current()
        asks_python = self._asks_python(int(states["players"][0]))
        step = self._simulate_judged if asks_python else self._simulate
        step(states, generators, forest, 0)
        done, start, left = 0, time.perf_counter(), self._left(0, 0.0)
        while left > 0 and (fully or not _are_settled(forest, len(states), left)):
            stop.check()
            portion = 1 if asks_python else _PORTION
            if self.options.seconds == 0:
                portion = min(portion, int(left))
            step(states, generators, forest, portion)
            done += portion
            left = self._left(done, time.perf_counter() - start)
        stop.check()
        if self.options.seconds == 0:  # stopping early must not change later draws
            move_on(generators, int(left))
        self.simulations += done * len(states)
        return [_choices(forest, g, states[g]) for g in range(len(states))]

    def _left(self, done: int, seconds: float) -> float:
        """The number of simulations left; estimated where the clock decides."""
        if self.options.seconds == 0:
            return self.options.sims - done
        if done == 0:
            return np.inf
        return done * (self.options.seconds - seconds) / seconds

    def _simulate(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        forest: Forest,
        sims: int,
    ) -> None:
        """Simulations in every game; 0 begins the search."""
        net, value = self._networks(int(states["players"][0]))
        policy = None if net is None else np.empty((1, ACTIONS))
        settings, weights = self._settings, self._weights
        _search(states, settings, weights, forest, generators, sims, net, policy, value)

    def _simulate_judged(
        self, states: States, generators: npt.NDArray[np.uint64], forest: Forest, sims: int
    ) -> None:
        """The same with a judge in Python, which values the new positions of all games together."""
        for _ in range(max(sims, 1)):
            _go_down(states, self._settings, self._weights, forest, generators, sims == 0)
            valued = forest.valued[: len(states)]
            undecided = np.flatnonzero(valued["phase"] != OVER)
            policy = np.zeros((len(states), ACTIONS))
            chances = np.zeros((len(states), MAX_TEAMS))
            if len(undecided):
                policy[undecided], chances[undecided] = self._judged(valued[undecided])
            _grow(self._settings, self._weights, forest, policy, chances)

    def _judged(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        assert isinstance(self._judge, Judge)
        policy, values = self._judge.judge(states)
        teams = int(states["teams"].max())
        if np.shape(policy) != (len(states), ACTIONS) or np.shape(values) != (len(states), teams):
            raise ValueError(
                f"a judge of {len(states)} games must give shapes {(len(states), ACTIONS)} and "
                f"{(len(states), teams)}, got {np.shape(policy)} and {np.shape(values)}"
            )
        chances = np.zeros((len(states), MAX_TEAMS))
        chances[:, :teams] = values
        return np.array(policy, np.float64, order="C"), chances

    def _forest_of(self, trees: int) -> Forest:
        """A forest of at least this many trees: the last one if it is large enough.

        Its kernels look at the flag of the work here.
        """
        if self._forest is None or len(self._forest.nodes) < trees:
            nodes = _LARGEST if self.options.seconds > 0 else min(self.options.sims + 1, _LARGEST)
            widths = self._settings.root_width, self._settings.width
            width = max(widths) if self.options.moves == "turn" else _WIDEST
            self._forest = Forest.new(trees, nodes, max(width, DISCS))
        scratch = self._forest.scratch._replace(stop=stopping.current().flag)
        return self._forest._replace(scratch=scratch)


def _only(mask: npt.NDArray[np.int8], state: np.void) -> Choice:
    """The only legal action as a choice, without a search."""
    return Choice([int(mask.argmax())], 0, 1.0, np.zeros(int(state["teams"])))


def _are_settled(forest: Forest, games: int, left: float) -> bool:
    """Whether the most visited choice of every game can no longer change."""
    for g in range(games):
        visits = np.sort(forest.edges["visits"][g, : forest.nodes["edges"][g, 0]])
        if len(visits) > 1 and visits[-1] - visits[-2] <= left:
            return False
    return True


def _choices(forest: Forest, g: int, state: np.void) -> list[Choice]:
    """The choices at the root, by visits, then by value, best first."""
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
def _search(states, settings, weights, forest, generators, sims, net, policy, value):
    """Simulations in every game, until the work is to end; 0 begins.

    For the last arguments see `simulate`.
    """
    for g in range(states.shape[0]):
        s = states[g]
        bits = generators[g]
        tree = tree_of(forest, g)
        if sims == 0:
            begin(s, settings, weights[s["players"]], tree, bits)
            ask(net, policy, value, tree)
            grow(settings, weights[s["players"]], tree, policy, 0)
        for _ in range(sims):
            if forest.scratch.stop[0] != 0:
                break
            bits = simulate(s, settings, weights[s["players"]], tree, bits, net, policy, value)
        generators[g] = bits


@entry
def _go_down(states, settings, weights, forest, generators, begins):
    """Go to the next leaf in every game, or begin the search."""
    for g in range(states.shape[0]):
        s = states[g]
        tree = tree_of(forest, g)
        if begins:
            begin(s, settings, weights[s["players"]], tree, generators[g])
        else:
            generators[g] = go_down(s, settings, weights[s["players"]], tree, generators[g], None)


@entry
def _grow(settings, weights, forest, policy, chances):
    """Add the leaves to the trees, with the judge's ``policy`` and ``chances``."""
    for g in range(policy.shape[0]):
        tree = tree_of(forest, g)
        for team in range(chances.shape[1]):
            tree.chances[team] = chances[g, team]
        grow(settings, weights[tree.valued[0]["players"]], tree, policy, g)
        back_up(tree)
