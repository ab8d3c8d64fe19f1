"""Who plays against the learner: the learner itself, or bots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.envs.learner import LEARNER, Ended


class SelfOrBots:
    """Opponents for `carolus_env.envs.learner`, drawn again for each game.

    Either the learner plays every seat of a game, or all its opponents there are the same bot. So
    each game says something about that bot. With 4 players the learner is its own partner.

    Args:
        rules: number of players and partners.
        bots: specs of the bots, which are met equally often; without any the learner plays every
            seat of all games.
        self_share: share of the games in which the learner plays every seat, where there are bots.

    Raises:
        ValueError: for an impossible share, and unknown specs.
    """

    def __init__(self, rules: Rules, bots: Sequence[str], self_share: float) -> None:
        if not 0 <= self_share <= 1:
            raise ValueError(f"self_share must lie between 0 and 1, got {self_share}")
        self.agents: list[Agent] = [make(spec) for spec in bots]
        self._rules, self._self_share = rules, self_share
        teams = np.array([rules.team(seat) for seat in range(rules.players)])
        self._partners = teams[:, None] == teams[None, :]
        self._enemy_seat = [int(np.argmin(row)) for row in self._partners]

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """See `carolus_env.envs.learner.Opponents`."""
        n = len(learner_seats)
        opponents = np.full(n, LEARNER)
        if self.agents:
            rows = np.flatnonzero(random.random(n) >= self._self_share)
            opponents[rows] = random.integers(len(self.agents), size=len(rows))
        seating = np.repeat(opponents[:, None], self._rules.players, axis=1)
        seating[self._partners[learner_seats]] = LEARNER
        return seating

    def shares(self, ended: Ended) -> dict[str, list[float]]:
        """The learner's team's shares of the win in games that ended, by bot."""
        partners = self._rules.players // self._rules.teams
        won = engine.win_shares(ended.states)[np.arange(len(ended.seats)), ended.seats] * partners
        found: dict[str, list[float]] = {}
        for seating, seat, share in zip(ended.tables, ended.seats, won, strict=True):
            enemy = int(seating[self._enemy_seat[seat]])
            if enemy != LEARNER:
                found.setdefault(self.agents[enemy].name, []).append(float(share))
        return found
