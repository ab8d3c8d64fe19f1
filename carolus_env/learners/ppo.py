"""MaskablePPO on every seat's decisions, with a value for every team.

In self-play the network decides for everybody at the table, and learns from all of it: each step
of the environment is one decision in each game, whoever makes it. The network's value is a vector,
each team's payoff expected, so that the decision after this one says what this one was worth to
all of them, and no sign is flipped anywhere. Advantages are those of the team that decides.

`SelfPlayPPO` is sb3-contrib's MaskablePPO with another way to collect decisions; losses, clipping
and updates are its own. `TorchPlayer` plays what it has learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from carolus_env import engine
from carolus_env.bots import Agent, drawn
from carolus_env.bots.neural import network
from carolus_env.engine import observation
from carolus_env.engine.rules import ACTIONS, TEAMS
from carolus_env.engine.state import States
from carolus_env.envs.sb3 import CarolusVecEnv

Masks = npt.NDArray[Any] | torch.Tensor | None
Potential = Callable[[States], npt.NDArray[np.floating[Any]]]


class NetworkPolicy(MaskableActorCriticPolicy):
    """`carolus_env.bots.neural.network` as a policy of SB3; its values are ``(N, teams)`` payoffs.

    Args:
        observation_space, action_space, lr_schedule: see SB3; observations are whole numbers.
        size: of the network.
        seed: of its first weights.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        size: network.Size,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        self._size, self._seed = size, seed
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        first = network.initial(self._size, self._seed)
        self.weights = nn.ParameterDict({k: torch.from_numpy(v) for k, v in first.items()})
        kwargs: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **kwargs)

    def judge(self, seen: torch.Tensor, masks: Masks) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the actions ``(N, 95)``, and payoffs expected ``(N, teams)``."""
        teams = TEAMS[self._size.players]
        logits, scores = network.forward(
            dict(self.weights.items()), seen.float(), self._size.players, torch
        )
        if masks is not None:
            legal = torch.as_tensor(masks, device=logits.device).bool()
            logits = logits.masked_fill(~legal, _NEVER)
        payoffs = (teams * torch.softmax(scores, dim=1) - 1) / (teams - 1)
        return torch.log_softmax(logits, dim=1), payoffs

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Masks = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_policy, payoffs = self.judge(obs, action_masks)
        if deterministic:
            actions = log_policy.argmax(dim=1)
        else:  # the exponential race: the likelier, the sooner
            noise = torch.empty_like(log_policy).exponential_()
            actions = (log_policy - noise.log()).argmax(dim=1)
        return actions, payoffs, log_policy.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_policy, payoffs = self.judge(obs, action_masks)
        entropy = -(log_policy.exp() * log_policy).sum(dim=1)
        return payoffs, log_policy.gather(1, actions.long()[:, None])[:, 0], entropy

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.judge(obs, None)[1]

    def get_distribution(self, obs: Any, action_masks: Masks = None) -> Any:
        log_policy, _ = self.judge(obs, action_masks)
        return self.action_dist.proba_distribution(action_logits=log_policy)


_NEVER = -1e9  # finite: probabilities of 0 times it stay 0


class SeatBuffer(MaskableRolloutBuffer):
    """Decisions of all games, step by step, with values and rewards for every team.

    Attributes (``T`` steps, ``n`` games):
        observations: ``(T, n, length)`` uint8.
        masks: ``(T, n, 95)`` bool.
        moves: ``(T, n)`` int64, the actions.
        log_probs: ``(T, n)`` float32.
        sides: ``(T, n)`` int64, the team that decides.
        values: ``(T, n, teams)`` float32, payoffs expected, by number of team.
        rewards: ``(T, n, teams)`` float32, payoffs where the decision ended the game, else 0.
        ends: ``(T, n)`` bool, whether it did.
        potentials: ``(T, n, teams)`` float32, of the position in which the decision is taken.
    """

    def __init__(self, *args: Any, players: int, seed: int = 0, **kwargs: Any) -> None:
        self.teams = TEAMS[players]
        self.random = np.random.default_rng(seed)
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        steps, n = self.buffer_size, self.n_envs
        if getattr(self, "masks", None) is None:
            length = int(np.prod(self.obs_shape))
            self.observations = np.zeros((steps, n, length), np.uint8)
            self.masks = np.zeros((steps, n, ACTIONS), np.bool_)
            self.moves = np.zeros((steps, n), np.int64)
            self.log_probs = np.zeros((steps, n), np.float32)
            self.sides = np.zeros((steps, n), np.int64)
            self.values = np.zeros((steps, n, self.teams), np.float32)
            self.rewards = np.zeros((steps, n, self.teams), np.float32)
            self.returns = np.zeros((steps, n, self.teams), np.float32)
            self.advantages = np.zeros((steps, n), np.float32)
            self.ends = np.zeros((steps, n), np.bool_)
            self.potentials = np.zeros((steps, n, self.teams), np.float32)
        self.pos, self.full = 0, False

    def note(
        self,
        seen: npt.NDArray[Any],
        masks: npt.NDArray[Any],
        sides: npt.NDArray[np.int64],
        moves: npt.NDArray[np.int64],
        log_probs: npt.NDArray[np.float32],
        values: npt.NDArray[np.float32],
    ) -> None:
        """Write down a decision in each game; ``values`` are seen from the team that decides."""
        t = self.pos
        self.observations[t], self.masks[t], self.moves[t] = seen, masks, moves
        self.log_probs[t], self.sides[t] = log_probs, sides
        self.values[t] = by_number(values, sides)
        self.rewards[t], self.ends[t] = 0.0, False
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def note_potentials(self, potentials: npt.NDArray[np.floating[Any]]) -> None:
        """Of the positions of the last decisions, ``(n, teams)``."""
        self.potentials[self.pos - 1] = potentials

    def note_end(self, rows: npt.NDArray[np.int64], payoffs: npt.NDArray[np.floating[Any]]) -> None:
        """The last decision ended the games ``rows``; ``payoffs`` is ``(k, teams)``."""
        self.rewards[self.pos - 1, rows] = payoffs
        self.ends[self.pos - 1, rows] = True

    def look_back(
        self, last_values: npt.NDArray[np.float32], last_potentials: npt.NDArray[Any] | None = None
    ) -> None:
        """Generalised advantages (arXiv:1506.02438) of every team; keep the decider's.

        What is rewarded besides the payoff is the discounted difference of the potentials, which
        changes no optimum (Ng, Harada and Russell, ICML 1999): the end of a game has none.

        Args:
            last_values: ``(n, teams)`` by number of team, of the positions after the last step.
            last_potentials: the same of the potentials; None: there are none.
        """
        if last_potentials is not None:
            goes_on = ~self.ends[:, :, None]
            after = np.concatenate([self.potentials[1:], last_potentials[None]])
            self.rewards += self.gamma * goes_on * after - self.potentials
        coming = np.zeros((self.n_envs, self.teams), np.float32)
        following = last_values
        everyone = np.arange(self.n_envs)
        for t in reversed(range(self.buffer_size)):
            goes_on = (~self.ends[t]).astype(np.float32)[:, None]
            surprise = self.rewards[t] + self.gamma * goes_on * following - self.values[t]
            coming = surprise + self.gamma * self.gae_lambda * goes_on * coming
            self.advantages[t] = coming[everyone, self.sides[t]]
            self.returns[t] = coming + self.values[t]
            following = self.values[t]

    def get(  # type: ignore[override]
        self, batch_size: int | None = None
    ) -> Generator[MaskableRolloutBufferSamples, None, None]:
        """All decisions in random order, ``batch_size`` at a time; values from the decider's side.

        ``old_values`` and ``returns`` hold ``teams`` numbers for each decision, as the policy's
        values do.
        """
        total = self.buffer_size * self.n_envs
        order = self.random.permutation(total)
        size = batch_size or total
        sides = self.sides.reshape(total)
        for start in range(0, total, size):
            chosen = order[start : start + size]
            side = sides[chosen]
            yield MaskableRolloutBufferSamples(
                self._tensor(self.observations, chosen),
                self._tensor(self.moves, chosen),
                self._seen_from(self.values, chosen, side),
                self._tensor(self.log_probs, chosen),
                self._tensor(self.advantages, chosen),
                self._seen_from(self.returns, chosen, side),
                self._tensor(self.masks, chosen),
            )

    def _tensor(self, array: npt.NDArray[Any], chosen: npt.NDArray[np.int64]) -> torch.Tensor:
        flat = array.reshape(self.buffer_size * self.n_envs, *array.shape[2:])
        return torch.from_numpy(flat[chosen]).to(self.device)

    def _seen_from(
        self, array: npt.NDArray[Any], chosen: npt.NDArray[np.int64], sides: npt.NDArray[np.int64]
    ) -> torch.Tensor:
        flat = array.reshape(-1, self.teams)[chosen]
        return torch.from_numpy(from_side(flat, sides).reshape(-1)).to(self.device)


def by_number(values: npt.NDArray[Any], sides: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """``(N, teams)`` counted from each row's own team, as ``(N, teams)`` by number of team."""
    teams = values.shape[1]
    places = (np.arange(teams) - sides[:, None]) % teams
    return np.take_along_axis(values, places, 1)


def from_side(values: npt.NDArray[Any], sides: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The other way round: by number of team to counted from the own team."""
    teams = values.shape[1]
    return np.take_along_axis(values, (np.arange(teams) + sides[:, None]) % teams, 1)


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO that learns from every decision of every seat that the learner holds.

    Args:
        env: with uint8 observations; who holds which seat is up to its opponents.
        size: of the network.
        seed: of weights, sampling and minibatches.
        potential: ``(n,)`` games to ``(n, teams)``, for shaping (`SeatBuffer.look_back`).
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
        potential: Potential | None = None,
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
        self._first_seats = first_seats(env)
        self._potential = potential

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play ``n_rollout_steps`` decisions in each game, and work out their advantages."""
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
            moves, values, log_probs = (answer.cpu().numpy() for answer in found)
            rollout_buffer.note(seen, masks, sides(env), moves, log_probs, values)
            if self._potential is not None:
                rollout_buffer.note_potentials(self._potential(env.games.states))
            seen, _, dones, infos = env.step(moves)
            ended = env.ended
            if ended is not None and len(ended.rows):
                rollout_buffer.note_end(ended.rows, ended.payoffs[:, self._first_seats])
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
        self._last_obs = seen
        with torch.no_grad():
            last = self.policy.predict_values(torch.from_numpy(seen).to(self.device))
        potentials = None if self._potential is None else self._potential(env.games.states)
        rollout_buffer.look_back(by_number(last.cpu().numpy(), sides(env)), potentials)
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
        """Go on from other weights of the same shapes."""
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
        """Be the learner that `arrays` and `numbers` were asked of."""
        kinds: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for key, array in arrays.items():
            kind, _, name = key.partition("/")
            kinds.setdefault(kind, {})[name] = array
        self.set_weights(kinds.pop("weight"))
        torch.set_rng_state(torch.from_numpy(kinds.pop("torch")[""]))
        if "cuda" in kinds:
            torch.cuda.set_rng_state(torch.from_numpy(kinds.pop("cuda")[""]), self.device)
        names = list(self.policy.weights)
        saved = {
            place: {kind: torch.from_numpy(found[name]) for kind, found in kinds.items()}
            for place, name in enumerate(names)
            if kinds
        }
        groups = self.policy.optimizer.state_dict()["param_groups"]
        self.policy.optimizer.load_state_dict({"state": saved, "param_groups": groups})
        self.rollout_buffer.random.bit_generator.state = numbers["minibatches"]

    def look_again(self) -> None:
        """See the environment as it stands, after it was restored."""
        self._last_obs = self.env.look()
        self._last_episode_starts = np.zeros(self.env.num_envs, np.bool_)


def sides(env: CarolusVecEnv) -> npt.NDArray[np.int64]:
    """``(n,)`` the team that is to decide in each game."""
    states = env.games.states
    return states["team"][np.arange(len(states)), states["player"]].astype(np.int64)


def first_seats(env: CarolusVecEnv) -> list[int]:
    """A seat of each team; the team's payoff is that seat's."""
    rules = env.games.rules
    seats = range(rules.players)
    return [next(s for s in seats if rules.team(s) == team) for team in range(rules.teams)]


class TorchPlayer(Agent):
    """Plays what a network says, by torch: quick for the large batches of training.

    Args:
        weights: of a network for games of ``players``.
        players: 2, 3 or 4.
        temperature: 0 takes the likeliest action; 1 draws from the policy.
        device: where it is asked.
    """

    name = "network"

    def __init__(
        self,
        weights: Mapping[str, npt.NDArray[np.float32]],
        players: int,
        *,
        temperature: float,
        device: str | torch.device,
    ) -> None:
        self._weights = {name: torch.from_numpy(w).to(device) for name, w in weights.items()}
        self._players, self._temperature, self._device = players, temperature, device

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """One legal action for each game."""
        seen = torch.from_numpy(observation.observe(states)).to(self._device).float()
        legal = torch.from_numpy(engine.legal_masks(states)).to(self._device).bool()
        logits, _ = network.forward(self._weights, seen, self._players, torch)
        logits = logits.masked_fill(~legal, _NEVER)
        if self._temperature == 0:
            return logits.argmax(dim=1).cpu().numpy()
        chances = torch.softmax(logits.double() / self._temperature, dim=1).cpu().numpy()
        return drawn(chances, generators)
