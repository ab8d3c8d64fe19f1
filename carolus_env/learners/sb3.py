"""Train sb3-contrib's MaskablePPO on single decisions, with the callbacks of Stable-Baselines3.

    $ python train.py --learner sb3
    $ python train.py --learner sb3 --players 4 --opponents greedy

This file is meant to be copied: `Sb3Config` holds the hyperparameters, `DecisionPolicy` puts the
network of `networks.decisions` where Stable-Baselines3 has its MLP, and `Sb3Run.train` is the
program. It needs PyTorch, Stable-Baselines3 and sb3-contrib, of the extra ``sb3``. What it learnt
is saved as safetensors, and the bot ``decisions:PATH`` plays it with NumPy alone.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import LinearSchedule
from torch import Tensor, nn

from carolus_env.bots import Agent, make
from carolus_env.bots.agent import drawn
from carolus_env.bots.decisions import DecisionsBot
from carolus_env.engine import legal_masks
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.setup import derived_seed
from carolus_env.engine.state import States
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.evaluation.placing import Evaluation
from carolus_env.learners.curve import Curve, CurveStyle
from carolus_env.learners.options import (
    RunConfig,
    algorithm,
    eval_every_option,
    learning_rate_option,
)
from carolus_env.learners.provenance import provenance
from carolus_env.learners.run import COMPILING, EVALUATING, LEARNING, Clock, Progress, Run
from carolus_env.learners.scalars import Scalars
from carolus_env.networks.decisions import LIMITS, DecisionModel, Size, forward, random_weights
from carolus_env.networks.files import file_of
from carolus_env.system.cancellation import Stopped
from carolus_env.system.files import write_json
from carolus_env.system.options import option

SELF: Final = "self"
"""Name of the policy that learns, as its own opponent."""


@dataclass
class Sb3Config(RunConfig):
    """The hyperparameters; those of PPO have Stable-Baselines3's names."""

    learner_name: ClassVar[str] = "sb3"
    bot: ClassVar[str] = "decisions"
    unit: ClassVar[str] = "decisions"
    length: ClassVar[str] = "steps"

    steps: int = option(
        4_000_000, "decisions to learn from, in all (total_timesteps)", among=(1, None)
    )
    eval_every: int = eval_every_option(500_000, "decisions")
    opponents: str = algorithm(
        SELF, "who plays all other seats: self, the policy that learns, or a bot, by spec"
    )
    envs: int = algorithm(512, "games played side by side", among=(1, None))

    learning_rate: float = learning_rate_option(
        1e-3, "learning rate of Adam at the start; it falls linearly to 0"
    )
    n_steps: int = algorithm(64, "decisions in each game between two updates", among=(1, None))
    batch_size: int = algorithm(512, "decisions in a gradient step", among=(1, None))
    n_epochs: int = algorithm(2, "passes over the decisions of an update", among=(1, None))
    gamma: float = algorithm(1.0, "discount for each decision", among=(0, 1))
    gae_lambda: float = algorithm(0.97, "lambda of generalised advantage estimation", among=(0, 1))
    clip_range: float = algorithm(0.2, "PPO's clip range", above=0)
    ent_coef: float = algorithm(0.005, "weight of the entropy bonus", among=(0, 100))
    vf_coef: float = algorithm(0.5, "weight of the value's loss", among=(0, 100))
    region: int = option(
        32, "width of the network's vectors of regions and clans", among=LIMITS, heading="network"
    )
    whole: int = option(
        128, "width of its vector of the whole position", among=LIMITS, heading="network"
    )
    threads: int = algorithm(1, "threads of PyTorch", among=(1, None))
    device: str = algorithm("cpu", "device of the networks; the games stay on the CPU")

    @property
    def budget(self) -> str:
        return f"{super().budget} against {self.opponents}"

    @property
    def size(self) -> Size:
        """The size of the network."""
        return Size(self.players, self.region, self.whole)

    def check(self) -> None:
        """Refuse what Stable-Baselines3 would not refuse, before anything starts."""
        super().check()
        update = self.envs * self.n_steps
        if self.batch_size == 1 or update % self.batch_size == 1:
            raise ValueError(
                f"envs times n_steps, {self.envs} x {self.n_steps}, leaves a batch of one decision "
                f"for a batch_size of {self.batch_size}, and advantages of one cannot be normalised"
            )
        if self.opponents != SELF:
            make(self.opponents)


class Network(BaseFeaturesExtractor):
    """`networks.decisions` as a network of PyTorch: logits and the viewer's value, side by side."""

    def __init__(self, observation_space: spaces.Box, size: Size, seed: int) -> None:
        super().__init__(observation_space, ACTIONS + 1)
        self.players = size.players
        first = random_weights(size, seed)
        self.weights: Any = nn.ParameterDict(
            {name: nn.Parameter(torch.from_numpy(weight)) for name, weight in first.items()}
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Return ``(N, 96)`` numbers."""
        logits, values = forward(self.weights, observations, self.players, torch)
        return torch.cat([logits, values[:, :1]], dim=1)


class Columns(nn.Module):
    """Columns of an array, from one number to another."""

    def __init__(self, first: int, after: int) -> None:
        super().__init__()
        self.where = slice(first, after)

    def forward(self, array: Tensor) -> Tensor:
        """Pick the columns."""
        return array[:, self.where]


class DecisionPolicy(MaskableActorCriticPolicy):
    """A policy of MaskablePPO whose logits and value are those of `Network`."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.action_net: Any = Columns(0, ACTIONS)
        self.value_net: Any = Columns(ACTIONS, ACTIONS + 1)
        optimizer: Any = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def model(self, size: Size, about: dict[str, Any] | None = None) -> DecisionModel:
        """Return the network as it is now."""
        weights: Any = self.features_extractor.weights
        arrays = {name: weight.detach().cpu().numpy().copy() for name, weight in weights.items()}
        return DecisionModel(size, arrays, about or {})


class Ppo(MaskablePPO):
    """MaskablePPO that learns for the length of a run, and only what is a number."""

    run: Sb3Run

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        """Play a rollout; returns False where the run ends."""
        return self.run.progress < 1 and super().collect_rollouts(*args, **kwargs)

    def train(self) -> None:
        """Learn from the rollout, by a learning rate that falls with the run's progress."""
        self._current_progress_remaining = max(1 - self.run.progress, 0.0)
        super().train()
        weights: Any = self.policy.state_dict()
        arrays = {name: weight.detach().cpu().numpy() for name, weight in weights.items()}
        self.run.check_weights(arrays, self.num_timesteps)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "run"]


def network_arguments(size: Size, seed: int) -> dict[str, Any]:
    """Return the ``policy_kwargs`` of a `DecisionPolicy`."""
    return {
        "features_extractor_class": Network,
        "features_extractor_kwargs": {"size": size, "seed": seed},
        "net_arch": [],
    }


class Itself(Agent):
    """The policy that learns, in the other seats: draws from it as it is now."""

    name = SELF
    policy: DecisionPolicy

    @torch.no_grad()
    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`."""
        observations = torch.from_numpy(observe(states)).to(self.policy.device)
        choice: Any = self.policy.get_distribution(observations, legal_masks(states))
        return drawn(choice.distribution.probs.cpu().numpy().astype(np.float64), generators)


STYLE = CurveStyle(
    unit="decisions",
    scale=1e6,
    x="decisions of the learner (millions)",
    plays="its likeliest action",
    below="training games: actions drawn from the policy",
    y="mean payoff",
    line="payoff",
)


_EVALUATION: Final = 2**63
"""Number of the seed of evaluations; those of training have the number of decisions before them."""


def make_env(config: Sb3Config, opponents: str | Agent, n: int, number: int = 0) -> CarolusVecEnv:
    """Make ``n`` games, with a seed derived from the run's seed and a number."""
    seed = derived_seed(config.seed, number)
    return CarolusVecEnv(config.rules, n, opponents, seed=seed, dtype=np.uint8)


class Sb3Run(Run):
    """A run in its folder; the arguments are those of `run.Run`."""

    config: Sb3Config
    model: Ppo
    _checkpoint: Path | None = None

    @property
    def progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1 or more."""
        return self.config.progress(self.model.num_timesteps, self.clock.seconds()[LEARNING])

    def resume(self) -> None:
        """Go on from the last checkpoint, a zip of Stable-Baselines3; without one begin anew.

        Loading one runs code that it holds, so resume only runs of your own.

        Raises:
            ValueError: when it is missing beside what was learnt.
        """
        self._checkpoint = last_checkpoint(self.folder)
        if self._checkpoint is None and file_of(self.folder / "final").exists():
            raise ValueError(f"{self.folder}: no readable checkpoint in resume/")
        with contextlib.suppress(OSError, ValueError):  # killed before it was written
            self.clock = Clock(json.loads((self.folder / "resume" / "seconds.json").read_text()))

    def train(self) -> bool:
        """Train to the end; returns False after `stop`."""
        config, folder = self.config, self.folder
        torch.set_num_threads(config.threads)
        with self.clock.during(COMPILING):
            self.show(Progress(COMPILING, 0, 0.0, 0.0))
            itself = Itself()
            opponents = itself if config.opponents == SELF else config.opponents
            env = make_env(config, opponents, config.envs)
            self.model = model = self._model(env)
            model.run = self
            assert isinstance(model.policy, DecisionPolicy)
            itself.policy = model.policy
            env.seed(derived_seed(config.seed, model.num_timesteps))
            env.reset()
        export = Export(config, folder, self.command)
        evaluation = Evaluate(
            self,
            make_env(config, "planner", min(config.eval_games, 50), _EVALUATION),
            n_eval_episodes=config.eval_games,
            eval_freq=max(config.eval_every // env.num_envs, 1),
            callback_on_new_best=export,
            callback_after_eval=Rate(self),
            warn=False,
            verbose=0,
        )
        if self._checkpoint is not None and file_of(folder / "best").exists():
            payoff = DecisionModel.load(folder / "best").about["payoff"]
            evaluation.best_mean_reward = -1.0 if payoff is None else payoff
        every = max((config.checkpoint_every or config.eval_every) // env.num_envs, 1)
        with contextlib.suppress(ModuleNotFoundError):
            Scalars(folder / "tensorboard" / "run_0", model.num_timesteps).close()
        with contextlib.suppress(Stopped), self.clock.during(LEARNING), self.stop.watched():
            model.learn(
                sys.maxsize - model.num_timesteps,  # `Ppo` ends it
                [Report(self), evaluation, Checkpoint(self, every)],
                tb_log_name="run",
                reset_num_timesteps=False,
            )
        self.checkpoint()
        if self.stop.is_set:
            return False
        export.save(model, "final")
        if not file_of(folder / "best").exists():  # the run was shorter than eval_every
            export.save(model, "best")
        return True

    def checkpoint(self) -> None:
        """Write what `resume` needs."""
        folder = self.folder / "resume"
        self.model.save(folder / f"model_{self.model.num_timesteps}_steps")
        write_json(folder / "seconds.json", self.clock.seconds())

    def _model(self, env: CarolusVecEnv) -> Ppo:
        """Return a new model, or that of the checkpoint."""
        config = self.config
        common: dict[str, Any] = {
            "tensorboard_log": str(self.folder / "tensorboard"),
            "device": config.device,
        }
        if self._checkpoint is not None:
            return Ppo.load(self._checkpoint, env, **common)
        return Ppo(
            DecisionPolicy,
            env,
            learning_rate=LinearSchedule(config.learning_rate, 0.0, 1.0),
            n_steps=config.n_steps,
            batch_size=config.batch_size,
            n_epochs=config.n_epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip_range,
            ent_coef=config.ent_coef,
            vf_coef=config.vf_coef,
            policy_kwargs=network_arguments(config.size, config.seed),
            seed=config.seed % 2**32,  # NumPy's old generator takes no more
            **common,
        )

    def evaluate(self, agent: Agent, games: int, steps: int, near: float | None) -> Evaluation:
        """Measure an agent after so many steps; see `placing.evaluate`."""

        def advance(spec: str, played: int) -> None:
            detail = f"{played:,} games against {spec}"
            self.show(Progress(EVALUATING, steps, 0.0, self.progress, detail=detail))

        return self.config.evaluate(agent, games, near, advance=advance)

    def finish(self) -> Evaluation:
        """Evaluate the best network, and write ``result.json``."""
        config, best = self.config, DecisionModel.load(self.folder / "best")
        near = Curve.load(self.folder).elo()
        with self.evaluating():
            done = self.model.num_timesteps
            result = self.evaluate(DecisionsBot(best), config.final_games, done, near)
        write_json(self.folder / "result.json", {**result.to_dict(), "seconds": self.seconds})
        return result


def _is_complete(path: Path) -> bool:
    """Return whether a checkpoint is complete: one that was cut off can end like a zip."""
    try:
        with ZipFile(path) as file:
            return {"data", "system_info.txt"} <= set(file.namelist())  # the first and the last
    except BadZipFile:
        return False


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run; None where there is none."""
    result = (folder / "resume").glob("model_*_steps.zip")
    complete = [path for path in result if _is_complete(path)]
    return max(complete, key=lambda path: int(path.stem.split("_")[1]), default=None)


class Export(BaseCallback):
    """Saves the actor as safetensors whenever an evaluation is the best so far."""

    def __init__(self, config: Sb3Config, folder: Path, command: str) -> None:
        super().__init__()
        self.config, self.folder, self.command = config, folder, command

    def save(self, model: MaskablePPO, name: str, payoff: float | None = None) -> None:
        """Write ``name.safetensors``; ``payoff`` is its mean in evaluation."""
        about = {
            "rules": self.config.rules.to_dict(),
            "command": self.command,
            "seed": self.config.seed,
            "decisions": model.num_timesteps,
            "payoff": payoff,
            **provenance(),
        }
        assert isinstance(model.policy, DecisionPolicy)
        model.policy.model(self.config.size, about).save(self.folder / name)

    def _on_step(self) -> bool:
        assert isinstance(self.parent, MaskableEvalCallback) and isinstance(self.model, MaskablePPO)
        self.save(self.model, "best", self.parent.last_mean_reward)
        return True


class Report(BaseCallback):
    """Shows the progress, and ends training when the run is stopped."""

    def __init__(self, run: Sb3Run) -> None:
        super().__init__()
        self._run = run

    def _on_training_start(self) -> None:
        self._begun = self.num_timesteps, self._run.progress

    def _on_rollout_start(self) -> None:
        run, done, progress = self._run, self.num_timesteps, self._run.progress
        seconds, gained = run.clock.here()[LEARNING], progress - self._begun[1]
        pace = (done - self._begun[0]) / max(seconds, 1e-9)
        left = seconds * (1 - progress) / gained if gained > 0 else None
        run.show(Progress(LEARNING, done, pace, progress, left))

    def _on_step(self) -> bool:
        return not self._run.stop.is_set


class Evaluate(MaskableEvalCallback):
    """Evaluates the actor by its payoff against the planner, and can be stopped."""

    def __init__(self, run: Sb3Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run = run

    def _on_step(self) -> bool:
        if self.n_calls % self.eval_freq:
            return True
        done = self.num_timesteps
        self._run.show(Progress(EVALUATING, done, 0.0, self._run.progress))
        with self._run.evaluating():
            return super()._on_step()

    def _log_success_callback(self, *given: Any) -> None:
        """Do as ever after each step of an evaluation, unless the run is stopped."""
        self._run.stop.check()
        super()._log_success_callback(*given)


class Rate(BaseCallback):
    """Places the actor on the ladder after every evaluation, and writes the curve."""

    def __init__(self, run: Sb3Run) -> None:
        super().__init__()
        self._run, self.curve = run, Curve.load(run.folder)

    def _on_training_start(self) -> None:
        """Drop what came after the checkpoint that the run goes on from."""
        self.curve.cut("decisions", self.num_timesteps)

    def _on_step(self) -> bool:
        run, done = self._run, self.num_timesteps
        config, policy = run.config, self.model.policy
        assert isinstance(policy, DecisionPolicy)
        agent = DecisionsBot(policy.model(config.size))
        result = run.evaluate(agent, config.eval_games, done, self.curve.elo())
        point = {"decisions": done, "seconds": round(run.clock.total(), 1)}
        payoffs = [episode["r"] for episode in self.model.ep_info_buffer or ()] or [0.0]
        self.curve.training.append({**point, "payoff": round(sum(payoffs) / len(payoffs), 4)})
        self.curve.evaluation.append({**point, **result.to_dict()})
        self.curve.save(run.folder, config.players, STYLE)
        self.logger.record("evaluation/elo", result.elo)
        run.show(Progress(EVALUATING, done, 0.0, run.progress, evaluation=result))
        return True


class Checkpoint(BaseCallback):
    """Writes a checkpoint every so many steps."""

    def __init__(self, run: Sb3Run, every: int) -> None:
        super().__init__()
        self._run, self._every = run, every

    def _on_step(self) -> bool:
        if self.n_calls % self._every == 0:
            self._run.checkpoint()
        return True
