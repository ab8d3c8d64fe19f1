"""Exact endings: wins at hand that an agent misses, and losses that it could have avoided.

    python -m benchmarks.endings value:2p --players 2 --games 200

An agent plays every seat. Of each turn late in a game all plans are tried, and of each plan all
turns of the next player: no dice lie in between, so whether that player can win at once is exact,
whatever a network says. An avoidable loss is a turn after which the next player can win at once,
where another plan would have prevented that; its worth is the best value after such a plan, by the
package's network.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import numpy.typing as npt

import carolus_env as ce
from benchmarks.machine import line
from carolus_env.bots.network import Models
from carolus_env.engine.kernels import turns
from carolus_env.engine.rules import (
    CASTLES_TO_WIN,
    CROWN_CHOICE,
    MAX_TEAMS,
    MOVE,
    OVER,
    PLACE,
    Rules,
)
from carolus_env.engine.state import STATE, States
from carolus_env.networks.network import Network, reset_accumulator, value_after
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import (
    MOST_PLANS,
    ONE,
    STOP,
    CandidateList,
    in_turn,
    list_candidates,
    play_plan,
)
from carolus_env.system.arrays import Int, Records, int64
from carolus_env.system.compiler import entry, separate

NEAR, FEW = 5, 6
"""A game is late when a team lacks so many castles, or so many regions are left, or fewer."""


@separate
def _has_won(s: np.void, team: Int) -> bool:
    return s["phase"] == OVER and turns.team_win_share(s, team) == 1.0


@separate
def can_win(s: np.void, plans: CandidateList, after: Records) -> bool:
    """Return whether the player to move has a plan that wins at once; others than STOP cannot."""
    team = int64(s["team"][s["player"]])
    for k in range(list_candidates(s, plans)):
        after[0] = s
        play_plan(after[0], plans.plans[k])
        if _has_won(after[0], team):
            return True
    return False


@separate
def is_answered(s: np.void, team: Int, plans: CandidateList, after: Records) -> bool:
    """Return whether the team has lost, or the next player, an opponent, can win at once.

    Args:
        s: the position after a turn, which is rolled on: the player's own dice and crowns change
            nothing for the next player.
    """
    turns.roll_on(s)
    while s["phase"] == CROWN_CHOICE:
        list_candidates(s, plans)
        play_plan(s, plans.plans[0])
        turns.roll_on(s)
    if s["phase"] == OVER:
        return turns.team_win_share(s, team) == 0.0
    return in_turn(s) and int64(s["team"][s["player"]]) != team and can_win(s, plans, after)


@entry
def study(
    starts: Records,
    ends: Records,
    own: CandidateList,
    next_player: CandidateList,
    net: Network,
    scratch: Records,
    values: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Count, for positions before and after turns.

    Args:
        starts, ends: ``(N,)`` games; the dice after the turn have not been rolled.
        own, next_player: list the plans of a turn.
        net: values the plans that avoid a loss.
        scratch: ``(2,)`` games.
        values: ``(3,)`` float64, scratch: the teams' values.
        out: ``(5,)`` float64, added to: wins at hand, those taken, turns answered by a win, those
            that were avoidable, and their worth.
    """
    for g in range(starts.shape[0]):
        s = starts[g]
        team = int64(s["team"][s["player"]])
        if can_win(s, next_player, scratch):
            out[0] += 1
            out[1] += int64(_has_won(ends[g], team))
            continue
        if not is_answered(ends[g], team, next_player, scratch):
            continue
        out[2] += 1
        best = -1.0
        reset_accumulator(net)
        for k in range(list_candidates(s, own)):
            value_after(s, own.plans[k], net, scratch[1:], values)
            if values[team] > best and not is_answered(scratch[1], team, next_player, scratch):
                best = values[team]
        if best >= 0:
            out[3] += 1
            out[4] += best


def is_late(states: States, players: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the games that are late: ``(N,)`` bool."""
    needed = CASTLES_TO_WIN[players] - states["castles"].max(axis=1).astype(int)
    return np.asarray((needed <= NEAR) | (states["regions"] <= FEW))


def main() -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.endings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("agent", metavar="AGENT", help="plays every seat")
    parser.add_argument("--players", type=int, default=2, metavar="N", help="players (default 2)")
    parser.add_argument("--games", type=int, default=100, metavar="N", help="games (default 100)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed (default 1)")
    options = parser.parse_args()
    players, rules, agent = options.players, Rules(options.players), ce.make(options.agent)
    listing = all_weights()[players].copy()
    own, next_player = (CandidateList.of(width, listing, MOST_PLANS) for width in (ONE, STOP))
    net = Network.of(players, Models("value", None).weights("value", players))
    counts, late = np.zeros(5), 0
    states = ce.new_games(rules, options.games, seed=options.seed)
    streams = ce.new_streams(options.seed, options.games)
    ce.roll(states)
    starts, under_way = states.copy(), np.zeros(len(states), bool)
    while (going := np.flatnonzero(states["phase"] != OVER)).size:
        in_turns = (states["phase"] == PLACE) | (states["phase"] == MOVE)
        begins = in_turns & ~under_way  # a turn without paladins begins with the Emperor
        starts[begins] = states[begins]
        under_way = in_turns & (states["phase"] != MOVE)
        chosen, drawn = ce.pick(states, going), streams[going]
        turning = states["phase"][going] == MOVE
        actions = agent.act(chosen, drawn)
        streams[going] = drawn
        ce.step(chosen, actions, roll=False)
        ended = turning & is_late(starts[going], players)
        before, after = starts[going][ended], chosen[ended]
        study(before, after, own, next_player, net, np.zeros(2, STATE), np.zeros(MAX_TEAMS), counts)
        late += len(before)
        ce.roll(chosen)
        states[going] = chosen
    print(line())
    print(
        f"{options.agent}, {players} players, {options.games} games, {late:,} late turns: "
        f"{counts[1]:.0f} of {counts[0]:.0f} wins at hand taken; {counts[2]:.0f} turns answered "
        f"by a win, {counts[3]:.0f} of them avoidable, worth {100 * counts[4] / options.games:.1f} "
        "wins in 100 games"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
