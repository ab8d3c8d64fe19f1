"""The search tree of ``mcts``: choose, grow, back up; kernels on two arrays.

A node is a position in which somebody decides, an edge one of the choices there: a whole turn's
plan, a disc, a crown's clan (`moves` turn) or a single action (`moves` single). A simulation goes
down from the root, plays each choice on a copy of the game and rolls its dice, until it comes to a
position that is not in the tree; that one is added, valued, and the value counted along the way.

Values are chances to win, one number a team; at each node the deciding team looks at its own. So
nothing is ever negated, and three teams, partners, or several choices in a row need no special
case.

Choices are made by PUCT (Silver et al., Nature 550, 2017):

    mean value + c * prior * sqrt(visits of the node) / (1 + visits of the edge)

where the evaluation of the position after the choice counts as a first visit.

Dice make several positions follow one choice. With ``explicit`` chance every outcome has a node of
its own. With ``open`` chance those are one node in which the player to decide holds the same
paladins: what others have rolled differs from visit to visit, and is averaged over (open-loop
search: Perez et al., CIG 2015).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy import int64, uint64

from carolus_env.bots.neural.inference import judge
from carolus_env.bots.planner.bot import best_crown, play
from carolus_env.bots.planner.evaluation import write_chances, write_scores
from carolus_env.bots.planner.plans import Desk, first_of, list_plans, pack, rest_of
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.kernels.packed import clan_word
from carolus_env.engine.rules import (
    ACTIONS,
    CLANS,
    CROWN_CHOICE,
    DESTINATIONS,
    DISC,
    FIRST_PLACE,
    MAX_TEAMS,
    MOVE,
    OVER,
    PLACE,
)
from carolus_env.engine.state import STATE
from carolus_env.system.compiler import kernel, part, rare

NODE: Final = np.dtype(
    [
        ("key", "<u8"),  # which of the positions after the same choice
        ("sibling", "<i4"),  # the next of them, 0: none
        ("first_edge", "<i4"),
        ("edges", "<i4"),
        ("visits", "<i4"),
        ("team", "i1"),  # that decides
    ]
)
EDGE: Final = np.dtype(
    [
        ("plan", "<i8"),  # see `plans.pack`
        ("prior", "<f8"),  # of all edges of a node together: 1
        ("value", "<f8", (MAX_TEAMS,)),  # sum over the visits
        ("first_value", "<f8"),  # to the deciding team, before the first visit
        ("visits", "<i4"),
        ("child", "<i4"),  # the first position after it, 0: none yet
    ]
)
LONGEST: Final = 200  # choices from the root down
_USUAL_WIDTH: Final = 32  # of a position; some have more

MOVES: Final = ("turn", "single")
CHANCES: Final = ("open", "explicit")
LEAVES: Final = ("planner", "playout", "network")
TURN, SINGLE = range(len(MOVES))
OPEN, EXPLICIT = range(len(CHANCES))
PLANNER, PLAYOUT, JUDGE = range(len(LEAVES))  # a network is one kind of judge

LEAF, VALUED = range(2)
"""A tree's tables: the position that a simulation has come to, and what is valued for it."""

_PLAYOUT_LIMIT: Final = 100_000
_SURELY: Final = 1e-6  # a judge's chances are taken to be at least so far from 0 and 1


class Forest:
    """Room for searches side by side, a tree for each game.

    Args:
        trees: how many.
        nodes: positions that fit into a tree; a simulation that finds no room is valued and
            counted all the same, only nothing is added.
        width: choices that are kept of a position.
    """

    def __init__(self, trees: int, nodes: int, width: int) -> None:
        self.trees = trees
        self.nodes = np.zeros((trees, nodes), NODE)
        self.edges = np.zeros((trees, nodes * min(width, _USUAL_WIDTH) + width), EDGE)
        self.used = np.zeros((trees, 2), np.int64)  # nodes, edges
        self.listed = np.zeros(trees, np.int64)  # choices of the position that is to be added
        self.plans, self.values = np.zeros((trees, width), np.int64), np.zeros((trees, width))
        self.paths = np.zeros((trees, LONGEST + 1), np.int64)  # how long, then the edges
        self.tables = np.zeros((trees, 2), STATE)  # `LEAF` and `VALUED`
        self.chances = np.zeros((trees, MAX_TEAMS))
        self.desk = Desk()

    def room(self) -> tuple[Any, ...]:
        """What the kernels take as ``forest``."""
        return (
            self.nodes,
            self.edges,
            self.used,
            self.paths,
            self.tables,
            self.chances,
            (self.listed, self.plans, self.values),
            self.desk.room(),
        )


@kernel
def tree_of(forest, g):
    """The tree of game ``g``."""
    nodes, edges, used, paths, tables, chances, (listed, plans, values), desk = forest
    choices = listed[g : g + 1], plans[g], values[g]
    return nodes[g], edges[g], used[g], paths[g], tables[g], chances[g], choices, desk


# ------------------------------------------------------------------------------------ values


@rare
def value_now(s, weights, desk, chances):
    """Each team's chance by the evaluation of the position as it is."""
    _, _, features, scores = desk
    write_scores(s, weights, features, scores)
    write_chances(scores, int64(s["teams"]), chances)


@rare
def value_by_playout(s, bits, chances):
    """Each team's part of the win when the game is played on at random, by a stream ``bits`` of its
    own; plays ``s`` on."""
    played = 0
    while s["phase"] != OVER and played < _PLAYOUT_LIMIT:
        bits = generator.step(bits)
        play(s, legal.random_action(legal.legal_set(s), generator.mix(bits)))
        turns.roll_on(s)
        played += 1
    write_parts(s, chances)


@kernel
def write_parts(s, chances):
    """Each team's part of the win of a game that is over; of one that is not, equal parts."""
    teams = int64(s["teams"])
    winners = int64(s["winners"])
    winners = (1 << teams) - 1 if winners == 0 else winners
    sharing = (winners & 1) + (winners >> 1 & 1) + (winners >> 2 & 1)
    for team in range(teams):
        chances[team] = (winners >> team & 1) / sharing


# ------------------------------------------------------------------------------------ growing


@kernel
def _list_actions(s, plans, previous):
    """Every legal action as a choice of its own; a turn's placements in ascending order only.

    ``previous`` is the action before. No other order leads anywhere else; so of the clans from a
    placement's on there must be as many paladins as are still to be played.
    """
    number = legal.legal_set(s)
    placing = s["phase"] == PLACE
    count = 0
    for action in range(previous if placing and previous >= FIRST_PLACE else 0, ACTIONS):
        if not legal.allows(number, action):
            continue
        if placing:
            left = 0
            for clan in range((action - FIRST_PLACE) // DESTINATIONS, CLANS):
                left += int64(s["reserves"][s["player"], clan])
            if left < s["placements_left"]:
                continue
        plans[count] = pack(0, action, 0)
        count += 1
    return count


@kernel
def in_turn(s):
    return s["phase"] == PLACE or s["phase"] == MOVE


@kernel
def play_plan(s, plan):
    """Play a choice; returns its last action."""
    action = 0
    while plan != 0:
        action = first_of(plan)
        play(s, action)
        plan = rest_of(plan)
    return action


@kernel
def _log_odds(chance):
    chance = min(max(chance, _SURELY), 1.0 - _SURELY)
    return np.log(chance / (1.0 - chance))


@rare
def list_choices(s, options, weights, tree, previous):
    """List the choices in ``s``, plans best ones first, and lay out the position to be valued.

    That is ``s`` itself; where a whole turn is to be planned, the position after its best plan, and
    for a judge, who knows positions in which somebody decides, after the dice as well: what a turn
    leads to says more than what might be made of it. ``previous`` is the action before.
    """
    moves, _, leaf, plan_width, root_width, _, _, kept = options
    _, _, used, _, table, _, (listed, plans, values), desk = tree
    table[VALUED] = s
    if moves == SINGLE or not in_turn(s):
        listed[0] = _list_actions(s, plans, previous)
        values[: listed[0]] = 0.0
        return
    width = root_width if used[0] == 0 else plan_width
    listed[0] = list_plans(s, width, weights, desk, plans[:kept], values[:kept])
    play_plan(table[VALUED], plans[0])
    if leaf == JUDGE:
        roll_and_crown(table[VALUED], moves, weights, desk)


@rare
def add_node(s, options, weights, tree, policy, row):
    """Add the position, whose choices are listed, to the tree.

    The tree's ``chances`` are its value: a judge has written them, and ``policy`` is ``(N, 95)``,
    log probabilities of the actions, and ``row`` which of them. Without a judge ``policy`` is None
    and the evaluation writes the chances here, where ``options`` ask for it.

    Returns:
        The node's number, 0 when there is no room.
    """
    moves, _, leaf, _, _, temperature, _, _ = options
    nodes, edges, used, _, table, chances, (listed, plans, values), desk = tree
    teams, team = int64(s["teams"]), int64(s["team"][s["player"]])
    count = listed[0]
    whole_turn = moves == TURN and in_turn(s)
    if leaf == PLANNER:
        value_now(table[VALUED], weights, desk, chances)
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
    shift = 0.0  # from the evaluation's log odds to the judge's
    if policy is not None:
        if not whole_turn:
            for k in range(count):
                values[k] = temperature * policy[row, first_of(plans[k])]
        elif table[VALUED]["winners"] == 0:  # else the evaluation knows as well as anybody
            shift = _log_odds(chances[team]) - values[0]
    most, total = values[0], 0.0
    for k in range(count):
        most = max(most, values[k])
    for k in range(count):
        edge = edges[first + k]
        edge["plan"] = plans[k]
        edge["prior"] = np.exp((values[k] - most) / temperature)
        total += edge["prior"]
        edge["visits"] = 0
        edge["child"] = 0
        for other in range(MAX_TEAMS):
            edge["value"][other] = 0.0
        edge["first_value"] = 1.0 / teams if leaf == PLAYOUT else chances[team]
        if whole_turn and leaf != PLAYOUT:
            edge["first_value"] = 1.0 / (1.0 + np.exp(-(values[k] + shift)))
    for k in range(count):
        edges[first + k]["prior"] /= total
    return node


# ------------------------------------------------------------------------------------ simulations


@kernel
def best_edge(nodes, edges, node, exploration):
    """The choice to look at next."""
    first, team = int64(nodes[node]["first_edge"]), int64(nodes[node]["team"])
    spread = exploration * np.sqrt(float(nodes[node]["visits"]) + 1.0)
    chosen, best = first, -1.0
    for edge in range(first, first + int64(nodes[node]["edges"])):
        seen = 1.0 + edges[edge]["visits"]
        mean = (edges[edge]["first_value"] + edges[edge]["value"][team]) / seen
        score = mean + spread * edges[edge]["prior"] / seen
        if score > best:
            chosen, best = edge, score
    return chosen


@kernel
def key_of(s, chance):
    """Which of the positions after a choice this is."""
    key = uint64(s["phase"]) | uint64(s["player"]) << uint64(4)
    if s["phase"] == CROWN_CHOICE:  # what is left of the supply says what may be taken
        key |= uint64(legal.clans_to_take(s)) << uint64(8)
    for player in range(int64(s["players"])):
        if chance == EXPLICIT or (player == s["player"] and s["phase"] != DISC):
            held = clan_word(s["reserves"][player]) | uint64(s["crowns"][player]) << uint64(40)
            key = generator.mix(key ^ held)
    return key


@kernel
def child_at(nodes, edges, edge, key):
    """The node of that position after the choice, 0 when there is none."""
    child = int64(edges[edge]["child"])
    while child != 0 and nodes[child]["key"] != key:
        child = int64(nodes[child]["sibling"])
    return child


@kernel
def roll_and_crown(s, moves, weights, desk):
    """Roll what is due; where choices are whole turns, crowns are decided at once."""
    turns.roll_on(s)
    while moves == TURN and s["phase"] == CROWN_CHOICE:
        play(s, best_crown(s, weights, desk))
        turns.roll_on(s)


@rare
def go_down(s, options, weights, tree, bits):
    """From the root, which is ``s``, to a position that is over or not in the tree.

    Writes the way there into the tree's path and the position on its table, and lists the choices
    there.

    Returns:
        The random stream.
    """
    moves, chance, _, _, _, _, exploration, _ = options
    nodes, edges, _, path, table, _, _, desk = tree
    at = table[LEAF]
    table[LEAF] = s
    bits = generator.step(bits)
    at["generator"] = generator.mix(bits)
    node, depth, last = 0, 0, 0
    while depth == 0 or (node != 0 and depth + 1 < path.shape[0]):
        edge = best_edge(nodes, edges, node, exploration)
        nodes[node]["visits"] += 1
        depth += 1
        path[depth] = edge
        last = play_plan(at, edges[edge]["plan"])
        roll_and_crown(at, moves, weights, desk)
        if at["phase"] == OVER:
            break
        node = child_at(nodes, edges, edge, key_of(at, chance))
    path[0] = depth
    if at["phase"] == OVER:
        table[VALUED] = at
    else:
        list_choices(at, options, weights, tree, last)
    return bits


@kernel
def attach(node, s, chance, tree):
    """The node is one of the positions after the last choice on the path."""
    nodes, edges, _, path = tree[0], tree[1], tree[2], tree[3]
    edge = path[path[0]]
    nodes[node]["key"] = key_of(s, chance)
    nodes[node]["sibling"] = edges[edge]["child"]
    edges[edge]["child"] = node


@kernel
def back_up(tree):
    """Count the tree's ``chances`` along the path."""
    edges, path, chances = tree[1], tree[3], tree[5]
    for k in range(1, path[0] + 1):
        edge = edges[path[k]]
        edge["visits"] += 1
        for team in range(MAX_TEAMS):
            edge["value"][team] += chances[team]


@part
def grow(options, weights, tree, policy, row):
    """Take the position that the simulation has come to into the tree."""
    valued, leaf = tree[4][VALUED], tree[4][LEAF]
    if valued["phase"] == OVER:
        write_parts(valued, tree[5])
    if leaf["phase"] == OVER:
        return
    node = add_node(leaf, options, weights, tree, policy, row)
    if node != 0:
        attach(node, leaf, options[1], tree)


@part
def judge_valued(net, policy, tree):
    """A network writes the chances of the position that is to be valued, and its ``policy[0]``."""
    valued = tree[4][VALUED]
    if net is not None and valued["phase"] != OVER:
        judge(valued, net, policy, 0, tree[5])


@part
def simulate(s, options, weights, tree, bits, net, policy):
    """One simulation from ``s``, the tree's root; returns the random stream, moved on once.

    A network ``net`` judges what the new position is worth, with room for its ``policy``
    ``(1, 95)``; both None: by ``options``.
    """
    bits = go_down(s, options, weights, tree, bits)
    judge_valued(net, policy, tree)
    grow(options, weights, tree, policy, 0)
    leaf = tree[4][LEAF]
    if net is None and options[2] == PLAYOUT and leaf["phase"] != OVER:
        value_by_playout(leaf, generator.mix(~bits), tree[5])
    back_up(tree)
    return bits


@kernel
def begin(s, options, weights, tree, bits):
    """Begin a new search from ``s``, which is to be judged and taken in like a leaf."""
    _, _, used, path, table, _, _, _ = tree
    used[0], used[1], path[0] = 0, 0, 0
    table[LEAF] = s
    table[LEAF]["generator"] = generator.mix(bits)  # nobody sees the dice of the game itself
    list_choices(table[LEAF], options, weights, tree, 0)
