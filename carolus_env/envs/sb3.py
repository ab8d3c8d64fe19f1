"""Stable-Baselines3: the Gymnasium vector environment as a ``VecEnv``, for MaskablePPO.

Needs the extra ``sb3``: only this module imports stable_baselines3.

    >>> from carolus_env import Rules
    >>> from carolus_env.envs.sb3 import CarolusVecEnv
    >>> env = CarolusVecEnv(Rules(players=2), 256, "greedy", seed=1)
    >>> model = MaskablePPO("MlpPolicy", env)
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from carolus_env.engine.observation import observation_dtype
from carolus_env.engine.rules import Rules
from carolus_env.envs import RENDER_FPS
from carolus_env.envs.gym import CarolusVectorEnv
from carolus_env.envs.learner import FinishedGames, Opponents
from carolus_env.system.machine import MissingExtraError
from carolus_env.system.options import array, instance, one_of, seed_number, whole_number

try:
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name, __name__, "sb3") from error


class CarolusVecEnv(VecEnv):
    """``n`` learners, one a game; agents play the other seats.

    The reward is 0 until the game ends, then the learner's payoff. The info of the last step holds
    SB3's ``episode`` (return, and length in decisions of the learner) and ``terminal_observation``.
    A game that reaches ``max_rounds`` pays 0 to everyone and the observation counts the rounds
    down, so it ends like any other game: nothing is bootstrapped beyond it.

    Args:
        opponents, seat, turns, candidates, plans: as for `envs.gym.CarolusVectorEnv`.
        seed: seed of the first `reset`: row ``i`` takes ``seed + i``.
        dtype: dtype of the observations, float32 or, without ``turns``, uint8 (plain counts, a
            quarter of the memory).
        render_mode: None or ``"rgb_array"``, which makes compiled opponents slower.

    Attributes:
        games: the games, a `LearnerGames`.
        ended: the games that ended in the last step.
        lengths: ``(n,)`` decisions of the learner in each game so far.
    """

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: Opponents = "random",
        *,
        seat: int | None = None,
        turns: bool = False,
        candidates: int = 16,
        plans: Literal["stop", "one", "all"] = "stop",
        seed: int | None = None,
        dtype: npt.DTypeLike = np.float32,
        render_mode: str | None = None,
    ) -> None:
        options = instance("rules", rules, Rules, "carolus_env.Rules").to_dict()
        self._envs = CarolusVectorEnv(
            num_envs=whole_number("n, the number of games,", n, 1),
            opponents=opponents,
            seat=seat,
            turns=turns,
            candidates=candidates,
            plans=plans,
            observation=cast(Any, observation_dtype("dtype", dtype).name),
            render_mode=one_of("render_mode", render_mode, (None, "rgb_array")),
            **options,
        )
        self.games, self.render_mode = self._envs.games, render_mode
        self.ended: FinishedGames | None = None
        self.lengths = np.zeros(n, np.int64)
        self._next_seed, self._dtype = seed_number(seed), np.dtype(dtype)
        self._actions: npt.NDArray[Any] | None = None
        super().__init__(n, self._envs.single_observation_space, self._envs.single_action_space)
        self.metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": RENDER_FPS}

    def reset(self) -> npt.NDArray[Any]:
        """Start new games, as `set_options` says (`envs.RESET_OPTIONS`).

        The first games, and those after a call of `seed`, depend on the seed alone; later ones
        continue the games' generators. An impossible option is a ValueError.
        """
        options = self._options if any(self._options) else None
        self._envs.start(self._envs.seeds(self._next_seed), np.arange(self.num_envs), options)
        self._next_seed, self._actions = None, None
        self._reset_options()
        self.lengths[:] = 0
        return self._envs.look()

    def step_async(self, actions: npt.NDArray[np.integer[Any]]) -> None:
        """Keep the actions, ``(num_envs,)`` integers, for `step_wait`."""
        self._envs.check_started()
        self._actions = array("actions", actions)

    def step_wait(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], Any, Any]:
        """Play the actions, the opponents' decisions after them, and begin anew where a game ended.

        Returns observations, rewards ``(num_envs,)`` float32, ends ``(num_envs,)`` bool, and infos,
        a dict for each game.
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
        return self._envs.look(), rewards, dones, infos  # new arrays: SB3 stores them later

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(n, actions)`` int8."""
        return self._envs.action_masks()

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the games of the next `reset`; row ``i`` takes ``seed + i``."""
        self._next_seed = seed = seed_number(seed)
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of each game that ``indices`` names; all games share it."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute that there is; all games share it."""
        if not hasattr(self, attr_name):
            raise AttributeError(f"{type(self).__name__} has no attribute {attr_name!r}")
        if len([*self._get_indices(indices)]) != self.num_envs:
            raise ValueError(f"the games share {attr_name!r}: set it for all, without indices")
        setattr(self, attr_name, value)

    def get_images(self) -> list[npt.NDArray[np.uint8]]:
        """Return a picture of each game, ``(height, width, 3)`` uint8."""
        if self.render_mode is None:
            raise ValueError("pictures need render_mode='rgb_array'")
        return [*self._envs.render()]  # type: ignore[misc]

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Call ``action_masks``, the only method of single games: one row a game."""
        if method_name != "action_masks":
            raise AttributeError(f"the games of a CarolusVecEnv have no method {method_name!r}")
        masks = self.action_masks()
        return list(masks if indices is None else np.atleast_2d(masks[indices]))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each game in ``indices``: games are rows, which nothing wraps."""
        return [False for _ in self._get_indices(indices)]
