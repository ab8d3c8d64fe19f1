"""Value functions: fixed estimates of each team's win probability in a position.

Rollouts that stop games early value their positions by one; `Value.version` says exactly which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from carolus_env.bots.models import find
from carolus_env.bots.value import values_ahead
from carolus_env.engine.rules import TEAMS
from carolus_env.engine.state import States, as_states, common_players
from carolus_env.networks.forward import Weights
from carolus_env.planning.heuristic import all_weights, chances
from carolus_env.system.arrays import F64

KNOWN: Final = "planner, ppo, value, ppo:MODEL or value:MODEL"


@dataclass(frozen=True)
class Value:
    """A named function of positions.

    Attributes:
        name: the spec that makes it again, see `value_function`.
        version: twelve hexadecimal digits that change with its weights.
    """

    name: str
    version: str
    _of: Callable[[States], F64]

    def __call__(self, states: States) -> F64:
        """Return each team's win probability.

        Args:
            states: ``(N,)`` games of one number of players, at any point; where a roll is due, a
                value of the position before it.

        Returns:
            ``(N, teams)`` float64, rows sum to 1; the real shares where a game is over.

        Raises:
            ValueError: for another number of players than a network has, or mixed ones.
        """
        teams = TEAMS[common_players(as_states(states), "values")]
        return self._of(states)[:, :teams]


def value_function(spec: str, players: int) -> Value:
    """Make a value function.

    Args:
        spec: ``planner`` (the planner's evaluation); ``value`` (the package's value network for
            that number of players, after the best next choice), ``value:2p`` or ``value:PATH``;
            or ``ppo``, ``ppo:2p`` or ``ppo:PATH`` (the same by the value of a policy).
        players: number of players, 2, 3 or 4.

    Raises:
        ValueError: for another spec, a number of players that the network does not have, or a
            model that cannot be read.
    """
    name, _, argument = spec.partition(":")
    if spec == "planner":
        return Value(spec, _version(all_weights()[players].tobytes()), chances)
    if name not in ("ppo", "value") or "," in argument:
        raise ValueError(f"a value function must be {KNOWN}, got {spec!r}")
    model = find("ppo" if name == "ppo" else "value", argument or f"{players}p")
    if model.size.players != players:
        raise ValueError(
            f"value function {spec!r} is for {model.size.players} players, not for {players}"
        )
    version = _version(b"".join(model.weights[key].tobytes() for key in sorted(model.weights)))
    weights = Weights.of(model.weights)

    def ahead(states: States) -> F64:
        result = values_ahead(states, weights)
        shares: F64 = result / result.sum(axis=1, keepdims=True)  # the network's are float32
        return shares

    return Value(spec, version, ahead)


def _version(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()[:12]
