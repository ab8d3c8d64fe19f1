"""The search tree of ``mcts``: kernels that choose, grow and back up, on arrays.

A node is a position that waits for a decision. An edge is one of its choices: a plan for the whole
turn, a disc or a crown's clan (`MOVES` turn), or a single action (`MOVES` single). A simulation
goes down from the root: it plays each choice on a copy of the game and rolls the dice, until it
comes to a position that is not in the tree. That position is added and valued, and its value is
counted along the path.

Values are expected shares of the win, one number per team; at each node the deciding team
maximises its number. So values are never negated, and three teams, partners, or several choices in
a row need no special case.

Choices are made by PUCT (Silver et al., Nature 550, 2017):

    mean value + c * prior * sqrt(visits of the node) / (1 + visits of the edge)

where the evaluation of the position after the choice counts as a first visit.

Because of the dice, several positions follow one choice. With ``explicit`` chance each outcome has
its node. With ``open`` chance all outcomes in which the player to move holds the same paladins
share a node: what others have rolled differs from visit to visit, and is averaged over (open-loop
search: Perez et al., CIG 2015).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy import int64, uint64

from carolus_env.bots.neural.inference import judge
from carolus_env.bots.planner.bot import best_crown
from carolus_env.bots.planner.choices import in_turn
from carolus_env.bots.planner.evaluation import write_chances, write_scores
from carolus_env.bots.planner.plans import first_of, list_plans, pack, play, play_plan
from carolus_env.bots.search.forest import (
    BY_PLANNER,
    EXPLICIT,
    JUDGE,
    PLANNER,
    PLAYOUT,
    SINGLE,
    TURN,
    VALUE,
)
from carolus_env.bots.value.inference import forget_sums, write_value
from carolus_env.engine.kernels import actions, generator, legal, turns
from carolus_env.engine.kernels.packed import clan_word
from carolus_env.engine.rules import (
    ACTIONS,
    CLANS,
    CROWN_CHOICE,
    DISC,
    FIRST_PLACE,
    MAX_TEAMS,
    OVER,
    PLACE,
)
from carolus_env.system.compiler import kernel, part, rare

_PLAYOUT_LIMIT: Final = 100_000
_SURELY: Final = 1e-6  # a judge's values are kept this far from 0 and 1


# ------------------------------------------------------------------------------------ values


@rare
def value_now(s, weights, scratch, chances):
    """Write each team's win probability by the evaluation of the position."""
    write_scores(s, weights, scratch.features, scratch.scores)
    write_chances(scratch.scores, int64(s["teams"]), chances)


@rare
def value_by_playout(s, bits, chances):
    """Play ``s`` at random by the stream ``bits``, and write each team's share of the win."""
    played = 0
    while s["phase"] != OVER and played < _PLAYOUT_LIMIT:
        bits = generator.step(bits)
        play(s, legal.random_action(legal.legal_set(s), generator.mix(bits)))
        turns.roll_on(s)
        played += 1
    write_shares(s, chances)


@kernel
def write_shares(s, chances):
    """Write each team's share of the win; equal shares while the game is not over."""
    for team in range(int64(s["teams"])):
        chances[team] = turns.team_win_share(s, team)


# ------------------------------------------------------------------------------------ growing


@kernel
def _list_actions(s, plans, previous):
    """List every legal action as a choice, but placements of a turn in ascending order only.

    Every order leads to the same position. So the clans from a placement's clan on must have as
    many paladins in the reserve as are still to be placed. ``previous`` is the action before.
    """
    legal_set = legal.legal_set(s)
    placing = s["phase"] == PLACE
    count = 0
    for action in range(previous if placing and previous >= FIRST_PLACE else 0, ACTIONS):
        if not legal.allows(legal_set, action):
            continue
        if placing:
            left = 0
            for clan in range(actions.clan_of(action), CLANS):
                left += int64(s["reserves"][s["player"], clan])
            if left < s["placements_left"]:
                continue
        plans[count] = pack(0, action, 0)
        count += 1
    return count


@kernel
def _log_odds(chance):
    chance = min(max(chance, _SURELY), 1.0 - _SURELY)
    return np.log(chance / (1.0 - chance))


@rare
def list_choices(s, settings, weights, tree, previous):
    """List the choices in ``s``, best plans first, and write the position to value.

    That is ``s`` itself, or, where a whole turn is to be planned, the position after its best plan:
    the end of a turn says more than its beginning. For a judge, which values positions that wait
    for a decision, due dice are rolled as well. With the leaf `VALUE` it is always ``s``, see
    `value_choices`. ``previous`` is the action before.
    """
    tree.valued[0] = s
    if settings.moves == SINGLE or not in_turn(s):
        tree.listed[0] = _list_actions(s, tree.plans, previous)
        tree.values[: tree.listed[0]] = 0.0
        return
    at_root = tree.used[0] == 0
    where = settings.root if at_root else settings.plans
    width = settings.root_width if at_root else settings.width
    plans, values = tree.plans[:width], tree.values[:width]
    tree.listed[0] = list_plans(s, where, weights, tree.scratch, plans, values)
    if settings.leaf == VALUE:
        return
    play_plan(tree.valued[0], plans[0])
    if settings.leaf == JUDGE:
        roll_and_crown(tree.valued[0], settings, weights, tree, None)


@rare
def value_choices(s, value, tree):
    """Value the listed choices of ``s`` by the positions after them, before any dice.

    Writes the log odds of the team to move after each choice, and as the tree's ``chances`` the
    value after the choice that is best for it; returns the index of that choice.

    Args:
        s: the position.
        value: a `ValueNet`.
        tree: a `forest.Tree`.
    """
    team, chosen, best, found = int64(s["team"][s["player"]]), 0, -1.0, tree.found
    forget_sums(value)
    for k in range(tree.listed[0]):
        tree.valued[0] = s
        play_plan(tree.valued[0], tree.plans[k])
        write_value(tree.valued[0], value, found, like=True)
        tree.values[k] = _log_odds(found[team])
        if found[team] > best:
            chosen, best = k, found[team]
            for other in range(int64(s["teams"])):
                tree.chances[other] = found[other]
    tree.valued[0] = s
    return chosen


@rare
def add_node(s, settings, weights, tree, policy, row):
    """Add the position, whose choices are listed, to the tree.

    Args:
        s: the position.
        settings: `forest.Settings`.
        weights: ``(F,)`` of the evaluation.
        tree: a `forest.Tree`. A judge has written its ``chances``, or `value_choices` has; with the
            leaf `PLANNER` they are written here, by the evaluation.
        policy: ``(N, 95)`` log probabilities of the actions by a judge; None without a judge.
        row: the row of ``policy`` that belongs to ``s``.

    Returns:
        The node's number; 0 when the tree is full.
    """
    nodes, edges, used, chances = tree.nodes, tree.edges, tree.used, tree.chances
    plans, values, count = tree.plans, tree.values, tree.listed[0]
    temperature = settings.temperature
    teams, team = int64(s["teams"]), int64(s["team"][s["player"]])
    whole_turn = settings.moves == TURN and in_turn(s)
    if settings.leaf == PLANNER:
        value_now(tree.valued[0], weights, tree.scratch, chances)
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
        elif tree.valued[0]["winners"] == 0:  # else the evaluation is exact
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
        edge["first_value"] = 1.0 / teams if settings.leaf == PLAYOUT else chances[team]
        if settings.leaf == VALUE or (whole_turn and settings.leaf != PLAYOUT):
            edge["first_value"] = 1.0 / (1.0 + np.exp(-(values[k] + shift)))
    for k in range(count):
        edges[first + k]["prior"] /= total
    return node


# ------------------------------------------------------------------------------------ simulations


@kernel
def best_edge(nodes, edges, node, exploration):
    """The choice to try next, by PUCT."""
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
    """A number that identifies this position among those after the same choice."""
    key = uint64(s["phase"]) | uint64(s["player"]) << uint64(4)
    if s["phase"] == CROWN_CHOICE:  # the supply limits the clans to take
        key |= uint64(legal.clans_to_take(s)) << uint64(8)
    for player in range(int64(s["players"])):
        if chance == EXPLICIT or (player == s["player"] and s["phase"] != DISC):
            held = clan_word(s["reserves"][player]) | uint64(s["crowns"][player]) << uint64(40)
            key = generator.mix(key ^ held)
    return key


@kernel
def child_at(nodes, edges, edge, key):
    """The node after the choice that has this key, 0 when there is none."""
    child = int64(edges[edge]["child"])
    while child != 0 and nodes[child]["key"] != key:
        child = int64(nodes[child]["sibling"])
    return child


@part
def _crown(s, settings, weights, tree, value):
    """The clan that the crown should become, as `Settings.crowns` says, as an action."""
    if value is None:
        return best_crown(s, weights, tree.scratch)
    if settings.crowns == BY_PLANNER:
        return best_crown(s, weights, tree.scratch)
    tree.listed[0] = _list_actions(s, tree.plans, 0)
    return first_of(tree.plans[value_choices(s, value, tree)])


@kernel
def roll_and_crown(s, settings, weights, tree, value):
    """Roll due dice; where choices are whole turns, also decide crowns.

    With a value network ``value``, the choices listed in the tree, their values and ``valued`` may
    be overwritten.
    """
    turns.roll_on(s)
    while settings.moves == TURN and s["phase"] == CROWN_CHOICE:
        play(s, _crown(s, settings, weights, tree, value))
        turns.roll_on(s)


@rare
def go_down(s, settings, weights, tree, bits, value):
    """Go from the root, which is ``s``, to a position that is over or not in the tree.

    Writes the path and the leaf, and lists the choices there. ``value`` is a `ValueNet` or None.

    Returns:
        The advanced stream.
    """
    nodes, edges, path, leaf = tree.nodes, tree.edges, tree.path, tree.leaf[0]
    tree.leaf[0] = s
    bits = generator.step(bits)
    leaf["generator"] = generator.mix(bits)
    node, depth, last = 0, 0, 0
    while depth == 0 or (node != 0 and depth + 1 < path.shape[0]):
        edge = best_edge(nodes, edges, node, settings.exploration)
        nodes[node]["visits"] += 1
        depth += 1
        path[depth] = edge
        last = play_plan(leaf, edges[edge]["plan"])
        roll_and_crown(leaf, settings, weights, tree, value)
        if leaf["phase"] == OVER:
            break
        node = child_at(nodes, edges, edge, key_of(leaf, settings.chance))
    path[0] = depth
    if leaf["phase"] == OVER:
        tree.valued[0] = leaf
    else:
        list_choices(leaf, settings, weights, tree, last)
    return bits


@kernel
def attach(node, s, chance, tree):
    """Make the node, whose position is ``s``, a child of the last choice on the path."""
    edge = tree.path[tree.path[0]]
    tree.nodes[node]["key"] = key_of(s, chance)
    tree.nodes[node]["sibling"] = tree.edges[edge]["child"]
    tree.edges[edge]["child"] = node


@kernel
def back_up(tree):
    """Count the tree's ``chances`` along the path."""
    for k in range(1, tree.path[0] + 1):
        edge = tree.edges[tree.path[k]]
        edge["visits"] += 1
        for team in range(MAX_TEAMS):
            edge["value"][team] += tree.chances[team]


@part
def grow(settings, weights, tree, policy, row):
    """Add the simulation's leaf to the tree; for ``policy`` and ``row`` see `add_node`."""
    if tree.valued[0]["phase"] == OVER:
        write_shares(tree.valued[0], tree.chances)
    if tree.leaf[0]["phase"] == OVER:
        return
    node = add_node(tree.leaf[0], settings, weights, tree, policy, row)
    if node != 0:
        attach(node, tree.leaf[0], settings.chance, tree)


@part
def ask(net, policy, value, tree):
    """Let a network value the new position, if there is one.

    A policy network ``net`` writes the tree's ``chances`` and ``policy[0]``; a value network
    ``value`` the ``chances`` and the choices' ``values``.
    """
    if net is not None and tree.valued[0]["phase"] != OVER:
        judge(tree.valued[0], net, policy, 0, tree.chances)
    if value is not None and tree.leaf[0]["phase"] != OVER:
        value_choices(tree.leaf[0], value, tree)


@part
def simulate(s, settings, weights, tree, bits, net, policy, value):
    """One simulation from ``s``, the tree's root; returns the stream, advanced once.

    A policy network ``net`` values the new position, and ``policy``, ``(1, 95)`` float64, is its
    scratch; or a value network ``value`` does. When all are None, ``settings.leaf`` says how the
    position is valued.
    """
    bits = go_down(s, settings, weights, tree, bits, value)
    ask(net, policy, value, tree)
    grow(settings, weights, tree, policy, 0)
    if net is None and settings.leaf == PLAYOUT and tree.leaf[0]["phase"] != OVER:
        value_by_playout(tree.leaf[0], generator.mix(~bits), tree.chances)
    back_up(tree)
    return bits


@kernel
def begin(s, settings, weights, tree, bits):
    """Begin a new search from ``s``, which is to be valued and added like a leaf."""
    tree.used[0], tree.used[1], tree.path[0] = 0, 0, 0
    tree.leaf[0] = s
    tree.leaf[0]["generator"] = generator.mix(bits)  # not the game's: its dice must stay hidden
    list_choices(tree.leaf[0], settings, weights, tree, 0)
