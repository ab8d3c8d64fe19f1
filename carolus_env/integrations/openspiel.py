"""The game ``carolus_magnus`` in OpenSpiel; importing this module registers it.

    >>> import pyspiel
    >>> import carolus_env.integrations.openspiel
    >>> game = pyspiel.load_game("carolus_magnus(players=3,crown_choice=deferred)")
    >>> state = game.new_initial_state()

All chance is explicit: fifteen nodes that each draw the paladin of a territory without replacement,
one for the first player, and one for each roll, whose outcomes are the rows of `chance_outcomes`.
Decisions have the engine's action numbers. Players go both ways: `AgentBot` is an agent for
OpenSpiel, `BotAgent` a bot of OpenSpiel for the package. So ``my_bot.py:Search`` is an agent:

    >>> class Search(BotAgent):
    ...     def __init__(self):
    ...         super().__init__(lambda game, seat, seed: mcts.MCTSBot(
    ...             game, 1.0, 100, PlayoutEvaluator(seed=seed), random_state=RandomState(seed)))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine, notation
from carolus_env.bots import Agent
from carolus_env.engine import chance, observation, rules
from carolus_env.engine.play import playout
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import States, as_states, copy, single
from carolus_env.notation.positions import CLAN_LETTERS

try:
    import pyspiel
    from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ImportError as error:
    raise ImportError(
        f"{__name__} needs OpenSpiel ({error}): pip install open_spiel==2.0.2"
    ) from error

CHANCE: Final = int(pyspiel.PlayerId.CHANCE)
TERMINAL: Final = int(pyspiel.PlayerId.TERMINAL)

NO_LIMIT: Final = 10**9  # the longest game where max_rounds is 0; twice that is still a C++ int


def _parameters(rules: Rules) -> dict[str, Any]:
    """Return rules as parameters of a game: 0 stands for None, which OpenSpiel lacks."""
    return {name: value or 0 for name, value in rules.to_dict().items()}


PARAMETERS: Final[dict[str, Any]] = {**_parameters(Rules()), "position": ""}
GAME_TYPE: Final = pyspiel.GameType(
    short_name="carolus_magnus",
    long_name="Carolus Magnus",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    min_num_players=2,
    max_num_players=4,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=True,
    parameter_specification=PARAMETERS,
)


# ------------------------------------------------------------------------------------ the game


class CarolusMagnusGame(pyspiel.Game):
    """Carolus Magnus for two, three or four players.

    ``params`` are the fields of `Rules` (0 for None), and ``position``: a line of the notation
    (docs/notation.md) where every game starts, instead of the set-up. Its rules are the game's.
    Since OpenSpiel's game strings have ``=`` for parameters, they may be written with a colon:
    ``2 max_rounds:9 | 9 | ...``.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        chosen = {**PARAMETERS, **(params or {})}
        position = chosen.pop("position")
        may_be_none = {name for name, entry in rules.OPTIONS.items() if entry.or_none}
        chosen |= {name: None for name in may_be_none if chosen[name] == 0}
        self.rules = Rules.from_dict(chosen)
        self._start, over = None, 0  # rounds that are over
        if position:
            self._start = _read(position)
            self.rules = _agreed(engine.rules_of(self._start[0]), self.rules)
            over = max(int(self._start["round"][0]) - 1, 0)
        players, dice, longest = self.rules.players, self.rules.dice, NO_LIMIT
        self._chances = NO_LIMIT
        if self.rules.max_rounds is not None:
            rounds = self.rules.max_rounds - over
            self._chances = players * (1 + rounds) + (0 if position else rules.TERRITORIES + 1)
            # Each player's crowns; then each round's disc, paladins, move, and crowns again.
            longest = players * (self.rules.reserve + rounds * (2 * dice + 2))
        info = pyspiel.GameInfo(
            num_distinct_actions=rules.ACTIONS,
            max_chance_outcomes=len(chance.chance_outcomes(self.rules.reserve).ways),
            num_players=players,
            min_utility=-1.0 / (self.rules.teams - 1),
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=longest,
        )
        named = _parameters(self.rules)
        if self._start is not None:
            line = notation.to_line(self._start[0], generator=False)
            named["position"] = line.replace("=", ":")
        super().__init__(GAME_TYPE, info, named)

    def new_initial_state(self, position: str | None = None) -> CarolusMagnusState:
        """Return the set-up, or the game's position; or the position given as text."""
        if position is not None:
            return self.state_of(_read(position)[0])
        return CarolusMagnusState(self, None if self._start is None else copy(self._start))

    def state_of(self, record: np.void) -> CarolusMagnusState:
        """Return ``states[i]``, a game with these rules, as a state with an empty history.

        The dice to come are not the record's: they are chance nodes.
        """
        if (found := engine.rules_of(record)) != self.rules:
            raise ValueError(f"the position has {found}, but the game {self.rules}")
        return CarolusMagnusState(self, _without_dice(record))

    def max_chance_nodes_in_history(self) -> int:
        return self._chances

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (str(self),)  # OpenSpiel's own way would lose the attributes

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> Any:
        """Return the source of OpenSpiel's tensors and strings: everything is public."""
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return CarolusMagnusObserver(self.rules.players, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


@cache
def game_of(rules: Rules) -> CarolusMagnusGame:
    """Return the game with these rules; the same object at every call."""
    return CarolusMagnusGame(_parameters(rules))


def _loaded(text: str) -> Any:
    """Return the game that was pickled; importing this module registers it in the process."""
    return pyspiel.load_game(text)


def _without_dice(record: np.void) -> States:
    """Return a copy, ``(1,)``, with no dice to come, so that equal positions are equal bytes."""
    states = single(record)
    states["generator"] = 0
    return states


def _read(position: str) -> States:
    """Parse a game, ``(1,)``, without the dice to come."""
    words, bar, rest = position.partition("|")
    if bar:  # on a page a colon is no equals sign
        words = words.replace(":", "=")
    return _without_dice(notation.from_text(words + bar + rest)[0])


def _agreed(position: Rules, parameters: Rules) -> Rules:
    """Return the position's rules, unless a parameter that is not the default differs."""
    usual, found = Rules().to_dict(), position.to_dict()
    for name, value in parameters.to_dict().items():
        if value not in (usual[name], found[name]):
            raise ValueError(
                f"{name} is {value!r}, but the position has {found[name]!r}: "
                "leave it out, the position's rules are the game's"
            )
    return position


# ------------------------------------------------------------------------------------ the state


class CarolusMagnusState(pyspiel.State):
    """A decision, a chance node, or the end. `CarolusMagnusGame.new_initial_state` makes it.

    ``str(state)`` is the position as a line of the notation: equal lines are equal positions.
    """

    def __init__(self, game: CarolusMagnusGame, states: States | None) -> None:
        super().__init__(game)
        # The only attributes: OpenSpiel copies and pickles each of them.
        self._states = states  # None while the set-up is being drawn
        self._clans: tuple[int, ...] = ()  # drawn so far

    @property
    def states(self) -> States:
        """A copy of the game, ``(1,)``, which begins when the set-up is drawn."""
        if self._states is None:
            raise ValueError(f"there is no game yet, the set-up is being drawn: {self}")
        return copy(self._states)

    @property
    def in_set_up(self) -> bool:
        """True if the set-up is still being drawn; its rolls come later."""
        return self._states is None

    def current_player(self) -> int:
        """Return the seat that decides, or OpenSpiel's number of chance or the end."""
        if self._states is None:
            return CHANCE
        phase = self._states["phase"][0]
        if phase == rules.ROLL:
            return CHANCE
        return TERMINAL if phase == rules.OVER else int(self._states["player"][0])

    def is_terminal(self) -> bool:
        return self.current_player() == TERMINAL

    def is_chance_node(self) -> bool:
        return self.current_player() == CHANCE

    def returns(self) -> list[float]:
        """Return each seat's payoff; zeros until the game is over, and where it was cut off."""
        if self._states is None:
            return [0.0] * self.num_players()
        payoffs: list[float] = engine.returns(self._states)[0].tolist()
        return payoffs

    def chance_outcomes(self) -> list[tuple[int, float]]:
        if not self.is_chance_node():
            raise ValueError(f"no chance event is due: {self}")
        if self._states is not None:
            outcomes = chance.chance_outcomes(self._states["dice_due"][0])
            return list(enumerate(outcomes.probabilities.tolist()))
        if len(self._clans) == rules.TERRITORIES:
            return [(seat, 1 / self.num_players()) for seat in range(self.num_players())]
        left = [rules.PALADINS_LAID_OUT - self._clans.count(clan) for clan in range(rules.CLANS)]
        return [(clan, number / sum(left)) for clan, number in enumerate(left) if number]

    def _legal_actions(self, player: int) -> list[int]:
        return [] if self._states is None else engine.legal_actions(self._states).tolist()

    def _apply_action(self, action: int) -> None:
        if self._states is None:
            possible = [number for number, _ in self.chance_outcomes()]
            if action not in possible:
                raise ValueError(f"a chance outcome must be one of {possible} here, got {action}")
            if len(self._clans) < rules.TERRITORIES:
                self._clans += (action,)
                return
            drawn: Any = {"territories": self._clans, "first_player": action}
            [game] = engine.new_games(self.get_game().rules, seed=0, roll=False, **drawn)
            self._states = _without_dice(game)
        elif self.is_chance_node():
            chance.apply_roll(self._states, self._faces(action))
        else:
            engine.step(self._states, np.array([action]), roll=False)

    def _faces(self, outcome: int) -> npt.NDArray[np.uint8]:
        """Return the dice of an outcome of the roll that is due."""
        faces = chance.chance_outcomes(self.states["dice_due"][0]).faces
        if not 0 <= outcome < len(faces):
            raise ValueError(
                f"a chance outcome must be from 0 to {len(faces) - 1} here, got {outcome}"
            )
        return faces[outcome]

    def _action_to_string(self, player: int, action: int) -> str:
        if player != CHANCE:
            if player == self.current_player() and action in self._legal_actions(player):
                return notation.move_text(self.states[0], action)
            return rules.action_text(action)  # its meaning alone, without names of regions
        if not self.in_set_up:
            return notation.roll_text(self._faces(action).tolist())
        if len(self._clans) == rules.TERRITORIES:
            return f"first player {action}"
        return f"territory {len(self._clans)} {rules.CLAN_NAMES[action]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _resumed, (pyspiel.serialize_game_and_state(self.get_game(), self),)

    def __str__(self) -> str:
        if self._states is None:
            return " ".join(["set-up |", *(CLAN_LETTERS[clan] for clan in self._clans)])
        return notation.to_line(self._states[0], generator=False)


def _resumed(text: str) -> Any:
    return pyspiel.deserialize_game_and_state(text)[1]


class CarolusMagnusObserver:
    """The package's observation for OpenSpiel: from the seat's own view, Emperor's region first.

    The seat comes before it, one-hot in the block ``player``: the rest looks the same from every
    seat, but OpenSpiel's AlphaZero learns the value to player 0. While the set-up is being drawn,
    only the paladins laid out so far are shown.

    Attributes:
        tensor: ``(players + length,)`` float32; docs/environments.md has the other entries.
        dict: the observation's blocks by name, as views.
    """

    def __init__(self, players: int, params: dict[str, Any] | None = None) -> None:
        if params:
            raise ValueError(f"the observation has no parameters, got {params}")
        self._players = players
        self.tensor = np.zeros(players + observation.length(players), np.float32)
        self._observed = self.tensor[None, players:]
        blocks = observation.unpack(self._observed[0], players)
        self.dict = {"player": self.tensor[:players], **blocks}

    def set_from(self, state: CarolusMagnusState, player: int) -> None:
        """Write ``player``'s observation into `tensor`."""
        if not 0 <= player < self._players:
            raise ValueError(f"player must be from 0 to {self._players - 1}, got {player}")
        self.tensor[:] = 0
        self.tensor[player] = 1
        if not state.in_set_up:
            viewer = np.array([player])
            observation.observe(state.states, viewer, dtype=np.float32, out=self._observed)
            return
        clans = state._clans
        self.dict["region_paladins"][clans, range(len(clans))] = 1
        self._observed *= observation.scales(self._players)

    def string_from(self, state: CarolusMagnusState, player: int) -> str:
        """Return the position as a line of the notation, the same for every seat."""
        return str(state)


pyspiel.register_game(GAME_TYPE, CarolusMagnusGame)


# ------------------------------------------------------------------------------------ players

MakeBot = Callable[[CarolusMagnusGame, int, int], pyspiel.Bot]  # of a game, a seat, and a seed


class AgentBot(pyspiel.Bot):
    """An agent of the package, or its spec, as a bot of OpenSpiel in the seat ``player``.

    ``seed`` is that of the bot's random stream; None: from the operating system.
    """

    def __init__(self, agent: Agent | str, player: int, seed: int | None = None) -> None:
        pyspiel.Bot.__init__(self)
        self.agent = bots.make(agent) if isinstance(agent, str) else agent
        self._player, self._stream = player, chance.new_streams(seed, 1)

    def player_id(self) -> int:
        return self._player

    def restart_at(self, state: CarolusMagnusState) -> None:
        """Do nothing: an agent keeps nothing of a game."""

    def step(self, state: CarolusMagnusState) -> int:
        """Return the agent's choice in ``state``, where its seat decides."""
        return int(self.agent.act(state.states, self._stream)[0])


class BotAgent(Agent):
    """A bot of OpenSpiel as an agent of the package.

    ``make`` makes a new bot at each decision, so that decisions depend on position and seed alone.
    It searches from the position with an empty history. Forced decisions are not asked.
    """

    def __init__(self, make: MakeBot, name: str = "openspiel bot") -> None:
        self._make, self.name = make, name

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`."""
        chance.check_streams(generators, as_states(states))
        seeds = (chance.random_bits(generators) >> np.uint64(32)).tolist()
        return np.array([self._choice(*pair) for pair in zip(states, seeds, strict=True)], np.int64)

    def _choice(self, record: np.void, seed: int) -> int:
        legal = engine.legal_actions(record)
        if len(legal) == 0:
            raise ValueError("a game does not wait for a decision")
        if len(legal) == 1:
            return int(legal[0])
        game = game_of(engine.rules_of(record))
        return int(self._make(game, int(record["player"]), seed).step(game.state_of(record)))


class PlayoutEvaluator(RandomRolloutEvaluator):
    """Random rollouts for OpenSpiel's search, played by the package's compiled `playout`.

    They have the distribution of OpenSpiel's `RandomRolloutEvaluator`, which plays each decision in
    Python, and while the set-up is being drawn. Each evaluation is the mean of ``repeats``.
    """

    def __init__(self, repeats: int = 1, seed: int | None = None) -> None:
        super().__init__(repeats, None if seed is None else np.random.RandomState(seed % 2**32))
        self._stream = chance.new_streams(seed, 1)

    def evaluate(self, state: CarolusMagnusState) -> npt.NDArray[np.float32]:
        """Return the mean payoff of each seat, ``(players,)``."""
        if state.in_set_up:
            return np.asarray(super().evaluate(state), np.float32)
        return playout(state.states, self._stream, repeats=self.n_rollouts).returns[0]
