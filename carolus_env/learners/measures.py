"""What a run measures: win rates of a policy, and statistics of training games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import arena
from carolus_env.bots import make
from carolus_env.engine.rules import REASON_NAMES, Rules
from carolus_env.envs.learner import Ended
from carolus_env.learners.player import TorchPlayer

Weights = Mapping[str, npt.NDArray[np.float32]]

EVAL_SEED: Final = 1_000_000_007
"""Of the deals of evaluations: far from the seeds of training games."""


def against_bots(
    weights: Weights, rules: Rules, specs: Sequence[str], games: int
) -> dict[str, dict[str, Any]]:
    """Play the likeliest actions of a network against each bot, on paired deals.

    Returns:
        for each spec ``win_rate``, ``ci95`` and ``games`` of the policy.
    """
    player, results = _likeliest(weights, rules), {}
    for spec in specs:
        result = arena.play_pairing((player, make(spec)), rules, games, seed=EVAL_SEED)
        results[spec] = {
            "win_rate": result.win_rate[0],
            "ci95": list(result.ci95[0]),
            "games": result.games,
        }
    return results


def beats(weights: Weights, other: Weights, rules: Rules, games: int) -> bool:
    """Whether the first of two networks wins at least half of its games against the second."""
    pair = _likeliest(weights, rules), _likeliest(other, rules)
    return arena.play_pairing(pair, rules, games, seed=EVAL_SEED).win_rate[0] >= 0.5


def _likeliest(weights: Weights, rules: Rules) -> TorchPlayer:
    return TorchPlayer(weights, rules.players, temperature=0.0, device="cpu")


def game_statistics(ended: Sequence[Ended]) -> dict[str, float]:
    """Statistics of games that ended, by name; none without games."""
    if not ended:
        return {}
    states = np.concatenate([some.states for some in ended])
    payoffs = np.concatenate([some.payoffs for some in ended])
    reasons = {
        f"ended_by_{name}": float(np.mean(states["reason"] == number))
        for number, name in enumerate(REASON_NAMES)
        if number > 0
    }
    return {
        "rounds": float(states["round"].mean()),
        "draws": float(np.mean((payoffs.max(axis=1) < 1) | (states["winners"] == 0))),
        "castles_of_the_winner": float(states["castles"].max(axis=1).mean()),
        "regions_left": float(states["regions"].mean()),
        "first_seat_payoff": float(payoffs[:, 0].mean()),
        **reasons,
    }
