"""Training: who sits where, what a run leaves behind, resuming, and errors."""

from __future__ import annotations

import dataclasses
import errno
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")
pytest.importorskip("tyro")

from carolus_env import engine  # noqa: E402
from carolus_env.arena import ladder  # noqa: E402
from carolus_env.arena.placing import evaluate  # noqa: E402
from carolus_env.bots import make  # noqa: E402
from carolus_env.bots.neural.model import load  # noqa: E402
from carolus_env.bots.neural.network import Size, initial  # noqa: E402
from carolus_env.commands import train  # noqa: E402
from carolus_env.engine.rules import Rules  # noqa: E402
from carolus_env.engine.streams import new_streams  # noqa: E402
from carolus_env.envs.learner import LEARNER, LearnerGames  # noqa: E402
from carolus_env.learners.curve import Curve  # noqa: E402
from carolus_env.learners.provenance import commit, commit_of  # noqa: E402
from carolus_env.learners.reading import read  # noqa: E402
from carolus_env.learners.single.config import Config  # noqa: E402
from carolus_env.learners.single.opponents import SelfOrBots  # noqa: E402
from carolus_env.learners.single.player import TorchPlayer  # noqa: E402
from carolus_env.learners.single.run import Run  # noqa: E402

TINY = [
    *("--learner", "single", "--games", "16", "--rollout", "16"),
    *("--batch", "64", "--epochs", "1"),
    *("--region", "4", "--trunk", "4"),
    *("--eval-games", "4", "--final-games", "8", "--eval-every", "512"),
    *("--steps", "768"),
]


def tiny(folder, *more):
    return [*TINY, "--runs", str(folder), "--name", "r", *more]


# ------------------------------------------------------------------------------------ opponents


@pytest.mark.parametrize("partners", ["opposite", "adjacent"])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_game_has_one_bot_or_none_and_the_learner_as_partner(players, partners):
    rules = Rules(players, partners=partners)
    random = np.random.default_rng(0)
    seats = random.integers(players, size=20_000)
    seatings = SelfOrBots(rules, ("greedy", "random"), 0.4).seat(seats, random)
    team = np.array([rules.team(seat) for seat in range(players)])
    met = []
    for seat, seating in zip(seats, seatings, strict=True):
        others = {int(seating[other]) for other in range(players) if team[other] != team[seat]}
        partners_seen = {seating[other] for other in range(players) if team[other] == team[seat]}
        assert len(others) == 1
        assert partners_seen == {LEARNER}
        met.append(others.pop())
    shares = {agent: met.count(agent) / len(met) for agent in set(met)}
    assert shares == pytest.approx({LEARNER: 0.4, 0: 0.3, 1: 0.3}, abs=0.02)


def test_without_bots_the_learner_plays_every_seat():
    random = np.random.default_rng(0)
    seatings = SelfOrBots(Rules(2), (), 0.5).seat(np.zeros(100, np.int64), random)
    assert (seatings == LEARNER).all()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_shares_of_the_win_are_told_by_bot(players):
    rules = Rules(players)
    opponents = SelfOrBots(rules, ("greedy", "random"), 0.2)
    games = LearnerGames(rules, 64, opponents, seed=3)
    streams, found = new_streams(1, 64), {"greedy": [], "random": []}
    while len(found["random"]) < 150:
        ended = games.step(engine.random_actions(games.states, streams))
        for bot, shares in opponents.shares(ended).items():
            found[bot] += shares
        games.restart(ended.rows)
    assert 0 <= min(found["random"]) < 1 / rules.teams < max(found["random"]) <= 1
    assert np.mean(found["greedy"]) < 0.3, "random play loses to greedy"
    assert np.mean(found["random"]) == pytest.approx(1 / rules.teams, abs=0.1), "its equal"


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ValueError, match="self_share must lie between 0 and 1"):
        SelfOrBots(Rules(), ("greedy",), share)


# ------------------------------------------------------------------------------------ a run


@pytest.mark.parametrize(
    "players", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_a_run_leaves_the_files_of_the_documentation(tmp_path, players, capsys):
    assert train.main(tiny(tmp_path, "--players", str(players))) == 0
    folder = tmp_path / "r"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("config.json", "curve.json", "curve.png", "result.json", "resume", "tensorboard"),
        *("best.json", "best.safetensors", "final.json", "final.safetensors"),
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["config"]["players"] == players
    assert config["config"]["seed"] == 1
    assert {"carolus-env", "torch", "numpy", "sb3_contrib"} <= set(config["versions"])
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["decisions"] for point in curve["evaluation"]] == [0, 512, 768]
    specs = {rung.spec for rung in ladder.rungs(players)}
    for point in curve["evaluation"]:
        names = {"decisions", "seconds", "elo", "low", "high", "rungs", "results"}
        assert set(point) == names
        assert point["low"] < point["elo"] < point["high"]
        assert set(point["rungs"]) == set(point["results"]) <= specs
    result = json.loads((folder / "result.json").read_text())
    assert result["low"] < result["elo"] < result["high"]
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    final = load(folder / "final")
    assert final.size.players == players
    assert final.about["decisions"] == 768
    assert final.about["command"].startswith("python train.py --learner single")
    shown = " ".join(capsys.readouterr().out.split())  # lines may wrap
    assert re.search(r"after 512 decisions: Elo -\d+ \(-\d+ to -\d+; planner: 0\), \d", shown)
    assert "playing its likeliest action: Elo -" in shown


def untrained(players):
    """The likeliest actions of a small policy that has learnt nothing."""
    weights = initial(Size(players, 4, 4), 1)
    return TorchPlayer(weights, players, temperature=0.0, device="cpu")


@pytest.mark.parametrize(
    "players", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_an_agent_is_placed_by_the_rungs_nearest_to_it(players):
    agent = untrained(players)
    found = evaluate(agent, Rules(players), 30, near=None)
    assert 2 <= len(found.rungs) <= 3
    again = evaluate(agent, Rules(players), 30, near=found.elo)
    near = [rung.spec for rung in ladder.nearest(players, again.elo, 5)]
    assert again.rungs[0] == ladder.nearest(players, found.elo)[0].spec
    assert {*found.rungs, *again.rungs} <= set(near)
    assert again.low - 100 < found.elo < again.high + 100
    assert again == evaluate(agent, Rules(players), 30, near=found.elo)


@pytest.mark.parametrize(
    "spec", ["random", "planner:errors=0.4", pytest.param("value:2p", marks=pytest.mark.slow)]
)
def test_where_nothing_or_something_else_is_known_a_few_games_find_the_rungs(spec):
    rungs = [rung.spec for rung in ladder.rungs(2) if not rung.searches]
    place = rungs.index(spec)
    for near in (None, ladder.rungs(2)[-1].elo, ladder.rungs(2)[0].elo):
        found = evaluate(make(spec), Rules(2), 12, near=near)
        assert all(abs(rungs.index(met) - place) <= 3 for met in found.rungs)


@pytest.mark.slow
def test_other_agents_are_met_besides_the_rungs():
    agent = untrained(2)
    found = evaluate(agent, Rules(2), 4, near=None, others=("greedy", "random"))
    assert {"greedy", "random", *found.rungs} == set(found.results)
    alone = evaluate(agent, Rules(2), 4, near=None)
    assert (found.elo, found.rungs) == (alone.elo, alone.rungs)


def test_the_curve_of_an_earlier_version_has_points_without_a_rating(tmp_path):
    old = {"decisions": 0, "seconds": 1.0, "results": {"random": {"win_rate": 0.5}}}
    rated = {"elo": -900.0, "low": -950.0, "high": -850.0, "rungs": ["greedy"]}
    curve = Curve([{"decisions": 256, "seconds": 2.0, "shares": {}}], [old])
    assert curve.elo() is None
    curve.save(tmp_path, 2, Run.look)
    curve.evaluation.append({**old, **rated})
    assert curve.elo() == -900
    curve.save(tmp_path, 2, Run.look)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_former_default_of_bots_to_meet_becomes_the_ladder(tmp_path):
    path = tmp_path / "config.json"
    for bots, wanted in ((["random", "greedy", "planner"], ()), (["planner"], ("planner",))):
        config = {"players": 3, "eval_bots": bots}
        path.write_text(json.dumps({"config": config, "command": "old"}))
        assert train.read_job(["--resume", str(tmp_path)]).config.eval_bots == wanted


@pytest.mark.slow
def test_tensorboard_holds_losses_evaluations_and_statistics_of_games(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ("--bots", "random", "--self-share", "0.7")
    options += ("--eval-bots", "random")
    assert train.main(tiny(tmp_path, *options, "--rollout", "64", "--steps", "4096")) == 0
    events = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) >= {
        *("train/value_loss", "train/policy_gradient_loss", "train/entropy_loss"),
        *("train/approx_kl", "train/explained_variance", "evaluation/random"),
        *("evaluation/elo", "evaluation/elo_low", "evaluation/elo_high"),
        *("games/rounds", "games/draws", "time/decisions_per_s"),
        *("games/ended_by_castles", "share_of_win/random"),
    }


@pytest.mark.slow
def test_callbacks_of_users_are_called_and_may_end_training(tmp_path):
    from stable_baselines3.common.callbacks import BaseCallback

    class Counting(BaseCallback):
        steps = 0

        def _on_step(self):
            self.steps += 1
            return True

    class Stopping(BaseCallback):
        def _on_step(self):
            return self.num_timesteps < 320

    counting = Counting()
    config = Config(games=16, rollout=16, steps=512, region=4, trunk=4, eval_games=2)
    assert Run(config, tmp_path, callbacks=[counting]).train()
    assert counting.steps == 32
    run = Run(config, tmp_path, callbacks=[Stopping()])
    assert not run.train()
    assert run.decisions == 320


@pytest.mark.slow
def test_the_same_seed_gives_the_same_policy(tmp_path):
    weights = []
    for name in ("a", "b"):
        assert train.main(tiny(tmp_path / name)) == 0
        weights.append((tmp_path / name / "r" / "final.safetensors").read_bytes())
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_resume_may_train_longer(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    before = load(folder / "final").weights
    assert train.main(["--resume", str(folder), "--steps", "1280"]) == 0
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["decisions"] for point in curve["training"]] == [256, 512, 768, 1024, 1280]
    after = load(folder / "final").weights
    assert any((before[name] != after[name]).any() for name in before)
    kept = json.loads((folder / "config.json").read_text())
    assert kept["config"]["steps"] == 1280, "so that --resume alone trains up to there"
    assert kept["command"].endswith("--steps 1280")


@pytest.mark.slow
def test_an_interruption_saves_after_the_current_update(tmp_path, monkeypatch, capsys):
    rounds = 0

    def interrupt(self, progress):
        nonlocal rounds
        rounds += progress.evaluation is None
        if rounds == 2:
            signal.raise_signal(signal.SIGINT)
            rounds += 1

    monkeypatch.setattr(train._Display, "show", interrupt)
    assert train.main(tiny(tmp_path)) == 130
    assert "--resume" in capsys.readouterr().out
    numbers = json.loads((tmp_path / "r" / "resume" / "numbers.json").read_text())
    assert numbers["decisions"] == 512
    monkeypatch.undo()
    assert train.main(["--resume", str(tmp_path / "r")]) == 0


@pytest.mark.slow
def test_a_run_may_start_from_a_model(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    model = load(tmp_path / "r" / "final")
    path = str(tmp_path / "r" / "final")
    config = Config(games=16, rollout=16, region=4, trunk=4, start=path)
    run = Run(config, tmp_path)
    started = run.model.weights()
    assert run.snapshot().about["start"] == model.about
    assert all((started[name] == model.weights[name]).all() for name in started)


# ------------------------------------------------------------------------------------ the commit


def repository(folder, *tracked):
    """A git repository that tracks some of its files."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "--", *tracked], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def package(root):
    """A copy of the file that is looked for, in a folder that the package is installed in."""
    shutil.copytree("carolus_env/learners", root / "carolus_env" / "learners")
    return root / "carolus_env" / "learners" / "provenance.py"


@needs_git
def test_the_commit_is_that_of_the_checkout_and_marked_when_files_differ(tmp_path):
    file = package(tmp_path)
    head = repository(tmp_path, "carolus_env")
    assert commit_of(tmp_path) == head
    file.write_text("")
    assert commit_of(tmp_path) == head + "+"


@needs_git
@pytest.mark.parametrize(
    ("place", "tracked"),
    [(".", False), (".venv/lib/python3.11/site-packages", False), ("vendored", True)],
)
def test_an_installed_package_has_no_commit_inside_another_repository(tmp_path, place, tracked):
    package(tmp_path / place)
    (tmp_path / "mine.py").write_text("")
    repository(tmp_path, "mine.py", *([place] if tracked else []))
    assert commit_of(tmp_path / place) is None


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    package(tmp_path)
    assert commit_of(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert commit_of(Path.cwd()) is None


@needs_git
def test_this_code_has_the_commit_of_its_checkout():
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip("no checkout")
    assert (commit() or "").removesuffix("+") == found.stdout.strip()


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--players", "5"], "players must be a whole number from 2 to 4, got 5"),
        (["--paladins-per-clan", "2"], "paladins_per_clan must be a whole number from 3 to 200"),
        (["--games", "0"], "games must be at least 1, got 0"),
        (["--learning-rate", "2"], r"learning_rate must lie in \(0, 1\), got 2"),
        (["--bots", "nobody"], "unknown agent 'nobody'; known are"),
        (["--device", "abacus"], "device 'abacus' is unknown to PyTorch"),
        (["--self-share", "1.5"], "self_share must lie between 0 and 1, got 1.5"),
        (["--region", "0"], "region must be an integer from 1 to 4096, got 0"),
        (["--start", "nowhere"], "nowhere.json: cannot be read"),
        (["--start", "2p"], "is a model of .*, not "),
    ],
)
def test_a_wrong_option_is_reported_before_anything_starts(tmp_path, capsys, options, text):
    assert train.main(tiny(tmp_path, *options)) == 2
    assert not list(tmp_path.rglob("*.json"))
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    assert re.search(text, error)


def test_an_existing_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine.txt").write_text("mine")
    assert train.main(tiny(tmp_path)) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "r" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "damage",
    [
        "no folder",
        pytest.param("no checkpoint", marks=pytest.mark.slow),
        "cut arrays",
        pytest.param("foreign config", marks=pytest.mark.slow),
        pytest.param("other sizes", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_cannot_be_resumed_is_reported(tmp_path, capsys, damage):
    folder = tmp_path / "r"
    if damage != "no folder":
        assert train.main(tiny(tmp_path)) == 0
    if damage == "no checkpoint":
        shutil.rmtree(folder / "resume")
    if damage == "cut arrays":
        path = folder / "resume" / "arrays.npz"
        path.write_bytes(path.read_bytes()[:1000])
    if damage == "foreign config":
        (folder / "config.json").write_text('{"config": {"hats": 3}}')
    if damage == "other sizes":
        about = json.loads((folder / "config.json").read_text())
        about["config"]["games"] = 8
        (folder / "config.json").write_text(json.dumps(about))
    capsys.readouterr()
    assert train.main(["--resume", str(folder)]) == 2
    text = "no run to resume" if damage in ("no folder", "foreign config") else "checkpoint"
    error = capsys.readouterr().err
    assert text in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_full_disk_at_a_checkpoint_does_not_end_training(tmp_path, monkeypatch, capsys):
    whole = Run.checkpoint
    calls = []

    def full_at_first(self):
        calls.append(1)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(self)

    monkeypatch.setattr(Run, "checkpoint", full_at_first)
    assert train.main(tiny(tmp_path)) == 0
    error = capsys.readouterr().err
    assert "no checkpoint written ([Errno 28] No space left on device); training continues" in error
    assert (tmp_path / "r" / "resume" / "numbers.json").exists()


@pytest.mark.slow
def test_a_failed_checkpoint_leaves_the_last_one(tmp_path, monkeypatch):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    run = Run(train.read_job(["--resume", str(folder)]).config, folder)
    run.resume()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        run.checkpoint()
    assert not (folder / "resume.part").exists()
    run.resume()


@pytest.mark.slow
def test_a_checkpoint_between_its_two_renames_is_found(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    (folder / "resume").rename(folder / "resume.old")
    assert train.main(["--resume", str(folder), "--steps", "1024"]) == 0


# ------------------------------------------------------------------------------------ a file


@pytest.mark.parametrize("words", [["--config", "{}"], ["--config={}"]])
def test_options_come_from_a_file_and_the_command_line_overrides_them(tmp_path, words):
    path = tmp_path / "options.toml"
    path.write_text(
        'learner = "single"\nplayers = 3\nbots = ["greedy", "random"]\nentropy = 0.5\nseed = 4\n'
    )
    given = [word.format(path) for word in words]
    job = train.read_job(["--runs", str(tmp_path), *given, "--seed", "7", "--name", "a"])
    assert (job.config.players, job.config.bots, job.config.seed) == (3, ("greedy", "random"), 7)
    assert job.config.entropy == 0.5
    assert job.config.games == Config().games
    assert (job.folder, job.resumed) == (tmp_path / "a", False)
    assert str(path) in job.command


@pytest.mark.parametrize("words", [["--resume", "{}"], ["--resume={}"]])
def test_a_run_is_resumed_with_its_own_options(tmp_path, words):
    config = {"players": 3, "seed": 9}
    about = {"commit": None, "config": config, "command": "python train.py --seed 9"}
    (tmp_path / "config.json").write_text(json.dumps(about))
    given = [word.format(tmp_path) for word in words]
    job = train.read_job(given)
    assert (job.config.players, job.config.seed) == (3, 9)
    assert (job.folder, job.resumed, job.command) == (tmp_path, True, "python train.py --seed 9")
    longer = train.read_job([*given, "--steps", "77"])
    assert longer.config.steps == 77
    assert longer.command.startswith("python train.py --seed 9; python train.py --resume")


@pytest.mark.parametrize("learner", [{}, {"learner": "ppo"}])
def test_a_run_of_single_decisions_that_was_begun_as_ppo_goes_on_as_such(tmp_path, learner):
    config = {**learner, "players": 3, "trunk": 64}
    (tmp_path / "config.json").write_text(json.dumps({"config": config, "command": "old"}))
    assert train.read_job(["--resume", str(tmp_path)]).config == Config(players=3, trunk=64)


@pytest.mark.parametrize("learner", [{}, {"learner": "single"}])
@pytest.mark.parametrize("name", ["shaping", "earlier_share"])
def test_a_run_begun_with_an_option_that_is_gone_is_resumed_if_it_did_not_use_it(
    tmp_path, capsys, name, learner
):
    path, options = tmp_path / "config.json", {"players": 3, "hardness": 1.0, **learner}
    path.write_text(json.dumps({"config": {**options, name: 0.0}, "command": "old"}))
    assert train.read_job(["--resume", str(tmp_path)]).config.players == 3
    path.write_text(json.dumps({"config": {**options, name: 0.5}, "command": "old"}))
    assert train.main(["--resume", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"option '{name}' no longer exists; resume the run with the version that beg" in error


@pytest.mark.parametrize("option", ["--config", "--resume"])
@pytest.mark.parametrize("form", ["{} {}", "{}={}"])
def test_a_wrong_path_is_named(tmp_path, capsys, option, form):
    path = tmp_path / "nowhere"
    assert train.main(form.format(option, path).split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"train: {path}: ")
    assert "no such f" in error.lower()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--config", "Missing value for argument '--config'"),
        ("--resume", "Missing value for argument '--resume'"),
        ("--resume {} --games 3", "Unrecognized options: --games, 3"),
        ("--hats 3", "Unrecognized options: --hats, 3"),
    ],
)
def test_a_command_line_that_is_not_understood_is_refused(tmp_path, capsys, words, text):
    (tmp_path / "config.json").write_text(json.dumps({"config": {}, "command": "old"}))
    with pytest.raises(SystemExit) as stopped:
        train.main(words.format(tmp_path).split())
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err


def test_a_file_of_options_and_a_run_to_resume_exclude_each_other(tmp_path, capsys):
    assert train.main(["--config=agents/ppo_2p.toml", f"--resume={tmp_path}"]) == 2
    assert "leave out --config" in capsys.readouterr().err


def test_help_shows_every_option(capsys):
    with pytest.raises(SystemExit) as stopped:
        train.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for field in dataclasses.fields(train.Options):
        assert f"--{field.name.replace('_', '-')} " in shown
    assert "\n$ python train.py --resume runs/four" in shown
    with pytest.raises(SystemExit):
        train.main(["--learner", "single", "--help"])
    shown = capsys.readouterr().out
    for field in dataclasses.fields(train.OptionsOfSingle):
        assert f"--{field.name.replace('_', '-')} " in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hats = 3", "unknown option 'hats' of learner ppo; known are players"),
        ('players = "2"', "option 'players': Input should be a valid integer, got '2'"),
        ("epochs = 1.5", "option 'epochs'"),
        ('partners = "beside"', "option 'partners': Input should be 'opposite' or 'adjacent'"),
        ("players = ", "not a TOML file"),
    ],
)
def test_a_wrong_file_of_options_is_reported(tmp_path, capsys, text, message):
    path = tmp_path / "options.toml"
    path.write_text(text)
    assert train.main(["--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error


@pytest.mark.parametrize("path", sorted(Path("agents").glob("*.toml")), ids=lambda p: p.stem)
def test_the_recipes_of_the_shipped_agents_are_valid(path):
    config = read(path)
    config.check()
    assert f"{config.players}p" in path.stem
