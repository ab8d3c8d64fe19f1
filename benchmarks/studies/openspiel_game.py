"""Our game behind OpenSpiel's Python interface, and OpenSpiel's tree search as an agent.

`CarolusGame` and `CarolusState` contain no rules; they forward to `carolus_env.engine` and
`engine.chance`. Decisions have the engine's action numbers. Every roll is a chance node, whose
outcomes are the multisets of `chance_outcomes`, by row. The set-up is not a chance node: the
territories and the first player come from the game's ``seed``.

    >>> game = pyspiel.load_game("python_carolus_magnus(players=3,seed=7)")
    >>> state = game.new_initial_state()

Importing this module registers the game with OpenSpiel, and the agent ``openspiel`` with
`carolus_env.bots`: ``openspiel:sims=50,c=2,rollouts=theirs``. OpenSpiel is not a dependency of this
project; see `INSTALL` in referee.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python.algorithms.mcts import MCTSBot, RandomRolloutEvaluator, SearchNode

from carolus_env import bots, engine
from carolus_env.bots.options import check, option, parse
from carolus_env.drawing.text import board_text
from carolus_env.engine.chance import apply_roll, chance_outcomes
from carolus_env.engine.playout import playout
from carolus_env.engine.rules import ACTIONS, CLAN_NAMES, OVER, ROLL, Rules, action_text
from carolus_env.engine.state import States, as_states, single
from carolus_env.engine.streams import check_streams, random_bits

FACE_NAMES: Final = (*CLAN_NAMES, "crown")
CHOICES: Final = {"uct": SearchNode.uct_value, "puct": SearchNode.puct_value}
ROLLOUTS: Final = ("theirs", "ours")
TIES: Final = ("shuffled", "first")

GAME_TYPE: Final = pyspiel.GameType(
    short_name="python_carolus_magnus",
    long_name="Python Carolus Magnus",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    min_num_players=2,
    max_num_players=4,
    provides_information_state_string=False,
    provides_information_state_tensor=False,
    provides_observation_string=False,
    provides_observation_tensor=False,
    parameter_specification={"players": 2, "seed": 0},
)


# ------------------------------------------------------------------------------------ the game


class CarolusGame(pyspiel.Game):
    """The game with the printed rulebook's options.

    Args:
        params: ``players`` (2 to 4, by default 2) and ``seed`` of the set-up (by default 0).
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        chosen = {**GAME_TYPE.parameter_specification, **(params or {})}
        rules = Rules(players=chosen["players"])
        crowns = rules.reserve + rules.max_rounds * rules.dice
        info = pyspiel.GameInfo(
            num_distinct_actions=ACTIONS,
            max_chance_outcomes=len(chance_outcomes(rules.reserve).ways),
            num_players=rules.players,
            min_utility=-1.0 / (rules.teams - 1),
            max_utility=1.0,
            utility_sum=0.0,
            # each player's crowns; each round's disc, paladins and move
            max_game_length=rules.players * (crowns + rules.max_rounds * (rules.dice + 2)),
        )
        super().__init__(GAME_TYPE, info, chosen)
        self._start = engine.new_games(rules, 1, seed=chosen["seed"], roll=False)
        self._rolls = rules.players * (1 + rules.max_rounds)

    def new_initial_state(self) -> CarolusState:
        """The set-up, before the first roll."""
        return CarolusState(self, self._start.copy())

    def resumed_from(self, state: np.void) -> CarolusState:
        """A copy of any position ``states[i]`` of as many players, with its options."""
        return CarolusState(self, single(state))

    def max_chance_nodes_in_history(self) -> int:
        return self._rolls


class CarolusState(pyspiel.State):
    """A position: a decision, a roll, or the end.

    Attributes:
        states: ``(1,)`` of dtype `STATE`, the game itself.
    """

    def __init__(self, game: CarolusGame, states: States) -> None:
        super().__init__(game)
        self.states = states  # OpenSpiel's `clone` makes deep copies of all attributes
        self._look()

    def _look(self) -> None:
        self._phase = int(self.states["phase"][0])
        self._player = int(self.states["player"][0])

    def current_player(self) -> int:
        if self._phase == ROLL:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL) if self._phase == OVER else self._player

    def is_terminal(self) -> bool:
        return self._phase == OVER

    def returns(self) -> list[float]:
        """Payoff of each seat; zeros until the game is over."""
        payoffs: list[float] = engine.returns(self.states)[0].tolist()
        return payoffs

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Rows of `chance_outcomes` for the dice that are due, each with its probability."""
        return list(_outcomes(int(self.states["dice_due"][0])))  # OpenSpiel's search shuffles it

    def _legal_actions(self, player: int) -> list[int]:
        return list(_numbers(engine.legal_masks(self.states).tobytes()))

    def _apply_action(self, action: int) -> None:
        if self._phase == ROLL:
            apply_roll(self.states, chance_outcomes(self.states["dice_due"][0]).faces[action])
        else:
            engine.step(self.states, np.array([action]), roll=False)
        self._look()

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return action_text(action)
        faces = chance_outcomes(self.states["dice_due"][0]).faces[action]
        return "roll " + ", ".join(FACE_NAMES[face] for face in faces)

    def __str__(self) -> str:
        return board_text(self.states[0])


@cache
def _outcomes(dice: int) -> tuple[tuple[int, float], ...]:
    return tuple(enumerate(chance_outcomes(dice).probabilities.tolist()))


@cache
def _numbers(mask: bytes) -> tuple[int, ...]:
    """The action numbers of a legal set."""
    return tuple(np.flatnonzero(np.frombuffer(mask, np.int8)).tolist())


pyspiel.register_game(GAME_TYPE, CarolusGame)


# ------------------------------------------------------------------------------------ the agent


@dataclass(frozen=True)
class OpenSpielOptions:
    """How `OpenSpielBot` searches.

    Raises:
        ValueError: for a value that is not allowed.
    """

    sims: int = option(50, "simulations a decision", among=(2, 1_000_000))
    choice: str = option("uct", "selection in the tree; puct: equal priors", among=tuple(CHOICES))
    c: float = option(2.0, "uct_c, for payoffs from -1 to 1", among=(0.0, 1000.0))
    ties: str = option(
        "shuffled",
        "ties: broken at random (OpenSpiel's way), or the lowest action",
        among=TIES,
    )
    rollouts: str = option(
        "theirs", "random games: by OpenSpiel's loop, or by our playout", among=ROLLOUTS
    )

    def __post_init__(self) -> None:
        check("openspiel", self)


class OpenSpielBot(bots.Agent):
    """OpenSpiel's ``MCTSBot``: UCT or PUCT with its solver, a node for each roll, random rollouts.

    Attributes:
        simulations: done so far.
    """

    name = "openspiel"

    def __init__(self, options: OpenSpielOptions | None = None) -> None:
        self.options = options or OpenSpielOptions()
        self.simulations = 0

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        seeds = random_bits(generators)
        return np.array([self._choice(*pair) for pair in zip(states, seeds, strict=True)], np.int64)

    def _choice(self, state: np.void, seed: np.uint64) -> int:
        legal = engine.legal_actions(state)
        if len(legal) == 1:
            return int(legal[0])
        return int(self.search(state, seed).best_child().action)

    def search(self, state: np.void, seed: np.uint64) -> SearchNode:
        """The root of a search from a game ``states[i]`` with a decision."""
        game = _game(int(state["players"]))
        kind = np.random.RandomState if self.options.ties == "shuffled" else Unshuffled
        random_state = kind(np.random.MT19937(int(seed)))
        evaluator = RandomRolloutEvaluator(1, random_state)
        if self.options.rollouts == "ours":
            evaluator = OurRollouts(seed)
        search = MCTSBot(
            game,
            self.options.c,
            self.options.sims,
            evaluator,
            random_state=random_state,
            child_selection_fn=CHOICES[self.options.choice],
        )
        root = search.mcts_search(game.resumed_from(state))
        self.simulations += root.explore_count
        return root


class Unshuffled(np.random.RandomState):
    """Keeps choices in the order of their numbers, where the search would shuffle them."""

    def shuffle(self, x: Any) -> None:
        """Do nothing."""


class OurRollouts(RandomRolloutEvaluator):
    """Random games by `engine.playout`: the same distribution as OpenSpiel's, but much faster."""

    def __init__(self, seed: np.uint64) -> None:
        super().__init__()
        self._stream = np.array([seed], np.uint64)

    def evaluate(self, state: CarolusState) -> npt.NDArray[np.float32]:
        return playout(state.states, self._stream).returns[0]


@cache
def _game(players: int) -> CarolusGame:
    return CarolusGame({"players": players})


bots.register(
    "openspiel",
    lambda argument: OpenSpielBot(parse("openspiel", OpenSpielOptions, argument)),
    "OpenSpiel's tree search with random rollouts: openspiel:sims=50",
)
