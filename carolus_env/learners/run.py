"""A training run: self-play PPO against a league, with all its files in one folder.

The folder holds ``config.json`` (options, seed, versions), the models ``best`` and ``final``
(`carolus_env.bots.neural.model`), ``curve.json`` and ``curve.png``, ``tensorboard/``, and
``resume/`` (`carolus_env.learners.checkpoint`), from which the run continues bit for bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from carolus_env.bots.neural.model import Model, find, load, save
from carolus_env.envs.learner import Ended
from carolus_env.envs.sb3 import CarolusVecEnv
from carolus_env.learners import checkpoint
from carolus_env.learners.config import Config
from carolus_env.learners.curve import Curve
from carolus_env.learners.league import League
from carolus_env.learners.measures import Evaluation, beats, evaluate, game_statistics
from carolus_env.learners.player import TorchPlayer
from carolus_env.learners.ppo import SelfPlayPPO
from carolus_env.learners.provenance import provenance


@dataclass(frozen=True)
class Progress:
    """The progress of a run, for a display.

    Attributes:
        decisions: done so far, by this process and those it resumed.
        decisions_per_s: of this process, evaluations included.
        shares: recent mean share of the win against each kind of opponent.
        evaluation: right after an evaluation; else None.
    """

    decisions: int
    decisions_per_s: float
    shares: Mapping[str, float] = field(default_factory=dict)
    evaluation: Evaluation | None = None


class Run:
    """One training run in its folder.

    Args:
        config: all options.
        folder: of the run; it exists.
        command: the command line, for the models' JSON.
        show: called after every rollout and every evaluation.
        callbacks: SB3's, for users; the run itself needs none.

    Attributes:
        stop: set it, and training ends after the update under way, with a checkpoint.

    Raises:
        ValueError: for options that cannot work, or a start that does not fit them.
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
        self.league = League(
            self.rules,
            config.bots,
            lambda weights: TorchPlayer(weights, config.players, temperature=1.0, device="cpu"),
            earlier=config.earlier,
            self_share=config.self_share,
            earlier_share=config.earlier_share,
            active=config.on_duty,
            hardness=config.hardness,
        )
        self.env = CarolusVecEnv(
            self.rules, config.games, self.league, seed=config.seed, dtype=np.uint8
        )
        self.model = SelfPlayPPO(
            self.env,
            size=config.size,
            seed=config.seed,
            on_end=self._note_games,
            learning_rate=config.learning_rate_at,
            n_steps=config.rollout,
            batch_size=min(config.batch, config.games * config.rollout),
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip,
            ent_coef=config.entropy,
            vf_coef=config.value_weight,
            device=_device(config.device),
        )
        self._start: Mapping[str, Any] | None = None
        if config.start is not None:
            self._start_from(config.start)
        self.random = np.random.default_rng(config.seed)
        self.curve = Curve()
        self.stop = False
        self._remembered = 0  # decisions when the last earlier self was stored
        self._shares: dict[str, deque[float]] = {}
        self._ended: list[Ended] = []
        self._clock = _Clock()

    def _start_from(self, name: str) -> None:
        start = find(name)
        if start.size != self.config.size:
            raise ValueError(f"start {name!r} is a model of {start.size}, not {self.config.size}")
        self.model.set_weights(start.weights)
        self._start = start.about

    @property
    def decisions(self) -> int:
        """Decisions learnt from so far."""
        return int(self.model.num_timesteps)

    @property
    def seconds(self) -> float:
        """Time of the whole run so far, evaluations included."""
        return self._clock.seconds()

    # -------------------------------------------------------------------------------- training

    def train(self) -> bool:
        """Train up to ``config.steps`` decisions.

        The checkpoint comes last in a pass of the loop, so that a resumed run enters the loop
        exactly where the interrupted one would have continued.

        Returns:
            True when they are done; False after `stop`.
        """
        config = self.config
        if self.decisions >= config.steps:
            return True
        checkpoint_every = config.checkpoint_every or config.eval_every
        with self._tensorboard():
            self.model.begin(config.steps, self.callbacks)
            self._clock.begin(self.decisions)
            if not self.curve.evaluation:  # the curve begins with the untrained policy
                self.note_evaluation()
                self._save()
            going = True
            while going and not self.stop:
                self._prepare_rollout()
                going = self.model.update() and self.decisions < config.steps
                self._note_rollout()
                if not going or self._passed(config.eval_every):
                    self.note_evaluation()
                if not going or self.stop or self._passed(checkpoint_every):
                    self._save()
            self.model.end()
        return self.decisions >= config.steps

    @contextlib.contextmanager
    def _tensorboard(self) -> Iterator[None]:
        logger = configure(str(self.folder / "tensorboard"), ["tensorboard"])
        self.model.set_logger(logger)
        try:
            yield
        finally:
            logger.close()

    def _prepare_rollout(self) -> None:
        """Set the entropy weight, keep an earlier self when one is due, draw opponents."""
        self.model.ent_coef = self.config.entropy_at(1 - self.decisions / self.config.steps)
        if self.decisions - self._remembered >= self.config.remember_every:
            self._remembered = self.decisions
            self.league.remember(self.model.weights())
        self.league.draw_active(self.random)

    def _note_games(self, ended: Ended) -> None:
        """Games have ended: the league learns how hard its opponents are."""
        self._ended.append(ended)
        for kind, shares in self.league.note(ended).items():
            self._shares.setdefault(kind, deque(maxlen=1000)).extend(shares)

    def _note_rollout(self) -> None:
        """Log the rollout and its update, and add a point to the curve."""
        progress = self._progress()
        values = {f"share_of_win/{kind}": share for kind, share in progress.shares.items()}
        values |= {f"games/{name}": v for name, v in game_statistics(self._ended).items()}
        values["train/entropy_weight"] = self.model.ent_coef
        values["time/decisions_per_s"] = progress.decisions_per_s
        self._log(values)
        self._ended.clear()
        shares = {kind: round(share, 4) for kind, share in progress.shares.items()}
        self.curve.training.append({**self._point(), "shares": shares})
        self.show(progress)

    def _passed(self, every: int) -> bool:
        """Whether the last rollout passed a multiple of ``every`` decisions."""
        size = self.config.games * self.config.rollout
        return self.decisions // every > (self.decisions - size) // every

    def _log(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.model.logger.record(name, value)
        self.model.logger.dump(self.decisions)

    def _point(self) -> dict[str, Any]:
        return {"decisions": self.decisions, "seconds": round(self.seconds, 1)}

    def _progress(self, evaluation: Evaluation | None = None) -> Progress:
        shares = {kind: float(np.mean(s)) for kind, s in sorted(self._shares.items())}
        return Progress(self.decisions, self._clock.pace(self.decisions), shares, evaluation)

    # -------------------------------------------------------------------------------- evaluation

    def snapshot(self) -> Model:
        """The current network as a model."""
        about = {
            "rules": self.rules.to_dict(),
            "command": self.command,
            "seed": self.config.seed,
            "decisions": self.decisions,
            "seconds": round(self.seconds, 1),
            "device": str(self.model.device),
            **provenance(),
        }
        if self._start is not None:
            about["start"] = dict(self._start)
        return Model(self.config.size, self.model.weights(), about)

    def evaluate(
        self, games: int, weights: Mapping[str, npt.NDArray[np.float32]] | None = None
    ) -> Evaluation:
        """Place the likeliest actions on the ladder; see `measures.evaluate`.

        Args:
            games: against each agent.
            weights: of a network; None: the learner's.
        """
        weights = self.model.weights() if weights is None else weights
        return evaluate(
            weights,
            self.rules,
            games,
            near=self.curve.elo(),
            others=self.config.eval_bots,
        )

    def note_evaluation(self) -> None:
        """Evaluate, keep the policy if it is the best so far, and add a point to the curve."""
        model, best = self.snapshot(), self.folder / "best"
        found = self.evaluate(self.config.eval_games, model.weights)
        if not best.with_suffix(".json").exists() or beats(
            model.weights, load(best).weights, self.rules, self.config.eval_games
        ):
            save(model, best)
        self.curve.evaluation.append({**self._point(), **found.to_dict()})
        self.curve.save(self.folder, self.rules.players)
        values = {"elo": found.elo, "elo_low": found.low, "elo_high": found.high}
        values |= {spec: found.results[spec]["win_rate"] for spec in self.config.eval_bots}
        self._log({f"evaluation/{name}": value for name, value in values.items()})
        self.show(self._progress(found))

    # -------------------------------------------------------------------------------- resuming

    def _save(self) -> None:
        """Write a checkpoint; training survives a full disk."""
        try:
            self.checkpoint()
        except OSError as error:
            print(f"train: no checkpoint written ({error}); training continues", file=sys.stderr)

    def checkpoint(self) -> None:
        """Write what `resume` needs; the last checkpoint stays until the new one is complete.

        Raises:
            OSError: when it cannot be written.
        """
        about, earlier = self.league.state()
        numbers = {
            "decisions": self.decisions,
            "updates": int(self.model._n_updates),
            "seconds": self.seconds,
            "remembered": self._remembered,
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
        """Continue from the last checkpoint, bit for bit like an uninterrupted run.

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
            self._remembered = numbers["remembered"]
            self._clock = _Clock(numbers["seconds"])
            self.curve = Curve(**numbers["curve"])
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"{self.folder}: the checkpoint does not fit these options "
                f"({type(error).__name__}: {error})"
            ) from None
        self.model.observe_again()


class _Clock:
    """The time of a run over all its processes, and the pace of this one."""

    def __init__(self, before: float = 0.0) -> None:
        self._before, self._made = float(before), time.monotonic()
        self.begin(0)

    def begin(self, decisions: int) -> None:
        """Training begins in this process, after this many decisions."""
        self._decisions, self._begun = decisions, time.monotonic()

    def seconds(self) -> float:
        """Of the whole run."""
        return self._before + time.monotonic() - self._made

    def pace(self, decisions: int) -> float:
        """Decisions a second since `begin`."""
        return (decisions - self._decisions) / max(time.monotonic() - self._begun, 1e-9)


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
