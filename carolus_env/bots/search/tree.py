"""The search tree of ``mcts``: kernels that choose, grow and back up, on arrays.

A node is a position that waits for a decision. An edge is one of its choices: a plan for the whole
turn, a disc or a crown's clan. A simulation goes down from the root: it plays each choice on a copy
of the game and rolls the dice, until it comes to a position that is not in the tree. That position
is added and valued, and its value is counted along the path.

Values are win probabilities, one number per team; at each node the deciding team
maximises its number. So values are never negated, and three teams, partners, or several choices in
a row need no special case.

Choices are made by PUCT (Silver et al., Nature 550, 2017):

    mean value + c * prior * sqrt(visits of the node) / (1 + visits of the edge)

where a first value of the choice counts as a visit. `Settings.leaf` says where values and priors of
a new node come from:

- `PLANNER`: the evaluation. It values the position after the best plan of a turn, since the end of
  a turn says more than its beginning, and gives the plans' first values and priors.
- `PLAYOUT`: the result of a random playout; the priors are the evaluation's.
- `CHOICES`: the win probabilities after each choice, before any dice, by a value network or an
  `Evaluator`. They are the first values, the softmax of their log odds gives the priors, and the
  node's value is that of the best choice.

Because of the dice, several positions follow one choice. With ``explicit`` chance each outcome has
its node. With ``open`` chance all outcomes in which the player to move holds the same paladins
share a node: what others have rolled differs from visit to visit, and is averaged over (open-loop
search: Perez et al., CIG 2015).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from carolus_env.bots.planner import best_crown
from carolus_env.bots.search.forest import (
    BY_PLANNER,
    CHOICES,
    EXPLICIT,
    PLANNER,
    PLAYOUT,
    Forest,
    Settings,
)
from carolus_env.bots.value import best_of
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.kernels.packed import clan_word
from carolus_env.engine.rules import CROWN_CHOICE, DISC, MAX_TEAMS, OVER
from carolus_env.engine.stepping import play_at_random
from carolus_env.networks.forward import Network, value_plans
from carolus_env.planning.heuristic import write_chances, write_scores
from carolus_env.planning.plans import (
    PlanScratch,
    first_of,
    in_turn,
    list_actions,
    list_plans,
    play,
    play_plan,
)
from carolus_env.system.arrays import F64, Bits, Int, Records, int64, uint64
from carolus_env.system.compiler import inlined, kernel, separate

_PLAYOUT_LIMIT: Final = 100_000
_SURELY: Final = 1e-6  # values are kept this far from 0 and 1


# ------------------------------------------------------------------------------------ values


@separate
def value_now(s: np.void, weights: F64, scratch: PlanScratch, chances: F64) -> None:
    """Write each team's win probability by the evaluation of the position."""
    write_scores(s, weights, scratch.features, scratch.scores)
    write_chances(scratch.scores, int64(s["teams"]), chances)


@separate
def value_by_playout(s: np.void, bits: Bits, chances: F64) -> None:
    """Play ``s`` at random by the stream ``bits``, and write each team's win probability."""
    play_at_random(s, bits, _PLAYOUT_LIMIT)
    write_shares(s, chances)


@kernel
def write_shares(s: np.void, chances: F64) -> None:
    """Write each team's win probability; equal shares while the game is not over."""
    for team in range(int64(s["teams"])):
        chances[team] = turns.team_win_share(s, team)


# ------------------------------------------------------------------------------------ growing


@kernel
def _log_odds(chance: float) -> float:
    chance = min(max(chance, _SURELY), 1.0 - _SURELY)
    return np.log(chance / (1.0 - chance))


@separate
def list_edges(s: np.void, settings: Settings, weights: F64, tree: Forest) -> None:
    """List the choices in ``s``: the best plans of a turn, best first, or the legal actions."""
    if not in_turn(s):
        tree.listed[0] = list_actions(s, tree.plans)
        tree.values[: tree.listed[0]] = 0.0
        return
    at_root = tree.used[0] == 0
    where = settings.root if at_root else settings.plans
    width = settings.root_width if at_root else settings.width
    plans, values = tree.plans[:width], tree.values[:width]
    tree.listed[0] = list_plans(s, where, weights, tree.scratch, plans, values)


@separate
def take_outcomes(s: np.void, tree: Forest) -> Int:
    """Write the candidates' log odds and the value of ``s``, that of the best candidate.

    Returns:
        The index of the best candidate by the tree's ``outcomes``.
    """
    team, count = int64(s["team"][s["player"]]), tree.listed[0]
    chosen = best_of(tree.outcomes, s, count)
    for k in range(count):
        tree.values[k] = _log_odds(tree.outcomes[k, team])
    for other in range(int64(s["teams"])):
        tree.chances[other] = tree.outcomes[chosen, other]
    return chosen


@inlined
def value_leaf(
    settings: Settings, weights: F64, tree: Forest, bits: Bits, net: Network | None
) -> None:
    """Write the value of the leaf, which is not over, as the tree's ``chances``.

    With `CHOICES` the choices' ``values`` are written too. Without a network ``net``, an
    `Evaluator` has written the ``outcomes``.
    """
    s = tree.leaf[0]
    if settings.leaf == CHOICES:
        if net is not None:
            value_plans(s, tree.plans, tree.listed[0], net, tree.after, tree.outcomes)
        take_outcomes(s, tree)
        return
    tree.after[0] = s
    if settings.leaf == PLAYOUT:
        value_by_playout(tree.after[0], generator.mix(~bits), tree.chances)
    else:
        if in_turn(s):
            play_plan(tree.after[0], tree.plans[0])
        value_now(tree.after[0], weights, tree.scratch, tree.chances)


@separate
def add_node(s: np.void, settings: Settings, tree: Forest) -> Int:
    """Add the position, whose choices are listed and valued, to the tree.

    Returns:
        The node's number; 0 when the tree is full.
    """
    nodes, edges, used = tree.nodes, tree.edges, tree.used
    plans, values, count = tree.plans, tree.values, tree.listed[0]
    teams, team = int64(s["teams"]), int64(s["team"][s["player"]])
    node, first = used[0], used[1]
    if node == nodes.shape[0] or first + count > edges.shape[0]:
        return 0
    used[0] += 1
    used[1] += count
    nodes[node]["sibling"] = 0
    nodes[node]["first_edge"] = first
    nodes[node]["edges"] = count
    nodes[node]["visits"] = 0
    nodes[node]["team"] = team
    most, total = values[0], 0.0
    for k in range(count):
        most = max(most, values[k])
    for k in range(count):
        edge = edges[first + k]
        edge["plan"] = plans[k]
        edge["prior"] = np.exp((values[k] - most) / settings.temperature)
        total += edge["prior"]
        edge["visits"] = 0
        edge["child"] = 0
        for other in range(MAX_TEAMS):
            edge["value"][other] = 0.0
        if settings.leaf == PLAYOUT:
            edge["first_value"] = 1.0 / teams
        elif settings.leaf == PLANNER and not in_turn(s):
            edge["first_value"] = tree.chances[team]
        else:
            edge["first_value"] = 1.0 / (1.0 + np.exp(-values[k]))
    for k in range(count):
        edges[first + k]["prior"] /= total
    return node


# ------------------------------------------------------------------------------------ simulations


@kernel
def best_edge(nodes: Records, edges: Records, node: Int, exploration: float) -> Int:
    """Return the choice to try next, by PUCT."""
    first, team = int64(nodes[node]["first_edge"]), int64(nodes[node]["team"])
    spread = exploration * np.sqrt(float(nodes[node]["visits"]) + 1.0)
    chosen, best = first, -1.0
    for edge in range(first, first + int64(nodes[node]["edges"])):
        visits = 1.0 + edges[edge]["visits"]
        mean = (edges[edge]["first_value"] + edges[edge]["value"][team]) / visits
        score = mean + spread * edges[edge]["prior"] / visits
        if score > best:
            chosen, best = edge, score
    return chosen


@kernel
def key_of(s: np.void, chance: Int) -> Bits:
    """Return a number that identifies this position among those after the same choice."""
    key = uint64(s["phase"]) | uint64(s["player"]) << uint64(4)
    if s["phase"] == CROWN_CHOICE:  # the supply limits the clans to take
        key |= uint64(legal.clans_to_take(s)) << uint64(8)
    for player in range(int64(s["players"])):
        if chance == EXPLICIT or (player == s["player"] and s["phase"] != DISC):
            held = clan_word(s["reserves"][player]) | uint64(s["crowns"][player]) << uint64(40)
            key = generator.mix(key ^ held)
    return key


@kernel
def child_at(nodes: Records, edges: Records, edge: Int, key: Bits) -> Int:
    """Return the node after the choice that has this key, 0 when there is none."""
    child = int64(edges[edge]["child"])
    while child != 0 and nodes[child]["key"] != key:
        child = int64(nodes[child]["sibling"])
    return child


@inlined
def _crown(s: np.void, settings: Settings, weights: F64, tree: Forest, net: Network | None) -> Any:
    """Return the clan that the crown should become, as `Settings.crowns` says, as an action."""
    if net is None or settings.crowns == BY_PLANNER:
        return best_crown(s, weights, tree.scratch)
    tree.listed[0] = list_actions(s, tree.plans)
    value_plans(s, tree.plans, tree.listed[0], net, tree.after, tree.outcomes)
    return first_of(tree.plans[take_outcomes(s, tree)])


@kernel
def roll_and_crown(
    s: np.void, settings: Settings, weights: F64, tree: Forest, net: Network | None
) -> None:
    """Roll due dice and decide crowns.

    With a network ``net``, the choices listed in the tree and their values may be overwritten.
    """
    turns.roll_on(s)
    while s["phase"] == CROWN_CHOICE:
        play(s, _crown(s, settings, weights, tree, net))
        turns.roll_on(s)


@separate
def go_down(
    s: np.void, settings: Settings, weights: F64, tree: Forest, bits: Bits, net: Network | None
) -> Bits:
    """Go from the root, which is ``s``, to a position that is over or not in the tree.

    Writes the path and the leaf, and lists the choices there. ``net`` is a `Network` or None.

    Returns:
        The advanced stream.
    """
    nodes, edges, path, leaf = tree.nodes, tree.edges, tree.path, tree.leaf[0]
    tree.leaf[0] = s
    bits = generator.step(bits)
    leaf["generator"] = generator.mix(bits)
    node, depth = 0, 0
    while depth == 0 or (node != 0 and depth + 1 < path.shape[0]):
        edge = best_edge(nodes, edges, node, settings.exploration)
        nodes[node]["visits"] += 1
        depth += 1
        path[depth] = edge
        play_plan(leaf, edges[edge]["plan"])
        roll_and_crown(leaf, settings, weights, tree, net)
        if leaf["phase"] == OVER:
            break
        node = child_at(nodes, edges, edge, key_of(leaf, settings.chance))
    path[0] = depth
    if leaf["phase"] != OVER:
        list_edges(leaf, settings, weights, tree)
    return bits


@kernel
def attach(node: Int, s: np.void, chance: Int, tree: Forest) -> None:
    """Make the node, whose position is ``s``, a child of the last choice on the path."""
    edge = tree.path[tree.path[0]]
    tree.nodes[node]["key"] = key_of(s, chance)
    tree.nodes[node]["sibling"] = tree.edges[edge]["child"]
    tree.edges[edge]["child"] = node


@kernel
def back_up(tree: Forest) -> None:
    """Count the tree's ``chances`` along the path."""
    for k in range(1, tree.path[0] + 1):
        edge = tree.edges[tree.path[k]]
        edge["visits"] += 1
        for team in range(MAX_TEAMS):
            edge["value"][team] += tree.chances[team]


@inlined
def grow(settings: Settings, weights: F64, tree: Forest, bits: Bits, net: Network | None) -> None:
    """Value the leaf and add it to the tree; count its value along the path."""
    leaf = tree.leaf[0]
    if leaf["phase"] == OVER:
        write_shares(leaf, tree.chances)
    else:
        value_leaf(settings, weights, tree, bits, net)
        node = add_node(leaf, settings, tree)
        if node != 0:  # not the root
            attach(node, leaf, settings.chance, tree)
    back_up(tree)


@inlined
def simulate(
    s: np.void, settings: Settings, weights: F64, tree: Forest, bits: Bits, net: Network | None
) -> Any:
    """Run one simulation from ``s``, the tree's root; returns the stream, advanced once."""
    bits = go_down(s, settings, weights, tree, bits, net)
    grow(settings, weights, tree, bits, net)
    return bits


@kernel
def begin(s: np.void, settings: Settings, weights: F64, tree: Forest, bits: Bits) -> None:
    """Begin a new search from ``s``, which is to be valued and added like a leaf."""
    tree.used[0], tree.used[1], tree.path[0] = 0, 0, 0
    tree.leaf[0] = s
    tree.leaf[0]["generator"] = generator.mix(bits)  # not the game's: its dice must stay hidden
    list_edges(tree.leaf[0], settings, weights, tree)
