"""Seeds: one kind of number for every interface, 0 to 2^64 - 1."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import carolus_env as ce
from carolus_env import bots, carolus_magnus_v0, evaluation, notation
from carolus_env.engine.chance import Deals, derived_seed
from carolus_env.envs import gym, sb3
from carolus_env.envs.learner import LearnerGames
from carolus_env.envs.turns import TurnGames
from carolus_env.evaluation import rollouts
from carolus_env.learners.sb3 import Sb3Config, Sb3Learner
from carolus_env.play.session import Roster, Session
from carolus_env.records import make_record, position, record
from carolus_env.system.options import declared

RULES, RANDOM = ce.Rules(), bots.make("random")
GAME = ce.new_games(RULES, seed=1)
TWO_GAMES = rollouts.Options(base="random", games=2)
START = ce.new_games(RULES, seed=1, roll=False)


def learner_games(kind: type[LearnerGames]) -> Callable[[Any], Any]:
    return lambda seed: kind(RULES, 2, "random", seed=seed)


def resets(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda seed: make().reset(seed=seed)


SEEDED: dict[str, Callable[[Any], Any]] = {
    "new_games": lambda seed: ce.new_games(RULES, seed=seed),
    "new_streams": lambda seed: ce.new_streams(seed, 1),
    "Deals": lambda seed: Deals.of(seed, np.arange(2)),
    "derived_seed": lambda seed: derived_seed(seed, 1),
    "Game": lambda seed: ce.Game(seed=seed),
    "Game.from_text": lambda seed: ce.Game.from_text(ce.Game(seed=1).to_text(), seed=seed),
    "from_text": lambda seed: notation.from_text(ce.Game(seed=1).to_text(), seed=seed),
    "position.from_dict": lambda seed: position.from_dict(position.to_dict(GAME[0]), seed=seed),
    "start_of": lambda seed: record.start_of(make_record(START, []), seed=seed),
    "GameBatch": lambda seed: ce.GameBatch(RULES, 2, seed=seed),
    "GameBatch.reset": lambda seed: ce.GameBatch(RULES, 2, seed=1).reset(seed),
    "aec": resets(carolus_magnus_v0.env),
    "parallel": resets(carolus_magnus_v0.parallel_env),
    "CarolusEnv": resets(gym.CarolusEnv),
    "CarolusEnv, turns": resets(lambda: gym.CarolusEnv(turns=True)),
    "CarolusVectorEnv": resets(lambda: gym.CarolusVectorEnv(2)),
    "CarolusVectorEnv, each": lambda seed: gym.CarolusVectorEnv(2).reset(seed=[1, seed]),
    "CarolusVectorEnv, turns": resets(lambda: gym.CarolusVectorEnv(2, turns=True)),
    "CarolusVecEnv": lambda seed: sb3.CarolusVecEnv(RULES, 2, seed=seed),
    "CarolusVecEnv, turns": lambda seed: sb3.CarolusVecEnv(RULES, 2, turns=True, seed=seed),
    "CarolusVecEnv.seed": lambda seed: sb3.CarolusVecEnv(RULES, 2, seed=1).seed(seed),
    "LearnerGames": learner_games(LearnerGames),
    "TurnGames": learner_games(TurnGames),
    "Session": lambda seed: Session.new(RULES, [None, None], seed=seed),
    "play_games": lambda seed: evaluation.play_games([[0, 1]], [RANDOM] * 2, RULES, seed=seed)[0],
    "play_pairing": lambda seed: evaluation.play_pairing([RANDOM] * 2, RULES, 2, seed=seed),
    "Plan": lambda seed: evaluation.Plan(RULES, ("random", "greedy"), deals=1, seed=seed),
    "roll_out": lambda seed: rollouts.roll_out(GAME[0], options=TWO_GAMES, seed=seed),
}  # fmt: skip
WRONG = (-1, 2**64, 1.5, "5", b"5", True, np.random.SeedSequence(5), object())
ALLOWED = r"seed must be a whole number from 0 to 2\^64 - 1, got "


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_is_a_whole_number_of_64_bits(name):
    for seed in (0, 2**64 - 1, np.uint64(2**64 - 1), np.int32(7)):
        SEEDED[name](seed)
    for seed in WRONG:
        with pytest.raises(ValueError, match=ALLOWED):
            SEEDED[name](seed)


OPTIONS = [
    "commands.evaluate:EvaluateOptions",
    "commands.dataset:DatasetOptions",
    "commands.positions:AnalyseOptions",
    "learners.ppo:PpoConfig",
    "learners.td:TdConfig",
    "learners.sb3:Sb3Config",
]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_for_a_seed_takes_the_same_numbers(name):
    module, _, kind = name.partition(":")
    entry = declared(getattr(importlib.import_module(f"carolus_env.{module}"), kind))["seed"]
    for text in ("0", "9007199254740993", str(2**64 - 1)):
        assert entry.check(entry.parse(text), "seed") == int(text)
    for text in ("-1", str(2**64), "1.5", "five", "True"):
        with pytest.raises(ValueError, match=ALLOWED):
            entry.check(entry.parse(text), "seed")


def test_a_session_takes_them_all():
    session = Session.new(RULES, [None, Roster().make("random")], seed=2**53 + 1)
    assert session.record()["seed"] == 2**53 + 1


def test_the_network_of_sb3_takes_a_seed_that_numpys_old_generators_refuse():
    config = Sb3Config(seed=2**64 - 1, envs=2, n_steps=4, batch_size=4)
    assert Sb3Learner(config).ppo.n_steps == 4
