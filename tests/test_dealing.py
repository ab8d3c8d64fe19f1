"""Deals: seeds are mixed with the numbers of games, so that no two seeds share a game."""

from pathlib import Path

import numpy as np
import pytest

import carolus_env as ce
from agents import fit_planner
from benchmarks import ladder
from benchmarks import suite as suite_maker
from carolus_env import bots, engine, evaluation
from carolus_env.commands import dataset
from carolus_env.engine import chance
from carolus_env.engine.chance import Deals, derived_seed, seed_generators
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import rollouts
from carolus_env.learners import LEARNERS
from carolus_env.learners.ppo import PpoConfig, PpoLearner
from carolus_env.learners.selfplay import WorkerPool
from carolus_env.learners.td import TdConfig, TdLearner
from carolus_env.planning.heuristic import all_weights

FEW = Rules(max_rounds=1)


def matches(seed: int, folder: Path) -> None:
    evaluation.Tournament(evaluation.Plan(FEW, ("random", "greedy"), deals=9, seed=seed)).run()
    evaluation.play_pairing(("random", "greedy"), FEW, 9, seed=seed)
    evaluation.play_games([[0, 0]] * 9, [bots.make("random")], FEW, seed=seed)


def data_set(seed: int, folder: Path) -> None:
    command = f"random --games 9 --seed {seed} --max-rounds 1 --workers 1 --out {folder / 'data'}"
    assert dataset.main(command.split()) == 0


def suite(seed: int, folder: Path) -> None:
    suite_maker._per_game(suite_maker.SuiteRecipe(2, base="greedy", seed=seed))


def learners(seed: int, folder: Path) -> None:
    WorkerPool(PpoLearner, PpoConfig(envs=9, workers=2, seed=seed))
    WorkerPool(TdLearner, TdConfig(rules=FEW, seed=seed)).learn(0, 9, 0.0)


def planner(seed: int, folder: Path) -> None:
    for numbers in (range(4), range(4, 8)):
        fit_planner.play(FEW, [all_weights()], seed, numbers)
    fit_planner.match(FEW, [bots.make("planner")] * 2, 4, derived_seed(seed, fit_planner.MATCH))


def sb3(seed: int, folder: Path) -> None:
    sb3 = pytest.importorskip("carolus_env.learners.sb3")
    sizes = {"envs": 9, "n_steps": 2, "batch_size": 18}
    sb3.Sb3Learner(sb3.Sb3Config(seed=seed, opponents="random", **sizes)).warm_up()


@pytest.mark.parametrize("play", [matches, data_set, suite, learners, planner, sb3])
def test_neighbouring_seeds_share_no_deal(play, tmp_path, monkeypatch):
    """Whatever plays many games by one seed: all seeds that it gives to games are its own."""
    assert set(LEARNERS) == {"ppo", "value", "sb3"}, "every learner is tried"
    dealt: list[int] = []
    warm_up = set(seed_generators(0, 1).tolist())  # `games.warm_up` plays it before the clock runs

    given = chance.new_games

    def new_games(rules, n=1, *, seed=None, **options):
        dealt.extend(seed_generators(seed, n).tolist())
        return given(rules, n, seed=seed, **options)

    for module in (engine, ce, chance):
        monkeypatch.setattr(module, "new_games", new_games)
    result = []
    for seed in (1, 2, 3):
        dealt.clear()
        (folder := tmp_path / str(seed)).mkdir()
        play(seed, folder)
        result.append(set(dealt) - warm_up)
    assert min(map(len, result)) >= 4
    assert len(set.union(*result)) == sum(map(len, result))


def test_rollouts_of_neighbouring_seeds_have_other_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    roots: list[int] = []

    def of(seed, numbers):
        deals = Deals.of(seed, numbers)
        roots.extend(deals.roots.tolist())
        return deals

    monkeypatch.setattr(rollouts, "Deals", type("Spied", (), {"of": staticmethod(of)}))
    starts = engine.new_games(FEW, 9, seed=0)
    for seed in range(4):
        rollouts.Sampler("random", seed).play(starts, np.arange(9))
    assert len(set(roots)) == len(roots) == 36


def test_all_streams_of_all_deals_are_different() -> None:
    """Also where seed and number are exchanged, or the same."""
    deals = [Deals.of(seed, np.arange(40)) for seed in range(40)]
    streams = [part for one in deals for part in (one.roots, one.dice(), one.streams())]
    derived = [derived_seed(seed, number) for seed in range(40) for number in (41, 42)]
    streams.append(np.array(derived, np.uint64))
    every = np.concatenate([part.ravel() for part in streams])
    assert len(np.unique(every)) == len(every) == 40 * 40 * 9 + 80


@pytest.mark.parametrize("players", [2, 3, 4])
def test_every_seat_of_every_game_has_a_stream_of_its_own(players: int) -> None:
    """What an agent stores under a stream then belongs to one game."""
    plan = evaluation.Plan(Rules(players), ("random",) * 4, "round_robin", deals=20)
    fixtures = plan.fixtures(0, plan.games)
    deals = Deals.of(1, fixtures.deals)
    streams = deals.streams(fixtures.seatings, fixtures.meetings)
    assert len(np.unique(streams)) == plan.games * 4
    first = fixtures.meetings == 0
    assert (streams[first] == deals.streams(fixtures.seatings)[first]).all()


def test_no_two_pairs_of_the_ladder_share_a_deal() -> None:
    specs = ["random", "greedy", "planner", "value:3p"]
    plans = [ladder.plan(Rules(3), (specs[k], specs[k + 1]), 600) for k in range(3)]
    assert [plan.deals for plan in plans] == [100] * 3
    roots = np.concatenate([Deals.of(plan.seed, np.arange(100)).roots for plan in plans])
    assert len(np.unique(roots)) == 300
