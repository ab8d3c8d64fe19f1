"""PPO with action masks in one file: PyTorch and the Gymnasium vector environment, nothing else.

    python examples/ppo_torch.py
    python examples/ppo_torch.py --players 4 --opponents random --save weights.safetensors

The learner plays `envs` games side by side against one bot in all other seats, and learns from its
own decisions. Three things are the game's own, the rest is PPO (arXiv:1707.06347):

- Masks. A handful of the 95 actions are legal. The logits of the others are set far below, in play
  and in the update alike, so that they have neither probability nor gradient (arXiv:2006.14171).
- Ends. Autoreset in the same step: the step that ends a game brings its payoff and, already, the
  first position of the next one. So every step is a decision in each game; the next-step mode would
  put in steps that only reset, to be left out of the learning. Nothing is bootstrapped over an end,
  neither value nor advantage. That goes for truncated games too: they are worth 0, the observation
  counts the rounds down, and nothing comes after.
- Losses. Often somebody else's move ends the game. The environment pays the learner then, with its
  last decision, so that it learns from lost games as well as from won ones.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
import tyro
from gymnasium.vector import AutoresetMode, VectorEnv
from safetensors.torch import save
from torch import Tensor, nn
from torch.distributions import Categorical

from carolus_env.arena import mean_interval
from carolus_env.engine.rules import TEAMS
from carolus_env.system.files import check_writable, write_file


@dataclass
class Args:
    """PPO against a bot, with PyTorch alone."""

    players: Literal[2, 3, 4] = 2
    """4 are two teams."""
    opponents: str = "greedy"
    """The agent in all other seats: random, greedy, planner (which takes its time), ..."""
    steps: int = 1_000_000
    """Decisions to learn from."""
    seed: int = 1
    """Of games, network and sampling."""
    threads: int = 1
    """Of PyTorch; small networks gain nothing from more."""

    envs: int = 256
    """Games played side by side."""
    rollout: int = 64
    """Decisions in each game between two updates."""
    minibatch: int = 2048
    """Decisions in a gradient step."""
    epochs: int = 4
    """Passes over the decisions of an update."""
    learning_rate: float = 1e-3
    """Of Adam at the start; it falls linearly to 0."""
    gamma: float = 0.999
    """Discount for each decision."""
    gae_lambda: float = 0.95
    """Of generalised advantage estimation."""
    clip: float = 0.2
    """How far the probability ratio may gain from 1."""
    entropy_weight: float = 0.01
    """Of the bonus for entropy."""
    value_weight: float = 0.5
    """Of the value's squared error."""
    longest_gradient: float = 0.5
    """Longer ones are shortened."""
    hidden: int = 128
    """Units in each of the two hidden layers."""

    eval_games: int = 1000
    """Games of the evaluation at the end."""
    save: Path | None = None
    """Where the weights go, as safetensors; left out: nowhere."""

    batch: int = field(init=False)
    """Derived: decisions in an update."""
    updates: int = field(init=False)
    """Derived: how many it takes for `steps`; the last one is whole."""

    def __post_init__(self) -> None:
        whole = ("steps", "threads", "envs", "rollout", "minibatch", "epochs", "hidden")
        for name in (*whole, "eval_games"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        self.batch = self.envs * self.rollout
        self.updates = -(-self.steps // self.batch)


class Network(nn.Module):
    """Policy and value, two MLPs on the float32 observation."""

    def __init__(self, length: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.policy = mlp(length, hidden, actions, gain=0.01)  # at first, about uniform
        self.value = mlp(length, hidden, 1, gain=1.0)

    def forward(self, seen: Tensor, masks: Tensor) -> tuple[Categorical, Tensor]:
        """Distributions over the legal actions, and payoffs expected, ``(N,)`` of both."""
        logits = self.policy(seen).masked_fill(~masks, -1e9)  # finite, so that 0 times it is 0
        return Categorical(logits=logits, validate_args=False), self.value(seen)[:, 0]


def mlp(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Two hidden layers, orthogonal weights."""
    sizes = (inputs, hidden, hidden, outputs)
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


class Decisions:
    """What was seen, done and paid in ``T`` steps of ``n`` games: arrays of ``(T, n, ...)``."""

    def __init__(self, steps: int, seen: Tensor, masks: Tensor) -> None:
        n = len(seen)
        self.seen = seen.new_zeros(steps, *seen.shape)
        self.masks = masks.new_zeros(steps, *masks.shape)
        self.actions = torch.zeros(steps, n, dtype=torch.int64)
        self.log_probs, self.values, self.rewards, self.advantages = torch.zeros(4, steps, n)
        self.ends = torch.zeros(steps, n, dtype=torch.bool)

    def minibatches(self, size: int) -> Iterator[tuple[Tensor, ...]]:
        """All decisions once, in random order."""
        everything = (self.seen, self.masks, self.actions, self.log_probs, self.advantages)
        flat = [array.flatten(0, 1) for array in (*everything, self.advantages + self.values)]
        for chosen in torch.randperm(self.ends.numel()).split(size):
            yield tuple(array[chosen] for array in flat)


def advantages(
    rewards: Tensor, ends: Tensor, values: Tensor, last: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Generalised advantages (arXiv:1506.02438), ``(T, n)``; nothing comes over from a next game.

    Args:
        rewards, values: ``(T, n)``.
        ends: ``(T, n)`` bool, whether the decision was a game's last.
        last: ``(n,)`` values of the positions after the last step.
    """
    found, coming = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        goes_on = (~ends[t]).float()
        following = last if t == len(rewards) - 1 else values[t + 1]
        surprise = rewards[t] + gamma * goes_on * following - values[t]
        found[t] = coming = surprise + gamma * gae_lambda * goes_on * coming
    return found


def make(args: Args, games: int) -> VectorEnv:
    """The environment; the learner goes round the seats."""
    return gymnasium.make_vec(
        "CarolusMagnus-v0",
        num_envs=games,
        players=args.players,
        opponents=args.opponents,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def as_tensors(seen: npt.NDArray[Any], infos: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Observations ``(n, length)`` float32 and masks ``(n, 95)`` bool, of games that go on."""
    return torch.from_numpy(seen), torch.from_numpy(infos["action_mask"]).bool()


def win_shares(payoffs: npt.NDArray[np.float64], players: int) -> npt.NDArray[np.float64]:
    """Payoffs as shares of the win: 1 won, 0 lost, a tie is shared."""
    teams = TEAMS[players]
    return ((teams - 1) * payoffs + 1) / teams


def train(args: Args) -> Network:
    """Play and learn; a line of progress for each update."""
    envs = make(args, args.envs)
    seen, masks = as_tensors(*envs.reset(seed=args.seed))
    network = Network(seen.shape[1], masks.shape[1], args.hidden)
    optimizer = torch.optim.Adam(network.parameters(), eps=1e-5)
    decisions = Decisions(args.rollout, seen, masks)
    shares: deque[float] = deque(maxlen=1000)  # of the last games
    started = time.perf_counter()
    for update in range(args.updates):
        for t in range(args.rollout):
            with torch.no_grad():
                choice, values = network(seen, masks)
                moves = choice.sample()
            decisions.seen[t], decisions.masks[t], decisions.values[t] = seen, masks, values
            decisions.actions[t], decisions.log_probs[t] = moves, choice.log_prob(moves)
            following, payoffs, terminated, truncated, infos = envs.step(moves.numpy())
            ended = terminated | truncated
            decisions.rewards[t] = torch.from_numpy(payoffs)
            decisions.ends[t] = torch.from_numpy(ended)
            shares.extend(win_shares(payoffs[ended], args.players))
            seen, masks = as_tensors(following, infos)
        with torch.no_grad():
            last = network(seen, masks)[1]
        decisions.advantages = advantages(
            *(decisions.rewards, decisions.ends, decisions.values, last),
            *(args.gamma, args.gae_lambda),
        )
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - update / args.updates)
        spread = learn(network, optimizer, decisions, args)
        done = (update + 1) * args.batch
        print(
            f"{done:>10,} decisions  {done / (time.perf_counter() - started):>7,.0f}/s  "
            f"win rate {np.mean(shares) if shares else np.nan:6.1%}  entropy {spread:.2f}",
            flush=True,
        )
    return network


def learn(
    network: Network, optimizer: torch.optim.Optimizer, decisions: Decisions, args: Args
) -> float:
    """One update of PPO; returns the mean entropy of the policy."""
    spreads = []
    for _ in range(args.epochs):
        for batch in decisions.minibatches(args.minibatch):
            seen, masks, moves, old_log_probs, gains, returns = batch
            choice, values = network(seen, masks)
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
def evaluate(network: Network, args: Args) -> npt.NDArray[np.float64]:
    """Shares of the win with the likeliest action: one game in each of `eval_games` environments.

    The first games to end of fewer environments would be the short ones.
    """
    envs = make(args, args.eval_games)
    seen, masks = as_tensors(*envs.reset(seed=args.seed + 1_000_000_007))
    shares = np.full(args.eval_games, np.nan)
    while np.isnan(shares).any():
        moves = network(seen, masks)[0].logits.argmax(dim=1)
        following, payoffs, terminated, truncated, infos = envs.step(moves.numpy())
        first = (terminated | truncated) & np.isnan(shares)
        shares[first] = win_shares(payoffs[first], args.players)
        seen, masks = as_tensors(following, infos)
    return shares


def main(args: Args) -> None:
    """Train, evaluate, and save the weights where that is asked for."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    if args.save:
        check_writable(args.save)
    network = train(args)
    if args.save:
        write_file(args.save, save(network.state_dict()))
    shares = evaluate(network, args)
    low, high = mean_interval(shares)
    print(
        f"evaluation: win rate {shares.mean():.1%} (95 %: {low:.1%} to {high:.1%}) "
        f"against {args.opponents}, {args.eval_games:,} games of {args.players} players"
    )


if __name__ == "__main__":
    main(tyro.cli(Args))
