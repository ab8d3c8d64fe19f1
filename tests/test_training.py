"""Training: the league's seats, what a run leaves, going on with it, errors that are told."""

from __future__ import annotations

import errno
import json
import re
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")
pytest.importorskip("tyro")

import train  # noqa: E402
from agents.config import Config  # noqa: E402
from agents.league import League  # noqa: E402
from agents.policy import PolicyInfo, PolicyNetwork, load  # noqa: E402
from agents.training import Run  # noqa: E402
from carolus_env import engine  # noqa: E402
from carolus_env.rules import Rules  # noqa: E402
from carolus_env.streams import new_streams  # noqa: E402

TINY = [
    *("--games", "16", "--rollout", "16", "--batch", "64", "--epochs", "1", "--hidden", "8"),
    *("--eval-games", "4", "--final-games", "8", "--eval-every", "512"),
    *("--remember-every", "256", "--steps", "768"),
]


def tiny(folder, *more):
    return [*TINY, "--runs", str(folder), "--name", "r", *more]


def network(players):
    return PolicyNetwork(PolicyInfo(players, (4,)))


# ------------------------------------------------------------------------------------ the league


@pytest.mark.parametrize("partners", ["opposite", "adjacent"])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_league_seats_one_kind_of_opponent_and_the_self_as_partner(players, partners):
    rules = Rules(players, partners=partners)
    league = League(rules, ["greedy", "random"], earlier=2, self_share=0.4, earlier_share=0.3)
    league.update(network(players))
    random = np.random.default_rng(0)
    league.remember(network(players), random)
    seats = random.integers(players, size=20_000)
    tables = league.seat(seats, random)
    team = np.array([rules.team(seat) for seat in range(players)])
    kinds = []
    for seat, table in zip(seats, tables, strict=True):
        others = {table[other] for other in range(players) if team[other] != team[seat]}
        partners_seen = {table[other] for other in range(players) if team[other] == team[seat]}
        assert len(others) == 1
        assert partners_seen == {0}
        kinds.append(league.kind(others.pop()))
    shares = {kind: kinds.count(kind) / len(kinds) for kind in set(kinds)}
    expected = {"self": 0.4, "earlier": 0.3, "greedy": 0.15, "random": 0.15}
    assert shares == pytest.approx(expected, abs=0.02)


def test_league_keeps_at_most_so_many_earlier_selves(tmp_path):
    league = League(Rules(), ["random"], earlier=3, self_share=0.5, earlier_share=0.5)
    league.update(network(2))
    random = np.random.default_rng(0)
    for _ in range(10):
        league.remember(network(2), random)
    assert len(league.agents) == 1 + 1 + 3
    league.save(tmp_path)
    other = League(Rules(), ["random"], earlier=3, self_share=0.5, earlier_share=0.5)
    other.update(network(2))
    other.load(tmp_path)
    assert len(other.agents) == 5


@pytest.mark.parametrize(("own", "earlier"), [(0.8, 0.3), (-0.1, 0.5), (1.1, 0.0)])
def test_league_refuses_impossible_shares(own, earlier):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        League(Rules(), ["random"], earlier=3, self_share=own, earlier_share=earlier)


# ------------------------------------------------------------------------------------ a run


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_run_leaves_what_it_says(tmp_path, players, capsys):
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
    assert {"carolus-env", "torch", "numpy", "sb3-contrib"} <= set(config["versions"])
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["decisions"] for point in curve["evaluation"]] == [0, 512, 768]
    assert set(curve["evaluation"][0]["results"]) == {"random", "greedy"}
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    best = load(folder / "best")
    assert best.info.players == players
    assert best.info.training["command"].startswith("python train.py --games 16")
    assert "against" in capsys.readouterr().out


def test_resume_goes_on_where_it_stopped(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    before = load(folder / "final").state_dict()
    assert train.main(["--resume", str(folder), "--steps", "1280"]) == 0
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["decisions"] for point in curve["training"]] == [256, 512, 768, 1024, 1280]
    state = json.loads((folder / "resume" / "state.json").read_text())
    assert state["decisions"] == 1280
    after = load(folder / "final").state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_resume_starts_from_the_saved_weights(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    config, _, _ = train._resumed(["--resume", str(folder)])
    run = Run(config, folder)
    untrained = run.network().state_dict()
    run.resume()
    final = load(folder / "final").state_dict()
    resumed = run.network().state_dict()
    assert all(torch.equal(final[name], resumed[name]) for name in final)
    assert any(not torch.equal(untrained[name], resumed[name]) for name in final)
    assert run.model.policy.optimizer.state_dict()["state"], "the optimiser's moments are back"


def test_same_seed_gives_the_same_policy(tmp_path):
    weights = []
    for name in ("a", "b"):
        assert train.main(tiny(tmp_path / name)) == 0
        weights.append((tmp_path / name / "r" / "final.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_an_interruption_saves(tmp_path, monkeypatch, capsys):
    rounds = 0

    def interrupt(self, progress):
        nonlocal rounds
        rounds += progress.evaluation is None
        if rounds == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(train._Display, "show", interrupt)
    assert train.main(tiny(tmp_path)) == 130
    assert "--resume" in capsys.readouterr().out
    state = json.loads((tmp_path / "r" / "resume" / "state.json").read_text())
    assert state["decisions"] == 512
    monkeypatch.undo()
    assert train.main(["--resume", str(tmp_path / "r")]) == 0


def test_the_learner_sees_losses_as_well_as_wins(tmp_path):
    config = Config(games=64, rollout=64, hidden=(8,), bots=("random",), self_share=0.5)
    run = Run(config, tmp_path)
    run.env.reset()
    streams = new_streams(0, 64)
    seen = told = 0.0
    wins = losses = 0
    while wins + losses < 1000:
        actions = engine.random_actions(run.env.games.states, streams)
        _, rewards, dones, _ = run.env.step(actions)
        seen += rewards.sum()
        wins, losses = wins + (rewards > 0).sum(), losses + (rewards < 0).sum()
        assert not rewards[~dones].any()
        ended = run.env.ended
        if len(ended.rows):
            told += engine.returns(ended.states)[np.arange(len(ended.rows)), ended.seats].sum()
    assert seen == told
    assert min(wins, losses) > 300


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--players", "5"], "players must be a whole number from 2 to 4, got 5"),
        (["--paladins-per-clan", "2"], "paladins_per_clan must be a whole number from 3 to 200"),
        (["--games", "0"], "games must be at least 1, got 0"),
        (["--learning-rate", "2"], r"learning_rate must lie in \(0, 1\), got 2"),
        (["--bots", "nobody"], "unknown agent 'nobody'; known are"),
        (["--device", "abacus"], "device 'abacus' is none that torch knows"),
        (["--self-share", "0.9", "--earlier-share", "0.9"], "not exceed 1 together"),
    ],
)
def test_a_wrong_option_is_told_before_anything_starts(tmp_path, capsys, options, text):
    assert train.main(tiny(tmp_path, *options)) == 2
    assert not list(tmp_path.iterdir())
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    assert re.search(text, error)


def test_an_existing_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine.txt").write_text("mine")
    assert train.main(tiny(tmp_path)) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "r" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("damage", ["no folder", "no checkpoint", "cut zip", "foreign config"])
def test_a_run_that_cannot_be_resumed_is_told(tmp_path, capsys, damage):
    folder = tmp_path / "r"
    if damage != "no folder":
        assert train.main(tiny(tmp_path)) == 0
    if damage == "no checkpoint":
        shutil.rmtree(folder / "resume")
    if damage == "cut zip":
        path = folder / "resume" / "model.zip"
        path.write_bytes(path.read_bytes()[:1000])
    if damage == "foreign config":
        (folder / "config.json").write_text('{"config": {"hats": 3}}')
    capsys.readouterr()
    assert train.main(["--resume", str(folder)]) == 2
    text = "no run to resume" if damage in ("no folder", "foreign config") else "no checkpoint"
    error = capsys.readouterr().err
    assert text in error
    assert "Traceback" not in error


def test_a_full_disk_at_a_checkpoint_is_told_and_training_goes_on(tmp_path, monkeypatch, capsys):
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
    assert "no checkpoint written ([Errno 28] No space left on device); training goes on" in error
    assert (tmp_path / "r" / "resume" / "state.json").exists()


def test_a_failed_checkpoint_leaves_the_last_one(tmp_path, monkeypatch):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    config, _, _ = train._resumed(["--resume", str(folder)])
    run = Run(config, folder)
    run.resume()

    def full(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run.league, "save", full)
    with pytest.raises(OSError, match="No space left"):
        run.checkpoint()
    assert not (folder / "resume.part").exists()
    run.resume()
