"""PettingZoo: every seat is an agent, ``player_0`` to ``player_{players - 1}``.

    >>> from carolus_env import carolus_magnus_v0
    >>> env = carolus_magnus_v0.env(players=3, max_rounds=100)

Actions are ``Discrete(95)``, observations ``{"observation", "action_mask"}``. A player usually
decides several times in a row, and ``agent_selection`` stays on it meanwhile. Dice are rolled
inside ``step``. The mask is all zero for everyone but the player to move. Rewards are 0 until the
end, then the payoffs, which sum to 0; a game that reaches ``max_rounds`` is truncated. After the
end each agent takes the action None, as PettingZoo requires. docs/environments.md has the rest.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, Unpack, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from carolus_env import engine, envs
from carolus_env.drawing.pictures import WIDE, Window, board_pixels, state_svg
from carolus_env.drawing.text import board_text
from carolus_env.engine import observation
from carolus_env.engine.rules import ACTIONS, BY_MAX_ROUNDS, RuleOptions
from carolus_env.engine.state import States
from carolus_env.games.game import Game
from carolus_env.records import make_record
from carolus_env.system.options import instance, integer, one_of, seed_number

Arguments = ParamSpec("Arguments")


class CheckedEnv(OrderEnforcingWrapper):
    """`raw_env` in PettingZoo's OrderEnforcingWrapper, with `clone` and a faster `last`."""

    def last(self, observe: bool = True) -> Any:
        """See `raw_env.last`; the wrapper's own would look up five attributes by name."""
        return self.env.last(observe) if self._has_reset else super().last(observe)

    def __str__(self) -> str:
        return str(self.env)

    def _repr_svg_(self) -> str | None:
        return self.env._repr_svg_()

    def clone(self) -> CheckedEnv:
        """Return an independent copy, dice to come included."""
        return copy.deepcopy(self)


class raw_env(AECEnv):  # noqa: N801 (PettingZoo's name)
    """Carolus Magnus as a PettingZoo AEC environment, a thin view over the engine.

    Args:
        players: 2, 3 or 4.
        illegal: effect of an illegal action: an `IllegalActionError`, or the offender's team loses.
        observation: dtype of the observations.
        render_mode: None, ``"ansi"``, ``"rgb_array"`` or ``"human"``.
        rules: the other options of `Rules`.

    An unknown option is a TypeError, an impossible one a ValueError.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's way)
        "name": "carolus_magnus_v0",
        "render_modes": ["ansi", "rgb_array", "human"],
        "is_parallelizable": False,
        "render_fps": envs.RENDER_FPS,
    }

    def __init__(
        self,
        players: int = 2,
        *,
        illegal: Literal["raise", "forfeit"] = "raise",
        observation: Literal["float32", "uint8"] = "float32",
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        super().__init__()
        self.rules = envs.rules_for(raw_env, players, rules)
        envs.check_options(illegal, observation, render_mode, self.metadata)
        self.illegal, self.render_mode = illegal, render_mode
        self._window = Window("Carolus Magnus") if render_mode == "human" else None
        self._dtype = np.dtype(observation)
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        self._seats = {agent: np.array([seat]) for seat, agent in enumerate(self.possible_agents)}
        self.state_space = envs.observation_box(players, self._dtype)
        # PettingZoo declares both, and some libraries read them instead of calling the methods.
        self.observation_spaces = {
            agent: envs.with_mask(envs.observation_box(players, self._dtype), ACTIONS)
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(ACTIONS) for agent in self.possible_agents}
        self._random: np.random.Generator | None = None
        self._game: Game = cast(Game, envs.NotStarted())
        self._actions: list[int] = []
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space:
        """Return the dict of ``observation`` and ``action_mask``."""
        return self.observation_spaces[one_of("agent", agent, tuple(self.possible_agents))]

    def action_space(self, agent: str) -> spaces.Space:
        """Return ``Discrete(95)``."""
        return self.action_spaces[one_of("agent", agent, tuple(self.possible_agents))]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: the game's seed. None: the first time from the operating system, later drawn from
                the stream of the last seed.
            options: ``territories``, ``first_player`` or ``position`` (docs/environments.md).

        Raises:
            ValueError: for an unknown option, or a seed or an option that no game can start from
                (`PositionError` for a position). Nothing has changed, nor will the next games.
        """
        seed = seed_number(seed)
        options = instance("options", options or {}, Mapping, "a dict")
        envs.check_reset_options(options, (*envs.RESET_OPTIONS, "options"))
        if "options" in options:  # which PettingZoo's own test passes
            gymnasium.logger.warn("reset: the option 'options' is ignored")
        random = self._random
        if seed is not None or random is None:
            random = np.random.default_rng(seed)
        elif options:  # which may be refused, and then nothing was drawn
            random = copy.deepcopy(random)
        drawn = int(random.integers(2**63))
        self._start = envs.first_game(self.rules, options, drawn, seed)
        self._random = random
        self._from_set_up = "position" not in options
        self._game = Game(state=self._start, observe=self._dtype.name)
        self._actions = []

        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._hand_over()

    def last(self, observe: bool = True) -> Any:
        """Return observation, reward, terminated, truncated and info of the selected agent."""
        _ = self._game.over  # ResetNeeded before the first `reset`
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def step(self, action: int | None) -> None:
        """Carry out the selected player's decision, and roll what is due.

        Raises:
            ResetNeeded: before the first `reset`.
            IllegalActionError: with ``illegal="raise"``; the game stays as it was.
            TypeError: when the action is not a whole number.
            ValueError: for another action than None when the game is over.
        """
        game = self._game
        _ = game.over  # ResetNeeded before the first `reset`
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        try:  # costs nothing for numbers
            number = operator.index(action)  # type: ignore[arg-type]
        except TypeError:
            number = integer(f"the action of {agent}", action)  # raises
        try:
            game.play(number)
        except engine.IllegalActionError:
            if self.illegal == "raise":
                raise
            engine.forfeit(game.states)
            game.refresh()
            self.infos[agent] = {"illegal": True}
        else:
            self._actions.append(number)
        self._hand_over()

    def _hand_over(self) -> None:
        """Select the player to move, or the first agent when the game is over, and pay all."""
        game = self._game
        if not game.over:
            self.agent_selection = self.possible_agents[game.player]
        else:
            cut_off = bool(game.states["reason"][0] == BY_MAX_ROUNDS)
            self.rewards = dict(zip(self.agents, game.returns.tolist(), strict=True))
            self.terminations = dict.fromkeys(self.agents, not cut_off)
            self.truncations = dict.fromkeys(self.agents, cut_off)
            self.agent_selection = self.agents[0]
            self._accumulate_rewards()
        if self._window is not None:
            self._window.show(self._frame(), self.metadata["render_fps"])

    def observe(self, agent: str) -> dict[str, npt.NDArray[Any]]:
        """Return ``agent``'s ``{"observation", "action_mask"}``, new arrays."""
        game = self._game
        if not game.over and agent == self.agent_selection:  # `play` has written both
            assert game.observation is not None
            return {"observation": game.observation.copy(), "action_mask": game.mask.copy()}
        viewers = self._seats[one_of("agent", agent, tuple(self.possible_agents))]
        [observed] = observation.observe(game.states, viewers, dtype=self._dtype)
        return {"observation": observed, "action_mask": np.zeros(ACTIONS, np.int8)}

    def state(self) -> npt.NDArray[Any]:
        """Return the observation of ``player_0``; all information is public."""
        return observation.observe(self._game.states, np.zeros(1, np.int64), dtype=self._dtype)[0]

    @property
    def games(self) -> States:
        """A copy of the game as a batch of one record, for the functions of the engine."""
        return engine.copy(self._game.states)

    def record(self) -> dict[str, Any]:
        """Return the game so far as a game record (docs/formats.md), which leaves a forfeit out.

        It begins at the set-up; a game that was started from a position is a ValueError.
        """
        _ = self._game.over  # ResetNeeded before the first `reset`
        if not self._from_set_up:
            raise ValueError("a game that was started from a position has no record")
        return make_record(self._start, self._actions)

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (``"ansi"``) or ``(height, width, 3)`` pixels (``"rgb_array"``).

        None in mode ``"human"``, whose window already shows it, and, with a warning, without a
        render mode. Pictures need the extra ``render``.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() without a render mode: make the environment with render_mode='ansi', "
                "'rgb_array' or 'human'"
            )
            return None
        if self.render_mode == "ansi":
            return board_text(self._game.states[0])
        if self._window is None:
            return self._frame()
        self._window.show(self._frame())
        return None

    def _frame(self) -> npt.NDArray[np.uint8]:
        return board_pixels(self._game.states[0], last=self.last_decision(), **WIDE)

    def last_decision(self) -> tuple[np.void, int] | None:
        """Return the state before the last action, by replay, and that action; None before it."""
        if not self._actions:
            return None
        *earlier, action = self._actions
        game = Game(state=self._start)
        for number in earlier:
            game.play(number)
        return game.states[0], action

    def _repr_svg_(self) -> str | None:
        """Return the board, for a notebook; None before the first `reset`."""
        if isinstance(self._game, envs.NotStarted):
            return None
        return state_svg(self._game.states[0], last=self.last_decision())

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()

    def clone(self) -> raw_env:
        """Return an independent copy, dice to come included."""
        return copy.deepcopy(self)


def _checked(made: Callable[Arguments, raw_env]) -> Callable[Arguments, CheckedEnv]:
    """Return a maker with the same signature, for editors, type checkers and ``help``."""

    def env(*args: Arguments.args, **options: Arguments.kwargs) -> CheckedEnv:
        """Return `raw_env` in PettingZoo's wrapper that refuses calls in the wrong order."""
        return CheckedEnv(made(*args, **options))

    signature = inspect.signature(made).replace(return_annotation="CheckedEnv")
    env.__signature__ = signature  # type: ignore[attr-defined]
    env.__qualname__ = "env"
    return env


env = _checked(raw_env)


class CarolusParallelEnv(turn_based_aec_to_parallel_wrapper):
    """`raw_env` as a PettingZoo parallel environment; takes its arguments."""

    metadata: dict[str, Any] = {**raw_env.metadata, "is_parallelizable": True}  # noqa: RUF012
    observation_spaces = property(lambda self: self.aec_env.observation_spaces)
    action_spaces = property(lambda self: self.aec_env.action_spaces)
    games = property(lambda self: self.aec_env.games)

    def __init__(self, **options: Any) -> None:
        super().__init__(raw_env(**options))
        self.metadata = type(self).metadata
        self.agents: list[str] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start a game; see `raw_env.reset`. Returns observations and infos."""
        observations, infos = super().reset(seed, options)
        active = {"active_agent": self.aec_env.agent_selection}
        return observations, {agent: {**info, **active} for agent, info in infos.items()}

    def step(self, actions: Mapping[str, int]) -> Any:
        """Carry out the action of the player to move, and return what PettingZoo says of all.

        Once the game is over that is five empty dicts.

        Raises:
            KeyError: when the player to move has no action.
            IllegalActionError, ResetNeeded, TypeError: see `raw_env.step`.
        """
        if not self.agents:
            self.state()  # refused before the first `reset`
            return {}, {}, {}, {}, {}
        mover = self.aec_env.agent_selection
        instance("actions", actions, Mapping, "a dict with an action of each agent")
        if mover not in actions:
            raise KeyError(f"actions lack {mover}, who is to move, got those of {[*actions]}")
        return super().step(actions)
