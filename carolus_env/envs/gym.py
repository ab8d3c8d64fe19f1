"""Gymnasium: one learner a game, agents in the other seats; single and natively vectorised.

    >>> import gymnasium
    >>> env = gymnasium.make("carolus_env:CarolusMagnus-v0", players=3, opponents="greedy")
    >>> envs = gymnasium.make_vec("carolus_env:CarolusMagnus-v0", num_envs=1024, players=3)
    >>> turns = gymnasium.make_vec("carolus_env:CarolusMagnusTurns-v0", opponents="planner")

After ``import carolus_env`` the ids need no ``carolus_env:``.

In ``CarolusMagnus-v0`` a step is a single decision: ``Discrete(95)``, observed as by
`engine.observation` from the learner's seat. In ``CarolusMagnusTurns-v0`` a step is a disc, a crown
or a whole turn: one of at most K candidates, by its index, observed as a row of features for each
(`envs.candidates`).

The mask of legal actions is in ``info["action_mask"]`` and from ``action_masks()``. The reward is 0
until the game ends, then the payoff of the learner's seat. A game that reaches ``max_rounds`` is
truncated.

Render modes are ``"ansi"``, ``"rgb_array"`` and, for the single environments only, ``"human"``
(docs/rendering.md).

Version history: ``CarolusMagnus`` v0 and ``CarolusMagnusTurns`` v0, first versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Unpack

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from carolus_env import engine
from carolus_env.bots import AgentLike
from carolus_env.drawing.pixels import WIDE, Window, board_pixels
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import BY_FORFEIT, BY_MAX_ROUNDS, RuleOptions
from carolus_env.engine.state import States
from carolus_env.envs.learner import FinishedGames, FixedOpponents, LearnerGames
from carolus_env.envs.options import (
    RENDER_FPS,
    RENDER_MODES,
    RESET_OPTIONS,
    check_options,
    check_reset_options,
    for_each_game,
    observation_box,
    rules_for,
    start_from,
)
from carolus_env.envs.turns import TurnGames, Turns, candidates_box
from carolus_env.system.options import array, instance, integer, one_of, seed_number, whole_number

MASKS = ("info", "observation")
"""Places for the masks of legal actions besides `action_masks`: the latter in infos, too."""
VECTOR_RENDER_MODES = (None, "ansi", "rgb_array")
"""Render modes; not ``"human"``, as one window cannot hold all the games."""

Specs = AgentLike | Sequence[AgentLike]


class Pictures:
    """Watches games and draws them with the last decision marked."""

    def __init__(self, games: LearnerGames) -> None:
        self._games = games
        self._before = games.states.copy()
        self._actions = np.full(games.n, -1)  # -1: none yet

    def begun(self, rows: npt.NDArray[np.int64]) -> None:
        """Note that games have begun in ``rows``: no decision is marked."""
        self._actions[rows] = -1

    def decided(
        self, rows: npt.NDArray[np.int64], before: States, actions: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Note the decisions in ``rows`` and the states before them, which a frame marks."""
        self._before[rows] = before
        self._actions[rows] = actions

    def frame(self, row: int) -> npt.NDArray[np.uint8]:
        """Return pixels, ``(height, width, 3)`` uint8."""
        action = int(self._actions[row])
        last = None if action < 0 else (self._before[row], action)
        return board_pixels(self._games.states[row], last=last, **WIDE)


class _Screen(Pictures):
    """Watches one game and shows every decision in a window."""

    def __init__(self, games: LearnerGames, metadata: dict[str, Any]) -> None:
        super().__init__(games)
        self._window = Window("Carolus Magnus")
        self._metadata = metadata

    def begun(self, rows: npt.NDArray[np.int64]) -> None:
        super().begun(rows)
        self.show()

    def decided(
        self, rows: npt.NDArray[np.int64], before: States, actions: npt.NDArray[np.integer[Any]]
    ) -> None:
        super().decided(rows, before, actions)
        if len(rows):
            self.show()

    def show(self, *, wait: bool = True) -> None:
        self._window.show(self.frame(0), self._metadata["render_fps"] if wait else None)

    def close(self) -> None:
        self._window.close()


class LearnerVectorEnv(VectorEnv):
    """``num_envs`` games in lockstep, without a Python object for any of them.

    Args:
        games: the games; `LearnerGames.actions` is the number of actions.
        observation_space: the space of one game's observations, without the mask.
        illegal, masks, autoreset_mode, render_mode, copy: as for `envs.gym.CarolusVectorEnv`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(VECTOR_RENDER_MODES[1:]),
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        games: LearnerGames,
        observation_space: spaces.Box,
        *,
        illegal: Literal["forfeit", "raise"],
        masks: Literal["info", "observation"],
        autoreset_mode: str | AutoresetMode,
        render_mode: str | None,
        copy: bool,
    ) -> None:
        self.autoreset_mode = _autoreset(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.num_envs = num_envs = games.n
        self.games = games
        self._pictures = Pictures(self.games)
        if render_mode == "rgb_array":
            self.games.watcher = self._pictures
        one_of("masks", masks, MASKS)
        self._masks_observed = masks == "observation"
        self.single_observation_space: spaces.Space = observation_space
        if self._masks_observed:
            self.single_observation_space = spaces.Dict(
                observation=observation_space,
                action_mask=spaces.Box(0, 1, (games.actions,), np.int8),
            )
        self.single_action_space = spaces.Discrete(games.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._forfeits = illegal == "forfeit"
        self._copy = copy
        self._started = False
        self._over = np.zeros(num_envs, np.bool_)
        self._masks = np.zeros((num_envs, games.actions), np.int8)
        shape = (num_envs, *observation_space.shape)
        self._observations = np.zeros(shape, observation_space.dtype)
        self._everybody = np.ones(num_envs, np.bool_)

    # -------------------------------------------------------------------------------- playing

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start new games.

        Args:
            seed: the first game's seed (row ``i`` takes ``seed + i``), or one a row. None: the
                first time from the operating system, later continuing the games' generators.
            options: ``reset_mask``, ``(num_envs,)`` bool: start only these rows. ``territories``,
                ``first_player`` or ``position``, as for the PettingZoo environment: one for all
                games, or a list of ``num_envs``. In a position the learner takes the seat of the
                player to move, unless its seat is fixed.

        Returns:
            ``(num_envs, length)`` observations, with ``masks="observation"`` in a dict with the
            masks; and infos with the masks.

        Raises:
            ValueError: for a mask or seeds of another shape, an unknown option, or one that no game
                can start from. No game has changed.
        """
        seeds = self._seeds(seed)
        options = dict(instance("options", options or {}, Mapping, "a dict"))
        mask = options.pop("reset_mask", None)
        check_reset_options(options, (*RESET_OPTIONS, "reset_mask"))
        each = for_each_game(options, self.num_envs) if options else None
        rows = np.arange(self.num_envs)
        if mask is not None:
            mask = array("reset_mask", mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise ValueError(
                    f"reset_mask must be {self.num_envs} bools, at least one of them True, "
                    f"got shape {mask.shape} and dtype {mask.dtype}"
                )
            rows = np.flatnonzero(mask)
        start = None
        if each is not None:
            start = start_from(self.games.rules, [each[row] for row in rows.tolist()])
        begun = self._started
        if not begun and (seeds is None or start is not None or len(rows) < self.num_envs):
            self.games.reset(None)
        if seeds is not None:
            self.games.reset(seeds[rows], rows, start)
        elif start is not None:
            self.games.reset(None, rows, start)
        elif begun:
            self.games.restart(rows)
        self._started = True
        self._over[rows] = False
        return self._look(), self._info(rows)

    def step(
        self, actions: npt.NDArray[np.integer[Any]]
    ) -> tuple[
        Any,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Take the learners' decisions; the others play on to the learners' next ones.

        Args:
            actions: ``(num_envs,)`` integers; ignored in rows that only start a new game
                (next-step autoreset).

        Returns:
            observations, rewards, terminations, truncations and infos, as Gymnasium defines them.

        Raises:
            ResetNeeded: before the first `reset`, or where a game is over and autoreset disabled.
            IllegalActionError: with ``illegal="raise"``; no game has changed.
            ValueError: when ``actions`` are not ``num_envs`` integers.
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        restarting = np.flatnonzero(self._over)
        if len(restarting) and self.autoreset_mode is AutoresetMode.DISABLED:
            raise gymnasium.error.ResetNeeded(
                f"games {restarting.tolist()} are over: reset them with the option reset_mask"
            )
        playing = np.flatnonzero(~self._over)
        ended = self._decide(array("actions", actions), playing)
        self.games.restart(restarting)

        rewards = np.zeros(self.num_envs)
        terminations = np.zeros(self.num_envs, np.bool_)
        truncations = np.zeros(self.num_envs, np.bool_)
        cut_off = ended.states["reason"] == BY_MAX_ROUNDS
        rewards[ended.rows] = ended.learner_payoffs
        terminations[ended.rows] = ~cut_off
        truncations[ended.rows] = cut_off
        self._over = terminations | truncations
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not len(ended.rows):
            observations = self._look()
            return observations, rewards, terminations, truncations, self._info(illegal=ended)

        last = self.games.last_observations(ended, self._observations.dtype)
        final = np.full(self.num_envs, None, object)
        self.games.masks(self._masks)
        for i, row in enumerate(ended.rows):
            final[row] = self._with_mask(last[i], self._masks[row].copy())
        infos = {
            "final_obs": final,
            "_final_obs": self._over,
            "final_info": self._info(ended.rows, illegal=ended),
            "_final_info": self._over.copy(),
        }
        self._over = np.zeros(self.num_envs, np.bool_)
        self.games.restart(ended.rows)
        observations = self._look()
        return observations, rewards, terminations, truncations, {**self._info(), **infos}

    @property
    def is_over(self) -> npt.NDArray[np.bool_]:
        """A copy of the mask of the games that are over and were not reset, ``(num_envs,)``."""
        return self._over.copy()

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(num_envs, actions)`` int8; all 0 where a game is over.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset first: no game has started")
        return self._masks.copy() if self._copy else self._masks

    def render(self) -> tuple[str, ...] | tuple[npt.NDArray[np.uint8], ...] | None:
        """Return a frame of each game; None without a render mode.

        Text in mode ``"ansi"``, ``(height, width, 3)`` uint8 pixels in mode ``"rgb_array"``.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if self.render_mode is None:
            return None
        self.action_masks()  # refused before the first `reset`
        if self.render_mode == "ansi":
            return tuple(board_text(state) for state in self.games.states)
        return tuple(self._pictures.frame(row) for row in range(self.num_envs))

    # -------------------------------------------------------------------------------- inside

    def _seeds(self, seed: Any) -> npt.NDArray[np.uint64] | None:
        """Return a seed for each game, None where the games continue their generators.

        Raises:
            ValueError: unless ``seed`` is as `reset` says.
        """
        if seed is None:
            return None
        drawn = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        numbers = drawn.astype(np.uint64)
        if isinstance(seed, list | tuple) or (isinstance(seed, np.ndarray) and seed.ndim):
            if len(seed) != self.num_envs:
                raise ValueError(f"seed must be one number or {self.num_envs}, got {len(seed)}")
            for i, number in enumerate(map(seed_number, seed)):
                numbers[i] = numbers[i] if number is None else number
        else:
            first = np.uint64(seed_number(seed) or 0)
            numbers[:] = first + np.arange(self.num_envs, dtype=np.uint64)
        return numbers

    def _decide(
        self, actions: npt.NDArray[np.integer[Any]], playing: npt.NDArray[Any]
    ) -> FinishedGames:
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be {self.num_envs} integers, "
                f"got shape {actions.shape} and dtype {actions.dtype}"
            )
        rows = None if len(playing) == self.num_envs else playing
        return self.games.step(actions[playing], rows, forfeits=self._forfeits)

    def _look(self) -> Any:
        self.games.masks(self._masks)
        out = np.empty_like(self._observations) if self._copy else self._observations
        return self._with_mask(self.games.observations(out), self._masks)

    def _with_mask(self, observation: npt.NDArray[Any], masks: npt.NDArray[np.int8]) -> Any:
        """Return the learner's observation, with the masks if it is to hold them."""
        if not self._masks_observed:
            return observation
        masks = masks.copy() if self._copy else masks
        return {"observation": observation, "action_mask": masks}

    def _info(
        self, rows: npt.NDArray[np.integer[Any]] | None = None, illegal: FinishedGames | None = None
    ) -> dict[str, Any]:
        """Return masks and infos of these rows (None: all), and which games were forfeited."""
        infos: dict[str, Any] = {}
        for name, values in {"action_mask": self._masks, **self.games.infos()}.items():
            present = self._everybody
            if rows is not None:  # never a view: final infos outlive the step
                present, filtered = np.zeros_like(present), np.zeros_like(values)
                present[rows] = True
                filtered[rows] = values[rows]
                values = filtered
            elif self._copy:
                present, values = present.copy(), values.copy()
            infos |= {name: values, f"_{name}": present}
        if illegal is not None and (illegal.states["reason"] == BY_FORFEIT).any():
            offenders = np.zeros(self.num_envs, np.bool_)
            offenders[illegal.rows[illegal.states["reason"] == BY_FORFEIT]] = True
            infos |= {"illegal": offenders, "_illegal": offenders.copy()}
        return infos


def _autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ValueError(
            f"autoreset_mode must be a gymnasium.vector.AutoresetMode or one of {known}, "
            f"got {mode!r}"
        ) from None


class CarolusVectorEnv(LearnerVectorEnv):
    """``num_envs`` games in lockstep, without a Python object for any of them.

    Args:
        num_envs: number of games.
        players: 2, 3 or 4.
        opponents: a spec string or an agent for all other seats, or a list of one for each seat
            after the learner's, clockwise.
        seat: the learner's seat. None: row ``i`` starts in seat ``(seed + i) % players`` and moves
            to the next seat with every game.
        illegal: effect of an illegal action: ``"forfeit"`` ends the game (the learner's team
            loses, ``info["illegal"]`` is True), ``"raise"`` raises `IllegalActionError`.
        masks: the masks' place: in infos only, or with ``"observation"`` there and in the
            observation, ``{"observation": ..., "action_mask": ...}`` as in PettingZoo.
        observation: dtype of the observations, ``"float32"`` or ``"uint8"``.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``. Pixels mark the last decision of each
            game, which makes compiled opponents slower.
        autoreset_mode: one of Gymnasium's modes: next step, same step, disabled.
        copy: False returns views of the buffers, which the next step overwrites.
        rules: the other options of `Rules`.

    Raises:
        TypeError: for an unknown option, naming it and the known ones.
        ValueError: for an impossible option, naming it and what is allowed.
    """

    def __init__(
        self,
        num_envs: int = 1,
        players: int = 2,
        opponents: Specs = "random",
        seat: int | None = None,
        *,
        illegal: Literal["forfeit", "raise"] = "forfeit",
        masks: Literal["info", "observation"] = "info",
        observation: Literal["float32", "uint8"] = "float32",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = True,
        **rules: Unpack[RuleOptions],
    ) -> None:
        chosen = rules_for(CarolusVectorEnv, players, rules)
        num_envs = whole_number("num_envs", num_envs, 1)
        check_options(illegal, observation, render_mode, VECTOR_RENDER_MODES)
        super().__init__(
            LearnerGames(
                chosen, num_envs, FixedOpponents(chosen, opponents), seat=seat, start=False
            ),
            observation_box(players, np.dtype(observation)),
            illegal=illegal,
            masks=masks,
            autoreset_mode=autoreset_mode,
            render_mode=render_mode,
            copy=copy,
        )


class CarolusTurnsVectorEnv(LearnerVectorEnv):
    """``num_envs`` games in lockstep in which a step is a disc, a crown or a whole turn.

    An observation is ``(K, length)`` float32, a row for each candidate, then zeros. Infos hold,
    besides the masks, ``choices``, ``(num_envs, K, 5)`` int8: the actions behind each candidate in
    order, then -1; and ``left_out``, ``(num_envs,)``: how many of a turn's plans were not listed.

    Args:
        num_envs, players, opponents, seat: as for `CarolusVectorEnv`.
        candidates, plans: options of `Turns`.
        illegal, masks, render_mode, autoreset_mode, copy, rules: as `CarolusVectorEnv`; an index
            of no candidate is illegal.

    Raises:
        TypeError: for an unknown option, naming it and the known ones.
        ValueError: for an impossible option, naming it and what is allowed.
    """

    def __init__(
        self,
        num_envs: int = 1,
        players: int = 2,
        opponents: Specs = "random",
        seat: int | None = None,
        *,
        candidates: int = 16,
        plans: Literal["stop", "one", "all"] = "stop",
        illegal: Literal["forfeit", "raise"] = "forfeit",
        masks: Literal["info", "observation"] = "info",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = True,
        **rules: Unpack[RuleOptions],
    ) -> None:
        chosen = rules_for(CarolusTurnsVectorEnv, players, rules)
        num_envs = whole_number("num_envs", num_envs, 1)
        check_options(illegal, "float32", render_mode, VECTOR_RENDER_MODES)
        turns, fixed = Turns(candidates, plans), FixedOpponents(chosen, opponents)
        games = TurnGames(chosen, num_envs, fixed, seat=seat, turns=turns, start=False)
        super().__init__(
            games,
            candidates_box(games),
            illegal=illegal,
            masks=masks,
            autoreset_mode=autoreset_mode,
            render_mode=render_mode,
            copy=copy,
        )


class CarolusEnv(gymnasium.Env):
    """One game for one learner.

    Takes the arguments of `CarolusVectorEnv` but ``num_envs``, ``autoreset_mode`` and ``copy``.
    Render mode ``"human"`` shows every decision in a window, those of the opponents too.

    Raises:
        TypeError: for options of several games.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES[1:]),
        "render_fps": RENDER_FPS,
    }
    vector_env: ClassVar[Callable[..., LearnerVectorEnv]] = CarolusVectorEnv
    """Class of the vector environment that plays the game."""

    def __init__(
        self,
        players: int = 2,
        opponents: Specs = "random",
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        rules_for(type(self).vector_env, players, options, {"num_envs", "autoreset_mode", "copy"})
        options["autoreset_mode"] = AutoresetMode.DISABLED
        options["render_mode"] = None if render_mode == "human" else render_mode
        self._vector = type(self).vector_env(1, players, opponents, **options)
        self.render_mode = render_mode
        self._window: _Screen | None = None
        if render_mode == "human":
            self._window = _Screen(self._vector.games, self.metadata)
            self._vector.games.watcher = self._window
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game; see `CarolusVectorEnv.reset`. There is no ``reset_mask``."""
        seed = seed_number(seed)
        check_reset_options(instance("options", options or {}, Mapping, "a dict"))
        observations, _ = self._vector.reset(seed=seed, options=options)
        super().reset(seed=seed)  # last: a refused reset changes nothing
        return _first(observations), self._info()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the learner's decision; the others play on to its next one or to the end.

        Raises:
            TypeError: when the action is not a whole number.
            ResetNeeded, IllegalActionError: see `CarolusVectorEnv.step`.
        """
        number = integer("action", action)
        if self._vector.is_over[0]:
            raise gymnasium.error.ResetNeeded("the game is over: call reset")
        observations, rewards, terminations, truncations, infos = self._vector.step(
            np.array([number])
        )
        info = self._info()
        if "illegal" in infos:
            info["illegal"] = True
            if self._window is not None:
                self._window.show()
        return (
            _first(observations),
            float(rewards[0]),
            bool(terminations[0]),
            bool(truncations[0]),
            info,
        )

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions, ``(actions,)`` int8."""
        return self._vector.action_masks()[0].copy()

    @property
    def games(self) -> States:
        """A copy of the game as a batch of one record, for the functions of the engine."""
        self.action_masks()  # refused before the first `reset`
        return engine.copy(self._vector.games.states)

    def _info(self) -> dict[str, Any]:
        """Return the mask and the games' own infos."""
        more = {name: values[0].copy() for name, values in self._vector.games.infos().items()}
        return {"action_mask": self.action_masks(), **more}

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (``"ansi"``) or ``(height, width, 3)`` pixels (``"rgb_array"``).

        None in mode ``"human"``, whose window already shows it, and without a render mode.
        """
        if self._window is not None:
            self._vector.action_masks()  # refused before the first `reset`
            self._window.show(wait=False)
            return None
        boards = self._vector.render()
        return None if boards is None else boards[0]

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()


def _first(observations: Any) -> Any:
    """Return the first game's observation."""
    if isinstance(observations, dict):
        return {name: rows[0] for name, rows in observations.items()}
    return observations[0]


class CarolusTurnsEnv(CarolusEnv):
    """One game for one learner in which a step is a disc, a crown or a whole turn.

    Takes the arguments of `CarolusTurnsVectorEnv` but ``num_envs``, ``autoreset_mode`` and
    ``copy``. Infos hold the rows of its infos.
    """

    vector_env = CarolusTurnsVectorEnv
