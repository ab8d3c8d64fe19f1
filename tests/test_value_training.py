"""Training a value network: what is learnt, by how many workers, resuming, options and errors."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("rich")

from carolus_env.bots.value.model import ValueModel, load, save

from carolus_env import arena, engine
from carolus_env.commands import train
from carolus_env.engine.rules import Rules
from carolus_env.engine.streams import branches, new_streams
from carolus_env.learners.value.config import ValueConfig
from carolus_env.learners.value.crew import Crew, mean_step
from carolus_env.learners.value.learning import learn
from carolus_env.learners.value.run import ValueRun
from carolus_env.networks.forward import Weights

TINY = [
    *("--learner", "value", "--width", "16", "--hidden", "4", "--candidates", "4"),
    *("--workers", "2", "--games-per-round", "4", "--games", "50", "--curve-every", "10"),
    *("--eval-games", "4", "--final-games", "4", "--eval-every", "30"),
]


def tiny(folder, *more):
    return [*TINY, "--runs", str(folder), "--name", "r", *more]


def small(**options):
    """Options of a small network that one worker trains."""
    sizes = {"width": 16, "hidden": 4, "candidates": 4, "workers": 1, "games_per_round": 4}
    return ValueConfig(**{**sizes, **options})


def learnt(config, *rounds):
    """A crew after rounds of that many games."""
    crew, games = Crew(config), 0
    for count in rounds:
        crew.learn(games, count, config.rate)
        games += count
    return crew


def same(first, second):
    return all((a == b).all() for a, b in zip(first, second, strict=True))


# ------------------------------------------------------------------------------------ workers


def test_one_worker_learns_game_by_game():
    config = small()
    crew = learnt(config, 3, 4)
    worker, seeds = Crew(config)._worker(), branches(np.uint64(config.seed), np.arange(7))
    games, streams = engine.new_games(Rules(2), 7, seed=seeds), new_streams(seeds, 7)
    rate, told = np.float32(config.rate), np.zeros(3)
    learn(games, streams, worker, config.exploration, config.trace, rate, told)
    assert same(crew.weights, worker.chooser.net.weights)
    assert same(crew.squares, worker.squares)
    np.testing.assert_allclose(crew.told, told, rtol=1e-12)  # added up in another order


def test_what_several_workers_learn_is_put_together():
    config = small()
    before, together = Crew(config), Crew(dataclasses.replace(config, workers=3))
    apart = [Crew(config) for _ in range(3)]
    together.learn(0, 6, 0.05)
    for place, crew in enumerate(apart):
        crew.learn(2 * place, 2, 0.05)
    shared, alone = 0, 0
    for name in Weights._fields:
        weights, squares = getattr(before.weights, name), getattr(before.squares, name)
        moved = np.array([getattr(crew.weights, name) - weights for crew in apart])
        growth = np.array([getattr(crew.squares, name) - squares for crew in apart], float)
        np.testing.assert_allclose(
            getattr(together.squares, name), squares + growth.sum(axis=0), rtol=1e-5
        )
        found = getattr(together.weights, name) - weights
        few = (growth > 1e-5).sum(axis=0) == 1
        few &= (growth > 0).sum(axis=0) == 1
        np.testing.assert_allclose(found[few], moved.sum(axis=0)[few], atol=1e-6)
        assert (np.abs(found) <= np.abs(moved).sum(axis=0) + 1e-6).all()
        alone += few.sum()
        shared += ((growth > 1e-5).sum(axis=0) == 3).sum()
    assert min(alone, shared) > 100
    np.testing.assert_allclose(together.told, sum(crew.told for crew in apart))


def test_a_weight_moves_by_the_mean_over_those_who_learnt_about_it():
    def step(learnt, grown):
        weights, squares = np.ones(1, np.float32), np.ones(1, np.float32)
        mean_step(weights, squares, *(np.array(a, np.float32)[:, None] for a in (learnt, grown)))
        return float(weights[0]), float(squares[0])

    assert step([1.5, 1.5, 1.5], [3, 3, 3]) == (1.5, 7), "all alike: the mean"
    assert step([1, 1.5, 1], [1, 3, 1]) == (1.5, 3), "one alone: its own step"
    assert step([0.8, 1.4, 1], [2, 2, 1])[0] == pytest.approx(1.1), "two of three: their mean"
    assert step([1, 1, 1], [1, 1, 1]) == (1, 1)


def test_many_workers_do_not_overshoot():
    config = small(workers=8)
    crew = learnt(config, *[32] * 8)
    assert crew.told[1] / crew.told[0] < 0.75  # ln 2 before learning; adding up ends above 1


@pytest.mark.slow
def test_a_run_can_begin_with_a_model(tmp_path):
    trained = learnt(small(), 6)
    weights = {name: array.copy() for name, array in trained.weights._asdict().items()}
    save(ValueModel(small().size, weights), tmp_path / "own")
    config = small(start=str(tmp_path / "own"))
    assert same(Crew(config).weights, trained.weights)
    with pytest.raises(ValueError, match=r"start must be a model of players=2, width=24"):
        small(start=str(tmp_path / "own"), width=24).check()


def test_a_round_with_fewer_games_than_workers_learns_from_each_once():
    few, one = Crew(small(workers=3)), Crew(small())
    few.learn(0, 1, 0.05)
    one.learn(0, 1, 0.05)
    assert same(few.weights, one.weights)


def test_warming_up_teaches_nothing():
    config = small()
    crew = Crew(config)
    crew.warm_up()
    assert (crew.cpu_seconds, crew.told.sum()) == (0, 0)
    crew.learn(0, 4, config.rate)
    assert crew.cpu_seconds > 0
    assert same(crew.weights, learnt(config, 4).weights)


def test_the_result_depends_on_the_seed_and_the_number_of_workers():
    first = learnt(small(workers=2), 8, 8)
    assert same(first.weights, learnt(small(workers=2), 8, 8).weights)
    for other in (small(workers=2, seed=2), small(), small(workers=3)):
        assert not same(first.weights, learnt(other, 8, 8).weights)


# ------------------------------------------------------------------------------------ a run


@pytest.mark.parametrize(
    ("players", "rules"),
    [
        (2, []),
        pytest.param(
            3, ["--crown-choice", "deferred", "--max-rounds", "30"], marks=pytest.mark.slow
        ),
        pytest.param(
            4, ["--partners", "adjacent", "--paladins-per-clan", "30"], marks=pytest.mark.slow
        ),
    ],
)
def test_a_run_leaves_the_files_of_the_documentation(tmp_path, players, rules, capsys):
    assert train.main(tiny(tmp_path, "--players", str(players), *rules)) == 0
    folder = tmp_path / "r"
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "curve.json", "curve.png", "result.json", "resume", "tensorboard"),
        *("best.json", "best.safetensors", "final.json", "final.safetensors"),
    }
    config = json.loads((folder / "config.json").read_text())["config"]
    assert (config["learner"], config["players"], config["workers"]) == ("value", players, 2)
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["games"] for point in curve["evaluation"]] == [0, 32, 50]
    assert [point["games"] for point in curve["training"]] == [16, 24, 32, 40, 50]
    for point in curve["training"]:
        assert point["positions"] > 10 * point["games"]
        assert 0 < point["loss"] < 2
        assert 1 < point["rounds"] < 40
        assert 0 < point["cpu_seconds"] + 0.1 < point["seconds"] + 0.1
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    final = load(folder / "final")
    assert (final.size.players, final.size.width, final.about["games"]) == (players, 16, 50)
    assert final.about["rules"]["players"] == players
    assert final.about["command"].startswith("python train.py --learner value")
    shown = " ".join(capsys.readouterr().out.split())  # lines may wrap
    assert f"{players} players, 50 games, 2 workers" in shown
    assert re.search(r"after 32 games: Elo -?\d+ \(-?\d+ to -?\d+; planner: 0\), \d", shown)
    assert "/best: Elo " in shown
    following = f"evaluate.py value:{folder}/best planner --players {players}"
    assert "".join(following.split()) in "".join(shown.split())


def test_some_hundred_games_beat_the_untrained_network(tmp_path):
    config = small(games=300, games_per_round=20, eval_games=2, eval_every=10**6)
    run = ValueRun(config, tmp_path)
    untrained = run.agent(run.snapshot())
    assert run.train()
    points = run.curve.training
    assert points[-1]["loss"] < np.log(2)
    pair = run.agent(run.snapshot()), untrained
    assert arena.play_pairing(pair, Rules(2), 60, seed=5).ci95[0][0] > 0.6


def test_a_run_by_minutes_ends_after_that_much_time_of_learning(tmp_path):
    config = small(minutes=0.01, eval_games=2)
    run = ValueRun(config, tmp_path)
    shares = []
    run.show = lambda progress: shares.append(progress.share)
    assert run.train()
    assert run.crew.cpu_seconds >= 0.6
    assert shares == sorted(shares)
    assert shares[-2] >= 1 > shares[-3], "the last evaluation shows the same share again"
    spent = run.crew.cpu_seconds
    run.evaluate(2)
    assert run.crew.cpu_seconds == spent, "evaluations are not learning"


def test_the_rate_stays_and_then_falls_geometrically():
    config = ValueConfig(rate=0.1, flat=0.5, rate_end=0.01)
    assert [config.rate_at(share) for share in (0, 0.2, 0.49, 0.5)] == [0.1] * 4
    assert config.rate_at(0.75) == pytest.approx(0.01)
    assert config.rate_at(1) == pytest.approx(0.001)
    assert ValueConfig(flat=0, rate_end=1).rate_at(0.7) == ValueConfig().rate


def test_tensorboard_holds_loss_rate_and_ratings(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train.main(tiny(tmp_path, "--eval-bots", "random")) == 0
    events = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {
        *("train/loss", "train/rate", "games/rounds", "time/games_per_s", "time/cpu_minutes"),
        *("evaluation/elo", "evaluation/elo_low", "evaluation/elo_high", "evaluation/random"),
    }
    assert [event.step for event in events.Scalars("evaluation/random")] == [0, 32, 50]
    rates = [event.value for event in events.Scalars("train/rate")]
    assert rates[0] == pytest.approx(ValueConfig().rate)
    assert rates == sorted(rates, reverse=True) and rates[-1] < rates[0]


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError("No module named " + name, name=name)

sys.meta_path.insert(0, Blocked())
from carolus_env.commands.choice import run

sys.exit(run("train", {arguments}, "python train.py"))
"""


def blocked(names, arguments):
    """``train.py`` where packages cannot be imported."""
    code = BLOCKED.format(names=names, arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_neither_pytorch_nor_stable_baselines_nor_tensorboard_is_needed(tmp_path):
    names = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard")
    done = blocked(names, tiny(tmp_path, "--games", "8"))
    assert done.returncode == 0, done.stderr
    assert "train: no tensorboard/ is written: tensorboard" in done.stderr
    assert not (tmp_path / "r" / "tensorboard").exists()
    assert (tmp_path / "r" / "result.json").exists()
    done = blocked(names, ["--learner", "sb3", "--runs", str(tmp_path), "--name", "other"])
    assert done.returncode == 1
    said = "train: torch is missing; train needs the extra 'train': pip install"
    assert done.stderr.startswith(said)


# ------------------------------------------------------------------------------------ resuming


def test_an_interrupted_run_continues_bit_by_bit(tmp_path, monkeypatch, capsys):
    rounds = 0

    def interrupt(self, progress):
        nonlocal rounds
        rounds += progress.evaluation is None
        if rounds == 2:
            signal.raise_signal(signal.SIGINT)
            rounds += 1

    with monkeypatch.context() as patch:
        patch.setattr(train._Display, "show", interrupt)
        assert train.main(tiny(tmp_path / "a")) == 130
    folder = tmp_path / "a" / "r"
    assert f"--resume {folder}" in " ".join(capsys.readouterr().out.split())
    assert json.loads((folder / "resume" / "numbers.json").read_text())["games"] == 16
    assert train.main(["--resume", str(folder)]) == 0
    assert train.main(tiny(tmp_path / "b")) == 0
    one, other = (tmp_path / name / "r" / "final.safetensors" for name in "ab")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_resume_may_train_longer(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    before = load(folder / "final").weights
    assert train.main(["--resume", str(folder), "--games", "66"]) == 0
    after = load(folder / "final")
    assert after.about["games"] == 66
    assert any((before[name] != after.weights[name]).any() for name in before)
    kept = json.loads((folder / "config.json").read_text())
    assert kept["config"]["games"] == 66
    assert kept["command"].endswith("--games 66")
    longer = train.read_job(["--resume", str(folder), "--minutes", "2"]).config
    assert (longer.games, longer.minutes) == (66, 2)
    assert longer.extended({"games": 70}).minutes is None


def test_a_checkpoint_of_another_network_is_refused(tmp_path, capsys):
    assert train.main(tiny(tmp_path)) == 0
    path = tmp_path / "r" / "config.json"
    about = json.loads(path.read_text())
    about["config"]["width"] = 24
    path.write_text(json.dumps(about))
    capsys.readouterr()
    assert train.main(["--resume", str(tmp_path / "r")]) == 2
    error = capsys.readouterr().err
    assert "the checkpoint does not fit these options (ValueError: rows must be (" in error


# ------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--players", "5"], "players must be a whole number from 2 to 4, got 5"),
        (["--games", "0"], "games must be at least 1, got 0"),
        (["--workers", "0"], "workers must be at least 1, got 0"),
        (["--workers", "999"], "threads must be a whole number from 1 to 256, got 999"),
        (["--width", "4"], "width must be from 16 to 1024, got 4"),
        (["--width", "18"], "width must be a multiple of 4, got 18"),
        (["--candidates", "-1"], "candidates"),
        (["--plans", "some"], "plans"),
        (["--minutes", "-1"], r"minutes must be more than 0, got -1\.0"),
        (["--rate", "0"], r"rate must lie in \(0, 1\], got 0\.0"),
        (["--flat", "1"], r"flat must lie in \[0, 1\), got 1\.0"),
        (["--trace", "1.5"], r"trace must lie in \[0, 1\], got 1\.5"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--eval-bots", "nobody"], "unknown agent 'nobody'; known are"),
    ],
)
def test_a_wrong_option_is_reported_before_anything_starts(tmp_path, capsys, options, text):
    assert train.main(tiny(tmp_path, *options)) == 2
    assert not list(tmp_path.rglob("*.json"))
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    assert re.search(text, error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('learner = "walk"', "learner must be one of ppo, value, sb3, got 'walk'"),
        ('learner = "value"\nsteps = 3', "unknown option 'steps' of learner value; known are"),
        ('learner = "value"\nwidth = 1.5', "option 'width': Input should be a valid integer"),
        ("games_per_round = 4", "unknown option 'games_per_round' of learner ppo; known are"),
    ],
)
def test_a_wrong_file_of_options_is_reported(tmp_path, capsys, text, message):
    path = tmp_path / "options.toml"
    path.write_text(text)
    assert train.main(["--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}: " in error
    assert message in error


@pytest.mark.parametrize("named", [True, False])
def test_options_come_from_a_file_and_the_command_line_overrides_them(tmp_path, named):
    path = tmp_path / "options.toml"
    path.write_text('learner = "value"\n' * named + "players = 3\nwidth = 24\nseed = 4\n")
    words = ["--config", str(path), "--runs", str(tmp_path), "--seed", "7"]
    words += [] if named else ["--learner", "value"]
    job = train.read_job(words)
    assert isinstance(job.config, ValueConfig)
    assert (job.config.players, job.config.width, job.config.seed) == (3, 24, 7)
    assert job.folder.name.startswith("value-3p-seed7-")


def test_the_learner_of_a_run_is_its_own(tmp_path, capsys):
    path = tmp_path / "config.json"
    options = {"learner": "value", "width": 24, "eval_bots": ["random", "greedy", "planner"]}
    path.write_text(json.dumps({"config": options, "command": "mine"}))
    config = train.read_job(["--resume", str(tmp_path)]).config
    assert isinstance(config, ValueConfig)
    assert (config.width, config.eval_bots) == (24, ("random", "greedy", "planner"))
    assert train.main(["--resume", str(tmp_path), "--learner", "ppo"]) == 2
    assert "leave out --learner" in capsys.readouterr().err
