"""Rollouts of a policy over whole turns, as kernels: decisions of every seat, and what they teach.

In self-play the policy decides for every seat, and all decisions are learnt from. Values are shares
of the win by team, so what the next position promises, whichever team moves there, tells every team
what a decision was worth (generalised advantage estimation: Schulman et al., arXiv:1506.02438).
Here the value belongs to the position *after* a candidate, and a position is worth what the policy
can expect of its candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.turns.inference import (
    drawn,
    judge_all,
    judge_candidate,
    list_candidates,
    soften,
)
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.rules import MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.stepping import start_anew
from carolus_env.networks.tables import MOST_ROWS
from carolus_env.planning.evaluation import FEATURES
from carolus_env.planning.plans import play_plan
from carolus_env.system.compiler import entry, kernel, part, rare

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class Memory(NamedTuple):
    """The decisions of a rollout: those of a game are D consecutive rows, one a step.

    What belongs to a candidate has a column for each.
    """

    counts: Ints
    """``(D,)`` int64: the number of candidates."""
    chosen: Ints
    """``(D,)`` int64: the candidate that was chosen."""
    team: Ints
    """``(D,)`` int64: the team that chose."""
    log_probs: Floats
    """``(D,)`` float32: the log probability of the choice."""
    ends: npt.NDArray[np.bool_]
    """``(D,)`` bool: the game was over after it."""
    shares: Floats
    """``(D, 3)`` float32: each team's share of the win then."""
    expected: Floats
    """``(D, 3)`` float32: each team's share as the policy expected it before the choice."""
    advantages: Floats
    """``(D,)`` float32: of the team that chose."""
    targets: Floats
    """``(D, 3)`` float32: what the value after the choice is to be, by team."""
    over: Floats
    """``(D, K)`` float32: the team's share of the win where a candidate ends the game, else -1."""
    own: Ints
    """``(D, K)`` int64: the team with role 0 after the candidate."""
    lengths: Ints
    """``(D, K)`` int64: the number of rows that the network sees there."""
    stages: Ints
    """``(D, K)`` int64: the stage of the game there."""
    rows: npt.NDArray[np.int16]
    """``(D, K, MOST_ROWS)`` int16: the rows."""
    numbers: Floats
    """``(D, K, teams F)`` float32: the features."""

    @classmethod
    def new(cls, decisions: int, candidates: int, players: int) -> Memory:
        """Fresh memory."""
        by_team, each = (decisions, MAX_TEAMS), (decisions, candidates)
        return cls(
            counts=np.zeros(decisions, np.int64),
            chosen=np.zeros(decisions, np.int64),
            team=np.zeros(decisions, np.int64),
            log_probs=np.zeros(decisions, np.float32),
            ends=np.zeros(decisions, np.bool_),
            shares=np.zeros(by_team, np.float32),
            expected=np.zeros(by_team, np.float32),
            advantages=np.zeros(decisions, np.float32),
            targets=np.zeros(by_team, np.float32),
            over=np.zeros(each, np.float32),
            own=np.zeros(each, np.int64),
            lengths=np.zeros(each, np.int64),
            stages=np.zeros(each, np.int64),
            rows=np.zeros((*each, MOST_ROWS), np.int16),
            numbers=np.zeros((*each, TEAMS[players] * len(FEATURES)), np.float32),
        )


@part
def _remember(memory, d, k, judge, team):
    """Keep what the network saw after candidate ``k``, which was just judged."""
    after, seen = judge.after[0], judge.net.seen
    if after["phase"] == OVER:
        memory.over[d, k] = judge.values[k, team]
        return
    memory.over[d, k] = -1
    memory.own[d, k] = int64(after["team"][after["player"]])
    memory.lengths[d, k] = seen.length[0]
    memory.stages[d, k] = seen.stage[0]
    for i in range(seen.length[0]):
        memory.rows[d, k, i] = seen.rows[i]
    for i in range(memory.numbers.shape[2]):
        memory.numbers[d, k, i] = seen.numbers[i]


@kernel
def _expect(count, judge, expected):
    """Write each team's share of the win that the policy expects; returns the log of the sum."""
    total = soften(count, judge.logits, judge.probabilities)
    for team in range(expected.shape[0]):
        mean = 0.0
        for k in range(count):
            mean += judge.probabilities[k] * judge.values[k, team]
        expected[team] = mean
    return total


@rare
def _judge_and_keep(s, judge, memory, d):
    """List, judge and keep the candidates; returns how many there are."""
    team = int64(s["team"][s["player"]])
    count = list_candidates(s, judge)
    for k in range(count):
        judge_candidate(s, k, judge)
        _remember(memory, d, k, judge, team)
    return count


@entry
def play(states, streams, fresh, judge, memory, last, told):
    """Play the same number of decisions in every game; those that end start anew.

    Args:
        states: ``(N,)`` games at a decision, played on in place.
        streams: ``(N,)`` uint64: the stream of each game's choices.
        fresh: a `stepping.Fresh`.
        judge: a `Judge`.
        memory: a `Memory` of N times the number of decisions.
        last: ``(N, 3)`` float32, written: what the policy expects after the last decision.
        told: ``(2,)`` float64, added to: games that ended, and their rounds.
    """
    games = states.shape[0]
    steps = memory.counts.shape[0] // games
    for g in range(games):
        s = states[g]
        for t in range(steps):
            d = g * steps + t
            count = _judge_and_keep(s, judge, memory, d)
            total = _expect(count, judge, memory.expected[d])
            streams[g] = generator.step(streams[g])
            fraction = generator.fraction(generator.mix(streams[g]))
            chosen = drawn(count, judge.probabilities, fraction)
            memory.counts[d], memory.chosen[d] = count, chosen
            memory.team[d] = int64(s["team"][s["player"]])
            memory.log_probs[d] = judge.logits[chosen] - total
            play_plan(s, judge.lister.choices[chosen])
            turns.roll_on(s)
            memory.ends[d] = s["phase"] == OVER
            if s["phase"] == OVER:
                for team in range(int64(s["teams"])):
                    memory.shares[d, team] = turns.team_win_share(s, team)
                told[0] += 1
                told[1] += int64(s["round"])
                start_anew(states, g, fresh)
                turns.roll_on(s)
        _expect(judge_all(s, judge), judge, last[g])


@entry
def work_out(memory, last, trace, gae_lambda):
    """Write targets and advantages, from the last decision backwards.

    Args:
        memory: a `Memory` that `play` has filled.
        last: ``(N, 3)`` float32: what the policy expects after the last decisions.
        trace: lambda of the values' targets: the weight of the target after the next decision
            against what the policy expected before it.
        gae_lambda: the same of the advantages.
    """
    games = last.shape[0]
    steps = memory.counts.shape[0] // games
    for g in range(games):
        for team in range(last.shape[1]):
            target, outcome, expected = last[g, team], last[g, team], last[g, team]
            for t in range(steps - 1, -1, -1):
                d = g * steps + t
                target = trace * target + (float32(1) - trace) * expected
                outcome = gae_lambda * outcome + (float32(1) - gae_lambda) * expected
                if memory.ends[d]:
                    target, outcome = memory.shares[d, team], memory.shares[d, team]
                expected = memory.expected[d, team]
                memory.targets[d, team] = target
                if memory.team[d] == team:
                    memory.advantages[d] = outcome - expected
