"""A training run: self-play PPO against a league, and everything it leaves behind.

A run is a folder: ``config.json`` (options, seed, versions), ``best`` and ``final`` models
(carolus_env/bots/model.py), ``curve.json`` and ``curve.png``, ``tensorboard/``, and ``resume/``
(carolus_env/learners/checkpoint.py) from which it goes on bit by bit.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from carolus_env import arena
from carolus_env.bots import make
from carolus_env.bots.neural.model import Model, find, load, save
from carolus_env.bots.planner.evaluation import chances
from carolus_env.engine.rules import REASON_NAMES
from carolus_env.envs.learner import Ended
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.learners import checkpoint
from carolus_env.learners.config import Config
from carolus_env.learners.curve import Curve
from carolus_env.learners.league import League
from carolus_env.learners.ppo import SelfPlayPPO, TorchPlayer
from carolus_env.system.machine import machine
from carolus_env.system.machine import versions as package_versions

_EVAL_SEED = 1_000_000_007  # far from the seeds of training games
_ROOT = Path(__file__).parent.parent


@dataclass
class Progress:
    """Where a run stands; what it shows while it goes on."""

    decisions: int = 0
    decisions_per_s: float = 0.0
    shares: dict[str, float] = field(default_factory=dict)
    """Recent mean share of the win against each kind of opponent."""
    evaluation: dict[str, Any] | None = None
    """Set when an evaluation has just been made."""


class Run:
    """One training run in its folder.

    Args:
        config: all options.
        folder: of the run, exists.
        command: the command line, for the model's JSON.
        show: called after every rollout and evaluation.
        callbacks: of SB3, called along with the run's own.

    Attributes:
        stop: set it, and training ends after the update under way, with a checkpoint.
    """

    def __init__(
        self,
        config: Config,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
        callbacks: Sequence[BaseCallback] = (),
    ) -> None:
        config.check()
        torch.set_num_threads(config.threads)
        self.config, self.folder, self.show = config, folder, show
        self.command, self.callbacks = command, callbacks
        self.rules = config.rules()
        self.device = _device(config.device)
        self.league = League(
            self.rules,
            config.bots,
            lambda weights: TorchPlayer(weights, config.players, temperature=1.0, device="cpu"),
            earlier=config.earlier,
            self_share=config.self_share,
            earlier_share=config.earlier_share,
            on_duty=config.on_duty,
            hardness=config.hardness,
        )
        self.curve = Curve()
        self.remembered = 0
        self.seconds = 0.0
        """Time of the whole run so far, evaluations included."""
        self._since = time.monotonic()
        self.stop = False
        self.random = np.random.default_rng(config.seed)
        self.env = CarolusVecEnv(
            self.rules, config.games, self.league, seed=config.seed, dtype=np.uint8
        )
        self.model = SelfPlayPPO(
            self.env,
            size=config.size,
            seed=config.seed,
            potential=self._potential if config.shaping else None,
            learning_rate=lambda left: _falling(
                config.learning_rate, config.learning_rate_end, left
            ),
            n_steps=config.rollout,
            batch_size=min(config.batch, config.games * config.rollout),
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip,
            ent_coef=config.entropy,
            vf_coef=config.value_weight,
            device=self.device,
        )
        self._start: Mapping[str, Any] | None = None
        if config.start is not None:
            self._start_from(config.start)

    def _start_from(self, name: str) -> None:
        start = find(name)
        if start.size != self.config.size:
            raise ValueError(f"start {name!r} is a model of {start.size}, not {self.config.size}")
        self.model.set_weights(start.weights)
        self._start = start.about

    def _potential(self, states: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
        """``(n, teams)``: the evaluation's payoff of each team, times ``config.shaping``."""
        teams = self.rules.teams
        won = chances(states)[:, :teams]
        return self.config.shaping * (teams * won - 1) / (teams - 1)

    # -------------------------------------------------------------------------------- training

    def train(self) -> bool:
        """Train up to ``config.steps`` decisions.

        Returns:
            whether they are done; not so after `stop`.
        """
        if self.model.num_timesteps >= self.config.steps:
            return True
        tensorboard = configure(str(self.folder / "tensorboard"), ["tensorboard"])
        self.model.set_logger(tensorboard)
        callback = _Callback(self)
        try:
            self.model.learn(
                # SB3 adds what was done before when it does not reset the count
                self.config.steps - self.model.num_timesteps,
                callback=[callback, *self.callbacks],
                reset_num_timesteps=self.model.num_timesteps == 0,
            )
        finally:
            self.note_time()
            tensorboard.close()
        return self.model.num_timesteps >= self.config.steps

    def note_time(self) -> None:
        """Bring `seconds` up to date."""
        now = time.monotonic()
        self.seconds += now - self._since
        self._since = now

    def snapshot(self) -> Model:
        """The network as it stands, as a model."""
        about = {
            "rules": self.rules.to_dict(),
            "command": self.command,
            "seed": self.config.seed,
            "decisions": int(self.model.num_timesteps),
            "seconds": round(self.seconds, 1),
            "machine": machine(),
            "device": str(self.device),
            "commit": commit(),
            "versions": versions(),
        }
        if self._start is not None:
            about["start"] = dict(self._start)
        return Model(self.config.size, self.model.weights(), about)

    def player(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> TorchPlayer:
        """Who plays the likeliest action of these weights."""
        return TorchPlayer(weights, self.config.players, temperature=0.0, device="cpu")

    def evaluate(
        self, games: int, weights: Mapping[str, npt.NDArray[np.float32]] | None = None
    ) -> dict[str, Any]:
        """Play against each of ``config.eval_bots``, with the likeliest action.

        Returns:
            for each bot ``win_rate``, ``ci95`` and ``games`` of the policy.
        """
        agent = self.player(weights or self.model.weights())
        results = {}
        for spec in self.config.eval_bots:
            result = arena.play_pairing((agent, make(spec)), self.rules, games, seed=_EVAL_SEED)
            results[spec] = {
                "win_rate": result.win_rate[0],
                "ci95": list(result.ci95[0]),
                "games": result.games,
            }
        return results

    def beats_best(self, model: Model) -> bool:
        """Whether a policy wins at least half of its games against the run's best so far."""
        if not (self.folder / "best.json").exists():
            return True
        pair = self.player(model.weights), self.player(load(self.folder / "best").weights)
        result = arena.play_pairing(pair, self.rules, self.config.eval_games, seed=_EVAL_SEED)
        return result.win_rate[0] >= 0.5

    def note_evaluation(self, progress: Progress) -> dict[str, Any]:
        """Evaluate, keep the policy if it is the best so far, add a point to the curve."""
        model = self.snapshot()
        results = self.evaluate(self.config.eval_games, model.weights)
        if self.beats_best(model):
            save(model, self.folder / "best")
        rating = ladder_rating(self.config.players, results)
        self.note_time()
        point = {"decisions": int(self.model.num_timesteps), "seconds": round(self.seconds, 1)}
        self.curve.evaluation.append({**point, "rating": rating, "results": results})
        self.curve.save(self.folder)
        progress.evaluation = results
        self.show(progress)
        progress.evaluation = None
        return results

    # -------------------------------------------------------------------------------- resuming

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is whole."""
        about, earlier = self.league.state()
        numbers = {
            "decisions": int(self.model.num_timesteps),
            "updates": int(self.model._n_updates),
            "seconds": self.seconds,
            "remembered": self.remembered,
            "random": self.random.bit_generator.state,
            "league": about,
            "learner": self.model.numbers(),
            "games": self.env.games.numbers(),
            "curve": dataclasses.asdict(self.curve),
        }
        arrays = {
            **{f"learner/{name}": array for name, array in self.model.arrays().items()},
            **{f"league/{name}": array for name, array in earlier.items()},
            **{f"games/{name}": array for name, array in self.env.games.arrays().items()},
            "lengths": self.env.lengths,
        }
        checkpoint.write(self.folder / "resume", numbers, arrays)

    def resume(self) -> None:
        """Go on from the last checkpoint, bit by bit as if nothing had happened.

        Raises:
            ValueError: when the folder holds no checkpoint, or one that cannot be read.
        """
        numbers, arrays = checkpoint.read(self.folder / "resume")

        def part(prefix: str) -> dict[str, npt.NDArray[Any]]:
            cut = len(prefix)
            return {name[cut:]: a for name, a in arrays.items() if name.startswith(prefix)}

        try:
            self.model.restore(numbers["learner"], part("learner/"))
            self.league.restore(numbers["league"], part("league/"))
            self.env.games.restore(numbers["games"], part("games/"))
            self.env.lengths[:] = arrays["lengths"]
            self.model.num_timesteps = numbers["decisions"]
            self.model._n_updates = numbers["updates"]
            self.random.bit_generator.state = numbers["random"]
            self.seconds, self.remembered = numbers["seconds"], numbers["remembered"]
            self._since = time.monotonic()
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None
        self.model.look_again()


class _Callback(BaseCallback):
    """Watches games end; keeps the league, evaluates and saves between rollouts.

    What happens before a rollout happens in the same order after a resumed checkpoint, which is
    why the checkpoint comes first: it holds everything as it was then.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.progress = Progress()
        self._shares: dict[str, deque[float]] = {}
        self._ended: list[Ended] = []
        self._stopping = False

    def _on_training_start(self) -> None:
        config = self.run.config
        self._started = (time.monotonic(), self.num_timesteps)
        self._done = self.num_timesteps  # resumed: what happened at this point has happened
        self._every = config.checkpoint_every or config.eval_every
        if not self.run.curve.evaluation:  # the first one shows the untrained policy
            self.evaluate()
            self.save()

    def _passed(self, every: int) -> bool:
        """Whether the last rollout went over a multiple of ``every`` decisions."""
        size = self.run.config.games * self.run.config.rollout
        return self.num_timesteps // every > (self.num_timesteps - size) // every

    def _on_rollout_start(self) -> None:
        run, config = self.run, self.run.config
        if self.num_timesteps > self._done:
            if self._passed(config.eval_every):
                self.evaluate()
            if run.stop or self._passed(self._every):
                self.save()
        if run.stop:
            self._stopping = True
            return
        run.model.ent_coef = _between(
            config.entropy_end, config.entropy, 1 - self.num_timesteps / config.steps
        )
        if self.num_timesteps - run.remembered >= config.remember_every:
            run.remembered = self.num_timesteps
            run.league.remember(run.model.weights())
        run.league.new_duty(run.random)

    def _on_step(self) -> bool:
        ended = self.run.env.ended
        if ended is not None and len(ended.rows):
            self._ended.append(ended)
            for kind, shares in self.run.league.note(ended).items():
                self._shares.setdefault(kind, deque(maxlen=1000)).extend(shares)
        return not self._stopping

    def _on_rollout_end(self) -> None:
        self.run.note_time()
        since, before = self._started
        progress = self.progress
        progress.decisions = self.num_timesteps
        progress.decisions_per_s = (self.num_timesteps - before) / (time.monotonic() - since)
        progress.shares = {kind: float(np.mean(s)) for kind, s in sorted(self._shares.items())}
        for kind, share in progress.shares.items():
            self.logger.record(f"share_of_win/{kind}", share)
        for name, value in _statistics(self._ended).items():
            self.logger.record(f"games/{name}", value)
        self._ended.clear()
        self.logger.record("train/entropy_weight", self.run.model.ent_coef)
        self.logger.record("time/decisions_per_s", progress.decisions_per_s)
        self.run.curve.training.append(
            {
                "decisions": self.num_timesteps,
                "seconds": round(self.run.seconds, 1),
                "shares": {kind: round(share, 4) for kind, share in progress.shares.items()},
            }
        )
        self.run.show(progress)

    def _on_training_end(self) -> None:
        if not self._stopping:
            self.evaluate()
            self.save()

    def evaluate(self) -> None:
        for spec, result in self.run.note_evaluation(self.progress).items():
            self.logger.record(f"evaluation/{spec}", result["win_rate"])
        if (rating := self.run.curve.evaluation[-1]["rating"]) is not None:
            self.logger.record("evaluation/ladder_rating", rating)

    def save(self) -> None:
        self.run.note_time()
        try:
            self.run.checkpoint()
        except OSError as error:
            print(f"train: no checkpoint written ({error}); training goes on", file=sys.stderr)


def _statistics(ended: Sequence[Ended]) -> dict[str, float]:
    """What the games were like that ended in a rollout."""
    if not ended:
        return {}
    states = np.concatenate([one.states for one in ended])
    payoffs = np.concatenate([one.payoffs for one in ended])
    share = {
        f"ended_by_{name}": float(np.mean(states["reason"] == number))
        for number, name in enumerate(REASON_NAMES)
        if number > 0
    }
    return {
        "rounds": float(states["round"].mean()),
        "draws": float(np.mean((payoffs.max(axis=1) < 1) | (states["winners"] == 0))),
        "castles_of_the_winner": float(states["castles"].max(axis=1).mean()),
        "regions_left": float(states["regions"].mean()),
        "first_seat_payoff": float(payoffs[:, 0].mean()),
        **share,
    }


def ladder_rating(players: int, results: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Elo on the ladder of docs/ladder.md, by the results against the bots that stand on it.

    The rating at which as many wins were to be expected, one game more lost and one more won (so
    that it is finite); None when no such bot was met.
    """
    path = _ROOT / "benchmarks" / "results" / f"ladder_{players}.json"
    if not path.exists():
        return None
    known = {row["spec"]: row["rating"]["elo"] for row in json.loads(path.read_text())["agents"]}
    met = [(known[spec], row["win_rate"], row["games"]) for spec, row in results.items()
           if spec in known]  # fmt: skip
    if not met:
        return None
    low, high = -2000.0, 6000.0
    for _ in range(50):  # the expected wins grow with the rating
        middle = (low + high) / 2
        surplus = 0.0
        for elo, rate, games in met:
            expected = 1 / (1 + 10 ** ((elo - middle) / 400))
            surplus += (games + 2) * expected - (rate * games + 1)
        low, high = (low, middle) if surplus > 0 else (middle, high)
    return round(middle, 1)


# ------------------------------------------------------------------------------------ small things


def _between(end: float, start: float, left: float) -> float:
    """Linear from ``start`` (all left) to ``end`` (nothing left)."""
    left = min(max(left, 0.0), 1.0)
    return end + (start - end) * left


def _falling(start: float, end: float, left: float) -> float:
    """Geometric from ``start`` (all left) to ``end`` (nothing left): half the time is small."""
    return float(end * (start / end) ** min(max(left, 0.0), 1.0))


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


@cache
def commit() -> str | None:
    """The repository's commit, with a plus where files differ from it; None outside of git."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=40"],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def versions() -> dict[str, str]:
    """What a run was made with."""
    return package_versions("gymnasium", "torch", "stable_baselines3", "sb3_contrib")
