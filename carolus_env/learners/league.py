"""Who sits at the learner's tables: itself in every seat, its earlier selves, and the bots.

Opponents that are hard to beat are met more often (prioritised fictitious self-play: Vinyals et
al., Nature 575, 2019). Only a few earlier selves are on duty at a time, so that each one's
decisions come in large batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, make
from carolus_env.engine.rules import Rules
from carolus_env.envs.learner import LEARNER, Ended

Weights = Mapping[str, npt.NDArray[np.float32]]


class League:
    """Opponents for `carolus_env.envs.learner`, drawn anew for each game.

    Either the learner holds every seat of a table, or all its opponents there are of one kind: one
    earlier self or one bot, so that a game says something about that opponent. A partner (4
    players) is the learner too.

    Args:
        rules: number of players and partners.
        bots: spec strings of the scripted opponents.
        player: makes an agent out of an earlier self's weights.
        earlier: how many earlier selves are kept; a newcomer replaces the one beaten most easily.
        on_duty: how many of them are met at a time; see `new_duty`.
        self_share: share of the tables that the learner holds alone.
        earlier_share: share of those with an earlier self (the learner alone until there are any);
            the bots have the rest.
        hardness: exponent of the priority: an opponent is met in proportion to
            ``(1 - share of the win against it) ** hardness``; 0: all alike.
    """

    def __init__(
        self,
        rules: Rules,
        bots: Sequence[str],
        player: Callable[[Weights], Agent],
        *,
        earlier: int,
        self_share: float,
        earlier_share: float,
        on_duty: int = 3,
        hardness: float = 1.0,
    ) -> None:
        if not (0 <= self_share <= 1 and 0 <= earlier_share <= 1 - self_share + 1e-9):
            raise ValueError(
                "the shares of games against itself and earlier selves must lie between 0 and 1 "
                f"and not exceed 1 together, got {self_share} and {earlier_share}"
            )
        if not bots and self_share + earlier_share < 1 - 1e-9:
            raise ValueError(
                f"without bots the shares must sum to 1, got {self_share} and {earlier_share}"
            )
        self.bots: list[Agent] = [make(spec) for spec in bots]
        self.earlier: list[Weights] = []
        self.won = np.full(len(bots) + earlier, 0.5)
        """Share of the win against each bot, then each earlier self: a running mean."""
        self.duty: list[int] = []
        """Which earlier selves are on duty."""
        self._rules, self._player, self._most = rules, player, earlier
        self._shares, self._on_duty, self._hardness = (self_share, earlier_share), on_duty, hardness
        self._selves: list[Agent] = []
        teams = np.array([rules.team(seat) for seat in range(rules.players)])
        self._partners = teams[:, None] == teams[None, :]
        self._an_enemy = [int(np.argmin(row)) for row in self._partners]

    @property
    def agents(self) -> list[Agent]:
        """Bots, then earlier selves: indices of `seat`."""
        return [*self.bots, *self._selves]

    def remember(self, weights: Weights) -> None:
        """Keep the learner as it is now as an earlier self.

        The place of an agent in `agents` never changes meaning for a game under way, except that
        a replaced earlier self is played on by its successor.
        """
        if self._most == 0:
            return
        first, place = len(self.bots), len(self.earlier)
        if place < self._most:
            self.earlier.append(weights)
            self._selves.append(self._player(weights))
        else:
            place = int(np.argmax(self.won[first:]))
            self.earlier[place], self._selves[place] = weights, self._player(weights)
        self.won[first + place] = 0.5

    def new_duty(self, random: np.random.Generator) -> None:
        """Draw the earlier selves that are met from now on, the harder ones more likely."""
        count = min(self._on_duty, len(self.earlier))
        if count:
            first = len(self.bots)
            weights = self._priorities(np.arange(first, first + len(self.earlier)))
            drawn = random.choice(len(self.earlier), count, replace=False, p=weights)
            self.duty = sorted(int(place) for place in drawn)

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """See `carolus_env.envs.learner.Opponents`."""
        n = len(learner_seats)
        which = random.random(n)
        own, earlier = self._shares
        chosen = np.full(n, LEARNER)
        if self.bots:
            bots = np.flatnonzero(which >= own + earlier)
            chosen[bots] = self._draw(np.arange(len(self.bots)), len(bots), random)
        if self.duty:
            selves = np.flatnonzero((which >= own) & (which < own + earlier))
            places = len(self.bots) + np.array(self.duty)
            chosen[selves] = self._draw(places, len(selves), random)
        tables = np.repeat(chosen[:, None], self._rules.players, axis=1)
        tables[self._partners[learner_seats]] = LEARNER
        return tables

    def note(self, ended: Ended) -> dict[str, list[float]]:
        """Learn from games that ended how hard the opponents are.

        Returns:
            the learner's shares of the win in those games, by kind of opponent.
        """
        teams, shares = self._rules.teams, ended.learners_payoffs
        shares = (shares * (teams - 1) + 1) / teams
        found: dict[str, list[float]] = {}
        for table, seat, share in zip(ended.tables, ended.seats, shares, strict=True):
            enemy = int(table[self._an_enemy[seat]])
            if enemy != LEARNER:
                self.won[enemy] += 0.02 * (share - self.won[enemy])
                found.setdefault(self.kind(enemy), []).append(float(share))
        return found

    def kind(self, index: int) -> str:
        """What the agent at an index of `seat` is: a bot's spec or ``earlier``."""
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
        return {"won": self.won.tolist(), "duty": self.duty, "earlier": len(self.earlier)}, weights

    def restore(self, about: dict[str, Any], weights: Weights) -> None:
        """Be the league that `state` was asked of."""
        self.earlier = [{} for _ in range(about["earlier"])]
        for name, values in weights.items():
            place, _, key = name.partition(".")
            self.earlier[int(place)] = {**self.earlier[int(place)], key: values}
        self._selves = [self._player(one) for one in self.earlier]
        self.won[:] = about["won"]
        self.duty = list(about["duty"])
