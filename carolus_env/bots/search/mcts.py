"""``mcts``: Monte-Carlo tree search over whole turns, with chance.

The tree's choices are discs and whole turns: the planner lists a turn's plans, best ones first,
and its evaluation is a plan's prior and first value. So a turn is one choice, no order of
placements is looked at twice, and a search at the start of a turn settles all its decisions; they
are remembered until they are asked for. How the tree works: `carolus_env.bots.search.tree`.

Instead of the evaluation a `Judge` can value positions, many games at a time: a network, say. Then
the evaluation says only how much better one plan is than the next.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Agent, Opinion
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.options import check, option
from carolus_env.bots.planner.evaluation import all_weights, chances
from carolus_env.bots.planner.plans import WIDTHS, actions_of
from carolus_env.bots.search.tree import (
    CHANCES,
    JUDGE,
    LEAVES,
    MOVES,
    VALUED,
    Forest,
    back_up,
    begin,
    go_down,
    grow,
    judge_valued,
    simulate,
    tree_of,
)
from carolus_env.engine.rules import ACTIONS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.engine.streams import check_streams, move_on
from carolus_env.system.compiler import entry

_WIDEST: Final = 80  # single actions of a position, at most
_LARGEST: Final = 100_000  # positions in a tree
_PORTION: Final = 32  # simulations between two looks at the clock, and at what is settled
_REMEMBERED: Final = 100_000


@dataclass(frozen=True)
class MctsOptions:
    """How `MctsBot` searches; see docs/bots.md.

    Raises:
        ValueError: for a value that is not allowed, naming the option and what is.
    """

    sims: int = option(400, "simulations a search", among=(1, 10_000_000))
    seconds: float = option(
        0.0, "time of a search instead, 0: count simulations", among=(0.0, 3600.0)
    )
    moves: str = option("turn", "choices of the tree: whole turns, or single actions", among=MOVES)
    chance: str = option(
        "open", "dice: averaged over where they are not the own, or a node each", among=CHANCES
    )
    leaf: str = option(
        "planner", "value of a new position: evaluation, or playout", among=LEAVES[:JUDGE]
    )
    root: str = option("one", "plans of the turn to be played, see the planner", among=WIDTHS)
    plans: str = option("stop", "plans of turns to come", among=WIDTHS)
    width: int = option(32, "plans kept of a turn, the best ones", among=(1, 4096))
    c: float = option(0.2, "how much is explored", among=(0.0, 100.0))
    temperature: float = option(1.0, "of the priors; higher: more alike", among=(0.01, 100.0))

    def __post_init__(self) -> None:
        check("mcts", self)


class Judge(ABC):
    """What values positions in place of the evaluation: a learned policy and value, say."""

    @abstractmethod
    def judge(
        self, states: States
    ) -> tuple[npt.NDArray[np.floating[Any]], npt.NDArray[np.floating[Any]]]:
        """Value games in which somebody is to decide.

        Where a whole turn is to be planned, a search asks about the position after the turn's best
        plan (by the evaluation) and the dice that follow; else about the position itself.

        Args:
            states: ``(N,)`` games. Not to be changed.

        Returns:
            ``(N, 95)``: log probabilities of the actions for who is to decide; what is said of
            illegal ones is not looked at. ``(N, teams)``: each team's part of the win, from 0 to
            1, rows sum to 1.
        """

    def net(self, players: int) -> Net | None:
        """The network that answers for so many players, if `judge` is that and nothing else.

        A search then asks it without coming back to Python.
        """
        return None


class Choice(NamedTuple):
    """What a search has found of one choice at its root.

    Attributes:
        actions: action numbers, in order: a whole turn, or one.
        visits: simulations that took it.
        prior: how likely it was held to be, before; all choices together 1.
        chances: ``(teams,)`` float64, mean part of the win of each team over those simulations;
            zeros where there were none.
    """

    actions: list[int]
    visits: int
    prior: float
    chances: npt.NDArray[np.float64]


class MctsBot(Agent):
    """Searches a tree from each position; plays the choice that was visited most.

    With a budget of simulations the same streams give the same decisions.

    Args:
        options: see `MctsOptions`.
        judge: values positions, whatever ``options.leaf`` says; None: that does. Policies are the
            priors of discs, crowns and single actions; whole turns keep the evaluation's.
        weights: ``(5, F)`` of the evaluation; None: the fitted ones.

    Attributes:
        simulations: how many it has done so far.
    """

    name = "mcts"

    def __init__(
        self,
        options: MctsOptions | None = None,
        *,
        judge: Judge | None = None,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.options = options or MctsOptions()
        self.simulations = 0
        self._judge = judge
        self._weights = all_weights().copy() if weights is None else weights
        leaf = LEAVES.index(self.options.leaf) if judge is None else JUDGE
        if leaf == JUDGE and judge is None:
            raise ValueError(
                f"agent 'mcts': leaf {self.options.leaf!r} needs a judge, got None; without one it "
                f"is {' or '.join(LEAVES[:JUDGE])}"
            )
        self._ways = (
            MOVES.index(self.options.moves),
            CHANCES.index(self.options.chance),
            leaf,
            WIDTHS.index(self.options.plans),
            WIDTHS.index(self.options.root),
            float(self.options.temperature),
            float(self.options.c),
            int(self.options.width),
        )
        self._forest: Forest | None = None
        self._plans: dict[tuple[int, bytes], list[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_forest": None}  # room is made anew where it is needed

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        plans = [
            self._plans.pop((int(stream), _position(state)), [])
            for state, stream in zip(states, generators, strict=True)
        ]
        new = np.array([row for row, plan in enumerate(plans) if not plan], np.int64)
        if len(new):
            streams = generators[new]
            found = self._considered(states[new], streams, fully=False)
            generators[new] = streams
            for row, choices in zip(new.tolist(), found, strict=True):
                plans[row] = list(choices[0].actions)
        actions = np.array([plan[0] for plan in plans], np.int64)
        self._remember(states, generators, actions, plans)
        return actions

    def _remember(
        self,
        states: States,
        generators: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        plans: list[list[int]],
    ) -> None:
        """Keep what is left of the plans, each under its game: the stream and what comes next."""
        rows = np.array([row for row, plan in enumerate(plans) if len(plan) > 1], np.int64)
        if not len(rows):
            return
        if len(self._plans) > _REMEMBERED:  # of games that were left
            self._plans.clear()
        after = states[rows]
        engine.step(after, actions[rows], roll=False)
        for row, state in zip(rows.tolist(), after, strict=True):
            self._plans[int(generators[row]), _position(state)] = plans[row][1:]

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """A search from each game: the share of its visits that each first action got, and the
        mean over all of them of each team's part of the win."""
        probabilities = np.zeros((len(states), ACTIONS))
        values = self._values_now(states)  # where there is one legal action, nothing is searched
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
        return np.array(self._judge.judge(states)[1], np.float64)

    def consider(self, states: States, generators: npt.NDArray[np.uint64]) -> list[list[Choice]]:
        """Search from each position, whatever was planned before.

        Args:
            states: ``(N,)`` games in which somebody is to decide; they stay as they are.
            generators: ``(N,)`` uint64 streams, moved on in place.

        Returns:
            For each game its choices, the one to play first.
        """
        as_states(states)
        check_streams(generators, states)
        return self._considered(states, generators, fully=True)

    def _considered(
        self, states: States, generators: npt.NDArray[np.uint64], *, fully: bool
    ) -> list[list[Choice]]:
        """Search from each position; unless ``fully``, only until it is settled what to play."""
        legal = engine.legal_masks(states)
        found = [[_only(mask, state)] for mask, state in zip(legal, states, strict=True)]
        open_ones = np.flatnonzero(legal.sum(axis=1) > 1)  # else there is nothing to find out
        for rows in self._side_by_side(states, open_ones):
            streams = generators[rows]
            searched = self._searched(states[rows], streams, fully)
            for row, choices in zip(rows, searched, strict=True):
                found[row] = choices
            generators[rows] = streams
        return found

    def _side_by_side(
        self, states: States, rows: npt.NDArray[np.int64]
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Games to search together: one by one, or all that Python judges at once."""
        players = states["players"][rows]
        for number in np.unique(players).tolist():
            same = rows[players == number]
            yield from [same] if self._asks_python(number) else same[:, None]

    def _net(self, players: int) -> Net | None:
        return None if self._judge is None else self._judge.net(players)

    def _asks_python(self, players: int) -> bool:
        return self._judge is not None and self._net(players) is None

    # -------------------------------------------------------------------------------- searching

    def _searched(
        self, states: States, generators: npt.NDArray[np.uint64], fully: bool
    ) -> list[list[Choice]]:
        forest = self._room(len(states))
        asks_python = self._asks_python(int(states["players"][0]))
        step = self._simulate_judged if asks_python else self._simulate
        step(states, generators, forest, 0)
        done, start, left = 0, time.perf_counter(), self._left(0, 0.0)
        while left > 0 and (fully or not _are_settled(forest, len(states), left)):
            portion = 1 if asks_python else _PORTION
            if self.options.seconds == 0:
                portion = min(portion, int(left))
            step(states, generators, forest, portion)
            done += portion
            left = self._left(done, time.perf_counter() - start)
        if self.options.seconds == 0:  # what was saved changes nothing of what comes after
            move_on(generators, int(left))
        self.simulations += done * len(states)
        return [_choices(forest, g, states[g]) for g in range(len(states))]

    def _left(self, done: int, seconds: float) -> float:
        """How many simulations are still to come; where the clock decides, about how many."""
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
        """So many simulations in every game; 0 begins."""
        net = self._net(int(states["players"][0]))
        room, policy = (None, None) if net is None else (net.room(), np.empty((1, ACTIONS)))
        _search(states, self._ways, self._weights, forest.room(), generators, sims, room, policy)

    def _simulate_judged(
        self, states: States, generators: npt.NDArray[np.uint64], forest: Forest, sims: int
    ) -> None:
        """The same, where new positions of all games are judged together."""
        room, begins = forest.room(), sims == 0
        for _ in range(max(sims, 1)):
            _go_down(states, self._ways, self._weights, room, generators, begins)
            valued = forest.tables[: len(states), VALUED]
            undecided = np.flatnonzero(valued["phase"] != OVER)
            policy = np.zeros((len(states), ACTIONS))
            chances = np.zeros((len(states), MAX_TEAMS))
            if len(undecided):
                policy[undecided], chances[undecided] = self._judged(valued[undecided])
            _grow(self._ways, self._weights, room, policy, chances)

    def _judged(self, states: States) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        assert self._judge is not None
        policy, parts = self._judge.judge(states)
        teams = int(states["teams"].max())
        if np.shape(policy) != (len(states), ACTIONS) or np.shape(parts) != (len(states), teams):
            raise ValueError(
                f"a judge of {len(states)} games must give shapes {(len(states), ACTIONS)} and "
                f"{(len(states), teams)}, got {np.shape(policy)} and {np.shape(parts)}"
            )
        chances = np.zeros((len(states), MAX_TEAMS))
        chances[:, :teams] = parts
        return np.array(policy, np.float64, order="C"), chances

    def _room(self, trees: int) -> Forest:
        """A forest with as many trees; the last one where it will do."""
        if self._forest is None or self._forest.trees < trees:
            nodes = _LARGEST if self.options.seconds > 0 else min(self.options.sims + 1, _LARGEST)
            width = self.options.width if self.options.moves == "turn" else _WIDEST
            self._forest = Forest(trees, nodes, max(width, 5))
        return self._forest


def _position(state: np.void) -> bytes:
    """A position by value, without its generator."""
    bare = np.array(state, STATE)
    bare["generator"] = 0
    return bare.tobytes()


def _only(mask: npt.NDArray[np.int8], state: np.void) -> Choice:
    """The only legal action, as a choice without a search."""
    return Choice([int(mask.argmax())], 0, 1.0, np.zeros(int(state["teams"])))


def _are_settled(forest: Forest, games: int, left: float) -> bool:
    """Whether in no game another choice can still become the most visited one."""
    for g in range(games):
        visits = np.sort(forest.edges["visits"][g, : forest.nodes["edges"][g, 0]])
        if len(visits) > 1 and visits[-1] - visits[-2] <= left:
            return False
    return True


def _choices(forest: Forest, g: int, state: np.void) -> list[Choice]:
    """The choices at the root, most visited first, then the more valued."""
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
def _search(states, ways, weights, forest, generators, sims, net, policy):
    """So many simulations in every game; 0 begins. ``net`` and ``policy``: see `simulate`."""
    for g in range(states.shape[0]):
        s = states[g]
        bits = generators[g]
        tree = tree_of(forest, g)
        if sims == 0:
            begin(s, ways, weights[s["players"]], tree, bits)
            judge_valued(net, policy, tree)
            grow(ways, weights[s["players"]], tree, policy, 0)
        for _ in range(sims):
            bits = simulate(s, ways, weights[s["players"]], tree, bits, net, policy)
        generators[g] = bits


@entry
def _go_down(states, ways, weights, forest, generators, begins):
    """To the next leaf in every game; or ``begins``."""
    for g in range(states.shape[0]):
        s = states[g]
        tree = tree_of(forest, g)
        if begins:
            begin(s, ways, weights[s["players"]], tree, generators[g])
        else:
            generators[g] = go_down(s, ways, weights[s["players"]], tree, generators[g])


@entry
def _grow(ways, weights, forest, policy, chances):
    """Take the leaves into the trees, with what was judged."""
    for g in range(policy.shape[0]):
        tree = tree_of(forest, g)
        for team in range(chances.shape[1]):
            tree[5][team] = chances[g, team]
        grow(ways, weights[tree[4][VALUED]["players"]], tree, policy, g)
        back_up(tree)
