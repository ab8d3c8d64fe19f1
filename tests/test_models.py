"""Models: what is read back plays the same; what is none, or does not fit, is refused by name."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import zipfile

import numpy as np
import pytest
from networks import random_model
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes

import carolus_env as ce
from carolus_env import bots, evaluation
from carolus_env.bots import ModelError, NetworkModel, PpoBot, ValueBot, models
from carolus_env.networks import files

every_number = pytest.mark.parametrize("players", [2, 3, 4])


def small(players=2, seed=0, policy=True) -> NetworkModel:
    """Return a small random model."""
    return random_model(players, policy, seed, width=16, hidden=4)


@pytest.fixture
def saved(tmp_path):
    small().save(tmp_path / "p")
    return tmp_path / "p"


def rewrite(path, **changes):
    about = json.loads(path.with_suffix(".json").read_text())
    about.update(changes)
    path.with_suffix(".json").write_text(json.dumps(about))


def forge(path, data):
    """Put other bytes in the place of the weights, with their digest, as a forger would."""
    path.with_suffix(".safetensors").write_bytes(data)
    rewrite(path, sha256=hashlib.sha256(data).hexdigest())


def decisions(players=2, n=64, seed=3, steps=12):
    """Games some random decisions on, in different phases."""
    states, streams = ce.new_games(ce.Rules(players=players), n, seed=seed), ce.new_streams(seed, n)
    for step in range(steps):
        rows = np.arange(n)[np.arange(n) % steps >= step]
        own = streams[rows]
        ce.step(states, ce.random_actions(states[rows], own), rows=rows)
        streams[rows] = own
    return states


def test_what_was_saved_is_read_back(saved):
    for name in (saved, saved.with_suffix(".json"), str(saved.with_suffix(".safetensors"))):
        again = NetworkModel.load(name)
        assert (again.size, dict(again.about)) == (small().size, {"seed": 0})
        assert again.weights.keys() == small().weights.keys()
        for key, value in small().weights.items():
            np.testing.assert_array_equal(again.weights[key], value)
    assert sorted(p.name for p in saved.parent.iterdir()) == ["p.json", "p.safetensors"]
    small().save(saved.with_name("v1.5"))
    assert saved.with_name("v1.5.json").exists()
    assert NetworkModel.load(saved.with_name("v1.5")).size == small().size


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "carolus-sb3"}, "format must be 'carolus-network', got 'carolus-sb3'"),
        ({"version": 99}, "version must be 1, got 99"),
        ({"version": True}, "version must be a whole number, got True"),
        ({"players": 5}, "players must be from 2 to 4, got 5"),
        ({"players": [[["x" * 10**5] * 5]]}, "players must be a whole number, got "),
        ({"format": "y" * 10**5}, "format must be 'carolus-network', got "),
        (
            {"players": 3},
            r"p\.safetensors: the weights do not fit Size\(players=3, .* must be float32",
        ),
        ({"policy": False}, r"out must be float32 .*; sharpness must be float32 \(0,\), got"),
        ({"policy": 1}, "policy must be true or false, got 1"),
        ({"width": 24}, r"bias must be float32 \(24,\), got float32 \(16,\)"),
        ({"width": 10**12}, "width must be from 16 to 1024, got 1000000000000"),
        ({"width": 18}, "width must be .*, got 18"),
        ({"hidden": 2}, "hidden must be .*, got 2"),
        ({"hidden": 8.0}, "hidden must be a whole number, got 8.0"),
        ({"about": []}, r"about must be an object, got \[\]"),
        ({"sha256": None}, "sha256 must be a string, got None"),
        ({"sha256": "0" * 64}, "sha256 must be '0000.*, got [0-9a-f]{64}"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(saved, changes, text):
    rewrite(saved, **changes)
    with pytest.raises(ModelError, match=text) as caught:
        NetworkModel.load(saved)
    assert str(saved) in str(caught.value) and len(str(caught.value)) < 500


def test_a_json_without_a_key_is_refused(saved):
    whole = json.loads(saved.with_suffix(".json").read_text())
    for key in whole:
        rest = {k: v for k, v in whole.items() if k != key}
        saved.with_suffix(".json").write_text(json.dumps(rest))
        with pytest.raises(ModelError, match=rf"p\.json: {key} is missing"):
            NetworkModel.load(saved)


@pytest.mark.parametrize(
    "junk",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"null", b"1" * 5000, b" " * (2**20 + 1)],
    ids=["empty", "cut short", "bytes", "deep", "list", "null", "number", "long"],
)
def test_a_json_that_is_none_is_refused(saved, junk):
    saved.with_suffix(".json").write_bytes(junk)
    with pytest.raises(ModelError, match=r"p\.json: not a model: "):
        NetworkModel.load(saved)


class Bomb:
    """Pickles into something that leaves a file behind when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


@pytest.mark.parametrize("kind", ["pickle", "torch", "cut short", "zeros", "empty", "longer"])
def test_foreign_weights_are_refused_and_run_no_code(saved, tmp_path, kind):
    trap = tmp_path / "trap"
    bomb = pickle.dumps(Bomb(trap))
    pickle.loads(bomb)
    assert trap.exists(), "the trap works"
    trap.unlink()
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:  # what torch.save writes
        archive.writestr("archive/data.pkl", bomb)
    whole = saved.with_suffix(".safetensors").read_bytes()
    data = {
        "pickle": bomb,
        "torch": (tmp_path / "z").read_bytes(),
        "cut short": whole[:-7],
        "zeros": bytes(64),
        "empty": b"",
        "longer": whole + b"more",
    }[kind]
    saved.with_suffix(".safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"p\.safetensors: not the weights that its JSON"):
        NetworkModel.load(saved)
    forge(saved, data)
    with pytest.raises(ModelError, match=r"p\.safetensors: not a safetensors file"):
        NetworkModel.load(saved)
    assert not trap.exists()


def test_weights_other_than_the_networks_are_listed(saved):
    tensors = read_tensors(saved.with_suffix(".safetensors").read_bytes())
    tensors["bias"] = tensors["bias"].astype(np.float64)
    tensors["out_bias"] = np.full_like(tensors["out_bias"], np.nan)
    tensors["hidden"] = tensors["hidden"].T.copy()
    tensors["extra"] = tensors.pop("sharpness")
    forge(saved, tensor_bytes(tensors))
    with pytest.raises(ModelError) as caught:
        NetworkModel.load(saved)
    for text in (
        "sharpness is missing",
        "'extra' is unknown",
        "bias must be float32 (16,), got float64 (16,)",
        "hidden must be float32 (",
        "out_bias holds NaN or infinity",
    ):
        assert text in str(caught.value)


def test_a_model_is_not_made_of_other_weights():
    weights = dict(small().weights)
    weights["bias"] = np.full(16, np.inf, np.float32)
    with pytest.raises(ModelError, match="bias holds NaN or infinity"):
        NetworkModel(small().size, weights)
    with pytest.raises(ModelError, match=f"and {len(small().size.shapes()) - 6} more"):
        NetworkModel(small().size, {})


def test_a_file_longer_than_any_model_is_refused(saved, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(ModelError, match=r"p\.safetensors: not a model: longer than 100 bytes"):
        NetworkModel.load(saved)
    with pytest.raises(ModelError, match="allowed are 100"):
        small().save(saved)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_missing_file_is_named(saved, suffix):
    path = saved.with_suffix(suffix)
    path.unlink()
    with pytest.raises(ModelError, match=rf"p\{suffix}: cannot be read: No such file"):
        NetworkModel.load(saved)
    path.mkdir()
    with pytest.raises(ModelError, match=rf"p\{suffix}: cannot be read: not a regular file"):
        NetworkModel.load(saved)


@pytest.mark.parametrize("spec", ["ppo", "ppo:temperature=1", "value:discs=now", "search:sims=3"])
def test_decisions_do_not_depend_on_the_batch(spec):
    """Nor on who else is in it: numbers of players may be mixed."""
    states = np.concatenate([decisions(players, 20) for players in (2, 3, 4)])
    states = states[np.random.default_rng(1).permutation(60)]
    together = bots.make(spec).act(states, ce.new_streams(9, 60))
    agent = bots.make(spec)
    one_by_one = [
        int(agent.act(states[i : i + 1].copy(), ce.new_streams(9 + i, 1))[0]) for i in range(60)
    ]
    assert together.tolist() == one_by_one
    assert ce.engine.are_legal(states, together).all()


def test_spec_strings_make_the_agents(saved):
    agent = bots.make(f"ppo:{saved},temperature=0.5")
    assert isinstance(agent, PpoBot)
    assert agent.options.temperature == 0.5
    assert agent.name == f"ppo:{saved},temperature=0.5"
    assert isinstance(bots.make(f"value:{saved}"), ValueBot), "a policy head is left aside"


def test_a_policy_needs_a_policy_head(tmp_path):
    small(policy=False).save(tmp_path / "v")
    with pytest.raises(ModelError, match="v: the model has no policy head"):
        bots.make(f"ppo:{tmp_path}/v")
    with pytest.raises(bots.AgentError, match="needs a model with a policy head"):
        PpoBot(small(policy=False))


@every_number
@pytest.mark.parametrize("spec", ["ppo", "ppo:{}p", "ppo:temperature=1", "search:sims=3"])
def test_the_models_of_the_package_play(spec, players):
    agents = bots.make(spec.format(players)), bots.make("greedy")
    assert evaluation.play_pairing(agents, ce.Rules(players=players), 6, seed=1).games == 6


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("ppo:{},sims=3", "agent 'ppo': has no option 'sims=3'; options are .*temperature: a num"),
        ("ppo:sims=3", "agent 'ppo': has no option 'sims=3'"),
        ("ppo:{},temperature=hot", "option temperature must be a number from 0 to 100, got 'hot'"),
        ("ppo:{},candidates=3", "option candidates must be a whole number from 5 to 4,096, got 3"),
        ("ppo:{},temperature=-1", "option temperature must be a number from 0 to 100, got -1.0"),
        ("ppo:nowhere/p", r"^nowhere/p\.json: cannot be read: No such file"),
        ("ppo:5p", r"^5p\.json: cannot be read"),
        ("search:2p,sims=0", "agent 'search': option sims must be a whole number from 1 to"),
        ("search:2p,depth=3", "agent 'search': has no option 'depth=3'"),
    ],
)
def test_a_wrong_spec_is_refused(saved, spec, text):
    with pytest.raises(ValueError, match=text):
        bots.make(spec.format(saved))


@pytest.mark.parametrize("spec", ["ppo:2p", "ppo:{}", "value:{}", "search:{}", "search:{},sims=9"])
def test_games_of_another_number_of_players_are_refused(saved, spec):
    agent = bots.make(spec := spec.format(saved))
    text = f"agent '{re.escape(spec)}': has a model for 2 players, not for 3"
    with pytest.raises(ValueError, match=text):
        agent.act(decisions(3), ce.new_streams(0, 64))


@pytest.mark.parametrize(("bot", "kind"), [("ppo", "ppo"), ("value", "value"), ("search", "value")])
def test_a_missing_model_of_the_package_is_named(monkeypatch, tmp_path, bot, kind):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    with pytest.raises(ModelError, match=rf"{kind}_2p\.json: cannot be read: No such file"):
        bots.make(f"{bot}:2p")
    with pytest.raises(ModelError, match=rf"{kind}_3p\.json: cannot be read"):
        bots.make(bot).act(decisions(3), ce.new_streams(0, 64))


@pytest.mark.parametrize("kind", ["ppo", "value"])
def test_models_of_the_package_are_for_their_number_of_players(kind):
    for name in models.NAMES:
        size = models.find(kind, name).size
        assert (f"{size.players}p", size.policy) == (name, kind == "ppo")
