"""Players for both sides: the package's agents in OpenSpiel, and OpenSpiel's bots here.

    >>> bots = [AgentBot("planner", 0, seed=1), UniformRandomBot(1, random_state)]
    >>> evaluate_bots.evaluate_bots(game.new_initial_state(), bots, random_state)

The other way, a `BotAgent` plays in ``evaluate.py``, tournaments and environments. In a file
``my_bot.py`` this is the agent ``my_bot.py:Search``:

    >>> class Search(BotAgent):
    ...     def __init__(self):
    ...         super().__init__(lambda game, seat, seed: mcts.MCTSBot(
    ...             game, 1.0, 100, PlayoutEvaluator(seed=seed), random_state=RandomState(seed)))
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine.playout import playout
from carolus_env.engine.state import States, as_states
from carolus_env.engine.streams import check_streams, new_streams, random_bits
from carolus_env.integrations.openspiel import (
    CarolusMagnusGame,
    CarolusMagnusState,
    game_of,
)

# After the module above, which says what to install.
import pyspiel  # isort: skip
from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator  # isort: skip

MakeBot = Callable[[CarolusMagnusGame, int, int], pyspiel.Bot]
"""Makes a bot for a game, a seat, and a seed from 0 to 2^32 - 1."""


class AgentBot(pyspiel.Bot):
    """An agent of the package as a bot of OpenSpiel.

    Args:
        agent: the agent, or its spec, such as ``"planner"`` or ``"value:2p"``.
        player: the seat that it plays.
        seed: of its random stream; None: from the operating system.

    Raises:
        AgentError: for a spec that makes no agent.
    """

    def __init__(self, agent: Agent | str, player: int, seed: int | None = None) -> None:
        pyspiel.Bot.__init__(self)
        self.agent = bots.make(agent) if isinstance(agent, str) else agent
        self._player = player
        self._stream = new_streams(seed, 1)

    def player_id(self) -> int:
        """The seat that it plays."""
        return self._player

    def provides_policy(self) -> bool:
        """False: an agent chooses an action and does not say how likely the others were."""
        return False

    def restart_at(self, state: CarolusMagnusState) -> None:
        """Nothing: an agent keeps nothing of a game."""

    def inform_action(self, state: CarolusMagnusState, player: int, action: int) -> None:
        """Nothing: the position says everything."""

    def step(self, state: CarolusMagnusState) -> int:
        """The agent's choice in ``state``, where its seat decides."""
        return int(self.agent.act(state.states, self._stream)[0])


class BotAgent(Agent):
    """A bot of OpenSpiel as an agent of the package.

    A new bot chooses at each decision, so that decisions depend on position and seed alone. It
    searches from the position with an empty history. Forced decisions are not asked.

    Args:
        make: makes the bot of a decision.
        name: in results.
    """

    def __init__(self, make: MakeBot, name: str = "openspiel bot") -> None:
        self._make = make
        self.name = name

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """One legal action for each game.

        Raises:
            ValueError: when a game does not wait for a decision.
        """
        check_streams(generators, as_states(states))
        seeds = random_bits(generators) >> np.uint64(32)
        return np.array([self._choice(*pair) for pair in zip(states, seeds, strict=True)], np.int64)

    def _choice(self, record: np.void, seed: np.uint64) -> int:
        legal = engine.legal_actions(record)
        if len(legal) == 0:
            raise ValueError("a game does not wait for a decision")
        if len(legal) == 1:
            return int(legal[0])
        game = game_of(engine.rules_of(record))
        bot = self._make(game, int(record["player"]), int(seed))
        return int(bot.step(game.state_of(record)))


class PlayoutEvaluator(RandomRolloutEvaluator):
    """Random rollouts for OpenSpiel's search, played by the package's compiled `playout`.

    They have the distribution of OpenSpiel's `RandomRolloutEvaluator`, which plays each decision in
    Python. While the set-up is being drawn, that one plays.

    Args:
        repeats: rollouts at each evaluation.
        seed: of the rollouts; None: from the operating system.
    """

    def __init__(self, repeats: int = 1, seed: int | None = None) -> None:
        super().__init__(repeats, None if seed is None else np.random.RandomState(seed % 2**32))
        self._stream = new_streams(seed, 1)

    def evaluate(self, state: CarolusMagnusState) -> npt.NDArray[np.float32]:
        """``(players,)`` the mean payoff of each seat."""
        if state.in_set_up:
            found: npt.NDArray[np.float32] = super().evaluate(state).astype(np.float32)
            return found
        return playout(state.states, self._stream, repeats=self.n_rollouts).returns[0]
