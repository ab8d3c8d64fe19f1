"""RLlib (new API stack): the game as a `MultiAgentEnv`, and trained modules as agents.

    >>> from ray.rllib.algorithms.ppo import PPOConfig
    >>> from carolus_env.integrations.rllib import CarolusMultiAgentEnv
    >>> config = PPOConfig().environment(CarolusMultiAgentEnv, env_config={"players": 3})

``examples/rllib_ppo.py`` trains one policy in all seats, with masks, and plays with it. Needs
``ray[rllib]`` and ``torch``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env.bots import Agent
from carolus_env.engine import observation
from carolus_env.engine.rules import BY_MAX_ROUNDS, OPTIONS, OVER, Rules
from carolus_env.engine.state import States
from carolus_env.envs.learner import LEARNER, LearnerGames
from carolus_env.envs.options import observation_box, start_from
from carolus_env.envs.turns import TurnGames, Turns, candidates_box
from carolus_env.integrations.agents import agent_of
from carolus_env.system import untrusted

try:
    import torch
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModule
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
except ImportError as error:
    raise ImportError(
        f"carolus_env.integrations.rllib needs RLlib and PyTorch ({error}): "
        "pip install 'ray[rllib]' torch"
    ) from error

NO_CANDIDATE: Final = -1e9
"""Logit where there is no candidate: finite, so that its product with probability 0 is 0."""

_OPTIONS: Final = (*OPTIONS, "turns")


class CarolusMultiAgentEnv(MultiAgentEnv):
    """One game; every seat is an agent, ``player_0`` to ``player_{players - 1}``.

    Only the player to move is observed, and often the same player several times in a row. When the
    game ends, all are: everyone is paid, whoever moved last. An observation is what
    `ActionMaskingTorchRLModule` expects,

    - ``"observations"``: ``(length,)`` float32 (docs/observation.md), or with ``turns``
      ``(K, length)`` float32, a row for each candidate (docs/turns.md);
    - ``"action_mask"``: ``(95,)`` or ``(K,)`` float32, 1 for what is legal; all 0 after the end.

    Rewards are 0 until the end, then the payoffs, which sum to 0. A game that reaches
    ``max_rounds`` is truncated, with rewards 0. RLlib tests an environment with a random action,
    and can sample them: `get_action_space` gives a space whose samples are legal.

    Args:
        config: RLlib's ``env_config``, with any of

            - the fields of `Rules`;
            - ``turns``: True or a mapping of the options of `Turns`: an action is a disc, a crown
              or a whole turn, by its index in a list of K candidates. The mover's info then holds
              ``choices`` ``(K, 5)`` and ``left_out``, as those of ``CarolusMagnusTurns-v0``.

    Raises:
        ValueError: for an unknown option, or an impossible value.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        options = dict(config or {})
        untrusted.only(options, _OPTIONS, "env_config")
        rules = Rules(**{name: options[name] for name in OPTIONS if name in options})
        turns = turns_of(options.get("turns"))
        if turns is None:
            self.games = LearnerGames(rules, 1, AllSeats(rules))
            box = observation_box(rules.players, np.dtype(np.float32))
        else:
            self.games = TurnGames(rules, 1, AllSeats(rules), turns=turns)
            box = candidates_box(self.games)
        self._box = box
        self._numbers = self.games.actions
        self.possible_agents = [f"player_{seat}" for seat in range(rules.players)]
        self.agents = self.possible_agents[:]
        mask = spaces.Box(0.0, 1.0, (self._numbers,), np.float32)
        self.observation_spaces = {
            agent: spaces.Dict({"action_mask": mask, "observations": box}) for agent in self.agents
        }
        self.action_spaces = {agent: spaces.Discrete(self._numbers) for agent in self.agents}
        self._samples = {agent: LegalActions(self._numbers) for agent in self.agents}
        self.metadata: dict[str, Any] = {}  # RLlib writes into it, and the class's would be shared

    def get_action_space(self, agent_id: str) -> LegalActions:
        """Return the action space of an agent, whose samples are legal while it is to move."""
        return self._samples[agent_id]

    @property
    def player(self) -> str:
        """The agent to move."""
        return self.possible_agents[int(self.games.states["player"][0])]

    # -------------------------------------------------------------------------------- playing

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a game; returns the observation and the info of the player to move.

        Args:
            seed: the game's seed: game and dice are those of every other environment with this
                seed. None: the game continues the streams of the last one.
            options: ``territories``, ``first_player`` or ``position`` (docs/environments.md).

        Raises:
            ValueError: for a seed or an option that no game can start from.
        """
        if options:
            starts = start_from(self.games.rules, [options])
            self.games.reset(seed, None if seed is not None else np.zeros(1, np.int64), starts)
        elif seed is not None:
            self.games.reset(seed)
        else:
            self.games.restart(np.zeros(1, np.int64))
        return self._observe(), self._infos()

    def step(self, action_dict: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Carry out the decision of the player to move.

        Args:
            action_dict: ``{player: action}``, the player to move alone.

        Returns:
            Observations, rewards, terminateds, truncateds and infos. Before the end: observation
            and info of the player to move, the reward 0 of the one who moved. At the end: of all.

        Raises:
            ValueError: when another player has an action, or the game is over.
            IllegalActionError: for an illegal action; the game stays as it was.
        """
        mover, over = self.player, bool(self.games.states["phase"][0] == OVER)
        if over or action_dict.keys() != {mover}:
            due = "the game is over, reset it" if over else f"{mover} alone is to move"
            raise ValueError(f"{due}, got actions of {sorted(action_dict)}")
        ended = self.games.step(np.array([action_dict[mover]]))
        if not len(ended.rows):
            going = {"__all__": False}
            return self._observe(), {mover: 0.0}, going, dict(going), self._infos()
        cut_off = bool(ended.states["reason"][0] == BY_MAX_ROUNDS)
        rewards = dict(zip(self.agents, ended.payoffs[0].tolist(), strict=True))
        # For all at once: RLlib takes a game in which each agent alone is truncated as terminated.
        terminateds, truncateds = {"__all__": not cut_off}, {"__all__": cut_off}
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        return self._last_observations(ended.states), rewards, terminateds, truncateds, infos

    # -------------------------------------------------------------------------------- inside

    def _observe(self) -> dict[str, Any]:
        """Return the observation of the player to move; its legal actions can be sampled."""
        mask = self.games.masks()[0]
        self._samples[self.player].mask = mask
        observations = self.games.observations(np.zeros((1, *self._box.shape), np.float32))[0]
        return {self.player: {"action_mask": mask.astype(np.float32), "observations": observations}}

    def _last_observations(self, states: States) -> dict[str, Any]:
        """Return everyone's observation of a game that is over."""
        observations = np.zeros((len(self.agents), *self._box.shape), np.float32)
        if not isinstance(self.games, TurnGames):
            seats = np.arange(len(self.agents))
            observation.observe(
                states.repeat(len(seats)), seats, dtype=np.float32, out=observations
            )
        mask = np.zeros(self._numbers, np.float32)
        return {
            agent: {"action_mask": mask.copy(), "observations": row}
            for agent, row in zip(self.agents, observations, strict=True)
        }

    def _infos(self) -> dict[str, Any]:
        return {self.player: {name: rows[0].copy() for name, rows in self.games.infos().items()}}


class LegalActions(spaces.Discrete):
    """`Discrete`, of which only legal actions are sampled.

    Attributes:
        mask: ``(n,)`` int8, the legal actions; None: all are legal.
    """

    mask: npt.NDArray[np.int8] | None = None

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw a random legal action; other arguments are those of `Discrete`."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)


class AllSeats:
    """`envs.learner.Opponents` that leave every seat to the learner."""

    agents: Sequence[Agent] = ()

    def __init__(self, rules: Rules) -> None:
        self._players = rules.players

    def seat(
        self, learner_seats: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Seat the learner everywhere, ``(n, players)``."""
        return np.full((len(learner_seats), self._players), LEARNER)


def turns_of(value: bool | Mapping[str, Any] | None) -> Turns | None:
    """Return the ``turns`` of an ``env_config``: None where actions are single decisions."""
    if value is None or value is False:
        return None
    return Turns() if value is True else Turns(**value)


# ------------------------------------------------------------------------------------ networks


class CandidateRLModule(TorchRLModule, ValueFunctionAPI):
    """A policy and a value for environments of whole turns: one network scores each candidate.

    So the list's places share what is learnt. The value of a position is what the
    policy expects: the mean of the candidates' values by their probability. ``model_config`` may
    hold ``hidden``, the units of the hidden layers, by default ``(128, 64)``.
    """

    def setup(self) -> None:
        """Make the network; RLlib calls this."""
        config = self.model_config if isinstance(self.model_config, Mapping) else {}
        width = self.observation_space["observations"].shape[-1]
        layers: list[torch.nn.Module] = []
        for units in config.get("hidden", (128, 64)):
            layers += [torch.nn.Linear(width, units), torch.nn.ReLU()]
            width = units
        self.scorer = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self._scores(batch)[0]}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return the expected payoffs, ``(N,)``."""
        logits, values = self._scores(batch)
        return (torch.softmax(logits, dim=-1) * values).sum(dim=-1)

    def _scores(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits and values of the candidates, ``(N, K)`` each."""
        inputs = batch[Columns.OBS]
        logits, values = self.scorer(inputs["observations"]).unbind(dim=-1)
        return logits.masked_fill(inputs["action_mask"] == 0, NO_CANDIDATE), values


class RLlibAgent(Agent):
    """Plays the likeliest action of an RLModule that was trained on `CarolusMultiAgentEnv`.

    A file of your own makes it an agent for ``evaluate.py`` (docs/bots.md)::

        class Mine(RLlibAgent):
            def __init__(self):
                super().__init__("checkpoint", "shared", players=3)

    Args:
        checkpoint: a folder of ``algorithm.save_to_path()``. Reading it runs code that it holds:
            open none that you do not trust.
        policy: the module's id.
        players: ``players`` of the ``env_config`` that it was trained with.
        turns: ``turns`` of the ``env_config``.

    Raises:
        ValueError: when the folder holds no such module, and for a wrong number of players.
    """

    name = "rllib"

    def __init__(
        self,
        checkpoint: str | Path,
        policy: str,
        players: int = 2,
        turns: bool | Mapping[str, Any] | None = None,
    ) -> None:
        folder = Path(checkpoint).absolute() / "learner_group/learner/rl_module" / policy
        if not folder.is_dir():
            raise ValueError(f"{checkpoint}: no checkpoint of RLlib with a policy {policy!r}")
        module = RLModule.from_checkpoint(folder)
        self._agent = agent_of(partial(likeliest, module), players, turns_of(turns))

    def act(
        self, states: States, generators: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.integer[Any]]:
        """See `Agent.act`; nothing is drawn."""
        return self._agent.act(states, generators)


@torch.no_grad()
def likeliest(
    module: Any, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return a module's likeliest action in each game, ``(N,)``."""
    batch = {
        "observations": torch.from_numpy(observations),
        "action_mask": torch.from_numpy(masks).float(),
    }
    logits = module.forward_inference({Columns.OBS: batch})[Columns.ACTION_DIST_INPUTS]
    chosen: npt.NDArray[np.int64] = logits.argmax(dim=-1).numpy()
    return chosen
