"""Self-play training: MaskablePPO against a league, and everything a run leaves behind.

A run is a folder: ``config.json`` (options, seed, versions), ``best`` and ``final`` policies
(agents/policy.py), ``curve.json`` and ``curve.png``, ``tensorboard/``, and ``resume/`` with what
``--resume`` needs.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from torch import nn

import carolus_env
from agents.config import Config
from agents.curve import Curve
from agents.policy import PolicyAgent, PolicyInfo, PolicyNetwork, load, save
from carolus_env import arena
from carolus_env.bots import make
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.files import write_json

STATE_FILE = "state.json"
_EVAL_SEED = 1_000_000_007  # far from the seeds of training games


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
        command: the command line, for the policy's JSON.
        show: called after every rollout and evaluation.
    """

    def __init__(
        self,
        config: Config,
        folder: Path,
        *,
        command: str = "",
        show: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        config.check()
        torch.set_num_threads(config.threads)
        self.config, self.folder, self.show = config, folder, show
        self.rules = config.rules()
        self.league = config.league()
        self.info = PolicyInfo(
            config.players,
            tuple(config.hidden),
            training={
                "command": command,
                "rules": self.rules.to_dict(),
                "seed": config.seed,
                "versions": versions(),
            },
        )
        self.curve = Curve()
        self.remembered = 0
        self.seconds = 0.0
        torch.manual_seed(config.seed)
        self.league.update(PolicyNetwork(self.info))  # somebody must sit there; see below
        self.env = CarolusVecEnv(self.rules, config.games, self.league, seed=config.seed)
        self.model = MaskablePPO(
            "MlpPolicy",
            self.env,
            learning_rate=self._learning_rate,
            n_steps=config.rollout,
            batch_size=min(config.batch, config.games * config.rollout),
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip,
            ent_coef=config.entropy,
            policy_kwargs={"net_arch": list(config.hidden), "activation_fn": nn.ReLU},
            seed=config.seed,
            device=config.device,
        )
        self.league.update(self.network())

    def _learning_rate(self, remaining: float) -> float:
        return self.config.learning_rate * (0.1 + 0.9 * max(remaining, 0.0))

    # -------------------------------------------------------------------------------- training

    def train(self) -> None:
        """Train up to ``config.steps`` decisions; an interruption saves and passes on."""
        tensorboard = configure(str(self.folder / "tensorboard"), ["tensorboard"])
        self.model.set_logger(tensorboard)
        remaining = self.config.steps - self.model.num_timesteps
        if remaining <= 0:
            return
        callback = _Callback(self)
        try:
            self.model.learn(
                # SB3 adds what was done before when it does not reset the count
                remaining,
                callback=callback,
                reset_num_timesteps=self.model.num_timesteps == 0,
            )
        finally:
            callback.note_time()
            tensorboard.close()
            self.checkpoint()

    def network(self) -> PolicyNetwork:
        """A frozen copy of the network as it stands."""
        training = {**self.info.training, "decisions": self.model.num_timesteps}
        info = dataclasses.replace(self.info, training=training)
        return PolicyNetwork.from_sb3(self.model.policy, info)

    def evaluate(self, games: int, network: PolicyNetwork | None = None) -> dict[str, Any]:
        """Play against each of ``config.eval_bots``, with the likeliest action.

        Returns:
            for each bot ``win_rate``, ``ci95`` and ``games`` of the policy.
        """
        agent = PolicyAgent(network or self.network())
        results = {}
        for spec in self.config.eval_bots:
            result = arena.play_pairing((agent, make(spec)), self.rules, games, seed=_EVAL_SEED)
            results[spec] = {
                "win_rate": result.win_rate[0],
                "ci95": list(result.ci95[0]),
                "games": result.games,
            }
        return results

    def beats_best(self, network: PolicyNetwork) -> bool:
        """Whether a policy wins at least half of its games against the run's best so far."""
        if not (self.folder / "best.json").exists():
            return True
        pair = PolicyAgent(network), PolicyAgent(load(self.folder / "best"))
        result = arena.play_pairing(pair, self.rules, self.config.eval_games, seed=_EVAL_SEED)
        return result.win_rate[0] >= 0.5

    def note_evaluation(self, progress: Progress) -> None:
        """Evaluate, keep the policy if it is the best so far, add a point to the curve."""
        network = self.network()
        results = self.evaluate(self.config.eval_games, network)
        if self.beats_best(network):
            save(network, self.folder / "best")
        point = {"decisions": int(self.model.num_timesteps), "seconds": round(self.seconds, 1)}
        self.curve.evaluation.append({**point, "results": results})
        self.curve.save(self.folder)
        progress.evaluation = results
        self.show(progress)
        progress.evaluation = None

    # -------------------------------------------------------------------------------- resuming

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is whole."""
        fresh, kept = self.folder / "resume.part", self.folder / "resume"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            self.model.save(fresh / "model.zip", exclude=["lr_schedule", "learning_rate"])
            self.league.save(fresh / "league")
            state = {
                "decisions": int(self.model.num_timesteps),
                "seconds": self.seconds,
                "remembered": self.remembered,
                "curve": dataclasses.asdict(self.curve),
            }
            write_json(fresh / STATE_FILE, state)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        old = self.folder / "resume.old"
        shutil.rmtree(old, ignore_errors=True)
        if kept.exists():
            kept.rename(old)
        fresh.rename(kept)
        shutil.rmtree(old, ignore_errors=True)

    def resume(self) -> None:
        """Go on from the last checkpoint: weights, optimiser, league, curve and count.

        The model file is SB3's own zip, which can run code when it is loaded: resume only runs of
        your own. The games start anew.

        Raises:
            ValueError: when the folder holds no checkpoint, or one that cannot be read.
        """
        kept = self.folder / "resume"
        if not kept.is_dir():  # stopped between the two renames of `checkpoint`
            kept = self.folder / "resume.old"
        try:
            state = json.loads((kept / STATE_FILE).read_text())
            self.model.set_parameters(str(kept / "model.zip"), device=self.config.device)
            self.league.load(kept / "league")
        except (OSError, ValueError, KeyError, RuntimeError, EOFError) as error:
            raise ValueError(f"{self.folder}: no checkpoint to resume from ({error})") from None
        self.model.num_timesteps = state["decisions"]
        self.seconds, self.remembered = state["seconds"], state["remembered"]
        self.curve = Curve(**state["curve"])
        self.league.update(self.network())
        # other games and samples than those that were played already
        self.env.seed(self.config.seed + state["decisions"])
        torch.manual_seed(self.config.seed + state["decisions"])


class _Callback(BaseCallback):
    """Watches games end; updates the league, evaluates and saves between rollouts."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.progress = Progress()
        self._shares: dict[str, deque[float]] = {}
        self._teams = run.rules.teams
        seats = range(run.rules.players)
        team = [run.rules.team(seat) for seat in seats]
        self._an_enemy = np.array(
            [next(other for other in seats if team[other] != team[seat]) for seat in seats]
        )
        self._since = time.monotonic()

    def note_time(self) -> None:
        now = time.monotonic()
        self.run.seconds += now - self._since
        self._since = now

    def _on_training_start(self) -> None:
        self._random = np.random.default_rng(self.run.config.seed + self.num_timesteps)
        # the first evaluation of a fresh run shows the untrained policy
        self._last_evaluation = self.num_timesteps or -self.run.config.eval_every
        self._started = (time.monotonic(), self.num_timesteps)

    def _on_rollout_start(self) -> None:
        run, config = self.run, self.run.config
        network = run.network()
        run.league.update(network)
        if run.model.num_timesteps - run.remembered >= config.remember_every:
            run.remembered = run.model.num_timesteps
            run.league.remember(network, self._random)
        if run.model.num_timesteps - self._last_evaluation >= config.eval_every:
            self._last_evaluation = run.model.num_timesteps
            self.evaluate()

    def _on_step(self) -> bool:
        ended = self.run.env.ended
        if ended is not None and len(ended.rows):
            enemies = ended.tables[np.arange(len(ended.rows)), self._an_enemy[ended.seats]]
            shares = (ended.learners_payoffs * (self._teams - 1) + 1) / self._teams
            for enemy, share in zip(enemies, shares, strict=True):
                kind = self.run.league.kind(int(enemy))
                self._shares.setdefault(kind, deque(maxlen=1000)).append(float(share))
        return True

    def _on_rollout_end(self) -> None:
        self.note_time()
        since, before = self._started
        progress = self.progress
        progress.decisions = self.num_timesteps
        progress.decisions_per_s = (self.num_timesteps - before) / (time.monotonic() - since)
        progress.shares = {kind: float(np.mean(s)) for kind, s in sorted(self._shares.items())}
        for kind, share in progress.shares.items():
            self.logger.record(f"share_of_win/{kind}", share)
        self.run.curve.training.append(
            {
                "decisions": self.num_timesteps,
                "seconds": round(self.run.seconds, 1),
                "shares": {kind: round(share, 4) for kind, share in progress.shares.items()},
            }
        )
        self.logger.record("time/decisions_per_s", progress.decisions_per_s)
        self.run.show(progress)

    def _on_training_end(self) -> None:
        self.evaluate()

    def evaluate(self) -> None:
        self.note_time()
        self.run.note_evaluation(self.progress)
        for spec, result in self.run.curve.evaluation[-1]["results"].items():
            self.logger.record(f"evaluation/{spec}", result["win_rate"])
        try:
            self.run.checkpoint()
        except OSError as error:
            print(f"train: no checkpoint written ({error}); training goes on", file=sys.stderr)
        self._since = time.monotonic()  # evaluating is no training time


# ------------------------------------------------------------------------------------ files


def versions() -> dict[str, str]:
    """What a run was made with."""
    import gymnasium
    import numba
    import sb3_contrib
    import stable_baselines3

    return {
        "carolus-env": carolus_env.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "gymnasium": gymnasium.__version__,
        "torch": torch.__version__,
        "stable-baselines3": stable_baselines3.__version__,
        "sb3-contrib": sb3_contrib.__version__,
    }
