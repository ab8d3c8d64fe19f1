"""The `network` as kernels: how candidates are judged, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.planner.choices import Lister, list_choices
from carolus_env.bots.planner.evaluation import all_weights
from carolus_env.bots.planner.plans import play_plan
from carolus_env.bots.turns.network import SUREST
from carolus_env.bots.value.inference import ValueNet, ValueWeights, forget_sums, write_value
from carolus_env.bots.value.network import LINEAR
from carolus_env.engine.rules import MAX_TEAMS, OVER
from carolus_env.engine.state import STATE, States
from carolus_env.system.compiler import kernel, rare

Floats = npt.NDArray[np.float32]

_MOST, _LEAST = float32(SUREST), float32(1 - SUREST)


class Head(NamedTuple):
    """What a policy has besides the weights of a value network, or numbers for each of them."""

    residual: Floats
    """``(stages, hidden + LINEAR)`` float32."""
    residual_bias: Floats
    """``(stages,)`` float32."""
    sharpness: Floats
    """``(1,)`` float32."""

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Head:
        """Copies of arrays by name."""
        return cls(*(np.array(arrays[name], np.float32, order="C") for name in cls._fields))


class Judge(NamedTuple):
    """A policy as kernels take it: how candidates are listed, the network, and scratch."""

    lister: Lister
    """How candidates are listed; K of them at most."""
    net: ValueNet
    """The network but its head."""
    head: Head
    """Its head."""
    values: npt.NDArray[np.float64]
    """``(K, 3)`` float64: each team's share of the win after each candidate."""
    odds: Floats
    """``(K,)`` float32: the same of the team that chooses, as log odds."""
    logits: Floats
    """``(K,)`` float32."""
    probabilities: Floats
    """``(K,)`` float32: the policy."""
    after: States
    """``(1,)`` STATE: the position after a candidate."""

    @classmethod
    def of(
        cls, players: int, weights: ValueWeights, head: Head, plans: int, candidates: int
    ) -> Judge:
        """A judge with scratch of its own; the weights are shared.

        Args:
            players: number of players.
            weights, head: of the network.
            plans: where paladins may go: an index into `plans.WIDTHS`.
            candidates: how many of a turn's plans are judged, the planner's best ones.
        """
        lister = Lister.of(plans, all_weights()[players].copy(), candidates)
        most = len(lister.choices)
        return cls(
            lister,
            ValueNet.of(players, weights),
            head,
            np.zeros((most, MAX_TEAMS)),
            np.zeros(most, np.float32),
            np.zeros(most, np.float32),
            np.zeros(most, np.float32),
            np.zeros(1, STATE),
        )


@kernel
def log_odds(value):
    """The log odds of a value, within bounds."""
    bounded = min(max(float32(value), _LEAST), _MOST)
    return np.log(bounded / (float32(1) - bounded))


@kernel
def residual_of(units, head, stage):
    """The residual from the layers' outputs, a `Units`."""
    wide, hidden = units.first.shape[0], units.second.shape[0]
    weights, found = head.residual[stage], head.residual_bias[stage]
    for j in range(hidden):
        found += units.second[j] * weights[j]
    for j in range(LINEAR):
        found += units.sums[wide + j] * weights[hidden + j]
    return found


@kernel
def list_candidates(s, judge):
    """List the candidates in ``s``, to be judged one after the other; returns how many."""
    forget_sums(judge.net)
    return list_choices(s, judge.lister)


@rare
def judge_candidate(s, k, judge):
    """Judge the listed candidate ``k``: write its values, log odds and logit.

    ``judge.after`` is then the position after it, and ``judge.net`` holds what the network saw of
    that, unless it is over.
    """
    after, net = judge.after[0], judge.net
    judge.after[0] = s
    play_plan(after, judge.lister.choices[k])
    write_value(after, net, judge.values[k], like=True)
    residual = float32(0)
    if after["phase"] != OVER:
        residual = residual_of(net.units, judge.head, net.seen.stage[0])
    judge.odds[k] = log_odds(judge.values[k, int64(s["team"][s["player"]])])
    judge.logits[k] = residual + judge.head.sharpness[0] * judge.odds[k]


@kernel
def soften(count, logits, probabilities):
    """Write the softmax of the first logits; returns the log of the sum of their exponentials."""
    most = logits[0]
    for k in range(1, count):
        most = max(most, logits[k])
    total = float32(0)
    for k in range(count):
        probabilities[k] = np.exp(logits[k] - most)
        total += probabilities[k]
    for k in range(count):
        probabilities[k] /= total
    return most + np.log(total)


@rare
def judge_all(s, judge):
    """List and judge the candidates in ``s``; returns how many there are."""
    count = list_candidates(s, judge)
    for k in range(count):
        judge_candidate(s, k, judge)
    return count


@kernel
def drawn(count, probabilities, fraction):
    """The index that a fraction from 0 to 1 draws."""
    chosen, left = 0, float32(fraction)
    while chosen < count - 1 and left >= probabilities[chosen]:
        left -= probabilities[chosen]
        chosen += 1
    return chosen
