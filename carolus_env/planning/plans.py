"""The candidates of a decision: a disc, a crown, or one of a turn's best plans.

A plan is all placements of a turn and the Emperor's move; a disc or a crown is a plan of a single
action.

Each *set* of placements is listed once, in one order, since every order leads to the same position.
A plan is one number that holds its actions in 7 bits each (`pack`, `first_of`, `rest_of`).

`WIDTHS` says where paladins may go. With ``stop`` they go to the player's court or to the region
where the Emperor will stop; with ``one`` to the court or to any one region, for instance to defend
it; with ``all`` anywhere. So ``all`` is exhaustive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from carolus_env.engine import rules
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.kernels.courts import clan_word
from carolus_env.engine.kernels.turns import move_emperor, place_paladin
from carolus_env.engine.state import STATE, States, single
from carolus_env.planning import heuristic
from carolus_env.planning.heuristic import FEATURES, Kinds, PlanContext, kind_after, share_of
from carolus_env.system.arrays import F64, I64, Int, Records, allocate, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import one_of, whole_number

WIDTHS: Final = ("stop", "one", "all")
STOP, ONE, ALL = range(len(WIDTHS))

MOST_PLANS: Final = 4096  # more plans than a turn has, but for some turns with paladins anywhere
MOST_PLACEMENTS: Final = 4
_STEP: Final = 7  # bits of an action; it is stored plus 1, so 0 means that no action is left
_LOW: Final = (1 << _STEP) - 1

LEVEL: Final = np.dtype([
    ("clan", "<i8"),  # the next to try here
    ("target", "<i8"),  # the next to try here of that clan
    ("went", "<i8"),  # the one region that paladins went to so far, 0: none
    ("plan", "<i8"),  # the placements so far, see `pack`
    ("shares", "<i8"),  # the same, see `heuristic`
    ("effect", "<i8"),  # the sum of their effects, see `heuristic`
    ("reserve", "<i8"),  # the paladins left in the reserve: byte k those of clan k
    ("scattered", "<i8"),  # 1 if paladins went to several regions: such plans have no kind
])  # fmt: skip


class Listing(NamedTuple):
    """Parameters of a listing, as numbers."""

    width: int  # `STOP`, `ONE` or `ALL`
    context: PlanContext  # the position and the weights of the evaluation
    placements: int  # the paladins to place
    regions: int  # regions of the position
    stops: int  # stops that the Emperor can reach; after a full circle the same ones come again
    team: int  # team of the player to move
    teams: int  # number of teams
    slack: float  # maximum error of rough scores, see `heuristic.slack`


class PlanScratch(NamedTuple):
    """Scratch in which kernels list and value plans, reused for each position."""

    # With width `ALL` the position after that many placements; the last is for what is valued.
    states: Annotated[States, MOST_PLACEMENTS + 2, STATE]
    levels: Annotated[Records, MOST_PLACEMENTS + 2, LEVEL]  # the listing after that many placements
    features: Annotated[F64, rules.MAX_TEAMS + 1, len(FEATURES)]  # see `heuristic.write_features`
    scores: Annotated[F64, rules.MAX_TEAMS]  # see `heuristic.write_scores`
    weighed: Annotated[F64, rules.MAX_TEAMS]  # the clans' part of the scores
    kinds: Kinds  # cache of the kinds of plans
    total: Annotated[I64, 1]  # number of plans, those that were not kept too


# ------------------------------------------------------------------------------------ packing


@kernel
def pack(plan: Int, action: Int, index: Int) -> Int:
    """Add ``action`` to the plan at ``index``, which is still free."""
    return plan | (int64(action) + 1) << (_STEP * index)


@kernel
def first_of(plan: Int) -> Int:
    """Return the first action of a plan."""
    return (plan & _LOW) - 1


@kernel
def rest_of(plan: Int) -> Int:
    """Return the plan without its first action; 0 when no action is left."""
    return plan >> _STEP


@separate
def play(s: np.void, action: Int) -> None:
    """Call `turns.play`, compiled once and called."""
    turns.play(s, action)


@kernel
def play_plan(s: np.void, plan: Int) -> None:
    """Play the actions of a plan."""
    while plan != 0:
        play(s, first_of(plan))
        plan = rest_of(plan)


def actions_of(plan: int) -> list[int]:
    """Return the action numbers of a plan, in order."""
    actions = []
    while plan > 0:
        actions.append((plan & _LOW) - 1)
        plan >>= _STEP
    return actions


def plan_of(actions: Sequence[int]) -> int:
    """Return the plan of action numbers, in order: the inverse of `actions_of`."""
    plan = 0
    for action in reversed(actions):
        plan = plan << _STEP | action + 1
    return plan


# ------------------------------------------------------------------------------------ listing


@kernel
def _keep(plan: Int, value: float, plans: I64, values: F64, count: Int) -> Int:
    """Insert a plan into the list of the best, best first; returns the new length."""
    longest = plans.shape[0]
    if count == longest:
        if not value > values[longest - 1]:
            return count
        count -= 1
    row = count
    while row > 0 and value > values[row - 1]:
        plans[row], values[row] = plans[row - 1], values[row - 1]
        row -= 1
    plans[row], values[row] = plan, value
    return count + 1


@kernel
def _following(clan: Int, target: Int, only: Int, targets: Int) -> tuple[Int, Int]:
    """Return the next clan and target to try; with ``only`` set, no other region is a target."""
    last = only if only != 0 else targets - 1
    after = only if only != 0 else target + 1
    return (clan + 1, 0) if target == last else (clan, after)


@inlined
def _begin(s: np.void, width: Int, weights: F64, scratch: PlanScratch) -> Any:
    """Return the `Listing` of ``s``; nothing is placed yet."""
    regions, level = int64(s["regions"]), scratch.levels[0]
    stops = min(legal.emperor_steps(s), regions)
    context = PlanContext(s, weights, 1 + (stops if width == STOP else regions))
    heuristic.begin_kinds(context, scratch.kinds)
    level["clan"], level["target"], level["went"] = 0, 0, 0
    level["plan"], level["shares"], level["effect"], level["scattered"] = 0, 0, 0, 0
    level["reserve"] = int64(clan_word(s["reserves"][s["player"]]))
    if width == ALL:
        scratch.states[0] = s
    scratch.total[0] = 0
    count, team = int64(s["placements_left"]), int64(s["team"][s["player"]])
    error = heuristic.slack(weights)
    return Listing(width, context, count, regions, stops, team, int64(s["teams"]), error)


@kernel
def _place_next(depth: Int, listing: Listing, scratch: PlanScratch) -> bool:
    """Place one more paladin after ``depth`` others; returns whether there was one to be tried."""
    kinds, level, below = scratch.kinds, scratch.levels[depth], scratch.levels[depth + 1]
    clan, target = int64(level["clan"]), int64(level["target"])
    while clan < rules.CLANS and share_of(level["reserve"], clan) == 0:
        clan, target = clan + 1, 0
    if clan == rules.CLANS:
        return False
    before = int64(level["went"])
    only = 0 if listing.width == ALL else before
    level["clan"], level["target"] = _following(clan, target, only, listing.context.targets)
    went = before if target == 0 else target
    destination = 0 if target == 0 else 1 + (target if target < listing.regions else 0)
    share = heuristic.TO_COURT if target == 0 else heuristic.TO_REGION
    shares = level["shares"] + (share << 8 * clan)
    effect = int64(level["effect"]) + kinds.effects[clan, share_of(shares, clan)]
    effect -= kinds.effects[clan, share_of(level["shares"], clan)]
    action = rules.FIRST_PLACE + rules.DESTINATIONS * clan + destination
    below["plan"] = pack(level["plan"], action, depth)
    below["shares"], below["effect"], below["went"] = shares, effect, went
    below["scattered"] = int64(level["scattered"]) | int64(before != 0 and went != before)
    if depth + 1 < listing.placements:
        below["clan"], below["target"] = clan, target
        below["reserve"] = level["reserve"] - (1 << 8 * clan)
    if listing.width == ALL:
        scratch.states[depth + 1] = scratch.states[depth]
        place_paladin(scratch.states[depth + 1], clan, destination)
    return True


@inlined
def _keep_stops(listing: Listing, scratch: PlanScratch, count: Int, plans: I64, values: F64) -> Any:
    """Value every stop of the Emperor after all placements; returns the new length of the list."""
    context, kinds, scores = listing.context, scratch.kinds, scratch.scores
    team, teams, placements = listing.team, listing.teams, listing.placements
    one_rival, other_rival = heuristic.rivals(team, teams)
    last = scratch.states.shape[0] - 1  # scratch
    level, longest = scratch.levels[placements], plans.shape[0]
    shares, effect, went = int64(level["shares"]), int64(level["effect"]), int64(level["went"])
    bound = listing.width == STOP and went != 0  # else he may stop anywhere
    nearest, farthest = went if bound else 1, went if bound else listing.stops
    scratch.total[0] += farthest + 1 - nearest
    if level["scattered"] == 0:
        heuristic.write_weighed_clans(shares, kinds, scratch.weighed)
    for stop in range(nearest, farthest + 1):
        row = -1
        if level["scattered"] == 1:
            scratch.states[last] = scratch.states[placements]
            move_emperor(scratch.states[last], stop)
            heuristic.write_scores(scratch.states[last], context.weights, scratch.features, scores)
        else:
            row = kind_after(shares, effect, went if went != 0 else stop, stop, context, kinds)
            weighed = scratch.weighed
            heuristic.write_rough_scores(row, effect, weighed, context.weights, kinds, scores)
        most = heuristic.advantage_at_most(scores, team, one_rival, other_rival) + listing.slack
        if count < longest or most > values[longest - 1]:
            if row >= 0:
                heuristic.write_scores_after(row, shares, effect, context, kinds, scores)
            plan = pack(level["plan"], rules.FIRST_MOVE + stop - 1, placements)
            count = _keep(plan, heuristic.advantage(scores, team, teams), plans, values, count)
    return count


@separate
def list_plans(
    s: np.void, width: Int, weights: F64, scratch: PlanScratch, plans: I64, values: F64
) -> Int:
    """List the best plans of a turn, best first, and their log odds of winning; return how many."""
    listing, depth, count = _begin(s, width, weights, scratch), 0, 0
    while depth >= 0:
        if depth < listing.placements:
            depth += 1 if _place_next(depth, listing, scratch) else -1
        else:
            count = _keep_stops(listing, scratch, count, plans, values)
            depth -= 1
    return count


# ------------------------------------------------------------------------------------ candidates


class CandidateList(NamedTuple):
    """The candidates of a decision: how they are listed, the list, and scratch."""

    width: int  # allowed destinations of paladins: an index into `WIDTHS`
    weights: F64  # (F,) of the evaluation that picks and orders a turn's plans
    most: int  # maximum number of a turn's plans that are kept
    scratch: PlanScratch
    plans: I64  # (K,) the candidates; K is 5 or ``most``, whichever is more
    scores: F64  # (K,) the evaluation's scores of a turn's plans

    @classmethod
    def of(cls, width: int, weights: F64, most: int) -> CandidateList:
        """Return a list with scratch of its own."""
        length = max(whole_number("candidates", most, 1, MOST_PLANS), rules.DISCS)
        plans, scores = np.zeros(length, np.int64), np.zeros(length)
        return cls(width, np.array(weights), most, allocate(PlanScratch), plans, scores)


@kernel
def in_turn(s: np.void) -> bool:
    """Return whether the player to move is in its action turn."""
    return s["phase"] == rules.PLACE or s["phase"] == rules.MOVE


@kernel
def list_actions(s: np.void, plans: I64) -> Int:
    """Write the legal discs or crowns of ``s`` as plans of one action; returns how many."""
    is_disc = s["phase"] == rules.DISC
    bits = legal.playable_discs(s) if is_disc else legal.clans_to_take(s)
    first, count = rules.FIRST_DISC if is_disc else rules.FIRST_CROWN, 0
    for k in range(rules.DISCS):  # as many as there are clans
        if bits >> k & 1:
            plans[count] = first + k + 1
            count += 1
    return count


@separate
def list_candidates(s: np.void, candidates: CandidateList) -> Int:
    """Write the candidates in ``s``: a turn's plans, or the legal actions; returns how many.

    ``candidates.scratch.total`` holds how many there were, those left out too.
    """
    listed, scratch = candidates, candidates.scratch
    if in_turn(s):
        plans = listed.plans[: listed.most]
        return list_plans(s, listed.width, listed.weights, scratch, plans, listed.scores)
    scratch.total[0] = list_actions(s, listed.plans)
    return scratch.total[0]


# ------------------------------------------------------------------------------------ discs
# The search for a disc: every answer of the players after it is tried, without dice. Each player
# chooses what is best for its team (max^n: Luckhardt and Irani, AAAI 1986). What a position is
# worth once all have chosen is up to the bot.


class DiscScratch(NamedTuple):
    """Scratch of `search_discs`, by the number of discs chosen, and its result."""

    states: Annotated[States, rules.MAX_PLAYERS + 1, STATE]  # the position
    untried: Annotated[I64, rules.MAX_PLAYERS + 1]  # the discs still to try there, as bits
    outcomes: Annotated[F64, rules.MAX_PLAYERS + 1, rules.MAX_TEAMS]  # of the best disc there
    values: Annotated[F64, rules.DISCS, rules.MAX_TEAMS]  # of the discs that can be played


@inlined
def search_discs(s: np.void, answers: Any, evaluate: Any, context: Any, scratch: Any) -> Any:
    """Value the discs that can be played in ``s``; returns the best one, as an action.

    The kernel ``answers(s)`` returns the discs to try later, as bits; ``evaluate(s, context,
    outcome)`` writes what a position in which all have chosen is worth to each team.
    """
    states, untried, outcomes = scratch.states, scratch.untried, scratch.outcomes
    teams, first = int64(s["teams"]), int64(s["turn"])
    choosers = int64(s["players"]) - first
    depth, chosen, trying = 0, -1, -1
    states[0] = s
    untried[0] = legal.playable_discs(s)
    outcomes[0, :] = -np.inf
    while depth >= 0:
        if depth < choosers and untried[depth] != 0:
            disc = heuristic.HIGHEST_DISC[untried[depth] & -untried[depth]]  # the lowest of them
            untried[depth] ^= 1 << (disc - 1)
            trying = disc - 1 if depth == 0 else trying
            states[depth + 1] = states[depth]
            play(states[depth + 1], rules.FIRST_DISC + disc - 1)
            depth += 1
            if depth < choosers:
                untried[depth] = answers(states[depth])
            outcomes[depth, :] = -np.inf
            continue
        if depth == choosers:
            evaluate(states[depth], context, outcomes[depth])
        if depth == 1:
            for team in range(teams):
                scratch.values[trying, team] = outcomes[1, team]
        if depth > 0:  # is the outcome of the disc just tried the best one for its player?
            team = int64(s["team"][s["order"][first + depth - 1]])
            if outcomes[depth, team] > outcomes[depth - 1, team]:
                for other in range(teams):
                    outcomes[depth - 1, other] = outcomes[depth, other]
                if depth == 1:
                    chosen = rules.FIRST_DISC + trying
        depth -= 1
    return chosen


# ------------------------------------------------------------------------------------ for Python


def best_plans(state: np.void, most: int, width: str = "stop") -> list[list[int]]:
    """Return the actions of the best plans, at most so many, by the fitted weights, best first.

    ``state`` is a game ``states[i]`` in phase place or move, ``width`` one of `WIDTHS`.
    """
    game = single(state)
    if game["phase"][0] not in (rules.PLACE, rules.MOVE):
        raise ValueError("state must be a game in phase place or move")
    most = whole_number("most", most, 1, MOST_PLANS)
    weights = heuristic.all_weights()[game["players"][0]].copy()
    listed = CandidateList.of(WIDTHS.index(one_of("width", width, WIDTHS)), weights, most)
    return [actions_of(int(plan)) for plan in listed.plans[: _list(game, listed)]]


@entry
def _list(states: Records, candidates: CandidateList) -> Any:
    return list_candidates(states[0], candidates)
