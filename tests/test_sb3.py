"""``--learner sb3``: a run, what it leaves, killed and resumed; and the bot that plays it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from carolus_env import bots, engine, evaluation
from carolus_env.bots.agent import AgentError
from carolus_env.engine.rules import Rules
from carolus_env.envs.gym import CarolusVectorEnv
from carolus_env.integrations.sb3 import MlpModel, Size
from carolus_env.networks.files import ModelError

TINY = [
    *("--learner", "sb3", "--envs", "8", "--n-steps", "16", "--batch-size", "32"),
    *("--n-epochs", "1", "--width", "8", "--opponents", "random", "--max-rounds", "20"),
    *("--eval-games", "4", "--final-games", "4", "--eval-every", "256", "--steps", "512"),
]
BOTH = pytest.mark.parametrize("candidates", [0, 6])


def model(candidates=6, players=2, seed=1):
    size = Size(players, candidates, width=8, layers=2)
    random = np.random.default_rng(seed)
    weights = {
        name: random.normal(size=shape).astype(np.float32) for name, shape in size.shapes().items()
    }
    return MlpModel(size, weights, {"seed": seed})


@BOTH
@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_model_plays_in_the_arena_and_as_an_opponent(tmp_path, players, candidates):
    model(candidates, players).save(tmp_path / "mine")
    spec = f"sb3:{tmp_path}/mine"
    assert evaluation.play_pairing((spec, "random"), Rules(players), 12, seed=1).games >= 12
    envs = CarolusVectorEnv(4, players, spec)
    envs.reset(seed=1)
    envs.step(envs.action_masks().argmax(axis=1))
    with pytest.raises(AgentError, match=f"plays games of {players} players"):
        bots.make(spec).act_one(engine.new_games(Rules(2 if players > 2 else 3), 1)[0])
    assert "sb3" in bots.known()


def test_a_file_that_is_no_such_model_is_refused(tmp_path):
    path = tmp_path / "mine.json"
    model().save(path)
    about = json.loads(path.read_text())
    for change, text in (
        ({"candidates_version": 0}, "candidates_version must be "),
        ({"format": "carolus-network"}, "format must be 'carolus-sb3', got 'carolus-network'"),
        ({"candidates": 4}, "candidates must be 0 or from 5 to "),
        ({"layers": 3}, "do not fit .*action.weight|hidden.2.bias is missing"),
    ):
        path.write_text(json.dumps({**about, **change}))
        with pytest.raises(ModelError, match=text):
            bots.make(f"sb3:{path}")
    with pytest.raises(AgentError, match="needs the path of a model"):
        bots.make("sb3")
    with pytest.raises(ModelError, match=r"nowhere.json: cannot be read"):
        bots.make("sb3:nowhere")


def run(folder, *more):
    train = pytest.importorskip("carolus_env.commands.train")
    return train.main([*TINY, "--runs", str(folder), "--name", "r", *more])


@pytest.fixture(autouse=True)
def needs(request):
    """Leave out what trains where a package is missing."""
    if "trains" in request.node.name:
        for package in ("sb3_contrib", "tyro", "tqdm"):
            pytest.importorskip(package)


def test_it_trains_the_same_weights_from_the_same_seed_and_the_bot_plays_as_sb3(tmp_path):
    """And trains on from its last whole checkpoint."""
    assert run(tmp_path / "a") == 0
    assert run(tmp_path / "b") == 0
    folder, other = (tmp_path / name / "r" for name in "ab")
    final = folder / "final.safetensors"
    assert final.read_bytes() == (other / "final.safetensors").read_bytes()

    from sb3_contrib import MaskablePPO

    from carolus_env.envs.sb3 import CarolusTurnsVecEnv
    from carolus_env.envs.turns import Turns
    from carolus_env.integrations.sb3 import likeliest

    theirs = MaskablePPO.load(folder / "resume" / "model_512_steps")
    env = CarolusTurnsVecEnv(Rules(), 64, "random", seed=3, turns=Turns(8))
    seen = env.reset()
    for _ in range(10):
        masks = env.action_masks()
        ours = likeliest(MlpModel.load(final), seen, masks == 1)
        assert (ours == theirs.predict(seen, action_masks=masks, deterministic=True)[0]).all()
        seen, *_ = env.step(ours)

    complete = (folder / "resume/model_256_steps.zip").read_bytes()
    for name, end in (("998", complete.index(b"system_info.txt")), ("999", 7)):  # killed there
        (folder / f"resume/model_{name}_steps.zip").write_bytes(complete[:end])
    train = pytest.importorskip("carolus_env.commands.train")
    assert train.main(["--resume", str(folder), "--steps", "1100"]) == 0
    assert final.read_bytes() != (other / "final.safetensors").read_bytes()
    curve = json.loads((folder / "curve.json").read_text())["evaluation"]
    decisions = [point["decisions"] for point in curve]
    assert decisions[:3] == [256, 512, 768] and decisions[-1] in (1024, 1100)
    config = json.loads((folder / "config.json").read_text())
    assert config["config"]["steps"] == 1100
