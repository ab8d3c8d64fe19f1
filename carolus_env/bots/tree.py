"""The search tree: kernels that choose, grow and back up, on arrays.

A node is a position that waits for a decision, an edge one of its choices: a plan for the whole
turn, a disc or a crown's clan. A simulation plays choices on a copy of the game and rolls the dice,
down to a position that is not in the tree. That is added and valued, and its value is counted along
the path. At each node the deciding team maximises its own win probability: nothing is negated.

At the root choices are compared by *sequential halving* (Karnin, Koren and Somekh, ICML 2013; at
the root of a tree: Danihelka et al., ICLR 2022), below it by PUCT (Silver et al., Nature 550,
2017). There a first value of the choice counts as a visit, and priors are the softmax of the first
values' log odds. A network or an `Evaluator` gives the first values, and a new node has that of its
best choice; without one they are the evaluation's of the plans that it lists, and a node's is that
after the best plan, or of the position itself where no turn is due.

Because of the dice, several positions follow one choice. Those in which the player to move holds
the same paladins share a node (open-loop search: Perez et al., CIG 2015).
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np

from carolus_env.bots.baselines import best_crown
from carolus_env.bots.network import best_of
from carolus_env.engine.chance import branch
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.kernels.courts import clan_word
from carolus_env.engine.rules import CROWN_CHOICE, DISC, DISCS, MAX_TEAMS, OVER
from carolus_env.engine.state import STATE
from carolus_env.networks.network import Network, value_plans, write_shares
from carolus_env.planning import plans
from carolus_env.planning.heuristic import softmax, write_scores
from carolus_env.planning.plans import PlanScratch, in_turn, play, play_plan
from carolus_env.system.arrays import F64, I64, Bits, Int, Records, allocate, int64, uint64
from carolus_env.system.compiler import inlined, kernel, separate

CONSIDERED: Final = 16  # number of choices that are compared at the root
LOST: Final = 0.01  # win probability under which a choice seems lost
PLANS_AHEAD: Final = 12  # maximum number of plans considered in a later turn
EXPLORATION: Final = 0.2  # the factor c of PUCT
LONGEST: Final = 200  # maximum number of choices on a path
_SURELY: Final = 1e-6  # values are kept this far from 0 and 1

NODE: Final = np.dtype([
    ("key", "<u8"),  # identifies a position among those after one choice
    ("sibling", "<i4"),  # the next of these positions, 0: none
    ("first_edge", "<i4"),
    ("edges", "<i4"),  # number of choices
    ("visits", "<i4"),
    ("team", "i1"),  # the team to move
])  # fmt: skip
EDGE: Final = np.dtype([
    ("plan", "<i8"),  # see `plans.pack`
    ("prior", "<f8"),  # sums to 1 over the edges of a node
    ("value", "<f8", (MAX_TEAMS,)),  # sum over the visits
    ("first_value", "<f8"),  # to the team to move, before the first visit
    ("visits", "<i4"),
    ("child", "<i4"),  # the first position after it, 0: none yet
])  # fmt: skip
HALVING: Final = np.dtype([
    ("rounds", "<i8"),  # number of rounds; 0: the first has not begun
    ("round", "<i8"),  # the present one
    ("compared", "<i8"),  # number of choices that are compared in it
    ("next", "<i8"),  # the place in the order of the next to try
    ("tried", "<i8"),  # number of choices tried at all
])  # fmt: skip


class Forest(NamedTuple):
    """Memory for searches side by side, a tree for each game; or without the first axis for one."""

    nodes: Annotated[Records, "trees", "nodes", NODE]  # the first is the root
    edges: Annotated[Records, "trees", "edges", EDGE]  # those of a node stand side by side
    used: Annotated[I64, "trees", 2]  # the numbers of nodes and of edges in use
    halving: Annotated[Records, "trees", 1, HALVING]  # the comparisons at the root
    order: Annotated[I64, "trees", "width"]  # the root's edges, those that are compared first
    path: Annotated[I64, "trees", LONGEST + 1]  # length of the simulation's path, then its edges
    leaf: Annotated[Records, "trees", 1, STATE]  # the position that the simulation has come to
    after: Annotated[Records, "trees", 1, STATE]  # scratch: the position after a choice
    chances: Annotated[F64, "trees", MAX_TEAMS]  # the leaf's value, each team's win probability
    listed: Annotated[I64, "trees", 1]  # the number of choices at the leaf
    plans: Annotated[I64, "trees", "width"]  # these choices, see `plans.pack`
    values: Annotated[F64, "trees", "width"]  # the log odds of their first values
    outcomes: Annotated[F64, "trees", "width", MAX_TEAMS]  # win probabilities after each, if known
    scratch: PlanScratch  # reused for each tree

    @classmethod
    def new(cls, trees: int, nodes: int, candidates: int) -> Forest:
        """Allocate memory for trees of so many positions, and so many plans at the root.

        When a tree is full, simulations still value and count their leaves, but do not add them.
        """
        width = max(candidates, PLANS_AHEAD, DISCS)
        edges = nodes * PLANS_AHEAD + width
        return allocate(cls, trees=trees, nodes=nodes, edges=edges, width=width)


@kernel
def tree_of(forest: Forest, g: Int) -> Forest:
    """Return the part of game ``g``, as views; the scratch is shared."""
    f = forest
    return Forest(
        f.nodes[g], f.edges[g], f.used[g], f.halving[g], f.order[g], f.path[g], f.leaf[g],
        f.after[g], f.chances[g], f.listed[g], f.plans[g], f.values[g], f.outcomes[g], f.scratch,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ values


@kernel
def _log_odds(chance: float) -> float:
    chance = min(max(chance, _SURELY), 1.0 - _SURELY)
    return np.log(chance / (1.0 - chance))


@separate
def list_choices(s: np.void, weights: F64, tree: Forest, candidates: Int) -> None:
    """List the choices in ``s``: the best plans of a turn, best first, or the legal actions.

    Of plans the values are written, too. ``candidates``: most plans at the root; 0: elsewhere.
    """
    if not in_turn(s):
        tree.listed[0] = plans.list_actions(s, tree.plans)
        return
    # at the root as `network.PLANS`
    width = plans.ONE if candidates > 0 and s["teams"] == 2 else plans.STOP
    most = candidates if candidates > 0 else PLANS_AHEAD
    listed, values = tree.plans[:most], tree.values[:most]
    tree.listed[0] = plans.list_plans(s, width, weights, tree.scratch, listed, values)


@separate
def take_outcomes(s: np.void, tree: Forest) -> None:
    """Write the choices' log odds and the value of ``s``, that of the best, from ``outcomes``."""
    team, count = int64(s["team"][s["player"]]), tree.listed[0]
    chosen = best_of(tree.outcomes, s, count)
    for k in range(count):
        tree.values[k] = _log_odds(tree.outcomes[k, team])
    for other in range(int64(s["teams"])):
        tree.chances[other] = tree.outcomes[chosen, other]


@separate
def value_by_evaluation(s: np.void, weights: F64, tree: Forest) -> None:
    """Write the value of ``s`` by the planner's evaluation, which discs and crowns have, too."""
    tree.after[0] = s
    after, scratch = tree.after[0], tree.scratch
    if in_turn(s):
        play_plan(after, tree.plans[0])
    write_scores(after, weights, scratch.features, scratch.scores)
    softmax(int64(s["teams"]), scratch.scores, tree.chances)
    if not in_turn(s):
        tree.values[: tree.listed[0]] = _log_odds(tree.chances[int64(s["team"][s["player"]])])


@separate
def add_node(s: np.void, tree: Forest) -> Int:
    """Add the position, whose choices are listed and valued; returns the node, 0: no room."""
    nodes, edges, used = tree.nodes, tree.edges, tree.used
    values, count = tree.values, tree.listed[0]
    number, first = used[0], used[1]
    if number == nodes.shape[0] or first + count > edges.shape[0]:
        return 0
    used[0] += 1
    used[1] += count
    node = nodes[number]
    node["sibling"], node["first_edge"], node["edges"] = 0, first, count
    node["visits"], node["team"] = 0, s["team"][s["player"]]
    softmax(count, values, edges["prior"][first:])
    for k in range(count):
        edge = edges[first + k]
        edge["plan"], edge["visits"], edge["child"] = tree.plans[k], 0, 0
        edge["first_value"] = 1.0 / (1.0 + np.exp(-values[k]))
        for other in range(MAX_TEAMS):
            edge["value"][other] = 0.0
    return number


# ------------------------------------------------------------------------------------ the root


@kernel
def _order_best(tree: Forest, begin: Int, end: Int, most: Int) -> None:
    """Bring the best ``most`` of the root's edges at ``begin`` to ``end`` of the order forward.

    Edges that were tried are ordered by their means, others by their first values.
    """
    edges, order, team = tree.edges, tree.order, int64(tree.nodes[0]["team"])
    for first in range(begin, begin + most):
        best, highest = first, -1.0
        for k in range(first, end):
            edge = edges[order[k]]
            visits = int64(edge["visits"])
            value = edge["value"][team] / visits if visits > 0 else edge["first_value"]
            if value > highest:
                best, highest = k, value
        order[best], order[first] = order[first], order[best]


@kernel
def _begin_halving(tree: Forest) -> None:
    """Begin the first round, in which the choices are compared that are best at first sight."""
    count, halving = int64(tree.nodes[0]["edges"]), tree.halving[0]
    for k in range(count):
        tree.order[k] = k
    compared, rounds = min(CONSIDERED, count), 1
    while 1 << rounds < compared:
        rounds += 1
    _order_best(tree, 0, count, compared)
    halving["rounds"], halving["round"], halving["next"] = rounds, 0, 0
    halving["compared"], halving["tried"] = compared, compared


@kernel
def _pass_on(tree: Forest, spent: float) -> None:
    """Begin to try the choices once more: others if all lose, the better half if it is time."""
    halving, order, count = tree.halving[0], tree.order, int64(tree.nodes[0]["edges"])
    compared, tried = int64(halving["compared"]), int64(halving["tried"])
    halving["next"] = 0
    _order_best(tree, 0, compared, compared)
    best, team = tree.edges[order[0]], int64(tree.nodes[0]["team"])
    if best["value"][team] < LOST * best["visits"] and tried < count:
        fresh = min(compared, count - tried)
        _order_best(tree, tried, count, fresh)
        for k in range(fresh):
            order[k], order[tried + k] = order[tried + k], order[k]
        halving["compared"], halving["tried"] = fresh, tried + fresh
        return
    due = min(int64(spent * halving["rounds"]), int64(halving["rounds"]) - 1)
    while halving["round"] < due:
        halving["round"] += 1
        compared = max((compared + 1) // 2, min(2, count))
    halving["compared"] = compared


@kernel
def next_choice(tree: Forest, spent: float) -> Int:
    """Return the edge to try next at the root, when that part of the budget is spent, 0 to 1."""
    halving = tree.halving[0]
    if halving["rounds"] == 0:
        _begin_halving(tree)
    elif halving["next"] == halving["compared"]:
        _pass_on(tree, spent)
    halving["next"] += 1
    return tree.order[halving["next"] - 1]


@kernel
def best_edge(nodes: Records, edges: Records, node: Int) -> Int:
    """Return the choice to try next below the root, by PUCT."""
    first, team = int64(nodes[node]["first_edge"]), int64(nodes[node]["team"])
    spread = EXPLORATION * np.sqrt(float(nodes[node]["visits"]) + 1.0)
    chosen, best = first, -1.0
    for edge in range(first, first + int64(nodes[node]["edges"])):
        visits = 1.0 + edges[edge]["visits"]
        mean = (edges[edge]["first_value"] + edges[edge]["value"][team]) / visits
        score = mean + spread * edges[edge]["prior"] / visits
        if score > best:
            chosen, best = edge, score
    return chosen


@kernel
def key_of(s: np.void) -> Bits:
    """Return a number that identifies this position among those after the same choice."""
    key, player = uint64(s["phase"]) | uint64(s["player"]) << uint64(4), int64(s["player"])
    if s["phase"] != DISC:
        held = clan_word(s["reserves"][player]) | uint64(s["crowns"][player]) << uint64(40)
        key = generator.mix(key ^ held)
    return key


@separate
def go_down(s: np.void, weights: F64, tree: Forest, dice: Bits, spent: float) -> None:
    """Go from the root, which is ``s``, to a position that is over or not in the tree.

    Writes the path and the leaf, and lists the choices there. Crowns become what the planner
    chooses. ``dice`` is the search's stream: the k-th visits of all the root's choices meet the
    same dice.
    """
    nodes, edges, path, leaf = tree.nodes, tree.edges, tree.path, tree.leaf[0]
    tree.leaf[0] = s
    edge, depth, node = next_choice(tree, spent), 0, 0
    leaf["generator"] = branch(dice, uint64(edges[edge]["visits"]))
    while depth == 0 or (node != 0 and depth + 1 < path.shape[0]):
        edge = best_edge(nodes, edges, node) if depth > 0 else edge
        nodes[node]["visits"] += 1
        depth += 1
        path[depth] = edge
        play_plan(leaf, edges[edge]["plan"])
        turns.roll_on(leaf)
        while leaf["phase"] == CROWN_CHOICE:
            play(leaf, best_crown(leaf, weights, tree.scratch))
            turns.roll_on(leaf)
        if leaf["phase"] == OVER:
            break
        key, node = key_of(leaf), int64(edges[edge]["child"])
        while node != 0 and nodes[node]["key"] != key:
            node = int64(nodes[node]["sibling"])
    path[0] = depth
    if leaf["phase"] != OVER:
        list_choices(leaf, weights, tree, 0)


@separate
def grow(tree: Forest) -> None:
    """Add the leaf, whose value is written, to the tree, and count the value along the path."""
    leaf, path = tree.leaf[0], tree.path
    if leaf["phase"] == OVER:
        write_shares(leaf, tree.chances)
    else:
        node = add_node(leaf, tree)
        if node != 0:  # not the root
            edge = tree.edges[path[path[0]]]
            tree.nodes[node]["key"] = key_of(leaf)
            tree.nodes[node]["sibling"] = edge["child"]
            edge["child"] = node
    for k in range(1, path[0] + 1):
        edge = tree.edges[path[k]]
        edge["visits"] += 1
        for team in range(MAX_TEAMS):
            edge["value"][team] += tree.chances[team]


@inlined
def value_and_grow(weights: F64, tree: Forest, net: Network | None) -> None:
    """Value the leaf by the network, or by the planner's evaluation without one, and add it."""
    leaf = tree.leaf[0]
    if leaf["phase"] != OVER:
        if net is None:
            value_by_evaluation(leaf, weights, tree)
        else:
            value_plans(leaf, tree.plans, tree.listed[0], net, tree.after, tree.outcomes)
            take_outcomes(leaf, tree)
    grow(tree)


@kernel
def begin(s: np.void, weights: F64, tree: Forest, dice: Bits, candidates: Int) -> None:
    """Begin a new search from ``s``, which is to be valued and added like a leaf."""
    tree.used[0], tree.used[1], tree.path[0], tree.halving[0]["rounds"] = 0, 0, 0, 0
    tree.leaf[0] = s
    tree.leaf[0]["generator"] = dice  # not the game's: its dice must stay hidden
    list_choices(tree.leaf[0], weights, tree, candidates)
