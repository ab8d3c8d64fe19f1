"""Who plays against the learner: the learner itself, its earlier selves, and bots.

Opponents that are hard to beat are met more often (prioritised fictitious self-play: Vinyals et
al., Nature 575, 2019). Only a few earlier selves are active at a time, so that the decisions of
each come in large batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.envs.learner import LEARNER, Ended

Weights = Mapping[str, npt.NDArray[np.float32]]


class League:
    """Opponents for `carolus_env.envs.learner`, drawn again for each game.

    Either the learner plays every seat of a game, or all its opponents there are the same agent:
    an earlier self or a bot. So each game says something about that opponent. With 4 players the
    learner is its own partner.

    Args:
        rules: number of players and partners.
        bots: specs of the bots.
        player: makes an agent from an earlier self's weights.
        earlier: how many earlier selves are stored; a new one replaces the one beaten most easily.
        active: how many of them are opponents at a time; see `draw_active`.
        self_share: share of the games in which the learner plays every seat.
        earlier_share: share of the games against an earlier self (against the learner itself
            until there is one); the bots share the rest.
        hardness: exponent of the priority: an opponent is met in proportion to
            ``(1 - share of the win against it) ** hardness``; 0: all equally.

    Raises:
        ValueError: for impossible shares, shares below 1 without bots, and unknown specs.
    """

    def __init__(
        self,
        rules: Rules,
        bots: Sequence[str],
        player: Callable[[Weights], Agent],
        *,
        earlier: int,
        active: int,
        self_share: float,
        earlier_share: float,
        hardness: float,
    ) -> None:
        if not (0 <= self_share <= 1 and 0 <= earlier_share <= 1 - self_share + 1e-9):
            raise ValueError(
                "self_share and earlier_share must lie between 0 and 1 and not exceed 1 together, "
                f"got {self_share} and {earlier_share}"
            )
        if not bots and self_share + earlier_share < 1 - 1e-9:
            raise ValueError(
                "without bots self_share and earlier_share must sum to 1, "
                f"got {self_share} and {earlier_share}"
            )
        self.bots: list[Agent] = [make(spec) for spec in bots]
        self.earlier: list[Weights] = []
        self.won = np.full(len(bots) + earlier, 0.5)
        """Share of the win against each bot, then each earlier self: a running mean."""
        self.active: list[int] = []
        """Indices of the active earlier selves."""
        self._rules, self._player = rules, player
        self._max_earlier, self._max_active = earlier, active
        self._shares, self._hardness = (self_share, earlier_share), hardness
        self._selves: list[Agent] = []
        teams = np.array([rules.team(seat) for seat in range(rules.players)])
        self._partners = teams[:, None] == teams[None, :]
        self._enemy_seat = [int(np.argmin(row)) for row in self._partners]

    @property
    def agents(self) -> list[Agent]:
        """Bots, then earlier selves: what `seat` gives indices into."""
        return [*self.bots, *self._selves]

    def remember(self, weights: Weights) -> None:
        """Store the current learner as an earlier self.

        Indices into `agents` stay valid for games under way; a replaced earlier self's games are
        played on by its successor.
        """
        if self._max_earlier == 0:
            return
        first, place = len(self.bots), len(self.earlier)
        if place < self._max_earlier:
            self.earlier.append(weights)
            self._selves.append(self._player(weights))
        else:
            place = int(np.argmax(self.won[first:]))
            self.earlier[place], self._selves[place] = weights, self._player(weights)
        self.won[first + place] = 0.5

    def draw_active(self, random: np.random.Generator) -> None:
        """Draw the earlier selves that are opponents from now on, hard ones more likely."""
        count = min(self._max_active, len(self.earlier))
        if count:
            first = len(self.bots)
            priorities = self._priorities(np.arange(first, first + len(self.earlier)))
            drawn = random.choice(len(self.earlier), count, replace=False, p=priorities)
            self.active = sorted(int(place) for place in drawn)

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """See `carolus_env.envs.learner.Opponents`."""
        n = len(learner_seats)
        draws = random.random(n)
        alone, earlier = self._shares
        opponents = np.full(n, LEARNER)
        if self.bots:
            rows = np.flatnonzero(draws >= alone + earlier)
            opponents[rows] = self._draw(np.arange(len(self.bots)), len(rows), random)
        if self.active:
            rows = np.flatnonzero((draws >= alone) & (draws < alone + earlier))
            places = len(self.bots) + np.array(self.active)
            opponents[rows] = self._draw(places, len(rows), random)
        seating = np.repeat(opponents[:, None], self._rules.players, axis=1)
        seating[self._partners[learner_seats]] = LEARNER
        return seating

    def note(self, ended: Ended) -> dict[str, list[float]]:
        """Update how hard the opponents are from games that ended.

        Returns:
            the learner's shares of the win in those games, by kind of opponent.
        """
        partners = self._rules.players // self._rules.teams
        shares = engine.win_shares(ended.states)[np.arange(len(ended.seats)), ended.seats]
        shares = shares * partners  # of the learner's team
        found: dict[str, list[float]] = {}
        for seating, seat, share in zip(ended.tables, ended.seats, shares, strict=True):
            enemy = int(seating[self._enemy_seat[seat]])
            if enemy != LEARNER:
                self.won[enemy] += 0.02 * (share - self.won[enemy])
                found.setdefault(self.kind(enemy), []).append(float(share))
        return found

    def kind(self, index: int) -> str:
        """What the agent at an index into `agents` is: a bot's name or ``earlier``."""
        return self.bots[index].name if index < len(self.bots) else "earlier"

    def _draw(
        self, places: npt.NDArray[np.int64], n: int, random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        return random.choice(places, n, p=self._priorities(places))

    def _priorities(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        weights = np.maximum(1 - self.won[places], 0.02) ** self._hardness
        return np.asarray(weights / weights.sum())

    # -------------------------------------------------------------------------------- resuming

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.float32]]]:
        """What `restore` needs: plain numbers, and the weights of the earlier selves."""
        weights = {f"{i}.{k}": v for i, one in enumerate(self.earlier) for k, v in one.items()}
        numbers = {"won": self.won.tolist(), "duty": self.active, "earlier": len(self.earlier)}
        return numbers, weights

    def restore(self, numbers: Mapping[str, Any], weights: Weights) -> None:
        """Restore what `state` returned."""
        self.earlier = [{} for _ in range(numbers["earlier"])]
        for name, values in weights.items():
            place, _, key = name.partition(".")
            self.earlier[int(place)] = {**self.earlier[int(place)], key: values}
        self._selves = [self._player(one) for one in self.earlier]
        self.won[:] = numbers["won"]
        self.active = list(numbers["duty"])
