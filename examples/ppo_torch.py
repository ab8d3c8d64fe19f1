"""PPO by self-play in one file: PyTorch and the batched engine, on the CPU or wholly on a GPU.

    python examples/ppo_torch.py
    python examples/ppo_torch.py --players 4 --steps 30000000 --save mine.safetensors
    python examples/ppo_torch.py --device cuda --envs 16384 --minibatch 65536
    python examples/ppo_torch.py --teacher value --rollout 256 --epochs 4 --learning-rate 0.002
    python evaluate.py decisions:mine.safetensors planner --players 4

One network plays every seat of many games, a decision at a time, and learns from all decisions. It
is made to be copied for games in which a player decides several times in a row, of any number of
players and with partners. What is specific to such games; the rest is PPO (arXiv:1707.06347):

- Values. The network says what each seat expects to be paid, counted clockwise from the seat to
  move, so no sign is flipped when the seat changes, or does not. A seat learns from the decisions
  of the others too: the position after *any* decision tells every seat what it was worth. So
  advantages are those of plain GAE (arXiv:1506.02438), a vector a step, and each decision uses the
  entry of the seat that took it. Nothing is discounted: rewards come at the end alone.
- Masks. A handful of the 95 actions are legal. The logits of the others become the lowest number
  that there is, in play and in the update alike, so they have neither probability nor gradient
  (arXiv:2006.14171), whatever the network says of the legal ones.
- Ends. An ended game restarts within the step: the rewards are those of the ended game, the
  observation is already the next one's. Nothing is bootstrapped across an end, nor where a game is
  cut off: its payoffs are 0, and the observation counts the rounds down.
- The network shares its weights among regions and among clans (`carolus_env.networks.decisions`).
  Two layers on the flat observation learn each region and clan anew, and much more slowly.

With --teacher the policy learns what a stronger bot would do in the positions of the network's own
play (DAgger, arXiv:1011.0686), by cross-entropy instead of PPO's loss. A bot that compares whole
turns so passes on in single decisions what it sees.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

try:
    import torch
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'carolus-env[sb3]'") from None
from torch import Tensor, nn
from torch.utils.dlpack import from_dlpack

import carolus_env as ce
from carolus_env import evaluation
from carolus_env.bots.network import DecisionsBot
from carolus_env.networks.decisions import DecisionModel, Size, forward, random_weights
from carolus_env.system.command import script_options
from carolus_env.system.files import check_writable
from carolus_env.system.options import option


@dataclass
class Args:
    """PPO by self-play, with PyTorch alone."""

    players: int = option(2, "2, 3 or 4 (two teams of two)", among=(2, 4))
    device: Literal["cpu", "cuda"] = option(
        "cpu", "where games and network are", among=("cpu", "cuda")
    )
    steps: int = option(4_000_000, "decisions to learn from", among=(1, None))
    seed: int = option(1, "seed of games, network and sampling", among=(0, None))

    envs: int = option(512, "games played side by side", among=(1, None))
    rollout: int = option(
        64, "decisions in each game between two updates of the network", among=(1, None)
    )
    minibatch: int = option(512, "decisions in a gradient step", among=(1, None))
    epochs: int = option(2, "passes over the decisions of a rollout", among=(1, None))
    learning_rate: float = option(
        1e-3, "learning rate of Adam at the start; it falls linearly to 0", among=(0, None)
    )
    gae_lambda: float = option(0.97, "lambda of generalised advantage estimation", among=(0, None))
    clip: float = option(0.2, "PPO's clip range", among=(0, None))
    entropy_weight: float = option(0.005, "weight of the entropy bonus", among=(0, None))
    value_weight: float = option(0.5, "weight of the values' squared error", among=(0, None))
    longest_gradient: float = option(
        0.5, "longest gradient norm; longer gradients are scaled down", among=(0, None)
    )
    region: int = option(32, "width of the vectors of regions and clans", among=(1, 1024))
    whole: int = option(128, "width of the vector of the whole position", among=(1, 1024))

    teacher: str | None = option(None, "bot whose choices are learnt, instead of PPO", kind=str)
    opponents: tuple[str, ...] = option(("planner",), "bots to play against in evaluations")
    eval_every: int = option(500_000, "decisions between two evaluations", among=(1, None))
    eval_games: int = option(200, "games against each bot", among=(1, None))
    save: Path | None = option(None, "file for the network, which decisions:FILE plays", kind=Path)


class Network(nn.Module):
    """Log probabilities of the actions, and a value for each seat, counted from the one to move."""

    def __init__(self, size: Size, seed: int) -> None:
        super().__init__()
        self.size = size
        self.weights: Any = nn.ParameterDict(
            {
                name: nn.Parameter(torch.from_numpy(weight))
                for name, weight in random_weights(size, seed).items()
            }
        )

    def forward(self, obs: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities ``(N, 95)`` and values ``(N, players)``."""
        logits, values = forward(self.weights, obs.float(), self.size.players, torch)
        # Not minus infinity: 0 times that is no number.
        logits = logits.masked_fill(masks == 0, torch.finfo(logits.dtype).min)
        return logits.log_softmax(dim=1), values

    def model(self, about: dict[str, Any]) -> DecisionModel:
        """Return the network as NumPy arrays, a file's contents."""
        weights = {name: w.detach().cpu().numpy().copy() for name, w in self.weights.items()}
        return DecisionModel(self.size, weights, about)


class Decisions:
    """What ``T`` steps of ``n`` games leave for learning: tensors ``(T, n, ...)``."""

    def __init__(self, args: Args, batch: ce.GameBatch) -> None:
        shape, device = (args.rollout, args.envs), args.device
        length = batch.observations.shape[1]
        self.obs = torch.zeros(*shape, length, dtype=torch.uint8, device=device)
        self.masks = torch.zeros(*shape, ce.ACTIONS, dtype=torch.int8, device=device)
        self.seats, self.actions = torch.zeros(2, *shape, dtype=torch.int64, device=device)
        self.log_probs = torch.zeros(*shape, device=device)
        self.rewards = torch.zeros(*shape, args.players, device=device)
        self.values = torch.zeros(args.rollout + 1, args.envs, args.players, device=device)
        self.goes_on = torch.zeros(*shape, 1, device=device)


def clockwise(per_seat: Tensor, seats: Tensor, sign: int) -> Tensor:
    """Count the last axis from each seat, ``sign`` 1, or from seat 0 again, -1."""
    players = per_seat.shape[-1]
    order = torch.arange(players, device=seats.device)
    return per_seat.gather(-1, (order + sign * seats[..., None]) % players)


class Teacher:
    """A bot that is asked what it would do."""

    def __init__(self, bot: str, args: Args) -> None:
        if args.device != "cpu":
            raise SystemExit(f"a teacher plays on the CPU: --device must be cpu, got {args.device}")
        self._agent = ce.make(bot)
        self._streams = ce.new_streams(args.seed, args.envs)

    def actions(self, batch: ce.GameBatch) -> Tensor:
        """Return the action that the bot would take in each game."""
        return torch.from_numpy(self._agent.act(batch.states, self._streams))


@torch.no_grad()
def play(
    batch: ce.GameBatch, network: Network, decisions: Decisions, teacher: Teacher | None = None
) -> None:
    """Fill ``decisions`` by self-play. The batch's arrays are read in place.

    The actions to learn are the teacher's, if there is one, but the network's are played.
    """
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
        decisions.actions[t] = teacher.actions(batch) if teacher else actions
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


def learn(
    network: Network, optimizer: Any, decisions: Decisions, args: Args
) -> tuple[float, float]:
    """Update the network by PPO; return means: the policy's entropy, and how far it moved (KL)."""
    gains = advantages(decisions, args.gae_lambda)
    returns = clockwise(gains + decisions.values[:-1], decisions.seats, 1)
    gains = gains.gather(2, decisions.seats[..., None])[..., 0]
    everything = (decisions.obs, decisions.masks, decisions.actions, decisions.log_probs)
    flat = [part.flatten(0, 1) for part in (*everything, gains, returns)]
    measured = []
    for _ in range(args.epochs):
        order = torch.randperm(len(flat[0]), device=args.device)
        for chosen in order.split(args.minibatch):
            obs, masks, actions, before, gain, target = (part[chosen] for part in flat)
            log_probs, values = network(obs, masks)
            if len(gain) > 1:  # one alone would be 0 without its mean
                gain = (gain - gain.mean()) / (gain.std(correction=0) + 1e-8)
            log_prob = log_probs.gather(1, actions[:, None])[:, 0]
            change = log_prob - before
            if args.teacher:
                change, policy_loss = torch.zeros(1), -log_prob.mean()
            else:
                ratio = change.exp()
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -torch.min(gain * ratio, gain * clipped).mean()
            value_loss = (values - target).square().mean()
            entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
            loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), args.longest_gradient)
            optimizer.step()
            distance = (change.exp() - 1 - change).mean()  # Kullback and Leibler's, estimated
            measured.append(torch.stack([entropy, distance]).detach())
    if not all(weight.isfinite().all() for weight in network.parameters()):
        raise SystemExit("weights are no longer finite: choose a lower --learning-rate")
    means: list[float] = torch.stack(measured).mean(0).tolist()
    return means[0], means[1]


def evaluate(network: Network, args: Args) -> None:
    """Print the win rates of the likeliest action against the bots, in paired games."""
    agent = DecisionsBot(network.model({}))
    for opponent in args.opponents:
        match = evaluation.play_pairing(
            (agent, ce.make(opponent)), ce.Rules(args.players), args.eval_games, seed=args.seed
        )
        low, high = match.ci95[0]
        print(
            f"win rate {match.win_rate[0]:.1%} (95 %: {low:.1%} to {high:.1%}) against {opponent}, "
            f"{match.games} games of {args.players} players",
            flush=True,
        )


def train(args: Args, network: Network) -> Iterator[int]:
    """Play and learn, a line of progress for each update; yield the decisions, to be evaluated."""
    batch = ce.GameBatch(
        ce.Rules(args.players),
        args.envs,
        seed=args.seed,
        observation="uint8",
        device=args.device,
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate, eps=1e-5, fused=True)
    decisions = Decisions(args, batch)
    teacher = Teacher(args.teacher, args) if args.teacher else None
    each = args.envs * args.rollout
    updates = -(-args.steps // each)
    seconds, evaluated = 0.0, 0
    for update in range(updates):
        started = time.perf_counter()
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - update / updates)
        play(batch, network, decisions, teacher)
        entropy, distance = learn(network, optimizer, decisions, args)
        batch.check()  # waits for the GPU
        seconds += time.perf_counter() - started
        done = (update + 1) * each
        print(
            f"{done:>12,} decisions  {done / seconds:>9,.0f}/s  entropy {entropy:.2f}  "
            f"KL {distance:.3f}  "
            f"{1 / max(1 - decisions.goes_on.mean().item(), 1e-9):.0f} decisions a game",
            flush=True,
        )
        if done - evaluated >= args.eval_every or update == updates - 1:
            evaluated = done
            yield done


def main(args: Args) -> None:
    """Train, evaluate, and save the network if asked to."""
    torch.set_num_threads(1)  # small networks gain little from more
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    if args.save:
        check_writable(args.save)
    size = Size(args.players, args.region, args.whole)
    network = Network(size, args.seed).to(args.device)
    for _ in train(args, network):
        evaluate(network, args)
    if args.save:
        network.model({"seed": args.seed, "decisions": args.steps}).save(args.save)


if __name__ == "__main__":
    main(script_options(Args, __doc__))
