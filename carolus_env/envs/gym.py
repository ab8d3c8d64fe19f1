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

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode

from carolus_env.bots import AgentLike
from carolus_env.engine.rules import RuleOptions
from carolus_env.envs.learner import FixedOpponents, LearnerGames
from carolus_env.envs.options import check_options, observation_box, rules_for
from carolus_env.envs.turns import TurnGames, Turns, candidates_box
from carolus_env.envs.vector import VECTOR_RENDER_MODES, LearnerEnv, LearnerVectorEnv
from carolus_env.system.options import whole_number

Specs = AgentLike | Sequence[AgentLike]


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


class CarolusEnv(LearnerEnv):
    """One game for one learner.

    Takes the arguments of `CarolusVectorEnv` but ``num_envs``, ``autoreset_mode`` and ``copy``.
    Render mode ``"human"`` shows every decision in a window, those of the opponents too.

    Raises:
        TypeError: for options of several games.
    """

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
        if vectors := {"num_envs", "autoreset_mode", "copy"} & options.keys():
            raise TypeError(f"{type(self).__name__} has no option {min(vectors)!r}: it is one game")
        options["autoreset_mode"] = AutoresetMode.DISABLED
        options["render_mode"] = None if render_mode == "human" else render_mode
        super().__init__(type(self).vector_env(1, players, opponents, **options), render_mode)


class CarolusTurnsEnv(CarolusEnv):
    """One game for one learner in which a step is a disc, a crown or a whole turn.

    Takes the arguments of `CarolusTurnsVectorEnv` but ``num_envs``, ``autoreset_mode`` and
    ``copy``. Infos hold the rows of its infos.
    """

    vector_env = CarolusTurnsVectorEnv
