"""Training, whatever learns: runs and what they leave, workers, resuming, options, errors."""

import contextlib
import dataclasses
import errno
import functools
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")

from networks import random_model

from carolus_env import evaluation, legal_masks, new_games, new_streams
from carolus_env.bots import make
from carolus_env.bots.network import find
from carolus_env.commands import train
from carolus_env.engine.rules import OPTIONS, Rules
from carolus_env.evaluation import ladder
from carolus_env.evaluation.ladder import evaluate
from carolus_env.evaluation.suite import HALVES, shipped
from carolus_env.learners import LEARNERS, read_config
from carolus_env.learners import learner as kind_of
from carolus_env.learners.ppo import PpoLearner
from carolus_env.learners.run import CHECKPOINT, LEARNING, Run, Scalars, read_checkpoint
from carolus_env.learners.selfplay import Task, WorkerPool, combine
from carolus_env.learners.td import TdConfig, TdLearner
from carolus_env.networks import network
from carolus_env.system import files, machine
from carolus_env.system.arrays import from_bytes
from carolus_env.system.cancellation import Stop
from carolus_env.system.files import Log
from carolus_env.system.machine import commit
from carolus_env.system.options import UserError

NETWORK = "--width 16 --hidden 4 --candidates 6 --workers 2 --max-rounds 10"
SMALL = {
    "ppo": f"{NETWORK} --envs 4 --rollout 16 --batch 16 --steps 512 --eval-every 256 "
    "--curve-every 128",
    "value": f"{NETWORK} --games 50 --games-per-round 4 --eval-every 30 --curve-every 10",
    "sb3": "--region 8 --whole 8 --envs 8 --n-steps 16 --batch-size 32 --n-epochs 1 "
    "--max-rounds 20 --steps 512 --eval-every 256 --curve-every 128",
}
"""The options of a run of some seconds."""
LENGTH = {"ppo": ("steps", 640), "value": ("games", 66), "sb3": ("steps", 1100)}
"""The option that makes that run longer."""
SELF_PLAY = {"ppo": PpoLearner, "value": TdLearner}

every_learner = pytest.mark.parametrize("learner", LEARNERS)
by_self_play = pytest.mark.parametrize("learner", SELF_PLAY)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def words(learner, folder, *more):
    """The command line of a small run."""
    needs_packages(learner)
    common = f"--learner {learner} --eval-games 4 --final-games 4 {SMALL[learner]}"
    return [*common.split(), "--runs", str(folder), "--name", "r", *more]


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Small runs, each made once; a folder, and what was printed."""

    @functools.cache
    def made(learner, players=2, rules=""):
        folder, said = tmp_path_factory.mktemp(learner), io.StringIO()
        with contextlib.redirect_stdout(said):
            given = words(learner, folder, f"--players={players}", *rules.split())
            assert train.main(given) == 0
        return folder / "r", " ".join(said.getvalue().split())  # lines may wrap

    return made


@pytest.fixture
def run_of(runs, tmp_path):
    """Copy a finished run; returns its folder."""
    return lambda learner: shutil.copytree(runs(learner)[0], tmp_path / learner)


def needs_packages(learner):
    if learner == "sb3":
        pytest.importorskip("sb3_contrib")


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def read_model(folder, name):
    """Return the weights and the description of a run's model."""
    return from_bytes((folder / f"{name}.safetensors").read_bytes())


POINTS = {
    "ppo": {"evaluation": [256, 512], "training": [128, 256, 384, 512]},
    "value": {"evaluation": [32, 50], "training": [16, 24, 32, 40, 50]},
    "sb3": {"evaluation": [256, 512], "training": [128, 256, 384, 512]},
}
ADJACENT = "--partners adjacent --paladins-per-clan 30"
DEFERRED = "--crown-choice deferred"


@pytest.mark.parametrize(
    ("learner", "players", "rules"),
    [
        ("ppo", 2, ""),
        slow("ppo", 3, DEFERRED),
        ("ppo", 4, ADJACENT),
        ("value", 2, ""),
        slow("value", 3, DEFERRED),
        slow("value", 4, ADJACENT),
        ("sb3", 2, ""),
        slow("sb3", 3, ""),
        ("sb3", 4, "--opponents random"),
    ],
)
def test_a_run_leaves_the_files_of_the_documentation(runs, learner, players, rules):
    folder, shown = runs(learner, players, rules)
    unit = kind_of(learner).Config.unit
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "curve.json", "result.json", "resume", "tensorboard"),
        *("best.safetensors", "final.safetensors"),
    }
    config = read(folder, "config")["config"]
    assert (config["learner"], config["players"]) == (learner, players)
    curve, (_, final) = read(folder, "curve"), read_model(folder, "final")
    assert {kind: [point[unit] for point in curve[kind]] for kind in curve} == POINTS[learner]
    assert (final["players"], final["about"][unit]) == (players, POINTS[learner]["training"][-1])
    assert final["about"]["rules"]["players"] == players
    assert final["about"]["command"].startswith(f"carolus train --learner {learner}")
    kind = kind_of(learner).Config
    spec = f"{kind.bot or learner}:{folder}/best"
    pair = make(spec), make("random")
    assert evaluation.play_pairing(pair, Rules(players), 6, seed=1).games >= 6
    assert f"carolusevaluate{spec}planner--players{players}" in shown.replace(" ", "")
    check_the_end(folder, shown)
    check_training(learner, curve["training"], shown)
    check_tensorboard(learner, folder / "tensorboard", unit)


def check_the_end(folder, shown):
    """Check what a run says at the end: first its games against the planner, then its times."""
    result, curve = read(folder, "result"), read(folder, "curve")
    first, *rows = re.findall(r"(\S+) +([\d.]+)% +[\d.]+% - ", shown)
    assert first == ("planner", f"{100 * result['results']['planner']['win_rate']:.1f}")
    assert [spec for spec, _ in (first, *rows)] == list(result["results"])
    assert re.search(r"strength: Elo on the ladder -?\d+ \(-?\d+ to -?\d+; planner: 0\)", shown)
    times = r"time: compiling [\d:]+ \(\d+%\), learning [\d:]+ \(\d+%\), evaluating [\d:]+ \("
    assert re.search(times, shown)
    seconds = result["seconds"]
    assert list(seconds) == ["compiling", "learning", "evaluating"]
    assert min(seconds.values()) >= 0
    assert sum(seconds.values()) >= curve["evaluation"][-1]["seconds"] - 0.2, "rounded to 0.1"
    assert all(next(iter(point["results"])) == "planner" for point in curve["evaluation"])


def check_training(learner, training, shown):
    """Check metrics of a learner, and what it says."""
    for point in training:
        assert point["loss"] < 2 and point["cpu_seconds"] >= 0
        assert learner == "sb3" or (point["loss"] > 0 and 0 <= point["rounds"] < 40)
        if learner != "value":
            assert 0 < point["entropy"] < np.log(95) and 0 <= point["clip_fraction"] < 1
            assert point["approx_kl"] >= 0
    amount = {"value": "50 games, 2 workers", "ppo": "512 decisions, 2 workers"}
    assert f"players, {amount.get(learner, '512 decisions against ')}" in shown
    assert re.search(r"after \d+ \w+: [\d.]+% against planner, .*Elo on the ladder -?\d+ \(", shown)
    for phase in ("compiling, or loading", "learning from 0", "evaluating after"):
        assert f"{phase} " in shown, "a log has a line for each phase"
    assert ("for the same training time --learner value" in shown) == (learner == "ppo")


def check_tensorboard(learner, folder, unit):
    """Check that TensorBoard reads metrics, rates, times and ratings."""
    accumulator = "tensorboard.backend.event_processing.event_accumulator"
    events = pytest.importorskip(accumulator).EventAccumulator(str(folder))
    events.Reload()
    own = {"value": "rounds", "ppo": "rounds entropy clip_fraction approx_kl"}
    own = own.get(learner, "payoff entropy clip_fraction approx_kl").split()
    assert set(events.Tags()["scalars"]) == {
        *("train/loss", "train/learning_rate", *(f"train/{name}" for name in own)),
        *(f"time/{unit}_per_s", "time/cpu_minutes"),
        *("evaluation/elo", "evaluation/elo_low", "evaluation/elo_high", "evaluation/planner"),
    }
    ratings, rates = events.Scalars("evaluation/elo"), events.Scalars("train/learning_rate")
    assert [event.step for event in ratings] == POINTS[learner]["evaluation"]
    assert rates[0].value > rates[-1].value


def test_a_run_measures_its_regret_on_the_half_of_the_suite_that_learners_may_see(
    tmp_path, monkeypatch, capsys
):
    full = shipped(2)
    discs = [one for one in full.decisions if one.kind == "disc"]  # all listed: no rollouts
    few = [one for half in HALVES for one in discs if one.half == half][::40]
    assert {one.half for one in few} == set(HALVES)
    suite = dataclasses.replace(full, decisions=tuple(few))
    monkeypatch.setattr(ladder, "shipped", lambda players: suite)
    assert train.main(words("ppo", tmp_path, "--eval-suite", "learn")) == 0
    folder = tmp_path / "r"
    best = make(f"ppo:{folder}/best")
    wanted = ladder.measure(suite, best, "learn").summary()["disc"]
    assert read(folder, "result")["regret"] == pytest.approx([wanted.mean, wanted.low, wanted.high])
    assert all(0 <= point["regret"][0] <= 1 for point in read(folder, "curve")["evaluation"])
    assert "regret a decision" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("ppo", {"steps": 40_000}),
        ("value", {"games": 300, "games_per_round": 20}),
    ],
)
def test_a_little_training_beats_the_untrained_network(tmp_path, learner, options):
    options = {"eval_games": 2, "eval_every": 10**6, "workers": 1, **options}
    run = Run(config_of(learner, **options), tmp_path)
    untrained = run.agent(run.snapshot())
    assert run.train()
    assert run.curve.training[-1]["loss"] < np.log(2)
    pair = run.agent(run.snapshot()), untrained
    assert evaluation.play_pairing(pair, Rules(2), 60, seed=5).ci95[0][0] > 0.6


BLOCKED = """
import runpy, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib", "tensorboard"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
if sys.argv[1].endswith(".py"):
    runpy.run_path(sys.argv[1])
from carolus_env.commands import main
sys.exit(main(["train", *sys.argv[1:]]))
"""


def test_neither_pytorch_nor_stable_baselines_nor_tensorboard_is_needed(tmp_path):
    def blocked(arguments):
        command = [sys.executable, "-c", BLOCKED, *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    done = blocked(words("value", tmp_path, "--games", "8"))
    assert done.returncode == 0, done.stderr
    assert "train: no tensorboard/ is written: tensorboard" in done.stderr
    assert not (tmp_path / "r" / "tensorboard").exists()
    assert (tmp_path / "r" / "result.json").exists()
    done = blocked(["--learner", "sb3", "--runs", str(tmp_path), "--name", "other"])
    assert done.returncode == 1
    expected = "carolus train: torch is missing; --learner sb3 needs the extra 'sb3': pip install"
    assert done.stderr.startswith(expected)
    env = Path("carolus_env/envs/sb3.py").resolve(), "needs the extra 'sb3'"
    examples = (Path(f"examples/{name}.py") for name in ("ppo_torch", "clone_torch"))
    for path, said in (env, *((example.resolve(), "[sb3]'") for example in examples)):
        done = blocked([str(path)])
        assert done.returncode == 1 and "is missing" in done.stderr and said in done.stderr


def config_of(learner, **options):
    """A config of a small network."""
    small = {"width": 16, "hidden": 4, "candidates": 6}
    if learner == "ppo":
        small |= {"envs": 6, "rollout": 16, "batch": 24}
    return kind_of(learner).Config(**{**small, **options})


def learnt(learner, rounds=2, **options):
    """A pool of workers after some rounds."""
    pool = WorkerPool(SELF_PLAY[learner], config_of(learner, **options))
    for k in range(rounds):
        pool.learn(8 * k, 8, 0.01)
    return pool


def same(first, second):
    return all((array == second.shared[name]).all() for name, array in first.shared.items())


def test_a_weight_moves_by_the_mean_over_the_workers_that_moved_it():
    def moved(*moves):
        common = {name: np.ones(1, np.float32) for name in ("weights/bias", "squares/bias")}
        learnt = [{name: one + np.float32(move) for name, one in common.items()} for move in moves]
        combine(common, learnt)
        return [float(array[0]) - 1 for array in common.values()]

    assert moved(0.5, 0.5, 0.5) == pytest.approx([0.5, 1.5]), "all alike: the mean"
    assert moved(0, 0.5, 0) == pytest.approx([0.5, 0.5]), "one alone: its own move"
    assert moved(0.5, 0.5, 0, 0)[0] == pytest.approx(0.5), "two of four: their mean"
    assert moved(-0.2, 0.4)[0] == pytest.approx(0.2 / (0.36 / 0.2)), "unlike: in between"
    assert moved(0, 0, 0) == [0, 0]
    assert moved(-0.7, -0.7, -0.7)[1] == pytest.approx(-0.7), "sums that forget stay above 0"


@pytest.mark.parametrize(("learner", "count"), [("ppo", 8), ("value", 8), ("value", 2)])
def test_workers_learn_apart_and_are_combined(learner, count):
    pool, kind = learnt(learner, 0, workers=3), SELF_PLAY[learner]
    every = [kind(config_of(learner, workers=3)) for _ in range(3)]
    owns, stats = [one.own(index) for index, one in enumerate(every)], 0
    for first in (0, count):
        before, apart = {name: array.copy() for name, array in pool.shared.items()}, []
        for index, part in enumerate(machine.runs(count, 3)):
            for array in before.values():
                array.flags.writeable = False
            task = Task(first + part.start, part.stop - part.start, 0.01)
            shared, more, _ = every[index].round(before, owns[index], task)
            apart.append(shared)
            stats += more
        pool.learn(first, count, 0.01)
        expected = {name: array.copy() for name, array in before.items()}
        combine(expected, apart)
        for name, array in expected.items():
            np.testing.assert_array_equal(pool.shared[name], array)
            if name.startswith("squares/"):
                growth = sum(one[name] - before[name] for one in apart)
                np.testing.assert_allclose(array, before[name] + growth, rtol=1e-5)
    np.testing.assert_allclose(pool.stats, stats)
    assert pool.cpu_seconds > 0


@by_self_play
def test_what_is_learnt_depends_on_the_seed_and_the_number_of_workers(learner):
    first = learnt(learner, workers=2)
    assert same(first, learnt(learner, workers=2))
    for other in ({"workers": 2, "seed": 2}, {"workers": 1}, {"workers": 3}):
        assert not same(first, learnt(learner, **other))
    warm = learnt(learner, 0, workers=2)
    warm.warm_up()
    assert warm.cpu_seconds == 0 and not warm.stats.any()
    for k in range(2):
        warm.learn(8 * k, 8, 0.01)
    assert warm.cpu_seconds > 0
    assert same(warm, first), "warming up teaches nothing"


@by_self_play
@pytest.mark.parametrize("policy", [False, True])
def test_a_run_begins_with_a_model_with_or_without_a_policy_head(tmp_path, learner, policy):
    model = random_model(2, policy, width=16, hidden=4)
    model.save(tmp_path / "own")
    start = str(tmp_path / "own")
    begun = config_of(learner, start=start).first_weights()
    np.testing.assert_array_equal(begun["rows"], model.weights["rows"])
    np.testing.assert_array_equal(begun["out"][:, :2], model.weights["out"][:, :2])
    if learner == "ppo":
        head = model.weights["out"][:, 2] if policy else np.zeros(1)
        assert (begun["out"][:, 2] == head).all()
        assert begun["sharpness"] == (model.weights["sharpness"] if policy else network.SHARPNESS)
    with pytest.raises(ValueError, match="start must be a model of players=2, width=24"):
        config_of(learner, start=start, width=24).check()


@by_self_play
def test_by_a_number_of_players_a_run_begins_with_the_value_network_of_the_package(learner):
    begun = config_of(learner, start="2p", width=64, hidden=32).first_weights()
    np.testing.assert_array_equal(begun["rows"], find("value", "2p").weights["rows"])


@by_self_play
def test_an_interrupted_run_continues_bit_by_bit(tmp_path, run_of, monkeypatch, capsys, learner):
    rounds = 0

    def interrupt(self, progress):
        nonlocal rounds
        rounds += progress.phase == LEARNING and progress.done > 0
        if rounds == 2:
            signal.raise_signal(signal.SIGTERM if learner == "value" else signal.SIGINT)
            rounds += 1

    with monkeypatch.context() as patch:
        patch.setattr(train._Display, "show", interrupt)
        assert train.main(words(learner, tmp_path)) == 130
    folder, other = tmp_path / "r", run_of(learner)
    assert f"--resume {folder}" in " ".join(capsys.readouterr().out.split())
    assert read_checkpoint(folder)[0]["done"] == {"ppo": 256, "value": 16}[learner]
    assert train.main(["--resume", str(folder)]) == 0
    check_same(folder, other)


def check_same(folder, other):
    """Check that two runs learnt and measured the same."""
    for name in ("final", "best"):
        digests = {read_model(run, name)[1]["sha256"] for run in (folder, other)}
        assert len(digests) == 1, name
    results = [read(run, "result") for run in (folder, other)]
    curves = [read(run, "curve") for run in (folder, other)]
    for point in (point for curve in curves for points in curve.values() for point in points):
        point.pop("cpu_seconds")
    for one in (*results, *(p for curve in curves for points in curve.values() for p in points)):
        del one["seconds"]
    assert results[0] == results[1] and curves[0] == curves[1]


@pytest.mark.parametrize(
    ("learner", "final"), [slow("ppo", False), ("value", True), slow("sb3", False), ("sb3", True)]
)
def test_an_evaluation_ends_soon_after_ctrl_c_and_is_made_up_for(
    runs, tmp_path, monkeypatch, capsys, learner, final
):
    """In the first evaluation, or the final one, when the first game against planner is over."""
    given = words(learner, tmp_path, "--eval-games=40", "--final-games=40")
    shown = []

    def interrupt(self, progress):
        last = progress.done >= POINTS[learner]["evaluation"][-1]
        playing = re.match(r"[1-9]\d* games? against planner$", progress.detail)
        if playing and final == last and not shown:
            signal.raise_signal(signal.SIGINT)
        if shown or (playing and final == last):
            shown.append(progress.detail)

    with monkeypatch.context() as patch:
        patch.setattr(train._Display, "show", interrupt)
        assert train.main(given) == 130
    folder = tmp_path / "r"
    assert "stopped and saved" in (said := " ".join(capsys.readouterr().out.split()))
    assert f"--resume {folder}" in said
    assert len(shown) < 30, "not all forty games were played"
    assert not (folder / "result.json").exists()
    assert train.main(["--resume", str(folder)]) == 0
    assert (folder / "result.json").exists()
    unit = kind_of(learner).Config.unit
    points = [point[unit] for point in read(folder, "curve")["evaluation"]]
    assert points == POINTS[learner]["evaluation"]


@pytest.mark.parametrize("learner", ["ppo", slow("value"), slow("sb3")])
def test_a_resumed_run_may_be_longer(run_of, learner):
    folder, (option, amount) = run_of(learner), LENGTH[learner]
    unit, before = kind_of(learner).Config.unit, read_model(folder, "final")[1]["sha256"]
    was = read(folder, "config")
    assert train.main([f"--resume={folder}", f"--{option}", str(amount)]) == 0
    assert read_model(folder, "final")[1]["sha256"] != before
    ends = {1152 if learner == "sb3" else amount}  # there, rollouts are full
    assert read_model(folder, "final")[1]["about"][unit] in ends
    curve = read(folder, "curve")["evaluation"]
    points, seconds = ([point[key] for point in curve] for key in (unit, "seconds"))
    assert points[: len(POINTS[learner]["evaluation"])] == POINTS[learner]["evaluation"]
    assert points[-1] in ends and points == sorted(set(points)), "each once"
    assert seconds == sorted(seconds), "those of the processes before count too"
    config = read(folder, "config")
    assert config["config"] == {**was["config"], option: amount}
    assert config["command"].startswith(f"{was['command']}; carolus train --resume")
    assert config["command"].endswith(f"--{option} {amount}")


def test_sb3_learns_the_same_from_the_same_seed_and_its_bot_plays_as_sb3_would(runs, tmp_path):
    assert train.main(words("sb3", tmp_path)) == 0
    folder, final = runs("sb3")[0], tmp_path / "r" / "final.safetensors"
    digests = {read_model(run, "final")[1]["sha256"] for run in (folder, final.parent)}
    assert len(digests) == 1
    from carolus_env.envs.sb3 import CarolusVecEnv

    run = Run(train.read_job(["--resume", str(folder)]).config, folder)
    run.resume()
    theirs = run.learner.ppo
    env = CarolusVecEnv(Rules(), 64, "random", seed=3, dtype="uint8")
    obs, ours = env.reset(), make(f"decisions:{final}")
    for _ in range(10):
        states, masks = env.games.states, env.action_masks()
        actions = ours.act(states, new_streams(0, len(states)))
        assert (actions == theirs.predict(obs, action_masks=masks, deterministic=True)[0]).all()
        obs, *_ = env.step(actions)


def test_the_opponent_self_draws_from_the_policy_as_it_is_now():
    sb3 = pytest.importorskip("carolus_env.learners.sb3")
    import torch

    itself = sb3.Sb3Learner(
        sb3.Sb3Config(envs=8, n_steps=2, batch_size=16, region=8, whole=8)
    ).itself
    states = new_games(Rules(), 400, seed=1)
    states = states[legal_masks(states)[:, 3] == 1]  # disc 4 may be played
    drawn = itself.act(states, new_streams(1, len(states)))
    assert set(drawn.tolist()) == {0, 1, 2, 3, 4}
    with torch.no_grad():
        itself.policy.features_extractor.weights["disc_b"][3] = 50.0
    assert (itself.act(states, new_streams(1, len(states))) == 3).all()


def test_a_rollout_of_sb3_that_is_broken_off_does_not_count_as_learnt():
    sb3 = pytest.importorskip("carolus_env.learners.sb3")
    config = sb3.Sb3Config(envs=8, n_steps=4, batch_size=16, n_epochs=1, region=8, whole=8)
    learner, stop = sb3.Sb3Learner(config), Stop()
    learner.warm_up()
    assert learner.learn(0, 32, 0.01, stop) == 32
    before = learner.arrays()
    for steps in (1, 4):  # decisions in each game; after the last one it is not learnt from, either
        stop, count = Stop(), itertools.count(1)
        step = learner.env.step_wait

        def stopping(steps=steps, stop=stop, count=count, step=step):
            if next(count) == steps:
                stop.set()
            return step()

        learner.env.step_wait = stopping
        assert learner.learn(32, 32, 0.01, stop) == 0
        learner.env.step_wait = step
        for name, array in learner.arrays().items():
            np.testing.assert_array_equal(array, before[name], name)
    assert learner.learn(32, 32, 0.01, Stop()) == 32


def config_with(folder, **options):
    about = read(folder, "config")
    about["config"].update(options)
    (folder / "config.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (shutil.rmtree, "no run to resume: there is no such folder"),
        (lambda folder: shutil.rmtree(folder / "resume"), "no readable checkpoint"),
        (lambda folder: os.truncate(folder / CHECKPOINT, 1000), "no readable checkpoint"),
        (
            lambda folder: (folder / "config.json").write_text('{"config": {"hats": 3}}'),
            "no run to resume",
        ),
        (lambda folder: config_with(folder, trunk=64), "learner ppo has no option 'trunk'"),
        (
            lambda folder: config_with(folder, width=24),
            "does not fit these options (ValueError: weights/rows must be",
        ),
    ],
)
def test_a_run_that_cannot_be_resumed_is_reported(run_of, capsys, damage, text):
    folder = run_of("ppo")
    damage(folder)
    assert train.main(["--resume", str(folder)]) == 2
    error = capsys.readouterr().err
    assert text in error and str(folder) in error


@pytest.mark.parametrize("learner", [slow("ppo"), "value", slow("sb3")])
def test_a_run_may_end_after_minutes_of_learning(run_of, capsys, learner):
    folder = run_of(learner)
    unit, before = kind_of(learner).Config.unit, read(folder, "result")["seconds"]
    minutes = str((before["learning"] + 0.8) / 60)
    assert train.main([f"--resume={folder}", "--minutes", minutes]) == 0
    after = read(folder, "result")["seconds"]["learning"] - before["learning"]
    assert 0.6 < after < 8, "nor is a round cut short"
    final = read_model(folder, "final")[1]["about"][unit]
    assert final > POINTS[learner]["evaluation"][-1]
    assert "minutes of learning" in capsys.readouterr().out
    assert train.main([f"--resume={folder}"]) == 0
    assert read_model(folder, "final")[1]["about"][unit] == final, "it was done"


def test_runs_that_begin_together_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(train.time, "strftime", lambda form: "NOW")
    given = f"--minutes 2 --players 4 --seed 5 --runs {tmp_path}".split()
    jobs = machine.together(lambda _: train.read_job(given), range(4))
    name = "ppo-4p-seed5-NOW"
    assert {job.folder.name for job in jobs} == {name, *(f"{name}-{k}" for k in (2, 3, 4))}
    assert all(read(job.folder, "config")["config"]["minutes"] == 2 for job in jobs)
    with pytest.raises(UserError, match="exists already"):
        train.read_job([*given, "--name", name])


@pytest.mark.parametrize("learner", ["ppo", slow("sb3")])
def test_an_update_that_goes_much_too_far_is_told(tmp_path, capsys, learner):
    rates = {"ppo": "0.9 --policy-square 0.001 --policy-weight 50 --epochs 4", "sb3": "0.3"}
    given = words(learner, tmp_path, *f"--learning-rate {rates[learner]}".split())
    assert train.main(given) == 0
    assert "the policy moved by a Kullback-Leibler distance of " in capsys.readouterr().err


@pytest.mark.parametrize("learner", ["ppo", slow("value"), slow("sb3")])
def test_weights_that_are_no_numbers_are_never_written(tmp_path, monkeypatch, capsys, learner):
    needs_packages(learner)
    if learner == "sb3":
        import torch
        from sb3_contrib import MaskablePPO as Kind

        def spoil(self):
            if self.num_timesteps > 256:
                with torch.no_grad():
                    next(self.policy.parameters())[...] = np.nan

        name = "train"
    else:
        Kind, name = SELF_PLAY[learner], "learn"

        def spoil(self, own, task, stats):
            if task.first > (30 if learner == "value" else 300):
                self.weights.rows[0] = np.inf

    honest = getattr(Kind, name)
    monkeypatch.setattr(
        Kind, name, lambda self, *given: (honest(self, *given), spoil(self, *given))[0]
    )
    assert train.main(words(learner, tmp_path)) == 1
    folder = tmp_path / "r"
    assert "holds NaN or infinity, which is not saved" in capsys.readouterr().err
    assert not (folder / "final.safetensors").exists()
    for arrays in (read_model(folder, "best")[0], read_checkpoint(folder)[1]):
        assert all(np.isfinite(array).all() for array in arrays.values())
    monkeypatch.undo()
    assert train.main(["--resume", str(folder)]) == 0, "from the last good checkpoint"


def test_an_option_of_another_learner_is_refused_by_its_name(capsys):
    assert train.main(["--players", "3", "--exploration=0"]) == 2
    assert "--exploration is an option of --learner value" in capsys.readouterr().err


def test_a_full_disk_costs_files_but_no_training(tmp_path, monkeypatch, capsys):
    """At the first evaluation nothing can be written; from then on all can."""
    folder, undisturbed = tmp_path / "r", tmp_path / "undisturbed"
    assert train.main([*words("ppo", tmp_path), "--name", "undisturbed"]) == 0
    write, append, failed, done = files.replacing, Log.append, [], []

    def full(path):
        if 256 in done and len(failed) < 4:
            failed.append(Path(path).relative_to(folder).parts[0])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def replacing(path):
        full(path)
        return write(path)

    def appended(log, block):
        full(log.path)
        append(log, block)

    def show(self, progress):
        done.append(progress.done)

    monkeypatch.setattr(files, "replacing", replacing)
    monkeypatch.setattr(Log, "append", appended)
    monkeypatch.setattr(train._Display, "show", show)
    assert train.main(words("ppo", tmp_path)) == 0
    assert {"best.safetensors", "curve.json", "tensorboard", "resume"} == set(failed)
    error = capsys.readouterr().err
    for name in failed:
        line = f"train: not written: [Errno 28] No space left on device: '{folder / name}"
        assert any(line in said and "continues" in said for said in error.splitlines())
    assert read_model(folder, "final")[1]["sha256"] == read_model(undisturbed, "final")[1]["sha256"]
    monkeypatch.undo()
    run = Run(train.read_job(["--resume", str(folder)]).config, folder)
    run.resume()
    assert run.done == 512


@pytest.mark.parametrize("file", ["final.safetensors", "best.safetensors", "result.json"])
def test_a_full_disk_at_the_end_is_an_error_and_resuming_ends_the_run(
    run_of, monkeypatch, capsys, file
):
    folder, write = run_of("value"), files.replacing
    (folder / "best.safetensors").unlink()

    def replacing(path):
        if Path(path).name == file:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path)

    monkeypatch.setattr(files, "replacing", replacing)
    assert train.main(["--resume", str(folder)]) == 1
    assert f": {folder / file}: No space left on device" in capsys.readouterr().err
    monkeypatch.undo()
    assert train.main(["--resume", str(folder)]) == 0
    assert read_model(folder, "best")


@every_learner
def test_a_run_killed_before_its_first_checkpoint_is_resumed_from_the_start(tmp_path, learner):
    """Nothing but its config, its lock and perhaps a part of TensorBoard's file is left."""
    train.read_job(words(learner, tmp_path))
    (tmp_path / "r" / ".lock").write_text("1")
    with pytest.raises(UserError, match=r"choose another --name, or continue it: .* --resume .*r"):
        train.read_job(words(learner, tmp_path))
    (tmp_path / "r" / "resume").mkdir()
    again = train.read_job(["--resume", str(tmp_path / "r")])
    run = Run(again.config, again.folder)
    run.resume()
    if learner == "value":  # the others need longer
        assert run.train() and run.done == POINTS["value"]["training"][-1]


def test_a_run_that_is_killed_after_its_last_checkpoint_measures_each_point_once(run_of):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = run_of("value")
    Scalars(folder / "tensorboard", 50).write({"train/loss": 1.0}, 70)  # lost by a kill
    assert train.main([f"--resume={folder}", "--games", "90"]) == 0
    log = EventAccumulator(str(folder / "tensorboard")).Reload()
    steps = [event.step for event in log.Scalars("train/loss")]
    assert steps == sorted(set(steps)) and 70 not in steps and steps[0] < 50 < steps[-1]


def given_elos(monkeypatch, *elos):
    """Let evaluations measure these ratings, each with half the width of its interval."""
    result = {"planner": {"win_rate": 0.5, "ci95": [0.4, 0.6], "games": 4}}
    given = iter([ladder.Evaluation(elo, elo - by, elo + by, [], result) for elo, by in elos])
    games = []

    def evaluate(agent, rules, most, **_):
        games.append(most)
        return next(given)

    monkeypatch.setattr(ladder, "evaluate", evaluate)
    return games


def test_best_is_the_last_network_that_is_not_clearly_weaker_than_one_before(tmp_path, monkeypatch):
    games = given_elos(monkeypatch, (100, 50), (60, 50), (80, 15), (70, 5))  # the last: of `best`
    assert train.main(words("value", tmp_path, "--games=90", "--final-games=8")) == 0
    folder = tmp_path / "r"
    assert [point["elo"] for point in read(folder, "curve")["evaluation"]] == [100, 60, 80]
    assert games == [4, 4, 8, 8], "the finer measurement says whether the last network is weaker"
    assert read_model(folder, "best")[1]["about"]["games"] == 64
    assert read(folder, "result")["elo"] == 70


def test_a_network_is_compared_with_networks_that_were_saved(tmp_path, monkeypatch, capsys):
    folder, write = tmp_path / "r", files.replacing
    given_elos(monkeypatch, (900, 50), (60, 50), (50, 50))

    def replacing(path):
        curve = folder / "curve.json"
        if Path(path).name == "best.safetensors" and not curve.exists():
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path)

    monkeypatch.setattr(files, "replacing", replacing)
    assert train.main(words("value", tmp_path, "--games=90")) == 0
    assert "train: not written: " in capsys.readouterr().err
    assert [p["saved"] for p in read(folder, "curve")["evaluation"]] == [False, True, True]
    assert read_model(folder, "best")[1]["about"]["games"] == 90


def test_a_run_logs_elsewhere_what_tensorboard_shows(tmp_path):
    accumulator = "tensorboard.backend.event_processing.event_accumulator"
    events = pytest.importorskip(accumulator).EventAccumulator(str(tmp_path / "tensorboard"))
    logged = {}

    def log(values, step):
        logged.setdefault(step, {}).update(values)

    config = config_of("value", games=40, workers=2, eval_every=20, curve_every=10, eval_games=2)
    run = Run(dataclasses.replace(config, final_games=2), tmp_path, log=log)
    assert run.train() and run.finish()
    shown = {}
    for tag in events.Reload().Tags()["scalars"]:
        for event in events.Scalars(tag):
            shown.setdefault(event.step, {})[tag] = event.value
    assert {"train/loss", "evaluation/elo"} < shown[40].keys()
    assert shown.keys() == logged.keys()
    for step, values in shown.items():
        assert values == pytest.approx(logged[step], rel=1e-5)


def test_an_existing_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine.txt").write_text("mine")
    assert train.main(words("ppo", tmp_path)) == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("learners", "options", "text"),
    [
        (
            "ppo value sb3",
            "--eval-games 0",
            "--eval-games must be a whole number of at least 1, got 0",
        ),
        ("ppo value sb3", "--eval-bots nobody", "unknown agent 'nobody'; known are"),
        ("ppo sb3", "--envs 0", "--envs must be a whole number of at least 1, got 0"),
        (
            "ppo sb3",
            "--envs 999999999",
            "a rollout needs [0-9,.]+ GiB of memory, this machine has [0-9,.]+",
        ),
        ("ppo", "--games 9", "--games is an option of --learner value"),
        ("value", "--games 0", "--games must be a whole number of at least 1, got 0"),
        (
            "ppo value",
            "--width 1024 --hidden 1024",
            "a model of [0-9,]+ bytes, allowed are 67,108,864",
        ),
        ("sb3", "--region 1024 --whole 1024", "a model of [0-9,]+ bytes, allowed are 67,108,864"),
        ("sb3", "--device cpux", "device .cpux.: Expected one of cpu"),
        ("ppo value", "--workers 0", "--workers must be a whole number from 1 to 256, got 0"),
        ("value", "--workers 999", "workers must be a whole number from 1 to 256, got 999"),
        ("ppo value", "--width 4", "--width must be a whole number from 16 to 1,024, got 4"),
        (
            "ppo value",
            "--candidates 3",
            "--candidates must be a whole number from 5 to 4,096, got 3",
        ),
        ("ppo value", "--plans some", "--plans must be stop or one or all, got 'some'"),
        (
            "ppo value sb3",
            "--learning-rate 1e-320",
            "--learning-rate must be a number of at least 1e-09 and below 1, got 1e-320",
        ),
        (
            "ppo value sb3",
            "--learning-rate 1e30",
            "--learning-rate must be .* below 1, got 1e\\+30",
        ),
        ("ppo value sb3", "--name ../x", "name must be that of a folder in .*, got '../x'"),
        ("ppo value sb3", "--name ..", "name must be that of a folder in .*, got '..'"),
        ("ppo value", "--flat 1", "--flat must be a number of at least 0 and below 1, got 1"),
        ("ppo value", "--trace 1.5", "--trace must be a number from 0 to 1, got 1.5"),
        ("ppo value", "--seed -1", r"--seed must be a whole number from 0 to 2\^64 - 1, got -1"),
        ("ppo value", "--start nowhere", "unknown model 'nowhere'"),
        ("ppo value sb3", "--minutes -1", "--minutes must be a number above 0, got -1"),
        ("ppo value", "--first-square 0", "--first-square must be a number from 1e-09"),
        ("value", "--minutes 1", "after games or after minutes"),
        ("ppo sb3", "--minutes 1", "after steps or after minutes"),
        ("ppo value sb3", "--partners adjacent", "partners 'adjacent' needs players=4, got 2"),
        ("ppo", "--clip 0", "--clip must be a number above 0 and of at most 1, got 0"),
        ("ppo", "--entropy -1", "--entropy must be a number from 0 to 100, got -1"),
        ("sb3", "--whole 0", "--whole must be a whole number from 1 to 1,024, got 0"),
        ("sb3", "--opponents nobody", "unknown agent 'nobody'; known are"),
        ("sb3", "--envs 3 --n-steps 43 --batch-size 128", "envs times n_steps, 3 x 43, .* of 128"),
        ("sb3", "--batch-size 1", "envs times n_steps, 8 x 16, .* batch_size of 1"),
    ],
)
def test_a_wrong_option_is_reported_before_anything_starts(
    tmp_path, capsys, learners, options, text
):
    for learner in learners.split():
        assert train.main(words(learner, tmp_path, *options.split())) == 2
        error = capsys.readouterr().err
        assert error.startswith("carolus train: ") and re.search(text, error), learner
        assert not list(tmp_path.iterdir())


def test_the_rate_stays_and_then_falls_geometrically():
    config = config_of("value", learning_rate=0.1, flat=0.5, learning_rate_end=0.001)
    rates = [config.rate_at(share) for share in (0, 0.5, 0.75, 1, 2)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.001, 0.001])


@every_learner
def test_a_learner_has_defaults_and_help_shows_every_option(tmp_path, capsys, learner):
    needs_packages(learner)
    job = train.read_job(["--learner", learner, "--runs", str(tmp_path), "--name", "a"])
    kind = kind_of(learner).Config
    assert dataclasses.replace(job.config, runs=Path("runs"), name=None) == kind()
    assert (job.folder, job.resumed) == (tmp_path / "a", False)
    assert train.main(["--learner", learner, "--help"]) == 0
    shown = capsys.readouterr().out
    own = {field.name for field in dataclasses.fields(kind)} - {"rules"}
    for name in (name.replace("_", "-") for name in (*OPTIONS, *own)):
        assert f"--{name} " in shown or f"--{name}, --no-{name} " in shown, name
    assert f"(default: {learner})" in " ".join(shown.split())


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("form", ["--config {}", "--config={}"])
def test_options_come_from_a_file_and_the_command_line_overrides_them(tmp_path, named, form):
    path = tmp_path / "options.toml"
    options = 'players = 3\nwidth = 24\neval_bots = ["greedy", "random"]\nseed = 4\n'
    path.write_text('learner = "value"\n' * named + options)
    given = [*form.format(path).split(), "--runs", str(tmp_path), "--seed", "7"]
    job = train.read_job(given + ([] if named else ["--learner", "value"]))
    expected = {"rules": Rules(3), "width": 24, "eval_bots": ("greedy", "random"), "seed": 7}
    assert job.config == TdConfig(**expected, runs=str(tmp_path))
    assert job.folder.name.startswith("value-3p-seed7-")
    assert str(path) in job.command


@pytest.mark.parametrize(
    ("given", "content", "named"),
    [
        ("--config FILE", "hats = 3", "FILE|'hats'|ppo|players"),
        ("--config FILE", 'learner = "value"\nsteps = 3', "FILE|'steps'|value"),
        ("--config FILE", 'learner = "walk"', "FILE|learner|ppo, value, sb3|'walk'"),
        ("--config FILE", 'players = "2"', "FILE|players|from 2 to 4|'2'"),
        ("--config FILE", "epochs = 1.5", "FILE|epochs|a whole number|1.5"),
        ("--config FILE", 'partners = "beside"', "FILE|partners|opposite or adjacent|'beside'"),
        ("--config FILE", "players = ", "FILE|TOML"),
        ("--config FILE", "minutes = 2\nsteps = 9", "FILE|a run ends after steps or after minutes"),
        ("--config FILE", 'partners = "adjacent"', "partners 'adjacent' needs players=4, got 2"),
        ("--config FILE.no", "", "carolus train: FILE.no: "),
        ("--resume FILE.no", "", "carolus train: FILE.no: "),
        ("--config", "", "--config"),
        ("--resume", "", "--resume"),
        ("--resume=FOLDER --learner ppo", "", "leave out --learner"),
        ("--resume FOLDER --config FILE", "", "leave out --config"),
        ("--resume FOLDER --width 3", "", "--width"),
        ("--resume FOLDER --games 3", "", "--games"),
        ("--hats 3", "", "--hats"),
        ("--players 5", "", "players|from 2 to 4|5"),
    ],
)
def test_what_is_wrong_with_a_command_or_its_file_is_named(tmp_path, capsys, given, content, named):
    file = tmp_path / "options.toml"
    file.write_text(content)
    (tmp_path / "config.json").write_text(json.dumps({"config": {}, "command": "old"}))

    def filled(text):
        return text.replace("FILE", str(file)).replace("FOLDER", str(tmp_path))

    assert train.main(filled(given).split()) == 2
    error = capsys.readouterr().err
    for name in filled(named).split("|"):
        assert name in error


@pytest.mark.parametrize("path", sorted(Path("agents").glob("*.toml")), ids=lambda p: p.stem)
def test_the_recipes_of_the_shipped_agents_are_valid(path):
    needs_packages(path.stem.partition("_")[0])
    config = read_config(path)
    config.check()
    assert f"{config.players}p" in path.stem


@pytest.mark.parametrize("players", [2, slow(3), slow(4)])
def test_an_agent_is_placed_by_the_rungs_nearest_to_it(players):
    agent = make("planner:errors=0.3")
    result = evaluate(agent, Rules(players), 30, near=None)
    assert 2 <= len(result.rungs) <= 3
    again = evaluate(agent, Rules(players), 30, near=result.elo)
    near = [rung.spec for rung in ladder.nearest(players, again.elo, 5)]
    assert set(result.rungs) | set(again.rungs) <= {*near, "planner"}
    assert list(result.results) == list(dict.fromkeys(["planner", *result.rungs]))
    assert again.low - 100 < result.elo < again.high + 100
    assert again == evaluate(agent, Rules(players), 30, near=result.elo, threads=3)


@pytest.mark.parametrize("spec", ["random", "planner:errors=0.4", slow("value:2p")])
def test_where_nothing_or_something_else_is_known_a_few_games_find_the_rungs(spec):
    rungs = [rung.spec for rung in ladder.rungs(2)]
    for near in (None, ladder.rungs(2)[-1].elo, ladder.rungs(2)[0].elo):
        result = evaluate(make(spec), Rules(2), 12, near=near)
        assert all(abs(rungs.index(met) - rungs.index(spec)) <= 3 for met in result.rungs)
        assert next(iter(result.results)) == "planner"


def test_games_end_when_the_interval_is_narrow():
    weak = evaluate(make("random"), Rules(2), 300, near=ladder.rungs(2)[0].elo).results
    assert weak["planner"]["games"] == 100, "all are lost: narrow at once"
    near = evaluate(make("planner:errors=0.09"), Rules(2), 300, near=None)
    low, high = near.results["planner"]["ci95"]
    games = near.results["planner"]["games"]
    assert games > 100 and (high - low < ladder.NARROW_RATE or games == 300)
    games = [near.results[spec]["games"] for spec in near.rungs[1:]]
    assert near.high - near.low < ladder.NARROW_ELO or max(games) == 300


def test_other_agents_are_met_besides_the_rungs_and_leave_the_rating_alone():
    result, alone = (
        evaluate(make("planner:errors=0.3"), Rules(2), 4, near=None, bots=others)
        for others in (("greedy", "random"), ())
    )
    assert {"planner", "greedy", "random", *result.rungs} == set(result.results)
    assert (result.elo, result.rungs) == (alone.elo, alone.rungs)


def repository(folder, *tracked):
    """A git repository that tracks some of its files."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for step in (["init", "-q"], ["add", "--", *tracked], ["commit", "-qm", "first"]):
        subprocess.run([*git, *step], check=True)
    return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@needs_git
@pytest.mark.parametrize(
    ("place", "tracked", "known"),
    [
        (".", ["carolus_env"], True),
        (".", [], False),
        (".venv/lib/python3.11/site-packages", [], False),
        ("vendored", ["vendored"], False),
    ],
)
def test_a_commit_is_that_of_the_packages_own_checkout(
    tmp_path, monkeypatch, place, tracked, known
):
    root = tmp_path / place
    shutil.copytree("carolus_env/system", root / "carolus_env" / "system")
    assert commit(root) is None, "there is no repository yet"
    (tmp_path / "mine.py").write_text("")
    head = repository(tmp_path, "mine.py", *tracked)
    assert commit(root) == (head if known else None)
    (root / "carolus_env" / "system" / "machine.py").write_text("")
    assert commit(root) == (f"{head}+" if known else None), "files differ"
    monkeypatch.setenv("PATH", "")
    assert commit(root) is None, "without git"


@needs_git
def test_this_code_has_the_commit_of_its_checkout():
    result = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    if result.returncode:
        pytest.skip("no checkout")
    assert (commit() or "").removesuffix("+") == result.stdout.strip()


MANY_CHECKPOINTS = {
    "ppo": "--steps 12800 --checkpoint-every 256 --eval-every 6400 --curve-every 2560",
    "value": "--games 600 --checkpoint-every 24 --eval-every 300 --curve-every 250",
}
KILLED_AT = {"ppo": 2000, "value": 100}
"""Decisions or games in a checkpoint, after which a run is killed."""


def begun(*options):
    """Start the run in a process of its own."""
    command = [sys.executable, "train.py", *map(str, options)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True)


def wait_for_checkpoint(process, learner, folder):
    """Return when the run is under way and can be resumed."""
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.002)
        with contextlib.suppress(OSError, ValueError):
            if read_checkpoint(folder)[0]["done"] >= KILLED_AT[learner]:
                return
    pytest.fail(f"it ended too early: {process.communicate()[1]}")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ppo", "value"])
def test_a_killed_run_continues_bit_by_bit(learner, tmp_path):
    options = words(learner, tmp_path, *f"{MANY_CHECKPOINTS[learner]} --name".split())
    assert begun(*options, "undisturbed").wait() == 0
    process, folder = begun(*options, "killed"), tmp_path / "killed"
    wait_for_checkpoint(process, learner, folder)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "final.safetensors").exists()
    assert begun("--resume", folder).wait() == 0
    check_same(folder, tmp_path / "undisturbed")
