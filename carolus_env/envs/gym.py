"""Gymnasium: one learner a game, agents in the other seats; single and natively vectorised.

    >>> env = gymnasium.make("carolus_env:CarolusMagnus-v0", players=3, opponents="greedy")
    >>> envs = gymnasium.make_vec("carolus_env:CarolusMagnusTurns-v0", num_envs=1024)

In ``CarolusMagnus-v0`` a step is one of 95 decisions, in ``CarolusMagnusTurns-v0``, the same with
``turns=True``, a disc, a crown or a whole turn: one of at most K candidates, by its index. The mask
of legal actions is in ``info["action_mask"]`` and from ``action_masks()``. The reward is 0 until
the game ends, then the learner's payoff. A game that reaches ``max_rounds`` is truncated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, Literal, Unpack, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from carolus_env import engine, envs
from carolus_env.drawing.pictures import WIDE, Window, board_pixels
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import BY_FORFEIT, BY_MAX_ROUNDS, RuleOptions
from carolus_env.engine.state import Ints, States
from carolus_env.envs.learner import FinishedGames, LearnerGames, Opponents
from carolus_env.envs.turns import TurnGames, Turns
from carolus_env.games.game import Game
from carolus_env.system.options import (
    array,
    instance,
    integer,
    one_of,
    seed_number,
    whole_number,
    whole_numbers,
)

Flags = npt.NDArray[np.bool_]
_ONLY: Final = np.zeros(1, np.int64)  # the row of a game alone


class Pictures:
    """An observer of every decision, which draws games with their last decision marked.

    It changes no game, but compiled opponents are slower: they return to Python after each
    decision. A window shows each of the first game; without one, frames are drawn when asked for.
    """

    def __init__(
        self, games: LearnerGames, window: Window | None = None, metadata: Any = None
    ) -> None:
        self._games, self._window, self._metadata = games, window, metadata
        self._before = games.states.copy()
        self._actions = np.full(games.n, -1)  # -1: none yet
        games.watcher = self

    def decided(self, rows: Ints, before: States, actions: Ints) -> None:
        """Note decisions and the states before them; action -1: a game has begun."""
        self._before[rows] = before
        self._actions[rows] = actions
        if len(rows):
            self.show()

    def frame(self, row: int) -> npt.NDArray[np.uint8]:
        """Return pixels, ``(height, width, 3)`` uint8."""
        action = int(self._actions[row])
        last = None if action < 0 else (self._before[row], action)
        return board_pixels(self._games.states[row], last=last, **WIDE)

    def show(self, *, wait: bool = True) -> None:
        """Show the first game in the window, if there is one."""
        if self._window is not None:
            self._window.show(self.frame(0), self._metadata["render_fps"] if wait else None)


class CarolusVectorEnv(VectorEnv):
    """``num_envs`` games in lockstep, without a Python object for any of them.

    With ``turns=True`` an observation is ``(K, length)`` float32, a row for each candidate, then
    zeros. Infos then hold, besides the masks, ``choices``, ``(num_envs, K, 5)`` int8: the actions
    behind each candidate in order, then -1; and ``left_out``, ``(num_envs,)``: how many of a turn's
    plans were not listed.

    Args:
        players: 2, 3 or 4.
        opponents: a spec string or an agent for all other seats, or a list of one for each seat
            after the learner's, clockwise.
        seat: the learner's seat. None: row ``i`` starts in seat ``(seed + i) % players`` and moves
            to the next seat with every game.
        candidates, plans: with ``turns``, the fields of `Turns`.
        illegal: effect of an illegal action: ``"forfeit"`` ends the game (the learner's team
            loses, ``info["illegal"]`` is True), ``"raise"`` raises `IllegalActionError`.
        masks: the masks' place: in infos only, or with ``"observation"`` there and in the
            observation, ``{"observation": ..., "action_mask": ...}`` as in PettingZoo.
        observation: dtype of the observations; with ``turns`` it is float32.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``. Pixels mark the last decision of each
            game, which makes compiled opponents slower.
        copy: False returns views of the buffers, which the next step overwrites.
        rules: the other options of `Rules`.

    An unknown option is a TypeError, an impossible one a ValueError.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "rgb_array"],  # one window cannot hold all the games
        "render_fps": envs.RENDER_FPS,
    }

    def __init__(
        self,
        num_envs: int = 1,
        players: int = 2,
        opponents: Opponents = "random",
        seat: int | None = None,
        *,
        turns: bool = False,
        candidates: int = 16,
        plans: Literal["stop", "one", "all"] = "stop",
        illegal: Literal["forfeit", "raise"] = "forfeit",
        masks: Literal["info", "observation"] = "info",
        observation: Literal["float32", "uint8"] = "float32",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = True,
        **rules: Unpack[RuleOptions],
    ) -> None:
        chosen = envs.rules_for(CarolusVectorEnv, players, rules)
        num_envs = whole_number("num_envs", num_envs, 1)
        envs.check_options(illegal, observation, render_mode, self.metadata)
        one_of("masks", masks, ("info", "observation"))
        one_of("turns", turns, (False, True))
        listed = Turns(candidates, plans)
        of_games: dict[str, Any] = {"seat": seat, "start": False}
        self.games: LearnerGames
        if turns:
            one_of("with turns, observation", observation, ("float32",))
            self.games = TurnGames(chosen, num_envs, opponents, turns=listed, **of_games)
        elif listed != Turns():
            raise ValueError(f"candidates and plans need turns=True, got {listed}")
        else:
            self.games = LearnerGames(chosen, num_envs, opponents, **of_games)
        if not isinstance(autoreset_mode, AutoresetMode):
            known = tuple(mode.value for mode in AutoresetMode)
            autoreset_mode = AutoresetMode(one_of("autoreset_mode", autoreset_mode, known))
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = autoreset_mode
        self.metadata = {**self.metadata, "autoreset_mode": autoreset_mode}
        self._pictures = Pictures(self.games) if render_mode == "rgb_array" else None
        self._forfeits, self._copy = illegal == "forfeit", copy
        self._masks_observed = masks == "observation"
        box = self.games.box(np.dtype(observation))
        self.single_observation_space: spaces.Space = box
        if self._masks_observed:
            self.single_observation_space = envs.with_mask(box, self.games.actions)
        self.single_action_space = spaces.Discrete(self.games.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = False
        self._over = np.zeros(num_envs, np.bool_)
        self._masks = np.zeros((num_envs, self.games.actions), np.int8)
        self._observations = np.zeros((num_envs, *box.shape), box.dtype)
        self._everybody = np.ones(num_envs, np.bool_)

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(deepcopy(parts))  # joblib and Ray hand over arrays read-only

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start new games; returns observations and infos.

        Args:
            seed: the first game's seed (row ``i`` takes ``seed + i``), or one a row. None: the
                first time from the operating system, later continuing the games' generators.
            options: ``reset_mask``, ``(num_envs,)`` bool: start only these rows. ``territories``,
                ``first_player`` or ``position``, as for the PettingZoo environment: one for all
                games, or a list of ``num_envs``. In a position the learner takes the seat of the
                player to move, unless its seat is fixed.

        What no game can start from is a ValueError, and no game has changed.
        """
        seeds = self.seeds(seed)
        options = dict(instance("options", options or {}, Mapping, "a dict"))
        mask = options.pop("reset_mask", None)
        envs.check_reset_options(options, (*envs.RESET_OPTIONS, "reset_mask"))
        rows = np.arange(self.num_envs)
        if mask is not None:
            mask = array("reset_mask", mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise ValueError(
                    f"reset_mask must be {self.num_envs} bools, at least one of them True, "
                    f"got shape {mask.shape} and dtype {mask.dtype}"
                )
            rows = np.flatnonzero(mask)
        self.start(seeds, rows, envs.for_each_game(options, self.num_envs) if options else None)
        if seeds is not None:  # last: a refused reset changes nothing
            super().reset(seed=int(seeds[0]))
            if not np.isscalar(seed):
                self.np_random = np.random.default_rng(seeds)
        return self.look(), self._info(rows)

    def start(
        self,
        seeds: npt.NDArray[np.uint64] | None,
        rows: npt.NDArray[np.int64],
        options: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        """Start the games in these rows, with a seed and a mapping of options for every row."""
        starts = None if options is None else [options[row] for row in rows.tolist()]
        begun = self._started
        if not begun and (seeds is None or starts is not None or len(rows) < self.num_envs):
            self.games.reset()
        if seeds is not None or starts is not None:
            self.games.reset(None if seeds is None else seeds[rows], rows, starts)
        elif begun:
            self.games.restart(rows)
        self._started = True
        self._over[rows] = False

    def step(
        self, actions: npt.NDArray[np.integer[Any]]
    ) -> tuple[Any, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Take the learners' decisions; the others play on to the learners' next ones.

        Actions of rows that only start a new game (next-step autoreset) are ignored.

        Raises:
            ResetNeeded: before the first `reset`, where a game is over and autoreset disabled, and
                where an opponent failed in the last step.
            IllegalActionError: with ``illegal="raise"``; no game has changed.
            ValueError: when ``actions`` are not ``(num_envs,)`` integers.
        """
        self.check_started()
        restarting, playing = np.flatnonzero(self._over), np.flatnonzero(~self._over)
        if len(restarting) and self.autoreset_mode is AutoresetMode.DISABLED:
            raise gymnasium.error.ResetNeeded(
                f"games {restarting.tolist()} are over: reset them with the option reset_mask"
            )
        actions = whole_numbers("actions", actions, (self.num_envs,))
        rows = playing if len(restarting) else None
        ended = self.games.step(actions[playing], rows, forfeits=self._forfeits)
        self.games.restart(restarting)

        rewards = np.zeros(self.num_envs)
        terminations, truncations = np.zeros((2, self.num_envs), np.bool_)
        cut_off = ended.states["reason"] == BY_MAX_ROUNDS
        rewards[ended.rows] = ended.learner_payoffs
        terminations[ended.rows] = ~cut_off
        truncations[ended.rows] = cut_off
        self._over = terminations | truncations
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not len(ended.rows):
            observations = self.look()
            return observations, rewards, terminations, truncations, self._info(ended=ended)

        last = self.games.last_observations(ended, self._observations.dtype)
        final = np.full(self.num_envs, None, object)
        self.games.masks(self._masks)
        for i, row in enumerate(ended.rows):
            final[row] = self._with_mask(last[i], self._masks[row].copy())
        final_info, over = self._info(ended.rows, ended), self._over
        self._over = np.zeros(self.num_envs, np.bool_)
        self.games.restart(ended.rows)
        observations = self.look()
        infos = self._info() | {"final_obs": final, "_final_obs": over}
        infos |= {"final_info": final_info, "_final_info": over.copy()}
        return observations, rewards, terminations, truncations, infos

    def check_started(self) -> None:
        """Raise ResetNeeded before the first `reset`."""
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset first: no game has started")

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(num_envs, actions)`` int8; all 0 where a game is over."""
        self.check_started()
        return self._masks.copy() if self._copy else self._masks

    def render(self) -> tuple[str, ...] | tuple[npt.NDArray[np.uint8], ...] | None:
        """Return each game as text or ``(height, width, 3)`` uint8; None without a render mode."""
        if self.render_mode is None:
            return None
        self.check_started()
        if self._pictures is None:
            return tuple(board_text(state) for state in self.games.states)
        return tuple(self._pictures.frame(row) for row in range(self.num_envs))

    def seeds(self, seed: Any) -> npt.NDArray[np.uint64] | None:
        """Return a seed for each game, None where the games continue their generators."""
        if seed is None:
            return None
        if not isinstance(seed, list | tuple) and not (isinstance(seed, np.ndarray) and seed.ndim):
            first = np.uint64(seed_number(seed) or 0)
            return np.arange(self.num_envs, dtype=np.uint64) + first
        if len(seed) != self.num_envs:
            raise ValueError(f"seed must be one number or {self.num_envs}, got {len(seed)}")
        numbers = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        for i, number in enumerate(map(seed_number, seed)):
            numbers[i] = numbers[i] if number is None else number
        return numbers.astype(np.uint64)

    def look(self) -> Any:
        """Return the learners' observations; also updates the masks."""
        self.games.masks(self._masks)
        out = np.empty_like(self._observations) if self._copy else self._observations
        return self._with_mask(self.games.observations(out), self._masks)

    def _with_mask(self, observation: npt.NDArray[Any], masks: npt.NDArray[np.int8]) -> Any:
        """Return the learner's observation, with the masks if it is to hold them."""
        if not self._masks_observed:
            return observation
        return {"observation": observation, "action_mask": masks.copy() if self._copy else masks}

    def _info(
        self, rows: npt.NDArray[np.int64] | None = None, ended: FinishedGames | None = None
    ) -> dict[str, Any]:
        """Return masks and infos of these rows (None: all), and which games were forfeited."""
        infos: dict[str, Any] = {}
        present = self._everybody
        if rows is not None:
            present = np.zeros(self.num_envs, np.bool_)
            present[rows] = True
        for name, values in {"action_mask": self._masks, **self.games.infos()}.items():
            if rows is not None or self._copy:  # final infos outlive the step
                values, present = values.copy(), present.copy()
            if rows is not None:
                values[~present] = 0
            infos |= {name: values, f"_{name}": present}
        forfeited = [] if ended is None else ended.rows[ended.states["reason"] == BY_FORFEIT]
        if len(forfeited):
            offenders = np.zeros(self.num_envs, np.bool_)
            offenders[forfeited] = True
            infos |= {"illegal": offenders, "_illegal": offenders.copy()}
        return infos


class CarolusEnv(gymnasium.Env):
    """One game for one learner.

    Takes the arguments of `CarolusVectorEnv` but ``num_envs``, ``autoreset_mode`` and ``copy``.
    Render mode ``"human"`` shows every decision in a window, those of the opponents too. Infos and
    observations are the rows of `CarolusVectorEnv`'s.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": envs.RENDER_FPS,
    }

    def __init__(
        self,
        players: int = 2,
        opponents: Opponents = "random",
        seat: int | None = None,
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        hidden = {"num_envs", "autoreset_mode", "copy"}
        envs.rules_for(CarolusVectorEnv, players, options, hidden)
        one_of("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        options["render_mode"] = None if render_mode == "human" else render_mode
        self._vector = CarolusVectorEnv(1, players, opponents, seat, **options)
        self.render_mode = render_mode
        self._window = Window("Carolus Magnus") if render_mode == "human" else None
        self._pictures = self._vector._pictures
        if self._window is not None:
            self._pictures = Pictures(self._vector.games, self._window, self.metadata)
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space
        # Plays on the record of ``self._vector.games``, where the opponents decide.
        self._game: Game = cast(Game, envs.NotStarted())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self._game, Game):  # a copy of the environment still has one record
            self._game.states = self._vector.games.states

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game; see `CarolusVectorEnv.reset`. There is no ``reset_mask``."""
        seed = seed_number(seed)
        envs.check_reset_options(instance("options", options or {}, Mapping, "a dict"))
        self._vector.reset(seed=seed, options=options)
        super().reset(seed=seed)  # last: a refused reset changes nothing
        games = self._vector.games
        dtype = None if isinstance(games, TurnGames) else self._vector._observations.dtype.name
        self._game = Game(state=games.states, observe=dtype)
        self._game.states = games.states
        return self._observe(), self._info()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the learner's decision; the others play on to its next one or to the end.

        Raises:
            TypeError: when the action is not a whole number.
            ResetNeeded: before the first `reset`, when the game is over, or an opponent failed.
            IllegalActionError: with ``illegal="raise"``; the game stays as it was.
        """
        number, game, games = integer("action", action), self._game, self._vector.games
        if game.over:
            raise gymnasium.error.ResetNeeded("the game is over: call reset")
        if games.failed[0]:
            raise gymnasium.error.ResetNeeded("an opponent failed in this game: call reset")
        is_illegal = False
        try:
            for due in games.actions_of(number):
                before = None if games.watcher is None else engine.copy(games.states)
                game.play(due)
                if games.watcher is not None:
                    games.watcher.decided(_ONLY, before, np.array([due]))
        except engine.IllegalActionError:
            if not self._vector._forfeits:
                raise
            engine.forfeit(games.states)
            is_illegal = True
        if is_illegal or game.observation is None or game.player != games.seats[0]:
            games.play_on(_ONLY)
            game.refresh()
        info, reward, over, cut_off = self._info(), 0.0, game.over, False
        if over:
            reward = float(game.returns[games.seats[0]])
            cut_off = bool(games.states["reason"][0] == BY_MAX_ROUNDS)
        if is_illegal:
            info["illegal"] = True
            if self._pictures is not None:
                self._pictures.show()
        return self._observe(), reward, over and not cut_off, cut_off, info

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(actions,)`` int8."""
        game = self._game
        return self._vector.games.masks()[0] if game.observation is None else game.mask.copy()

    @property
    def games(self) -> States:
        """A copy of the game as a batch of one record, for the functions of the engine."""
        return engine.copy(self._game.states)

    def _observe(self) -> Any:
        if self._game.over or self._game.observation is None:
            out = np.empty_like(self._vector._observations)
            observed = self._vector.games.observations(out)[0]
        else:
            observed = self._game.observation.copy()
        if not self._vector._masks_observed:
            return observed
        return {"observation": observed, "action_mask": self.action_masks()}

    def _info(self) -> dict[str, Any]:
        more = {name: values[0].copy() for name, values in self._vector.games.infos().items()}
        return {"action_mask": self.action_masks(), **more}

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (``"ansi"``) or ``(height, width, 3)`` pixels (``"rgb_array"``).

        None in mode ``"human"``, whose window already shows it, and without a render mode.
        """
        if self._window is None:
            frames = self._vector.render()
            return None if frames is None else frames[0]
        self._vector.check_started()
        assert self._pictures is not None
        self._pictures.show(wait=False)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
