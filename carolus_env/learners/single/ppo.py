"""MaskablePPO that learns from every seat's decisions, with a value for every team.

In self-play the network decides for every seat and learns from all of it: each step of the
environment is one decision in each game, by any seat. The value is a vector, the expected
payoff of each team. So the value of the next position tells every team what a decision was worth,
and no sign is ever flipped. Advantages are those of the team that decides.

`SelfPlayPPO` is sb3-contrib's MaskablePPO with another buffer and another way to collect
decisions; losses, clipping and gradient steps are sb3-contrib's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from carolus_env.bots.neural import network
from carolus_env.envs.learner import Ended
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.learners.single.buffer import SeatBuffer, to_absolute
from carolus_env.learners.single.policy import NetworkPolicy


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO that learns from every decision of every seat that the learner plays.

    `learn` is SB3's. `begin`, `update` and `end` are the same loop for a caller who has work
    to do between two updates.

    Args:
        env: with uint8 observations; its opponents say which seats the learner plays.
        size: of the network.
        seed: of weights, sampling and minibatches.
        on_end: called after each step that ended games.
        kwargs: see MaskablePPO.
    """

    env: CarolusVecEnv
    policy: NetworkPolicy
    rollout_buffer: SeatBuffer

    def __init__(
        self,
        env: CarolusVecEnv,
        *,
        size: network.Size,
        seed: int,
        on_end: Callable[[Ended], object] = lambda ended: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            NetworkPolicy,
            env,
            policy_kwargs={"size": size, "seed": seed},
            rollout_buffer_class=SeatBuffer,
            rollout_buffer_kwargs={"players": size.players, "seed": seed},
            seed=seed,
            **kwargs,
        )
        self._first_seats = _first_seats(env)
        self._on_end = on_end

    # -------------------------------------------------------------------------------- learning

    def begin(self, steps: int, callbacks: Sequence[BaseCallback] = ()) -> None:
        """Get ready for updates up to ``steps`` decisions in all."""
        _, self._callback = self._setup_learn(
            steps - self.num_timesteps, list(callbacks), reset_num_timesteps=False
        )
        self._callback.on_training_start(locals(), globals())

    def update(self) -> bool:
        """A rollout and the gradient steps on it; False when a callback has ended training."""
        if not self.collect_rollouts(self.env, self._callback, self.rollout_buffer, self.n_steps):
            return False
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        self.train()
        return True

    def end(self) -> None:
        """Tell the callbacks that training has ended."""
        self._callback.on_training_end()

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play ``n_rollout_steps`` decisions in each game, and compute their advantages."""
        assert isinstance(env, CarolusVecEnv)
        assert isinstance(rollout_buffer, SeatBuffer)
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        seen: Any = self._last_obs
        while not rollout_buffer.full:
            masks = env.action_masks()
            with torch.no_grad():
                on_device = torch.from_numpy(seen).to(self.device)
                found = self.policy(on_device, action_masks=torch.from_numpy(masks).to(self.device))
            actions, values, log_probs = (output.cpu().numpy() for output in found)
            rollout_buffer.add_decisions(
                seen, masks, _acting_teams(env), actions, log_probs, values
            )
            seen, _, dones, infos = env.step(actions)
            ended = env.ended
            if ended is not None and len(ended.rows):
                rollout_buffer.add_ends(ended.rows, ended.payoffs[:, self._first_seats])
                self._on_end(ended)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
        self._last_obs = seen
        with torch.no_grad():
            last = self.policy.predict_values(torch.from_numpy(seen).to(self.device))
        rollout_buffer.compute_advantages(to_absolute(last.cpu().numpy(), _acting_teams(env)))
        callback.on_rollout_end()
        return True

    # -------------------------------------------------------------------------------- weights

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """A copy of the network's weights."""
        return {
            name: weight.detach().cpu().numpy().copy()
            for name, weight in self.policy.weights.items()
        }

    def set_weights(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Continue from other weights of the same shapes."""
        with torch.no_grad():
            for name, weight in self.policy.weights.items():
                weight.copy_(torch.from_numpy(np.asarray(weights[name])))

    # -------------------------------------------------------------------------------- resuming

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """With `numbers`, what `restore` needs: weights, optimiser, torch's generators."""
        found: dict[str, npt.NDArray[Any]] = {
            f"weight/{name}": weight for name, weight in self.weights().items()
        }
        for name, weight in self.policy.weights.items():
            for key, value in self.policy.optimizer.state[weight].items():
                found[f"{key}/{name}"] = value.cpu().numpy()
        found["torch"] = torch.get_rng_state().numpy()
        if self.device.type == "cuda":
            found["cuda"] = torch.cuda.get_rng_state(self.device).numpy()
        return found

    def numbers(self) -> dict[str, Any]:
        """See `arrays`: the generator of minibatches."""
        return {"minibatches": self.rollout_buffer.random.bit_generator.state}

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what `arrays` and `numbers` returned.

        Raises:
            KeyError, RuntimeError, ValueError: for those of another network.
        """
        kinds: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for key, array in arrays.items():
            kind, _, name = key.partition("/")
            kinds.setdefault(kind, {})[name] = array
        self.set_weights(kinds.pop("weight"))
        torch.set_rng_state(torch.from_numpy(kinds.pop("torch")[""]))
        if "cuda" in kinds:
            torch.cuda.set_rng_state(torch.from_numpy(kinds.pop("cuda")[""]), self.device)
        saved = {
            place: {kind: torch.from_numpy(found[name]) for kind, found in kinds.items()}
            for place, name in enumerate(self.policy.weights)
            if kinds
        }
        groups = self.policy.optimizer.state_dict()["param_groups"]
        self.policy.optimizer.load_state_dict({"state": saved, "param_groups": groups})
        self.rollout_buffer.random.bit_generator.state = numbers["minibatches"]

    def observe_again(self) -> None:
        """Read the observations of the restored environment."""
        self._last_obs = self.env.look()
        self._last_episode_starts = np.zeros(self.env.num_envs, np.bool_)


def _acting_teams(env: CarolusVecEnv) -> npt.NDArray[np.int64]:
    """``(n,)`` the team of the player to move in each game."""
    states = env.games.states
    return states["team"][np.arange(len(states)), states["player"]].astype(np.int64)


def _first_seats(env: CarolusVecEnv) -> list[int]:
    """A seat of each team: the team's payoff is that seat's."""
    rules = env.games.rules
    seats = range(rules.players)
    return [next(s for s in seats if rules.team(s) == team) for team in range(rules.teams)]
