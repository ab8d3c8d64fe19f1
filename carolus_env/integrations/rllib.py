"""RLlib (new API stack): the game as a `MultiAgentEnv`, and trained modules as agents.

    >>> from ray.rllib.algorithms.ppo import PPOConfig
    >>> from carolus_env.integrations.rllib import CarolusMultiAgentEnv
    >>> config = PPOConfig().environment(CarolusMultiAgentEnv, env_config={"players": 3})

``examples/rllib_ppo.py`` trains one policy in all seats, with masks, and plays with it. Needs
``ray[rllib]`` and ``torch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env.bots import Agent
from carolus_env.engine.rules import OPTIONS
from carolus_env.engine.state import Ints, States
from carolus_env.envs import check_reset_options, turns
from carolus_env.envs.aec import raw_env
from carolus_env.integrations.agents import DecisionAgent, TurnAgent
from carolus_env.system.untrusted import only

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

LOWEST: Final = torch.finfo(torch.float32).min  # logit of no candidate: 0 times it is 0


class CarolusMultiAgentEnv(MultiAgentEnv):
    """One game; every seat is an agent, ``player_0`` to ``player_{players - 1}``.

    Only the player to move is observed, and often the same player several times in a row. When the
    game ends, all are: everyone is paid, whoever moved last. An observation is what
    `ActionMaskingTorchRLModule` expects,

    - ``"observations"``: ``(length,)`` or with ``turns`` ``(K, length)`` float32, a row for each
      candidate (docs/environments.md);
    - ``"action_mask"``: ``(95,)`` or ``(K,)`` float32, 1 for what is legal; all 0 after the end.

    Rewards are 0 until the end, then the payoffs, which sum to 0. A game that reaches
    ``max_rounds`` is truncated, with rewards 0.

    Args:
        config: RLlib's ``env_config``: the fields of `Rules`, and ``turns``, True or a mapping of
            the options of `Turns`: an action is a disc, a crown or a whole turn, by its index in a
            list of K candidates. The mover's info then holds ``choices`` ``(K, 5)`` and
            ``left_out``, as those of ``CarolusMagnusTurns-v0``.

    Attributes:
        aec: the game, as PettingZoo's environment.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        options = dict(config or {})
        only(options, (*OPTIONS, "turns"), "env_config")
        self._turns = _turns_of(options.pop("turns", None))
        self.aec = raw_env(**options)
        self.possible_agents = self.aec.possible_agents
        self.agents = self.possible_agents[:]
        self._box = self.aec.observation_spaces["player_0"]["observation"]
        numbers = int(self.aec.action_spaces["player_0"].n)
        if self._turns is not None:
            numbers, self._box = self._turns.candidates, self._turns.box(self.aec.rules.players)
        mask = spaces.Box(0.0, 1.0, (numbers,), np.float32)
        space = spaces.Dict({"action_mask": mask, "observations": self._box})
        self.observation_spaces = dict.fromkeys(self.agents, space)
        self.action_spaces = {agent: spaces.Discrete(numbers) for agent in self.agents}
        self._samples = {agent: LegalActions(numbers) for agent in self.agents}
        self.metadata: dict[str, Any] = {}  # RLlib writes into it, and the class's would be shared

    def get_action_space(self, agent_id: str) -> LegalActions:
        """Return the action space of an agent, whose samples are legal while it is to move."""
        return self._samples[agent_id]

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a game; returns the observation and the info of the player to move.

        ``seed`` and ``options`` are those of `envs.aec.raw_env.reset`.
        """
        check_reset_options(options or {})
        self.aec.reset(seed, dict(options or {}))
        if self._over:
            raise ValueError("reset: the position's game is over")
        return self._observe()

    def step(self, action_dict: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Carry out the decision of the player to move, who alone has an action in ``action_dict``.

        Returns observations, rewards, terminateds, truncateds and infos: at the end of all, before
        it the observation and info of the player to move, and the reward 0 of the one who moved.

        Raises:
            ValueError: when another player has an action, or the game is over.
            IllegalActionError: for an illegal action; the game stays as it was.
        """
        aec, mover = self.aec, self.aec.agent_selection
        if self._over or action_dict.keys() != {mover}:
            due = "the game is over, reset it" if self._over else f"{mover} alone is to move"
            raise ValueError(f"{due}, got actions of {sorted(action_dict)}")
        for number in self._actions_of(action_dict[mover]):
            aec.step(number)
        # For all at once: RLlib takes a game in which each agent alone is truncated as terminated.
        ends = {"__all__": aec.terminations[mover]}, {"__all__": aec.truncations[mover]}
        if not self._over:
            observations, infos = self._observe()
            return observations, {mover: 0.0}, *ends, infos
        nothing = np.zeros(self.action_spaces[mover].n, np.float32)
        last = {agent: aec.observe(agent)["observation"] for agent in self.agents}
        if self._turns is not None:
            last = dict.fromkeys(self.agents, np.zeros(self._box.shape, np.float32))
        ended = {name: {"action_mask": nothing, "observations": row} for name, row in last.items()}
        return ended, dict(aec.rewards), *ends, {agent: {} for agent in self.agents}

    @property
    def _over(self) -> bool:
        mover = self.aec.agent_selection
        return bool(self.aec.terminations[mover] or self.aec.truncations[mover])

    def _observe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return observation and info of the player to move; its legal actions can be sampled."""
        mover, info = self.aec.agent_selection, {}
        if self._turns is None:
            row, mask = self.aec.observe(mover).values()
        else:
            listed = self._listed = turns.candidates_of(self.aec.games, self._turns)
            [row], [mask] = listed.rows, listed.masks.astype(np.int8)
            info = {"choices": listed.choices[0], "left_out": listed.left_out[0]}
        self._samples[mover].mask = mask
        observation = {"action_mask": mask.astype(np.float32), "observations": row}
        return {mover: observation}, {mover: info}

    def _actions_of(self, action: Any) -> list[int]:
        if self._turns is None:
            return [action]
        return self._listed.actions_of(self.aec.games, 0, action)


class LegalActions(spaces.Discrete):
    """`Discrete`, of which only legal actions are sampled."""

    mask: npt.NDArray[np.int8] | None = None  # (n,) the legal actions; None: all are legal

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw a random legal action; other arguments are those of `Discrete`."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)


def _turns_of(value: bool | Mapping[str, Any] | None) -> turns.Turns | None:
    """Return the ``turns`` of an ``env_config``: None where actions are single decisions."""
    if value is None or value is False:
        return None
    return turns.Turns() if value is True else turns.Turns(**value)


class CandidateRLModule(TorchRLModule, ValueFunctionAPI):
    """A policy and a value for environments of whole turns: one network scores each candidate.

    The value of a position is the mean of the candidates' values by their probability.
    ``model_config`` may hold ``hidden``, the units of the hidden layers, by default ``(128, 64)``.
    """

    def setup(self) -> None:
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
        return logits.masked_fill(inputs["action_mask"] == 0, LOWEST), values


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
        players, turns: those of the ``env_config`` that it was trained with.
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
        choose = staticmethod(partial(_likeliest, RLModule.from_checkpoint(folder)))
        options = _turns_of(turns)
        kind, more = (DecisionAgent, []) if options is None else (TurnAgent, [options])
        self._agent: Agent = type("Likeliest", (kind,), {"choose": choose})(players, *more)

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> Ints:
        """See `Agent.act`; nothing is drawn."""
        return self._agent.act(states, generators)


@torch.no_grad()
def _likeliest(
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
