"""Who the learner plays against: itself as it is, its earlier selves, and the bots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents.policy import PolicyAgent, PolicyNetwork, load, save
from carolus_env.bots import Agent, make
from carolus_env.rules import Rules


class League:
    """Opponents for `carolus_env.envs.learner`, drawn anew for each game.

    All opponents at a table are of one kind: the current self, one earlier self, or one bot, so
    that a game says something about that opponent. A partner (4 players) is the current self.

    Args:
        rules: number of players and partners.
        bots: spec strings of the scripted opponents.
        earlier: how many earlier selves are kept; a newcomer replaces one at random.
        self_share: share of the games against the current self.
        earlier_share: share against earlier selves (the current one until there are any); the
            rest is shared evenly by the bots.
    """

    def __init__(
        self,
        rules: Rules,
        bots: Sequence[str],
        *,
        earlier: int,
        self_share: float,
        earlier_share: float,
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
        self._rules = rules
        self._bots: list[Agent] = [make(spec) for spec in bots]
        self._earlier: list[PolicyAgent] = []
        self._most = earlier
        self._shares = (self_share, earlier_share)
        self._current: PolicyAgent | None = None
        teams = np.array([rules.team(seat) for seat in range(rules.players)])
        self._partners = teams[:, None] == teams[None, :]

    @property
    def agents(self) -> list[Agent]:
        """Current self (after `update`), bots, earlier selves: indices of `seat`."""
        assert self._current is not None, "update the league with a network first"
        return [self._current, *self._bots, *self._earlier]

    def update(self, current: PolicyNetwork) -> None:
        """Let the current self play as the learner plays now."""
        if self._current is None:
            self._current = PolicyAgent(current, temperature=1.0)
        self._current.network = current

    def remember(self, network: PolicyNetwork, random: np.random.Generator) -> None:
        """Keep a copy of the current self as an earlier one.

        The place of an agent in `agents` never changes meaning for a game under way, except that
        a replaced earlier self is played on by its successor.
        """
        agent = PolicyAgent(network, temperature=1.0)
        if len(self._earlier) < self._most:
            self._earlier.append(agent)
        elif self._most:
            self._earlier[int(random.integers(self._most))] = agent

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """See `carolus_env.envs.learner.Opponents`."""
        n = len(learner_seats)
        which = random.random(n)
        own, earlier = self._shares
        chosen = np.zeros(n, np.int64)
        if self._bots:
            against_bots = which >= own + earlier
            chosen[against_bots] = 1 + random.integers(len(self._bots), size=against_bots.sum())
        if self._earlier:
            against_earlier = (which >= own) & (which < own + earlier)
            first = 1 + len(self._bots)
            drawn = random.integers(len(self._earlier), size=against_earlier.sum())
            chosen[against_earlier] = first + drawn
        tables = np.repeat(chosen[:, None], self._rules.players, axis=1)
        tables[self._partners[learner_seats]] = 0
        return tables

    def kind(self, index: int) -> str:
        """What the agent at an index of `seat` is: ``self``, ``earlier`` or a bot's spec."""
        if index == 0:
            return "self"
        if index <= len(self._bots):
            return self._bots[index - 1].name
        return "earlier"

    def save(self, folder: Path) -> None:
        """Write the earlier selves into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for i, agent in enumerate(self._earlier):
            save(agent.network, folder / f"{i:03d}")

    def load(self, folder: Path) -> None:
        """Read the earlier selves that `save` wrote."""
        paths = sorted(folder.glob("*.safetensors"))
        self._earlier = [PolicyAgent(load(path), temperature=1.0) for path in paths]
