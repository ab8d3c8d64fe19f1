"""PPO with action masks in one file: PyTorch and the Gymnasium vector environment, nothing else.

    python examples/ppo_torch.py
    python examples/ppo_torch.py --players 4 --opponents random --save weights.safetensors
    python examples/ppo_torch.py --turns

The learner plays `envs` games side by side, against one bot in all other seats, and learns from its
own decisions. Four things are specific to the game; the rest is PPO (arXiv:1707.06347):

- Masks. A handful of the 95 actions are legal. The logits of the others are set to a large negative
  number, in play and in the update alike, so they have neither probability nor gradient
  (arXiv:2006.14171).
- Ends. Autoreset in the same step: the step that ends a game returns its payoff and already the
  first position of the next one. So every step is a decision in each game; in next-step mode some
  steps would only reset, and must not be learnt from. Nothing is bootstrapped across an end,
  neither value nor advantage. This holds for truncated games too: they are worth 0, the observation
  counts the rounds down, and nothing comes after.
- Turns. With `--turns` an action is a disc, a crown or a whole turn, and the network scores every
  candidate by the same weights.
- Losses. Often an opponent's move ends the game. The environment then pays the learner for its last
  decision, so it learns from lost games as well as from won ones.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

try:
    import torch
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'carolus-env[sb3]'") from None
from safetensors.torch import save
from torch import Tensor, nn
from torch.distributions import Categorical

from carolus_env.engine.rules import TEAMS
from carolus_env.engine.setup import derived_seed
from carolus_env.evaluation import mean_interval
from carolus_env.system.command import script_options
from carolus_env.system.files import check_writable, write_file
from carolus_env.system.options import option


@dataclass
class Args:
    """PPO against a bot, with PyTorch alone."""

    players: int = option(2, "2, 3 or 4 (two teams of two)", among=(2, 4))
    opponents: str | None = option(
        None,
        "the agent in all other seats: random, greedy, planner (slow), ...; by default one that "
        "beats an untrained network: greedy, with --turns planner:errors=0.1",
        kind=str,
    )
    turns: bool = option(False, "whole turns as actions, instead of single decisions")
    steps: int = option(1_000_000, "decisions to learn from", among=(1, None))
    seed: int = option(1, "seed of games, network and sampling", among=(0, None))

    envs: int = option(256, "games played side by side", among=(1, None))
    rollout: int = option(
        64, "decisions in each game between two updates of the network", among=(1, None)
    )
    minibatch: int = option(2048, "decisions in a gradient step", among=(1, None))
    epochs: int = option(4, "passes over the decisions of a rollout", among=(1, None))
    learning_rate: float = option(
        1e-3, "learning rate of Adam at the start; it falls linearly to 0", among=(0, None)
    )
    gamma: float = option(0.999, "discount for each decision", among=(0, None))
    gae_lambda: float = option(0.95, "lambda of generalised advantage estimation", among=(0, None))
    clip: float = option(0.2, "PPO's clip range", among=(0, None))
    entropy_weight: float = option(0.01, "weight of the entropy bonus", among=(0, None))
    value_weight: float = option(0.5, "weight of the value's squared error", among=(0, None))
    longest_gradient: float = option(
        0.5, "longest gradient norm; longer gradients are scaled down", among=(0, None)
    )
    hidden: int = option(128, "units in each of the two hidden layers", among=(1, None))

    eval_games: int = option(
        1000, "games of each evaluation, before training and at the end", among=(1, None)
    )
    save: Path | None = option(None, "file for the weights, as safetensors", kind=Path)


class Network(nn.Module):
    """Policy and value: two MLPs, on the observation or on each candidate's row."""

    def __init__(self, envs: VectorEnv, hidden: int) -> None:
        super().__init__()
        space, actions = envs.single_observation_space, envs.single_action_space
        assert isinstance(space, spaces.Box) and isinstance(actions, spaces.Discrete)
        self.turns = len(space.shape) == 2
        self.policy = mlp(space.shape[-1], hidden, 1 if self.turns else int(actions.n), gain=0.01)
        self.value = mlp(space.shape[-1], hidden, 1, gain=1.0)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Categorical, Tensor]:
        """Return distributions over the legal actions and the expected payoffs, ``(N,)`` each."""
        logits, values = self.policy(obs), self.value(obs)[..., 0]
        logits = logits[..., 0] if self.turns else logits
        logits = logits.masked_fill(~masks, -1e9)  # finite: 0 times it is 0
        choice = Categorical(logits=logits, validate_args=False)
        return choice, (choice.probs * values).sum(dim=1) if self.turns else values


def mlp(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Make two hidden layers with orthogonal weights."""
    sizes = (inputs, hidden, hidden, outputs)
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


class Decisions:
    """Observations, actions and rewards of ``T`` steps of ``n`` games: arrays ``(T, n, ...)``."""

    def __init__(self, steps: int, obs: Tensor, masks: Tensor) -> None:
        n = len(obs)
        self.obs = obs.new_zeros(steps, *obs.shape)
        self.masks = masks.new_zeros(steps, *masks.shape)
        self.actions = torch.zeros(steps, n, dtype=torch.int64)
        self.log_probs, self.values, self.rewards, self.advantages = torch.zeros(4, steps, n)
        self.ends = torch.zeros(steps, n, dtype=torch.bool)

    def minibatches(self, size: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield all decisions once, in random order."""
        everything = (self.obs, self.masks, self.actions, self.log_probs, self.advantages)
        flat = [array.flatten(0, 1) for array in (*everything, self.advantages + self.values)]
        for chosen in torch.randperm(self.ends.numel()).split(size):
            yield tuple(array[chosen] for array in flat)


def advantages(
    rewards: Tensor, ends: Tensor, values: Tensor, last: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Compute generalised advantages (arXiv:1506.02438), ``(T, n)``, up to the end of a game.

    Args:
        rewards, values: ``(T, n)``.
        ends: ``(T, n)`` bool, whether the decision was a game's last.
        last: ``(n,)`` values of the positions after the last step.
    """
    result, advantage = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        goes_on = (~ends[t]).float()
        next_values = last if t == len(rewards) - 1 else values[t + 1]
        error = rewards[t] + gamma * goes_on * next_values - values[t]
        result[t] = advantage = error + gamma * gae_lambda * goes_on * advantage
    return result


def opponents_of(args: Args) -> str:
    """Name the agent in all other seats."""
    return args.opponents or ("planner:errors=0.1" if args.turns else "greedy")


def make(args: Args, games: int) -> VectorEnv:
    """Make the environment; the learner's seat changes from game to game."""
    return gymnasium.make_vec(
        "CarolusMagnusTurns-v0" if args.turns else "CarolusMagnus-v0",
        num_envs=games,
        players=args.players,
        opponents=opponents_of(args),
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def as_tensors(obs: npt.NDArray[Any], infos: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Convert observations ``(n, ...)`` to float32 and masks ``(n, actions)`` to bool."""
    return torch.from_numpy(obs), torch.from_numpy(infos["action_mask"]).bool()


def win_shares(payoffs: npt.NDArray[np.float64], players: int) -> npt.NDArray[np.float64]:
    """Convert payoffs to win shares: 1 won, 0 lost; a tie is shared."""
    teams = TEAMS[players]
    return ((teams - 1) * payoffs + 1) / teams


def train(args: Args, envs: VectorEnv, network: nn.Module) -> None:
    """Play and learn, with a line of progress for each update."""
    obs, masks = as_tensors(*envs.reset(seed=derived_seed(args.seed, 0)))
    optimizer = torch.optim.Adam(network.parameters(), eps=1e-5)
    decisions = Decisions(args.rollout, obs, masks)
    batch = args.envs * args.rollout
    updates = -(-args.steps // batch)
    shares: deque[float] = deque(maxlen=1000)  # the last games
    started = time.perf_counter()
    for update in range(updates):
        for t in range(args.rollout):
            with torch.no_grad():
                choice, values = network(obs, masks)
                moves = choice.sample()
            decisions.obs[t], decisions.masks[t], decisions.values[t] = obs, masks, values
            decisions.actions[t], decisions.log_probs[t] = moves, choice.log_prob(moves)
            next_obs, payoffs, terminated, truncated, infos = envs.step(moves.numpy())
            ended = terminated | truncated
            decisions.rewards[t] = torch.from_numpy(payoffs)
            decisions.ends[t] = torch.from_numpy(ended)
            shares.extend(win_shares(payoffs[ended], args.players))
            obs, masks = as_tensors(next_obs, infos)
        with torch.no_grad():
            last = network(obs, masks)[1]
        decisions.advantages = advantages(
            *(decisions.rewards, decisions.ends, decisions.values, last),
            *(args.gamma, args.gae_lambda),
        )
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - update / updates)
        spread = learn(network, optimizer, decisions, args)
        done = (update + 1) * batch
        print(
            f"{done:>10,} decisions  {done / (time.perf_counter() - started):>7,.0f}/s  "
            f"win rate {np.mean(shares) if shares else np.nan:6.1%}  entropy {spread:.2f}",
            flush=True,
        )


def learn(
    network: nn.Module, optimizer: torch.optim.Optimizer, decisions: Decisions, args: Args
) -> float:
    """Update the network by PPO; return the mean entropy of the policy."""
    spreads = []
    for _ in range(args.epochs):
        for batch in decisions.minibatches(args.minibatch):
            obs, masks, moves, old_log_probs, gains, returns = batch
            choice, values = network(obs, masks)
            gains = (gains - gains.mean()) / (gains.std(correction=0) + 1e-8)
            ratio = (choice.log_prob(moves) - old_log_probs).exp()
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.min(gains * ratio, gains * clipped).mean()
            value_loss = (values - returns).square().mean()
            spread = choice.entropy().mean()
            loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * spread
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), args.longest_gradient)
            optimizer.step()
            spreads.append(spread.item())
    return float(np.mean(spreads))


@torch.no_grad()
def evaluate(when: str, network: nn.Module, args: Args) -> None:
    """Print the win rate with the likeliest action, over the first game of each row.

    With fewer rows than games the first games to end would be the short ones.
    """
    envs = make(args, args.eval_games)
    obs, masks = as_tensors(*envs.reset(seed=derived_seed(args.seed, 1)))
    shares = np.full(envs.num_envs, np.nan)
    while np.isnan(shares).any():
        moves = network(obs, masks)[0].logits.argmax(dim=1)
        next_obs, payoffs, terminated, truncated, infos = envs.step(moves.numpy())
        first = (terminated | truncated) & np.isnan(shares)
        shares[first] = win_shares(payoffs[first], args.players)
        obs, masks = as_tensors(next_obs, infos)
    low, high = mean_interval(shares)
    print(
        f"{when} training: win rate {shares.mean():.1%} (95 %: {low:.1%} to {high:.1%}) against "
        f"{opponents_of(args)}, {args.eval_games:,} games of {args.players} players",
        flush=True,
    )


def main(args: Args) -> None:
    """Train, save the weights if asked to, and evaluate."""
    torch.set_num_threads(1)  # small networks gain nothing from more
    torch.manual_seed(args.seed)
    if args.save:
        check_writable(args.save)
    envs = make(args, args.envs)
    network = Network(envs, args.hidden)
    evaluate("before", network, args)
    train(args, envs, network)
    if args.save:
        write_file(args.save, save(network.state_dict()))
    evaluate("after", network, args)


if __name__ == "__main__":
    main(script_options(Args, __doc__))
