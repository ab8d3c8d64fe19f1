"""``value`` with ``seconds``: a turn's best plans are followed through the dice until time is over.

Every roll is followed, by its probability, so the clock says only how many of the plans are. They
are followed one after the other, those first that are best by the position after them.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, Opinion
from carolus_env.bots.models import parse_model
from carolus_env.bots.remembered import Remembered
from carolus_env.bots.value.ahead import follow
from carolus_env.bots.value.bot import ValueBot, ValueOptions
from carolus_env.bots.value.choice import value_choices
from carolus_env.engine.rules import ACTIONS, MOVE, PLACE
from carolus_env.engine.state import States, as_states
from carolus_env.engine.streams import check_streams
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.choices import list_choices
from carolus_env.planning.plans import actions_of
from carolus_env.system import stopping
from carolus_env.system.compiler import entry


class TimedValueBot(ValueBot):
    """Plays as `ValueBot`, but thinks about each turn for a time, once, at its beginning.

    Results depend on the clock, unless the time suffices for all plans. A turn can be stopped
    after each plan (`carolus_env.system.stopping`).

    Args:
        model: as for `ValueBot`.
        options: with ``seconds``; ``next`` and ``rolls`` are not used.
    """

    timed = True

    def __init__(
        self, model: NetworkModel | None = None, options: ValueOptions | None = None
    ) -> None:
        super().__init__(model, options)
        self._remembered = Remembered()

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        plans = self._remembered.rests(states, generators)
        for row, plan in enumerate(plans):
            if not plan:
                plans[row] = self._thought(states[row : row + 1], generators[row : row + 1])[0]
        return self._remembered.keep(states, generators, plans)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Its choice, and the value after it."""
        probabilities, values = super().opinion(states, generators)
        assert probabilities is not None and values is not None
        for row in np.flatnonzero(_in_turn(states)).tolist():
            plan, mean = self._thought(states[row : row + 1], generators[row : row + 1])
            probabilities[row] = np.eye(ACTIONS)[plan[0]]
            if mean is not None:
                values[row] = mean
        return Opinion(probabilities, values)

    def _thought(
        self, state: States, stream: npt.NDArray[np.uint64]
    ) -> tuple[list[int], npt.NDArray[np.float64] | None]:
        """The actions to play in a game, and each team's share of the win where dice follow."""
        if not _in_turn(state)[0]:
            return super().act(state, stream).tolist(), None
        end, stop = time.perf_counter() + self.options.seconds, stopping.current()
        player = self.player(int(state["players"][0]))
        choices, now = player.chooser.lister.choices, player.chooser.values
        team, teams = int(state["team"][0, state["player"][0]]), int(state["teams"][0])
        best, chosen, values = -1.0, 0, None
        for k in np.argsort(-now[: _list(state, player)], kind="stable").tolist():
            dice = _follow(state, choices[k], player)
            stop.check()
            mean = float(player.ahead.means[team] if dice else now[k])
            if mean > best:
                best, chosen = mean, int(choices[k])
                values = player.ahead.means[:teams].copy() if dice else None
            if time.perf_counter() >= end:
                break
        return actions_of(chosen), values


def _in_turn(states: States) -> npt.NDArray[np.bool_]:
    return np.isin(states["phase"], (PLACE, MOVE))


@entry
def _list(states, player):
    """List and value a turn's plans; returns how many."""
    count = list_choices(states[0], player.chooser.lister)
    value_choices(states[0], player.chooser, count)
    return count


@entry
def _follow(states, plan, player):
    """Follow a plan through every roll; returns whether dice are due."""
    return follow(states[0], plan, player.ahead, 0, 0)


def make_value(argument: str) -> Agent:
    """Make ``value:ARGUMENT``: a model's name or path or nothing, then options."""
    model, options = parse_model("value", argument, ValueOptions, "value")
    return (TimedValueBot if options.seconds else ValueBot)(model, options)
