"""PPO by self-play in one file, on the CPU or with games, network and update on a GPU.

    python examples/ppo_self_play.py
    python examples/ppo_self_play.py --device cuda --games 16384

One network plays every seat of thousands of games, a decision at a time, and learns from all
decisions. `examples/ppo_torch.py` is the usual PPO against bots; this one differs in three things:

- Games. `GameBatch` plays one decision in every game, and PyTorch reads its arrays in place. With
  ``device="cuda"`` nothing leaves the GPU while it learns.
- Values. The network values a position for every seat, counted from the one to move, since seats
  move several times in a row. So every step of a game is a step for every seat: advantages are
  those of plain GAE (arXiv:1506.02438), a vector a step, and each decision uses the entry of the
  seat that took it. No sign is flipped.
- Ends. An ended game restarts within the step. Nothing is bootstrapped across an end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

try:
    import torch
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'carolus-env[sb3]'") from None
from torch import Tensor, nn
from torch.utils.dlpack import from_dlpack

import carolus_env as ce
from carolus_env import evaluation
from carolus_env.system.command import script_options
from carolus_env.system.options import option


@dataclass
class Args:
    """PPO by self-play, with PyTorch alone."""

    players: int = option(2, "2, 3 or 4 (two teams of two)", among=(2, 4))
    device: Literal["cpu", "cuda"] = option(
        "cpu", "where games and network are", among=("cpu", "cuda")
    )
    minutes: float = option(1.0, "minutes of learning", among=(0, None))
    seed: int = option(1, "seed of games, network and sampling", among=(0, None))

    games: int = option(1024, "games played side by side", among=(1, None))
    steps: int = option(
        32, "decisions in each game between two updates of the network", among=(1, None)
    )
    minibatches: int = option(16, "gradient steps in a pass over these decisions", among=(1, None))
    epochs: int = option(2, "passes", among=(1, None))
    learning_rate: float = option(
        1e-3, "learning rate of Adam at the start; it falls linearly to 0", among=(0, None)
    )
    gae_lambda: float = option(
        0.95, "lambda of generalised advantage estimation; nothing is discounted", among=(0, None)
    )
    clip: float = option(0.2, "PPO's clip range", among=(0, None))
    entropy_weight: float = option(0.01, "weight of the entropy bonus", among=(0, None))
    value_weight: float = option(0.5, "weight of the values' squared error", among=(0, None))
    longest_gradient: float = option(
        0.5, "longest gradient norm; longer gradients are scaled down", among=(0, None)
    )
    hidden: int = option(256, "units in each of the two hidden layers", among=(1, None))

    opponents: tuple[str, ...] = option(("greedy", "planner"), "agents to play against at the end")
    eval_games: int = option(400, "games against each", among=(1, None))


class Network(nn.Module):
    """Logits of the actions, and a value for each seat, counted from the one to move."""

    def __init__(self, inputs: int, hidden: int, players: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.policy, self.values = nn.Linear(hidden, ce.ACTIONS), nn.Linear(hidden, players)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities ``(N, 95)`` and values ``(N, players)``."""
        hidden = self.body(obs)
        logits = self.policy(hidden).masked_fill(masks == 0, -1e9)  # finite: 0 times it is 0
        return logits.log_softmax(dim=1), self.values(hidden)


class Decisions:
    """What ``T`` steps of ``n`` games leave for learning: tensors ``(T, n, ...)``."""

    def __init__(self, args: Args, batch: ce.GameBatch) -> None:
        shape, device = (args.steps, args.games), args.device
        self.obs = torch.zeros(*shape, batch.observations.shape[1], device=device)
        self.masks = torch.zeros(*shape, ce.ACTIONS, dtype=torch.int8, device=device)
        self.seats, self.actions = torch.zeros(2, *shape, dtype=torch.int64, device=device)
        self.log_probs = torch.zeros(*shape, device=device)
        self.rewards = torch.zeros(*shape, args.players, device=device)
        self.values = torch.zeros(args.steps + 1, args.games, args.players, device=device)
        self.goes_on = torch.zeros(*shape, 1, device=device)


def clockwise(per_seat: Tensor, seats: Tensor, sign: int) -> Tensor:
    """Count the last axis from each seat, ``sign`` 1, or from seat 0 again, -1."""
    players = per_seat.shape[-1]
    order = torch.arange(players, device=seats.device)
    return per_seat.gather(-1, (order + sign * seats[..., None]) % players)


@torch.no_grad()
def play(batch: ce.GameBatch, network: Network, decisions: Decisions) -> None:
    """Fill ``decisions`` by self-play."""
    turn = batch.turn()
    obs, masks = from_dlpack(turn.observations), from_dlpack(turn.masks)
    rewards, seats = from_dlpack(turn.rewards), from_dlpack(batch.states["player"])
    ends = from_dlpack(turn.terminated), from_dlpack(turn.truncated)
    steps = len(decisions.actions)
    for t in range(steps + 1):
        log_probs, values = network(obs, masks)
        decisions.values[t] = clockwise(values, seats.long(), -1)
        if t == steps:
            return
        races = torch.empty_like(log_probs).exponential_()  # the first to finish is the sample
        actions = (log_probs.exp() / races).argmax(dim=1)
        decisions.obs[t], decisions.masks[t], decisions.seats[t] = obs, masks, seats
        decisions.actions[t] = actions
        decisions.log_probs[t] = log_probs.gather(1, actions[:, None])[:, 0]
        batch.step(actions)
        decisions.rewards[t] = rewards
        decisions.goes_on[t, :, 0] = ~(ends[0] | ends[1])


def advantages(decisions: Decisions, gae_lambda: float) -> Tensor:
    """Return generalised advantages of every seat, ``(T, n, players)``."""
    result = torch.zeros_like(decisions.rewards)
    advantage = torch.zeros_like(result[0])
    for t in reversed(range(len(result))):
        goes_on, values = decisions.goes_on[t], decisions.values
        error = decisions.rewards[t] + goes_on * values[t + 1] - values[t]
        result[t] = advantage = error + gae_lambda * goes_on * advantage
    return result


def learn(network: Network, optimizer: Any, decisions: Decisions, args: Args) -> None:
    """Update the network by PPO."""
    gains = advantages(decisions, args.gae_lambda)
    returns = clockwise(gains + decisions.values[:-1], decisions.seats, 1)
    gains = gains.gather(2, decisions.seats[..., None])[..., 0]
    everything = (decisions.obs, decisions.masks, decisions.actions, decisions.log_probs)
    flat = [part.flatten(0, 1) for part in (*everything, gains, returns)]
    for _ in range(args.epochs):
        order = torch.randperm(len(flat[0]), device=args.device)
        for chosen in order.chunk(args.minibatches):
            obs, masks, actions, before, gain, target = (part[chosen] for part in flat)
            log_probs, values = network(obs, masks)
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            ratio = (log_probs.gather(1, actions[:, None])[:, 0] - before).exp()
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.min(gain * ratio, gain * clipped).mean()
            value_loss = (values - target).square().mean()
            entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
            loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), args.longest_gradient)
            optimizer.step()


def train(args: Args) -> Network:
    """Play and learn for some minutes, with a line of progress every five seconds."""
    batch = ce.GameBatch(
        ce.Rules(args.players),
        args.games,
        seed=args.seed,
        observation="float32",
        device=args.device,
    )
    network = Network(batch.observations.shape[1], args.hidden, args.players).to(args.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate, eps=1e-5)
    decisions = Decisions(args, batch)
    play(batch, network, decisions)  # compiles; learning begins after it
    started = shown = time.perf_counter()
    updates, share = 0, 0.0
    while share < 1:
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - share)
        play(batch, network, decisions)
        learn(network, optimizer, decisions, args)
        batch.check()  # waits for the GPU
        updates, now = updates + 1, time.perf_counter()
        share = (now - started) / (60 * args.minutes)
        if now - shown > 5 or share >= 1:
            shown, done = now, updates * args.games * args.steps
            print(
                f"{done:>13,} decisions  {done / (now - started):>11,.0f}/s  "
                f"{1 - decisions.goes_on.mean().item():.4f} ends a decision",
                flush=True,
            )
    return network


class Player(ce.Agent):
    """The network as an agent; it plays the likeliest action."""

    def __init__(self, network: Network) -> None:
        self.network = network.cpu()

    @torch.no_grad()
    def act(
        self, states: npt.NDArray[np.void], generators: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Return an action for each game."""
        obs = torch.from_numpy(ce.observe(states, dtype="float32"))
        return self.network(obs, torch.from_numpy(ce.legal_masks(states)))[0].argmax(dim=1).numpy()


def main(args: Args) -> None:
    """Train, and play against the opponents."""
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    player = Player(train(args))
    for opponent in args.opponents:
        match = evaluation.play_pairing(
            (player, ce.make(opponent)), ce.Rules(args.players), args.eval_games, seed=args.seed
        )
        low, high = match.ci95[0]
        print(f"{match.win_rate[0]:.1%} against {opponent} ({low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main(script_options(Args, __doc__))
