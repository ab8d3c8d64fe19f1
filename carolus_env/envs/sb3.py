"""Stable-Baselines3: the batched engine as a ``VecEnv`` for sb3-contrib's MaskablePPO.

Hundreds or thousands of games in lockstep, without a Python object for each. Needs the extra
``sb3``: only this module imports stable_baselines3.

    >>> from carolus_env import Rules
    >>> from carolus_env.envs.sb3 import CarolusVecEnv
    >>> env = CarolusVecEnv(Rules(players=2), 256, "greedy", seed=1)
    >>> model = MaskablePPO("MlpPolicy", env)

`CarolusTurnsVecEnv` is the same with whole turns as actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env.bots import AgentLike
from carolus_env.engine.observation import observation_dtype
from carolus_env.engine.rules import Rules
from carolus_env.envs.gym import Pictures
from carolus_env.envs.learner import FinishedGames, FixedOpponents, LearnerGames, Opponents
from carolus_env.envs.options import (
    RENDER_FPS,
    observation_box,
    start_from,
)
from carolus_env.envs.turns import TurnGames, Turns, candidates_box
from carolus_env.system.failures import MissingExtraError
from carolus_env.system.options import array, one_of, seed_number

try:
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name, __name__, "sb3") from error

OpponentSpecs = AgentLike | Sequence[AgentLike] | Opponents


class LearnerVecEnv(VecEnv):
    """``n`` learners, one a game; agents play the other seats.

    The reward is 0 until the game ends, then the learner's payoff. The info of the last step holds
    SB3's ``episode`` (return, and length in decisions of the learner) and ``terminal_observation``.
    A game that reaches ``max_rounds`` pays 0 to everyone and the observation counts the rounds
    down, so it ends like any other game: nothing is bootstrapped beyond it.

    Args:
        games: the games; `LearnerGames.actions` is the number of actions.
        observation_space: the space of one game's observations.
        seed: seed of the first `reset`, as in `seed`.
        render_mode: None or ``"rgb_array"``, which marks the last decision of each game and makes
            compiled opponents slower.

    Raises:
        ValueError: for another render mode.
    """

    def __init__(
        self,
        games: LearnerGames,
        observation_space: spaces.Box,
        seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        one_of("render_mode", render_mode, (None, "rgb_array"))
        self.games = games
        self._pictures: Pictures | None = None
        if render_mode is not None:
            self._pictures = games.watcher = Pictures(games)
        self.ended: FinishedGames | None = None
        """The games that ended in the last step, for statistics."""
        self.render_mode = render_mode
        self._next_seed, self._reset_before = seed_number(seed), False
        self._actions: npt.NDArray[np.integer[Any]] | None = None
        self._masks = np.empty((games.n, games.actions), np.int8)
        self._mask_rows = list(self._masks)
        self._shape, self._dtype = (games.n, *observation_space.shape), observation_space.dtype
        self.lengths = np.zeros(games.n, np.int64)
        """``(n,)`` decisions of the learner in each game so far."""
        super().__init__(games.n, observation_space, spaces.Discrete(games.actions))
        self.metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": RENDER_FPS}

    # -------------------------------------------------------------------------------- playing

    def reset(self) -> npt.NDArray[Any]:
        """Start new games.

        The first games, and those after a call of `seed`, depend on the seed alone; later ones
        continue the games' generators. After a call of `set_options` they start as these say
        (`RESET_OPTIONS`).

        Raises:
            ValueError: for an unknown option, or one that no game can start from.
        """
        rows, elsewhere = np.arange(self.num_envs), None
        if any(self._options):
            elsewhere = start_from(self.games.rules, self._options)
        if not self._reset_before and elsewhere is not None:
            self.games.reset(self._next_seed)
        if self._next_seed is not None or not self._reset_before:
            self.games.reset(self._next_seed, None, elsewhere)
        elif elsewhere is not None:
            self.games.reset(None, rows, elsewhere)
        else:
            self.games.restart(rows)
        self._next_seed, self._reset_before, self._actions = None, True, None
        self._reset_options()
        self.lengths[:] = 0
        return self.look()

    def step_async(self, actions: npt.NDArray[np.integer[Any]]) -> None:
        """Keep the actions, ``(num_envs,)`` integers, for `step_wait`.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._reset_before:
            raise gymnasium.error.ResetNeeded("call reset before step")
        self._actions = array("actions", actions)

    def step_wait(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], Any, Any]:
        """Play the actions, the opponents' decisions after them, and begin anew where a game ended.

        Returns:
            Observations, rewards ``(num_envs,)`` float32, ends ``(num_envs,)`` bool, and infos,
            a dict for each game.

        Raises:
            RuntimeError: without a call of `step_async` before.
        """
        if self._actions is None:
            raise RuntimeError("call step_async before step_wait")
        actions, self._actions = self._actions, None
        ended = self.ended = self.games.step(actions)
        self.lengths += 1
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if len(ended.rows):
            rewards[ended.rows] = ended.learner_payoffs
            dones[ended.rows] = True
            last = self.games.last_observations(ended, self._dtype)
            for i, row in enumerate(ended.rows):
                episode = {"r": float(rewards[row]), "l": int(self.lengths[row]), "t": 0.0}
                infos[row] = {"terminal_observation": last[i], "episode": episode}
            self.lengths[ended.rows] = 0
            self.games.restart(ended.rows)
        return self.look(), rewards, dones, infos

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(n, actions)`` int8: a buffer that the next step overwrites.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._reset_before:
            raise gymnasium.error.ResetNeeded("call reset before action_masks")
        return self._masks

    def look(self) -> npt.NDArray[Any]:
        """Return the learners' observations, a new array ``(n, ...)``; also updates the masks."""
        self.games.masks(self._masks)
        # SB3 stores an observation only after the next step, so no buffer can be reused.
        return self.games.observations(np.empty(self._shape, self._dtype))

    # -------------------------------------------------------------------------------- for SB3

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the games of the next `reset`; row ``i`` takes ``seed + i``."""
        self._next_seed = seed = seed_number(seed)
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the games have an attribute of that name."""
        return attr_name == "action_masks" or hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of each game that ``indices`` names; all games share it."""
        return [getattr(self, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute, which all games share.

        Raises:
            AttributeError: when there is no such attribute: setting one would have no effect.
            ValueError: for some of the games.
        """
        if not hasattr(self, attr_name):
            raise AttributeError(f"{type(self).__name__} has no attribute {attr_name!r}")
        if indices is not None and self._count(indices) != self.num_envs:
            raise ValueError(f"the games share {attr_name!r}: set it for all, without indices")
        setattr(self, attr_name, value)

    def get_images(self) -> list[npt.NDArray[np.uint8]]:
        """Return a picture of each game, ``(height, width, 3)`` uint8.

        Raises:
            ValueError: without ``render_mode="rgb_array"``.
        """
        if self._pictures is None:
            raise ValueError("pictures need render_mode='rgb_array'")
        self.action_masks()  # raises before the first reset
        return [self._pictures.frame(row) for row in range(self.num_envs)]

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Call ``action_masks``, the only method of single games: one row a game.

        Raises:
            AttributeError: for another method.
        """
        if method_name != "action_masks":
            raise AttributeError(f"the games of a LearnerVecEnv have no method {method_name!r}")
        self.action_masks()  # raises before the first reset
        if indices is None:
            if self._mask_rows[0].base is not self._masks:  # after copying the environment
                self._mask_rows = list(self._masks)
            return self._mask_rows.copy()
        return list(np.atleast_2d(self._masks[indices]))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each game in ``indices``: games are rows, which nothing wraps."""
        return [False] * self._count(indices)

    def _count(self, indices: Any) -> int:
        if indices is None:
            return self.num_envs
        return len(list(indices)) if isinstance(indices, Iterable) else 1


class CarolusVecEnv(LearnerVecEnv):
    """`LearnerVecEnv` in which a step is a single decision.

    Args:
        rules: number of players and options.
        n: number of games.
        opponents: a spec string or an agent for all other seats, a list of one for each seat after
            the learner's, clockwise, or an `Opponents`.
        seat: the learner's seat. None: the next seat with every game.
        seed: same seed, same games. None: from the operating system.
        dtype: dtype of the observations, float32 or uint8 (plain counts, a quarter of the memory).
        render_mode: as for `LearnerVecEnv`.

    Raises:
        ValueError: for an impossible option, naming it and what is allowed.
    """

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: OpponentSpecs = "random",
        *,
        seat: int | None = None,
        seed: int | None = None,
        dtype: npt.DTypeLike = np.float32,
        render_mode: str | None = None,
    ) -> None:
        games = LearnerGames(rules, n, _opponents(rules, opponents), seat=seat, start=False)
        box = observation_box(rules.players, observation_dtype("dtype", dtype))
        super().__init__(games, box, seed, render_mode)


class CarolusTurnsVecEnv(LearnerVecEnv):
    """`LearnerVecEnv` in which a step is a disc, a crown or a whole turn.

    An observation is ``(K, length)`` float32, a row for each candidate (`envs.candidates`), then
    zeros; an action is the index of a candidate.

    Args:
        rules, n, opponents, seat, seed, render_mode: as for `CarolusVecEnv`.
        turns: options of the list of candidates.

    Raises:
        ValueError: for an impossible option, naming it and what is allowed.
    """

    games: TurnGames

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: OpponentSpecs = "random",
        *,
        seat: int | None = None,
        seed: int | None = None,
        turns: Turns | None = None,
        render_mode: str | None = None,
    ) -> None:
        fixed = _opponents(rules, opponents)
        games = TurnGames(rules, n, fixed, seat=seat, turns=turns, start=False)
        super().__init__(games, candidates_box(games), seed, render_mode)


def _opponents(rules: Rules, opponents: OpponentSpecs) -> Opponents:
    if hasattr(opponents, "seat") and hasattr(opponents, "agents"):
        return cast(Opponents, opponents)
    return FixedOpponents(rules, cast(Any, opponents))
